//! Edits of a text: replace one string, insert before a line, and say what was probably meant where it is missing.
//!
//! An edit is a [`Splice`]: which bytes go and which come. Nothing else of the text is touched, so line
//! ends, a byte order mark and a missing final newline stay as they are.
//!
//! Strings written with `\n` fit texts that have `\r\n`: what is looked for matches either line end, and
//! what is put in gets the line end of its surroundings. A string that has a `\r` itself is taken as it is.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};

use crate::error::{Error, Result};
use crate::text::lines::{self, Blocks, LineEnd, Sought};
use crate::text::{ReadAt, encoding, excerpt};

/// How many places of a string that is not unique are named.
pub const PLACES: usize = 20;
/// How much is searched at a time.
const WINDOW: usize = 1024 * 1024;

/// One change: these bytes go, those come in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes of the old text that go.
    pub range: Range<u64>,
    /// What comes in their place.
    pub replacement: Vec<u8>,
}

impl Splice {
    /// The text with this change made.
    #[must_use]
    pub fn applied(&self, text: &[u8]) -> Vec<u8> {
        let at = |offset: u64| {
            usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(text.len())
        };
        let before = text.get(..at(self.range.start)).unwrap_or(text);
        let after = text.get(at(self.range.end)..).unwrap_or(&[]);
        [before, &self.replacement, after].concat()
    }
}

/// Finds the only place of `old` and puts `new` there, literally.
///
/// Fails with [`Error::StringNotFound`], which names the likeliest line, or [`Error::StringNotUnique`].
pub fn replace_unique(path: &str, read: &mut ReadAt<'_>, old: &str, new: &str) -> Result<Splice> {
    let found = occurrences(read, old)?;
    match (found.count, found.places.first()) {
        (1, Some(place)) => {
            let end = place_line_end(read, place, old, new)?;
            Ok(Splice {
                range: place.range.clone(),
                replacement: with_line_ends(new, end),
            })
        }
        (0, _) | (_, None) => Err(Error::StringNotFound {
            path: path.to_owned(),
            nearest: nearest_line(read, old)?,
        }),
        (count, Some(_)) => {
            let lines = line_numbers(read, &found.places)?;
            Err(Error::StringNotUnique {
                path: path.to_owned(),
                count,
                lines,
            })
        }
    }
}

/// Inserts `new` before a line, counted from 1; one after the last line is allowed.
///
/// A last line without a newline is ended first. Before line 1 means after a byte order mark.
pub fn insert_before(path: &str, read: &mut ReadAt<'_>, line: i64, new: &str) -> Result<Splice> {
    let before = u64::try_from(line)
        .ok()
        .and_then(|line| line.checked_sub(1));
    let (offset, opening) = match lines::find_line_start(read, before.unwrap_or(u64::MAX))? {
        Sought::At(0) => (length_of_bom(read)?, false),
        Sought::At(offset) => (offset, false),
        Sought::Beyond { lines, size } if before == Some(lines) => (size, true),
        Sought::Beyond { lines, .. } => {
            return Err(Error::LineOutOfRange {
                path: path.to_owned(),
                line,
                max: lines + 1,
            });
        }
    };
    let surrounding = lines::line_end_near(read, offset)?.unwrap_or(LineEnd::Lf);
    let end = if new.contains('\r') {
        LineEnd::Lf
    } else {
        surrounding
    };
    let mut replacement = if opening {
        surrounding.as_bytes().to_vec()
    } else {
        Vec::new()
    };
    replacement.extend(with_line_ends(new, end));
    Ok(Splice {
        range: offset..offset,
        replacement,
    })
}

fn length_of_bom(read: &mut ReadAt<'_>) -> Result<u64> {
    let mut head = [0; encoding::BOM.len()];
    let count = read(0, &mut head)?;
    Ok(if head.get(..count) == Some(encoding::BOM) {
        encoding::BOM.len() as u64
    } else {
        0
    })
}

