//! Opens the content of files: regular files only, and their kind is checked before they are opened.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use crate::error::{Error, Result};
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::root::Located;
use crate::syscall::{self, Errno, Purpose, SysResult};

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
    if crate::planted_fault::planted(crate::planted_fault::PlantedFault::ReopenByName) {
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
