//! The second wall: a process locked to its roots cannot leave them even by plain calls.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use sandbox::{
    Change, ContentCopy, CopyStep, Durability, Error, Exception, ExceptionRights, Landlock,
    NamedRoot, OnExisting, OnFault, Parents, Protection, Resolver, Root, Roots, Sharing,
    WalkOptions, Walker, lock_in,
};

use crate::child;
use crate::support::{RESOLVERS, change, locate, locate_itself, rename_as, stage, write};
use crate::{read, snapshot};

fn named(path: &Path, resolver: Resolver, read_only: bool) -> NamedRoot {
    NamedRoot {
        name: format!("{resolver:?}{read_only}"),
        root: Arc::new(Root::open_with(path, resolver).unwrap()),
        read_only,
    }
}

fn denied<T: std::fmt::Debug>(result: std::io::Result<T>, what: &str) {
    let kind = result.map_err(|error| error.kind());
    assert_eq!(kind.unwrap_err(), ErrorKind::PermissionDenied, "{what}");
}

fn nothing_outside_opens(base: &Path) {
    let (inside, outside) = (base.join("inside"), base.join("outside"));
    let secret = outside.join("secret");
    denied(fs::read(&secret), "read");
    denied(fs::read("/etc/passwd"), "read /etc");
    denied(fs::read_dir(&outside), "list");
    denied(fs::read_dir(base), "list above");
    denied(fs::read_dir("/"), "list /");
    denied(fs::write(&secret, "x"), "write");
    denied(fs::write(outside.join("new"), "x"), "create");
    denied(fs::create_dir(outside.join("new")), "mkdir");
    denied(symlink("x", outside.join("new")), "symlink");
    denied(fs::remove_file(&secret), "unlink");
    denied(fs::remove_dir(outside.join("empty")), "rmdir");
    let own = inside.join("own");
    fs::write(&own, "own").unwrap();
    // Two directories without the right to move between them answer EXDEV, or EACCES.
    assert!(fs::rename(&own, outside.join("own")).is_err());
    assert!(fs::hard_link(&secret, inside.join("hard")).is_err());
    assert!(fs::rename(&secret, inside.join("stolen")).is_err());
    fs::remove_file(&own).unwrap();
    denied(std::process::Command::new("/bin/true").status(), "execute");
}

fn everything_inside_works(root: &Root) {
    write(root, "a/b/file", b"one").unwrap();
    write(root, "a/b/file", b"two").unwrap();
    let synced = Change::begin(Durability::Fsync);
    let log = locate(root, "a/log").unwrap();
    synced.append(&log, b"x", Parents::Create).unwrap();
    let log = locate(root, "a/log").unwrap();
    synced.append(&log, b"y", Parents::Create).unwrap();
    assert_eq!(read(root, "a/log").unwrap(), b"xy");
    let from = locate_itself(root, "a/b/file").unwrap();
    rename_as(
        &from,
        &locate_itself(root, "c/d/moved").unwrap(),
        OnExisting::Fail,
    )
    .unwrap();
    assert_eq!(read(root, "c/d/moved").unwrap(), b"two");
    let directory = locate_itself(root, "c").unwrap();
    rename_as(
        &directory,
        &locate_itself(root, "a/c").unwrap(),
        OnExisting::Fail,
    )
    .unwrap();
    copies(root);
    links_and_walks(root);
    let tree = locate_itself(root, "a").unwrap();
    change()
        .remove_tree(&tree, &|| false, OnFault::Stop, &|_| {})
        .unwrap();
    assert_eq!(root.sweep_leftovers(&|| false), 0);
}

fn copies(root: &Root) {
    let source = locate(root, "a/c/d/moved").unwrap().open_file().unwrap();
    let mut staged = stage(&locate(root, "a/copy").unwrap()).unwrap();
    let (mut content, sharing) = (ContentCopy::default(), Sharing::default());
    while content.step(&source, &staged, &sharing).unwrap() != CopyStep::Finished {}
    staged.flush().unwrap();
    staged.commit().unwrap();
    assert_eq!(read(root, "a/copy").unwrap(), b"two");
}

