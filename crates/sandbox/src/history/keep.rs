//! Keeps what a change replaces or removes, and records the change before it is visible.
//!
//! What is new goes to the objects first, and then the two names change places: whatever was there, also if another
//! program put it there a moment ago, ends up as the object. Without RENAME_EXCHANGE a second hard
//! link keeps the old file. A copy keeps it if the file system has no hard links or the file
//! already has several.

use std::os::fd::{AsFd, BorrowedFd};

use super::record::{Part, PartKind, Stamp};
use super::recorder::PartSlot;
use super::stamp::{stamp_at, stamp_of};
use super::{History, Store, is_unmovable};
use crate::change::{Change, EntryRef, Observers, OnExisting, rename_entry};
use crate::leftovers;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::syscall::{self, Errno, SysResult};
use std::sync::Arc;

/// How often a change is tried again whose place another program changes at the same time.
const TRIES: usize = 16;

/// Something new that will have a name.
pub(crate) enum NewEntry<'a> {
    /// A staged file: unnamed, or with a temporary name in the directory that it is for.
    Staged {
        file: BorrowedFd<'a>,
        temporary: &'a mut Option<Name>,
    },
    /// An entry of a hidden tree.
    Entry(EntryRef<'a>),
    /// What was kept, and comes back.
    Object(EntryRef<'a>),
}

impl NewEntry<'_> {
    fn metadata(&self) -> SysResult<Metadata> {
        match self {
            NewEntry::Staged { file, .. } => syscall::stat_unchecked(*file),
            NewEntry::Entry((dir, name)) | NewEntry::Object((dir, name)) => {
                syscall::stat_at_unchecked(*dir, name)
            }
        }
    }

    /// What it is. It came just now, so that its times alone would not tell whether it is changed.
    fn stamp(&self) -> SysResult<Stamp> {
        let metadata = self.metadata()?;
        Ok(match self {
            NewEntry::Staged { file, .. } => stamp_of(*file, &metadata),
            NewEntry::Entry(entry) | NewEntry::Object(entry) => stamp_at(*entry, &metadata),
        })
    }

    /// The object that it is.
    fn source(&self) -> Option<String> {
        match self {
            NewEntry::Object((_, name)) => Some(name.shown().into_owned()),
            NewEntry::Staged { .. } | NewEntry::Entry(_) => None,
        }
    }

    /// Links the object to a name that is free. `home` is the directory it belongs to.
    fn take_free_name(&mut self, home: BorrowedFd<'_>, to: EntryRef<'_>) -> SysResult<()> {
        match self {
            NewEntry::Staged { file, temporary } => match temporary {
                None => syscall::link_unnamed_unchecked(*file, to.0, to.1),
                Some(name) => {
                    rename_entry((home, name), to, OnExisting::Fail, FileKind::File)?;
                    **temporary = None;
                    Ok(())
                }
            },
            NewEntry::Entry(from) | NewEntry::Object(from) => {
                let kind = syscall::stat_at_unchecked(from.0, from.1)?.kind;
                rename_entry(*from, to, OnExisting::Fail, kind)
            }
        }
    }

    /// Moves the object back under a temporary name, so that a retry finds it.
    fn come_back(&mut self, from: EntryRef<'_>, home: BorrowedFd<'_>) -> SysResult<()> {
        match self {
            NewEntry::Staged { temporary, .. } => {
                let name = leftovers::temporary_name()?;
                rename_entry(from, (home, &name), OnExisting::Fail, FileKind::File)?;
                **temporary = Some(name);
                Ok(())
            }
            NewEntry::Entry(entry) | NewEntry::Object(entry) => {
                let kind = syscall::stat_at_unchecked(from.0, from.1)?.kind;
                rename_entry(from, *entry, OnExisting::Fail, kind)
            }
        }
    }
}

/// How the old content is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As the file itself, under another name.
    Itself,
    /// By a second link.
    Link,
    /// By a copy, or not at all.
    Copy,
}

impl Way {
    fn next(self) -> Option<Way> {
        match self {
            Way::Itself => Some(Way::Link),
            Way::Link => Some(Way::Copy),
            Way::Copy => None,
        }
    }

    /// Without RENAME_EXCHANGE, a hard link keeps the replaced file.
    fn for_replaced(history: &History, store: &Store, old: &Metadata) -> Way {
        match Way::first_for(old) {
            Way::Itself if !(history.exchanges() && store.exchanges()) => Way::Link,
            way => way,
        }
    }

    /// A file with other names can be changed through them, so only a copy keeps it.
    fn first_for(old: &Metadata) -> Way {
        if old.links > 1 && !old.is_directory() {
            Way::Copy
        } else {
            Way::Itself
        }
    }
}

