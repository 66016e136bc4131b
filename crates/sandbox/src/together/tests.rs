use std::fs;
use std::path::Path;

use super::*;
use crate::tests::support::{locate, locate_itself};

fn hold(root: &Root, path: &str, extent: Extent) -> Option<HeldPlaces> {
    let place = locate_itself(root, path).unwrap().change_place();
    let held = HeldPlaces::try_hold(&[(&place, extent)]).unwrap();
    if let Some(held) = &held {
        assert!(held.fits([&place]));
        held.confirm().unwrap();
    }
    held
}

fn tree() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    fs::create_dir_all(temp.path().join("state")).unwrap();
    fs::write(temp.path().join("a/b/file"), "text").unwrap();
    temp
}

/// The same directory as two processes have it open: locks belong to what was opened.
fn twice(path: &Path) -> [(Root, Root); 2] {
    let own = || Root::open(path).unwrap();
    let cluster = || Cluster::open(&path.join("state")).unwrap();
    let shared = || own().with_cluster(cluster(), "main").unwrap();
    [(own(), own()), (shared(), shared())]
}

#[test]
fn a_file_is_changed_by_one_process_at_a_time_and_a_tree_by_one_alone() {
    let temp = tree();
    for (one, other) in twice(temp.path()) {
        let free = |path: &str, extent| hold(&other, path, extent).is_some();
        let held = hold(&one, "a/b/file", Extent::Entry).unwrap();
        assert!(!free("a/b/file", Extent::Entry), "the file itself");
        assert!(!free("a/b", Extent::Tree) && !free("a", Extent::Tree));
        assert!(!free("", Extent::Tree));
        assert!(free("a/b/new", Extent::Entry) && free("a/other", Extent::Tree));
        drop(held);
        assert!(free("a/b/file", Extent::Entry) && free("", Extent::Tree));
        let held = hold(&one, "a", Extent::Tree).unwrap();
        assert!(!free("a/b/file", Extent::Entry) && !free("a/new", Extent::Entry));
        assert!(!free("a/b", Extent::Tree) && free("state", Extent::Tree));
        drop(held);
    }
    let made = fs::read_dir(temp.path().join("a/b")).unwrap().count();
    assert_eq!(made, 1, "nothing is made in the root");
}

#[test]
fn places_of_one_call_are_never_in_each_others_way() {
    let temp = tree();
    for (one, other) in twice(temp.path()) {
        let place = |path: &str| locate_itself(&one, path).unwrap().change_place();
        let (file, dir, root) = (place("a/b/file"), place("a"), place(""));
        let all = [
            (&file, Extent::Entry),
            (&dir, Extent::Tree),
            (&file, Extent::Entry),
            (&root, Extent::Tree),
        ];
        let held = HeldPlaces::try_hold(&all).unwrap().unwrap();
        assert!(hold(&other, "a/b/new", Extent::Entry).is_none());
        drop(held);
        assert!(hold(&other, "a/b/new", Extent::Entry).is_some());
    }
}

#[test]
fn what_was_replaced_before_it_was_locked_does_not_fit() {
    let temp = tree();
    for (one, _) in twice(temp.path()) {
        let before = locate(&one, "a/b/file").unwrap().change_place();
        let missing = locate(&one, "a/new").unwrap().change_place();
        fs::write(temp.path().join("other"), "other").unwrap();
        fs::rename(temp.path().join("other"), temp.path().join("a/b/file")).unwrap();
        fs::write(temp.path().join("a/new"), "").unwrap();
        for place in [&before, &missing] {
            let held = HeldPlaces::try_hold(&[(place, Extent::Entry)]).unwrap();
            assert!(!held.unwrap().fits([place]));
        }
        fs::remove_file(temp.path().join("a/new")).unwrap();
    }
}

#[test]
fn a_file_that_is_swapped_while_it_is_locked_is_not_taken_for_the_one_before() {
    let temp = tree();
    let root = Root::open(temp.path()).unwrap();
    let place = locate(&root, "a/b/file").unwrap().change_place();
    let path = temp.path().to_owned();
    let mut is_done = false;
    let swap = move |call: &str| {
        if call == "flock" && path.join("a/b/file").exists() && !is_done {
            is_done = true;
            fs::write(path.join("other"), "other").unwrap();
            fs::rename(path.join("other"), path.join("a/b/file")).unwrap();
        }
    };
    let held = syscall::hook::with(swap, || HeldPlaces::try_hold(&[(&place, Extent::Entry)]));
    // The swap comes before the first lock, so the descent finds the new file, which is not the one that was looked up.
    assert!(held.unwrap().is_none_or(|held| !held.fits([&place])));
}

/// A file server may give a lock away while its holder is out of reach, and be asked for it again when it is free.
#[test]
fn a_lock_that_was_lost_is_not_taken_for_one_that_was_held() {
    let temp = tree();
    let [_, (one, other)] = twice(temp.path());
    let hold_one = |path: &str| {
        let held = hold(&one, path, Extent::Entry).unwrap();
        for lost in &held.open {
            syscall::unlock_unchecked(lost.file.as_fd()).unwrap();
        }
        held
    };
    let lost = hold_one("a/b/file");
    let theirs = hold(&other, "a/b/file", Extent::Entry).unwrap();
    assert!(lost.confirm().is_err(), "another has it");
    fs::write(temp.path().join("new"), "theirs").unwrap();
    fs::rename(temp.path().join("new"), temp.path().join("a/b/file")).unwrap();
    drop(theirs);
    assert!(lost.confirm().is_err(), "another had it");
    drop(lost);
    let lost = hold_one("a/b/new");
    fs::write(temp.path().join("a/b/new"), "theirs").unwrap();
    assert!(lost.confirm().is_err(), "another made the file");
}

/// Others who come after the removal make and lock another file.
#[test]
fn a_slot_that_was_removed_is_not_taken_for_one_that_is_held() {
    let temp = tree();
    let [_, (one, _)] = twice(temp.path());
    let state = temp.path().join("state");
    let remove_slots = move || {
        for file in fs::read_dir(&state).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("slot-") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    };
    let place = locate(&one, "a/b/file").unwrap().change_place();
    let mut is_done = false;
    let remove = remove_slots.clone();
    let at_first_lock = move |call: &str| {
        if call == "flock" && !is_done {
            is_done = true;
            remove();
        }
    };
    let taken = syscall::hook::with(at_first_lock, || {
        HeldPlaces::try_hold(&[(&place, Extent::Entry)])
    });
    assert!(taken.unwrap().is_none(), "removed before it was locked");
    let held = hold(&one, "a/b/file", Extent::Entry).unwrap();
    remove_slots();
    assert!(held.confirm().is_err(), "removed while it was locked");
}
