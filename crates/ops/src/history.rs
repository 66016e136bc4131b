//! The changes of a root: who made which, and how one is taken back.

use std::collections::HashMap;
use std::sync::Arc;

use sandbox::{ChangeRecord, Found, PartKind, Root, UndoFault, change_id, is_within};

use crate::context::Context;
use crate::edit_lock::{EditLock, LockKey};
use crate::error::Result;

/// Which changes are wanted.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    /// Only those of this path or of something below it.
    pub path: Option<String>,
    /// Only those with a larger number.
    pub after: Option<u64>,
    /// Only those made at this time or later, in milliseconds since the epoch.
    pub since_ms: Option<u64>,
    /// Only those of this client.
    pub client: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// A change as it is told.
#[derive(Debug, Clone)]
pub struct ToldChange {
    /// What is written down of it.
    pub record: ChangeRecord,
    /// The change that took it back, if one did and still holds.
    pub undone_by: Option<u64>,
}

/// Tells the changes of a root, the newest first.
#[must_use]
pub fn changes(root: &Root, filter: &ChangeFilter) -> Vec<ToldChange> {
    let Some(history) = root.history() else {
        return Vec::new();
    };
    let all = history.changes();
    let undone = undone_by(&all);
    let wanted = all.into_iter().rev().filter(|record| {
        let by_client = |client: &String| record.author.client == *client;
        let touched = |path: &String| touches(record, path);
        record.is_made()
            && filter.path.as_ref().is_none_or(touched)
            && filter.after.is_none_or(|after| record.number > after)
            && filter
                .since_ms
                .is_none_or(|since| record.author.time >= since)
            && filter.client.as_ref().is_none_or(by_client)
    });
    let told = wanted.take(filter.limit).map(|record| ToldChange {
        undone_by: undone.get(&record.number).copied(),
        record,
    });
    told.collect()
}

/// Tells whether a change is of a path, of something below it or of a directory that it is in.
fn touches(record: &ChangeRecord, path: &str) -> bool {
    record.parts.iter().any(|part| {
        let ends = [Some(part.path.as_str()), part.to.as_deref()];
        ends.into_iter()
            .flatten()
            .any(|end| is_within(end, path) || is_within(path, end))
    })
}

/// The changes that were taken back, each with the change that did. One that was made again is not among them.
fn undone_by(all: &[ChangeRecord]) -> HashMap<u64, u64> {
    let mut undone = HashMap::new();
    for record in all.iter().filter(|record| record.is_made()) {
        for number in &record.author.undoes {
            undone.insert(*number, record.number);
            // Taking back an undo makes the change again.
            let again = all.iter().find(|other| other.number == *number);
            for number in again.iter().flat_map(|again| &again.author.undoes) {
                undone.remove(number);
            }
        }
    }
    undone
}

/// The number under which a change holds now: that of the change that made it again, if it was taken back before.
fn current_form(all: &[ChangeRecord], number: u64) -> u64 {
    let undoing = |number: u64| {
        let made = all.iter().rev().filter(|record| record.is_made());
        let mut undoing = made.filter(|record| record.author.undoes.contains(&number));
        undoing.next().map(|record| record.number)
    };
    let again = undoing(number).and_then(undoing);
    again.map_or(number, |again| current_form(all, again))
}

/// Which change is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoTarget {
    /// This one.
    Change(u64),
    /// The last one of a connection or token that was not taken back.
    LastOf(String),
    /// The last one of a path that was not taken back.
    LastOfPath(String),
    /// This one and everything after it, of a path if one is given.
    Since(u64, Option<String>),
}

/// Takes back a change.
#[derive(Debug)]
pub struct Undo {
    /// The root.
    pub root: Arc<Root>,
    /// Which change.
    pub target: UndoTarget,
    /// Whether nothing is changed.
    pub is_rehearsal: bool,
}

/// Why nothing was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoRefusal {
    /// The root keeps no history.
    NoHistory,
    /// There is no such change.
    Unknown,
    /// The change is too old: what was there is not kept any more.
    Gone {
        /// The path that is not kept, if one is known.
        path: Option<String>,
    },
    /// Something is not as the change left it.
    Conflict {
        /// The path.
        path: String,
        /// What is there.
        found: Found,
        /// The last change of that path since, if this server made one.
        since: Option<Box<ChangeRecord>>,
    },
    /// It was taken back already, by this change.
    AlreadyUndone(u64),
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

/// What was taken back, the newest first.
#[derive(Debug)]
pub struct Undone {
    /// The changes.
    pub changes: Vec<ChangeRecord>,
}

