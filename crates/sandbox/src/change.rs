//! Every change to files: a [`Change`] stands for what one call does, and no other crate can change a file without one.
//!
//! A change acts on an open directory and a name in it, and follows no link. It decides whether a part is on disk
//! before the part is confirmed, and tells the [`Observers`] of the root about every entry that is created, removed or
//! extended.

mod append;
mod make;
mod observers;
mod remove;
mod rename;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::{Author, CallChanges};
use crate::name::Name;
use crate::planted_fault::{PlantedFault, planted};
use crate::syscall::{self, Errno, SysResult};

pub(crate) use observers::{NewEntries, Observers};
pub(crate) use remove::remove_dir_entry;
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

/// The changes of one call, in one root or in several.
///
/// A call begins one and makes every part of its work through it.
#[derive(Debug, Clone)]
pub struct Change {
    durability: Durability,
    notes: ChangeNotes,
    /// Further parts follow, so that this one alone is not the whole change.
    has_more_parts: bool,
    /// It cannot be undone, whatever is kept of it.
    is_irrevocable: bool,
}

/// What a call learns about its change while making it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ChangeNotes(Arc<CallNotes>);

#[derive(Debug, Default)]
struct CallNotes {
    rewritten_in_place: AtomicBool,
    changes: CallChanges,
}

impl ChangeNotes {
    /// Notes for a call of this author.
    #[must_use]
    pub fn of(author: Author) -> ChangeNotes {
        ChangeNotes(Arc::new(CallNotes {
            changes: CallChanges::by(author),
            ..CallNotes::default()
        }))
    }

    /// Who makes the call.
    #[must_use]
    pub fn author(&self) -> &Author {
        self.0.changes.author()
    }

    /// The names of the changes that the call made, one for each root whose history is kept.
    #[must_use]
    pub fn change_ids(&self) -> Vec<String> {
        self.0.changes.ids()
    }

    /// Declares the change complete. After this, everything that the reply confirms is on disk, if it has to be.
    pub fn settle(&self) -> Result<()> {
        let settled = self.0.changes.settle();
        settled.map_err(|errno| Error::unsynced("the record of the change", errno))
    }

    /// Tells whether something was changed that cannot be undone.
    #[must_use]
    pub fn cannot_be_undone(&self) -> bool {
        self.0.changes.has_lost()
    }

    /// Tells whether a file was rewritten in place, because it is a mount point: that is not atomic.
    #[must_use]
    pub fn rewritten_in_place(&self) -> bool {
        self.0.rewritten_in_place.load(Ordering::Relaxed)
    }
}

impl Change {
    /// Begins the change of a call.
    #[must_use]
    pub fn begin(durability: Durability) -> Change {
        Change::begin_noting(durability, &ChangeNotes::default())
    }

    /// Begins the change of a call whose reply reports what is learned on the way.
    #[must_use]
    pub fn begin_noting(durability: Durability, notes: &ChangeNotes) -> Change {
        notes.0.changes.begin(durability);
        Change {
            durability,
            notes: notes.clone(),
            has_more_parts: false,
            is_irrevocable: false,
        }
    }

    /// The same change for parts that a history alone cannot take back, such as those of a move to another root.
    #[must_use]
    pub fn irrevocable(&self) -> Change {
        Change {
            is_irrevocable: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_irrevocable(&self) -> bool {
        self.is_irrevocable
    }

    /// The same change for a part that others follow: after a crash it is reverted unless they were made too.
    #[must_use]
    pub fn with_more_parts(&self) -> Change {
        Change {
            has_more_parts: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_last_part(&self) -> bool {
        !self.has_more_parts
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// What the call has recorded so far.
    pub(crate) fn recorder(&self) -> &CallChanges {
        &self.notes.0.changes
    }

    /// The same change for parts that must be on disk whatever the call's durability is.
    #[must_use]
    pub fn synced(&self) -> Change {
        self.notes.0.changes.begin(Durability::Fsync);
        Change {
            durability: Durability::Fsync,
            ..self.clone()
        }
    }

    /// The same change for the parts of a tree: [`Change::sync_tree`] of the whole change syncs them all at once.
    #[must_use]
    pub fn unsynced(&self) -> Change {
        Change {
            durability: Durability::Fast,
            ..self.clone()
        }
    }

    /// Writes a finished tree to disk, with everything else on its file system.
    pub fn sync_tree(&self, top: &Dir) -> Result<()> {
        self.sync_filesystem(top)
            .map_err(|errno| Error::from_errno("sync", top.path(), errno))
    }

    /// Writes a visible tree to disk; if that fails, the change is made nevertheless.
    pub fn sync_made_tree(&self, top: &Dir) -> Result<()> {
        self.sync_filesystem(top)
            .map_err(|errno| Error::unsynced(top.path(), errno))
    }

    fn sync_filesystem(&self, top: &Dir) -> SysResult<()> {
        self.sync_with(|| syscall::sync_filesystem_unchecked(top.fd()))
    }

    /// Writes a file's content to disk, if this change is durable.
    pub(crate) fn sync_file(&self, file: BorrowedFd<'_>) -> SysResult<()> {
        self.sync_with(|| syscall::sync_unchecked(file))
    }

    /// Opens a directory to write its entries to disk after a change, if this change is durable.
    ///
    /// Before the change, so that a process without descriptors fails before it has changed anything.
    pub(crate) fn prepare_sync(&self, dir: BorrowedFd<'_>) -> SysResult<DirSync> {
        if self.durability == Durability::Fast {
            return Ok(DirSync(None));
        }
        match syscall::reopen_dir_unchecked(dir) {
            Ok(readable) => Ok(DirSync(Some(readable))),
            // We cannot sync a directory that we may write but not read.
            Err(Errno::ACCESS) => Ok(DirSync(None)),
            Err(errno) => Err(errno),
        }
    }

    /// Writes a directory's entries to disk, if this change is durable.
    pub(crate) fn sync_dir(&self, dir: BorrowedFd<'_>) -> SysResult<()> {
        self.prepare_sync(dir)?.finish()
    }

    pub(crate) fn note_rewritten_in_place(&self) {
        let noted = &self.notes.0.rewritten_in_place;
        noted.store(true, Ordering::Relaxed);
    }

    fn sync_with(&self, sync: impl FnOnce() -> SysResult<()>) -> SysResult<()> {
        match self.durability {
            Durability::Fsync => sync(),
            Durability::Fast => Ok(()),
        }
    }
}

/// A directory that is synced once its change is made.
pub(crate) struct DirSync(Option<OwnedFd>);

impl DirSync {
    /// Writes the directory's entries to disk.
    pub(crate) fn finish(self) -> SysResult<()> {
        match self.0 {
            Some(_) if planted(PlantedFault::UnsyncedDirectories) => Err(Errno::IO),
            Some(dir) => syscall::sync_unchecked(dir.as_fd()),
            None => Ok(()),
        }
    }

    /// Writes the directory's entries to disk; if that fails, the change of `path` is made nevertheless.
    pub(crate) fn finish_change(self, path: impl FnOnce() -> String) -> Result<()> {
        self.finish()
            .map_err(|errno| Error::unsynced(&path(), errno))
    }
}
