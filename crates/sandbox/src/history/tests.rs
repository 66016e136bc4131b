//! Changes, undo, redo and recovery, on real directories.

mod crossing;
mod left;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::change::{Change, ChangeNotes, Durability, OnExisting, Parents};
use crate::tests::support::locate_itself;
use crate::{OnFault, Root};

/// What a child process does before it is killed, at which system call, and where.
const CHILD: &str = "HISTORY_CHILD";

pub(super) fn settings() -> HistorySettings {
    HistorySettings {
        place: HistoryPlace::Root,
        keep: Duration::from_secs(3600),
        max_bytes: 1 << 30,
        max_changes: 100_000,
        undo_any: false,
    }
}

pub(super) fn open(path: &Path) -> Root {
    Root::open(path).unwrap().with_history(settings()).unwrap()
}

/// Everything in a root but its history: paths, kinds, permissions, content.
pub(super) fn snapshot(top: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap() == ".mcp-filesystem" {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else if metadata.is_dir() {
                pending.push(path.clone());
                format!("dir {:o}", metadata.mode() & 0o7777)
            } else {
                let mode = metadata.mode() & 0o7777;
                format!("file {mode:o} {:?}", fs::read(&path).unwrap())
            };
            let shown = path.strip_prefix(top).unwrap().display().to_string();
            all.insert(shown, what);
        }
    }
    all
}

/// One call of a client.
pub(super) struct TestCall {
    pub(super) change: Change,
    notes: ChangeNotes,
}

pub(super) fn call() -> TestCall {
    call_of("")
}

/// A call of one client among several.
pub(super) fn call_of(account: &str) -> TestCall {
    let notes = ChangeNotes::of(Author {
        client: "test".to_owned(),
        account: account.to_owned(),
        tool: "test".to_owned(),
        ..Author::default()
    });
    TestCall {
        change: Change::begin_noting(Durability::Fast, &notes),
        notes,
    }
}

impl TestCall {
    pub(super) fn write(&self, root: &Root, path: &str, text: &str) -> crate::Result<()> {
        let place = locate_itself(root, path)?;
        let mut staged = self
            .change
            .stage(&place, OnExisting::Replace, Parents::Create)?;
        staged.write_all(text.as_bytes()).unwrap();
        staged.publish()
    }

    pub(super) fn append(&self, root: &Root, path: &str, text: &str) -> crate::Result<()> {
        let place = locate_itself(root, path)?;
        let appended = self.change.append(&place, text.as_bytes(), Parents::Create);
        appended.map(drop)
    }

    fn remove(&self, root: &Root, path: &str) -> crate::Result<()> {
        let place = locate_itself(root, path)?;
        if !place.require()?.is_directory() {
            return self.change.unlink(&place);
        }
        if !self.change.remove_whole(&place, &|| false)? {
            self.change.note_lost(&place)?;
            let removed = self
                .change
                .remove_tree(&place, &|| false, OnFault::Stop, &|_| {});
            removed?;
        }
        Ok(())
    }

    fn rename(&self, root: &Root, from: &str, to: &str) -> crate::Result<()> {
        let (from, to) = (locate_itself(root, from)?, locate_itself(root, to)?);
        self.change
            .rename(&from, &to, OnExisting::Replace, &|| false)
    }

    fn make_dirs(&self, root: &Root, path: &str) -> crate::Result<()> {
        self.change.make_dirs(&locate_itself(root, path)?).map(drop)
    }

    /// Ends the call; the number of its change.
    pub(super) fn end(self) -> u64 {
        let ids = self.notes.change_ids();
        parse_change_id(ids.first().expect("a change")).unwrap()
    }
}

/// Writes a file in a call of its own; the number of its change.
pub(super) fn write(root: &Root, path: &str, text: &str) -> u64 {
    let call = call();
    call.write(root, path, text).unwrap();
    call.end()
}

/// Renames in a call of its own.
pub(super) fn rename(root: &Root, from: &str, to: &str) {
    call().rename(root, from, to).unwrap();
}

/// A call that has written a file and goes on.
pub(super) fn begin_writing(root: &Root, path: &str) -> TestCall {
    let call = call();
    call.write(root, path, "text").unwrap();
    call
}

