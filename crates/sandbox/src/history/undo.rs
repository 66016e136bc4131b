//! Undoes changes: the kept content gets its name back, and the current content is kept instead.
//!
//! Every step is a change like any other, recorded before it happens, so that undoing it makes the change again.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::change_record::ChangeRecord;
use super::keep::NewEntry;
use super::ledger::Ledger;
use super::record::{Part, PartKind, Stamp, parse_change_id};
use super::stamp::stamp_at;
use super::undo_fault::{InPlace, UndoFault, conflict, denied, failed, gone, missing, refused};
use super::{History, Store};
use crate::change::{Change, Durability, EntryRef, OnExisting, rename_entry};
use crate::dir::Dir;
use crate::metadata::Metadata;
use crate::name::{self, Name};
use crate::quota::{self, Amount};
use crate::resolve::reopen_resolved;
use crate::rights::Right;
use crate::root::Root;
use crate::syscall::{self, Errno, SysResult};
use crate::view::is_whole;

/// A directory inside the root and a name in it.
pub(super) struct Spot {
    dir: Option<OwnedFd>,
    name: Name,
}

/// Undoes changes of one root.
pub(super) struct Undoing<'a> {
    pub(super) change: &'a Change,
    pub(super) root: &'a Root,
    pub(super) history: &'a Arc<History>,
    pub(super) store: &'a Store,
    ledger: &'a Ledger<'a>,
    /// See [`copies`]. Looked for when something is not as it was left at first sight.
    copies: OnceCell<Vec<(Stamp, Stamp)>>,
}

impl Root {
    /// Frees what is kept of old changes, because the disk is full; tells whether there was anything.
    #[must_use]
    pub fn make_room(&self) -> bool {
        self.observers().make_room()
    }

    /// The same, but what is kept of these changes stays.
    #[must_use]
    pub fn make_room_beside(&self, needed: &[u64]) -> bool {
        let history = self.history();
        history.is_some_and(|history| history.make_room_beside(needed))
    }

    /// The history of its changes, if they are kept.
    #[must_use]
    pub fn history(&self) -> Option<&Arc<History>> {
        self.observers().history.as_ref()
    }
}

impl Change {
    /// Undoes changes of a root in the given order: all of them or none. The ledger holds the records.
    ///
    /// The caller has the turn to change every path of theirs. With `is_rehearsal` nothing is changed.
    pub fn undo(
        &self,
        root: &Root,
        records: &[ChangeRecord],
        ledger: &Ledger<'_>,
        is_rehearsal: bool,
    ) -> Result<(), UndoFault> {
        let change = self.with_more_parts();
        let undoing = Undoing::of(&change, root, ledger).ok_or_else(|| gone(""))?;
        judge(root, records)?;
        undoing.rehearse(records)?;
        if is_rehearsal {
            return Ok(());
        }
        let numbers = records.iter().map(|record| record.number).collect();
        self.recorder().set_undoes(numbers);
        let undone = records.iter().try_for_each(|record| undoing.run(record));
        let undone = undone.and_then(|()| undoing.sync());
        undone.inspect_err(|_| undoing.take_back())?;
        undoing.history.count_undone(records.len() as u64);
        Ok(())
    }
}

/// Security: an undo is a change by the client that asked for it, and needs its rights.
fn judge(root: &Root, records: &[ChangeRecord]) -> Result<(), UndoFault> {
    let parts = records.iter().flat_map(|record| record.made_parts());
    for (_, part) in parts {
        let needed: &[Right] = match part.kind {
            PartKind::Create | PartKind::MakeDir => &[Right::Remove],
            PartKind::Remove | PartKind::RemoveDir => &[Right::Create],
            PartKind::Replace | PartKind::Append | PartKind::Cut => &[Right::Change],
            PartKind::Move => &[Right::Remove, Right::Create],
        };
        judge_part(root, part, needed)?;
    }
    Ok(())
}

pub(super) fn judge_part(root: &Root, part: &Part, needed: &[Right]) -> Result<(), UndoFault> {
    for right in needed {
        let path = || part.path.clone();
        let judged = root.observers().judge(*right, &path);
        judged.map_err(|_| UndoFault::NotGranted {
            path: path(),
            right: *right,
        })?;
    }
    Ok(())
}

