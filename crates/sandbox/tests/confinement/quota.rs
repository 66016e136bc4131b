//! Quotas: what every change does to the account of a root.

use std::fs;
use std::io::Write;
use std::path::Path;

use sandbox::{
    Change, Durability, Error, Name, OnExisting, OnFault, Parents, Quota, QuotaLimit, Root,
};

use crate::support::{change, fresh_dir, locate, locate_itself, stage};

fn root(path: &Path, max_bytes: u64, max_files: u64) -> Root {
    let quota = Quota {
        max_bytes: Some(max_bytes),
        max_files: Some(max_files),
    };
    Root::open(path).unwrap().with_quota(quota).unwrap()
}

fn write(root: &Root, path: &str, size: usize) -> Result<(), Error> {
    let mut staged = stage(&locate(root, path)?)?;
    staged.reserve(size as u64)?;
    staged.write_all(&vec![b'x'; size]).unwrap();
    staged.commit().map(drop)
}

#[track_caller]
fn over<T: std::fmt::Debug>(result: Result<T, Error>, wanted: QuotaLimit) {
    let limit = match result {
        Err(Error::OverQuota { limit, .. }) => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit, wanted);
}

#[test]
fn every_change_is_entered() {
    let temp = fresh_dir();
    let root = root(temp.path(), 100, 4);
    write(&root, "a/file", 60).unwrap();
    over(write(&root, "b", 41), QuotaLimit::Bytes);
    // Replacing counts what it adds.
    write(&root, "a/file", 100).unwrap();
    write(&root, "a/file", 10).unwrap();
    let append = |size: usize| {
        let place = locate(&root, "a/file").unwrap();
        change().append(&place, &vec![b'y'; size], Parents::Create)
    };
    append(50).unwrap();
    over(append(41), QuotaLimit::Bytes);
    let dir = locate(&root, "a").unwrap().open_dir().unwrap();
    change()
        .make_link_in(&dir, &Name::new(b"link").unwrap(), b"file")
        .unwrap();
    change()
        .make_dir_in(&dir, &Name::new(b"dir").unwrap(), 0o755)
        .unwrap();
    over(write(&root, "five", 0), QuotaLimit::Files);
    over(
        change().make_dirs(&locate(&root, "x/y/z").unwrap()),
        QuotaLimit::Files,
    );
    over(
        change().make_link_in(&dir, &Name::new(b"l").unwrap(), b""),
        QuotaLimit::Files,
    );
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    change()
        .unlink(&locate_itself(&root, "a/link").unwrap())
        .unwrap();
    write(&root, "four", 40).unwrap();
    let tree = locate_itself(&root, "a").unwrap();
    change()
        .remove_tree(&tree, &|| false, OnFault::Stop, &|_| {})
        .unwrap();
    write(&root, "more", 60).unwrap();
    over(write(&root, "still", 1), QuotaLimit::Bytes);
}

#[test]
fn a_write_that_is_not_expected_is_refused_before_it_is_seen() {
    let temp = fresh_dir();
    let root = root(temp.path(), 10, 10);
    let mut staged = stage(&locate(&root, "new/file").unwrap()).unwrap();
    staged.write_all(b"eleven byte").unwrap();
    over(staged.commit(), QuotaLimit::Bytes);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    // The directory that went again is off the account.
    for _ in 0..12 {
        drop(stage(&locate(&root, "new/file").unwrap()).unwrap());
    }
}

#[test]
fn moves_between_roots_are_entered_on_both_sides() {
    let (one, two) = (fresh_dir(), fresh_dir());
    let (from, to) = (root(one.path(), 100, 10), root(two.path(), 50, 10));
    write(&from, "tree/a", 30).unwrap();
    write(&from, "tree/b", 30).unwrap();
    let change = Change::begin(Durability::Fsync);
    let go = |path: &str, new: &str| {
        let target = locate_itself(&to, new)?;
        let source = locate_itself(&from, path)?;
        change.rename(&source, &target, OnExisting::Fail, &|| false)
    };
    over(go("tree", "there/tree"), QuotaLimit::Bytes);
    assert_eq!(fs::read_dir(two.path()).unwrap().count(), 0);
    go("tree/a", "there/a").unwrap();
    over(write(&to, "x", 21), QuotaLimit::Bytes);
    write(&from, "new", 70).unwrap();
    over(write(&from, "newer", 1), QuotaLimit::Bytes);
}

#[test]
fn many_writers_never_exceed_it() {
    let temp = fresh_dir();
    let root = root(temp.path(), 10_000, 1_000);
    let path = temp.path();
    let succeeded = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (root, succeeded) = (&root, &succeeded);
            scope.spawn(move || {
                for number in 0..40_usize {
                    let size = (thread * 37 + number * 11) % 200;
                    if write(root, &format!("d{}/f{thread}-{number}", number % 3), size).is_ok() {
                        succeeded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                    assert!(sizes(path) <= 10_000);
                }
            });
        }
    });
    assert!(sizes(temp.path()) > 9_000, "there was room for more");
    assert!(succeeded.into_inner() > 60);
}

fn sizes(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => sizes(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
