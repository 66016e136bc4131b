//! The chain of the audit file: every line has a number and the hash of the line before.
//!
//! A line is chained by putting three fields at its end: `seq`, `prev`, and in the first line of a file `first`. The hash
//! of a line is SHA-256 over its bytes without the line end, so that `sha256sum` can check it by hand.

use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The hash of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LineHash([u8; 32]);

impl LineHash {
    /// The hash of a line, which is given without its end.
    pub(crate) fn of(line: &[u8]) -> LineHash {
        LineHash(Sha256::digest(line).into())
    }

    /// Reads the 64 hexadecimal digits of a hash.
    pub(crate) fn parse(digits: &str) -> Option<LineHash> {
        let mut bytes = [0; 32];
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(LineHash(bytes))
    }
}

fn digit(character: u8) -> Option<u8> {
    let value = char::from(character).to_digit(16)?;
    u8::try_from(value).ok()
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The last line of the chain. The default is a chain without lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChainHead {
    /// The number of the line.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: LineHash,
}

/// What a line says about its place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainLink {
    /// Its number.
    pub(crate) seq: u64,
    /// The hash of the line before.
    pub(crate) prev: LineHash,
    /// It is the first line of its file.
    pub(crate) first: bool,
    /// The line before was cut off when a process or the machine died.
    pub(crate) after_cut: bool,
}

/// The fields that a line ends in.
#[derive(Deserialize)]
struct LinkFields<'line> {
    seq: u64,
    #[serde(borrow)]
    prev: &'line str,
    #[serde(default)]
    first: bool,
    #[serde(default)]
    after_cut: bool,
}

impl ChainLink {
    /// Reads the fields of a line; `None` if it has none, or is no JSON object.
    pub(crate) fn read(line: &[u8]) -> Option<ChainLink> {
        let fields: LinkFields<'_> = serde_json::from_slice(line).ok()?;
        Some(ChainLink {
            seq: fields.seq,
            prev: LineHash::parse(fields.prev)?,
            first: fields.first,
            after_cut: fields.after_cut,
        })
    }
}

/// What the next line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing: it is the first of its file.
    Nothing,
    /// A whole line.
    Line,
    /// A line that was cut off.
    CutLine,
}

/// Appends a line to `out` as the one that follows `head`, and returns the new head.
pub(crate) fn push_chained(
    line: &[u8],
    head: ChainHead,
    follows: Follows,
    out: &mut Vec<u8>,
) -> ChainHead {
    let start = out.len();
    let seq = head.seq.saturating_add(1);
    let more = match follows {
        Follows::Nothing => r#","first":true"#,
        Follows::Line => "",
        Follows::CutLine => r#","after_cut":true"#,
    };
    let object = line.strip_suffix(b"}").unwrap_or(line);
    out.extend_from_slice(object);
    let fields = format!(r#","seq":{seq},"prev":"{}"{more}}}"#, head.hash);
    out.extend_from_slice(fields.as_bytes());
    let hash = LineHash::of(out.get(start..).unwrap_or_default());
    out.push(b'\n');
    ChainHead { seq, hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_follows() {
        let mut out = Vec::new();
        let first = push_chained(
            br#"{"a":1}"#,
            ChainHead::default(),
            Follows::Nothing,
            &mut out,
        );
        let second = push_chained(br#"{"b":2}"#, first, Follows::Line, &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let zeros = "0".repeat(64);
        assert_eq!(
            lines[0],
            format!(r#"{{"a":1,"seq":1,"prev":"{zeros}","first":true}}"#)
        );
        assert_eq!(
            lines[1],
            format!(r#"{{"b":2,"seq":2,"prev":"{}"}}"#, first.hash)
        );
        assert_eq!(first.hash, LineHash::of(lines[0].as_bytes()));
        let link = ChainLink::read(lines[1].as_bytes()).unwrap();
        assert_eq!(link.seq, second.seq);
        assert_eq!(link.prev, first.hash);
        assert!(!link.first && !link.after_cut);
    }

    #[test]
    fn a_hash_is_64_digits() {
        let hash = LineHash::of(b"line");
        assert_eq!(LineHash::parse(&hash.to_string()), Some(hash));
        for wrong in ["", "0", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66)] {
            assert_eq!(LineHash::parse(wrong), None, "{wrong}");
        }
    }
}
