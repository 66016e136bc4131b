//! Hashes a file's content without holding it.

use std::fmt::Write as _;

use md5::Md5;
use sandbox::OpenFile;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::content::read_at;
use crate::context::Context;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;

/// Fits the processor's first cache: larger buffers were measured slower.
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
        let (located, _) = self.place.existing_file(Wanted::File)?;
        let open = located.open_file()?;
        let (hex, size) = match self.algorithm {
            Algorithm::Md5 => digest::<Md5>(&open, context)?,
            Algorithm::Sha1 => digest::<Sha1>(&open, context)?,
            Algorithm::Sha256 => digest::<Sha256>(&open, context)?,
        };
        Ok(Hashed { path: open.path, algorithm: self.algorithm, hex, size })
    }
}

fn digest<D: Digest>(open: &OpenFile, context: &Context) -> Result<(String, u64)> {
    let mut hasher = D::new();
    let mut buffer = vec![0; BUFFER];
    let mut size = 0;
    loop {
        context.cancel.check()?;
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
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