/// The string with each `\n` written as this line end.
fn with_line_ends(text: &str, end: LineEnd) -> Vec<u8> {
    match end {
        LineEnd::Lf => text.as_bytes().to_vec(),
        LineEnd::CrLf => text.replace('\n', "\r\n").into_bytes(),
    }
}

/// What `\n` in the replacement becomes at this place.
fn place_line_end(
    read: &mut ReadAt<'_>,
    place: &Occurrence,
    old: &str,
    new: &str,
) -> Result<LineEnd> {
    if old.contains('\r') || new.contains('\r') || !new.contains('\n') {
        return Ok(LineEnd::Lf);
    }
    match place.line_end {
        Some(end) => Ok(end),
        None => Ok(lines::line_end_near(read, place.range.start)?.unwrap_or(LineEnd::Lf)),
    }
}

/// Where a string occurs, places that overlap counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How often it occurs.
    pub count: u64,
    /// The first [`PLACES`] of them.
    pub places: Vec<Occurrence>,
}

/// One place where a string occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Its bytes in the text.
    pub range: Range<u64>,
    /// The first line end inside it, if it has one.
    pub line_end: Option<LineEnd>,
}

/// Finds all places of a string in one pass, in windows; an empty string is refused.
pub fn occurrences(read: &mut ReadAt<'_>, wanted: &str) -> Result<Occurrences> {
    if wanted.is_empty() {
        return Err(Error::EmptySearchString);
    }
    let mut search = StringSearch::new(wanted.as_bytes());
    while search.fill(read)? > 0 {
        search.scan();
        search.carry();
    }
    Ok(search.found)
}

/// A window that moves over the text.
///
/// Where `\n` has to match `\r\n` too, the window holds the text without the `\r` of its line ends
/// (which keeps the search linear whatever the text), and remembers where they were.
struct StringSearch<'w> {
    finder: Finder<'w>,
    line_ends: LineEndMatch,
    window: Vec<u8>,
    filled: usize,
    /// Positions in the window of each `\n` that lost its `\r`, in order.
    shortened: Vec<usize>,
    /// Where in the text the window starts, and where the next read goes.
    base: u64,
    next: u64,
    /// Up to here in the window all places are found.
    scanned: usize,
    found: Occurrences,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEndMatch {
    Exact,
    Either,
}

