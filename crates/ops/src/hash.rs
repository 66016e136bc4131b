//! Hashes a file's content without loading it into memory.

use std::fmt::Write as _;

use md5::Md5;
use sandbox::OpenFile;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::read_at::read_at;

/// Fits the processor's first-level cache: larger buffers were slower when measured.
const BUFFER: usize = 32 * 1024;

/// The known algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha256,
}

/// Asks for the hash of a file's content.
#[derive(Debug)]
pub struct Hash {
    /// The file; links are followed.
    pub place: Place,
    /// How to hash it.
    pub algorithm: Algorithm,
}

/// A file's hash.
#[derive(Debug)]
pub struct Hashed {
    /// The resolved path.
    pub path: String,
    /// How it was hashed.
    pub algorithm: Algorithm,
    /// The hash in lower-case hexadecimal digits.
    pub hex: String,
    /// How many bytes were hashed.
    pub size: u64,
}

impl Operation for Hash {
    type Outcome = Hashed;

    fn run(self, context: &Context) -> Result<Hashed> {
        let open = self.place.open_file(Wanted::File)?;
        let (hex, size) = match self.algorithm {
            Algorithm::Md5 => digest::<Md5>(&open, context)?,
            Algorithm::Sha1 => digest::<Sha1>(&open, context)?,
            Algorithm::Sha256 => digest::<Sha256>(&open, context)?,
        };
        Ok(Hashed {
            path: open.path,
            algorithm: self.algorithm,
            hex,
            size,
        })
    }
}

fn digest<D: Digest>(open: &OpenFile, context: &Context) -> Result<(String, u64)> {
    let mut hasher = D::new();
    let mut buffer = vec![0; BUFFER];
    let mut size = 0;
    loop {
        context.cancel.check_and_give_way()?;
        let length = read_at(open, &mut buffer, size)?;
        let Some(block) = buffer.get(..length).filter(|block| !block.is_empty()) else {
            return Ok((hexadecimal(&hasher.finalize()), size));
        };
        hasher.update(block);
        size += length as u64;
        context.cancel.advance(length as u64);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn hash(tree: &Tree, path: &str, algorithm: Algorithm, context: &Context) -> Result<Hashed> {
        Hash {
            place: tree.place(path),
            algorithm,
        }
        .run(context)
    }

    #[test]
    fn known_content_has_known_hashes() {
        let tree = Tree::new();
        tree.file("known", "test content\n")
            .link("link", "known")
            .file("empty", "");
        for (algorithm, hex) in [
            (Algorithm::Md5, "d6eb32081c822ed572b70567826d9d9d"),
            (Algorithm::Sha1, "4fe2b8dd12cd9cd6a413ea960cd8c09c25f19527"),
            (
                Algorithm::Sha256,
                "a1fff0ffefb9eace7230c24e50731f0a91c62f9cefdfe77121c2f607125dffae",
            ),
        ] {
            let hashed = hash(&tree, "link", algorithm, &context()).unwrap();
            assert_eq!(hashed.hex.as_str(), hex);
            assert_eq!(hashed.size, 13);
            assert_eq!(hashed.path.as_str(), "known");
        }
        let empty = hash(&tree, "empty", Algorithm::Md5, &context()).unwrap();
        assert_eq!(empty.hex, "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn large_files_are_hashed_in_pieces_and_watched() {
        let tree = Tree::new();
        tree.file("large", vec![b'a'; 1_000_000]);
        let context = context();
        let hashed = hash(&tree, "large", Algorithm::Sha256, &context).unwrap();
        assert_eq!(
            hashed.hex,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
        assert_eq!(context.cancel.done(), 1_000_000);
    }

    #[test]
    fn only_files_are_hashed() {
        let tree = Tree::new();
        tree.directory("dir")
            .fifo("pipe")
            .file("file", "")
            .link("out", "../outside/secret");
        for (path, kind) in [
            ("dir", ErrorKind::IsADirectory),
            ("", ErrorKind::IsADirectory),
            ("pipe", ErrorKind::NotAFile),
            ("none", ErrorKind::NotFound),
            ("out", ErrorKind::Outside),
        ] {
            let failure = hash(&tree, path, Algorithm::Sha1, &context()).unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}");
        }
        let failure = hash(&tree, "file", Algorithm::Sha1, &cancelled()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
    }
}
