//! A text without what a model cannot see when it reads: blanks at line ends, the kind of line ends, and typographic
//! quotes, dashes and spaces. Every place of it can be found again in the text itself.

/// The plain twin of a typographic quote, dash or space; any other character is its own.
#[must_use]
pub(crate) fn plain_twin(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            ' '
        }
        other => other,
    }
}

fn is_blank(character: char) -> bool {
    matches!(plain_twin(character), ' ' | '\t')
}

/// A text, folded.
#[derive(Debug)]
pub(crate) struct Folded<'t> {
    raw: &'t str,
    /// The folded text.
    pub(crate) text: String,
    /// Where each line starts, in the folded text and in the text.
    starts: Vec<(u32, u32)>,
    last_blanks: LastBlanks,
}

/// What happens to blanks at the very end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastBlanks {
    /// The text goes on somewhere else, so that they may be no line's end.
    Kept,
    /// The text ends there.
    Dropped,
}

/// The largest text that is folded: it is held in memory, and so are the places of its lines.
pub(crate) const FOLDED_MAX: u64 = 8 * 1024 * 1024;

impl<'t> Folded<'t> {
    /// Folds a text, which must have at most [`FOLDED_MAX`] bytes.
    pub(crate) fn new(raw: &'t str, last_blanks: LastBlanks) -> Folded<'t> {
        let mut folded = Folded {
            raw,
            text: String::with_capacity(raw.len()),
            starts: Vec::new(),
            last_blanks,
        };
        let mut at = 0;
        for line in raw.split_inclusive('\n') {
            folded
                .starts
                .push((counted(folded.text.len()), counted(at)));
            let seen = folded.seen(line);
            folded.text.extend(seen.chars().map(plain_twin));
            if line.ends_with('\n') {
                folded.text.push('\n');
            }
            at += line.len();
        }
        folded
    }

    /// The relevant part of a line.
    fn seen<'l>(&self, line: &'l str) -> &'l str {
        match line.strip_suffix('\n') {
            Some(body) => {
                let body = body.strip_suffix('\r').unwrap_or(body);
                body.trim_end_matches(is_blank)
            }
            None if self.last_blanks == LastBlanks::Dropped => line.trim_end_matches(is_blank),
            None => line,
        }
    }

    /// The position in the text at which the character before a place of the folded text ends.
    pub(crate) fn end_of(&self, folded: usize) -> usize {
        let line = self.line(|start| start.0 as usize <= folded);
        let mut left = folded - line.folded;
        let mut raw = line.raw;
        for character in line.seen.chars() {
            if left == 0 {
                return raw;
            }
            left = left.saturating_sub(plain_twin(character).len_utf8());
            raw += character.len_utf8();
        }
        if left == 0 {
            raw
        } else {
            line.raw + line.whole.len()
        }
    }

    /// The position in the text at which the character at a place of the folded text starts.
    pub(crate) fn start_of(&self, folded: usize) -> usize {
        let end = self.end_of(folded);
        if self.text.as_bytes().get(folded) != Some(&b'\n') {
            return end;
        }
        let blanks = self.raw.get(end..).unwrap_or_default();
        end + blanks.len() - blanks.trim_start_matches(is_blank).len()
    }

    /// The place in the folded text that corresponds to a place of the text.
    pub(crate) fn place_of(&self, raw: usize) -> usize {
        let line = self.line(|start| start.1 as usize <= raw);
        let mut folded = line.folded;
        for (inside, character) in line.seen.char_indices() {
            if line.raw + inside >= raw {
                return folded;
            }
            folded += plain_twin(character).len_utf8();
        }
        folded + usize::from(line.whole.ends_with('\n') && raw >= line.raw + line.whole.len())
    }

    /// The last line of those that a condition on its start holds for.
    fn line(&self, holds: impl Fn(&(u32, u32)) -> bool) -> FoldedLine<'t> {
        let next = self.starts.partition_point(holds);
        let start = next.checked_sub(1).and_then(|last| self.starts.get(last));
        let (folded, raw) = start.map_or((0, 0), |start| (start.0 as usize, start.1 as usize));
        let rest = self.raw.get(raw..).unwrap_or_default();
        let whole = rest.split_inclusive('\n').next().unwrap_or_default();
        FoldedLine {
            folded,
            raw,
            whole,
            seen: self.seen(whole),
        }
    }
}

struct FoldedLine<'t> {
    /// Where it starts, in the folded text and in the text.
    folded: usize,
    raw: usize,
    whole: &'t str,
    seen: &'t str,
}

/// Texts that are folded are small.
fn counted(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_seen_is_left_out() {
        let raw = "a \t\r\n\u{201c}b\u{201d}\u{a0}\u{2014} c\u{a0}\n\td ";
        let folded = Folded::new(raw, LastBlanks::Dropped);
        assert_eq!(folded.text, "a\n\"b\" - c\n\td");
        assert_eq!(Folded::new("a ", LastBlanks::Kept).text, "a ");
        // The line end starts at its `\r`, behind the blanks.
        assert_eq!(folded.end_of(1), 1);
        assert_eq!(folded.start_of(1), 3);
        assert_eq!(folded.end_of(2), 5);
        assert_eq!(folded.start_of(2), 5);
        assert_eq!(folded.end_of(3), 8);
    }

    proptest! {
        #[test]
        fn every_character_is_found_again(raw in "[ab \t\r\n\u{2019}\u{2014}\u{a0}é]{0,30}") {
            let folded = Folded::new(&raw, LastBlanks::Dropped);
            for (at, character) in folded.text.char_indices() {
                let found = &raw[folded.start_of(at)..folded.end_of(at + character.len_utf8())];
                let expected = if character == '\n' {
                    found == "\n" || found == "\r\n"
                } else {
                    found.chars().map(plain_twin).eq([character])
                };
                prop_assert!(expected, "{:?} {:?}", character, found);
            }
            for (at, _) in raw.char_indices() {
                prop_assert!(folded.place_of(at) <= folded.text.len());
            }
            prop_assert_eq!(folded.place_of(raw.len()), folded.text.len());
        }
    }
}
