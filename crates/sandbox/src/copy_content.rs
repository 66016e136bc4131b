//! Copies content between open files: by shared blocks if the file system can, else in the kernel, else through a buffer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::open_file::OpenFile;
use crate::replace::Staged;
use crate::syscall::{self, Errno};

/// How much is copied between two checks of `stop`.
const COPY_STEP: usize = 8 * 1024 * 1024;
const COPY_BUFFER: usize = 256 * 1024;

/// Remembers whether files can share their blocks: one refusal is enough for all files of a tree.
#[derive(Debug, Default)]
pub struct Sharing {
    refused: AtomicBool,
}

impl Sharing {
    /// Lets an empty file share the blocks of another.
    fn share(&self, from: &File, to: &File) -> bool {
        if self.refused.load(Ordering::Relaxed) {
            return false;
        }
        let shared = syscall::clone_unchecked(from.as_fd(), to.as_fd()).is_ok();
        self.refused.store(!shared, Ordering::Relaxed);
        shared
    }
}

/// Copies content into an empty file and returns the number of bytes.
///
/// The files share blocks if the file system can do that; otherwise the kernel copies, or a buffer does.
pub fn copy_content(
    from: &OpenFile,
    to: &Staged,
    sharing: &Sharing,
    stop: &dyn Fn() -> bool,
    advance: &dyn Fn(u64),
) -> Result<u64> {
    let (size, to) = (from.metadata.size, to.file());
    if size > 0 && sharing.share(&from.file, to) {
        // This includes what was appended since the file was opened.
        let size = to.metadata().map_or(size, |metadata| metadata.len());
        advance(size);
        return Ok(size);
    }
    copy_pieces(&from.file, to, size, stop, advance)
}

/// Copies a part of one file to the write position of another, in the kernel if it can; stops at the end of `from`.
///
/// Moves the read position of `from`, so that must be the caller's own.
pub fn copy_part(
    from: &OpenFile,
    to: &Staged,
    range: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let (mut from, to) = (&from.file, to.file());
    from.seek(SeekFrom::Start(range.start)).map_err(failed)?;
    let length = range.end.saturating_sub(range.start);
    let mut copied = 0;
    while copied < length {
        if stop() {
            return Err(Error::Stopped);
        }
        let most = usize::try_from(length - copied).map_or(COPY_STEP, |left| left.min(COPY_STEP));
        match syscall::copy_range_unchecked(from.as_fd(), to.as_fd(), most) {
            Ok(0) => break,
            Ok(step) => copied += step as u64,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) if cannot_copy(errno) => {
                let rest = from.take(length - copied);
                return copy_by_buffer(rest, to, stop, &|_| {}).map(|rest| copied + rest);
            }
            Err(errno) => return Err(Error::from_errno("copy", "", errno)),
        }
    }
    Ok(copied)
}

/// The kernel does not copy between these two files.
fn cannot_copy(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM
    )
}

fn copy_pieces(
    from: &File,
    to: &File,
    size: u64,
    stop: &dyn Fn() -> bool,
    advance: &dyn Fn(u64),
) -> Result<u64> {
    let mut copied = 0;
    loop {
        if stop() {
            return Err(Error::Stopped);
        }
        let step = match syscall::copy_range_unchecked(from.as_fd(), to.as_fd(), COPY_STEP) {
            Ok(step) => step,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(errno) if cannot_copy(errno) => {
                return copy_by_buffer(from, to, stop, advance).map(|rest| copied + rest);
            }
            Err(errno) => return Err(Error::from_errno("copy", "", errno)),
        };
        if step == 0 && copied == 0 {
            // Some files report size 0 and have content, so reading decides.
            return copy_by_buffer(from, to, stop, advance);
        }
        if step == 0 {
            return Ok(copied);
        }
        copied += step as u64;
        advance(step as u64);
        // A small file is copied by one call; what is appended meanwhile is left out.
        if copied == size && size < COPY_STEP as u64 {
            return Ok(copied);
        }
    }
}

fn copy_by_buffer(
    mut from: impl Read,
    mut to: &File,
    stop: &dyn Fn() -> bool,
    advance: &dyn Fn(u64),
) -> Result<u64> {
    let mut buffer = vec![0; COPY_BUFFER];
    let mut copied = 0;
    loop {
        if stop() {
            return Err(Error::Stopped);
        }
        let step = from.read(&mut buffer).map_err(failed)?;
        let Some(piece) = buffer.get(..step).filter(|piece| !piece.is_empty()) else {
            return Ok(copied);
        };
        to.write_all(piece).map_err(failed)?;
        copied += step as u64;
        advance(step as u64);
    }
}

pub(crate) fn failed(error: std::io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(errno) => Error::from_errno("copy", "", errno),
        None => Error::Io {
            operation: "copy",
            path: String::new(),
            source: error,
        },
    }
}