fn changes(root: &Root) -> Vec<ChangeRecord> {
    let ledger = root.history().unwrap().ledger();
    let all = ledger.all();
    all.filter_map(|change| change.record()).collect()
}

fn record(root: &Root, number: u64) -> ChangeRecord {
    let found = root.history().unwrap().ledger().get(number);
    found.expect("it was written down")
}

pub(super) fn undo(root: &Root, number: u64) -> Result<u64, UndoFault> {
    let call = call();
    call.change.undo(
        root,
        &[record(root, number)],
        &root.history().unwrap().ledger(),
        false,
    )?;
    Ok(call.end())
}

pub(super) fn fill(top: &Path) {
    fs::create_dir_all(top.join("dir/sub")).unwrap();
    fs::write(top.join("a"), "a\n").unwrap();
    fs::write(top.join("b"), "b\n").unwrap();
    fs::write(top.join("dir/c"), "c\n").unwrap();
    fs::write(top.join("dir/sub/d"), "d\n").unwrap();
    fs::set_permissions(top.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("a", top.join("link")).unwrap();
}

pub(super) type Act = fn(&TestCall, &Root) -> crate::Result<()>;

/// One change of every kind.
pub(super) const ACTS: [(&str, Act); 11] = [
    ("create", |call, root| call.write(root, "new", "new")),
    ("create deep", |call, root| {
        call.write(root, "x/y/new", "new")
    }),
    ("replace", |call, root| call.write(root, "a", "other")),
    ("append", |call, root| call.append(root, "a", "more\n")),
    ("remove file", |call, root| call.remove(root, "a")),
    ("remove link", |call, root| call.remove(root, "link")),
    ("remove tree", |call, root| call.remove(root, "dir")),
    ("move", |call, root| call.rename(root, "dir", "moved/here")),
    ("move over", |call, root| call.rename(root, "a", "b")),
    ("make dirs", |call, root| call.make_dirs(root, "p/q")),
    ("several", |call, root| {
        let more = TestCall {
            change: call.change.with_more_parts(),
            notes: call.notes.clone(),
        };
        more.write(root, "a", "1")?;
        more.write(root, "z/new", "2")?;
        more.remove(root, "dir/c")?;
        call.write(root, "b", "3")
    }),
];

#[test]
fn every_kind_of_change_is_taken_back_and_made_again() {
    for (name, act) in ACTS {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path());
        let root = open(temp.path());
        let before = snapshot(temp.path());
        let change = call();
        act(&change, &root).unwrap();
        let mut number = change.end();
        let after = snapshot(temp.path());
        assert_ne!(before, after, "{name}");
        for _ in 0..2 {
            let undone = undo(&root, number).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
            assert_eq!(snapshot(temp.path()), before, "{name} was taken back");
            let redone = undo(&root, undone);
            number = redone.unwrap_or_else(|fault| panic!("redo {name}: {fault:?}"));
            assert_eq!(snapshot(temp.path()), after, "{name} was made again");
        }
        assert!(matches!(root.history().unwrap().verify(), Some(Ok(_))));
    }
}

#[test]
fn what_somebody_changed_since_is_not_taken_back() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    for (name, act) in ACTS {
        if !matches!(name, "replace" | "append" | "several") {
            continue;
        }
        let change = call();
        act(&change, &root).unwrap();
        let number = change.end();
        fs::write(temp.path().join("a"), "by another program").unwrap();
        let before = snapshot(temp.path());
        let fault = undo(&root, number).unwrap_err();
        let is_conflict = matches!(&fault, UndoFault::Conflict { path, .. } if path == "a");
        assert!(is_conflict, "{name}: {fault:?}");
        assert_eq!(snapshot(temp.path()), before, "{name}: never half an undo");
    }
}

#[test]
fn what_is_kept_no_more_is_gone_and_nothing_breaks() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    let change = call();
    change.write(&root, "a", "new").unwrap();
    let number = change.end();
    assert_eq!(root.history().unwrap().forget("a"), 1);
    let gone = undo(&root, number).unwrap_err();
    assert_eq!(
        gone,
        UndoFault::Gone {
            path: "a".to_owned()
        }
    );
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"new");
}

