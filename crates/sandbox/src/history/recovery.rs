//! Recovers after a kill or a power cut: an unfinished change is completed, or it is undone.
//!
//! Only record files that no process holds are looked at, and a change only with the places of all its parts locked: others
//! may be at work there. A change whose parts are all in place is done. Any other change is undone, its last part first. Parts
//! that somebody changed since are left alone and reported.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::History;
use super::change_record::ChangeRecord;
use super::crossing::CrossingSeen;
use super::journal::{self, FoundFile};
use super::ledger::{Ledger, Mention};
use super::record::{Crossing, End, Part, PartKind, Stamp, Tail};
use super::store::{Store, errno_of};
use super::tail::begins_as;
use super::undo::spot_of;
use super::undo_ends::{read_tail, set_modified};
use crate::change::{EntryRef, OnExisting, rename_entry};
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::root::Root;
use crate::syscall::{self, Errno, Purpose, SysResult};
use crate::together::{ChangePlace, Extent, HeldPlaces};

/// How many places of a change are locked; of more, the directories that they are in.
const PLACES_MAX: usize = 64;
/// How often another process's lock is tried, and how long the first and the longest pause is.
const HOLD_TRIES: usize = 60;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// The result of a look at unfinished changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Changes that were whole.
    pub done: u64,
    /// Changes that were undone, or had not begun.
    pub taken_back: u64,
    /// The paths that were changed since, or that could not be restored.
    pub left: Vec<String>,
}

impl History {
    /// Looks at the changes that a process left unfinished when it died. Changes that others are working on are left
    /// for the next time.
    pub fn recover(&self, root: &Root) -> Recovered {
        let mut recovered = Recovered::default();
        let Some(store) = self.existing_store() else {
            return recovered;
        };
        self.journal.heed_loss();
        let Ok(files) = journal::unfinished_files(store) else {
            return recovered;
        };
        for file in files.iter().filter(|file| file.is_abandoned()) {
            if self.recover_file(root, store, file, &mut recovered) == Ok(true) {
                file.finish(store);
            }
        }
        recovered
    }

    /// Settles the changes of one record file, the last first; tells whether none is left.
    fn recover_file(
        &self,
        root: &Root,
        store: &Store,
        file: &FoundFile,
        recovered: &mut Recovered,
    ) -> SysResult<bool> {
        for number in journal::unfinished(file)?.into_iter().rev() {
            let Some(record) = unsettled(&self.try_ledger()?, number)? else {
                continue;
            };
            let Some(held) = hold_places(root, &record) else {
                return Ok(false);
            };
            // Others may have changed these places before they were locked.
            let ledger = self.try_ledger()?;
            let Some(record) = unsettled(&ledger, number)? else {
                continue;
            };
            if held.confirm().is_err() {
                return Ok(false);
            }
            let recovery = HistoryRecovery {
                root,
                store,
                ledger,
                number,
            };
            let (end, undone) = recovery.settle(&record, recovered);
            self.journal.end_foreign(store, number, end, undone)?;
        }
        Ok(true)
    }

    /// Undoes what a call did, the last part first; returns the indexes of the parts of which nothing is left.
    pub(super) fn take_back(
        &self,
        root: &Root,
        store: &Store,
        number: u64,
        parts: &[(u32, Part)],
    ) -> Vec<u32> {
        let recovery = HistoryRecovery {
            root,
            store,
            ledger: self.ledger(),
            number,
        };
        let parts = parts.iter().rev();
        let undone = parts.filter(|(_, part)| recovery.take_back(part).is_ok());
        undone.map(|(index, _)| *index).collect()
    }
}

/// A change, if its end is not recorded.
fn unsettled(ledger: &Ledger<'_>, number: u64) -> SysResult<Option<ChangeRecord>> {
    let record = ledger.read(number)?;
    Ok(record.filter(|record| record.end.is_none()))
}

