//! What an append added, in the form of its record: hashes up to the positions at which a write may stop.

use std::fs::File;

use sha2::{Digest, Sha256};

use super::record::{Tail, hex};
use super::undo_ends::read_tail;
use crate::syscall::SysResult;

/// How many hashes of an append are kept at most, for its repair after a crash.
const TAIL_HASHES: u64 = 64;
/// The least distance of the positions up to which an append is hashed: writes stop at pages.
const PAGE: u64 = 4096;

/// What an append adds, with hashes up to the positions at which a write may stop.
pub(crate) fn tail_of(at: u64, bytes: &[u8]) -> Tail {
    let length = bytes.len() as u64;
    let step = (length / TAIL_HASHES + 1).next_multiple_of(PAGE);
    Tail {
        at,
        length,
        step,
        hashes: hashes(at, bytes, step),
    }
}

/// The hashes of what is before each multiple of `step` in the file, and of all of it.
fn hashes(at: u64, bytes: &[u8], step: u64) -> Vec<String> {
    let mut hasher = Sha256::new();
    let mut hashes = Vec::new();
    let mut rest = bytes;
    let mut position = at;
    while !rest.is_empty() {
        let to_stop = usize::try_from(step - position % step).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(to_stop.min(rest.len()));
        hasher.update(piece);
        hashes.push(hex(&hasher.clone().finalize()));
        position += piece.len() as u64;
        rest = behind;
    }
    hashes
}

/// Tells whether what is behind the old end of a file is the beginning of what an append added.
pub(super) fn begins_as(file: &File, tail: &Tail, size: u64) -> SysResult<bool> {
    let part = Tail {
        length: size - tail.at,
        ..tail.clone()
    };
    let bytes = read_tail(file, &part)?;
    let found = hashes(tail.at, &bytes, tail.step);
    Ok(tail.hashes.get(..found.len()) == Some(found.as_slice()))
}
