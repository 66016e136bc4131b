//! Every change to files: a [`Change`] stands for what one call does, and no other crate can change a file without one.
//!
//! A change acts on an open directory and a name in it, and follows no link. It decides whether a part is on disk before
//! the part is confirmed, and tells the [`Observers`] of the root about every entry that comes, goes or grows.

mod append;
mod observers;
mod rename;

use std::os::fd::{AsFd, BorrowedFd};

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::quota::Amount;
use crate::resolve::Tail;
use crate::syscall::{self, Errno, SysResult};

pub(crate) use observers::Observers;
pub(crate) use rename::rename_entry;

/// A name in an open directory.
pub(crate) type EntryRef<'a> = (BorrowedFd<'a>, &'a Name);

/// Whether a change is on disk before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and directory are synced first.
    #[default]
    Fsync,
    /// The system decides when to write; a crash of the machine may lose the newest changes.
    Fast,
}

/// What to do if something is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Leave it and fail, even if it appears at the last moment.
    Fail,
    /// Replace it.
    Replace,
}

/// What to do if parent directories are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// Make them.
    Create,
    /// Fail.
    Require,
}

/// What one call changes, in one root or in several.
///
/// A call begins one and makes every part of its work through it.
#[derive(Debug, Clone)]
pub struct Change {
    durability: Durability,
}

impl Change {
    /// Begins the change of a call.
    #[must_use]
    pub fn begin(durability: Durability) -> Change {
        Change { durability }
    }

    /// The same change for parts that must be on disk whatever the call's durability is.
    #[must_use]
    pub fn synced(&self) -> Change {
        Change {
            durability: Durability::Fsync,
        }
    }

    /// The same change for the parts of a tree: [`Change::sync_tree`] of the whole change syncs them all at once.
    #[must_use]
    pub fn unsynced(&self) -> Change {
        Change {
            durability: Durability::Fast,
        }
    }

    /// Writes a finished tree to disk, with everything else on its file system.
    pub fn sync_tree(&self, top: &Dir) -> Result<()> {
        self.sync_with(|| syscall::sync_filesystem_unchecked(top.fd()))
            .map_err(|errno| Error::from_errno("sync", top.path(), errno))
    }

    /// Writes a file's content to disk, if this change is durable.
    pub(crate) fn sync_file(&self, file: BorrowedFd<'_>) -> SysResult<()> {
        self.sync_with(|| syscall::sync_unchecked(file))
    }

    /// Writes a directory's entries to disk, if this change is durable.
    pub(crate) fn sync_dir(&self, dir: BorrowedFd<'_>) -> SysResult<()> {
        self.sync_with(|| match syscall::reopen_dir_unchecked(dir) {
            Ok(readable) => syscall::sync_unchecked(readable.as_fd()),
            // A directory that may be written but not read cannot be synced by us.
            Err(Errno::ACCESS) => Ok(()),
            Err(errno) => Err(errno),
        })
    }

    fn sync_with(&self, sync: impl FnOnce() -> SysResult<()>) -> SysResult<()> {
        match self.durability {
            Durability::Fsync => sync(),
            Durability::Fast => Ok(()),
        }
    }
}

/// Directories and links.
impl Change {
    /// Makes a directory and its missing parents; returns how many are new.
    pub fn make_dirs(&self, place: &Located<'_>) -> Result<u64> {
        let Some(made) = self.make_dirs_for_now(place)? else {
            return Ok(0);
        };
        let created = made.created();
        made.keep();
        Ok(created)
    }

    /// Makes a directory and its missing parents, which are removed again unless they are kept; `None` if it exists.
    pub fn make_dirs_for_now(&self, place: &Located<'_>) -> Result<Option<NewDirs>> {
        match place.tail() {
            Tail::Root => Ok(None),
            Tail::Existing { metadata, .. } if metadata.is_directory() => Ok(None),
            Tail::Existing { .. } => Err(place.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } => NewDirs::make(self, place, names).map(Some),
        }
    }

    /// Makes a directory whose parent exists.
    pub fn make_dir(&self, place: &Located<'_>) -> Result<()> {
        match place.tail() {
            Tail::Root | Tail::Existing { .. } => Err(place.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } if names.len() > 1 => Err(place.not_found(names)),
            Tail::Missing { .. } => match self.make_dirs(place)? {
                0 => Err(place.failed("mkdir", Errno::EXIST)),
                _ => Ok(()),
            },
        }
    }

    /// Makes a directory in an open one, and opens it.
    pub fn make_dir_in(&self, dir: &Dir, name: &Name, mode: u32) -> Result<Dir> {
        self.add_entry("mkdir", dir, name, || {
            syscall::make_dir_unchecked(dir.fd(), name, mode & 0o777)
        })?;
        dir.open_dir(name)
    }

    /// Makes a link with the given text in an open directory.
    pub fn make_link_in(&self, dir: &Dir, name: &Name, target: &[u8]) -> Result<()> {
        self.add_entry("symlink", dir, name, || {
            syscall::make_link_unchecked(dir.fd(), name, target)
        })
    }

    fn add_entry(
        &self,
        operation: &'static str,
        dir: &Dir,
        name: &Name,
        make: impl FnOnce() -> SysResult<()>,
    ) -> Result<()> {
        let entry = (dir.fd(), name);
        let made =
            dir.observers()
                .put(entry, &|| dir.join(name), || Ok(Amount::ENTRY), None, make)?;
        made.and_then(|()| self.sync_dir(dir.fd()))
            .map_err(|errno| dir.failed(operation, name, errno))
    }

    /// Makes the missing parents of a new entry if they are wanted; returns them and the entry's name.
    pub(crate) fn ready_parent<'place>(
        &self,
        place: &'place Located<'_>,
        parents: Parents,
    ) -> Result<(Option<NewDirs>, &'place Name)> {
        match place.tail() {
            Tail::Root => Err(Error::RootProtected),
            Tail::Existing { name, .. } => Ok((None, name)),
            Tail::Missing { names, .. } => match names.split_last() {
                Some((last, [])) => Ok((None, last)),
                Some((last, before)) if parents == Parents::Create => {
                    Ok((Some(NewDirs::make(self, place, before)?), last))
                }
                _ => Err(place.not_found(names)),
            },
        }
    }
}

/// Removal.
impl Change {
    /// Removes a file, a link or a special file; a link is removed itself.
    pub fn unlink(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if metadata.is_directory() {
            return Err(place.special(FileKind::Directory));
        }
        unlink_entry(place.root().observers(), (place.parent(), name))
            .map_err(|errno| place.failed("unlink", errno))
    }

    /// Removes an empty directory.
    pub fn remove_empty_dir(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: place.given().to_owned(),
            });
        }
        remove_dir_entry(place.root().observers(), (place.parent(), name))
            .map_err(|errno| place.failed("rmdir", errno))
    }

    pub(crate) fn unlink_in(&self, dir: &Dir, name: &Name) -> SysResult<()> {
        unlink_entry(dir.observers(), (dir.fd(), name))
    }

    pub(crate) fn remove_dir_in(&self, dir: &Dir, name: &Name) -> SysResult<()> {
        remove_dir_entry(dir.observers(), (dir.fd(), name))
    }
}

fn unlink_entry(observers: &Observers, entry: EntryRef<'_>) -> SysResult<()> {
    observers.take_away(entry, || syscall::unlink_unchecked(entry.0, entry.1))
}

pub(crate) fn remove_dir_entry(observers: &Observers, entry: EntryRef<'_>) -> SysResult<()> {
    observers.take_away(entry, || syscall::remove_dir_unchecked(entry.0, entry.1))
}
