//! Undoes changes: chooses them, locks what they touched, and explains refusals.

use std::sync::Arc;

use sandbox::{ChangeRecord, InPlace, Ledger, Mention, PartKind, Root, UndoFault, is_within};

use super::crossed::{OtherRoot, require_alone};
use super::dirs_on_the_way::with_dirs_on_the_way;
use super::effect::Effects;
use super::moment::{self, Diff};
use super::seen::{is_seen, is_wholly_seen, seen_part};
use super::{newest_of, refused, touches, touches_visibly};
use crate::consent::Planned;
use crate::context::Context;
use crate::edit_lock::{EditLock, LockKey};
use crate::error::{Error, Result};
use crate::operation::Operation;

/// How often the changes are chosen again because new ones arrived while it waited for the lock.
const TRIES: usize = 4;

/// Which change is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoTarget {
    /// This one.
    Change(u64),
    /// The caller's last one that is in effect.
    Last,
    /// The last one of a path that is in effect.
    LastOfPath(String),
    /// This one and everything after it, of a path if one is given.
    Since(u64, Option<String>),
}

/// Who undoes changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoBy {
    /// Someone who may undo any change.
    Anyone,
    /// A client that may undo its own changes.
    Account {
        /// Its account, which identifies its changes.
        account: String,
        /// The common prefix of the accounts of its earlier connections, if there is one.
        before: Option<String>,
    },
}

impl UndoBy {
    fn owns(&self, record: &ChangeRecord) -> bool {
        match self {
            UndoBy::Anyone => true,
            UndoBy::Account { account, before } => {
                let made_by = &record.author.account;
                let earlier = before.as_ref();
                made_by == account || earlier.is_some_and(|before| made_by.starts_with(before))
            }
        }
    }
}

/// Undoes changes of a root.
#[derive(Debug)]
pub struct Undo {
    /// The root.
    pub root: Arc<Root>,
    /// The other roots in which the client may take changes back: a move between two is taken back in both.
    pub others: Vec<OtherRoot>,
    /// Which changes.
    pub target: UndoTarget,
    /// Who asks.
    pub by: UndoBy,
    /// What a client may not do, though it may undo.
    pub forbids: fn(&[&str], PartKind) -> bool,
    /// The tools that the client may use.
    pub tools: Vec<&'static str>,
    /// Whether nothing is changed.
    pub is_rehearsal: bool,
}

