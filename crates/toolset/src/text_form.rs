//! The text half of replies: words and rules that every tool uses.
//!
//! A model reads it. So it is short: no key is repeated, nothing is padded, times are to the second. A name cannot
//! forge a line. Anything unusual comes last, in one line in square brackets that says what to do next.

use std::borrow::{Borrow, Cow};
use std::fmt::{Display, Write as _};

use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;

/// Builds the text half of a reply line by line.
#[derive(Debug, Default)]
pub(crate) struct TextLines {
    text: String,
    notes: Vec<String>,
}

/// How many bytes a line of a list has, about.
const LINE_OF_LIST: usize = 32;

impl TextLines {
    /// No lines yet, and room for a list: a text that grows leaves smaller pieces of memory behind.
    pub(crate) fn of_list(entries: usize) -> TextLines {
        TextLines {
            text: String::with_capacity(entries.saturating_mul(LINE_OF_LIST)),
            notes: Vec::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: impl Display) -> &mut TextLines {
        self.end_line();
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "{line}");
        self
    }

    /// Adds a line `key: value`, if there is a value.
    pub(crate) fn fact(&mut self, key: &str, value: Option<impl Display>) -> &mut TextLines {
        if let Some(value) = value {
            self.line(format_args!("{key}: {value}"));
        }
        self
    }

    /// Whether nothing was added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds a remark for the last line.
    pub(crate) fn note(&mut self, note: impl Into<String>) -> &mut TextLines {
        self.notes.push(note.into());
        self
    }

    /// The whole text. It has no newline at its end unless its content has one.
    pub(crate) fn finish(mut self) -> String {
        if self.notes.is_empty() {
            if self.text.ends_with('\n') {
                self.text.pop();
            }
            return self.text;
        }
        self.end_line();
        self.text.push_str(&bracketed(&self.notes));
        self.text
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// The last line of a text with remarks.
pub(crate) fn bracketed<Note: Borrow<str>>(notes: &[Note]) -> String {
    format!("[{}]", notes.join("; "))
}

/// A name or path as a line shows it. One that could be taken for something else, such as one with a line end, is quoted
/// and has escapes.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    let misleads = has_unshowable(name)
        || name.starts_with(['"', ' '])
        || name.starts_with("==> ")
        || (name.starts_with('[') && name.ends_with(']'));
    if !misleads {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::with_capacity(name.len() + 8);
    quoted.push('"');
    for c in name.chars() {
        if is_unshowable(c) || matches!(c, '"' | '\\') {
            quoted.extend(c.escape_default());
        } else {
            quoted.push(c);
        }
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// A name in a list whose form another server defines. It is quoted only if it would not stay in its line.
pub(crate) fn in_one_line(name: &str) -> Cow<'_, str> {
    if has_unshowable(name) {
        shown(name)
    } else {
        Cow::Borrowed(name)
    }
}

/// Whether a name has a character that a line does not show as it is. Most names are plain ASCII and are not decoded.
fn has_unshowable(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    !name.bytes().all(is_plain) && name.chars().any(is_unshowable)
}

/// Whether a character ends a line, moves the cursor or changes the direction of text.
pub(crate) fn is_unshowable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A directory as a line shows it: its path ends in a slash.
pub(crate) fn shown_directory(path: &str) -> String {
    format!("{}/", shown(path.trim_end_matches('/')))
}

/// The text for bytes that a model cannot read: their size, and where they are in the reply.
pub(crate) fn binary(path: &str, size: u64, base64: &JsonText, replies: ReplyHalves) -> JsonText {
    let mut text = JsonText::from(shown(path).as_ref());
    text.push(": binary, ");
    text.push(&counted(size, "byte", "bytes"));
    if replies.structured() {
        text.push("; structuredContent has it as base64");
    } else {
        text.push(", as base64:\n");
        text.append(base64);
    }
    text
}

/// A time in ISO 8601, without fractions of its second.
pub(crate) fn to_the_second(iso: &str) -> String {
    match iso.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => iso.to_owned(),
    }
}

/// A number of things: `1 file`, `3 files`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{number} {word}")
}

/// A size in the largest of these units, each 1,024 times the one before, that leaves at least one; `None` below the first.
pub(crate) fn in_units(bytes: u64, units: [&'static str; 4]) -> Option<(f64, &'static str)> {
    let mut size = bytes as f64;
    let mut unit = None;
    for larger in units {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = Some(larger);
    }
    unit.map(|unit| (size, unit))
}

/// A size as people write it, with `gap` before the unit: `500B`, `5.2MB`, `1 MB`.
pub(crate) fn human_size(bytes: u64, gap: &str) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1024 {
        return format!("{bytes}{gap}B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    let text = format!("{size:.1}");
    format!("{}{gap}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notes_come_last_in_one_line() {
        let mut lines = TextLines::default();
        lines.note("more follow").note("2 files were not read");
        lines
            .line("a")
            .fact("size", Some(3))
            .fact("link", None::<&str>);
        assert_eq!(
            lines.finish(),
            "a\nsize: 3\n[more follow; 2 files were not read]"
        );
    }

    #[test]
    fn misleading_names_are_quoted() {
        for (name, text) in [
            ("a b.txt", "a b.txt"),
            ("[id].tsx", "[id].tsx"),
            ("back\\slash", "back\\slash"),
            ("x\ny", "\"x\\ny\""),
            ("[100 matches]", "\"[100 matches]\""),
            ("\"", "\"\\\"\""),
            (" indented", "\" indented\""),
            ("\u{202e}gpj", "\"\\u{202e}gpj\""),
        ] {
            assert_eq!(shown(name), text);
        }
    }

    #[test]
    fn times_lose_their_fractions() {
        assert_eq!(
            to_the_second("2024-04-10T15:30:00.5Z"),
            "2024-04-10T15:30:00Z"
        );
        assert_eq!(
            to_the_second("2024-04-10T15:30:00Z"),
            "2024-04-10T15:30:00Z"
        );
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (5_452_595, "5.2MB"),
            (1 << 20, "1MB"),
            ((1 << 20) - 1, "1MB"),
            (u64::MAX, "16384PB"),
        ] {
            assert_eq!(human_size(bytes, ""), text);
        }
        assert_eq!(human_size(12_288, " "), "12 KB");
    }

    proptest! {
        #[test]
        fn no_name_forges_a_line(name in any::<String>()) {
            let shown = shown(&name);
            prop_assert!(!shown.chars().any(is_unshowable));
            prop_assert_eq!(shown == name, !shown.starts_with('"'));
        }
    }
}
