//! One log line: an event's fields as JSON or as text.
//!
//! A line is `timestamp, level, message` and then the event's own fields, flat. Values are cut at a few kilobytes and
//! control characters are escaped, so that no file name can forge a line.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::IsTerminal;

use serde::Serialize;
use toolset::escape;
use tracing::field::{Field, Visit};

use crate::settings::LogFormat;

/// The most bytes of one value that a line shows.
pub(super) const MAX_VALUE: usize = 4096;
/// Roughly how many bytes the fields of a call take.
const USUAL_SIZE: usize = 512;

/// The bytes of a line besides its message and its fields: time, level and punctuation.
const MOST_BEFORE_MESSAGE: usize = 80;

/// The field whose text is a JSON list and is shown as one, because an event has no lists.
const LIST: &str = "paths";
/// The field whose bytes are a JSON object already.
const OBJECT: &str = "arguments";
/// The longest such list; a longer one is shown as text and cut.
const MAX_LIST: usize = 64 * 1024;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// One JSON object.
    Json,
    /// For people.
    Text,
}

impl LineFormat {
    /// The format of the log on standard error.
    pub(crate) fn of_standard_error(format: LogFormat) -> LineFormat {
        match format {
            LogFormat::Json => LineFormat::Json,
            LogFormat::Text => LineFormat::Text,
            LogFormat::Auto if std::io::stderr().is_terminal() => LineFormat::Text,
            LogFormat::Auto => LineFormat::Json,
        }
    }
}

/// One event's fields, written as they arrive: a line costs no more than its bytes.
#[derive(Debug)]
pub(super) struct LogLine {
    format: LineFormat,
    message: String,
    fields: Vec<u8>,
}

impl LogLine {
    /// A line without fields.
    pub(super) fn new(format: LineFormat, message: &str) -> LogLine {
        LogLine {
            format,
            message: message.to_owned(),
            fields: Vec::with_capacity(USUAL_SIZE),
        }
    }

    /// Adds a field that is not text.
    pub(super) fn push(&mut self, name: &'static str, value: impl Serialize) {
        self.name(name);
        // Every number has a form in JSON.
        let _ = serde_json::to_writer(&mut self.fields, &value);
    }

    fn push_text(&mut self, name: &'static str, text: &str) {
        self.name(name);
        push_quoted(text, &mut self.fields);
    }

    fn name(&mut self, name: &'static str) {
        let (before, behind): (&[u8], &[u8]) = match self.format {
            LineFormat::Json => (b",\"", b"\":"),
            LineFormat::Text => (b" ", b"="),
        };
        for part in [before, name.as_bytes(), behind] {
            self.fields.extend_from_slice(part);
        }
    }

    /// Writes the line, with its end.
    pub(super) fn render(&self, level: tracing::Level) -> Vec<u8> {
        let now = jiff::Timestamp::now();
        let mut line = match self.format {
            LineFormat::Json => self.json(now, level),
            LineFormat::Text => self.text(now, level),
        };
        if !line.is_ascii() {
            line = visible(&String::from_utf8_lossy(&line)).into_bytes();
        }
        line.push(b'\n');
        line
    }

    fn json(&self, now: jiff::Timestamp, level: tracing::Level) -> Vec<u8> {
        let room = MOST_BEFORE_MESSAGE + self.message.len() + self.fields.len();
        let mut line = Vec::with_capacity(room);
        line.extend_from_slice(br#"{"timestamp":""#);
        push_time(now, &mut line);
        line.extend_from_slice(br#"","level":""#);
        line.extend_from_slice(level.as_str().as_bytes());
        line.extend_from_slice(br#"","message":"#);
        push_quoted(&self.message, &mut line);
        line.extend_from_slice(&self.fields);
        line.push(b'}');
        line
    }

    fn text(&self, now: jiff::Timestamp, level: tracing::Level) -> Vec<u8> {
        let message: String = self.message.chars().map(printable).collect();
        let mut line = format!("{now:.3} {level:>5} {message}").into_bytes();
        line.extend_from_slice(&self.fields);
        line
    }
}

thread_local! {
    /// The last second that was written, and how.
    static LAST_SECOND: Cell<Option<(i64, SecondText)>> = const { Cell::new(None) };
}

/// A second as `2026-07-28T12:00:00`.
type SecondText = [u8; 19];

/// Writes a time with milliseconds. The text of its second is kept, because a busy log has thousands of lines in one.
fn push_time(now: jiff::Timestamp, line: &mut Vec<u8>) {
    let all = now.as_millisecond();
    let (second, milliseconds) = (all.div_euclid(1000), all.rem_euclid(1000));
    let last = LAST_SECOND.get().filter(|(last, _)| *last == second);
    let text = last.map_or_else(|| second_text(now), |(_, text)| text);
    LAST_SECOND.set(Some((second, text)));
    line.extend_from_slice(&text);
    let digit = |unit: i64| b'0' + (milliseconds / unit % 10) as u8;
    line.extend_from_slice(&[b'.', digit(100), digit(10), digit(1), b'Z']);
}

fn second_text(now: jiff::Timestamp) -> SecondText {
    let text = now.to_string();
    // No clock shows a year before 0.
    text.as_bytes()
        .first_chunk()
        .copied()
        .unwrap_or(*b"0000-01-01T00:00:00")
}

fn push_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(text, out);
    out.push(b'"');
}

/// Escapes what steers a terminal, ends a line for some readers or reverses text; JSON leaves these characters alone.
fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

fn printable(character: char) -> char {
    if character.is_control() {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = Capped::default();
        // An error only means that the value is longer than what is shown.
        let _ = write!(text, "{value:?}");
        if field.name() == "message" {
            self.message = text.0;
        } else {
            self.push_text(field.name(), &text.0);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == LIST
            && value.len() <= MAX_LIST
            && let Ok(list) = serde_json::from_str::<Vec<String>>(value)
        {
            return self.push(field.name(), list);
        }
        if value.len() <= MAX_VALUE {
            return self.record_text(field, value);
        }
        let mut text = Capped::default();
        let _ = text.write_str(value);
        self.record_text(field, &text.0);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        if field.name() == OBJECT && self.format == LineFormat::Json {
            self.name(field.name());
            return self.fields.extend_from_slice(value);
        }
        self.record_str(field, &String::from_utf8_lossy(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), value);
    }
}

impl LogLine {
    fn record_text(&mut self, field: &Field, text: &str) {
        if field.name() == "message" {
            text.clone_into(&mut self.message);
        } else {
            self.push_text(field.name(), text);
        }
    }
}

/// Text that stops growing, so that a huge value costs no more than its shown part.
#[derive(Debug, Default)]
struct Capped(String);

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_VALUE.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        self.0.push_str(text.get(..end).unwrap_or_default());
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_elsewhere() {
        let moments = [
            1_785_240_000_000,
            1_785_240_000_007,
            1_785_240_000_999,
            1_785_240_001_000,
            1_785_240_000_050,
            -1,
        ];
        for milliseconds in moments {
            let moment = jiff::Timestamp::from_millisecond(milliseconds).unwrap();
            let mut line = Vec::new();
            push_time(moment, &mut line);
            assert_eq!(String::from_utf8(line).unwrap(), format!("{moment:.3}"));
        }
    }
}