/// Why nothing was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoRefusal {
    /// The root keeps no history.
    NoHistory,
    /// There is no such change.
    Unknown,
    /// The client made no change that is in effect.
    NothingLeft,
    /// The change is too old: the old content is no longer kept.
    Gone {
        /// The path that is not kept, if one is known.
        path: Option<String>,
    },
    /// Something changed since.
    Conflict {
        /// The change that was to be undone.
        change: u64,
        /// The path.
        path: String,
        /// What is there.
        found: InPlace,
        /// The last change of that path since, if this server made one.
        since: Option<Box<ChangeRecord>>,
        /// How the path differs from what the change left, if that is known.
        diff: Option<Diff>,
    },
    /// It was already undone by this change.
    AlreadyUndone(u64),
    /// It was redone together with others, by this change.
    Together(u64),
    /// Another client made it.
    Foreign(Box<ChangeRecord>),
    /// The client may not do to this path what the undo would do.
    Forbidden {
        /// What the change did.
        kind: PartKind,
        /// The path.
        path: String,
    },
    /// It moved something between two roots, and is taken back alone.
    Alone(u64),
    /// It moved something between two roots, and the client may not take it back in the other.
    OtherEnd,
    /// The undo was refused in the other root.
    Elsewhere {
        /// The name of that root.
        root: String,
        /// Why.
        refusal: Box<UndoRefusal>,
    },
    /// It is not finished yet.
    UnderWay,
    /// The system refused a step, and everything is as it was before.
    Failed {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// What was undone, newest first.
#[derive(Debug)]
pub struct Undone {
    /// The changes.
    pub changes: Vec<ChangeRecord>,
}

impl Operation for Undo {
    type Outcome = Undone;

    /// Undoes the changes or says why not. Never half of them.
    fn run(self, context: &Context) -> Result<Undone> {
        self.judged(context)?.map_err(refused)
    }
}

impl Undo {
    /// On behalf of the operator: may undo anything.
    #[must_use]
    pub fn by_operator(
        root: Arc<Root>,
        others: Vec<OtherRoot>,
        target: UndoTarget,
        is_rehearsal: bool,
    ) -> Undo {
        Undo {
            root,
            others,
            target,
            by: UndoBy::Anyone,
            forbids: |_, _| false,
            tools: Vec::new(),
            is_rehearsal,
        }
    }

    fn judged(&self, context: &Context) -> Result<std::result::Result<Undone, UndoRefusal>> {
        let Some(history) = self.root.history() else {
            return Ok(Err(UndoRefusal::NoHistory));
        };
        for _ in 0..TRIES {
            let chosen = match self.choose(&history.ledger(), history) {
                Ok(chosen) => chosen,
                Err(refusal) => return Ok(Err(refusal)),
            };
            if let [one] = chosen.as_slice()
                && one.crossing_part().is_some()
            {
                match self.judged_crossing(one, context)? {
                    Some(judged) => return Ok(judged),
                    None => continue,
                }
            }
            let keys = || lock_keys(&self.root, &chosen);
            let (lock, ()) = EditLock::take_found(&|| Ok(()), &|()| keys(), &context.cancel)?;
            // Another call may have undone them while this one waited.
            let ledger = history.ledger();
            if self.choose(&ledger, history).as_ref() != Ok(&chosen) {
                continue;
            }
            let change = if self.is_rehearsal {
                context.unseen_change()
            } else {
                context.change(planned(&chosen))?
            };
            lock.confirm()?;
            let undone = match self.changed_inside(&ledger, &chosen) {
                Some(path) => Err(UndoFault::Conflict {
                    path,
                    found: InPlace::Changed,
                }),
                None => self.undone(&change, &chosen, &ledger),
            };
            return Ok(match undone {
                Ok(()) => Ok(Undone { changes: chosen }),
                Err(fault) => Err(self.refusal(fault, &ledger, &chosen, context)?),
            });
        }
        Ok(Err(UndoRefusal::UnderWay))
    }

    /// Undoes them; if the disk is full, what is kept of other changes goes first.
    fn undone(
        &self,
        change: &sandbox::Change,
        chosen: &[ChangeRecord],
        ledger: &Ledger<'_>,
    ) -> std::result::Result<(), UndoFault> {
        let needed: Vec<u64> = chosen.iter().map(|record| record.number).collect();
        loop {
            match change.undo(&self.root, chosen, ledger, self.is_rehearsal) {
                Err(UndoFault::Full { .. }) if self.root.make_room_beside(&needed) => {}
                undone => return undone,
            }
        }
    }

    pub(super) fn ledger(&self) -> Option<Ledger<'_>> {
        Some(self.root.history()?.ledger())
    }

    /// The changes that are meant, by what is written down.
    pub(super) fn choose_of(
        &self,
        ledger: &Ledger<'_>,
    ) -> std::result::Result<Vec<ChangeRecord>, UndoRefusal> {
        let history = self.root.history().ok_or(UndoRefusal::NoHistory)?;
        self.choose(ledger, history)
    }

    fn choose(
        &self,
        ledger: &Ledger<'_>,
        history: &sandbox::History,
    ) -> std::result::Result<Vec<ChangeRecord>, UndoRefusal> {
        let effects = Effects::of(ledger);
        let numbers = self.numbers(ledger, &effects, history)?;
        let chosen: Vec<ChangeRecord> = numbers
            .into_iter()
            .filter_map(|number| self.seen(ledger.get(number)))
            .map(|record| with_dirs_on_the_way(record, ledger))
            .collect();
        if chosen.is_empty() {
            return Err(UndoRefusal::NothingLeft);
        }
        self.judge(&chosen, history)?;
        require_alone(&chosen)?;
        Ok(chosen)
    }

    /// A change, if it was made and the client may see any part of it.
    fn seen(&self, record: Option<ChangeRecord>) -> Option<ChangeRecord> {
        record.filter(|record| record.is_made() && is_seen(&self.root, record))
    }

    /// The changes to reverse, the newest first.
    fn numbers(
        &self,
        ledger: &Ledger<'_>,
        effects: &Effects<'_>,
        history: &sandbox::History,
    ) -> std::result::Result<Vec<u64>, UndoRefusal> {
        let known = |number: u64| match self.seen(ledger.get(number)) {
            Some(_) => Ok(()),
            None if number < history.oldest_kept() => Err(UndoRefusal::Gone { path: None }),
            None => Err(UndoRefusal::Unknown),
        };
        match &self.target {
            UndoTarget::Change(number) => {
                known(*number)?;
                Ok(vec![effects.reversing(*number)?])
            }
            UndoTarget::Last => {
                let UndoBy::Account { account, .. } = &self.by else {
                    return self.last(ledger, effects, None, |_| true);
                };
                let mention = Mention::of_text(account);
                let is_own = |record: &ChangeRecord| record.author.account == *account;
                self.last(ledger, effects, Some(&mention), is_own)
            }
            UndoTarget::LastOfPath(path) => {
                let mention = Mention::of_path(path);
                self.last(ledger, effects, Some(&mention), |record| {
                    touches_visibly(&self.root, record, path)
                })
            }
            UndoTarget::Since(number, path) => {
                known(*number)?;
                let Some(path) = path else {
                    return effects.reversing_since(*number, |_| true);
                };
                let mention = Mention::of_path(path);
                effects.reversing_since(*number, |change| {
                    change.mentions(&mention)
                        && change
                            .record()
                            .is_some_and(|record| touches_visibly(&self.root, &record, path))
                })
            }
        }
    }

    /// The last matching change that is in effect and is not an undo itself.
    fn last(
        &self,
        ledger: &Ledger<'_>,
        effects: &Effects<'_>,
        mention: Option<&Mention>,
        fits: impl Fn(&ChangeRecord) -> bool,
    ) -> std::result::Result<Vec<u64>, UndoRefusal> {
        let last = effects
            .holding()
            .filter(|change| ledger.undoes_of(change.number()).is_empty())
            .filter(|change| mention.is_none_or(|mention| change.mentions(mention)))
            .filter_map(|change| self.seen(change.record()))
            .find(|record| fits(record));
        let last = last.ok_or(UndoRefusal::NothingLeft)?;
        Ok(vec![effects.reversing(last.number)?])
    }

    /// Checks whether the client may undo these at all.
    fn judge(
        &self,
        chosen: &[ChangeRecord],
        history: &sandbox::History,
    ) -> std::result::Result<(), UndoRefusal> {
        for record in chosen {
            if !history.undo_any() && !self.by.owns(record) {
                return Err(UndoRefusal::Foreign(Box::new(record.clone())));
            }
            if record.is_pruned() {
                return Err(UndoRefusal::Gone { path: None });
            }
            if history.is_under_way(record.number) {
                return Err(UndoRefusal::UnderWay);
            }
            // Security: a part that the client cannot see is not named, so the refusal covers the whole change.
            let is_whole = is_wholly_seen(&self.root, record);
            let is_forbidden = |kind| !is_whole || (self.forbids)(&self.tools, kind);
            let seen = seen_part(&self.root, record.clone());
            let kind = |part: &sandbox::Part| match part.other_history() {
                Some(_) => PartKind::Move,
                None => part.kind,
            };
            if let Some(part) = seen.made().find(|part| is_forbidden(kind(part))) {
                let (kind, path) = (kind(part), part.path.clone());
                return Err(UndoRefusal::Forbidden { kind, path });
            }
        }
        Ok(())
    }

    /// Finds a later change inside a tree that the undo would remove with it, although it was not asked to undo that
    /// change.
    pub(super) fn changed_inside(
        &self,
        ledger: &Ledger<'_>,
        chosen: &[ChangeRecord],
    ) -> Option<String> {
        let trees = chosen.iter().flat_map(|record| {
            let trees = record.made().filter(|part| part.makes_tree());
            trees.map(|part| (record.number, part.path.as_str()))
        });
        let trees: Vec<(u64, &str)> = trees.collect();
        let first = trees.iter().map(|(number, _)| *number).min()?;
        let effects = Effects::of(ledger);
        let is_chosen = |number| chosen.iter().any(|record| record.number == number);
        let later = effects.holding();
        let mut later = later.take_while(|change| change.number() > first);
        later.find_map(|change| {
            let number = change.number();
            let undoes = ledger.undoes_of(number);
            let took_back_later =
                |tree: u64| !undoes.is_empty() && undoes.iter().all(|one| *one > tree);
            // An undo that only reversed changes made after the tree has left the tree as it was.
            let is_inside = |tree: u64| number > tree && !took_back_later(tree);
            let near = trees.iter().filter(|(tree, path)| {
                is_inside(*tree) && change.mentions(&Mention::of_path(path))
            });
            let near: Vec<&str> = near.map(|(_, path)| *path).collect();
            if near.is_empty() || is_chosen(effects.form(number)) {
                return None;
            }
            let record = seen_part(&self.root, self.seen(change.record())?);
            near.into_iter().find_map(|tree| path_inside(&record, tree))
        })
    }

    pub(super) fn refusal(
        &self,
        fault: UndoFault,
        ledger: &Ledger<'_>,
        chosen: &[ChangeRecord],
        context: &Context,
    ) -> Result<UndoRefusal> {
        Ok(match fault {
            UndoFault::Gone { path } => UndoRefusal::Gone {
                path: (!path.is_empty()).then_some(path),
            },
            UndoFault::Failed { path, reason } => UndoRefusal::Failed { path, reason },
            UndoFault::Full { path } => return Err(Error::DiskFull { path }),
            UndoFault::Unsynced { path, reason } => return Err(Error::Unsynced { path, reason }),
            UndoFault::Denied { path } => return Err(Error::PermissionDenied { path }),
            UndoFault::NotGranted { path, right } => {
                return Err(Error::NotGranted { path, right });
            }
            UndoFault::OverQuota {
                path,
                limit,
                most,
                used,
                needed,
            } => {
                return Err(Error::QuotaExceeded {
                    path,
                    limit,
                    most,
                    used,
                    needed,
                });
            }
            UndoFault::Conflict { path, found } => {
                let is_chosen = |number| chosen.iter().any(|record| record.number == number);
                let touching = chosen.iter().find(|record| touches(record, &path));
                let change = touching
                    .or(chosen.first())
                    .map_or(0, |record| record.number);
                let since = newest_of(ledger, &path, change)
                    .find(|record| !is_chosen(record.number) && is_seen(&self.root, record))
                    // Security: nothing is said about its other changes.
                    .map(|record| seen_part(&self.root, record));
                let diff = since
                    .as_ref()
                    .filter(|_| found == InPlace::Changed)
                    .and_then(|since| moment::diff(&self.root, ledger, since, context));
                UndoRefusal::Conflict {
                    change,
                    since: since.map(Box::new),
                    path,
                    found,
                    diff,
                }
            }
        })
    }
}

