//! Text encodings, by the names that people and programs use.

use std::fmt;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::error::{Error, Result};

/// A text encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// The encoding of text unless the client names another.
    pub const UTF_8: TextEncoding = TextEncoding(&encoding_rs::UTF_8_INIT);

    /// Finds an encoding by a name such as `utf-8`, `latin-1`, `shift_jis` or `windows-1252`.
    pub fn named(name: &str) -> Result<TextEncoding> {
        let plain = name.trim().to_ascii_lowercase();
        // Programs write latin-1 and utf_8; the standard spells them latin1 and utf-8.
        let spellings = [
            plain.clone(),
            plain.replace('_', "-"),
            plain.replace(['-', '_'], ""),
        ];
        let found = spellings
            .iter()
            .find_map(|name| Encoding::for_label_no_replacement(name.as_bytes()));
        found
            .map(TextEncoding)
            .ok_or_else(|| Error::UnknownEncoding {
                name: name.to_owned(),
            })
    }

    /// Returns its name in lower case.
    #[must_use]
    pub fn name(self) -> String {
        self.0.name().to_ascii_lowercase()
    }

    /// Returns the encoding of some bytes for which this one was named: a byte order mark distinguishes the two kinds
    /// of UTF-16.
    #[must_use]
    pub fn marked(self, bytes: &[u8]) -> TextEncoding {
        let marked = Encoding::for_bom(bytes).map(|(marked, _)| TextEncoding(marked));
        marked
            .filter(|marked| self.is_utf_16() && marked.is_utf_16())
            .unwrap_or(self)
    }

    fn is_utf_16(self) -> bool {
        self.0 == UTF_16LE || self.0 == UTF_16BE
    }

    /// Decodes bytes, or returns `None` if they are not in this encoding. Drops the byte order mark of UTF-16.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        let bytes = match Encoding::for_bom(bytes) {
            Some((marked, length)) if self.is_utf_16() && marked == self.0 => {
                bytes.get(length..)?
            }
            _ => bytes,
        };
        let text = self
            .0
            .decode_without_bom_handling_and_without_replacement(bytes)?;
        Some(text.into_owned())
    }

    /// Encodes a text, or returns `None` if this encoding cannot write it.
    #[must_use]
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let (bytes, used, is_lossy) = self.0.encode(text);
        (used == self.0 && !is_lossy).then(|| bytes.into_owned())
    }

    /// Iterates over the encodings to try if this one was requested: itself, UTF-8, and one that accepts any bytes.
    pub fn with_fallbacks(self) -> impl Iterator<Item = TextEncoding> {
        let others = [UTF_8, WINDOWS_1252].into_iter().map(TextEncoding);
        std::iter::once(self).chain(others.filter(move |other| *other != self))
    }
}

impl fmt::Debug for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_people_write_them() {
        for (name, expected) in [
            ("utf-8", "utf-8"),
            ("UTF8", "utf-8"),
            ("utf_8", "utf-8"),
            ("latin-1", "windows-1252"),
            ("iso-8859-1", "windows-1252"),
            ("Shift_JIS", "shift_jis"),
            ("utf-16le", "utf-16le"),
        ] {
            assert_eq!(TextEncoding::named(name).unwrap().name(), expected);
        }
        for name in ["klingon", "", "replacement", "base64"] {
            assert!(TextEncoding::named(name).is_err(), "{name}");
        }
    }

    #[test]
    fn bytes_that_do_not_fit_are_not_repaired() {
        let shift_jis = TextEncoding::named("shift_jis").unwrap();
        assert_eq!(shift_jis.decode(b"\x83\x65").as_deref(), Some("テ"));
        assert_eq!(TextEncoding::UTF_8.decode(b"\xff"), None);
        assert_eq!(shift_jis.encode("テ").as_deref(), Some(&b"\x83\x65"[..]));
        assert_eq!(shift_jis.encode("🦀"), None);
        let utf_16 = TextEncoding::named("utf-16le").unwrap();
        assert_eq!(utf_16.decode(b"a\0").as_deref(), Some("a"));
        assert_eq!(utf_16.encode("a"), None, "encoding_rs only decodes it");
    }

    #[test]
    fn a_byte_order_mark_tells_the_kinds_of_utf_16_apart() {
        let (little, big) = (b"\xff\xfea\0".as_slice(), b"\xfe\xff\0a".as_slice());
        for named in ["utf-16", "utf-16le", "utf-16be"] {
            for (bytes, name) in [(little, "utf-16le"), (big, "utf-16be")] {
                let marked = TextEncoding::named(named).unwrap().marked(bytes);
                assert_eq!(marked.name(), name);
                assert_eq!(marked.decode(bytes).as_deref(), Some("a"));
            }
        }
        assert_eq!(TextEncoding::UTF_8.marked(little), TextEncoding::UTF_8);
        let utf_16 = TextEncoding::named("utf-16be").unwrap();
        assert_eq!(
            utf_16.marked(b"\0a"),
            utf_16,
            "without a mark the name decides"
        );
    }

    #[test]
    fn fallbacks_end_with_one_that_takes_anything() {
        let names: Vec<String> = TextEncoding::named("shift_jis")
            .unwrap()
            .with_fallbacks()
            .map(TextEncoding::name)
            .collect();
        assert_eq!(names, ["shift_jis", "utf-8", "windows-1252"]);
        assert_eq!(TextEncoding::UTF_8.with_fallbacks().count(), 2);
    }
}
