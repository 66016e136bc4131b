//! Text in its JSON-escaped form.
//!
//! The content of a file is most of a reply and stands in both of its halves. So it is escaped once and then copied.

use serde::{Serialize, Serializer};

use crate::json::{escape, escape_bytes};
use crate::streamed_content::StreamedContent;
use crate::text_form::bracketed;

/// How a line ends inside of a JSON string, and what is between a line and its number.
const LINE_END: &[u8] = br"\n";
const TAB: &str = r"\t";
/// The fewest bytes that most lines have, to guess how many there are.
const SHORT_LINE: usize = 32;

/// A text as the inside of a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonText(Vec<u8>);

impl JsonText {
    /// JSON as text.
    pub(crate) fn of_json(json: &[u8]) -> JsonText {
        let mut text = Vec::with_capacity(with_escapes(json.len()));
        escape_bytes(json, &mut text, |_, _| {});
        JsonText(text)
    }

    /// A mark for content that is still in its file.
    fn streamed() -> JsonText {
        JsonText(vec![StreamedContent::MARK])
    }

    /// Takes the bytes away.
    pub(crate) fn json_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// The bytes between the quotes.
    #[must_use]
    pub fn as_json(&self) -> &[u8] {
        &self.0
    }

    /// The text itself.
    #[must_use]
    pub fn decoded(&self) -> String {
        let quoted = [b"\"", self.as_json(), b"\""].concat();
        // Our own escapes can always be decoded.
        serde_json::from_slice(&quoted).unwrap_or_default()
    }

    /// Adds a text.
    pub(crate) fn push(&mut self, text: &str) {
        escape(text, &mut self.0);
    }

    /// Adds another.
    pub(crate) fn append(&mut self, other: &JsonText) {
        self.0.extend_from_slice(&other.0);
    }

    /// Adds a remark as the last line, if there is one.
    pub(crate) fn note(&mut self, notes: &[&str]) {
        if !notes.is_empty() {
            self.end_line();
            self.push(&bracketed(notes));
        }
    }

    /// Adds a remark to the last line if that is in square brackets, otherwise as a new line.
    pub(crate) fn add_note(&mut self, note: &str) {
        let text = self.decoded();
        let last = text.rsplit('\n').next().unwrap_or_default();
        if last.starts_with('[') && last.ends_with(']') {
            self.0.pop();
            self.push(&format!("; {note}]"));
        } else {
            self.note(&[note]);
        }
    }

    /// Adds a line and ends it. An unfinished line is ended first.
    pub(crate) fn push_line(&mut self, line: &JsonText) {
        self.end_line();
        self.append(line);
        self.0.extend_from_slice(LINE_END);
    }

    /// Ends the last line, if there is one and it has no end.
    fn end_line(&mut self) {
        if !self.0.is_empty() && !self.ends_line() {
            self.0.extend_from_slice(LINE_END);
        }
    }

    /// Removes the end of the last line; returns whether there was one.
    pub(crate) fn pop_line_end(&mut self) -> bool {
        let ends_line = self.ends_line();
        if ends_line {
            self.0.truncate(self.0.len() - LINE_END.len());
        }
        ends_line
    }

    /// Whether it ends with a line end. In `\\n` the backslash is escaped, and the `n` is a letter.
    fn ends_line(&self) -> bool {
        let before = self.0.strip_suffix(b"n").unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        backslashes.count() % 2 == 1
    }
}

impl From<&str> for JsonText {
    fn from(text: &str) -> JsonText {
        let mut json = JsonText(Vec::with_capacity(with_escapes(text.len())));
        json.push(text);
        json
    }
}

impl From<String> for JsonText {
    fn from(text: String) -> JsonText {
        JsonText::from(text.as_str())
    }
}

/// The content of a file as the inside of a JSON string, with its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JsonContent {
    text: JsonText,
    /// Where in it lines end.
    line_ends: Vec<usize>,
}

impl JsonContent {
    /// Bytes that are not text. Base64 has nothing to escape and no lines.
    pub(crate) fn of_base64(base64: String) -> JsonContent {
        JsonContent {
            text: JsonText(base64.into_bytes()),
            line_ends: Vec::new(),
        }
    }

    /// Content that is still in its file.
    pub(crate) fn streamed() -> JsonContent {
        JsonContent {
            text: JsonText::streamed(),
            line_ends: Vec::new(),
        }
    }

    /// The content as it is.
    pub(crate) fn text(&self) -> &JsonText {
        &self.text
    }

