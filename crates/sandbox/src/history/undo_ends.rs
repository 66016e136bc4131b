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
use super::undo_fault::{InPlace, UndoFault, conflict, failed, gone, missing};
use super::{History, Store};
use crate::change::Change;
use crate::metadata::Metadata;
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
        cut.map_err(|errno| failed(path, errno))
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
        let appended = self.change.noted(self.root.observers(), again, || {
            let written = file.write_all_at(&added, tail.at);
            written.map_err(|error| errno_of(&error))?;
            set_modified(&file, part.old.as_ref())?;
            self.change.sync_file(file.as_fd())
        });
        appended.map_err(|errno| failed(path, errno))
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
        let kept = (&object).write_all(added);
        let kept = kept.map_err(|error| errno_of(&error));
        kept.and_then(|()| self.sync_file(object.as_fd()))
            .inspect_err(|_| {
                let _ = syscall::unlink_unchecked(store.objects(), &slot.object);
            })?;
        let part = Part {
            old: Some(Stamp::of(there)),
            object: Some(slot.object.shown().into_owned()),
            tail: Some(tail.clone()),
            ..Part::new(PartKind::Cut, path.to_owned())
        };
        let index = self
            .recorder()
            .write(&slot, part, self.is_last_part(), self.durability())?;
        cut().inspect_err(|_| self.recorder().fail(&slot, index))
    }
}
