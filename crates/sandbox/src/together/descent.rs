//! Locks a place by the directories above it and by itself, from the top of its root down.
//!
//! Directories above are locked together with others, the end alone. Each is looked at once more under its name after it is
//! locked, with its parent locked already: so at the end the whole way is what it was.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{ChangePlace, Extent, FileId, HeldPlaces, RootLocks, id_of};
use crate::metadata::FileKind;
use crate::name::Name;
use crate::syscall::{self, Errno, HowLocked, Purpose, SysResult};

/// The result of a step down.
enum Step {
    /// The directory that is kept at this index.
    Into(usize),
    /// There is no such directory.
    Missing,
    /// Another process holds a lock, or has just changed it.
    Busy,
}

impl HeldPlaces {
    /// Locks a place and returns what is there; `None` if another process holds a conflicting lock.
    pub(super) fn descend(
        &mut self,
        locks: &RootLocks,
        place: &ChangePlace,
        extent: Extent,
    ) -> SysResult<Option<Option<FileId>>> {
        let names = place.names();
        let how = match (extent, names.is_empty()) {
            (Extent::Tree, true) => HowLocked::Exclusive,
            _ => HowLocked::Shared,
        };
        let top = syscall::reopen_dir_unchecked(locks.top.as_fd())?;
        let id = id_of(&syscall::stat_content_unchecked(top.as_fd())?);
        let Some(mut at) = self.keep(top, id, how)? else {
            return Ok(None);
        };
        let Some((last, above)) = names.split_last() else {
            return Ok(Some(None));
        };
        for name in above {
            match self.step(at, name)? {
                Step::Into(below) => at = below,
                Step::Missing => return Ok(Some(None)),
                Step::Busy => return Ok(None),
            }
        }
        self.lock_end(at, last, extent, locks.by_proc)
    }

    fn step(&mut self, at: usize, name: &Name) -> SysResult<Step> {
        let Some(dir) = self.dir(at) else {
            return Ok(Step::Missing);
        };
        let below = match syscall::open_dir_unchecked(dir, name) {
            // It cannot be locked, but may be passed.
            Err(Errno::ACCESS) => syscall::look_dir_unchecked(dir, name),
            opened => opened,
        };
        let below = match below {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Step::Missing),
            opened => opened?,
        };
        let id = id_of(&syscall::stat_content_unchecked(below.as_fd())?);
        match self.keep(below, id, HowLocked::Shared)? {
            Some(index) if self.is_at(at, name, id) => Ok(Step::Into(index)),
            _ => Ok(Step::Busy),
        }
    }

    /// Locks what is at the end of the way: a file alone, a directory alone if all below it is meant.
    fn lock_end(
        &mut self,
        at: usize,
        name: &Name,
        extent: Extent,
        by_proc: bool,
    ) -> SysResult<Option<Option<FileId>>> {
        let Some(dir) = self.dir(at) else {
            return Ok(Some(None));
        };
        let entry = match syscall::look_unchecked(dir, name) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Some(None)),
            found => found?,
        };
        let metadata = syscall::stat_content_unchecked(entry.as_fd())?;
        let id = id_of(&metadata);
        let (open, how) = match (metadata.kind, extent) {
            (FileKind::Directory, Extent::Tree) => {
                let open = lockable(syscall::open_dir_unchecked(dir, name))?;
                (open, HowLocked::Exclusive)
            }
            (FileKind::File, _) => {
                let purposes = [Purpose::Read, Purpose::Write];
                (
                    open_content(dir, name, &entry, by_proc, &purposes)?,
                    HowLocked::Exclusive,
                )
            }
            _ => (None, HowLocked::Shared),
        };
        let Some(open) = open else {
            return Ok(Some(Some(id)));
        };
        match self.keep(open, id, how)? {
            Some(_) if self.is_at(at, name, id) => Ok(Some(Some(id))),
            _ => Ok(None),
        }
    }

    fn dir(&self, at: usize) -> Option<BorrowedFd<'_>> {
        self.open.get(at).map(|held| held.file.as_fd())
    }

    /// Tells whether a name still leads to what was opened.
    fn is_at(&self, at: usize, name: &Name, id: FileId) -> bool {
        let now = self
            .dir(at)
            .map(|dir| syscall::stat_at_unchecked(dir, name));
        now.is_some_and(|now| now.is_ok_and(|now| id_of(&now) == id))
    }
}

/// Opens a regular file that was looked at, for the first purpose that the process may open it for.
///
/// Security: opening a device can act, so callers know that it is a file; without `/proc` the name is opened again, never
/// followed, and whoever locks it compares what it is.
pub(super) fn open_content(
    dir: BorrowedFd<'_>,
    name: &Name,
    entry: &OwnedFd,
    by_proc: bool,
    purposes: &[Purpose],
) -> SysResult<Option<OwnedFd>> {
    for purpose in purposes {
        let by_inode = by_proc.then(|| syscall::reopen_content_unchecked(entry.as_fd(), *purpose));
        let opened = by_inode
            .flatten()
            .unwrap_or_else(|| syscall::open_content_unchecked(dir, name, *purpose));
        if let Some(open) = lockable(opened)? {
            return Ok(Some(open));
        }
    }
    Ok(None)
}

/// Opens an entry to lock it; `None` if the process may not open it, which need not prevent a change.
fn lockable(opened: SysResult<OwnedFd>) -> SysResult<Option<OwnedFd>> {
    match opened {
        Err(Errno::NOENT | Errno::STALE) => Err(Errno::STALE),
        Err(errno @ (Errno::MFILE | Errno::NFILE)) => Err(errno),
        opened => Ok(opened.ok()),
    }
}
