//! Names as bytes, and the reversible form in which clients see bytes that are not UTF-8.
//!
//! Each byte b that is not part of valid UTF-8 is shown as the private-use character U+F700 + b. A genuine
//! character of U+F780..U+F7FF is shown byte by byte in the same way, so that the way back is unambiguous.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fmt;

/// Where the private characters that stand for single bytes begin.
const BYTE_BASE: u32 = 0xF700;

/// The characters that stand for a byte; bytes below 0x80 are always valid UTF-8 and never shown so.
const BYTE_CHARS: std::ops::RangeInclusive<u32> = 0xF780..=0xF7FF;

/// One name in a directory: never empty, `.`, `..`, and without `/` and NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<CStr>);

impl Name {
    /// Takes a name the kernel gave or a parsed path holds; `None` if it could not be the name of one entry.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let plain = !bytes.is_empty() && bytes != b"." && bytes != b"..";
        // Security: a name with a slash would let one `openat` cross directories and follow a link.
        if !plain || bytes.contains(&b'/') {
            return None;
        }
        let name = CString::new(bytes).ok()?;
        Some(Name(name.into_boxed_c_str()))
    }

    /// The bytes as the file system has them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.to_bytes()
    }

    /// The name as system calls take it: copying it for each call would cost a tenth of the call.
    pub(crate) fn as_c_str(&self) -> &CStr {
        &self.0
    }

    /// The name as clients see it.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        shown(self.as_bytes())
    }

    /// Tells whether the bytes are not UTF-8, so that clients see a stand-in form.
    #[must_use]
    pub fn is_invalid_utf8(&self) -> bool {
        std::str::from_utf8(self.as_bytes()).is_err()
    }

    /// Tells whether the name begins with a dot.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.as_bytes().first() == Some(&b'.')
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

/// Shows bytes to clients: UTF-8 as it is, every other byte as its private-use character.
#[must_use]
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !may_stand_for_bytes(text) => Cow::Borrowed(text),
        _ => Cow::Owned(shown_piecewise(bytes)),
    }
}

/// Looks for the first byte of the private characters, which few names contain.
fn may_stand_for_bytes(text: &str) -> bool {
    text.as_bytes().contains(&0xEF) && text.chars().any(stands_for_byte)
}

fn shown_piecewise(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if stands_for_byte(c) {
                let mut buffer = [0; 4];
                text.extend(c.encode_utf8(&mut buffer).bytes().map(byte_char));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(byte_char));
    }
    text
}

/// Converts a client's text back into bytes: the inverse of [`shown`].
#[must_use]
pub(crate) fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if !may_stand_for_bytes(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        if stands_for_byte(c) {
            bytes.push((u32::from(c) - BYTE_BASE) as u8);
        } else {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Cow::Owned(bytes)
}

fn stands_for_byte(c: char) -> bool {
    BYTE_CHARS.contains(&u32::from(c))
}

fn byte_char(byte: u8) -> char {
    char::from_u32(BYTE_BASE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Tells whether every file system can hold a name: those of other systems refuse some characters and ends.
pub(crate) fn is_plain(name: &[u8]) -> bool {
    let is_refused = |byte: &u8| b"\"*:<>?\\|".contains(byte) || byte.is_ascii_control();
    std::str::from_utf8(name).is_ok()
        && !name.iter().any(is_refused)
        && !name.ends_with(b".")
        && !name.ends_with(b" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn valid_text_is_shown_as_it_is() {
        assert_eq!(shown("naïve 日本".as_bytes()), "naïve 日本");
    }

    #[test]
    fn a_genuine_private_character_is_shown_byte_by_byte() {
        let genuine = "\u{F7E9}";
        assert_eq!(shown(genuine.as_bytes()), "\u{F7EF}\u{F79F}\u{F7A9}");
    }

    #[test]
    fn names_that_could_cross_directories_are_none() {
        for bytes in [&b""[..], b".", b"..", b"a/b", b"a\0", b"link/"] {
            assert!(Name::new(bytes).is_none(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_goes_back_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(to_bytes(&shown(&bytes)).into_owned(), bytes);
        }
    }
}
