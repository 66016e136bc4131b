//! What stands behind a backslash.

use super::WORD;

/// What an escape stands for.
pub(super) enum Escape<'text> {
    /// One character, by its number.
    Character(u32),
    /// A class, written for the engine.
    Class(String),
    /// A place between characters, written for the engine.
    Assertion(&'static str),
    /// Text that stands for itself: `\Q…\E`.
    Quoted(&'text str),
}

/// Reads an escape outside a class, and tells its length. The text begins with the backslash.
pub(super) fn read(text: &str) -> Result<(Escape<'_>, usize), String> {
    if let Some(class) = read_class(text)? {
        let (written, length) = class;
        return Ok((Escape::Class(written), length));
    }
    let assertion = match text.as_bytes().get(1) {
        Some(b'A') => "\\A",
        Some(b'z') => "\\z",
        // Only letters of ASCII make words, as for `\w`.
        Some(b'b') => "(?-u:\\b)",
        Some(b'B') => "(?-u:\\B)",
        Some(b'Q') => return Ok(quoted(text)),
        _ => {
            let (character, length) = read_character(text)?;
            return Ok((Escape::Character(character), length));
        }
    };
    Ok((Escape::Assertion(assertion), 2))
}

fn quoted(text: &str) -> (Escape<'_>, usize) {
    let inner = text.get(2..).unwrap_or_default();
    match inner.split_once("\\E") {
        Some((quoted, _)) => (Escape::Quoted(quoted), quoted.len() + 4),
        None => (Escape::Quoted(inner), text.len()),
    }
}

/// Reads a class such as `\d` or `\p{Greek}`, written so that it can stand in brackets too; `None` if it is none.
pub(super) fn read_class(text: &str) -> Result<Option<(String, usize)>, String> {
    let written = match text.as_bytes().get(1) {
        Some(b'd') => "[0-9]".to_owned(),
        Some(b'D') => "[^0-9]".to_owned(),
        // Unlike the POSIX class, without the vertical tab.
        Some(b's') => "[\\t\\n\\x0C\\r ]".to_owned(),
        Some(b'S') => "[^\\t\\n\\x0C\\r ]".to_owned(),
        Some(b'w') => format!("[{WORD}]"),
        Some(b'W') => format!("[^{WORD}]"),
        Some(b'p' | b'P') => return unicode_class(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((written, 2)))
}

/// Reads `\pN`, `\p{Greek}` or `\p{^Greek}`.
fn unicode_class(text: &str) -> Result<(String, usize), String> {
    let negated = text.starts_with("\\P");
    let inner = text.get(2..).unwrap_or_default();
    let (name, length) = match (inner.strip_prefix('{'), inner.chars().next()) {
        (Some(braced), _) => match braced.split_once('}') {
            Some((name, _)) => (name, name.len() + 4),
            None => return Err(format!("{text} has no closing }}")),
        },
        (None, Some(letter)) => (
            inner.get(..letter.len_utf8()).unwrap_or_default(),
            letter.len_utf8() + 2,
        ),
        (None, None) => return Err("\\p needs the name of a class, as in \\p{Greek}".to_owned()),
    };
    let (name, flipped) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let letter = if negated != flipped { 'P' } else { 'p' };
    let written = format!("\\{letter}{{{name}}}");
    if regex_syntax::parse(&written).is_err() {
        return Err(format!(
            "there is no class \\p{{{name}}}; use a category such as \\p{{Lu}} or a script such as \\p{{Greek}}"
        ));
    }
    Ok((written, length))
}

/// Reads an escape that stands for one character, and tells its length.
pub(super) fn read_character(text: &str) -> Result<(u32, usize), String> {
    let mut characters = text.chars();
    characters.next();
    let Some(character) = characters.next() else {
        return Err("trailing backslash: write \\\\ if the character itself is meant".to_owned());
    };
    let after = characters.as_str();
    let code_point = match character {
        '0'..='7' => return octal(text, character),
        'x' | 'u' | 'U' => return hexadecimal(text, character, after),
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
        other => return Err(unknown(other)),
    };
    Ok((code_point, 2))
}

fn unknown(character: char) -> String {
    let advice = match character {
        '8' | '9' => "; references to groups are not supported".to_owned(),
        'Z' => "; the end of a line is $".to_owned(),
        'h' => "; a blank is [ \\t]".to_owned(),
        other => format!("; write {other} if the character itself is meant"),
    };
    format!("invalid escape \\{character}{advice}")
}

/// Reads one to three octal digits. A single digit but 0 would be a reference to a group.
fn octal(text: &str, first: char) -> Result<(u32, usize), String> {
    let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
    let digits = text
        .bytes()
        .skip(1)
        .take(3)
        .take_while(|byte| is_octal(byte));
    let digits: Vec<u8> = digits.collect();
    if first != '0' && digits.len() < 2 {
        return Err(format!(
            "invalid escape \\{first}: references to groups are not supported"
        ));
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 8 + u32::from(digit - b'0'));
    Ok((value, digits.len() + 1))
}

/// Reads `\x41`, `\x{1F600}`, `\u2713`, `\u{2713}` or `\U0001F600`.
fn hexadecimal(text: &str, kind: char, after: &str) -> Result<(u32, usize), String> {
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let (digits, length) = match after.strip_prefix('{') {
        Some(braced) => {
            let digits = braced.split_once('}').map_or("", |(digits, _)| digits);
            (digits, digits.len() + 4)
        }
        None => (after.get(..digits).unwrap_or_default(), digits + 2),
    };
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let trimmed = digits.trim_start_matches('0');
    let value = match (digits.is_empty(), all, trimmed) {
        (true, ..) | (_, false, _) => None,
        (.., "") => Some(0),
        (.., trimmed) => u32::from_str_radix(trimmed, 16).ok(),
    };
    match value {
        Some(value) if value <= u32::from(char::MAX) => Ok((value, length)),
        _ => {
            let shown: String = text.chars().take(length.min(12)).collect();
            Err(format!(
                "invalid escape {shown}: use \\x and two hexadecimal digits, or \\x{{10FFFF}} at most"
            ))
        }
    }
}
