//! Computes which changes are in effect. An undo is a change itself and can be undone too: then the first change is in
//! effect again.

use std::collections::{BTreeMap, BTreeSet};

use sandbox::{Ledger, ListedChange};

use super::undo::UndoRefusal;

/// Which of the recorded changes are in effect.
pub(super) struct Effects<'l> {
    ledger: &'l Ledger<'l>,
    /// The changes that are not in effect, each with the change that undid it.
    undone: BTreeMap<u64, u64>,
    /// The last change that undid another one, in effect or not.
    last_undoing: BTreeMap<u64, u64>,
}

impl<'l> Effects<'l> {
    pub(super) fn of(ledger: &'l Ledger<'l>) -> Effects<'l> {
        let (mut undone, mut last_undoing) = (BTreeMap::new(), BTreeMap::new());
        // From the newest on: an undo that was undone itself undoes nothing.
        for (number, undoes) in ledger.undoing().rev() {
            let holds = !undone.contains_key(&number);
            for taken_back in undoes {
                last_undoing.entry(*taken_back).or_insert(number);
                if holds {
                    undone.insert(*taken_back, number);
                }
            }
        }
        Effects {
            ledger,
            undone,
            last_undoing,
        }
    }

    /// The change that undid another one, if it is in effect.
    pub(super) fn undone_by(&self, number: u64) -> Option<u64> {
        self.undone.get(&number).copied()
    }

    /// The changes that are in effect, newest first.
    pub(super) fn holding(&self) -> impl Iterator<Item = ListedChange<'l>> {
        let newest = self.ledger.all().rev();
        newest.filter(|change| !self.undone.contains_key(&change.number()))
    }

    /// The record whose parts are those of a change as it holds now: its own, or of the change that made it again.
    pub(super) fn form(&self, number: u64) -> u64 {
        let undoing = |number: &u64| self.last_undoing.get(number);
        let again = undoing(&number).and_then(undoing);
        again.map_or(number, |again| self.form(*again))
    }

    /// The first changes that a record makes, takes back or makes again.
    fn origins(&self, number: u64) -> BTreeSet<u64> {
        match self.ledger.undoes_of(number) {
            [] => BTreeSet::from([number]),
            undoes => {
                let undoes = undoes.iter();
                undoes.flat_map(|undone| self.origins(*undone)).collect()
            }
        }
    }

    /// The record to reverse for one change.
    pub(super) fn reversing(&self, number: u64) -> Result<u64, UndoRefusal> {
        if let Some(by) = self.undone_by(number) {
            return Err(UndoRefusal::AlreadyUndone(by));
        }
        let form = self.form(number);
        if self.origins(form) != self.origins(number) {
            return Err(UndoRefusal::Together(form));
        }
        Ok(form)
    }

    /// The records to reverse, the newest first, so that everything is as it was before `first`. Only those that `fits`
    /// lets through count.
    pub(super) fn reversing_since(
        &self,
        first: u64,
        fits: impl Fn(&ListedChange<'_>) -> bool,
    ) -> Result<Vec<u64>, UndoRefusal> {
        let mut forms = BTreeSet::new();
        let later = self.holding().take_while(|change| change.number() >= first);
        for change in later.filter(|change| fits(change)) {
            let undoes = self.ledger.undoes_of(change.number());
            let is_later = |number: &u64| *number >= first;
            // An undo that only reversed later changes is reversed with them, or has nothing left to do.
            if !undoes.is_empty() && undoes.iter().all(is_later) {
                continue;
            }
            let form = self.form(change.number());
            let is_mixed = undoes.iter().any(is_later);
            let reaches_back = undoes.is_empty() && !self.origins(form).iter().all(is_later);
            if is_mixed || reaches_back {
                return Err(UndoRefusal::Together(form));
            }
            forms.insert(form);
        }
        Ok(forms.into_iter().rev().collect())
    }
}