/// What was kept as a copy is another file when it comes back: each pair is what was there and what stands for it since.
fn copies(ledger: &Ledger<'_>) -> Vec<(Stamp, Stamp)> {
    let mut copies = reverted_copies(ledger);
    // Of what happened, only what takes changes back brings back what was kept.
    for (number, _) in ledger.undoing() {
        let Some(record) = ledger.get(number) else {
            continue;
        };
        let came_back = record
            .made()
            .filter_map(|part| part.source.as_deref().zip(part.new));
        for (source, new) in came_back {
            let old = kept_as(ledger, source).filter(|old| old.inode != new.inode);
            copies.extend(old.map(|old| (number, old, new)));
        }
    }
    // A copy may have been copied later.
    copies.sort_by_key(|(number, ..)| *number);
    copies.into_iter().map(|(_, old, new)| (old, new)).collect()
}

/// What was put in the place of what a failed or killed change had replaced; each with the number of that change.
fn reverted_copies(ledger: &Ledger<'_>) -> Vec<(u64, Stamp, Stamp)> {
    let mut copies = Vec::new();
    for change in ledger.reverted() {
        let parts = change.record().map(|record| record.parts);
        let pairs = parts.iter().flatten();
        let pairs = pairs.filter_map(|part| part.old.zip(part.copy));
        copies.extend(pairs.map(|(old, copy)| (change.number(), old, copy)));
    }
    copies
}

/// What an object was when it was kept. Its name says which change kept it.
fn kept_as(ledger: &Ledger<'_>, object: &str) -> Option<Stamp> {
    let number = parse_change_id(object.split_once('.')?.0)?;
    let record = ledger.get(number)?;
    let mut parts = record.made();
    parts
        .find(|part| part.object.as_deref() == Some(object))?
        .old
}

impl<'a> Undoing<'a> {
    /// `None` if the root keeps no history.
    pub(super) fn of(
        change: &'a Change,
        root: &'a Root,
        ledger: &'a Ledger<'a>,
    ) -> Option<Undoing<'a>> {
        let history = root.history()?;
        Some(Undoing {
            change,
            root,
            history,
            store: history.store()?,
            ledger,
            copies: OnceCell::new(),
        })
    }
}

