//! Moves between two roots by a rename: one change, under one number in the histories of both.
//!
//! The rename alone decides whether the change was made. Each history can tell that by its own root, so each recovers by
//! itself after a crash, and both reach the same result. A rename the other way undoes such a move. Before it, what the move had
//! replaced is exchanged with what goes back. That happens inside one root, so its history can revert it.

use std::sync::Arc;

use super::History;
use super::change_record::ChangeRecord;
use super::keep::Keeping;
use super::ledger::Ledger;
use super::record::{Crossing, CrossingWay, Part, PartKind, Stamp};
use super::stamp::stamp_at;
use super::undo::{Undoing, judge_part};
use super::undo_fault::{UndoFault, failed, gone, missing, refused};
use crate::change::{Change, EntryRef, OnExisting, rename_entry};
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::quota::{Amount, Reservation};
use crate::rel_path::RelPath;
use crate::resolve::Follow;
use crate::rights::Right;
use crate::root::Root;
use crate::syscall::{self, Errno, SysResult};

/// A change in two histories, begun.
pub(crate) struct JointChange<'a> {
    change: &'a Change,
    from: &'a Located<'a>,
    to: &'a Located<'a>,
    left: &'a Arc<History>,
    entered: &'a Arc<History>,
}

/// What a rename between roots does.
pub(crate) struct RenameAcross<'a> {
    pub(crate) source: EntryRef<'a>,
    pub(crate) target: EntryRef<'a>,
    pub(crate) on_existing: OnExisting,
    /// The object of the root that something leaves which takes the place of that.
    pub(crate) refill: Option<&'a Name>,
}

impl Change {
    /// Begins a change that two roots have together; `None` if their histories cannot both have it.
    pub(crate) fn begin_joint<'a>(
        &'a self,
        from: &'a Located<'_>,
        to: &'a Located<'_>,
    ) -> SysResult<Option<JointChange<'a>>> {
        let histories = [from, to].map(|end| end.root().observers().history.as_ref());
        let [Some(left), Some(entered)] = histories else {
            return Ok(None);
        };
        // One directory may be served as two roots.
        let is_one = from.root().is_same(to.root()) || left.key() == entered.key();
        let stores = left.store().zip(entered.store());
        let Some((source, target)) = stores.filter(|_| !is_one && !self.is_irrevocable()) else {
            return Ok(None);
        };
        let recorder = self.recorder();
        let is_joint = recorder.begin_joint((left, source), (entered, target))?;
        Ok(is_joint.then_some(JointChange {
            change: self,
            from,
            to,
            left,
            entered,
        }))
    }
}

impl Root {
    /// Keeps room for something that is kept, if there is a quota; tells what it takes.
    pub(crate) fn reserve_object(
        &self,
        object: &Name,
        path: &str,
    ) -> crate::Result<Option<(Reservation, Amount)>> {
        let store = self.history().and_then(|history| history.store());
        let (Some(store), true) = (store, self.observers().quota.is_some()) else {
            return Ok(None);
        };
        let amount = store.amount_of(object);
        let amount = amount.map_err(|errno| crate::Error::from_errno("stat", path, errno))?;
        let room = self.observers().reserve(amount, path)?;
        Ok(room.map(|room| (room, amount)))
    }
}

impl JointChange<'_> {
    /// Writes the move down in both histories, and makes it.
    pub(crate) fn rename(&self, rename: &RenameAcross<'_>) -> SysResult<()> {
        let begin = |history| Keeping::begin(self.change, history)?.ok_or(Errno::NOENT);
        let (leaving, entering) = (begin(self.left)?, begin(self.entered)?);
        let moved = syscall::stat_at_unchecked(rename.source.0, rename.source.1)?;
        let stamp = stamp_at(rename.source, &moved);
        let came = self.arrival(&entering, rename.target, stamp)?;
        let went = Part {
            lost: came.lost,
            ..self.departure(&leaving, rename.refill, stamp)?
        };
        let has_kept = came.object.is_some();
        let made = leaving.perform(went, || {
            entering.perform(came, || rename.run(&leaving, moved.kind))
        });
        made.inspect_err(|_| {
            if has_kept {
                let (objects, object) = entering.object();
                let _ = syscall::unlink_unchecked(objects, object);
            }
        })
    }

    /// What happens in the root that something leaves.
    fn departure(
        &self,
        leaving: &Keeping<'_>,
        refill: Option<&Name>,
        stamp: Stamp,
    ) -> SysResult<Part> {
        let crossing = Crossing {
            way: CrossingWay::Went,
            history: self.entered.key(),
            path: self.to.path(),
        };
        let went = Part {
            old: Some(stamp),
            crossing: Some(crossing),
            ..Part::new(PartKind::Remove, self.from.path())
        };
        let Some(refill) = refill else {
            return Ok(went);
        };
        let home = (leaving.store.objects(), refill);
        let metadata = syscall::stat_at_unchecked(home.0, home.1)?;
        Ok(Part {
            kind: PartKind::Replace,
            new: Some(stamp_at(home, &metadata)),
            source: Some(refill.shown().into_owned()),
            // What leaves is there for a moment.
            object: leaving.object_name(),
            ..went
        })
    }

    /// What happens in the root that it enters. What is replaced there is kept.
    fn arrival(
        &self,
        entering: &Keeping<'_>,
        target: EntryRef<'_>,
        stamp: Stamp,
    ) -> SysResult<Part> {
        let crossing = Crossing {
            way: CrossingWay::Came,
            history: self.left.key(),
            path: self.from.path(),
        };
        let came = Part {
            new: Some(stamp),
            crossing: Some(crossing),
            ..Part::new(PartKind::Create, self.to.path())
        };
        let old = match syscall::stat_at_unchecked(target.0, target.1) {
            Err(Errno::NOENT) => return Ok(came),
            old => old?,
        };
        // A directory that is replaced is empty, and one rename can do no more than replace it.
        let is_kept = !old.is_directory() && self.can_refill(entering);
        let is_kept = is_kept && entering.keep_beside(target, &old)?;
        Ok(Part {
            kind: PartKind::Replace,
            old: Some(Stamp::of(&old)),
            object: is_kept.then(|| entering.object_name()).flatten(),
            lost: !is_kept,
            ..came
        })
    }

    /// Tells whether what is replaced could change places with what replaces it.
    fn can_refill(&self, entering: &Keeping<'_>) -> bool {
        self.entered.exchanges() && entering.store.exchanges()
    }
}

