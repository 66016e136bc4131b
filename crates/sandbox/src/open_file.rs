//! Opens the content of files: regular files only, and their kind is checked before they are opened.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use crate::error::{Error, Result};
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::syscall::{self, Errno, Purpose, SysResult};

/// A regular file, open. Callers can read it and nothing else: its descriptor stays in this crate.
#[derive(Debug)]
pub struct OpenFile {
    pub(crate) file: File,
    /// Its metadata when it was opened; the birth time may be missing.
    pub metadata: Metadata,
    /// Its resolved path inside the root as clients see it.
    pub path: String,
    /// The whole content, if it was read when the file was opened.
    content: Option<Vec<u8>>,
}

impl OpenFile {
    /// Takes a descriptor of a regular file.
    #[must_use]
    pub fn new(file: File, metadata: Metadata, path: String) -> OpenFile {
        OpenFile {
            file,
            metadata,
            path,
            content: None,
        }
    }

    /// Its current metadata, without the birth time.
    pub fn current(&self) -> Result<Metadata> {
        syscall::stat_content_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("stat", &self.path, errno))
    }

    /// Duplicates the descriptor, so that another thread can continue the work.
    pub fn again(&self) -> io::Result<OpenFile> {
        let file = self.file.try_clone()?;
        Ok(OpenFile::new(file, self.metadata, self.path.clone()))
    }

    /// Tells whether its file system is this machine's own, with times that move in steps of milliseconds.
    #[must_use]
    pub fn is_local(&self) -> bool {
        syscall::is_local_unchecked(self.file.as_fd())
    }

    /// Tells whether nobody has it open for writing, by a descriptor or a mapping; no also if the kernel does not say.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        syscall::is_unwritten_unchecked(self.file.as_fd())
    }

    /// Tells whether from now on its times show every change of its content: nobody has it open for writing, and its file
    /// system stamps what is stored through a mapping that is made later.
    #[must_use]
    pub fn is_stamping(&self) -> bool {
        let stamping = syscall::stamping_unchecked(self.file.as_fd());
        stamping.shows_content() && self.is_unwritten()
    }

    /// Reads once from `offset` on; 0 bytes are the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(content) = &self.content else {
            return Ok(syscall::read_at_unchecked(
                self.file.as_fd(),
                buffer,
                offset,
            )?);
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = content.get(start..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// The same file with other content in memory, such as its decompressed content; its size is then that of the
    /// content.
    #[must_use]
    pub fn with_content(mut self, content: Vec<u8>) -> OpenFile {
        self.metadata.size = content.len() as u64;
        self.content = Some(content);
        self
    }

    /// Tells whether its content is in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.content.is_some()
    }

    /// Reads all of it, if it is at most `most` bytes long and in memory, so that nothing is waited for.
    ///
    /// Tells whether it was read; then [`OpenFile::read_at`] needs no system call.
    pub fn try_load_inline(&mut self, most: usize) -> bool {
        let size = usize::try_from(self.metadata.size).unwrap_or(usize::MAX);
        if size <= most {
            self.content = syscall::read_cached_unchecked(self.file.as_fd(), size);
        }
        self.content.is_some()
    }

    /// Its first bytes, if it has more than these and they are in memory, so that nothing is waited for.
    #[must_use]
    pub fn try_beginning_inline(&self, length: usize) -> Option<Vec<u8>> {
        syscall::read_cached_beginning_unchecked(self.file.as_fd(), length)
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// A file that was opened for writing, and so may be replaced.
///
/// Security: a file that may not be written must not be replaced instead. This is the proof that it may.
#[derive(Debug)]
pub struct Replaceable(OpenFile);

impl Replaceable {
    /// The file as it is before it is replaced.
    #[must_use]
    pub fn open(&self) -> &OpenFile {
        &self.0
    }
}

impl Located<'_> {
    /// Opens a file to read it and then replace it.
    pub fn open_to_edit(&self) -> Result<Replaceable> {
        open_replaceable(self, Purpose::Edit)
    }

    /// Opens a file that will be replaced unread, which fails if it may not be written.
    pub fn open_to_replace(&self) -> Result<Replaceable> {
        open_replaceable(self, Purpose::Write)
    }
}

fn open_replaceable(place: &Located<'_>, purpose: Purpose) -> Result<Replaceable> {
    match open(place, purpose) {
        // A running program cannot be written in place, but it can be replaced.
        Err(Error::Io { source, .. }) if Errno::from_io_error(&source) == Some(Errno::TXTBSY) => {
            open(place, Purpose::Read).map(Replaceable)
        }
        opened => opened.map(Replaceable),
    }
}

/// Opens the content of a place for a purpose.
pub(crate) fn open(place: &Located<'_>, purpose: Purpose) -> Result<OpenFile> {
    if place.is_root() {
        return Err(Error::IsADirectory {
            path: place.given().to_owned(),
        });
    }
    let (name, fd, metadata) = place.entry()?;
    // Security: opening a device can act, so the kind is known before anything is opened.
    if metadata.kind != FileKind::File {
        return Err(place.special(metadata.kind));
    }
    let opened =
        reopen(place, name, fd, metadata, purpose).map_err(|errno| place.failed("open", errno))?;
    Ok(OpenFile::new(File::from(opened), *metadata, place.path()))
}

/// Opens the inode that was looked up, whatever has its name by now.
fn reopen(
    place: &Located<'_>,
    name: &Name,
    entry: &OwnedFd,
    metadata: &Metadata,
    purpose: Purpose,
) -> SysResult<OwnedFd> {
    #[cfg(test)]
    if crate::planted_fault::planted(crate::planted_fault::PlantedFault::ReopenByName) {
        return syscall::open_content_following_unchecked(place.parent(), name, purpose);
    }
    if place.root().uses_proc()
        && let Some(opened) = syscall::reopen_content_unchecked(entry.as_fd(), purpose)
    {
        return opened;
    }
    let opened = syscall::open_content_unchecked(place.parent(), name, purpose)?;
    // Security: without /proc the name is opened again; another inode means that it was swapped.
    if syscall::stat_unchecked(opened.as_fd())?.same_file(metadata) {
        Ok(opened)
    } else {
        Err(Errno::NOENT)
    }
}

/// Takes a descriptor if it is a regular file's. `path` is only asked for an error; the open file gets no path.
pub(crate) fn regular_only(fd: OwnedFd, path: impl FnOnce() -> String) -> Result<OpenFile> {
    let metadata = match syscall::stat_content_unchecked(fd.as_fd()) {
        Ok(metadata) => metadata,
        Err(errno) => return Err(Error::from_errno("stat", &path(), errno)),
    };
    match metadata.kind {
        FileKind::File => Ok(OpenFile::new(File::from(fd), metadata, String::new())),
        FileKind::Directory => Err(Error::IsADirectory { path: path() }),
        kind => Err(Error::NotAFile { path: path(), kind }),
    }
}