impl<'w> StringSearch<'w> {
    fn new(wanted: &'w [u8]) -> StringSearch<'w> {
        let multiline = memchr(b'\n', wanted).is_some() && memchr(b'\r', wanted).is_none();
        StringSearch {
            finder: Finder::new(wanted),
            line_ends: if multiline {
                LineEndMatch::Either
            } else {
                LineEndMatch::Exact
            },
            window: vec![0; wanted.len().saturating_mul(2).max(WINDOW)],
            filled: 0,
            shortened: Vec::new(),
            base: 0,
            next: 0,
            scanned: 0,
            found: Occurrences::default(),
        }
    }

    fn wanted(&self) -> &[u8] {
        self.finder.needle()
    }

    fn fill(&mut self, read: &mut ReadAt<'_>) -> Result<usize> {
        let room = self.window.get_mut(self.filled..).unwrap_or(&mut []);
        let count = read(self.next, room)?;
        self.next += count as u64;
        let from = self.filled;
        self.filled += count;
        if self.line_ends == LineEndMatch::Either {
            self.shorten(from.saturating_sub(1));
        }
        Ok(count)
    }

    /// Drops the `\r` of each `\r\n` from here on; the byte before what is new may be such a `\r`.
    fn shorten(&mut self, from: usize) {
        let Some(fresh) = self.window.get_mut(from..self.filled) else {
            return;
        };
        let pairs = memchr_iter(b'\r', fresh).filter(|at| fresh.get(at + 1) == Some(&b'\n'));
        let pairs: Vec<usize> = pairs.collect();
        let (mut to, mut copied) = (pairs.first().copied().unwrap_or(fresh.len()), 0);
        for (index, pair) in pairs.iter().enumerate() {
            let end = pairs.get(index + 1).copied().unwrap_or(fresh.len());
            self.shortened.push(from + to);
            fresh.copy_within(pair + 1..end, to);
            to += end - pair - 1;
            copied += 1;
        }
        self.filled -= copied;
    }

    /// Where in the text a position of the window is; before the `\r` for a line end that lost it.
    fn offset(&self, position: usize) -> u64 {
        let lost = self.shortened.partition_point(|at| *at < position);
        self.base + (position + lost) as u64
    }

    fn scan(&mut self) {
        let window = self.window.get(..self.filled).unwrap_or(&[]);
        let length = self.wanted().len();
        while let Some(inside) = window.get(self.scanned..).and_then(|w| self.finder.find(w)) {
            let start = self.scanned + inside;
            self.scanned = start + length;
            self.found.count += 1;
            if self.found.places.len() < PLACES {
                let place = self.place(start, start + length);
                self.found.places.push(place);
            }
        }
    }

    fn place(&self, start: usize, end: usize) -> Occurrence {
        let newline = memchr(b'\n', self.wanted()).map(|inside| start + inside);
        let line_end = newline.map(|at| match self.shortened.binary_search(&at) {
            Ok(_) => LineEnd::CrLf,
            Err(_) => LineEnd::Lf,
        });
        Occurrence {
            range: self.offset(start)..self.offset(end),
            line_end,
        }
    }

    /// Keeps only the end of the window, where a place or a line end may have begun.
    fn carry(&mut self) {
        // One byte more than a place can have begun with: a `\r` at the end may still be dropped.
        let kept = self.wanted().len();
        let from = self.filled.saturating_sub(kept).max(self.scanned);
        self.base = self.offset(from);
        let gone = self.shortened.partition_point(|at| *at < from);
        self.shortened.drain(..gone);
        self.shortened.iter_mut().for_each(|at| *at -= from);
        self.window.copy_within(from..self.filled, 0);
        self.filled -= from;
        self.scanned = 0;
    }
}

/// The line numbers, from 1, of places in order.
fn line_numbers(read: &mut ReadAt<'_>, places: &[Occurrence]) -> Result<Vec<u64>> {
    let mut numbers = Vec::with_capacity(places.len());
    let mut places = places.iter().map(|place| place.range.start).peekable();
    let mut blocks = Blocks::new(read, 0, lines::BLOCK);
    let mut line = 1;
    while places.peek().is_some() {
        let Some((mut offset, mut block)) = blocks.next()? else {
            break;
        };
        let end = offset + block.len() as u64;
        while let Some(place) = places.next_if(|place| *place < end) {
            let inside = usize::try_from(place - offset).unwrap_or(0);
            let (before, after) = block.split_at_checked(inside).unwrap_or((block, &[]));
            line += lines::newlines(before);
            numbers.push(line);
            (offset, block) = (place, after);
        }
        line += lines::newlines(block);
    }
    Ok(numbers)
}

/// How much of a text, which lines of it and how much work a hint may take.
const HINT_BYTES: u64 = 8 * 1024 * 1024;
const HINT_LINE: usize = 400;
const HINT_CELLS: usize = 20_000_000;
/// Below this likeness a hint would mislead.
const HINT_LIKENESS: f64 = 0.6;
/// How much of a line is shown.
const HINT_SHOWN: usize = 300;

/// The line of the text that is most like the first line of `wanted` that is not blank.
///
/// Looks at a bounded part of a large text; gives nothing where no line is similar enough.
pub fn nearest_line(read: &mut ReadAt<'_>, wanted: &str) -> Result<Option<(u64, String)>> {
    let Some(mut hint) = Hint::new(wanted) else {
        return Ok(None);
    };
    let mut rest: Vec<u8> = Vec::new();
    let mut blocks = Blocks::new(read, 0, lines::BLOCK);
    while let Some((offset, block)) = blocks.next()? {
        rest.extend_from_slice(block);
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |newline| newline + 1);
        rest.get(..whole)
            .unwrap_or(&[])
            .split_inclusive(|b| *b == b'\n')
            .for_each(|l| hint.see(l));
        rest.drain(..whole);
        if hint.is_settled() || offset > HINT_BYTES {
            return Ok(hint.best());
        }
    }
    hint.see(&rest);
    Ok(hint.best())
}