/// A part that is about to happen.
pub(super) struct Keeping<'a> {
    pub(super) change: &'a Change,
    pub(super) store: &'a Store,
    slot: PartSlot,
}

impl<'a> Keeping<'a> {
    pub(super) fn begin(
        change: &'a Change,
        history: &'a Arc<History>,
    ) -> SysResult<Option<Keeping<'a>>> {
        let Some(store) = history.store() else {
            change.recorder().note_unrecorded();
            return Ok(None);
        };
        let slot = change.recorder().slot(history, store)?;
        Ok(Some(Keeping {
            change,
            store,
            slot,
        }))
    }

    pub(super) fn object(&self) -> EntryRef<'_> {
        (self.store.objects(), &self.slot.object)
    }

    pub(super) fn object_name(&self) -> Option<String> {
        Some(self.slot.object.shown().into_owned())
    }

    /// Records the part and makes it happen; if it fails, that is recorded too.
    pub(super) fn perform<T>(
        &self,
        part: Part,
        act: impl FnOnce() -> SysResult<T>,
    ) -> SysResult<T> {
        let index = self.write(part)?;
        act().inspect_err(|_| self.change.recorder().fail(&self.slot, index))
    }

    fn write(&self, mut part: Part) -> SysResult<u32> {
        part.lost |= self.change.is_irrevocable();
        let (last, durability) = (self.change.is_last_part(), self.change.durability());
        let recorder = self.change.recorder();
        match recorder.write(&self.slot, part.clone(), last, durability) {
            // The oldest changes go before any change fails.
            Err(Errno::NOSPC | Errno::DQUOT)
                if self.slot.history.make_room_beside(&recorder.undoes()) =>
            {
                recorder.write(&self.slot, part, last, durability)
            }
            written => written,
        }
    }
}

