//! One file of the agent, as it was handed over.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::encoding::TextEncoding;

/// Whether content is text or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentShape {
    /// Text, held as UTF-8 whatever encoding the agent's file has.
    Text,
    /// The file's own bytes.
    Bytes,
}

/// A file's content and what is known about it. The cache holds many of these, so the type is small.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The bytes; UTF-8 if the content is text.
    pub content: Box<[u8]>,
    /// Whether the content is text or bytes.
    pub shape: ContentShape,
    /// The encoding of the agent's file.
    pub encoding: TextEncoding,
    /// When the agent's file was last changed, in seconds since the epoch, if the agent said so.
    pub mtime: Option<f64>,
    /// When it was handed over, in seconds since the epoch.
    pub stored_at: f64,
    /// How it was handed over.
    pub told_by: ToldBy,
}

/// How something was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldBy {
    /// In the answer to a question.
    Answer,
    /// By a tool.
    Tool,
}

impl AgentFile {
    /// Returns what the content takes in the cache.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns the size of the agent's file; of the text in UTF-8 if the file's bytes are not known.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.known_bytes().len() as u64
    }

    /// Returns the hash of the agent's file; of the text in UTF-8 if the file's bytes are not known.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(&self.known_bytes())
    }

    fn known_bytes(&self) -> Cow<'_, [u8]> {
        self.bytes().unwrap_or(Cow::Borrowed(&self.content))
    }

    /// Tells whether the agent's file was changed after this content was taken from it.
    #[must_use]
    pub fn is_older_than(&self, mtime: f64) -> bool {
        self.mtime.unwrap_or(self.stored_at) < mtime
    }

    /// Returns the bytes of the agent's file, or `None` for text that its encoding cannot write.
    #[must_use]
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        encoded(&self.content, self.shape, self.encoding)
    }

    /// Returns the text and its encoding: the wanted one, or the first fallback that fits.
    pub(crate) fn to_text(&self, wanted: TextEncoding) -> Option<(String, TextEncoding)> {
        if self.shape == ContentShape::Text {
            let text = std::str::from_utf8(&self.content).ok()?;
            return Some((text.to_owned(), self.encoding));
        }
        // The last fallback accepts any bytes, but content with a NUL byte is not text.
        let is_binary = self.content.contains(&0);
        wanted
            .with_fallbacks()
            .filter(|used| *used == wanted || *used == TextEncoding::UTF_8 || !is_binary)
            .find_map(|used| Some((used.decode(&self.content)?, used)))
    }
}

/// Returns the bytes that content has in the agent's file, or `None` for text that its encoding cannot write.
pub(crate) fn encoded(
    content: &[u8],
    shape: ContentShape,
    encoding: TextEncoding,
) -> Option<Cow<'_, [u8]>> {
    match shape {
        ContentShape::Text if encoding != TextEncoding::UTF_8 => {
            let text = std::str::from_utf8(content).ok()?;
            encoding.encode(text).map(Cow::Owned)
        }
        ContentShape::Text | ContentShape::Bytes => Some(Cow::Borrowed(content)),
    }
}

/// A SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(Sha256::digest(bytes).into())
    }

    /// Tells whether a client's text is this hash, with or without `sha256:` before it and in either case.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        let text = text.trim();
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        self.to_string().eq_ignore_ascii_case(text)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_told_in_hexadecimal() {
        let hash = ContentHash::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert!(hash.is(text) && hash.is(&text.to_uppercase()));
        assert!(hash.is(&format!("sha256:{text}")));
        assert!(!hash.is("") && !hash.is("ba78"));
    }

    #[test]
    fn age_goes_by_the_agents_time_or_by_ours() {
        let file = |mtime| AgentFile {
            content: Box::default(),
            shape: ContentShape::Text,
            encoding: TextEncoding::UTF_8,
            mtime,
            stored_at: 100.0,
            told_by: ToldBy::Tool,
        };
        assert!(file(Some(5.0)).is_older_than(6.0));
        assert!(!file(Some(5.0)).is_older_than(5.0));
        assert!(!file(None).is_older_than(99.0) && file(None).is_older_than(101.0));
    }

    #[test]
    fn hash_and_size_are_those_of_the_bytes() {
        let file = |encoding| AgentFile {
            content: "é".as_bytes().into(),
            shape: ContentShape::Text,
            encoding: TextEncoding::named(encoding).unwrap(),
            mtime: None,
            stored_at: 0.0,
            told_by: ToldBy::Tool,
        };
        assert_eq!(file("utf-8").size(), 2);
        assert_eq!(file("latin-1").size(), 1);
        assert_eq!(file("latin-1").held_bytes(), 2);
        assert_eq!(file("latin-1").hash(), ContentHash::of(b"\xe9"));
        // Whether the file begins with a byte order mark is not known.
        assert_eq!(file("utf-16le").bytes(), None);
        assert_eq!(file("utf-16le").hash(), file("utf-8").hash());
    }
}