fn links_and_walks(root: &Root) {
    let top = locate(root, "a").unwrap().open_dir().unwrap();
    change()
        .make_link_in(&top, &sandbox::Name::new(b"link").unwrap(), b"copy")
        .unwrap();
    assert_eq!(read(root, "a/link").unwrap(), b"two");
    change()
        .unlink(&locate_itself(root, "a/link").unwrap())
        .unwrap();
    let mut walker = Walker::new(top, WalkOptions::default());
    let mut met = 0;
    while let Some(item) = walker.next(&mut |_| true) {
        item.unwrap();
        met += 1;
    }
    assert_eq!(met, 6);
}

fn nothing_in_a_read_only_root_changes(root: &Root, path: &Path) {
    assert_eq!(read(root, "file").unwrap(), b"kept");
    let refused = |result: Result<(), Error>| {
        assert!(
            matches!(result, Err(Error::PermissionDenied { .. })),
            "{result:?}"
        );
    };
    refused(write(root, "file", b"x"));
    refused(write(root, "new", b"x"));
    let file = locate_itself(root, "file").unwrap();
    refused(change().append(&file, b"x", Parents::Require).map(drop));
    refused(change().unlink(&file));
    refused(change().make_dir(&locate(root, "new").unwrap()));
    denied(fs::write(path.join("file"), "x"), "plain write");
    denied(fs::write(path.join("new"), "x"), "plain create");
    denied(fs::remove_file(path.join("file")), "plain unlink");
}

/// What the child does: locks itself in and tries everything.
fn locked_in(base: &Path) {
    let (inside, kept) = (base.join("inside"), base.join("kept"));
    let mut roots: Vec<NamedRoot> = RESOLVERS.map(|r| named(&inside, r, false)).into();
    roots.extend(RESOLVERS.map(|r| named(&kept, r, true)));
    let roots = Roots::new(roots);
    let log = Exception {
        path: &base.join("log"),
        rights: ExceptionRights::Write,
    };
    let protection = lock_in(&roots, Landlock::Auto, &[log]).unwrap();
    if protection == Protection::Unavailable {
        return;
    }
    nothing_outside_opens(base);
    for root in roots.iter() {
        match root.read_only {
            true => nothing_in_a_read_only_root_changes(&root.root, &kept),
            false => everything_inside_works(&root.root),
        }
    }
    let mut log = fs::OpenOptions::new()
        .append(true)
        .open(base.join("log"))
        .unwrap();
    log.write_all(b"a line").unwrap();
    // The chain of the audit file goes on from its last line.
    assert_eq!(fs::read(base.join("log")).unwrap(), b"a line");
    denied(
        fs::remove_file(base.join("log")),
        "removing what may only be written",
    );
}

#[test]
fn a_process_locked_to_its_roots_stays_there() {
    if let Some(base) = child::directory() {
        return locked_in(&base);
    }
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path();
    for dir in ["inside", "outside/empty", "kept"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    for (file, text) in [
        ("outside/secret", "secret"),
        ("kept/file", "kept"),
        ("log", ""),
    ] {
        fs::write(base.join(file), text).unwrap();
    }
    let before = (
        snapshot(&base.join("outside")),
        snapshot(&base.join("kept")),
    );
    let mut child = child::command("lock::a_process_locked_to_its_roots_stays_there", base);
    let output = child.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    let after = (
        snapshot(&base.join("outside")),
        snapshot(&base.join("kept")),
    );
    assert_eq!(after, before);
    assert_eq!(fs::read_dir(base.join("inside")).unwrap().count(), 0);
}

#[test]
fn what_is_switched_off_is_said() {
    let off = lock_in(&Roots::default(), Landlock::Off, &[]).unwrap();
    assert_eq!(off.to_string(), "landlock off");
    // Nothing is locked: the whole system can still be read.
    assert!(fs::read_dir("/").is_ok());
}