/// Locks every place that a change names, as calls do; `None` if somebody works at one of them for longer than a moment.
fn hold_places(root: &Root, record: &ChangeRecord) -> Option<HeldPlaces> {
    let paths = record
        .made()
        .flat_map(|part| [Some(&part.path), part.to.as_ref()]);
    let places = covering(paths.flatten().map(String::as_str).collect());
    let places: Vec<ChangePlace> = places.iter().map(|path| root.change_place(path)).collect();
    // Whatever a part is, what is below it stays as it is.
    let places: Vec<_> = places.iter().map(|place| (place, Extent::Tree)).collect();
    let mut pause = FIRST_PAUSE;
    for _ in 0..HOLD_TRIES {
        if let Ok(Some(held)) = HeldPlaces::try_hold(&places) {
            return Some(held);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    None
}

/// These paths or, if they are many, directories that they are in: somebody may be at work elsewhere in the root for as long
/// as the process runs.
fn covering(mut paths: BTreeSet<&str>) -> BTreeSet<&str> {
    let depth = |path: &str| match path {
        "." => 0,
        path => 1 + path.matches('/').count(),
    };
    while paths.len() > PLACES_MAX {
        let deepest = paths.iter().map(|path| depth(path)).max();
        let up = |path| match path {
            path if Some(depth(path)) == deepest => {
                path.rsplit_once('/').map_or(".", |(above, _)| above)
            }
            path => path,
        };
        paths = paths.into_iter().map(up).collect();
    }
    paths
}

struct HistoryRecovery<'a> {
    root: &'a Root,
    store: &'a Store,
    ledger: Ledger<'a>,
    /// The change that is looked at.
    number: u64,
}

impl HistoryRecovery<'_> {
    /// Tells how a change ended, and which of its parts did not happen or were taken back if the others stay.
    fn settle(&self, record: &ChangeRecord, recovered: &mut Recovered) -> (End, Vec<u32>) {
        let parts: Vec<(u32, &Part)> = record.made_parts().collect();
        if record.is_whole && parts.iter().all(|(_, part)| self.is_in_place(part)) {
            recovered.done += 1;
            return (End::Done, Vec::new());
        }
        // What the other root's history has seen happen cannot be taken back here alone.
        let has_crossed = |part: &Part| part.crossing.is_some() && self.is_in_place(part);
        if parts.iter().any(|(_, part)| has_crossed(part)) {
            recovered.done += 1;
            return (End::Done, Vec::new());
        }
        let is_lost = |part: &Part| part.lost && part.crossing.is_none();
        if let Some((_, lost)) = parts.iter().find(|(_, part)| is_lost(part)) {
            // Content that was moved entry by entry cannot be restored.
            recovered.left.push(lost.path.clone());
            return (End::Done, Vec::new());
        }
        recovered.taken_back += 1;
        let mut undone = Vec::new();
        for (index, part) in parts.iter().rev() {
            match self.take_back(part) {
                Ok(()) => undone.push(*index),
                Err(_) => recovered.left.push(part.path.clone()),
            }
        }
        if undone.len() == parts.len() {
            return (End::Void, Vec::new());
        }
        // What is left can be seen, and what was kept for it can be read.
        (End::Done, undone)
    }

    /// Tells whether a part was done.
    fn is_in_place(&self, part: &Part) -> bool {
        let path = match part.kind {
            PartKind::Move => part.to.as_deref().unwrap_or_default(),
            _ => part.path.as_str(),
        };
        let there = self.look(path).ok().flatten();
        if let Some(crossing) = &part.crossing {
            return self.has_crossed(part, crossing, there.as_ref());
        }
        let is_new = |there: &Metadata| is_of(part.new.as_ref(), there);
        match part.kind {
            PartKind::Replace => self.is_replaced(part, there.as_ref()),
            PartKind::Move => {
                let is_moved = || self.is_moved(part, there.as_ref());
                self.was_found_done(part, path).unwrap_or_else(is_moved)
            }
            PartKind::Create => {
                let is_there = || there.as_ref().is_some_and(is_new);
                self.was_found_done(part, path).unwrap_or_else(is_there)
            }
            PartKind::Remove => there.is_none_or(|there| !is_of(part.old.as_ref(), &there)),
            PartKind::MakeDir => there.is_some_and(|there| there.is_directory()),
            PartKind::RemoveDir => there.is_none(),
            PartKind::Append => there.is_some_and(|there| self.is_appended(part, &there)),
            PartKind::Cut => {
                let at = part.tail.as_ref().map(|tail| tail.at);
                there.is_some_and(|there| at == Some(there.size))
            }
        }
    }

    fn has_crossed(&self, part: &Part, crossing: &Crossing, there: Option<&Metadata>) -> bool {
        let object = self.object(part).ok().flatten();
        let object = object.map(|object| syscall::stat_at_unchecked(self.store.objects(), &object));
        let seen = CrossingSeen {
            there,
            object: object.and_then(Result::ok),
            next: self.next_found(&part.path),
        };
        seen.is_made(part, crossing.way)
    }

    /// Tells whether a file took the place of another. What it was meant to be is in the objects until then.
    fn is_replaced(&self, part: &Part, there: Option<&Metadata>) -> bool {
        if let Some(is_done) = self.was_found_done(part, &part.path) {
            return is_done;
        }
        let object = self.object(part).ok().flatten();
        let object = object
            .and_then(|object| syscall::stat_at_unchecked(self.store.objects(), &object).ok());
        let is_staged = object.is_some_and(|object| is_of(part.new.as_ref(), &object));
        let is_untouched = there.is_some_and(|there| is_of(part.old.as_ref(), there));
        let is_new = there.is_some_and(|there| is_of(part.new.as_ref(), there));
        // Anything else came later. The kept content is then the only copy and has to stay.
        is_new || (!is_staged && !is_untouched && object.is_some())
    }

    /// Tells whether an entry got another path. If somebody changed since what is there, its old path tells.
    fn is_moved(&self, part: &Part, there: Option<&Metadata>) -> bool {
        let is_new = |found: &Metadata| is_of(part.new.as_ref(), found);
        if there.is_some_and(is_new) {
            return true;
        }
        if there.is_some_and(|there| is_of(part.old.as_ref(), there)) {
            return false;
        }
        if let Some(found) = self.next_found(&part.path) {
            return !found
                .zip(part.new)
                .is_some_and(|(found, new)| new.is_same(&found));
        }
        let source = self.look(&part.path).ok().flatten();
        !source.as_ref().is_some_and(is_new)
    }

    /// Tells by what the next change found at a path whether a part was done; `None` if there is none that knows. What is
    /// there now does not tell then: a new file may have the number of one that is gone.
    fn was_found_done(&self, part: &Part, path: &str) -> Option<bool> {
        let new = part.new.filter(|new| new.inode != 0)?;
        let found = self.next_found(path)?;
        Some(found.is_some_and(|found| found.inode == new.inode))
    }

    /// What the next change found at a path; `None` if there was no other change there. Another process may have gone on.
    fn next_found(&self, path: &str) -> Option<Option<Stamp>> {
        let mention = Mention::of_path(path);
        let later = self.ledger.after(self.number);
        let mut later = later
            .filter(|later| later.mentions(&mention))
            .filter_map(|later| later.record().filter(ChangeRecord::is_made));
        let is_there = |part: &&Part| part.path == path || part.to.as_deref() == Some(path);
        later.find_map(|later| {
            let next = later.made().find(is_there)?;
            Some(match next.kind {
                PartKind::Move if next.path == path => next.new,
                _ => next.old,
            })
        })
    }

    /// Tells whether a file has what an append added. Its length alone does not tell: after a power cut what is behind its
    /// old end may be zeros.
    fn is_appended(&self, part: &Part, there: &Metadata) -> bool {
        let (Some(old), Some(tail)) = (&part.old, &part.tail) else {
            return false;
        };
        let end = tail.at + tail.length;
        if old.is_same_file(there) && there.size >= end {
            let has_it = self.with_entry(&part.path, |(dir, name)| {
                let file = syscall::open_content_unchecked(dir, name, Purpose::Read)?;
                begins_as(&File::from(file), tail, end)
            });
            return has_it == Ok(true);
        }
        // Another file took its place, or it was cut: whoever did that found it as the append left it.
        let found = self.next_found(&part.path).flatten();
        found.is_some_and(|found| found.inode == old.inode && found.size >= Some(end))
    }

    /// Takes a part back if it was done, and clears away what was staged for it if it was not.
    fn take_back(&self, part: &Part) -> SysResult<()> {
        let is_done = self.is_in_place(part);
        match part.kind {
            _ if part.crossing.is_some() && is_done => Err(Errno::BUSY),
            _ if part.crossing.is_some() => self.stay(part),
            PartKind::Create if is_done => self.unmake(part),
            PartKind::Create => Ok(()),
            PartKind::Replace if is_done => self.exchange_back(part),
            PartKind::Replace => self.clear_staged(part),
            PartKind::Remove => self.bring_back(part, &part.path),
            PartKind::Move if is_done => self.move_back(part),
            PartKind::Move if part.old.is_some_and(|old| old.is_directory()) => {
                self.bring_back(part, part.to.as_deref().unwrap_or_default())
            }
            PartKind::Move => self.clear_object(part),
            PartKind::MakeDir if is_done => {
                self.with_entry(
                    &part.path,
                    |(dir, name)| match syscall::remove_dir_unchecked(dir, name) {
                        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                        removed => removed,
                    },
                )
            }
            PartKind::RemoveDir if is_done => self.make_dir(&part.path, part.old.as_ref()),
            PartKind::Append => self.repair_append(part),
            PartKind::Cut if is_done => self.append_again(part),
            PartKind::MakeDir | PartKind::RemoveDir | PartKind::Cut => Ok(()),
        }
    }

    /// Reverts what was prepared for a move to or from another root.
    fn stay(&self, part: &Part) -> SysResult<()> {
        let held = self.object(part)?;
        let held = held.map(|held| syscall::stat_at_unchecked(self.store.objects(), &held));
        let is_leaving = part.source.is_some();
        match held {
            Some(Ok(held)) if is_leaving && is_of(part.old.as_ref(), &held) => {
                self.exchange_back(part)
            }
            _ => self.clear_staged(part),
        }
    }

    fn unmake(&self, part: &Part) -> SysResult<()> {
        self.require_untouched(part)?;
        self.with_entry(&part.path, |entry| match self.source(part)? {
            Some(source) => {
                let to = (self.store.objects(), &source);
                let kind = syscall::stat_at_unchecked(entry.0, entry.1)?.kind;
                rename_entry(entry, to, OnExisting::Fail, kind)
            }
            None if part.new.is_some_and(|new| new.is_directory()) => {
                let orphan = crate::leftovers::temporary_name()?;
                let to = (self.store.objects(), &orphan);
                rename_entry(entry, to, OnExisting::Fail, FileKind::Directory)
            }
            None => syscall::unlink_unchecked(entry.0, entry.1),
        })
    }

    fn exchange_back(&self, part: &Part) -> SysResult<()> {
        self.require_untouched(part)?;
        let object = self.object(part)?.ok_or(Errno::NOENT)?;
        let object = (self.store.objects(), &object);
        self.with_entry(&part.path, |entry| {
            let exchanged = match self.store.exchanges() {
                true => syscall::exchange_unchecked(object, entry),
                false => Err(Errno::INVAL),
            };
            match exchanged {
                Err(Errno::INVAL | Errno::NOSYS) => {
                    self.keep_source(part, entry)?;
                    rename_entry(object, entry, OnExisting::Replace, FileKind::File)
                }
                exchanged => exchanged,
            }
        })?;
        self.clear_staged(part)
    }

    /// Gives what came back its name among the objects again before something takes its place.
    fn keep_source(&self, part: &Part, entry: EntryRef<'_>) -> SysResult<()> {
        let Some(source) = self.source(part)? else {
            return Ok(());
        };
        match syscall::link_unchecked(entry, (self.store.objects(), &source)) {
            Err(Errno::EXIST) => Ok(()),
            linked => linked,
        }
    }

    /// Returns a staged object to the history, or removes it.
    fn clear_staged(&self, part: &Part) -> SysResult<()> {
        let Some(object) = self.object(part)? else {
            return Ok(());
        };
        let entry = (self.store.objects(), &object);
        match syscall::stat_at_unchecked(entry.0, entry.1) {
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
            Ok(_) => match self.source(part)? {
                Some(source) => {
                    let to = (self.store.objects(), &source);
                    rename_entry(entry, to, OnExisting::Fail, FileKind::File)
                }
                // A second name or a copy of content that is still in its place, or content that was never published.
                None => syscall::unlink_unchecked(entry.0, entry.1),
            },
        }
    }

    fn clear_object(&self, part: &Part) -> SysResult<()> {
        match self.object(part)? {
            Some(object) => match syscall::unlink_unchecked(self.store.objects(), &object) {
                Err(Errno::NOENT) => Ok(()),
                removed => removed,
            },
            None => Ok(()),
        }
    }

    fn bring_back(&self, part: &Part, path: &str) -> SysResult<()> {
        let Some(object) = self.object(part)? else {
            return Ok(());
        };
        let from = (self.store.objects(), &object);
        let kind = match syscall::stat_at_unchecked(from.0, from.1) {
            Err(Errno::NOENT) => return Ok(()),
            found => found?.kind,
        };
        self.with_entry(path, |entry| {
            match rename_entry(from, entry, OnExisting::Fail, kind) {
                Err(Errno::EXIST) => {
                    let there = syscall::stat_at_unchecked(entry.0, entry.1)?;
                    if !is_of(part.old.as_ref(), &there) {
                        // Something else was put there, and this is all that is left of the old content.
                        return Err(Errno::BUSY);
                    }
                    // A copy was kept, and the entry itself was not removed yet.
                    self.clear_object(part)
                }
                renamed => renamed,
            }
        })
    }

    fn move_back(&self, part: &Part) -> SysResult<()> {
        let to = part.to.as_deref().ok_or(Errno::INVAL)?;
        let (to_dir, to_name) = spot_of(self.root, to)?;
        let source = (self.root.fd_or(to_dir.as_ref()), &to_name);
        let there = syscall::stat_at_unchecked(source.0, source.1)?;
        if !is_of(part.new.as_ref(), &there) {
            return Err(Errno::BUSY);
        }
        self.with_entry(&part.path, |entry| {
            rename_entry(source, entry, OnExisting::Fail, there.kind)
        })?;
        self.bring_back(part, to)?;
        match (part.old.as_ref(), self.look(to)?) {
            // It could not be kept itself.
            (Some(old), None) if old.is_directory() => self.make_dir(to, Some(old)),
            _ => Ok(()),
        }
    }

    fn make_dir(&self, path: &str, old: Option<&Stamp>) -> SysResult<()> {
        let mode = old.map_or(0o777, |old| old.mode & 0o777);
        self.with_entry(path, |(dir, name)| {
            syscall::make_dir_unchecked(dir, name, mode)
        })
    }

    /// Cuts off a part of an append: only if the file is the same and what is behind its old end is the beginning of what
    /// was added.
    fn repair_append(&self, part: &Part) -> SysResult<()> {
        let tail = part.tail.as_ref().ok_or(Errno::INVAL)?;
        let Some(there) = self.look(&part.path)? else {
            return Err(Errno::NOENT);
        };
        let found = self.next_found(&part.path).flatten();
        let was_untouched = found.is_some_and(|found| found.size == Some(tail.at));
        if there.size == tail.at || was_untouched {
            return Ok(());
        }
        let is_same = is_of(part.old.as_ref(), &there);
        if !is_same || there.size < tail.at || there.size > tail.at + tail.length {
            return Err(Errno::BUSY);
        }
        self.with_entry(&part.path, |(dir, name)| {
            let file = File::from(syscall::open_content_unchecked(dir, name, Purpose::Edit)?);
            if !begins_as(&file, tail, there.size)? {
                return Err(Errno::BUSY);
            }
            file.set_len(tail.at).map_err(|error| errno_of(&error))?;
            set_modified(&file, part.old.as_ref())?;
            syscall::sync_unchecked(file.as_fd())
        })
    }

    fn append_again(&self, part: &Part) -> SysResult<()> {
        let tail = part.tail.as_ref().ok_or(Errno::INVAL)?;
        let object = self.object(part)?.ok_or(Errno::NOENT)?;
        let kept = syscall::open_content_unchecked(self.store.objects(), &object, Purpose::Read)?;
        let whole = Tail {
            at: 0,
            ..tail.clone()
        };
        let added = read_tail(&File::from(kept), &whole)?;
        self.with_entry(&part.path, |(dir, name)| {
            let file = File::from(syscall::open_content_unchecked(dir, name, Purpose::Edit)?);
            let written = file.write_all_at(&added, tail.at);
            written.map_err(|error| errno_of(&error))?;
            set_modified(&file, part.old.as_ref())
        })?;
        self.clear_object(part)
    }

    /// Files that changed since are left alone.
    fn require_untouched(&self, part: &Part) -> SysResult<()> {
        let there = self.look(&part.path)?.ok_or(Errno::NOENT)?;
        match part.new {
            Some(new) if !new.fits(&there) => Err(Errno::BUSY),
            _ => Ok(()),
        }
    }

    fn look(&self, path: &str) -> SysResult<Option<Metadata>> {
        let found = self.with_entry(path, |(dir, name)| {
            if self.store.is_shared() {
                // What this machine remembers of it may be older than what the dead process did.
                syscall::sync_attributes_unchecked(dir)?;
            }
            syscall::stat_at_unchecked(dir, name)
        });
        match found {
            Ok(metadata) => Ok(Some(metadata)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn with_entry<T>(
        &self,
        path: &str,
        act: impl FnOnce(EntryRef<'_>) -> SysResult<T>,
    ) -> SysResult<T> {
        let (dir, name) = spot_of(self.root, path)?;
        act((self.root.fd_or(dir.as_ref()), &name))
    }

    fn object(&self, part: &Part) -> SysResult<Option<Name>> {
        named(part.object.as_deref())
    }

    fn source(&self, part: &Part) -> SysResult<Option<Name>> {
        named(part.source.as_deref())
    }
}

fn named(object: Option<&str>) -> SysResult<Option<Name>> {
    let name = |object: &str| Name::new(object.as_bytes()).ok_or(Errno::INVAL);
    object.map(name).transpose()
}

fn is_of(stamp: Option<&Stamp>, there: &Metadata) -> bool {
    stamp.is_some_and(|stamp| stamp.is_same_file(there))
}
