//! Removes entries.

use super::{Change, EntryRef, Observers};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::{Part, PartKind};
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::quota::{self, Amount};
use crate::rights::Right;
use crate::syscall::{self, SysResult};

impl Change {
    /// Removes a file, a link or a special file; a link is removed itself.
    pub fn unlink(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if metadata.is_directory() {
            return Err(place.special(FileKind::Directory));
        }
        place.judge(Right::Remove)?;
        let failed = |errno| place.failed("unlink", errno);
        // An entry that was confirmed as removed must not come back after a crash.
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (observers, entry) = (place.root().observers(), (place.parent(), name));
        let path = || place.path();
        let plain = || syscall::unlink_unchecked(entry.0, entry.1);
        let unlink = || self.remove_kept(observers, (entry, &path), &plain);
        observers.take_away(entry, unlink).map_err(failed)?;
        sync.finish_change(|| place.given().to_owned())
    }

    /// Removes an empty directory.
    pub fn remove_empty_dir(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: place.given().to_owned(),
            });
        }
        place.judge(Right::Remove)?;
        let failed = |errno| place.failed("rmdir", errno);
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (observers, entry) = (place.root().observers(), (place.parent(), name));
        let path = || place.path();
        let plain = || syscall::remove_dir_unchecked(entry.0, entry.1);
        let remove = || self.remove_empty_kept(observers, (entry, &path), &plain);
        let removed = observers.take_away(entry, remove);
        removed.map_err(|errno| place.hiding(failed(errno)))?;
        sync.finish_change(|| place.given().to_owned())
    }

    /// Removes a directory with everything in it in one step by moving it into the root's history; `false` if that
    /// cannot be done here, and nothing has happened.
    pub fn remove_whole(&self, place: &Located<'_>, stop: &dyn Fn() -> bool) -> Result<bool> {
        let (name, ..) = place.entry()?;
        place.judge(Right::Remove)?;
        let observers = place.root().observers();
        if observers.history.is_none() {
            return Ok(false);
        }
        place.check_whole(None, stop)?;
        let weight = match &observers.quota {
            Some(_) => quota::measure(place.open_dir()?, true, stop)?.plus(Amount::ENTRY),
            None => Amount::default(),
        };
        let failed = |errno| place.failed("rename", errno);
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (entry, path) = ((place.parent(), name), || place.path());
        let removed = self.remove_tree_kept(observers, (entry, &path));
        if !removed.map_err(failed)? {
            return Ok(false);
        }
        observers.moved_away(weight);
        sync.finish_change(|| place.given().to_owned())?;
        Ok(true)
    }

    /// Records that something is removed entry by entry, and so cannot be undone.
    pub fn note_lost(&self, place: &Located<'_>) -> Result<()> {
        let part = || Part {
            lost: true,
            ..Part::new(PartKind::Remove, place.path())
        };
        let noted = self.with_more_parts().note(place.root().observers(), part);
        noted
            .map(drop)
            .map_err(|errno| place.failed("unlink", errno))
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
