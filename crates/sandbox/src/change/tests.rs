//! Changes as callers see them: told as made, in one step, and hidden in between.

use std::fs;

use super::*;
use crate::leftovers;
use crate::name::Name;
use crate::planted_fault;
use crate::tests::support::{locate, locate_itself};
use crate::{OpenFile, Root};

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

/// A change that is made is not told as if nothing had happened.
#[test]
fn a_change_that_cannot_be_synced_is_told_as_made() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    for file in ["replaced", "moved", "removed"] {
        fs::write(path(file), "old").unwrap();
    }
    fs::create_dir(path("empty")).unwrap();
    let root = Root::open(temp.path()).unwrap();
    let change = Change::begin(Durability::Fsync);
    let at = |name: &str| locate_itself(&root, name).unwrap();
    let top = locate(&root, "").unwrap().open_dir().unwrap();
    let commit = |name: &str| {
        let staged = change.stage(&at(name), OnExisting::Replace, Parents::Require)?;
        staged.commit().map(drop)
    };
    let rename = || change.rename(&at("moved"), &at("there"), OnExisting::Fail, &|| false);
    let attempts: [(&str, &dyn Fn() -> Result<()>); 7] = [
        ("new", &|| commit("new")),
        ("replaced", &|| commit("replaced")),
        ("there", &rename),
        ("removed", &|| change.unlink(&at("removed"))),
        ("empty", &|| change.remove_empty_dir(&at("empty"))),
        ("dir", &|| {
            change.make_dir_in(&top, &name("dir"), 0o755).map(drop)
        }),
        ("link", &|| change.make_link_in(&top, &name("link"), b"new")),
    ];
    for (path, attempt) in attempts {
        let fault = Some(PlantedFault::UnsyncedDirectories);
        let told = planted_fault::with(fault, attempt);
        assert!(
            matches!(&told, Err(Error::Unsynced { path: told, .. }) if told == path),
            "{path}: {told:?}"
        );
    }
    assert_eq!(fs::read(path("replaced")).unwrap(), b"");
    assert!(path("new").exists() && path("there").exists() && path("dir").exists());
    assert!(!path("removed").exists() && !path("empty").exists() && !path("moved").exists());
}

#[test]
fn a_link_takes_the_place_of_a_file_in_one_step() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("file"), "old").unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    let root = Root::open(temp.path()).unwrap();
    let top = locate(&root, "").unwrap().open_dir().unwrap();
    let watched = temp.path().join("file");
    let change = Change::begin(Durability::Fast);
    let is_there = move |_: &str| assert!(watched.symlink_metadata().is_ok());
    syscall::hook::with(is_there, || {
        change.replace_by_link(&top, &name("file"), b"dir").unwrap();
    });
    let text = fs::read_link(temp.path().join("file")).unwrap();
    assert_eq!(text.to_str(), Some("dir"));
    assert!(change.replace_by_link(&top, &name("dir"), b"file").is_err());
    assert_eq!(
        fs::read_dir(temp.path()).unwrap().count(),
        2,
        "a temporary name stays"
    );
}

#[test]
fn a_tree_appears_and_vanishes_whole_and_is_hidden_in_between() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    fs::create_dir_all(path("full/sub")).unwrap();
    let root = Root::open(temp.path()).unwrap();
    let top = locate(&root, "").unwrap().open_dir().unwrap();
    let change = Change::begin(Durability::Fast);
    let staging = change.stage_tree(&top, &name("tree"), 0o751).unwrap();
    assert_eq!(
        staging.top().path(),
        "tree",
        "no message shows the temporary name"
    );
    let file = change.stage_in(staging.top(), &name("file"), OnExisting::Fail);
    file.unwrap().commit().unwrap();
    assert_eq!(
        top.entries().unwrap().len(),
        1,
        "only the other directory is listed"
    );
    assert_eq!(root.sweep_leftovers(&|| false), 0, "its process is alive");
    let refused = staging
        .appear_as(&name("full"), OnExisting::Replace)
        .unwrap_err();
    assert!(
        matches!(refused, Error::AlreadyExists { .. }),
        "{refused:?}"
    );
    staging.appear_as(&name("tree"), OnExisting::Fail).unwrap();
    assert!(path("tree/file").exists());
    let hidden = change
        .hide_tree(&locate_itself(&root, "tree").unwrap())
        .unwrap();
    assert!(!path("tree").exists());
    let open: OpenFile = hidden.top().open_file(&name("file")).unwrap();
    assert_eq!(open.path, "tree/file");
    hidden.discard(&|| false).unwrap();
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
}

/// How many threads of this process have this name.
fn threads_named(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|own| own.trim_end() == name).count()
}

#[test]
fn trees_that_are_removed_later_are_removed_by_one_thread() {
    let temp = tempfile::tempdir().unwrap();
    let root = Root::open(temp.path()).unwrap();
    let top = locate(&root, "").unwrap().open_dir().unwrap();
    let change = Change::begin(Durability::Fast);
    for number in 0..200 {
        let tree = change.stage_tree(&top, &name(&format!("{number}")), 0o755);
        let tree = tree.unwrap();
        let file = change.stage_in(tree.top(), &name("file"), OnExisting::Fail);
        file.unwrap().commit().unwrap();
        if let Err(tree) = tree.discard_later() {
            // So many wait by now.
            tree.discard(&|| false).unwrap();
        }
        assert!(threads_named("take-back") <= 1);
    }
    let is_empty = || fs::read_dir(temp.path()).unwrap().count() == 0;
    let looks = (0..10_000).take_while(|_| !is_empty());
    looks.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(5)));
    assert!(is_empty());
}

#[test]
fn a_tree_of_a_process_that_is_gone_is_swept() {
    let temp = tempfile::tempdir().unwrap();
    let root = Root::open(temp.path()).unwrap();
    let own = leftovers::temporary_name().unwrap();
    let own = String::from_utf8(own.as_bytes().to_vec()).unwrap();
    let mut pieces: Vec<&str> = own.split('-').collect();
    // The same process in another run.
    pieces[4] = "1";
    let left = temp.path().join("dir").join(pieces.join("-"));
    fs::create_dir_all(left.join("a/b")).unwrap();
    fs::write(left.join("a/b/file"), "").unwrap();
    fs::set_permissions(
        left.join("a/b"),
        std::os::unix::fs::PermissionsExt::from_mode(0o500),
    )
    .unwrap();
    fs::create_dir(temp.path().join("dir").join(&own)).unwrap();
    assert_eq!(root.sweep_leftovers(&|| false), 1);
    assert!(!left.exists() && temp.path().join("dir").join(own).exists());
}
