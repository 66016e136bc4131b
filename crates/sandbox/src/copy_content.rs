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

/// The most that one step copies.
const COPY_STEP: usize = 2 * 1024 * 1024;
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

/// A copy of a whole content into an empty file, step by step.
///
/// The files share blocks if the file system can do that; otherwise the kernel copies, or a buffer does, at most 2 MiB in
/// a step. A copy moves the positions of both files. Give every step the same two.
#[derive(Debug, Default)]
pub struct ContentCopy {
    copied: u64,
    method: CopyMethod,
}

/// What one step of a copy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// It copied this many bytes.
    Copied(u64),
    /// Everything was copied before.
    Finished,
}

#[derive(Debug, Default)]
enum CopyMethod {
    /// Nothing was tried yet.
    #[default]
    Untried,
    Kernel,
    Buffer(Vec<u8>),
    /// Nothing is left.
    Finished,
}

impl ContentCopy {
    /// The bytes copied so far.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Copies the next piece.
    pub fn step(&mut self, from: &OpenFile, to: &Staged, sharing: &Sharing) -> Result<CopyStep> {
        let (size, to) = (from.metadata.size, to.file());
        let step = match &mut self.method {
            CopyMethod::Untried if size > 0 && sharing.share(&from.file, to) => {
                self.method = CopyMethod::Finished;
                // This includes what was appended since the file was opened.
                to.metadata().map_or(size, |metadata| metadata.len())
            }
            CopyMethod::Untried | CopyMethod::Kernel => self.kernel_step(&from.file, to, size)?,
            CopyMethod::Buffer(buffer) => buffer_step(&from.file, to, buffer)?,
            CopyMethod::Finished => 0,
        };
        self.copied += step;
        if step == 0 {
            self.method = CopyMethod::Finished;
            return Ok(CopyStep::Finished);
        }
        Ok(CopyStep::Copied(step))
    }

    fn kernel_step(&mut self, from: &File, to: &File, size: u64) -> Result<u64> {
        let step = loop {
            match syscall::copy_range_unchecked(from.as_fd(), to.as_fd(), COPY_STEP) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                step => break step,
            }
        };
        match step {
            // Some files report size 0 and have content, so reading decides.
            Ok(0) if self.copied == 0 => self.change_to_buffer(from, to),
            Ok(step) => {
                // A small file is copied by one call; what is appended meanwhile is left out.
                let is_whole = self.copied + step as u64 == size && size < COPY_STEP as u64;
                self.method = if is_whole {
                    CopyMethod::Finished
                } else {
                    CopyMethod::Kernel
                };
                Ok(step as u64)
            }
            Err(errno) if cannot_copy(errno) => self.change_to_buffer(from, to),
            Err(errno) => Err(Error::from_errno("copy", "", errno)),
        }
    }

    fn change_to_buffer(&mut self, from: &File, to: &File) -> Result<u64> {
        let mut buffer = vec![0; COPY_BUFFER];
        let step = buffer_step(from, to, &mut buffer)?;
        self.method = CopyMethod::Buffer(buffer);
        Ok(step)
    }
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
                return copy_by_buffer(rest, to, stop).map(|rest| copied + rest);
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

fn copy_by_buffer(mut from: impl Read, to: &File, stop: &dyn Fn() -> bool) -> Result<u64> {
    let mut buffer = vec![0; COPY_BUFFER];
    let mut copied = 0;
    loop {
        if stop() {
            return Err(Error::Stopped);
        }
        match buffer_step(&mut from, to, &mut buffer)? {
            0 => return Ok(copied),
            step => copied += step,
        }
    }
}

/// Copies what one read gives; 0 at the end.
fn buffer_step(mut from: impl Read, mut to: &File, buffer: &mut [u8]) -> Result<u64> {
    let step = from.read(buffer).map_err(failed)?;
    to.write_all(buffer.get(..step).unwrap_or_default())
        .map_err(failed)?;
    Ok(step as u64)
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
