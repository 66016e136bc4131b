//! Takes a move between two roots back, in both or in neither.

use std::sync::Arc;

use sandbox::{ChangeRecord, CrossedEnd, CrossingFault, InPlace, Ledger, Root, UndoFault};

use super::undo::{Undo, UndoRefusal, UndoTarget, Undone, lock_keys, planned};
use crate::context::Context;
use crate::edit_lock::EditLock;
use crate::error::Result;

/// Another root in which a client may take changes back.
#[derive(Debug, Clone)]
pub struct OtherRoot {
    /// Its name.
    pub name: String,
    /// The root.
    pub root: Arc<Root>,
    /// The tools that the client may use there.
    pub tools: Vec<&'static str>,
}

impl OtherRoot {
    /// One in which the operator takes changes back.
    #[must_use]
    pub fn of(name: String, root: Arc<Root>) -> OtherRoot {
        OtherRoot {
            name,
            root,
            tools: Vec::new(),
        }
    }
}

/// The change in the other root.
struct OtherEnd<'a> {
    name: &'a str,
    /// What taking it back would be there.
    undo: Undo,
    record: ChangeRecord,
}

impl OtherEnd<'_> {
    fn refused(&self, refusal: UndoRefusal) -> UndoRefusal {
        UndoRefusal::Elsewhere {
            root: self.name.to_owned(),
            refusal: Box::new(refusal),
        }
    }

    fn ledger(&self) -> Option<Ledger<'_>> {
        Some(self.undo.root.history()?.ledger())
    }
}

/// What is said of changes one of which was made in two roots: it is taken back alone.
pub(super) fn require_alone(chosen: &[ChangeRecord]) -> std::result::Result<(), UndoRefusal> {
    let mut crossing = chosen
        .iter()
        .filter(|record| record.crossing_part().is_some());
    match crossing.next() {
        Some(record) if chosen.len() > 1 => Err(UndoRefusal::Alone(record.number)),
        _ => Ok(()),
    }
}

impl Undo {
    /// Takes back a move between two roots; `None` if it has to be chosen again, because others changed something.
    pub(super) fn judged_crossing(
        &self,
        chosen: &ChangeRecord,
        context: &Context,
    ) -> Result<Option<std::result::Result<Undone, UndoRefusal>>> {
        let other = match self.other_end(chosen) {
            Ok(other) => other,
            Err(refusal) => return Ok(Some(Err(refusal))),
        };
        let both = [chosen.clone(), other.record.clone()];
        let (mine, others) = both.split_at(1);
        let keys = || {
            let mut keys = lock_keys(&self.root, mine);
            keys.extend(lock_keys(&other.undo.root, others));
            keys
        };
        let (lock, ()) = EditLock::take_found(&|| Ok(()), &|()| keys(), &context.cancel)?;
        let Some((ledger, theirs)) = self.ledger().zip(other.ledger()) else {
            return Ok(None);
        };
        if !self.still_chooses(&ledger, chosen) || !other.undo.still_chooses(&theirs, &other.record)
        {
            return Ok(None);
        }
        let change = if self.is_rehearsal {
            context.unseen_change()
        } else {
            context.change(planned(&both))?
        };
        lock.confirm()?;
        let ends = [
            self.end(&ledger, chosen),
            other.undo.end(&theirs, &other.record),
        ];
        let stop = || context.cancel.must_stop();
        let undone = match self.changed_in_either(&other, ends) {
            Some(fault) => Err(fault),
            None => change.undo_crossing(ends, self.is_rehearsal, &stop),
        };
        let refusal = match undone {
            Ok(()) => {
                return Ok(Some(Ok(Undone {
                    changes: vec![chosen.clone()],
                })));
            }
            Err(CrossingFault { end: 0, fault }) => self.refusal(fault, &ledger, mine, context)?,
            Err(CrossingFault { fault, .. }) => {
                other.refused(other.undo.refusal(fault, &theirs, others, context)?)
            }
        };
        Ok(Some(Err(refusal)))
    }

    fn end<'a>(&'a self, ledger: &'a Ledger<'a>, record: &'a ChangeRecord) -> CrossedEnd<'a> {
        CrossedEnd {
            root: &self.root,
            record,
            ledger,
        }
    }

    /// Whether a ledger that may have changed still leads to this change alone.
    fn still_chooses(&self, ledger: &Ledger<'_>, record: &ChangeRecord) -> bool {
        let again = self.choose_of(ledger);
        again.is_ok_and(|again| again == std::slice::from_ref(record))
    }

    /// Finds the change in the other root, if the client may take it back there.
    fn other_end(&self, chosen: &ChangeRecord) -> std::result::Result<OtherEnd<'_>, UndoRefusal> {
        let key = chosen.crossing_part().and_then(|part| part.other_history());
        let is_it = |other: &&OtherRoot| {
            let history = other.root.history();
            history.is_some_and(|history| Some(history.key().as_str()) == key)
        };
        let other = self
            .others
            .iter()
            .find(is_it)
            .ok_or(UndoRefusal::OtherEnd)?;
        let undo = Undo {
            root: Arc::clone(&other.root),
            others: Vec::new(),
            target: UndoTarget::Change(chosen.number),
            by: self.by.clone(),
            forbids: self.forbids,
            tools: other.tools.clone(),
            is_rehearsal: self.is_rehearsal,
        };
        let found = undo.ledger().map(|ledger| undo.choose_of(&ledger));
        let record = match found {
            Some(Ok(records)) => <[ChangeRecord; 1]>::try_from(records).ok(),
            // Security: what is hidden there, or was there, is not told.
            Some(Err(UndoRefusal::Forbidden { .. } | UndoRefusal::Unknown)) | None => None,
            Some(Err(refusal)) => {
                return Err(UndoRefusal::Elsewhere {
                    root: other.name.clone(),
                    refusal: Box::new(refusal),
                });
            }
        };
        let [record] = record.ok_or(UndoRefusal::OtherEnd)?;
        Ok(OtherEnd {
            name: &other.name,
            undo,
            record,
        })
    }

    fn changed_in_either(
        &self,
        other: &OtherEnd<'_>,
        [own, theirs]: [CrossedEnd<'_>; 2],
    ) -> Option<CrossingFault> {
        let fault = |end, path| CrossingFault {
            end,
            fault: UndoFault::Conflict {
                path,
                found: InPlace::Changed,
            },
        };
        let changed = |undo: &Undo, end: CrossedEnd<'_>| {
            undo.changed_inside(end.ledger, std::slice::from_ref(end.record))
        };
        let own = changed(self, own).map(|path| fault(0, path));
        own.or_else(|| changed(&other.undo, theirs).map(|path| fault(1, path)))
    }
}