/// A file with other names is kept as a copy, so that nobody changes what is kept through them.
#[test]
fn a_file_with_two_names_is_kept_as_a_copy() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    fs::hard_link(temp.path().join("a"), temp.path().join("a2")).unwrap();
    let root = open(temp.path());
    let change = call();
    change.write(&root, "a", "new").unwrap();
    let number = change.end();
    fs::write(temp.path().join("a2"), "changed by its other name").unwrap();
    undo(&root, number).unwrap();
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"a\n");
}

/// What another program puts in the place of a file at the last moment is kept too.
#[test]
fn what_comes_in_between_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    let (target, other) = (temp.path().join("a"), temp.path().join("other"));
    let change = call();
    let act = move |call: &str| {
        if call == "renameat2" {
            let _ = fs::write(&other, "came in between");
            let _ = fs::rename(&other, &target);
        }
    };
    syscall::hook::with(act, || change.write(&root, "a", "new")).unwrap();
    let number = change.end();
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"new");
    undo(&root, number).unwrap();
    let text = fs::read_to_string(temp.path().join("a")).unwrap();
    assert_eq!(text, "came in between");
}

#[test]
fn old_and_large_changes_are_pruned_and_the_chain_still_verifies() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let small = HistorySettings {
        max_bytes: 2500,
        ..settings()
    };
    let root = Root::open(temp.path())
        .unwrap()
        .with_history(small)
        .unwrap();
    let numbers: Vec<u64> = (0..5)
        .map(|number| {
            let change = call();
            let text = number.to_string().repeat(1000);
            change.write(&root, "a", &text).unwrap();
            change.end()
        })
        .collect();
    let history = root.history().unwrap();
    assert_eq!(history.figures().bytes, 4002 - 2 + 2);
    let pruned = history.prune();
    assert!(pruned.changes >= 2 && pruned.stuck == 0, "{pruned:?}");
    assert!(history.figures().bytes <= 2500);
    assert!(matches!(history.verify(), Some(Ok(_))));
    undo(&root, numbers[4]).unwrap();
    assert_eq!(
        fs::read_to_string(temp.path().join("a")).unwrap(),
        "3".repeat(1000)
    );
    let is_kept = |number: u64| changes(&root).iter().any(|one| one.number == number);
    assert!(!is_kept(numbers[0]) && history.oldest_kept() > numbers[0]);
}

/// What was staged leaves the objects again if an exchange fails, so that it is no second name of what is there.
#[test]
fn what_could_not_change_places_comes_back() {
    use crate::planted_fault::{PlantedFault, with};
    for fault in [PlantedFault::NoRenameFlags, PlantedFault::IgnoredFlags] {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path());
        let root = open(temp.path());
        let before = snapshot(temp.path());
        if fault == PlantedFault::NoRenameFlags {
            // Once an exchange worked it is tried everywhere.
            assert!(root.history().unwrap().store().unwrap().exchanges());
        }
        let number = with(Some(fault), || write(&root, "a", "new"));
        let after = fs::metadata(temp.path().join("a")).unwrap();
        assert_eq!(after.nlink(), 1, "{fault:?}");
        undo(&root, number).unwrap();
        assert_eq!(snapshot(temp.path()), before, "{fault:?}");
    }
}

/// What kept a history from being opened may be over.
#[test]
fn a_history_that_could_not_be_opened_is_tried_again() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    let place = temp.path().join(".mcp-filesystem");
    fs::write(&place, "in the way").unwrap();
    let history = root.history().unwrap();
    assert!(history.store().is_none() && history.fault().is_some());
    fs::remove_file(&place).unwrap();
    let number = write(&root, "a", "new");
    assert_eq!(history.fault(), None);
    undo(&root, number).unwrap();
}

/// Where names cannot change places, a second link keeps what is replaced.
#[test]
fn without_exchange_a_link_keeps_what_is_replaced() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    root.history().unwrap().forget_exchange();
    let before = snapshot(temp.path());
    let change = call();
    change.write(&root, "a", "new").unwrap();
    let number = change.end();
    undo(&root, number).unwrap();
    assert_eq!(snapshot(temp.path()), before);
}