impl RenameAcross<'_> {
    fn run(&self, leaving: &Keeping<'_>, kind: FileKind) -> SysResult<()> {
        let Some(refill) = self.refill else {
            return rename_entry(self.source, self.target, self.on_existing, kind);
        };
        let (home, slot) = ((leaving.store.objects(), refill), leaving.object());
        let refill_kind = syscall::stat_at_unchecked(home.0, home.1)?.kind;
        rename_entry(home, slot, OnExisting::Fail, refill_kind)?;
        let exchanged = syscall::exchange_unchecked(slot, self.source);
        let moved = exchanged.and_then(|()| {
            rename_entry(slot, self.target, self.on_existing, kind).inspect_err(|_| {
                let _ = syscall::exchange_unchecked(slot, self.source);
            })
        });
        moved.inspect_err(|_| {
            let _ = rename_entry(slot, home, OnExisting::Fail, refill_kind);
        })
    }
}

/// What one of two roots has of a move between them.
#[derive(Debug, Clone, Copy)]
pub struct CrossedEnd<'a> {
    /// The root.
    pub root: &'a Root,
    /// The change in its history.
    pub record: &'a ChangeRecord,
    /// What is written down there.
    pub ledger: &'a Ledger<'a>,
}

/// Why a move between roots cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossingFault {
    /// At which of the ends, as they were given.
    pub end: usize,
    /// What is wrong there.
    pub fault: UndoFault,
}

/// One end of a move that is taken back.
struct MoveEnd<'a> {
    index: usize,
    undoing: Undoing<'a>,
    record: &'a ChangeRecord,
    part: &'a Part,
}

impl<'a> MoveEnd<'a> {
    fn of(
        change: &'a Change,
        index: usize,
        end: CrossedEnd<'a>,
    ) -> Result<MoveEnd<'a>, CrossingFault> {
        let fault = |path: &str| CrossingFault {
            end: index,
            fault: gone(path),
        };
        let part = end.record.crossing_part().ok_or_else(|| fault(""))?;
        if part.lost {
            return Err(fault(&part.path));
        }
        let undoing = Undoing::of(change, end.root, end.ledger);
        Ok(MoveEnd {
            index,
            undoing: undoing.ok_or_else(|| fault(""))?,
            record: end.record,
            part,
        })
    }

    fn has_come(&self) -> bool {
        let crossing = self.part.crossing.as_ref();
        crossing.is_some_and(|crossing| crossing.way == CrossingWay::Came)
    }

    fn is_other_end_of(&self, other: &MoveEnd<'_>) -> bool {
        let key = other.undoing.history.key();
        self.part
            .crossing
            .as_ref()
            .is_some_and(|crossing| crossing.history == key && crossing.path == other.part.path)
    }

    fn at(&self, fault: UndoFault) -> CrossingFault {
        CrossingFault {
            end: self.index,
            fault,
        }
    }

    fn refused(&self, error: crate::Error) -> CrossingFault {
        self.at(refused(&self.part.path, error))
    }

    /// Security: what is written down has no links on the way, and nothing is reached through one that came since.
    fn locate(&self) -> Result<Located<'a>, CrossingFault> {
        let path = RelPath::parse(&self.part.path).map_err(|error| self.refused(error))?;
        let located = self.undoing.root.locate(&path, Follow::Never);
        let located = located.map_err(|error| self.refused(error))?;
        if located.path() != self.part.path {
            return Err(self.at(missing(&self.part.path)));
        }
        Ok(located)
    }
}