/// A path of a change inside of a tree.
fn path_inside(record: &ChangeRecord, tree: &str) -> Option<String> {
    let ends = record
        .made()
        .flat_map(|part| [Some(&part.path), part.to.as_ref()]);
    let is_inside = |path: &&String| path.as_str() != tree && is_within(path, tree);
    ends.flatten().find(is_inside).cloned()
}

/// What the undo does to existing files.
pub(super) fn planned(chosen: &[ChangeRecord]) -> Planned {
    let mut planned = Planned::NOTHING;
    for part in chosen.iter().flat_map(ChangeRecord::made) {
        planned += match part.kind {
            PartKind::Create => Planned::removing(1),
            PartKind::Replace | PartKind::Append | PartKind::Cut => Planned::overwriting(1),
            PartKind::Remove | PartKind::Move | PartKind::MakeDir | PartKind::RemoveDir => {
                Planned::NOTHING
            }
        };
    }
    planned
}

/// What has to be locked: every path of the changes, directories with all below them.
pub(super) fn lock_keys(root: &Root, chosen: &[ChangeRecord]) -> Vec<LockKey> {
    let parts = chosen.iter().flat_map(|record| &record.parts);
    let mut keys: Vec<LockKey> = Vec::new();
    for part in parts {
        for path in [Some(&part.path), part.to.as_ref()].into_iter().flatten() {
            let place = root.change_place(path);
            let key = match part.kind {
                PartKind::Replace | PartKind::Append | PartKind::Cut => LockKey::Entry(place),
                // These may name a directory.
                _ => LockKey::Tree(place),
            };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    outermost(keys)
}

/// Leaves out what is inside a tree that is locked anyway: a call cannot wait for itself.
fn outermost(keys: Vec<LockKey>) -> Vec<LockKey> {
    let trees: Vec<String> = keys
        .iter()
        .filter_map(|key| match key {
            LockKey::Tree(_) => Some(key.path().to_owned()),
            LockKey::Entry(_) => None,
        })
        .collect();
    let is_inside = |key: &LockKey| match key {
        LockKey::Entry(_) => trees.iter().any(|tree| is_within(key.path(), tree)),
        LockKey::Tree(_) => trees
            .iter()
            .any(|tree| tree != key.path() && is_within(key.path(), tree)),
    };
    keys.into_iter().filter(|key| !is_inside(key)).collect()
}