struct Hint<'w> {
    wanted: &'w str,
    length: usize,
    bytes: [i32; 256],
    line: u64,
    likeness: f64,
    best: Option<(u64, String)>,
    cells: usize,
}

impl<'w> Hint<'w> {
    fn new(wanted: &'w str) -> Option<Hint<'w>> {
        let wanted = wanted
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())?;
        if wanted.len() > HINT_LINE {
            return None;
        }
        let mut bytes = [0; 256];
        wanted
            .bytes()
            .for_each(|byte| bytes[usize::from(byte)] += 1);
        let length = wanted.chars().count();
        Some(Hint {
            wanted,
            length,
            bytes,
            line: 0,
            likeness: 0.0,
            best: None,
            cells: HINT_CELLS,
        })
    }

    /// No better line can come, or no work is left.
    fn is_settled(&self) -> bool {
        self.likeness >= 1.0 || self.cells == 0
    }

    fn best(self) -> Option<(u64, String)> {
        self.best
    }

    fn see(&mut self, line: &[u8]) {
        self.line += 1;
        if self.is_settled() || line.len() > 2 * HINT_LINE {
            return;
        }
        let Some(text) = encoding::utf8(line).map(str::trim) else {
            return;
        };
        let likeness = self.likeness(text);
        if likeness >= HINT_LIKENESS && likeness > self.likeness {
            self.likeness = likeness;
            let shown = line.trim_ascii_end();
            self.best = Some((self.line, excerpt(shown, HINT_SHOWN)));
        }
    }

    fn likeness(&mut self, line: &str) -> f64 {
        if line == self.wanted {
            return 1.0;
        }
        if !self.may_be_better(line) {
            return 0.0;
        }
        self.cells = self.cells.saturating_sub(self.length * line.len());
        strsim::normalized_levenshtein(line, self.wanted)
    }

