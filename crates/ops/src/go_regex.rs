//! Reads Go's regular expressions and writes them in the syntax of the engine used here.
//!
//! Clients are promised Go's expressions. Most texts mean the same to both engines; this file translates the rest, and
//! refuses what Go refuses. Syntax that only the engine has (`\u{2713}`, `(?x)`, `\p{Alphabetic}`) is still accepted,
//! because Go gives it no other meaning. The result is at most about thirty times as long as the pattern, whose length
//! is bounded before.

mod class;
mod escape;

use std::fmt::Write;

use escape::Escape;

/// Go's `\w` in the engine's syntax: ASCII digits and letters, and `_`.
const WORD: &str = "0-9A-Za-z_";
/// A class without characters.
const NOTHING: &str = "[^\\x{0}-\\x{10FFFF}]";
/// The most that a counted repetition may ask for, in Go.
const REPEAT_MAX: u32 = 1000;

/// Translates an expression; the error says which piece is wrong and what to write.
pub(crate) fn translate(text: &str) -> Result<String, String> {
    let mut translation = Translation::new(text);
    while let Some(character) = translation.rest.chars().next() {
        translation.step(character)?;
    }
    translation.finish()
}

/// The state of a translation.
struct Translation<'text> {
    /// The rest of the pattern.
    rest: &'text str,
    written: String,
    /// The end of the last item that a repetition can follow; `None` at the start of a group or branch.
    repeatable: Option<usize>,
    /// The repetition just read, if the last item was one.
    repetition: Option<&'text str>,
    /// For each open group, whether white space counted outside it.
    groups: Vec<bool>,
    /// Whether white space and comments are left out: the flag `x`.
    extended: bool,
}

impl<'text> Translation<'text> {
    fn new(text: &'text str) -> Translation<'text> {
        Translation {
            rest: text,
            written: String::with_capacity(text.len() + 16),
            repeatable: None,
            repetition: None,
            groups: Vec::new(),
            extended: false,
        }
    }

    fn finish(self) -> Result<String, String> {
        if self.groups.is_empty() {
            Ok(self.written)
        } else {
            Err("missing closing ): escape it as \\( if the character itself is meant".to_owned())
        }
    }

    /// Translates what begins with this character.
    fn step(&mut self, character: char) -> Result<(), String> {
        let before = self.repetition.take();
        match character {
            '(' => self.open_group(),
            ')' => self.close_group(),
            '|' => self.branch(),
            '^' | '$' | '.' => self.operator(character),
            '[' => self.class(),
            '*' | '+' | '?' => self.repeat(1, before),
            '{' => self.brace(before),
            '\\' => self.escaped(),
            ' ' | '\t'..='\r' | '#' if self.extended => self.skip_blank(character),
            literal => {
                self.advance(literal.len_utf8());
                self.literal(literal);
                Ok(())
            }
        }
    }

    /// Takes the next bytes, which end at a character's end.
    fn advance(&mut self, bytes: usize) -> &'text str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn literal(&mut self, character: char) {
        if regex_syntax::is_meta_character(character) {
            self.written.push('\\');
        }
        self.written.push(character);
        self.repeatable = Some(self.written.len());
    }

    fn code_point(&mut self, code_point: u32) {
        match char::from_u32(code_point) {
            Some(character) => self.literal(character),
            // A surrogate: no text contains one.
            None => self.atom(NOTHING),
        }
    }

    /// Writes something that a repetition can follow.
    fn atom(&mut self, written: &str) {
        self.written.push_str(written);
        self.repeatable = Some(self.written.len());
    }

    fn operator(&mut self, operator: char) -> Result<(), String> {
        self.advance(1);
        self.written.push(operator);
        self.repeatable = Some(self.written.len());
        Ok(())
    }

    fn branch(&mut self) -> Result<(), String> {
        self.advance(1);
        self.written.push('|');
        self.repeatable = None;
        Ok(())
    }

    fn skip_blank(&mut self, character: char) -> Result<(), String> {
        let end = match character {
            '#' => self.rest.find('\n').unwrap_or(self.rest.len()),
            _ => 1,
        };
        self.advance(end);
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        let (class, length) = class::translate(self.rest, self.extended)?;
        self.advance(length);
        self.atom(&class);
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), String> {
        let (escape, length) = escape::read(self.rest)?;
        self.advance(length);
        match escape {
            Escape::Character(code_point) => self.code_point(code_point),
            Escape::Class(class) => self.atom(&class),
            Escape::Assertion(assertion) => self.atom(assertion),
            Escape::Quoted(quoted) => quoted.chars().for_each(|character| self.literal(character)),
        }
        Ok(())
    }
}

/// Repetitions.
impl<'text> Translation<'text> {
    /// Reads a repetition of the given length, and the `?` behind it that makes it lazy.
    fn repeat(&mut self, length: usize, before: Option<&'text str>) -> Result<(), String> {
        let lazy = self.rest.as_bytes().get(length) == Some(&b'?');
        let operator = self.advance(length + usize::from(lazy));
        if let Some(before) = before {
            return Err(format!(
                "invalid nested repetition {before}{operator}: put what is repeated into a group, or escape the second as \\{operator}"
            ));
        }
        let Some(at) = self.repeatable else {
            return Err(format!(
                "{operator} has nothing to repeat: escape it as \\{operator} if the character itself is meant"
            ));
        };
        // Not always at the end: `a(?i)*` repeats the `a`.
        self.written.insert_str(at, operator);
        self.repeatable = Some(at + operator.len());
        self.repetition = Some(operator);
        Ok(())
    }

