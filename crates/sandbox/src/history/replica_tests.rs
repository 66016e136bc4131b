//! Replicas on one directory, one of which is killed: another that runs on settles what it left, and a third takes it back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::tests::{ACTS, Act, call, fill, settings, snapshot, undo};
use super::*;
use crate::Root;

/// What a replica does before it is killed, at which system call (0 is after the last), and where.
const CHILD: &str = "HISTORY_REPLICA";

/// A directory, what its replicas share, and the two of them that run on.
struct Ground {
    top: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(top.path());
        Ground { top, state }
    }

    fn replica(&self) -> Replica {
        Replica::open(self.top.path(), self.state.path())
    }

    /// Lets a replica in a process of its own act until its system call `at`; tells whether it was killed.
    fn kill_one(&self, act: &str, way: &str, at: usize) -> bool {
        let (top, state) = (self.top.path().display(), self.state.path().display());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "history::replica_tests::replica_that_is_killed"])
            .env(CHILD, format!("{act}|{way}|{at}|{top}|{state}"))
            .output()
            .unwrap();
        !child.status.success()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.top.path().join(path)).unwrap()
    }
}

struct Replica {
    cluster: Arc<Cluster>,
    root: Root,
}

impl Replica {
    fn open(top: &Path, state: &Path) -> Replica {
        let cluster = Cluster::open(state).unwrap();
        let root = Root::open(top).unwrap();
        let root = root.with_cluster(Arc::clone(&cluster), "main").unwrap();
        let root = root.with_history(settings()).unwrap();
        Replica { cluster, root }
    }

    fn history(&self) -> &History {
        self.root.history().unwrap()
    }

    fn made(&self) -> Vec<ChangeRecord> {
        let ledger = self.history().ledger();
        let records = ledger.all().filter_map(|change| change.record());
        records.filter(ChangeRecord::is_made).collect()
    }

    /// What every replica does from time to time.
    fn heed_the_dead(&self) -> Recovered {
        let recovered = self.history().recover(&self.root);
        let dead = self.cluster.dead();
        self.root.sweep_leftovers_of(&dead, &|| false).unwrap();
        dead.into_iter().for_each(|one| self.cluster.forget(one));
        recovered
    }
}

/// The child of the tests below.
#[test]
fn replica_that_is_killed() {
    let Ok(order) = std::env::var(CHILD) else {
        return;
    };
    let words: Vec<&str> = order.split('|').collect();
    let replica = Replica::open(Path::new(words[3]), Path::new(words[4]));
    if words[1] == "link" {
        replica.history().forget_exchange();
    }
    let (at, mut count): (usize, usize) = (words[2].parse().unwrap(), 0);
    let kill = move |_: &str| {
        count += 1;
        if count == at {
            std::process::abort();
        }
    };
    let (_, act) = ACTS.iter().find(|(name, _)| *name == words[0]).unwrap();
    syscall::hook::with(kill, || {
        let change = call();
        act(&change, &replica.root).unwrap();
        // It is made, and its end is not written down.
        if at == 0 {
            std::process::abort();
        }
        drop(change);
    });
    drop(replica);
}

#[test]
fn what_a_killed_replica_left_is_settled_by_one_and_undone_from_another() {
    for (name, act) in ACTS {
        let mut kills = 0;
        for at in (1..).step_by(2) {
            let ground = Ground::new();
            let (one, other) = (ground.replica(), ground.replica());
            other.history().store().unwrap();
            let before = snapshot(ground.top.path());
            if !ground.kill_one(name, "exchange", at) {
                break;
            }
            kills += 1;
            assert_eq!(
                one.heed_the_dead().left,
                Vec::<String>::new(),
                "{name} at {at}"
            );
            let found = snapshot(ground.top.path());
            if found != before {
                let whole = Ground::new();
                act(&call(), &whole.replica().root).unwrap();
                assert_eq!(found, snapshot(whole.top.path()), "{name} at {at}");
            }
            let made: Vec<_> = other.made().into_iter().rev().collect();
            let undone = call();
            let ledger = other.history().ledger();
            let undone = undone.change.undo(&other.root, &made, &ledger, false);
            undone.unwrap_or_else(|fault| panic!("{name} at {at}: {fault:?}"));
            assert_eq!(snapshot(ground.top.path()), before, "{name} at {at}");
            assert!(one.cluster.dead().is_empty() && other.cluster.dead().is_empty());
            let left = journal::unfinished_files(one.history().store().unwrap()).unwrap();
            assert!(
                !left.iter().any(journal::FoundFile::is_abandoned),
                "{name} at {at}"
            );
        }
        assert!(kills > 3, "{name}: {kills} kills");
    }
}

