//! Moves between two roots: one change in both histories, taken back in both or in neither, whenever the process is killed.

mod replicas;

use super::*;

/// What a child process does before it is killed.
const CROSSING_CHILD: &str = "HISTORY_CROSSING_CHILD";

/// What moves, and where to.
const MOVES: [(&str, &str); 4] = [
    ("a", "new"),
    ("a", "b"),
    ("dir", "moved"),
    ("a", "x/y/deep"),
];

struct TwoRoots {
    temp: tempfile::TempDir,
}

type Snapshots = [BTreeMap<String, String>; 2];

impl TwoRoots {
    fn new() -> TwoRoots {
        let temp = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        fill(&temp.path().join("one"));
        fs::write(temp.path().join("two/b"), "there before\n").unwrap();
        TwoRoots { temp }
    }

    fn open(&self) -> [Root; 2] {
        opened(self.temp.path())
    }

    fn snapshots(&self) -> Snapshots {
        ["one", "two"].map(|name| snapshot(&self.temp.path().join(name)))
    }
}

fn opened(top: &Path) -> [Root; 2] {
    ["one", "two"].map(|name| open(&top.join(name)))
}

fn cross([one, two]: &[Root; 2], (from, to): (&str, &str)) -> crate::Result<u64> {
    let call = call();
    let (from, to) = (locate_itself(one, from)?, locate_itself(two, to)?);
    call.change
        .rename(&from, &to, OnExisting::Replace, &|| false)?;
    assert_eq!(call.notes.change_ids().len(), 1);
    Ok(call.end())
}

fn uncross([one, two]: [&Root; 2], number: u64) -> Result<u64, UndoFault> {
    let call = call();
    let records = [one, two].map(|root| record(root, number));
    let ledgers = [one, two].map(|root| root.history().unwrap().ledger());
    let end = |index: usize, root| CrossedEnd {
        root,
        record: &records[index],
        ledger: &ledgers[index],
    };
    let ends = [end(0, one), end(1, two)];
    let undone = call.change.undo_crossing(ends, false, &|| false);
    undone.map_err(|fault| fault.fault)?;
    Ok(call.end())
}

/// The last change that took place in a root, and whether it holds by what is written down.
fn last_made(root: &Root) -> Option<ChangeRecord> {
    changes(root).into_iter().rfind(ChangeRecord::is_made)
}

/// Without directories, of which empty ones may stay.
fn without_dirs(all: Snapshots) -> Snapshots {
    all.map(|one| {
        let files = one.into_iter();
        files.filter(|(_, what)| !what.starts_with("dir")).collect()
    })
}

#[test]
fn a_move_between_roots_is_one_change_that_either_takes_back() {
    for what in MOVES {
        let both = TwoRoots::new();
        let roots = both.open();
        for _ in 0..3 {
            write(&roots[1], "other", "makes its numbers larger");
        }
        let before = both.snapshots();
        let moved = cross(&roots, what).unwrap();
        assert!(moved > 3, "new in both");
        let after = both.snapshots();
        assert_ne!(before, after);
        let undone = uncross([&roots[0], &roots[1]], moved).unwrap();
        assert_eq!(both.snapshots(), before, "{what:?}");
        let again = uncross([&roots[1], &roots[0]], undone).unwrap();
        assert_eq!(both.snapshots(), after, "{what:?}");
        uncross([&roots[1], &roots[0]], again).unwrap();
        assert_eq!(both.snapshots(), before, "{what:?}");
        for root in &roots {
            assert_eq!(record(root, again).author.undoes, [undone]);
        }
    }
}

#[test]
fn what_was_changed_since_at_either_end_stays() {
    let both = TwoRoots::new();
    let roots = both.open();
    let moved = cross(&roots, ("a", "b")).unwrap();
    let path = |name: &str| both.temp.path().join(name);
    fs::write(path("one/a"), "new").unwrap();
    let fault = uncross([&roots[0], &roots[1]], moved).unwrap_err();
    assert_eq!(
        fault,
        UndoFault::Conflict {
            path: "a".to_owned(),
            found: InPlace::Occupied
        }
    );
    fs::remove_file(path("one/a")).unwrap();
    fs::write(path("two/b"), "other").unwrap();
    let fault = uncross([&roots[1], &roots[0]], moved).unwrap_err();
    assert_eq!(
        fault,
        UndoFault::Conflict {
            path: "b".to_owned(),
            found: InPlace::Changed
        }
    );
    assert_eq!(fs::read(path("two/b")).unwrap(), b"other");
    assert!(!path("one/a").exists());
    // Neither end alone takes anything back.
    for root in &roots {
        assert!(matches!(undo(root, moved), Err(UndoFault::Gone { .. })));
    }
}