/// A change of a process that lives is nobody else's to settle.
#[test]
fn only_what_a_dead_process_left_is_recovered() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let (one, other) = (open(temp.path()), open(temp.path()));
    let change = call();
    let part = TestCall {
        change: change.change.with_more_parts(),
        notes: change.notes.clone(),
    };
    part.write(&one, "a", "first part").unwrap();
    let recovered = other.history().unwrap().recover(&other);
    assert_eq!(recovered, Recovered::default());
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"first part");
    drop(part);
    undo(&other, change.end()).unwrap();
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"a\n");
}

/// Leaves the last change as a process does that was killed before it could write down the end.
fn cut_end(top: &Path) {
    let holder = fs::read_dir(top.join(".mcp-filesystem")).unwrap();
    let mut stores = holder.map(|entry| entry.unwrap().path());
    let store = stores.find(|path| path.is_dir()).unwrap();
    let records = fs::read_dir(store.join("records")).unwrap();
    let mut records = records.map(|entry| entry.unwrap().path());
    let finished = records
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let text = fs::read_to_string(&finished).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (end, rest) = lines.split_last().unwrap();
    assert!(end.contains("\"end\""), "{end}");
    fs::write(finished.with_extension("open"), rest.join("\n") + "\n").unwrap();
    fs::remove_file(finished).unwrap();
}

/// After a power cut a file may have its new length and zeros in place of what was added.
#[test]
fn an_append_without_its_bytes_is_left_and_told() {
    for (found, is_left) in [("a\nmore\n", false), ("a\n\0\0\0\0\0", true)] {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path());
        let root = open(temp.path());
        let change = call();
        change.append(&root, "a", "more\n").unwrap();
        change.end();
        drop(root);
        cut_end(temp.path());
        fs::write(temp.path().join("a"), found).unwrap();
        let root = open(temp.path());
        let recovered = root.history().unwrap().recover(&root);
        let expected = Recovered {
            done: u64::from(!is_left),
            taken_back: u64::from(is_left),
            left: is_left.then(|| "a".to_owned()).into_iter().collect(),
        };
        assert_eq!(recovered, expected, "{found:?}");
        assert_eq!(fs::read_to_string(temp.path().join("a")).unwrap(), found);
    }
}

/// A history outside the root is used if a file of the root can get a name there, else the root's own.
#[test]
fn a_history_is_outside_the_root_where_that_is_possible() {
    let (temp, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(temp.path());
    let elsewhere = Path::new("/dev/shm/mcp-filesystem-test-state");
    for (paths, is_in_root) in [
        (vec![state.path().join("new")], false),
        (vec![elsewhere.to_owned()], true),
        (Vec::new(), true),
    ] {
        let settings = HistorySettings {
            place: HistoryPlace::Auto(paths.clone()),
            ..settings()
        };
        let root = Root::open(temp.path()).unwrap();
        let root = root.with_history(settings).unwrap();
        assert_eq!(
            root.history().unwrap().is_in_root(),
            is_in_root,
            "{paths:?}"
        );
        let before = snapshot(temp.path());
        let change = call();
        change.write(&root, "a", "new").unwrap();
        change.remove(&root, "dir").unwrap();
        undo(&root, change.end()).unwrap();
        assert_eq!(snapshot(temp.path()), before, "{paths:?}");
        assert_eq!(temp.path().join(".mcp-filesystem").exists(), is_in_root);
    }
    let _ = fs::remove_dir_all(elsewhere);
}

/// A root inside a directory that goes comes back with its own history.
#[test]
fn nested_roots_keep_their_histories() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let (outer, inner) = (open(temp.path()), open(&temp.path().join("dir")));
    let change = call();
    change.write(&inner, "c", "inner").unwrap();
    let of_inner = change.end();
    let change = call();
    change.remove(&outer, "dir").unwrap();
    let of_outer = change.end();
    assert!(!temp.path().join("dir").exists());
    undo(&outer, of_outer).unwrap();
    undo(&inner, of_inner).unwrap();
    assert_eq!(fs::read(temp.path().join("dir/c")).unwrap(), b"c\n");
}

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.roll(3);
        let names: Vec<String> = (0..depth).map(|_| format!("n{}", self.roll(4))).collect();
        names.join("/")
    }
}