    /// A cheap bound on the likeness from which bytes the two lines have, before the expensive comparison.
    fn may_be_better(&self, line: &str) -> bool {
        let length = line.chars().count().max(self.length);
        let mut bytes = self.bytes;
        line.bytes().for_each(|byte| bytes[usize::from(byte)] -= 1);
        let more: i32 = bytes.iter().filter(|count| **count > 0).sum();
        let fewer: i32 = -bytes.iter().filter(|count| **count < 0).sum::<i32>();
        // A character has up to four bytes, and one edit changes one character.
        let least = f64::from(more.max(fewer))
            / if line.is_ascii() && self.wanted.is_ascii() {
                1.0
            } else {
                4.0
            };
        let bound = 1.0 - least / length as f64;
        bound >= HINT_LIKENESS && bound > self.likeness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;
    use proptest::prelude::*;

    fn replaced(text: &str, old: &str, new: &str) -> Result<String> {
        let splice = replace_unique("f", &mut reader(text.as_bytes()), old, new)?;
        Ok(String::from_utf8(splice.applied(text.as_bytes())).unwrap())
    }

    fn inserted(text: &str, line: i64, new: &str) -> Result<String> {
        let splice = insert_before("f", &mut reader(text.as_bytes()), line, new)?;
        Ok(String::from_utf8(splice.applied(text.as_bytes())).unwrap())
    }

    #[test]
    fn replacement_keeps_everything_else() {
        let table = [
            ("a b c", "b", "x", "a x c"),
            ("a b c", "b", "", "a  c"),
            ("a b c", "b", "$& \\1 $0", "a $& \\1 $0 c"),
            ("\u{feff}a\r\nb\nc", "b", "x", "\u{feff}a\r\nx\nc"),
            // Written with LF, found with CRLF.
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "\nb", "\nx\ny", "a\r\nx\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "\nb", "x", "ax\r\nc\r\n"),
            // One line becomes several, and gets the line ends around it.
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
            ("a\nb\n", "a", "x\ny", "x\ny\nb\n"),
            ("a\nb\r\nc\r\n", "a\nb", "x\ny", "x\ny\r\nc\r\n"),
            // Who writes a CR means it.
            ("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"),
            ("a\r\nb\r\n", "a", "x\r\ny", "x\r\ny\r\nb\r\n"),
            ("a\rb", "\r", "\n", "a\nb"),
        ];
        for (text, old, new, expected) in table {
            assert_eq!(
                replaced(text, old, new).unwrap(),
                expected,
                "{text:?} {old:?} {new:?}"
            );
        }
    }

    #[test]
    fn several_places_are_counted_and_named() {
        let Err(Error::StringNotUnique { count, lines, .. }) = replaced("aa\naa\n\naaa", "aa", "")
        else {
            panic!("not refused")
        };
        assert_eq!((count, lines), (3, vec![1, 2, 4]));
        let text = "x\r\n".repeat(50);
        let Err(Error::StringNotUnique { count, lines, .. }) = replaced(&text, "x\n", "") else {
            panic!("not refused")
        };
        assert_eq!((count, lines), (50, (1..=20).collect()));
        // Both line ends are meant.
        assert!(matches!(
            replaced("a\nb\n a\r\nb", "a\nb", ""),
            Err(Error::StringNotUnique { count: 2, .. })
        ));
    }

    #[test]
    fn an_empty_string_is_refused() {
        assert!(matches!(
            replaced("a", "", "b"),
            Err(Error::EmptySearchString)
        ));
    }

    #[test]
    fn a_missing_string_comes_with_the_nearest_line() {
        let text = "fn main() {\n    let total = count(items);\n    println!();\n}\n";
        let nearest = |old: &str| match replaced(text, old, "") {
            Err(Error::StringNotFound { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        let line = Some((2, "    let total = count(items);".to_owned()));
        assert_eq!(nearest("\n  let total = counts(item);\n"), line);
        assert_eq!(nearest("let total = count(items);\nelse\n"), line);
        assert_eq!(nearest("nothing of the kind at all"), None);
        assert_eq!(nearest("\n\n\n\n\n"), None);
    }

    #[test]
    fn a_hint_costs_a_bounded_amount() {
        let text = "lorem ipsum dolor sit amet consectetur\n".repeat(100_000);
        let found = nearest_line(&mut reader(text.as_bytes()), &"lorem ipsum ".repeat(10)).unwrap();
        assert_eq!(found, None);
        let one_line = "x".repeat(20_000_000);
        let mut read = reader(one_line.as_bytes());
        assert_eq!(nearest_line(&mut read, "xxxx").unwrap(), None);
    }

    #[test]
    fn insertion_follows_the_lines() {
        let table = [
            ("a\nb\n", 1, "x\n", "x\na\nb\n"),
            ("a\nb\n", 2, "x\n", "a\nx\nb\n"),
            ("a\nb\n", 2, "x", "a\nxb\n"),
            ("a\nb\n", 3, "x\n", "a\nb\nx\n"),
            ("a\nb", 3, "x", "a\nb\nx"),
            ("a\r\nb", 3, "x\ny", "a\r\nb\r\nx\r\ny"),
            ("a", 2, "x\n", "a\nx\n"),
            ("", 1, "x\n", "x\n"),
            ("a\r\nb\r\n", 2, "x\n", "a\r\nx\r\nb\r\n"),
            ("a\r\nb\r\n", 1, "x\n", "x\r\na\r\nb\r\n"),
            ("a\r\nb\r\n", 2, "x\r\ny\n", "a\r\nx\r\ny\nb\r\n"),
            ("\u{feff}a\n", 1, "x\n", "\u{feff}x\na\n"),
        ];
        for (text, line, new, expected) in table {
            assert_eq!(
                inserted(text, line, new).unwrap(),
                expected,
                "{text:?} {line} {new:?}"
            );
        }
    }

    #[test]
    fn lines_out_of_range_name_the_largest() {
        for (text, line, most) in [
            ("", 2, 1),
            ("a", 3, 2),
            ("a\n", 3, 2),
            ("a\n", 0, 2),
            ("a\n", -1, 2),
            ("", i64::MAX, 1),
        ] {
            let Err(Error::LineOutOfRange { max, .. }) = inserted(text, line, "x") else {
                panic!("{text:?} {line}")
            };
            assert_eq!(max, most, "{text:?} {line}");
        }
    }

    #[test]
    fn places_across_windows_are_found() {
        for gap in [WINDOW - 3, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1] {
            let text = format!(
                "{}a\r\nb{}a\r\nb",
                "x".repeat(gap),
                "\r\n".repeat(WINDOW / 2)
            );
            let found = occurrences(&mut reader(text.as_bytes()), "a\nb").unwrap();
            let at = |start: usize| Occurrence {
                range: start as u64..start as u64 + 4,
                line_end: Some(LineEnd::CrLf),
            };
            assert_eq!(found.places, [at(gap), at(text.len() - 4)], "{gap}");
        }
    }

    /// Reads at most a few bytes at a time, as a text in small windows would.
    fn trickle(text: &[u8], step: usize) -> impl FnMut(u64, &mut [u8]) -> Result<usize> + '_ {
        let mut read = reader(text);
        move |offset, buffer| {
            let room = buffer.len().min(step);
            read(offset, &mut buffer[..room])
        }
    }

    proptest! {
        #[test]
        fn counting_agrees_with_the_standard_library(
            text in "[ab\\n\\r]{0,40}", old in "[ab\\n]{1,4}", step in 1usize..7,
        ) {
            let found = occurrences(&mut trickle(text.as_bytes(), step), &old).unwrap();
            let plain = if old.contains('\n') { text.replace("\r\n", "\n") } else { text.clone() };
            prop_assert_eq!(found.count, plain.matches(&old).count() as u64);
            for place in &found.places {
                let piece = &text[place.range.start as usize..place.range.end as usize];
                let same = piece == old || piece.replace("\r\n", "\n") == old;
                prop_assert!(same, "{:?}", piece);
            }
            let lines = line_numbers(&mut trickle(text.as_bytes(), step), &found.places).unwrap();
            for (place, line) in found.places.iter().zip(lines) {
                let before = &text[..place.range.start as usize];
                prop_assert_eq!(line, before.matches('\n').count() as u64 + 1);
            }
        }

        #[test]
        fn an_exact_replacement_is_what_the_standard_library_does(
            text in "[abc\\n]{0,20}", old in "[abc\\n]{1,3}", new in "[abc\\n$]{0,3}",
        ) {
            match replaced(&text, &old, &new) {
                Ok(result) => prop_assert_eq!(result, text.replace(&old, &new)),
                Err(Error::StringNotFound { .. }) => prop_assert!(!text.contains(&old)),
                Err(Error::StringNotUnique { count, .. }) => prop_assert!(count > 1),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }

        #[test]
        fn edits_of_arbitrary_text_never_panic(text in ".{0,30}", old in ".{0,6}", line: i64) {
            let _ = replaced(&text, &old, "x\n");
            let _ = inserted(&text, line, "x\n");
        }
    }
}
