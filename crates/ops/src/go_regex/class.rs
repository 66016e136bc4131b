//! Classes in brackets. Go reads everything in them as characters, ranges and named classes; the engine also knows sets
//! in sets and operators between them (`[[a-z]&&[^b]]`), so each item is written in a way that leaves no doubt.

use std::fmt::Write;

use super::NOTHING;
use super::escape::{read_character, read_class};

/// The classes that have names, such as `[:alpha:]`.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Translates the class that a text begins with, and tells how long it is. With `extended`, white space in it is left out.
pub(super) fn translate(text: &str, extended: bool) -> Result<(String, usize), String> {
    let mut class = ClassReader {
        text,
        rest: text.strip_prefix('[').unwrap_or(text),
        written: String::from("["),
        extended,
    };
    if let Some(rest) = class.rest.strip_prefix('^') {
        class.rest = rest;
        class.written.push('^');
    }
    let mut first = true;
    while first || !class.rest.starts_with(']') {
        class.item()?;
        first = false;
    }
    class.written.push(']');
    Ok((class.written, text.len() - class.rest.len() + 1))
}

struct ClassReader<'text> {
    text: &'text str,
    rest: &'text str,
    written: String,
    extended: bool,
}

impl ClassReader<'_> {
    /// Translates one item: a named class, a character or a range.
    fn item(&mut self) -> Result<(), String> {
        if self.extended && self.rest.starts_with(char::is_whitespace) {
            self.rest = self.rest.trim_start();
            return Ok(());
        }
        if self.named_class()? {
            return Ok(());
        }
        if self.rest.starts_with('\\')
            && let Some((class, length)) = read_class(self.rest)?
        {
            self.written.push_str(&class);
            self.advance(length);
            return Ok(());
        }
        self.range()
    }

    fn advance(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// Reads `[:alpha:]` or `[:^alpha:]`; without `:]` behind it `[` is a character.
    fn named_class(&mut self) -> Result<bool, String> {
        let Some((name, _)) = self
            .rest
            .strip_prefix("[:")
            .and_then(|inner| inner.split_once(":]"))
        else {
            return Ok(false);
        };
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!(
                "there is no class [:{name}:]; the names are {}",
                NAMES.join(", ")
            ));
        }
        let _ = write!(self.written, "[:{name}:]");
        self.advance(name.len() + 4);
        Ok(true)
    }

    fn range(&mut self) -> Result<(), String> {
        let start = self.rest;
        let low = self.character()?;
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        let high = if is_range && self.rest.len() > 1 {
            self.advance(1);
            self.character()?
        } else {
            low
        };
        if high < low {
            let shown = start.get(..start.len() - self.rest.len()).unwrap_or(start);
            return Err(format!(
                "invalid range {shown}: it ends before it begins; put - first or last if the character itself is meant"
            ));
        }
        self.write_range(low, high);
        Ok(())
    }

    /// Writes a range without the surrogates, which are in no text and which the engine refuses.
    fn write_range(&mut self, low: u32, high: u32) {
        let below = (low, high.min(0xD7FF));
        let above = (low.max(0xE000), high);
        for (low, high) in [below, above] {
            if low <= high {
                let _ = write!(self.written, "\\x{{{low:X}}}-\\x{{{high:X}}}");
            }
        }
        if below.0 > below.1 && above.0 > above.1 {
            self.written.push_str(NOTHING);
        }
    }

    fn character(&mut self) -> Result<u32, String> {
        let Some(character) = self.rest.chars().next() else {
            return Err(format!(
                "missing closing ] of {}: escape it as \\[ if the character itself is meant",
                sandbox::truncated(self.text, 40)
            ));
        };
        let (code_point, length) = match character {
            '\\' => read_character(self.rest)?,
            other => (u32::from(other), other.len_utf8()),
        };
        self.advance(length);
        Ok(code_point)
    }
}