/// 200 random changes are taken back one by one, and made again, byte for byte.
#[test]
fn a_random_series_is_undone_and_redone() {
    for seed in 0..3 {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path());
        let root = open(temp.path());
        let mut dice = Dice(seed);
        let mut states = vec![snapshot(temp.path())];
        let mut numbers = Vec::new();
        while numbers.len() < 200 {
            let (path, other) = (dice.path(), dice.path());
            let text = format!("{}\n", dice.roll(1000));
            let change = call();
            let done = match dice.roll(8) {
                0..=3 => change.write(&root, &path, &text),
                4 => change.append(&root, &path, &text),
                5 => change.rename(&root, &path, &other),
                6 => change.make_dirs(&root, &path),
                _ => change.remove(&root, &path),
            };
            let is_made = !change.notes.change_ids().is_empty();
            if done.is_ok() && is_made {
                numbers.push(change.end());
                states.push(snapshot(temp.path()));
            }
        }
        let mut undone = Vec::new();
        for (index, number) in numbers.iter().enumerate().rev() {
            undone.push(undo(&root, *number).unwrap_or_else(|fault| {
                panic!(
                    "seed {seed}, change {index}: {fault:?} {:?}",
                    record(&root, *number)
                )
            }));
            assert_eq!(
                snapshot(temp.path()),
                states[index],
                "seed {seed}, change {index}"
            );
        }
        for (index, number) in undone.iter().rev().enumerate() {
            undo(&root, *number)
                .unwrap_or_else(|fault| panic!("seed {seed}, redo {index}: {fault:?}"));
            assert_eq!(
                snapshot(temp.path()),
                states[index + 1],
                "seed {seed}, redo {index}"
            );
        }
    }
}

/// The child of the test below: acts, and kills itself before one of its system calls.
#[test]
fn child_that_is_killed() {
    let Ok(order) = std::env::var(CHILD) else {
        return;
    };
    let mut words = order.split('|');
    let (act, at) = (words.next().unwrap(), words.next().unwrap());
    let at: usize = at.parse().unwrap();
    let root = open(Path::new(words.next().unwrap()));
    let mut count = 0;
    let kill = move |_: &str| {
        count += 1;
        if count == at {
            std::process::abort();
        }
    };
    let act = *ACTS
        .iter()
        .find(|(name, _)| *name == act)
        .map(|(_, act)| act)
        .unwrap();
    syscall::hook::with(kill, || {
        let change = call();
        act(&change, &root).unwrap();
        let number = change.end();
        if words.next() == Some("undo") {
            undo(&root, number).unwrap();
        }
    });
}

/// Kills a process before every system call of every kind of change, and of its undo: afterwards the change is whole, or
/// nothing of it is there, and nothing is left in the history.
#[test]
fn a_change_that_is_killed_is_whole_or_taken_back() {
    for (name, act) in ACTS {
        let mut kills = 0;
        // The normal run takes a selection.
        let is_whole = std::env::var_os("SANDBOX_EXHAUSTIVE").is_some();
        for at in (1..).step_by(if name == "several" && !is_whole { 3 } else { 1 }) {
            let temp = tempfile::tempdir().unwrap();
            fill(temp.path());
            let before = snapshot(temp.path());
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "history::tests::child_that_is_killed"])
                .env(CHILD, format!("{name}|{at}|{}|undo", temp.path().display()))
                .output()
                .unwrap();
            let root = open(temp.path());
            let recovered = root.history().unwrap().recover(&root);
            root.sweep_leftovers(&|| false);
            let found = snapshot(temp.path());
            if child.status.success() {
                assert_eq!(found, before, "{name} and its undo");
                break;
            }
            kills += 1;
            assert_eq!(recovered.left, Vec::<String>::new(), "{name} at {at}");
            if found != before {
                let whole = tempfile::tempdir().unwrap();
                fill(whole.path());
                let clean = open(whole.path());
                act(&call(), &clean).unwrap();
                assert_eq!(found, snapshot(whole.path()), "{name} at {at}");
            }
            // What is left of it can be taken back, or was.
            let mut made: Vec<_> = changes(&root)
                .into_iter()
                .filter(ChangeRecord::is_made)
                .collect();
            made.reverse();
            let undone = call();
            undone
                .change
                .undo(&root, &made, &root.history().unwrap().ledger(), false)
                .unwrap();
            assert_eq!(snapshot(temp.path()), before, "{name} at {at}: {made:?}");
        }
        assert!(kills > 3, "{name}: {kills} kills");
    }
}
