//! Text or binary, UTF-8 or not, base64, and cuts that respect characters.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};

use crate::error::{Error, Result};

/// How much of a file is looked at to tell whether it is binary.
pub const HEAD: usize = 8 * 1024;

/// The byte order mark of UTF-8.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// Tells whether a file that begins so is binary: a NUL byte in its first 8 KiB.
#[must_use]
pub fn is_binary(beginning: &[u8]) -> bool {
    memchr::memchr(0, beginning.get(..HEAD).unwrap_or(beginning)).is_some()
}

/// What a file that is not UTF-8 seems to be, by its beginning.
#[must_use]
pub fn likely_encoding(beginning: &[u8]) -> &'static str {
    match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] => "UTF-16LE",
        [0xfe, 0xff, ..] => "UTF-16BE",
        _ => encoding_by_nuls(beginning),
    }
}

/// What a file without a mark seems to be: most letters of most texts have a NUL as their other half in UTF-16.
fn encoding_by_nuls(beginning: &[u8]) -> &'static str {
    let nuls = |from: usize| {
        let each = beginning.iter().skip(from).step_by(2);
        each.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (nuls(0), nuls(1));
    let half = beginning.len() / 2;
    if even + odd == 0 {
        "windows-1252 or Latin-1"
    } else if even == 0 && odd > half / 2 {
        "UTF-16LE"
    } else if odd == 0 && even > half / 2 {
        "UTF-16BE"
    } else {
        "binary"
    }
}

/// The bytes as text, or `None` if they are not valid UTF-8.
#[must_use]
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Validates a text that comes block by block.
#[derive(Debug, Default, Clone)]
pub struct Utf8Check {
    /// The beginning of a character that its block cut.
    tail: Vec<u8>,
    broken: bool,
}

impl Utf8Check {
    /// Looks at the next block.
    pub fn feed(&mut self, block: &[u8]) {
        let block = self.complete_tail(block);
        let whole = trim_end(block);
        self.broken |= utf8(whole).is_none();
        self.tail
            .extend_from_slice(block.get(whole.len()..).unwrap_or(&[]));
    }

    /// Tells whether all of it was valid UTF-8, once the last block was seen.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.broken && self.tail.is_empty()
    }

    /// Tells, at any time, whether the text so far can no longer become valid.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Finishes the cut character with the block's first bytes and returns the rest of the block.
    fn complete_tail<'b>(&mut self, block: &'b [u8]) -> &'b [u8] {
        let Some(lead) = self.tail.first() else {
            return block;
        };
        let missing = width(*lead)
            .saturating_sub(self.tail.len())
            .min(block.len());
        let (own, rest) = block.split_at_checked(missing).unwrap_or((block, &[]));
        self.tail.extend_from_slice(own);
        if self.tail.len() == width(*self.tail.first().unwrap_or(&0)) {
            self.broken |= utf8(&self.tail).is_none();
            self.tail.clear();
        }
        rest
    }
}

/// Encodes bytes as standard base64 with padding.
#[must_use]
pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes standard base64 with padding; anything else is [`Error::InvalidEncoding`] and says where.
pub fn from_base64(text: &str) -> Result<Vec<u8>> {
    STANDARD
        .decode(text)
        .map_err(|error| Error::InvalidEncoding {
            reason: fault(text, &error),
        })
}

fn fault(text: &str, error: &DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, _) => {
            let shown = text
                .char_indices()
                .find(|(from, c)| from + c.len_utf8() > *at);
            let shown = shown.map_or(' ', |(_, c)| c);
            format!("invalid base64: {shown:?} at position {at} is not allowed there")
        }
        DecodeError::InvalidLastSymbol { offset, .. } => {
            format!("invalid base64: the last character, at position {offset}, has unused bits set")
        }
        DecodeError::InvalidLength(length) => {
            format!("invalid base64: it ends at position {length}, in the middle of a group of 4")
        }
        DecodeError::InvalidPadding => {
            let end = text.len();
            format!("invalid base64: the padding (`=`) at position {end} is missing or wrong")
        }
    }
}

/// How many characters begin in bytes.
#[must_use]
pub fn characters(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| !is_continuation(**byte)).count() as u64
}