    /// The content with a number and a tab before each line. The numbers are not padded: blanks cost a model tokens.
    pub(crate) fn numbered(&self, first: u64) -> JsonText {
        let content = self.text.as_json();
        let is_open = self.line_ends.last().copied().unwrap_or_default() < content.len();
        let lines = self.line_ends.len() + usize::from(is_open);
        let mut number = LineNumber::new(first);
        let widest = LineNumber::new(first.saturating_add(lines as u64));
        let numbers = lines.saturating_mul(widest.as_json().len());
        let room = content.len().saturating_add(numbers);
        let mut numbered = Vec::with_capacity(room);
        let mut start = 0;
        for &end in self
            .line_ends
            .iter()
            .chain(is_open.then_some(&content.len()))
        {
            numbered.extend_from_slice(number.as_json());
            numbered.extend_from_slice(content.get(start..end).unwrap_or_default());
            number.advance();
            start = end;
        }
        JsonText(numbered)
    }
}

impl From<String> for JsonContent {
    fn from(text: String) -> JsonContent {
        let mut json = Vec::with_capacity(with_escapes(text.len()));
        let mut line_ends = Vec::with_capacity(text.len() / SHORT_LINE);
        escape_bytes(text.as_bytes(), &mut json, |byte, end| {
            if byte == b'\n' {
                line_ends.push(end);
            }
        });
        JsonContent {
            text: JsonText(json),
            line_ends,
        }
    }
}

impl Serialize for JsonContent {
    /// As bytes, which our writer takes as an already escaped string.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.text.as_json())
    }
}

/// The capacity for a text of this many bytes with a usual number of escapes.
fn with_escapes(length: usize) -> usize {
    length.saturating_add(length / 16)
}

/// A line number with a tab behind it, counted up in place: formatting each number costs more than copying its line.
struct LineNumber(Vec<u8>);

impl LineNumber {
    fn new(number: u64) -> LineNumber {
        LineNumber(format!("{number}{TAB}").into_bytes())
    }

    fn as_json(&self) -> &[u8] {
        &self.0
    }

    fn advance(&mut self) {
        for digit in self.0.iter_mut().rev().skip(TAB.len()) {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.0.insert(0, b'1');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(text: &str, first: u64) -> String {
        JsonContent::from(text.to_owned()).numbered(first).decoded()
    }

    #[test]
    fn numbers_are_not_padded() {
        assert_eq!(numbered("a\nb", 1), "1\ta\n2\tb");
        assert_eq!(numbered("", 1), "");
        assert_eq!(numbered("\n", 99), "99\t\n");
        assert_eq!(numbered("a\r\nñ\n", 999_999), "999999\ta\r\n1000000\tñ\n");
    }

    #[test]
    fn a_line_end_is_told_from_a_backslash_and_a_letter() {
        for (text, ends_line) in [
            ("", false),
            ("n", false),
            ("\n", true),
            ("\\n", false),
            ("\\\n", true),
            ("\\\\n", false),
            ("a\n\n", true),
        ] {
            assert_eq!(JsonText::from(text).ends_line(), ends_line, "{text:?}");
        }
    }

    #[test]
    fn lines_are_ended_once() {
        let mut text = JsonText::default();
        text.push_line(&"a".into());
        text.push("b\\n");
        text.push_line(&"\"c\"".into());
        assert!(text.pop_line_end());
        assert!(!text.pop_line_end());
        assert_eq!(text.decoded(), "a\nb\\n\n\"c\"");
    }

    #[test]
    fn notes_come_last_in_one_line() {
        let mut text = JsonText::from("1\tx");
        text.note(&[]);
        assert_eq!(text.decoded(), "1\tx");
        text.note(&["cut", "more follow"]);
        assert_eq!(text.decoded(), "1\tx\n[cut; more follow]");
        text.add_note("undo: a");
        assert_eq!(text.decoded(), "1\tx\n[cut; more follow; undo: a]");
        let mut text = JsonText::from("wrote [x]");
        text.add_note("undo: a");
        assert_eq!(text.decoded(), "wrote [x]\n[undo: a]");
    }

    proptest! {
        #[test]
        fn numbering_escaped_lines_is_escaping_numbered_ones(text in "[a-z\\n\\r\\t\"\\\\é]{0,200}", first in 0u64..2_000_000) {
            let lines = text.split_inclusive('\n').zip(first..);
            let expected: String = lines.map(|(line, number)| format!("{number}\t{line}")).collect();
            prop_assert_eq!(numbered(&text, first), expected);
            prop_assert_eq!(JsonContent::from(text.clone()).text().decoded(), text);
        }
    }
}
