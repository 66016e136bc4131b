//! Undoes appends and cuts: what was added is cut off and kept, what was cut off is added again.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::record::{Part, PartKind, Stamp, Tail};
use super::store::errno_of;
use super::tail::tail_of;
use super::undo::Undoing;
use super::undo_fault::{InPlace, UndoFault, conflict, failed, gone, missing, refused};
use super::{History, Store};
use crate::change::Change;
use crate::metadata::Metadata;
use crate::quota::Amount;
use crate::syscall::{self, Errno, Purpose, SysResult};

impl Undoing<'_> {
    /// Undoes an append: the tail is kept, and the file ends where it did before.
    pub(super) fn cut(&self, part: &Part) -> Result<(), UndoFault> {
        let path = part.path.as_str();
        let tail = part.tail.as_ref().ok_or_else(|| gone(path))?;
        let (file, there) = self.open_appended(part, tail.at + tail.length)?;
        let added = read_tail(&file, tail).map_err(|errno| failed(path, errno))?;
        if tail_of(tail.at, &added).hashes != tail.hashes {
            return Err(conflict(path, InPlace::Changed));
        }
        let at = tail.at;
        let cut = self.change.cut_kept(
            self.history,
            self.store,
            (path, &there),
            &added,
            tail,
            || {
                let cut = file.set_len(at);
                cut.map_err(|error| errno_of(&error))?;
                set_modified(&file, part.old.as_ref())?;
                self.change.sync_file(file.as_fd())
            },
        );
        cut.map_err(|errno| failed(path, errno))?;
        self.root.observers().moved_away(bytes_of(tail));
        Ok(())
    }

    /// Adds again what was cut off.
    pub(super) fn append(&self, part: &Part) -> Result<(), UndoFault> {
        let path = part.path.as_str();
        let tail = part.tail.as_ref().ok_or_else(|| gone(path))?;
        let (file, there) = self.open_appended(part, tail.at)?;
        let object = self.object(part)?.ok_or_else(|| gone(path))?;
        let added = syscall::open_content_unchecked(self.store.objects(), &object, Purpose::Read);
        let added = added.map_err(|errno| failed(path, errno))?;
        let whole = Tail {
            at: 0,
            ..tail.clone()
        };
        let added = read_tail(&File::from(added), &whole).map_err(|errno| failed(path, errno))?;
        let again = || Part {
            old: Some(Stamp::of(&there)),
            tail: Some(tail_of(tail.at, &added)),
            ..Part::new(PartKind::Append, path.to_owned())
        };
        let observers = self.root.observers();
        let room = observers.reserve(bytes_of(tail), path);
        let room = room.map_err(|error| refused(path, error))?;
        // Room is not made here: what the undo still needs is not known.
        syscall::reserve_unchecked(file.as_fd(), tail.at, tail.length)
            .map_err(|errno| failed(path, errno))?;
        let appended = self.change.noted(observers, again, || {
            let written = file.write_all_at(&added, tail.at);
            let written = written.map_err(|error| errno_of(&error));
            written
                .and_then(|()| set_modified(&file, part.old.as_ref()))
                .and_then(|()| self.change.sync_file(file.as_fd()))
                .inspect_err(|_| {
                    // Recorded as not done, so nothing of it may stay.
                    let _ = file.set_len(tail.at);
                })
        });
        appended.map_err(|errno| failed(path, errno))?;
        if let Some(room) = room {
            room.settle(bytes_of(tail));
        }
        Ok(())
    }

    fn open_appended(&self, part: &Part, size: u64) -> Result<(File, Metadata), UndoFault> {
        let path = part.path.as_str();
        let spot = self.spot(path)?;
        let there = self.look(&spot, path)?.ok_or_else(|| missing(path))?;
        let is_same = |old: &Stamp| self.is_file_of(old, &Stamp::of(&there));
        if !part.old.as_ref().is_some_and(is_same) || there.size != size {
            return Err(conflict(path, InPlace::Changed));
        }
        let (dir, name) = self.entry(&spot);
        let file = syscall::open_content_unchecked(dir, name, Purpose::Edit);
        let file = File::from(file.map_err(|errno| failed(path, errno))?);
        Ok((file, there))
    }
}

/// What a tail takes of a quota.
fn bytes_of(tail: &Tail) -> Amount {
    Amount {
        bytes: tail.length,
        files: 0,
    }
}

/// Restores the modification time of a file, by which earlier changes recognize it.
pub(super) fn set_modified(file: &File, old: Option<&Stamp>) -> SysResult<()> {
    let Some(modified) = old.and_then(Stamp::modified) else {
        return Ok(());
    };
    let accessed = syscall::stat_unchecked(file.as_fd())?.accessed;
    syscall::set_times_unchecked(file.as_fd(), accessed, modified)
}

/// Reads the bytes of a tail.
pub(super) fn read_tail(file: &File, tail: &Tail) -> SysResult<Vec<u8>> {
    let length = usize::try_from(tail.length).map_err(|_| Errno::FBIG)?;
    let mut bytes = vec![0; length];
    let read = file.read_exact_at(&mut bytes, tail.at);
    read.map_err(|error| errno_of(&error))?;
    Ok(bytes)
}

impl Change {
    /// Keeps what is cut off a file's end, and cuts it off.
    fn cut_kept(
        &self,
        history: &Arc<History>,
        store: &Store,
        (path, there): (&str, &Metadata),
        added: &[u8],
        tail: &Tail,
        cut: impl FnOnce() -> SysResult<()>,
    ) -> SysResult<()> {
        let slot = self.recorder().slot(history, store)?;
        let object = File::from(syscall::create_unchecked(
            store.objects(),
            &slot.object,
            0o600,
        )?);
        let clear = || {
            let _ = syscall::unlink_unchecked(store.objects(), &slot.object);
        };
        let kept = (&object).write_all(added);
        let kept = kept.map_err(|error| errno_of(&error));
        kept.and_then(|()| self.sync_file(object.as_fd()))
            .inspect_err(|_| clear())?;
        let part = Part {
            old: Some(Stamp::of(there)),
            object: Some(slot.object.shown().into_owned()),
            tail: Some(tail.clone()),
            ..Part::new(PartKind::Cut, path.to_owned())
        };
        let recorder = self.recorder();
        let written = recorder.write(&slot, part, self.is_last_part(), self.durability());
        let index = written.inspect_err(|_| clear())?;
        cut().inspect_err(|_| recorder.fail(&slot, index))
    }
}
