//! Copies content between open files: by shared blocks if the file system can, else in the kernel, else through a buffer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::open_file::OpenFile;
use crate::replace::Staged;
use crate::syscall::{self, Errno, SysResult};

/// The most that one step copies.
const COPY_STEP: usize = 2 * 1024 * 1024;
const COPY_BUFFER: usize = 256 * 1024;
/// The smallest file that is looked at for holes.
const LEAST_SPARSE: u64 = 32 * 1024;

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
/// a step. Holes stay holes. A copy moves the positions of both files. Give every step the same two.
#[derive(Debug, Default)]
pub struct ContentCopy {
    copied: u64,
    method: CopyMethod,
    holes: Holes,
}

/// What is known of the holes of a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Holes {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// There are none that would be worth it.
    None,
    /// The data at the read position ends here.
    DataUntil(u64),
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
        if self.holes == Holes::Unknown && !matches!(self.method, CopyMethod::Finished) {
            self.look_for_holes(&from.file, size);
        }
        let step = match &mut self.method {
            CopyMethod::Untried if size > 0 && sharing.share(&from.file, to) => {
                self.method = CopyMethod::Finished;
                // This includes what was appended since the file was opened.
                to.metadata().map_or(size, |metadata| metadata.len())
            }
            CopyMethod::Finished => 0,
            _ if matches!(self.holes, Holes::DataUntil(_)) => {
                self.sparse_step(&from.file, to, size)?
            }
            CopyMethod::Untried | CopyMethod::Kernel => {
                self.kernel_step(&from.file, to, size, COPY_STEP)?
            }
            CopyMethod::Buffer(buffer) => buffer_step(&from.file, to, buffer)?,
        };
        self.copied += step;
        if step == 0 {
            self.method = CopyMethod::Finished;
            return Ok(CopyStep::Finished);
        }
        Ok(CopyStep::Copied(step))
    }

    /// Small files are not looked at: they have no hole worth a system call.
    fn look_for_holes(&mut self, from: &File, size: u64) {
        self.holes = Holes::None;
        if size < LEAST_SPARSE {
            return;
        }
        let first_hole = syscall::seek_hole_unchecked(from.as_fd(), 0);
        if first_hole.is_ok_and(|hole| hole < size) {
            self.holes = Holes::DataUntil(0);
        }
        let mut from = from;
        // If this fails, so does the copy.
        let _ = from.seek(SeekFrom::Start(0));
    }

    /// Copies the next piece of data, and leaves out the hole before it; 0 at the end.
    fn sparse_step(&mut self, mut from: &File, mut to: &File, size: u64) -> Result<u64> {
        let failed_at = |errno| Error::from_errno("copy", "", errno);
        let mut position = from.stream_position().map_err(failed)?;
        let mut end = match self.holes {
            Holes::DataUntil(end) => end,
            Holes::Unknown | Holes::None => size,
        };
        if position >= end {
            let data = syscall::seek_data_unchecked(from.as_fd(), position).map_err(failed_at)?;
            let Some(data) = data else {
                return self.end_with_hole(to, size);
            };
            end = syscall::seek_hole_unchecked(from.as_fd(), data).map_err(failed_at)?;
            position = from.seek(SeekFrom::Start(data)).map_err(failed)?;
            to.seek(SeekFrom::Start(data)).map_err(failed)?;
            self.holes = Holes::DataUntil(end);
        }
        let left = end.saturating_sub(position);
        let most = usize::try_from(left).map_or(COPY_STEP, |left| left.min(COPY_STEP));
        let step = match &mut self.method {
            CopyMethod::Buffer(buffer) => {
                let most = most.min(buffer.len());
                buffer_step(from, to, buffer.get_mut(..most).unwrap_or_default())?
            }
            _ => self.kernel_step(from, to, u64::MAX, most)?,
        };
        if step == 0 {
            return self.end_with_hole(to, size);
        }
        Ok(step)
    }

    /// Gives the copy the hole at the end of its source. All that is no data counts as copied.
    fn end_with_hole(&mut self, to: &File, size: u64) -> Result<u64> {
        let length = to.metadata().map_err(failed)?.len().max(size);
        to.set_len(length).map_err(failed)?;
        self.copied = length;
        Ok(0)
    }

    fn kernel_step(&mut self, from: &File, to: &File, size: u64, most: usize) -> Result<u64> {
        match copy_range(from, to, most) {
            // Some files report size 0 and have content, so reading decides.
            Ok(0) if self.copied == 0 => self.change_to_buffer(from, to, most),
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
            Err(errno) if cannot_copy(errno) => self.change_to_buffer(from, to, most),
            Err(errno) => Err(Error::from_errno("copy", "", errno)),
        }
    }

    fn change_to_buffer(&mut self, from: &File, to: &File, most: usize) -> Result<u64> {
        let mut buffer = vec![0; COPY_BUFFER];
        let most = most.min(COPY_BUFFER);
        let step = buffer_step(from, to, buffer.get_mut(..most).unwrap_or_default())?;
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

/// Lets the kernel copy, again if it was interrupted.
fn copy_range(from: &File, to: &File, most: usize) -> SysResult<usize> {
    loop {
        match syscall::copy_range_unchecked(from.as_fd(), to.as_fd(), most) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            step => return step,
        }
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;
    use crate::Root;
    use crate::tests::support::{locate, stage};

    fn copied(root: &Root, from: &str, to: &str) -> u64 {
        let source = locate(root, from).unwrap().open_file().unwrap();
        let staged = stage(&locate(root, to).unwrap()).unwrap();
        let sharing = Sharing::default();
        sharing.refused.store(true, Ordering::Relaxed);
        let mut copy = ContentCopy::default();
        while copy.step(&source, &staged, &sharing).unwrap() != CopyStep::Finished {}
        staged.publish().unwrap();
        copy.copied()
    }

    #[test]
    fn holes_stay_holes() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let path = |name: &str| temp.path().join(name);
        for (name, data) in [
            ("empty", &[][..]),
            ("begin", &[0]),
            ("middle", &[5 << 20, 9 << 20]),
            ("end", &[(16 << 20) - 5]),
        ] {
            let file = File::create(path(name)).unwrap();
            file.set_len(16 << 20).unwrap();
            for position in data {
                file.write_all_at(b"data!", *position).unwrap();
            }
            let to = format!("{name}-copy");
            assert_eq!(copied(&root, name, &to), 16 << 20, "{name}");
            let read = |name: &str| std::fs::read(path(name)).unwrap();
            assert!(read(name) == read(&to), "{name}");
            let blocks = std::fs::metadata(path(&to)).unwrap().blocks();
            assert!(blocks * 512 < 1 << 20, "{name} takes {blocks} blocks");
        }
    }
}