/// The bytes without the piece of a character that they end in, if they do.
///
/// Bytes that are not UTF-8 at all stay as they are.
#[must_use]
pub fn trim_end(bytes: &[u8]) -> &[u8] {
    let length = bytes.len();
    let lead = (1..=length.min(3)).find(|back| {
        bytes
            .get(length - back)
            .is_some_and(|byte| !is_continuation(*byte))
    });
    match lead {
        Some(back)
            if bytes
                .get(length - back)
                .is_some_and(|byte| width(*byte) > back) =>
        {
            bytes.get(..length - back).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

/// The bytes without the piece of a character that they start with, if they do.
#[must_use]
pub fn trim_start(bytes: &[u8]) -> &[u8] {
    let pieces = bytes
        .iter()
        .take(3)
        .take_while(|byte| is_continuation(**byte))
        .count();
    bytes.get(pieces..).unwrap_or(bytes)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How many bytes a character has that begins with this one.
fn width(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_nul_in_the_first_8_kib_makes_it_binary() {
        let mut bytes = vec![b'a'; HEAD + 1];
        assert!(!is_binary(&bytes));
        bytes[HEAD] = 0;
        assert!(!is_binary(&bytes));
        bytes[HEAD - 1] = 0;
        assert!(is_binary(&bytes));
        assert!(!is_binary(b""));
    }

    #[test]
    fn an_encoding_is_told_by_the_beginning() {
        let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(order).collect()
        };
        for (bytes, seems) in [
            (utf16("\u{feff}caf\u{e9}", u16::to_le_bytes), "UTF-16LE"),
            (utf16("\u{feff}caf\u{e9}", u16::to_be_bytes), "UTF-16BE"),
            (utf16("caf\u{e9}", u16::to_le_bytes), "UTF-16LE"),
            (utf16("caf\u{e9}", u16::to_be_bytes), "UTF-16BE"),
            (b"caf\xe9\n".to_vec(), "windows-1252 or Latin-1"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\xff".to_vec(), "binary"),
            (b"\xff\xfe\0\0a\0\0\0".to_vec(), "UTF-32"),
        ] {
            assert_eq!(likely_encoding(&bytes), seems, "{bytes:?}");
        }
    }

    #[test]
    fn base64_is_strict_and_says_where() {
        assert_eq!(from_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(from_base64("").unwrap(), b"");
        let faulty = [
            ("aGVs!G8=", "'!' at position 4"),
            ("aGVs\nbG8=", "'\\n' at position 4"),
            ("aGVsbG8", "position 7"),
            ("aGVsb", "position 5"),
            ("aGVsbG9=", "position 6"),
            ("aGVsñG8=", "'ñ' at position 4"),
            ("-_-_", "'-' at position 0"),
        ];
        for (text, place) in faulty {
            let Err(Error::InvalidEncoding { reason }) = from_base64(text) else {
                panic!("{text:?} was accepted");
            };
            assert!(reason.contains(place), "{text:?}: {reason}");
        }
    }

    #[test]
    fn cuts_fall_between_characters() {
        let table: [(&[u8], &[u8]); 8] = [
            (b"", b""),
            (b"abc", b"abc"),
            ("añ".as_bytes(), "añ".as_bytes()),
            (b"a\xc3", b"a"),
            (b"a\xe2\x82", b"a"),
            (b"a\xf0\x9f\x98", b"a"),
            (b"\xf0", b""),
            // Not UTF-8 at all: nobody's character is cut.
            (b"\x80\x80\x80\x80", b"\x80\x80\x80\x80"),
        ];
        for (bytes, kept) in table {
            assert_eq!(trim_end(bytes), kept, "{bytes:?}");
        }
        assert_eq!(trim_start(b"\x9f\x98\x80ab"), b"ab");
        assert_eq!(trim_start(b"ab"), b"ab");
    }

    proptest! {
        #[test]
        fn any_cut_of_text_gives_whole_characters(text in ".{0,40}", a: usize, b: usize) {
            let (a, b) = (a % (text.len() + 1), b % (text.len() + 1));
            let piece = &text.as_bytes()[a.min(b)..a.max(b)];
            let whole = trim_end(trim_start(piece));
            prop_assert!(utf8(whole).is_some());
            prop_assert!(piece.len() - whole.len() <= 6);
        }

        #[test]
        fn checking_in_blocks_agrees_with_checking_at_once(
            text in prop_oneof![
                ".{0,30}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..12),
                proptest::collection::vec(prop_oneof![
                    Just(0xf0u8), Just(0x9f), Just(0x98), Just(0x80), Just(b'a'), Just(0xc3), Just(0xe0)
                ], 0..12),
            ],
            block in 1usize..6,
        ) {
            let mut check = Utf8Check::default();
            text.chunks(block).for_each(|piece| check.feed(piece));
            prop_assert_eq!(check.is_valid(), std::str::from_utf8(&text).is_ok());
        }

        #[test]
        fn base64_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(from_base64(&to_base64(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn arbitrary_base64_never_panics(text in ".{0,20}") {
            if let Ok(bytes) = from_base64(&text) {
                prop_assert_eq!(to_base64(&bytes), text);
            }
        }
    }
}
