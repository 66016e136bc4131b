//! Which changes hold. Taking back a change is a change itself, and can be taken back too: then the first one holds again.

use std::collections::{BTreeMap, BTreeSet};

use sandbox::ChangeRecord;

use super::undo::UndoRefusal;

/// Which changes hold, of all that are written down.
pub(super) struct Effects<'a> {
    records: BTreeMap<u64, &'a ChangeRecord>,
    /// The changes that do not hold, each with the one that took it back.
    undone: BTreeMap<u64, u64>,
}

impl<'a> Effects<'a> {
    pub(super) fn of(all: &'a [ChangeRecord]) -> Effects<'a> {
        let made = all.iter().filter(|record| record.is_made());
        let records: BTreeMap<u64, &ChangeRecord> =
            made.map(|record| (record.number, record)).collect();
        let mut undone = BTreeMap::new();
        // From the newest on: one that was taken back itself takes nothing back.
        for record in records.values().rev() {
            if !undone.contains_key(&record.number) {
                let taken_back = record.author.undoes.iter();
                undone.extend(taken_back.map(|number| (*number, record.number)));
            }
        }
        Effects { records, undone }
    }

    /// The change that took another back, if it holds.
    pub(super) fn undone_by(&self, number: u64) -> Option<u64> {
        self.undone.get(&number).copied()
    }

    /// The changes that hold, the newest first.
    pub(super) fn holding(&self) -> impl Iterator<Item = &'a ChangeRecord> {
        let newest = self.records.values().rev().copied();
        newest.filter(|record| !self.undone.contains_key(&record.number))
    }

    /// The record whose parts are those of a change as it holds now: its own, or of the change that made it again.
    fn form(&self, number: u64) -> u64 {
        let undoing = |number: u64| {
            let mut newest = self.records.values().rev();
            let undoing = newest.find(|record| record.author.undoes.contains(&number));
            undoing.map(|record| record.number)
        };
        let again = undoing(number).and_then(undoing);
        again.map_or(number, |again| self.form(again))
    }

    /// The first changes that a record makes, takes back or makes again.
    fn origins(&self, number: u64) -> BTreeSet<u64> {
        match self.records.get(&number) {
            Some(record) if !record.author.undoes.is_empty() => {
                let undoes = record.author.undoes.iter();
                undoes.flat_map(|undone| self.origins(*undone)).collect()
            }
            _ => BTreeSet::from([number]),
        }
    }

    /// The record to reverse for one change.
    pub(super) fn reversing(&self, number: u64) -> Result<&'a ChangeRecord, UndoRefusal> {
        if let Some(by) = self.undone_by(number) {
            return Err(UndoRefusal::AlreadyUndone(by));
        }
        let form = self.form(number);
        if self.origins(form) != self.origins(number) {
            return Err(UndoRefusal::Together(form));
        }
        self.records.get(&form).copied().ok_or(UndoRefusal::Unknown)
    }

    /// The records to reverse, the newest first, so that everything is as it was before `first`. Only those that `fits`
    /// lets through count.
    pub(super) fn reversing_since(
        &self,
        first: u64,
        fits: impl Fn(&ChangeRecord) -> bool,
    ) -> Result<Vec<&'a ChangeRecord>, UndoRefusal> {
        let mut forms = BTreeSet::new();
        let later = self.holding().take_while(|record| record.number >= first);
        for record in later.filter(|record| fits(record)) {
            let undoes = &record.author.undoes;
            let is_later = |number: &u64| *number >= first;
            // What took back only later changes is taken back with them, or has nothing left to do.
            if !undoes.is_empty() && undoes.iter().all(is_later) {
                continue;
            }
            let form = self.form(record.number);
            let is_mixed = undoes.iter().any(is_later);
            let reaches_back = undoes.is_empty() && !self.origins(form).iter().all(is_later);
            if is_mixed || reaches_back {
                return Err(UndoRefusal::Together(form));
            }
            forms.insert(form);
        }
        let forms = forms.iter().rev();
        Ok(forms
            .filter_map(|form| self.records.get(form).copied())
            .collect())
    }
}
