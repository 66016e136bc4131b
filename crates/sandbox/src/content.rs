//! Opening content: regular files only, checked before they are opened, and copying it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::root::Located;
use crate::syscall::{self, Errno, Purpose, SysResult};

/// How much is copied between two looks at the caller's patience.
const COPY_STEP: usize = 8 * 1024 * 1024;
const COPY_BUFFER: usize = 256 * 1024;

/// A regular file, open.
#[derive(Debug)]
pub struct OpenFile {
    /// The descriptor.
    pub file: File,
    /// What was known of it when it was opened; its birth time may be left out.
    pub metadata: Metadata,
    /// Its resolved path inside the root as clients see it.
    pub path: String,
}

impl OpenFile {
    /// What is known of it by now, but for its birth time.
    pub fn current(&self) -> Result<Metadata> {
        syscall::stat_content_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("stat", &self.path, errno))
    }
}

/// Opens the content of a place for a purpose.
pub(crate) fn open(place: &Located<'_>, purpose: Purpose) -> Result<OpenFile> {
    let (name, fd, metadata) = match place.is_root() {
        true => {
            return Err(Error::IsADirectory {
                path: place.given().to_owned(),
            });
        }
        false => place.entry()?,
    };
    // Security: opening a device can act, so the kind is known before anything is opened.
    if metadata.kind != FileKind::File {
        return Err(place.special(metadata.kind));
    }
    let opened =
        reopen(place, name, fd, metadata, purpose).map_err(|errno| place.failed("open", errno))?;
    Ok(OpenFile {
        file: File::from(opened),
        metadata: *metadata,
        path: place.path(),
    })
}

/// Opens the very inode that was looked at, never whatever has its name by now.
fn reopen(
    place: &Located<'_>,
    name: &Name,
    entry: &OwnedFd,
    metadata: &Metadata,
    purpose: Purpose,
) -> SysResult<OwnedFd> {
    #[cfg(test)]
    if crate::fault::planted(crate::fault::Fault::ReopenByName) {
        return syscall::open_content_following_unchecked(place.parent(), name, purpose);
    }
    if place.root().uses_proc()
        && let Some(opened) = syscall::reopen_content_unchecked(entry.as_fd(), purpose)
    {
        return opened;
    }
    let opened = syscall::open_content_unchecked(place.parent(), name, purpose)?;
    // Security: without /proc the name is opened again; another inode means somebody swapped it.
    match syscall::stat_unchecked(opened.as_fd())?.same_file(metadata) {
        true => Ok(opened),
        false => Err(Errno::NOENT),
    }
}

/// Keeps a descriptor only where it is a regular file's. The path is made where it is not; the file has none yet.
pub(crate) fn regular_only(fd: OwnedFd, path: impl FnOnce() -> String) -> Result<OpenFile> {
    let metadata = match syscall::stat_content_unchecked(fd.as_fd()) {
        Ok(metadata) => metadata,
        Err(errno) => return Err(Error::from_errno("stat", &path(), errno)),
    };
    match metadata.kind {
        FileKind::File => Ok(OpenFile {
            file: File::from(fd),
            metadata,
            path: String::new(),
        }),
        FileKind::Directory => Err(Error::IsADirectory { path: path() }),
        kind => Err(Error::NotAFile { path: path(), kind }),
    }
}

/// Whether files can share their blocks, as far as it is known: one refusal tells for all files of a tree.
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

/// Copies content into an empty file: shared blocks where the file system can, else in the kernel, else
/// by reading and writing. Returns the bytes copied.
pub fn copy_content(
    from: &OpenFile,
    to: &File,
    sharing: &Sharing,
    stop: &dyn Fn() -> bool,
    advance: &dyn Fn(u64),
) -> Result<u64> {
    let size = from.metadata.size;
    if size > 0 && sharing.share(&from.file, to) {
        // All of it came, also what was appended since it was opened.
        let size = to.metadata().map_or(size, |metadata| metadata.len());
        advance(size);
        return Ok(size);
    }
    copy_pieces(&from.file, to, size, stop, advance)
}

/// Copies a part of one file to where another stands, in the kernel where that can; ends where `from` ends.
///
/// Moves the read position of `from`, so that must be the caller's own.
pub fn copy_part(
    mut from: &File,
    to: &File,
    range: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
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
            // Files that say they are empty and are not: what reading finds counts.
            return copy_by_buffer(from, to, stop, advance);
        }
        if step == 0 {
            return Ok(copied);
        }
        copied += step as u64;
        advance(step as u64);
        // A small file is copied by one call; whatever is appended meanwhile comes too late.
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