/// Another replica may change the file before anybody looks: what was not done stays undone, what was done stays done.
#[test]
fn a_file_that_others_changed_before_it_was_settled_is_what_they_left() {
    let replace: Act = |call, root| call.write(root, "a", "by another");
    let append: Act = |call, root| call.append(root, "a", "by another");
    for (act, way, then) in [
        ("replace", "exchange", replace),
        ("replace", "link", replace),
        ("append", "exchange", replace),
        ("append", "exchange", append),
    ] {
        let whole = Ground::new();
        let (_, first) = ACTS.iter().find(|(name, _)| *name == act).unwrap();
        first(&call(), &whole.replica().root).unwrap();
        let done = whole.text("a");
        let (mut were_done, mut were_not) = (0, 0);
        for at in 0.. {
            let ground = Ground::new();
            let (one, other) = (ground.replica(), ground.replica());
            other.history().store().unwrap();
            if !ground.kill_one(act, way, at) {
                break;
            }
            let found = ground.text("a");
            let change = call();
            then(&change, &other.root).unwrap();
            let number = change.end();
            let left = ground.text("a");
            assert_eq!(
                one.heed_the_dead().left,
                Vec::<String>::new(),
                "{act}, {way} at {at}"
            );
            assert_eq!(ground.text("a"), left, "{act}, {way} at {at}");
            let is_made = other.made().iter().any(|made| made.number != number);
            assert_eq!(is_made, found == done, "{act}, {way} at {at}: {found}");
            undo(&one.root, number).unwrap();
            assert_eq!(ground.text("a"), found, "{act}, {way} at {at}");
            were_done += usize::from(is_made);
            were_not += usize::from(!is_made);
        }
        assert!(
            were_done > 0 && were_not > 0,
            "{act}, {way}: {were_done}, {were_not}"
        );
    }
}

/// Tells whether a record file has a change without an end.
fn has_unsettled(replica: &Replica) -> bool {
    let files = journal::unfinished_files(replica.history().store().unwrap()).unwrap();
    files
        .iter()
        .any(|file| !journal::unfinished(file).unwrap().is_empty())
}

/// Somebody works at a place: what a dead replica left there is looked at later.
#[test]
fn what_others_have_locked_waits() {
    for at in 1.. {
        let ground = Ground::new();
        let (one, other) = (ground.replica(), ground.replica());
        other.history().store().unwrap();
        assert!(ground.kill_one("replace", "exchange", at), "never");
        // The first kill after the line is written.
        if !has_unsettled(&one) {
            continue;
        }
        let place = other.root.change_place("a");
        let held = crate::HeldPlaces::try_hold(&[(&place, crate::Extent::Entry)]);
        assert_eq!(one.heed_the_dead(), Recovered::default());
        assert!(has_unsettled(&one));
        drop(held);
        // The child of another test of this process may hold the place open for a moment.
        let settles = || {
            let settled = one.heed_the_dead();
            settled.done + settled.taken_back == 1
        };
        assert!((0..100).any(|_| settles()));
        assert!(!has_unsettled(&one));
        return;
    }
}

/// A file server took the locks of a replica away that was out of reach, and others settled what it had begun.
#[test]
fn a_replica_that_was_taken_for_dead_goes_on_in_a_file_that_others_read() {
    let ground = Ground::new();
    let (one, other) = (ground.replica(), ground.replica());
    let numbers =
        |replica: &Replica| -> Vec<u64> { replica.made().iter().map(|made| made.number).collect() };
    let first = super::tests::write(&one.root, "a", "first");
    one.history().journal.lose_lock();
    other.heed_the_dead();
    assert_eq!(numbers(&other), [first]);
    let second = super::tests::write(&one.root, "a", "second");
    assert_eq!(numbers(&other), [first, second]);
    assert!(matches!(other.history().verify(), Some(Ok(_))));
    undo(&other.root, second).unwrap();
    assert_eq!(ground.text("a"), "first");
}