#[test]
fn both_quotas_count_what_goes_back() {
    let both = TwoRoots::new();
    let [one, two] = both.open();
    let few = |max_bytes| crate::Quota {
        max_bytes: Some(max_bytes),
        max_files: None,
    };
    let (one, two) = (
        one.with_quota(few(20)).unwrap(),
        two.with_quota(few(100)).unwrap(),
    );
    let roots = [one, two];
    let moved = cross(&roots, ("dir", "moved")).unwrap();
    write(&roots[0], "full", &"x".repeat(16));
    let fault = uncross([&roots[0], &roots[1]], moved).unwrap_err();
    assert!(
        matches!(fault, UndoFault::OverQuota { most: 20, .. }),
        "{fault:?}"
    );
    call().remove(&roots[0], "full").unwrap();
    uncross([&roots[0], &roots[1]], moved).unwrap();
    let used = |root: &Root| root.quota_use().unwrap().used.unwrap().bytes;
    assert_eq!((used(&roots[0]), used(&roots[1])), (8, 13));
}

/// The child of the test below: moves, takes that back and makes it again, and kills itself before one of its system calls.
#[test]
fn child_that_is_killed_between_roots() {
    let Ok(order) = std::env::var(CROSSING_CHILD) else {
        return;
    };
    let mut words = order.split('|');
    let mut word = || words.next().unwrap();
    let (from, to, at, top) = (word(), word(), word(), word());
    let at: usize = at.parse().unwrap();
    let roots = opened(Path::new(top));
    let mut count = 0;
    let kill = move |_: &str| {
        count += 1;
        if count == at {
            std::process::abort();
        }
    };
    syscall::hook::with(kill, || {
        let moved = cross(&roots, (from, to)).unwrap();
        let undone = uncross([&roots[0], &roots[1]], moved).unwrap();
        uncross([&roots[1], &roots[0]], undone).unwrap();
    });
}

/// Each history recovers by itself, in either order, and both come to the same: all of the move, or nothing.
#[test]
fn a_move_between_roots_that_is_killed_is_whole_in_both_or_in_neither() {
    // The normal run takes a selection.
    let step = match std::env::var_os("SANDBOX_EXHAUSTIVE") {
        Some(_) => 1,
        None => 11,
    };
    for what in MOVES {
        let mut kills = 0;
        for at in (1..).step_by(step) {
            let both = TwoRoots::new();
            let before = without_dirs(both.snapshots());
            let after = {
                let whole = TwoRoots::new();
                cross(&whole.open(), what).unwrap();
                without_dirs(whole.snapshots())
            };
            let order = format!("{}|{}|{at}|{}", what.0, what.1, both.temp.path().display());
            let child = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "history::tests::crossing::child_that_is_killed_between_roots",
                ])
                .env(CROSSING_CHILD, order)
                .output()
                .unwrap();
            let mut roots = both.open();
            if kills % 2 == 0 {
                roots.reverse();
            }
            for root in &roots {
                let recovered = root.history().unwrap().recover(root);
                assert_eq!(recovered.left, Vec::<String>::new(), "{what:?} at {at}");
                root.sweep_leftovers(&|| false);
            }
            let found = without_dirs(both.snapshots());
            if child.status.success() {
                assert_eq!(found, after, "{what:?}");
                break;
            }
            kills += 1;
            assert!(
                found == before || found == after,
                "{what:?} at {at}: {found:?}"
            );
            let last = roots.each_ref().map(last_made);
            let numbers = last
                .each_ref()
                .map(|last| last.as_ref().map(|last| last.number));
            assert_eq!(numbers[0], numbers[1], "{what:?} at {at}");
            // Whatever was made last can be taken back.
            if let [Some(number), _] = numbers {
                uncross([&roots[0], &roots[1]], number).unwrap();
                let undone = without_dirs(both.snapshots());
                let other = if found == before { after } else { before };
                assert_eq!(undone, other, "{what:?} at {at}");
            }
        }
        assert!(kills * step > 20, "{what:?}: {kills} kills");
    }
}