impl Undoing<'_> {
    /// Tells whether an entry is as a change left it, or a copy of that.
    pub(super) fn is_left(&self, stamp: &Stamp, there: &Stamp) -> bool {
        stamp.fits_stamp(there) || self.forms(stamp).iter().any(|form| form.fits_stamp(there))
    }

    /// Tells whether an entry is the file that a change left, or a copy of it, whatever became of its content.
    pub(super) fn is_file_of(&self, stamp: &Stamp, there: &Stamp) -> bool {
        stamp.is_same(there) || self.forms(stamp).iter().any(|form| form.is_same(there))
    }

    fn forms(&self, stamp: &Stamp) -> Vec<Stamp> {
        let mut forms = vec![*stamp];
        for (old, new) in self.copies.get_or_init(|| copies(self.ledger)) {
            if forms.iter().any(|form| old.fits_stamp(form)) {
                forms.push(*new);
            }
        }
        forms
    }

    fn run(&self, record: &ChangeRecord) -> Result<(), UndoFault> {
        let parts: Vec<&Part> = record.made_parts().map(|(_, part)| part).collect();
        let is_single = parts.len() == 1;
        parts
            .into_iter()
            .rev()
            .try_for_each(|part| self.reverse(part, is_single))
    }

    /// Does again what was taken back before a failure. What was kept has its old names again then, so that the change can
    /// be taken back as before.
    fn take_back(&self) {
        let recorder = self.change.recorder();
        let Some((number, parts)) = recorder.made_in(self.history) else {
            return;
        };
        let again = self
            .history
            .take_back(self.root, self.store, number, &parts);
        for index in again {
            recorder.fail_in(self.history, number, index);
        }
        if let Some(quota) = &self.root.observers().quota {
            quota.distrust();
        }
    }

    /// Writes the directories to disk in which something came or went.
    fn sync(&self) -> Result<(), UndoFault> {
        if self.change.durability() == Durability::Fast {
            return Ok(());
        }
        let (_, parts) = (self.change.recorder().made_in(self.history)).unwrap_or_default();
        let ends = parts
            .iter()
            .flat_map(|(_, part)| [Some(part.path.as_str()), part.to.as_deref()]);
        let above = ends
            .flatten()
            .map(|path| path.rsplit_once('/').map_or("", |(above, _)| above));
        let dirs: BTreeSet<&str> = above.collect();
        for path in dirs {
            let synced = match reopen_resolved(self.root, &name::to_bytes(path)) {
                Ok(dir) => self.change.sync_dir(self.root.fd_or(dir.as_ref())),
                // It went too, which is written where it was.
                Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
                Err(errno) => Err(errno),
            };
            synced.map_err(|errno| failed(path, errno))?;
        }
        Ok(())
    }

    fn reverse(&self, part: &Part, is_single: bool) -> Result<(), UndoFault> {
        let path = part.path.as_str();
        // A move between roots is taken back in both.
        if part.lost || part.crossing.is_some() {
            return Err(gone(path));
        }
        match part.kind {
            PartKind::Create => {
                let spot = self.spot(path)?;
                let there = self.require(&spot, path, part.new.as_ref())?;
                self.check_whole(&spot, &there, &[path])?;
                self.remove(&spot, path)
            }
            PartKind::Replace => {
                let spot = self.spot(path)?;
                self.require(&spot, path, part.new.as_ref())?;
                let object = self.object(part)?.ok_or_else(|| gone(path))?;
                self.put(&spot, path, &object, OnExisting::Replace)
            }
            PartKind::Remove => {
                let spot = self.spot(path)?;
                self.require_nothing(&spot, path)?;
                let object = self.object(part)?.ok_or_else(|| gone(path))?;
                self.put(&spot, path, &object, OnExisting::Fail)
            }
            PartKind::Move => self.move_back(part),
            PartKind::MakeDir => self.remove_dir(path, is_single),
            PartKind::RemoveDir => self.make_dir(path, part.old.as_ref()),
            PartKind::Append => self.cut(part),
            PartKind::Cut => self.append(part),
        }
    }

    fn move_back(&self, part: &Part) -> Result<(), UndoFault> {
        let to_path = part.to.as_deref().ok_or_else(|| gone(&part.path))?;
        let (from, to) = (self.spot(&part.path)?, self.spot(to_path)?);
        let stamp = part.new.as_ref();
        let there = self.look(&to, to_path)?.ok_or_else(|| missing(to_path))?;
        if stamp.is_some_and(|stamp| !self.is_file_of(stamp, &Stamp::of(&there))) {
            return Err(conflict(to_path, InPlace::Changed));
        }
        self.require_nothing(&from, &part.path)?;
        self.check_whole(&to, &there, &[to_path, &part.path])?;
        let over_dir = part.old.as_ref().filter(|old| old.is_directory());
        let object = match self.object(part) {
            // Only its permissions are known.
            Err(_) if over_dir.is_some() => None,
            object => object?,
        };
        let (source, target) = (self.entry(&to), self.entry(&from));
        let rename = || rename_entry(source, target, OnExisting::Fail, there.kind);
        let paths = ((source, to_path.to_owned()), (target, part.path.clone()));
        self.change
            .move_kept(self.root.observers(), paths.0, paths.1, &rename)
            .map_err(|errno| failed(to_path, errno))?;
        match (object, over_dir) {
            (Some(object), _) => self.put(&to, to_path, &object, OnExisting::Fail),
            (None, Some(old)) => self.make_dir(to_path, Some(old)),
            (None, None) => Ok(()),
        }
    }

    fn remove(&self, spot: &Spot, path: &str) -> Result<(), UndoFault> {
        let entry = self.entry(spot);
        let plain = || syscall::unlink_unchecked(entry.0, entry.1);
        let shown = || path.to_owned();
        let observers = self.root.observers();
        let below = self.weight_below(spot, path)?;
        let removed = observers.take_away(entry, || {
            self.change.remove_kept(observers, (entry, &shown), &plain)
        });
        removed.map_err(|errno| failed(path, errno))?;
        observers.moved_away(below);
        Ok(())
    }

    /// What all that is in a directory takes of the root's quota, if it has one.
    fn weight_below(&self, spot: &Spot, path: &str) -> Result<Amount, UndoFault> {
        let there = self.look(spot, path)?;
        let has_tree = there.is_some_and(|there| there.is_directory());
        if !has_tree || self.root.observers().quota.is_none() {
            return Ok(Amount::default());
        }
        let measured = quota::measure(self.open_dir(spot, path)?, true, &|| false);
        measured.map_err(|error| refused(path, error))
    }

    fn put(
        &self,
        spot: &Spot,
        path: &str,
        object: &Name,
        on_existing: OnExisting,
    ) -> Result<(), UndoFault> {
        let entry = self.entry(spot);
        let object = (self.store.objects(), object);
        let observers = self.root.observers();
        let shown = || path.to_owned();
        let mut plain = |_: &mut NewEntry<'_>| {
            let kind = syscall::stat_at_unchecked(object.0, object.1)?.kind;
            rename_entry(object, entry, on_existing, kind)
        };
        let amount = || self.store.amount_of(object.1);
        let put = observers.put(entry, &shown, amount, None, || {
            let incoming = NewEntry::Object(object);
            self.change.put_kept(
                observers,
                incoming,
                (entry, &shown),
                on_existing,
                &mut plain,
            )
        });
        match put {
            // Another process took it back at the same time.
            Ok(Err(Errno::NOENT | Errno::AGAIN)) if !self.store.keeps(object.1) => {
                Err(conflict(path, InPlace::Changed))
            }
            Ok(put) => put.map_err(|errno| failed(path, errno)),
            Err(error) => Err(refused(path, error)),
        }
    }

    pub(super) fn remove_dir(&self, path: &str, is_single: bool) -> Result<(), UndoFault> {
        let spot = self.spot(path)?;
        if !self
            .look(&spot, path)?
            .is_some_and(|there| there.is_directory())
        {
            return Err(missing(path));
        }
        let entry = self.entry(&spot);
        let observers = self.root.observers();
        let shown = || path.to_owned();
        let plain = || syscall::remove_dir_unchecked(entry.0, entry.1);
        let removed = observers.take_away(entry, || {
            self.change
                .remove_empty_kept(observers, (entry, &shown), &plain)
        });
        match removed {
            // A directory that was made on the way to a file may serve others by now.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !is_single => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(self.filled(&spot, path)),
            removed => removed.map_err(|errno| failed(path, errno)),
        }
    }

    fn make_dir(&self, path: &str, old: Option<&Stamp>) -> Result<(), UndoFault> {
        let spot = self.spot(path)?;
        self.require_nothing(&spot, path)?;
        let entry = self.entry(&spot);
        let part = || Part::new(PartKind::MakeDir, path.to_owned());
        let make = || {
            syscall::make_dir_unchecked(entry.0, entry.1, 0o777)?;
            let Some(old) = old else { return Ok(()) };
            let dir = syscall::open_dir_unchecked(entry.0, entry.1)?;
            syscall::set_mode_unchecked(dir.as_fd(), old.mode & 0o777)
        };
        let observers = self.root.observers();
        let amount = || Ok(Amount::ENTRY);
        let made = observers.put(entry, &|| path.to_owned(), amount, None, || {
            self.change.noted(observers, part, make)
        });
        made.map_err(|error| refused(path, error))?
            .map_err(|errno| failed(path, errno))
    }

    /// The object of a part, which has to be there if the part has one.
    pub(super) fn object(&self, part: &Part) -> Result<Option<Name>, UndoFault> {
        let Some(object) = &part.object else {
            return Ok(None);
        };
        let name = Name::new(object.as_bytes()).ok_or_else(|| gone(&part.path))?;
        match syscall::stat_at_unchecked(self.store.objects(), &name) {
            Ok(_) => Ok(Some(name)),
            Err(_) => Err(gone(&part.path)),
        }
    }

    pub(super) fn require(
        &self,
        spot: &Spot,
        path: &str,
        stamp: Option<&Stamp>,
    ) -> Result<Metadata, UndoFault> {
        let there = self.look(spot, path)?.ok_or_else(|| missing(path))?;
        match stamp {
            Some(stamp) if !self.is_left(stamp, &self.stamp(spot, &there)) => {
                Err(conflict(path, InPlace::Changed))
            }
            _ => Ok(there),
        }
    }

    /// Security: a directory that goes, or gets another path, takes nothing along that does not exist for whoever does it.
    /// `paths` are those that it has and will have.
    pub(super) fn check_whole(
        &self,
        spot: &Spot,
        there: &Metadata,
        paths: &[&str],
    ) -> Result<(), UndoFault> {
        if self.root.shows_everything() || !there.is_directory() {
            return Ok(());
        }
        let shown = paths.first().copied().unwrap_or_default();
        let top = self.open_dir(spot, shown)?;
        let ends: Vec<_> = paths.iter().map(|path| name::to_bytes(path)).collect();
        match is_whole(self.root, top, &ends, &|| false) {
            Ok(true) => Ok(()),
            _ => Err(denied(shown)),
        }
    }

    fn open_dir(&self, spot: &Spot, path: &str) -> Result<Dir, UndoFault> {
        let (dir, name) = self.entry(spot);
        let opened = syscall::open_dir_unchecked(dir, name).map_err(|errno| failed(path, errno))?;
        let bytes = name::to_bytes(path).into_owned();
        Ok(Dir::new(opened, bytes, self.root.share()))
    }

    /// Why a directory cannot go that is not empty. Security: it may hold nothing that exists for whoever takes it back.
    pub(super) fn filled(&self, spot: &Spot, path: &str) -> UndoFault {
        let shows_nothing = || {
            let entries = self.open_dir(spot, path).map(|dir| dir.entries());
            matches!(entries, Ok(Ok(entries)) if entries.is_empty())
        };
        if !self.root.shows_everything() && shows_nothing() {
            return denied(path);
        }
        conflict(path, InPlace::NotEmpty)
    }

    /// What is at a spot, with its content if it is small.
    pub(super) fn stamp(&self, spot: &Spot, there: &Metadata) -> Stamp {
        stamp_at(self.entry(spot), there)
    }

    pub(super) fn require_nothing(&self, spot: &Spot, path: &str) -> Result<(), UndoFault> {
        match self.look(spot, path)? {
            Some(_) => Err(conflict(path, InPlace::Occupied)),
            None => Ok(()),
        }
    }

    pub(super) fn look(&self, spot: &Spot, path: &str) -> Result<Option<Metadata>, UndoFault> {
        let (dir, name) = self.entry(spot);
        match syscall::stat_at_unchecked(dir, name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(path, errno)),
        }
    }

    /// Security: the directory is opened without following any link, whatever was put on the way since.
    pub(super) fn spot(&self, path: &str) -> Result<Spot, UndoFault> {
        let found = spot_of(self.root, path).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => missing(path),
            errno => failed(path, errno),
        })?;
        Ok(Spot {
            dir: found.0,
            name: found.1,
        })
    }

    /// Tells whether a directory holds something.
    pub(super) fn is_filled(&self, spot: &Spot) -> bool {
        let (dir, name) = self.entry(spot);
        super::keep::require_empty((dir, name)) == Err(Errno::NOTEMPTY)
    }

    pub(super) fn entry<'s>(&'s self, spot: &'s Spot) -> EntryRef<'s> {
        (self.root.fd_or(spot.dir.as_ref()), &spot.name)
    }
}

/// The directory of a recorded path, and the name in it.
pub(super) fn spot_of(root: &Root, path: &str) -> SysResult<(Option<OwnedFd>, Name)> {
    let bytes = name::to_bytes(path);
    let (parent, last) = match bytes.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (bytes.get(..slash), bytes.get(slash + 1..)),
        None => (Some(&[][..]), Some(&*bytes)),
    };
    let name = last.and_then(Name::new).ok_or(Errno::INVAL)?;
    Ok((reopen_resolved(root, parent.unwrap_or_default())?, name))
}

impl History {
    /// Tells whether a change is under way in this process.
    #[must_use]
    pub fn is_under_way(&self, number: u64) -> bool {
        self.journal.is_open(number)
    }
}