    /// Reads a counted repetition, or a brace that stands for itself because it begins none.
    fn brace(&mut self, before: Option<&'text str>) -> Result<(), String> {
        let Some(count) = Count::read(self.rest) else {
            self.advance(1);
            self.literal('{');
            return Ok(());
        };
        if count.is_too_large() {
            let shown = self.rest.get(..count.length).unwrap_or_default();
            return Err(format!(
                "invalid repetition {shown}: counts go up to {REPEAT_MAX}, the smaller one first"
            ));
        }
        self.repeat(count.length, before)
    }
}

/// A counted repetition: `{2}`, `{2,}` or `{2,5}`.
struct Count {
    least: u32,
    most: Option<u32>,
    length: usize,
}

impl Count {
    /// Reads a repetition at the start of a text; `None` if the brace begins none.
    fn read(text: &str) -> Option<Count> {
        let inner = text.strip_prefix('{')?;
        let end = inner.find('}')?;
        let (least, most) = match inner.get(..end)?.split_once(',') {
            None => (number(inner.get(..end)?)?, None),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        Some(Count {
            least,
            most,
            length: end + 2,
        })
    }

    fn is_too_large(&self) -> bool {
        let most = self.most.unwrap_or(self.least);
        self.least > REPEAT_MAX || most > REPEAT_MAX || self.least > most
    }
}

/// A number without zeros before it; one that is too large for every use stays too large.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    (digits && !padded).then(|| text.parse().unwrap_or(u32::MAX))
}

/// Groups and flags.
impl<'text> Translation<'text> {
    fn open_group(&mut self) -> Result<(), String> {
        match self.rest.strip_prefix("(?") {
            None => {
                self.advance(1);
                self.enter("(?:", self.extended);
                Ok(())
            }
            Some(inner) if inner.starts_with("P<") => self.named_group(4),
            Some(inner) if is_look_around(inner) => Err(format!(
                "look-around {} is not supported: search for the text itself, or filter what was found",
                self.rest.get(..self.rest.len().min(4)).unwrap_or("(?")
            )),
            Some(inner) if inner.starts_with('<') => self.named_group(3),
            Some(_) => self.flags(),
        }
    }

    /// Begins a group; nothing in it can be repeated yet.
    fn enter(&mut self, written: &str, extended: bool) {
        self.groups.push(self.extended);
        self.extended = extended;
        self.written.push_str(written);
        self.repeatable = None;
    }

    fn close_group(&mut self) -> Result<(), String> {
        let Some(extended) = self.groups.pop() else {
            return Err(
                "unexpected ): escape it as \\) if the character itself is meant".to_owned(),
            );
        };
        self.advance(1);
        self.extended = extended;
        self.atom(")");
        Ok(())
    }

    /// Reads `(?P<name>`, whose name begins after so many bytes. Nothing uses captures, so no name is kept.
    fn named_group(&mut self, start: usize) -> Result<(), String> {
        let inner = self.rest.get(start..).unwrap_or_default();
        let name = inner.split_once('>').map(|(name, _)| name);
        let is_word = |name: &&str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let Some(name) = name.filter(is_word) else {
            return Err(
                "invalid group name: use (?P<name>…) with letters, digits and _".to_owned(),
            );
        };
        self.advance(start + name.len() + 1);
        self.enter("(?:", self.extended);
        Ok(())
    }

    /// Reads `(?i)` or `(?i-s:`. Flags may repeat and contradict each other; the last one counts.
    fn flags(&mut self) -> Result<(), String> {
        let inner = self.rest.get(2..).unwrap_or_default();
        let Some(end) = inner.find([')', ':']) else {
            return Err("invalid group: ( is followed by ?; escape it as \\( if the character itself is meant".to_owned());
        };
        let flags = Flags::read(inner.get(..end).unwrap_or_default())?;
        let extended = flags.extended.unwrap_or(self.extended);
        let is_group = inner.as_bytes().get(end) == Some(&b':');
        self.advance(end + 3);
        if is_group {
            let written = format!("(?{flags}:");
            self.enter(&written, extended);
        } else {
            self.extended = extended;
            if !flags.is_empty() {
                // Flags cannot be repeated, but the item before them still can.
                let _ = write!(self.written, "(?{flags})");
            }
        }
        Ok(())
    }
}

fn is_look_around(inner: &str) -> bool {
    ["=", "!", "<=", "<!"]
        .iter()
        .any(|sign| inner.starts_with(sign))
}

/// Which flags are set and which are unset, each once.
#[derive(Default)]
struct Flags {
    on: String,
    off: String,
    /// Whether white space is left out from here on, if the flags say so; that is done here, not by the engine.
    extended: Option<bool>,
}

impl Flags {
    fn read(text: &str) -> Result<Flags, String> {
        let invalid = || {
            format!("invalid flags (?{text}: use i, m, s or U, and - before those to switch off")
        };
        let (on, off) = match text.split_once('-') {
            Some((_, "")) => return Err(invalid()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let mut flags = Flags::default();
        for (names, set) in [(on, true), (off, false)] {
            for name in names.chars() {
                match name {
                    'i' | 'm' | 's' | 'U' => flags.set(name, set),
                    'x' => flags.extended = Some(set),
                    _ => return Err(invalid()),
                }
            }
        }
        Ok(flags)
    }

    fn set(&mut self, name: char, set: bool) {
        let (to, from) = match set {
            true => (&mut self.on, &mut self.off),
            false => (&mut self.off, &mut self.on),
        };
        from.retain(|other| other != name);
        if !to.contains(name) {
            to.push(name);
        }
    }

    fn is_empty(&self) -> bool {
        self.on.is_empty() && self.off.is_empty()
    }
}

impl std::fmt::Display for Flags {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.on)?;
        if !self.off.is_empty() {
            write!(formatter, "-{}", self.off)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