impl Change {
    /// Replaces an entry and keeps the old one. `plain` does the replacement if there is no history, or if only a
    /// copy can be kept. It replaces what is there.
    pub(crate) fn put_kept(
        &self,
        observers: &Observers,
        mut incoming: NewEntry<'_>,
        (target, path): (EntryRef<'_>, &dyn Fn() -> String),
        on_existing: OnExisting,
        plain: &mut dyn FnMut(&mut NewEntry<'_>) -> SysResult<()>,
    ) -> SysResult<()> {
        let Some(history) = &observers.history else {
            return plain(&mut incoming);
        };
        let mut way = None;
        for _ in 0..TRIES {
            let Some(keeping) = Keeping::begin(self, history)? else {
                return plain(&mut incoming);
            };
            let old = match syscall::stat_at_unchecked(target.0, target.1) {
                Ok(old) => Some(old),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(errno),
            };
            let put = match &old {
                None => keeping.create(&mut incoming, target, path()),
                Some(_) if on_existing == OnExisting::Fail => return Err(Errno::EXIST),
                Some(old) if old.is_directory() => return plain(&mut incoming),
                Some(old) => {
                    let chosen = || Way::for_replaced(history, keeping.store, old);
                    let chosen = *way.get_or_insert_with(chosen);
                    keeping.replace(&mut incoming, target, (path(), old), chosen, plain)
                }
            };
            match put {
                // It appeared or vanished in between.
                Err(Errno::EXIST) if old.is_none() && on_existing == OnExisting::Replace => {}
                Err(Errno::NOENT) if old.is_some() => {}
                Err(errno) if old.is_some() && is_unmovable(errno) => {
                    if way == Some(Way::Itself) && matches!(errno, Errno::INVAL | Errno::NOSYS) {
                        history.forget_exchange();
                    }
                    way = Some(way.and_then(Way::next).ok_or(errno)?);
                }
                put => return put,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Moves an entry into the history. `plain` removes it if only a copy can be kept.
    pub(crate) fn remove_kept(
        &self,
        observers: &Observers,
        (target, path): (EntryRef<'_>, &dyn Fn() -> String),
        plain: &dyn Fn() -> SysResult<()>,
    ) -> SysResult<()> {
        let Some(history) = &observers.history else {
            return plain();
        };
        let old = syscall::stat_at_unchecked(target.0, target.1)?;
        let mut way = Some(Way::first_for(&old));
        while let Some(chosen) = way {
            let Some(keeping) = Keeping::begin(self, history)? else {
                return plain();
            };
            match keeping.remove(target, (path(), &old), chosen, plain) {
                Err(errno) if is_unmovable(errno) && chosen != Way::Copy => way = Some(Way::Copy),
                removed => return removed,
            }
        }
        plain()
    }

    /// Removes a whole tree in one step and keeps it; `false` if that cannot be done here.
    pub(crate) fn remove_tree_kept(
        &self,
        observers: &Observers,
        (target, path): (EntryRef<'_>, &dyn Fn() -> String),
    ) -> SysResult<bool> {
        let Some(history) = &observers.history else {
            return Ok(false);
        };
        let old = syscall::stat_at_unchecked(target.0, target.1)?;
        let Some(keeping) = Keeping::begin(self, history)? else {
            return Ok(false);
        };
        match keeping.remove(target, (path(), &old), Way::Itself, &|| Ok(())) {
            Err(errno) if is_unmovable(errno) => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Takes an empty directory away and keeps it, so that it comes back as the same one; `plain` removes it if that
    /// cannot be.
    pub(crate) fn remove_empty_kept(
        &self,
        observers: &Observers,
        (target, path): (EntryRef<'_>, &dyn Fn() -> String),
        plain: &dyn Fn() -> SysResult<()>,
    ) -> SysResult<()> {
        let Some(history) = &observers.history else {
            return plain();
        };
        let old = syscall::stat_at_unchecked(target.0, target.1)?;
        require_empty(target)?;
        if let Some(keeping) = Keeping::begin(self, history)? {
            match keeping.remove_empty(target, (path(), &old)) {
                Err(errno) if is_unmovable(errno) => {}
                removed => return removed,
            }
        }
        let part = || Part {
            old: Some(Stamp::of(&old)),
            ..Part::new(PartKind::RemoveDir, path())
        };
        self.noted(observers, part, plain)
    }

    /// Moves an entry inside a root and keeps what it replaces; `plain` renames.
    pub(crate) fn move_kept(
        &self,
        observers: &Observers,
        (from, path): (EntryRef<'_>, String),
        (to, to_path): (EntryRef<'_>, String),
        plain: &dyn Fn() -> SysResult<()>,
    ) -> SysResult<()> {
        let Some(history) = &observers.history else {
            return plain();
        };
        let new = syscall::stat_at_unchecked(from.0, from.1)?;
        let old = syscall::stat_at_unchecked(to.0, to.1).ok();
        // A rename to itself, or to another name of the same file, does nothing.
        if old.is_some_and(|old| old.same_file(&new)) {
            return plain();
        }
        let Some(keeping) = Keeping::begin(self, history)? else {
            return plain();
        };
        let kept = match &old {
            Some(old) if !old.is_directory() => keeping.keep_beside(to, old)?,
            _ => true,
        };
        let is_over_dir = old.is_some_and(|old| old.is_directory() && new.is_directory());
        let has_object = kept && old.is_some_and(|old| is_over_dir || !old.is_directory());
        let copy = match &old {
            Some(old) => keeping.copy_of(old, kept && !old.is_directory())?,
            None => None,
        };
        let part = Part {
            to: Some(to_path),
            old: old.as_ref().map(Stamp::of),
            new: Some(Stamp::of(&new)),
            object: has_object.then(|| keeping.object_name()).flatten(),
            copy,
            lost: !kept,
            ..Part::new(PartKind::Move, path)
        };
        if is_over_dir {
            return keeping.perform(part, || keeping.move_over_dir(to, plain));
        }
        keeping
            .perform(part, plain)
            .inspect_err(|_| keeping.clear())
    }

    /// Records a part that keeps nothing, and makes it happen.
    pub(crate) fn noted<T>(
        &self,
        observers: &Observers,
        part: impl FnOnce() -> Part,
        act: impl FnOnce() -> SysResult<T>,
    ) -> SysResult<T> {
        let noted = self.note(observers, part)?;
        act().inspect_err(|_| self.disown(noted.as_ref()))
    }

    /// Records a part that is about to happen and keeps nothing.
    pub(crate) fn note(
        &self,
        observers: &Observers,
        part: impl FnOnce() -> Part,
    ) -> SysResult<Option<NotedPart>> {
        let keeping = match &observers.history {
            Some(history) => Keeping::begin(self, history)?,
            None => None,
        };
        let write = |keeping: Keeping<'_>| {
            let index = keeping.write(part())?;
            let slot = keeping.slot;
            Ok(NotedPart { slot, index })
        };
        keeping.map(write).transpose()
    }

    /// Says that a part that was written down did not happen, or was taken back at once.
    pub(crate) fn disown(&self, noted: Option<&NotedPart>) {
        if let Some(noted) = noted {
            self.recorder().fail(&noted.slot, noted.index);
        }
    }
}

/// A recorded part.
#[derive(Debug)]
pub(crate) struct NotedPart {
    slot: PartSlot,
    index: u32,
}

impl Keeping<'_> {
    fn create(
        &self,
        incoming: &mut NewEntry<'_>,
        target: EntryRef<'_>,
        path: String,
    ) -> SysResult<()> {
        let part = Part {
            new: Some(incoming.stamp()?),
            source: incoming.source(),
            ..Part::new(PartKind::Create, path)
        };
        self.perform(part, || incoming.take_free_name(target.0, target))
    }

    fn replace(
        &self,
        incoming: &mut NewEntry<'_>,
        target: EntryRef<'_>,
        (path, old): (String, &Metadata),
        way: Way,
        plain: &mut dyn FnMut(&mut NewEntry<'_>) -> SysResult<()>,
    ) -> SysResult<()> {
        let kept = match way {
            Way::Itself => true,
            Way::Link => syscall::link_unchecked(target, self.object()).map(|()| true)?,
            Way::Copy => self.copy(target, old)?,
        };
        let copy = self.copy_of(old, kept && way == Way::Copy)?;
        let is_mounted = way == Way::Copy && syscall::is_mount_point_unchecked(target.0, target.1)?;
        let part = Part {
            old: Some(Stamp::of(old)),
            new: Some(incoming.stamp()?),
            object: kept.then(|| self.object_name()).flatten(),
            copy,
            source: incoming.source(),
            // What is rewritten in place has no second file to go back to.
            lost: !kept || is_mounted,
            ..Part::new(PartKind::Replace, path)
        };
        if way == Way::Itself {
            return self.perform(part, || self.exchange(incoming, target));
        }
        self.perform(part, || plain(incoming))
            .inspect_err(|_| self.clear())
    }

    /// Lets what is new and what is there change places, so that the object is what was there.
    fn exchange(&self, incoming: &mut NewEntry<'_>, target: EntryRef<'_>) -> SysResult<()> {
        incoming.take_free_name(target.0, self.object())?;
        let exchanged = syscall::exchange_unchecked(self.object(), target);
        if exchanged.is_err() {
            incoming.come_back(self.object(), target.0)?;
        }
        exchanged
    }

    fn remove(
        &self,
        target: EntryRef<'_>,
        (path, old): (String, &Metadata),
        way: Way,
        plain: &dyn Fn() -> SysResult<()>,
    ) -> SysResult<()> {
        let kept = way == Way::Itself || self.copy(target, old)?;
        let copy = self.copy_of(old, kept && way == Way::Copy)?;
        let part = Part {
            old: Some(Stamp::of(old)),
            object: kept.then(|| self.object_name()).flatten(),
            copy,
            lost: !kept,
            ..Part::new(PartKind::Remove, path)
        };
        if way == Way::Itself {
            return self.perform(part, || {
                rename_entry(target, self.object(), OnExisting::Fail, old.kind)
            });
        }
        self.perform(part, plain).inspect_err(|_| self.clear())
    }

    /// Removes a copy of what stays.
    fn clear(&self) {
        let _ = syscall::unlink_unchecked(self.object().0, self.object().1);
    }

    /// A directory that was filled at the last moment gets its name back.
    fn remove_empty(
        &self,
        target: EntryRef<'_>,
        (path, old): (String, &Metadata),
    ) -> SysResult<()> {
        let part = Part {
            old: Some(Stamp::of(old)),
            object: self.object_name(),
            ..Part::new(PartKind::Remove, path)
        };
        self.perform(part, || {
            rename_entry(target, self.object(), OnExisting::Fail, old.kind)?;
            require_empty(self.object()).inspect_err(|_| {
                let _ = rename_entry(self.object(), target, OnExisting::Fail, old.kind);
            })
        })
    }

    /// Makes way for a directory that takes the place of an empty one, which is kept.
    fn move_over_dir(&self, to: EntryRef<'_>, plain: &dyn Fn() -> SysResult<()>) -> SysResult<()> {
        require_empty(to)?;
        let kind = FileKind::Directory;
        match rename_entry(to, self.object(), OnExisting::Fail, kind) {
            // The rename replaces it, and only its permissions come back.
            Err(errno) if is_unmovable(errno) => return plain(),
            renamed => renamed?,
        }
        require_empty(self.object())
            .and_then(|()| plain())
            .inspect_err(|_| {
                let _ = rename_entry(self.object(), to, OnExisting::Fail, kind);
            })
    }

    /// Keeps a copy or link of an entry before it is replaced. Returns whether that worked.
    pub(super) fn keep_beside(&self, entry: EntryRef<'_>, old: &Metadata) -> SysResult<bool> {
        if old.links == 1 && syscall::link_unchecked(entry, self.object()).is_ok() {
            return Ok(true);
        }
        self.copy(entry, old)
    }
}

pub(super) fn require_empty((dir, name): EntryRef<'_>) -> SysResult<()> {
    let opened = match syscall::open_dir_unchecked(dir, name) {
        // What may not be listed is the system's to judge.
        Err(Errno::ACCESS) => return Ok(()),
        opened => opened?,
    };
    let mut is_empty = true;
    syscall::read_dir_unchecked(opened.as_fd(), &mut |_, _| is_empty = false)?;
    if is_empty {
        Ok(())
    } else {
        Err(Errno::NOTEMPTY)
    }
}
