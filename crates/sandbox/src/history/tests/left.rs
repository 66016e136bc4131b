//! What a dead process left and others changed meanwhile, and what was kept and came back.

use super::*;
use crate::syscall::Errno;
use crate::together::{Extent, HeldPlaces};

impl TestCall {
    /// The same call for a part that others follow.
    fn part(&self) -> TestCall {
        TestCall {
            change: self.change.with_more_parts(),
            notes: self.notes.clone(),
        }
    }
}

/// Acts in a call that is killed before its last part; the number of its change.
fn die_after(top: &Path, act: impl FnOnce(&TestCall, &Root)) -> u64 {
    let root = open(top);
    let change = call();
    act(&change, &root);
    let number = change.end();
    drop(root);
    cut_end(top);
    number
}

fn recover(root: &Root) -> Recovered {
    root.history().unwrap().recover(root)
}

/// A file as it was just before a change; `None` if it is what it is now.
fn text_before(root: &Root, path: &str, number: u64) -> Option<String> {
    let history = root.history().unwrap();
    match history.past(&history.ledger(), path, number - 1, &|_| None) {
        Past::File(file) => Some(std::io::read_to_string(file.file).unwrap()),
        Past::Now(now) => {
            assert_eq!(now, path);
            None
        }
        past => panic!("{path} before {number}: {past:?}"),
    }
}

/// Without exchanges a rename would replace what the undo had brought back, which has no other name.
#[test]
fn what_a_killed_undo_brought_back_stays_kept_without_exchanges() {
    use crate::planted_fault::{PlantedFault, with};
    with(Some(PlantedFault::NoRenameFlags), || {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path());
        let text = || fs::read_to_string(temp.path().join("a")).unwrap();
        let root = open(temp.path());
        let number = write(&root, "a", "new");
        undo(&root, number).unwrap();
        drop(root);
        cut_end(temp.path());
        let root = open(temp.path());
        assert_eq!(recover(&root).taken_back, 1);
        assert_eq!(text(), "new");
        undo(&root, number).unwrap();
        assert_eq!(text(), "a\n");
    });
}

#[test]
fn what_was_removed_stays_kept_if_its_name_is_taken() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let number = die_after(temp.path(), |change, root| {
        change.part().write(root, "b", "half").unwrap();
        change.part().remove(root, "a").unwrap();
    });
    fs::write(temp.path().join("a"), "by another program").unwrap();
    let root = open(temp.path());
    let recovered = recover(&root);
    assert_eq!(
        (recovered.taken_back, recovered.left),
        (1, vec!["a".to_owned()])
    );
    let text = |path: &str| fs::read_to_string(temp.path().join(path)).unwrap();
    assert_eq!(
        (text("a").as_str(), text("b").as_str()),
        ("by another program", "b\n")
    );
    // What is left is told, and can be had as soon as the name is free.
    let left = record(&root, number);
    let paths: Vec<&str> = left.made().map(|part| part.path.as_str()).collect();
    assert!(left.is_made() && paths == ["a"], "{left:?}");
    assert_eq!(text_before(&root, "a", number).as_deref(), Some("a\n"));
    fs::remove_file(temp.path().join("a")).unwrap();
    undo(&root, number).unwrap();
    assert_eq!(text("a"), "a\n");
    assert_eq!(recover(&open(temp.path())), Recovered::default());
}

#[test]
fn what_a_move_replaced_stays_kept_if_somebody_replaced_it_in_turn() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let number = die_after(temp.path(), |change, root| {
        change.part().rename(root, "a", "b").unwrap();
    });
    fs::write(temp.path().join("new"), "by another program").unwrap();
    fs::rename(temp.path().join("new"), temp.path().join("b")).unwrap();
    let root = open(temp.path());
    assert_eq!(recover(&root).left, ["a"]);
    assert_eq!(text_before(&root, "b", number).as_deref(), Some("b\n"));
    assert!(record(&root, number).is_made());
}

/// The last part of several is written down and fails, and before the others are taken back the process dies.
#[test]
fn a_change_whose_last_part_failed_is_not_whole() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let before = snapshot(temp.path());
    die_after(temp.path(), |change, root| {
        change.part().write(root, "a", "half").unwrap();
        let part = || Part::new(PartKind::MakeDir, "other".to_owned());
        let failed = change
            .change
            .noted(root.observers(), part, || Err::<(), _>(Errno::IO));
        assert_eq!(failed, Err(Errno::IO));
    });
    let root = open(temp.path());
    let recovered = recover(&root);
    assert_eq!(
        (recovered.done, recovered.taken_back),
        (0, 1),
        "{recovered:?}"
    );
    assert_eq!(snapshot(temp.path()), before);
}

#[test]
fn a_change_of_many_places_is_settled_while_somebody_works_elsewhere() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let before = snapshot(temp.path());
    die_after(temp.path(), |change, root| {
        for number in 0..100 {
            let path = format!("dir/sub/{}/{number}", number % 7);
            change.part().write(root, &path, "half").unwrap();
        }
    });
    let (root, other) = (open(temp.path()), open(temp.path()));
    let elsewhere = other.change_place("a");
    let held = HeldPlaces::try_hold(&[(&elsewhere, Extent::Entry)]).unwrap();
    assert!(held.is_some());
    assert_eq!(recover(&root).taken_back, 1);
    drop(held);
    assert_eq!(snapshot(temp.path()), before);
}

#[test]
fn what_came_back_is_found_where_it_is_now() {
    let temp = tempfile::tempdir().unwrap();
    fill(temp.path());
    let root = open(temp.path());
    let first = write(&root, "a", "first");
    undo(&root, first).unwrap();
    assert_eq!(text_before(&root, "a", first), None);
    // Once more, and now what came back is kept again.
    let second = write(&root, "a", "second");
    assert_eq!(text_before(&root, "a", first).as_deref(), Some("a\n"));
    assert_eq!(text_before(&root, "a", first + 1).as_deref(), Some("first"));
    assert_eq!(text_before(&root, "a", second).as_deref(), Some("a\n"));
    let change = call();
    change.remove(&root, "dir").unwrap();
    let removed = change.end();
    undo(&root, removed).unwrap();
    assert_eq!(text_before(&root, "dir/c", removed), None);
    rename(&root, "dir/sub", "elsewhere");
    write(&root, "elsewhere/d", "other");
    assert_eq!(
        text_before(&root, "dir/sub/d", removed).as_deref(),
        Some("d\n")
    );
}