impl Undo {
    /// Takes the change back, or says why not. Never half.
    pub fn run(self, context: &Context) -> Result<std::result::Result<Undone, UndoRefusal>> {
        let Some(history) = self.root.history() else {
            return Ok(Err(UndoRefusal::NoHistory));
        };
        let all = history.changes();
        let chosen = match self.choose(&all, history.oldest_kept()) {
            Ok(chosen) => chosen,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if chosen
            .iter()
            .any(|record| history.is_under_way(record.number))
        {
            return Ok(Err(UndoRefusal::UnderWay));
        }
        let keys = || lock_keys(&self.root, &chosen);
        let (_lock, ()) = EditLock::take_found(&|| Ok(()), &|()| keys(), &context.cancel)?;
        let undone = context
            .change()
            .undo(&self.root, &chosen, self.is_rehearsal);
        Ok(match undone {
            Ok(()) => Ok(Undone { changes: chosen }),
            Err(fault) => Err(refusal(fault, &all, &chosen)),
        })
    }

    fn choose(
        &self,
        all: &[ChangeRecord],
        oldest: u64,
    ) -> std::result::Result<Vec<ChangeRecord>, UndoRefusal> {
        let undone = undone_by(all);
        let is_open = |record: &&ChangeRecord| {
            record.is_made()
                && record.author.undoes.is_empty()
                && !undone.contains_key(&record.number)
        };
        let mut newest = all.iter().rev().filter(|record| record.is_made());
        let chosen: Vec<ChangeRecord> = match &self.target {
            UndoTarget::Change(number) => {
                if let Some(by) = undone.get(number) {
                    return Err(UndoRefusal::AlreadyUndone(*by));
                }
                let own = newest.find(|record| record.number == *number);
                own.cloned().into_iter().collect()
            }
            UndoTarget::LastOf(account) => {
                let own = newest.filter(is_open);
                let mut own = own.filter(|record| record.author.account == *account);
                own.next().cloned().into_iter().collect()
            }
            UndoTarget::LastOfPath(path) => {
                let mut own = newest
                    .filter(is_open)
                    .filter(|record| touches(record, path));
                own.next().cloned().into_iter().collect()
            }
            UndoTarget::Since(number, path) => {
                let later = newest.filter(is_open);
                let later = later.filter(|record| record.number >= *number);
                let of_path =
                    |record: &&ChangeRecord| path.as_ref().is_none_or(|path| touches(record, path));
                later.filter(of_path).cloned().collect()
            }
        };
        if chosen.is_empty() {
            return Err(self.nothing_chosen(oldest));
        }
        // One that was taken back and made again is kept under the number of the last time.
        let now = |record: ChangeRecord| {
            let number = current_form(all, record.number);
            let form = all.iter().find(|other| other.number == number);
            form.cloned().unwrap_or(record)
        };
        Ok(chosen.into_iter().map(now).collect())
    }

    fn nothing_chosen(&self, oldest: u64) -> UndoRefusal {
        match &self.target {
            UndoTarget::Change(number) | UndoTarget::Since(number, _) if *number < oldest => {
                UndoRefusal::Gone { path: None }
            }
            _ => UndoRefusal::Unknown,
        }
    }
}

/// What has to be locked: every path of the changes, directories with all below them.
fn lock_keys(root: &Root, chosen: &[ChangeRecord]) -> Vec<LockKey> {
    let parts = chosen.iter().flat_map(|record| &record.parts);
    let mut keys: Vec<LockKey> = Vec::new();
    for part in parts {
        for path in [Some(&part.path), part.to.as_ref()].into_iter().flatten() {
            let host = root.host_path(path);
            let key = match part.kind {
                PartKind::Replace | PartKind::Append | PartKind::Cut => LockKey::Entry(host),
                // What these name may be a directory.
                _ => LockKey::Tree(host),
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
            LockKey::Tree(tree) => Some(tree.clone()),
            LockKey::Entry(_) => None,
        })
        .collect();
    let is_inside = |key: &LockKey| match key {
        LockKey::Entry(path) => trees.iter().any(|tree| is_within(path, tree)),
        LockKey::Tree(path) => trees
            .iter()
            .any(|tree| tree != path && is_within(path, tree)),
    };
    keys.into_iter().filter(|key| !is_inside(key)).collect()
}

fn refusal(fault: UndoFault, all: &[ChangeRecord], chosen: &[ChangeRecord]) -> UndoRefusal {
    match fault {
        UndoFault::Gone { path } => UndoRefusal::Gone {
            path: (!path.is_empty()).then_some(path),
        },
        UndoFault::Failed { path, reason } => UndoRefusal::Failed { path, reason },
        UndoFault::Conflict { path, found } => {
            let is_chosen = |number| chosen.iter().any(|record| record.number == number);
            let first = chosen.iter().map(|record| record.number).min();
            let since = all.iter().rev().find(|record| {
                record.is_made()
                    && Some(record.number) > first
                    && !is_chosen(record.number)
                    && touches(record, &path)
            });
            UndoRefusal::Conflict {
                since: since.cloned().map(Box::new),
                path,
                found,
            }
        }
    }
}

impl ToldChange {
    /// The name of the change.
    #[must_use]
    pub fn id(&self) -> String {
        change_id(self.record.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::testing::{Tree, context};
    use crate::write::{SyntaxCheck, Write, WriteMode};
    use crate::{OnFault, OnMissing, Recurse, Remove, RemoveTarget};
    use std::time::Duration;

    fn root(tree: &Tree) -> Arc<Root> {
        let settings = sandbox::HistorySettings {
            place: sandbox::HistoryPlace::Root,
            keep: Duration::from_secs(3600),
            max_bytes: 1 << 30,
            max_changes: 1000,
        };
        let root = Root::open(&tree.host(".")).unwrap();
        Arc::new(root.with_history(settings).unwrap())
    }

    fn place(root: &Arc<Root>, path: &str) -> crate::Place {
        crate::Place::new(Arc::clone(root), path).unwrap()
    }

    fn of_client(account: &str) -> Context {
        let mut context = context();
        context.change_notes = sandbox::ChangeNotes::of(sandbox::Author {
            account: account.to_owned(),
            client: account.to_owned(),
            ..sandbox::Author::default()
        });
        context
    }

    fn write(root: &Arc<Root>, path: &str, text: &str, account: &str) {
        let write = Write {
            place: place(root, path),
            bytes: text.as_bytes().to_vec(),
            mode: WriteMode::Overwrite,
            parents: sandbox::Parents::Create,
            syntax: SyntaxCheck::Skip,
        };
        write.run(&of_client(account)).unwrap();
    }

    fn undo(root: &Arc<Root>, target: UndoTarget) -> std::result::Result<Undone, UndoRefusal> {
        let undo = Undo {
            root: Arc::clone(root),
            target,
            is_rehearsal: false,
        };
        undo.run(&of_client("undoer")).unwrap()
    }

    fn last_of(account: &str) -> UndoTarget {
        UndoTarget::LastOf(account.to_owned())
    }

    #[test]
    fn each_client_takes_back_its_own_changes_one_by_one() {
        let tree = Tree::with(&[("a", "0"), ("b", "0")]);
        let root = root(&tree);
        for text in ["1", "2"] {
            write(&root, "a", text, "one");
            write(&root, "b", text, "two");
        }
        undo(&root, last_of("one")).unwrap();
        assert_eq!(tree.read("a"), "1");
        assert_eq!(tree.read("b"), "2");
        undo(&root, last_of("one")).unwrap();
        assert_eq!(tree.read("a"), "0");
        assert_eq!(tree.read("b"), "2");
        assert_eq!(
            undo(&root, last_of("one")).unwrap_err(),
            UndoRefusal::Unknown
        );
        let told = changes(
            &root,
            &ChangeFilter {
                path: Some("a".to_owned()),
                limit: 10,
                ..ChangeFilter::default()
            },
        );
        let undone: Vec<bool> = told.iter().map(|one| one.undone_by.is_some()).collect();
        assert_eq!(undone, [false, false, true, true]);
    }

    #[test]
    fn a_conflict_names_who_changed_it_since_and_all_at_once_goes() {
        let tree = Tree::with(&[("a", "0")]);
        let root = root(&tree);
        write(&root, "a", "1", "one");
        write(&root, "a", "2", "two");
        let first = changes(
            &root,
            &ChangeFilter {
                limit: 10,
                ..ChangeFilter::default()
            },
        )
        .pop()
        .unwrap();
        let number = first.record.number;
        match undo(&root, UndoTarget::Change(number)).unwrap_err() {
            UndoRefusal::Conflict {
                path,
                since: Some(since),
                ..
            } => {
                assert_eq!(path.as_str(), "a");
                assert_eq!(since.author.client.as_str(), "two");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(tree.read("a"), "2");
        undo(&root, UndoTarget::Since(number, None)).unwrap();
        assert_eq!(tree.read("a"), "0");
        assert_eq!(
            undo(&root, UndoTarget::Change(9999)).unwrap_err(),
            UndoRefusal::Unknown
        );
    }

    #[test]
    fn a_removed_tree_comes_back() {
        let tree = Tree::with(&[("dir/sub/file", "text")]);
        tree.link("dir/link", "sub/file");
        let root = root(&tree);
        let remove = Remove {
            place: place(&root, "dir"),
            target: RemoveTarget::Directory,
            recurse: Recurse::Yes,
            on_missing: OnMissing::Fail,
            on_fault: OnFault::Stop,
        };
        remove.run(&of_client("one")).unwrap();
        assert!(!tree.has("dir"));
        undo(&root, UndoTarget::LastOfPath("dir/sub/file".to_owned())).unwrap();
        assert_eq!(tree.read("dir/link"), "text");
    }
}