impl Change {
    /// Takes a move between two roots back in both, or in neither.
    ///
    /// The caller has the turn to change both paths. With `is_rehearsal` nothing is changed.
    pub fn undo_crossing(
        &self,
        ends: [CrossedEnd<'_>; 2],
        is_rehearsal: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), CrossingFault> {
        let [one, other] = ends;
        let (one, other) = (MoveEnd::of(self, 0, one)?, MoveEnd::of(self, 1, other)?);
        let (there, home) = match one.has_come() {
            true => (one, other),
            false => (other, one),
        };
        let is_pair = there.has_come() && !home.has_come();
        let is_pair = is_pair && there.is_other_end_of(&home) && home.is_other_end_of(&there);
        if !is_pair || there.record.number != home.record.number {
            return Err(there.at(gone(&there.part.path)));
        }
        let refill = there.refill().map_err(|fault| there.at(fault))?;
        let on_existing = home.make_way().map_err(|fault| home.at(fault))?;
        let (from, to) = (there.locate()?, home.locate()?);
        from.check_whole(Some(&to), stop)
            .map_err(|error| there.refused(error))?;
        if is_rehearsal {
            return Ok(());
        }
        self.recorder().set_undoes(vec![there.record.number]);
        let renamed = self.rename_refilling(&from, &to, (on_existing, refill.as_ref()), stop);
        renamed.map_err(|error| match error {
            error @ crate::Error::AlreadyExists { .. } => home.refused(error),
            error => there.refused(error),
        })?;
        there.remove_made_dirs();
        there.undoing.history.count_undone(1);
        home.undoing.history.count_undone(1);
        Ok(())
    }
}

impl MoveEnd<'_> {
    /// Security: taking it back is a change in both roots, and needs the rights for that in both.
    fn judge(&self, rights: &[Right]) -> Result<(), UndoFault> {
        judge_part(self.undoing.root, self.part, rights)
    }

    /// Looks whether what has come is as the move left it, and tells what takes its place.
    fn refill(&self) -> Result<Option<Name>, UndoFault> {
        let (path, undoing) = (self.part.path.as_str(), &self.undoing);
        self.judge(&[Right::Remove])?;
        let spot = undoing.spot(path)?;
        undoing.require(&spot, path, self.part.new.as_ref())?;
        if self.part.kind != PartKind::Replace {
            return Ok(None);
        }
        self.judge(&[Right::Change])?;
        let refill = undoing.object(self.part)?.ok_or_else(|| gone(path))?;
        if !undoing.store.exchanges() {
            return Err(failed(path, Errno::OPNOTSUPP));
        }
        Ok(Some(refill))
    }

    /// Tells what becomes of what is where something has to go back to.
    fn make_way(&self) -> Result<OnExisting, UndoFault> {
        let (path, undoing) = (self.part.path.as_str(), &self.undoing);
        self.judge(match self.part.kind {
            PartKind::Replace => &[Right::Change],
            _ => &[Right::Create],
        })?;
        let spot = match undoing.spot(path) {
            // Directories that the change removed are made again on the way.
            Err(UndoFault::Conflict { .. }) if self.removed_dirs() => return Ok(OnExisting::Fail),
            spot => spot?,
        };
        match self.part.new.as_ref() {
            None => {
                undoing.require_nothing(&spot, path)?;
                Ok(OnExisting::Fail)
            }
            Some(new) => {
                undoing.require(&spot, path, Some(new))?;
                Ok(OnExisting::Replace)
            }
        }
    }

    fn removed_dirs(&self) -> bool {
        let mut others = self.record.made().filter(|part| part.crossing.is_none());
        others.any(|part| matches!(part.kind, PartKind::Remove | PartKind::RemoveDir))
    }

    /// Removes the directories that were made on the way, unless they serve others by now. The change is made whether or
    /// not that succeeds.
    fn remove_made_dirs(&self) {
        let made = self.record.made().rev();
        for part in made.filter(|part| part.kind == PartKind::MakeDir) {
            let _ = self.undoing.remove_dir(&part.path, false);
        }
    }
}

/// Tells whether something was moved between roots, by what is there now and what the next change found.
pub(super) struct CrossingSeen<'a> {
    /// What is at the path.
    pub(super) there: Option<&'a Metadata>,
    /// What is among the objects under the name that it had there for a moment.
    pub(super) object: Option<Metadata>,
    /// What the next change found at the path, if there was one.
    pub(super) next: Option<Option<Stamp>>,
}

impl CrossingSeen<'_> {
    pub(super) fn is_made(&self, part: &Part, way: CrossingWay) -> bool {
        let is = |stamp: Option<&Stamp>, there: &Metadata| {
            stamp.is_some_and(|stamp| stamp.is_same_file(there))
        };
        let found = |stamp: Option<&Stamp>| match (self.next, stamp) {
            (Some(next), Some(stamp)) => next.is_some_and(|next| stamp.is_same(&next)),
            (_, stamp) => self.there.is_some_and(|there| is(stamp, there)),
        };
        match way {
            CrossingWay::Came => found(part.new.as_ref()),
            CrossingWay::Went => {
                let is_held = self.object.is_some_and(|held| is(part.old.as_ref(), &held));
                !is_held && !found(part.old.as_ref())
            }
        }
    }
}
