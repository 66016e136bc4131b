//! The state of an entry when it is kept or created, so that a later look can tell whether it is still the same.

use std::os::fd::{AsFd, BorrowedFd};

use super::record::{Stamp, content_hash};
use crate::change::EntryRef;
use crate::metadata::{FileKind, Metadata};
use crate::syscall::{self, Purpose};

/// The largest file whose content is hashed when it comes.
const HASHED_MAX: u64 = 64 * 1024;

/// What an entry is, with its content if it is a small file that can be read.
pub(super) fn stamp_at((dir, name): EntryRef<'_>, metadata: &Metadata) -> Stamp {
    let is_small = metadata.kind == FileKind::File && metadata.size <= HASHED_MAX;
    let file = is_small.then(|| syscall::open_content_unchecked(dir, name, Purpose::Read));
    match file {
        Some(Ok(file)) => stamp_of(file.as_fd(), metadata),
        _ => Stamp::of(metadata),
    }
}

/// What an open file is, with its content if it is small and can be read.
pub(super) fn stamp_of(file: BorrowedFd<'_>, metadata: &Metadata) -> Stamp {
    let is_small = metadata.kind == FileKind::File && metadata.size <= HASHED_MAX;
    let content = is_small.then(|| {
        let mut bytes = vec![0; metadata.size as usize];
        let mut length = 0;
        while let Some(free) = bytes.get_mut(length..).filter(|free| !free.is_empty()) {
            match syscall::read_at_unchecked(file, free, length as u64) {
                Ok(0) | Err(_) => return None,
                Ok(read) => length += read,
            }
        }
        Some(content_hash(&bytes))
    });
    Stamp {
        content: content.flatten(),
        ..Stamp::of(metadata)
    }
}
