//! One file of the agent, as it was handed over.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::encoding::TextEncoding;

/// Whether content is text or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentShape {
    /// Text, held as UTF-8 whatever encoding the agent's file has.
    Text,
    /// The file's own bytes.
    Bytes,
}

/// A file's content and what is known of it. Small, because many are held.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The bytes; UTF-8 where it is text.
    pub content: Box<[u8]>,
    /// What the bytes are.
    pub shape: ContentShape,
    /// The encoding of the agent's file.
    pub encoding: TextEncoding,
    /// When the agent's file was changed, in seconds since the epoch, where the agent said so.
    pub mtime: Option<f64>,
    /// When it was handed over, in seconds since the epoch.
    pub stored_at: f64,
}

impl AgentFile {
    /// The size of what is held.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// The hash of what is held.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(&self.content)
    }

    /// Tells whether the agent's file was changed after this content was taken from it.
    #[must_use]
    pub fn is_older_than(&self, mtime: f64) -> bool {
        self.mtime.unwrap_or(self.stored_at) < mtime
    }
}

/// A SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(Sha256::digest(bytes).into())
    }

    /// Tells whether a client's text is this hash; `sha256:` before it and upper case do no harm.
    #[must_use]
    pub fn is(&self, told: &str) -> bool {
        let told = told.trim();
        let told = told.strip_prefix("sha256:").unwrap_or(told);
        self.to_string().eq_ignore_ascii_case(told)
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
        };
        assert!(file(Some(5.0)).is_older_than(6.0));
        assert!(!file(Some(5.0)).is_older_than(5.0));
        assert!(!file(None).is_older_than(99.0) && file(None).is_older_than(101.0));
    }
}
