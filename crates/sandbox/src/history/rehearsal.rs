//! Finds out whether changes can be undone, before anything is touched.
//!
//! The result of each step is remembered, so that the next one is judged by it. What is below a directory that would
//! come or go cannot be seen yet; the step itself looks at it.

use std::collections::HashMap;

use super::change_record::ChangeRecord;
use super::record::{Part, PartKind, Stamp};
use super::undo::Undoing;
use super::undo_fault::{InPlace, UndoFault, conflict, gone, missing};

/// What is at a path, if that is known.
enum Seen {
    Nothing,
    Entry(Stamp),
    /// A directory on the way would come or go.
    Unknown,
}

/// What earlier steps would leave.
struct UndoRehearsal<'a> {
    undoing: &'a Undoing<'a>,
    left: HashMap<String, Option<Stamp>>,
}

impl Undoing<'_> {
    /// Checks whether all parts of changes can be undone.
    pub(super) fn rehearse(&self, records: &[ChangeRecord]) -> Result<(), UndoFault> {
        let mut rehearsal = UndoRehearsal {
            undoing: self,
            left: HashMap::new(),
        };
        for record in records {
            let is_single = record.made_parts().count() == 1;
            for (_, part) in record.made_parts().rev() {
                rehearsal.step(part, is_single)?;
            }
        }
        Ok(())
    }
}

impl UndoRehearsal<'_> {
    fn step(&mut self, part: &Part, is_single: bool) -> Result<(), UndoFault> {
        let path = part.path.as_str();
        if part.lost || part.crossing.is_some() {
            return Err(gone(path));
        }
        match part.kind {
            PartKind::Create | PartKind::Replace => {
                self.require(path, part.new.as_ref())?;
                self.check_whole(path, &[path])?;
                self.leave(path, self.kept(part)?);
            }
            PartKind::Remove => {
                self.require_nothing(path)?;
                self.leave(path, self.kept(part)?);
            }
            PartKind::Move => self.move_back(part)?,
            PartKind::MakeDir => self.remove_dir(path, is_single)?,
            PartKind::RemoveDir => {
                self.require_nothing(path)?;
                self.leave(path, part.old);
            }
            PartKind::Append | PartKind::Cut => self.change_end(part)?,
        }
        Ok(())
    }

    /// What a part replaced or removed, which has to be kept still.
    fn kept(&self, part: &Part) -> Result<Option<Stamp>, UndoFault> {
        if part.kind != PartKind::Create && part.object.is_none() {
            return Err(gone(&part.path));
        }
        self.undoing.object(part)?;
        Ok(part.old)
    }

    fn move_back(&mut self, part: &Part) -> Result<(), UndoFault> {
        let to = part.to.as_deref().ok_or_else(|| gone(&part.path))?;
        match self.see(to)? {
            Seen::Nothing => return Err(missing(to)),
            Seen::Entry(there) => {
                let is_other = |new: &Stamp| !self.undoing.is_file_of(new, &there);
                if part.new.as_ref().is_some_and(is_other) {
                    return Err(conflict(to, InPlace::Changed));
                }
            }
            Seen::Unknown => {}
        }
        self.require_nothing(&part.path)?;
        self.check_whole(to, &[to, &part.path])?;
        // Of a directory that was replaced its permissions are enough.
        if !part.old.is_some_and(|old| old.is_directory()) {
            self.undoing.object(part)?;
        }
        self.leave(to, part.old);
        self.leave(&part.path, part.new);
        Ok(())
    }

    fn remove_dir(&mut self, path: &str, is_single: bool) -> Result<(), UndoFault> {
        match self.see(path)? {
            Seen::Entry(there) if !there.is_directory() => return Err(missing(path)),
            Seen::Nothing => return Err(missing(path)),
            Seen::Entry(_) if is_single && self.is_filled(path)? => {
                return Err(self.undoing.filled(&self.undoing.spot(path)?, path));
            }
            _ => {}
        }
        self.leave(path, None);
        Ok(())
    }

    /// Tells whether a directory holds something, unless a step would have taken something out of it.
    fn is_filled(&self, path: &str) -> Result<bool, UndoFault> {
        let is_below = |other: &String| other != path && crate::is_within(other, path);
        if self.left.keys().any(is_below) {
            return Ok(false);
        }
        let spot = self.undoing.spot(path)?;
        Ok(self.undoing.is_filled(&spot))
    }

    fn change_end(&mut self, part: &Part) -> Result<(), UndoFault> {
        let path = part.path.as_str();
        let tail = part.tail.as_ref().ok_or_else(|| gone(path))?;
        let (before, after) = match part.kind {
            PartKind::Append => (tail.at, tail.at + tail.length),
            _ => (tail.at + tail.length, tail.at),
        };
        self.undoing.object(part)?;
        match self.see(path)? {
            Seen::Nothing => return Err(missing(path)),
            Seen::Entry(there) => {
                let is_same = |old: &Stamp| self.undoing.is_file_of(old, &there);
                if !part.old.as_ref().is_some_and(is_same) || there.size != Some(after) {
                    return Err(conflict(path, InPlace::Changed));
                }
                let size = Some(before);
                let old = part.old.map(|old| Stamp { size, ..old });
                self.leave(path, old);
            }
            Seen::Unknown => {}
        }
        Ok(())
    }

    /// Looks whether a directory may go or move, if it is there now and not only by then.
    fn check_whole(&self, path: &str, paths: &[&str]) -> Result<(), UndoFault> {
        let is_near = |other: &String| crate::is_within(path, other);
        if self.left.keys().any(is_near) {
            return Ok(());
        }
        let spot = self.undoing.spot(path)?;
        match self.undoing.look(&spot, path)? {
            Some(there) => self.undoing.check_whole(&spot, &there, paths),
            None => Ok(()),
        }
    }

    fn require(&self, path: &str, new: Option<&Stamp>) -> Result<(), UndoFault> {
        match (self.see(path)?, new) {
            (Seen::Nothing, _) => Err(missing(path)),
            (Seen::Entry(there), Some(new)) if !self.undoing.is_left(new, &there) => {
                Err(conflict(path, InPlace::Changed))
            }
            _ => Ok(()),
        }
    }

    fn require_nothing(&self, path: &str) -> Result<(), UndoFault> {
        match self.see(path)? {
            Seen::Entry(_) => Err(conflict(path, InPlace::Occupied)),
            Seen::Nothing | Seen::Unknown => Ok(()),
        }
    }

    fn see(&self, path: &str) -> Result<Seen, UndoFault> {
        if let Some(left) = self.left.get(path) {
            return Ok(left.map_or(Seen::Nothing, Seen::Entry));
        }
        let is_above = |other: &String| crate::is_within(path, other);
        if self.left.keys().any(is_above) {
            return Ok(Seen::Unknown);
        }
        let spot = match self.undoing.spot(path) {
            Err(UndoFault::Conflict { .. }) => return Ok(Seen::Nothing),
            spot => spot?,
        };
        let there = self.undoing.look(&spot, path)?;
        Ok(there.map_or(Seen::Nothing, |there| {
            Seen::Entry(self.undoing.stamp(&spot, &there))
        }))
    }

    fn leave(&mut self, path: &str, left: Option<Stamp>) {
        // Entries below it follow it.
        self.left.retain(|other, _| !crate::is_within(other, path));
        self.left.insert(path.to_owned(), left);
    }
}
