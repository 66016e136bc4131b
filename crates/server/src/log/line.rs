//! One log line: an event's fields as JSON or as text.
//!
//! A line is `timestamp, level, message` and then the event's own fields, flat. Values are cut at a few kilobytes and
//! control characters are escaped, so that no file name can forge a line.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};

use crate::settings::LogFormat;

/// The most bytes of one value that a line shows.
pub(super) const MAX_VALUE: usize = 4096;

/// One event's fields.
#[derive(Debug, Default)]
pub(super) struct LogLine {
    message: String,
    fields: Vec<(&'static str, serde_json::Value)>,
}

impl LogLine {
    /// A line that no event gave.
    pub(super) fn new(message: &str) -> LogLine {
        LogLine {
            message: message.to_owned(),
            fields: Vec::new(),
        }
    }

    /// Adds a field.
    pub(super) fn push(&mut self, name: &'static str, value: serde_json::Value) {
        self.fields.push((name, value));
    }

    /// Writes the line, with its end.
    pub(super) fn render(&self, format: LogFormat, level: tracing::Level) -> Vec<u8> {
        let now = format!("{:.3}", jiff::Timestamp::now());
        let mut line = match format {
            LogFormat::Json => self.json(&now, level),
            LogFormat::Text => self.text(&now, level),
        };
        if !line.is_ascii() {
            line = visible(&line);
        }
        line.push('\n');
        line.into_bytes()
    }

    fn json(&self, now: &str, level: tracing::Level) -> String {
        let message = serde_json::Value::from(self.message.as_str());
        let mut line = format!(r#"{{"timestamp":"{now}","level":"{level}","message":{message}"#);
        for (name, value) in &self.fields {
            let _ = write!(line, r#","{name}":{value}"#);
        }
        line.push('}');
        line
    }

    fn text(&self, now: &str, level: tracing::Level) -> String {
        let message: String = self.message.chars().map(printable).collect();
        let mut line = format!("{now} {level:>5} {message}");
        for (name, value) in &self.fields {
            let _ = write!(line, " {name}={value}");
        }
        line
    }
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
        self.record_text(field, text.0);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut text = Capped::default();
        let _ = text.write_str(value);
        self.record_text(field, text.0);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), value.into());
    }
}

impl LogLine {
    fn record_text(&mut self, field: &Field, text: String) {
        if field.name() == "message" {
            self.message = text;
        } else {
            self.push(field.name(), text.into());
        }
    }
}

/// Text that stops growing: a huge value costs no more than what is shown of it.
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
