//! The everyday behaviour of a root, the same with every means of look-up.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sandbox::{
    Cut, Error, FileKind, LinkTarget, OnExisting, OnFault, Parents, RelPath, Root, WalkOptions,
    Walker,
};

use crate::support::{change, fresh_dir, locate, locate_itself, rename_as, stage, write};
use crate::{everywhere, read};

#[test]
fn what_lies_inside_is_reached_by_every_spelling() {
    everywhere(|root, inside, _| {
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(inside.join("a/b/c"), "text").unwrap();
        symlink("b/c", inside.join("a/relative")).unwrap();
        symlink(inside.join("a/b"), inside.join("absolute")).unwrap();
        symlink("../inside/a", inside.join("out-and-back")).unwrap();
        for path in [
            "a/b/c",
            "/a/b/c",
            "a//b/./c",
            "a/b/../b/c",
            "a/relative",
            "absolute/c",
            "out-and-back/b/c",
            "absolute/../relative",
            "../inside/a/b/c",
        ] {
            assert_eq!(read(root, path).unwrap(), b"text", "{path}");
            assert_eq!(locate(root, path).unwrap().path(), "a/b/c", "{path}");
            let parsed = RelPath::parse(path).unwrap();
            let opened = root.open_file(&parsed).unwrap();
            assert_eq!(opened.path, "a/b/c", "{path}");
            assert_eq!(std::io::read_to_string(opened).unwrap(), "text", "{path}");
        }
    });
}

#[test]
fn what_lies_outside_is_refused_before_it_is_touched() {
    everywhere(|root, inside, outside| {
        symlink(outside, inside.join("link")).unwrap();
        symlink(outside.join("secret"), inside.join("file")).unwrap();
        symlink("../outside", inside.join("relative")).unwrap();
        symlink("../outside/../inside", inside.join("through")).unwrap();
        symlink("/", inside.join("top")).unwrap();
        for path in [
            "..",
            "../outside/secret",
            "link",
            "link/secret",
            "file",
            "relative/secret",
            "relative/new",
            "through",
            "top",
            "top/etc/passwd",
            "link/no/such/thing",
            "a/../../x",
        ] {
            if path.starts_with("a/") {
                fs::create_dir_all(inside.join("a")).unwrap();
            }
            assert!(
                matches!(locate(root, path), Err(Error::Outside { .. })),
                "{path}"
            );
            let opened = root.open_file(&RelPath::parse(path).unwrap());
            assert!(matches!(opened, Err(Error::Outside { .. })), "{path}");
            assert!(
                matches!(write(root, path, b"x"), Err(Error::Outside { .. })),
                "{path}"
            );
        }
    });
}

#[test]
fn a_file_is_created_replaced_and_kept() {
    everywhere(|root, inside, _| {
        write(root, "new/deep/file", b"one").unwrap();
        fs::set_permissions(
            inside.join("new/deep/file"),
            fs::Permissions::from_mode(0o640),
        )
        .unwrap();
        write(root, "new/deep/file", b"two").unwrap();
        assert_eq!(read(root, "new/deep/file").unwrap(), b"two");
        let mode = fs::metadata(inside.join("new/deep/file"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640);
        let refused = change()
            .stage(
                &locate(root, "new/deep/file").unwrap(),
                OnExisting::Fail,
                Parents::Create,
            )
            .map(drop);
        assert!(matches!(refused, Err(Error::AlreadyExists { .. })));
        assert_eq!(fs::read_dir(inside.join("new/deep")).unwrap().count(), 1);
    });
}

#[test]
fn create_only_does_not_replace_what_came_meanwhile() {
    everywhere(|root, inside, _| {
        let mut staged = change()
            .stage(
                &locate(root, "file").unwrap(),
                OnExisting::Fail,
                Parents::Create,
            )
            .unwrap();
        staged.write_all(b"ours").unwrap();
        fs::write(inside.join("file"), "theirs").unwrap();
        assert!(matches!(staged.commit(), Err(Error::AlreadyExists { .. })));
        assert_eq!(fs::read(inside.join("file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(inside).unwrap().count(), 1);
    });
}

#[test]
fn writing_through_a_dangling_link_creates_its_target() {
    everywhere(|root, inside, _| {
        symlink("real", inside.join("link")).unwrap();
        write(root, "link", b"text").unwrap();
        assert_eq!(fs::read(inside.join("real")).unwrap(), b"text");
        assert!(inside.join("link").is_symlink());
    });
}

#[test]
fn appending_adds_and_creates() {
    everywhere(|root, inside, _| {
        for text in ["one\n", "two\n"] {
            let place = locate(root, "log/file").unwrap();
            change()
                .append(&place, text.as_bytes(), Parents::Create)
                .unwrap();
        }
        assert_eq!(fs::read(inside.join("log/file")).unwrap(), b"one\ntwo\n");
    });
}

#[test]
fn a_link_is_removed_and_renamed_itself() {
    everywhere(|root, inside, _| {
        fs::write(inside.join("real"), "text").unwrap();
        symlink("real", inside.join("link")).unwrap();
        let link = |path: &str| locate_itself(root, path).unwrap();
        rename_as(&link("link"), &link("renamed"), OnExisting::Fail).unwrap();
        assert!(inside.join("renamed").is_symlink());
        change().unlink(&link("renamed")).unwrap();
        assert_eq!(fs::read(inside.join("real")).unwrap(), b"text");
        assert!(!inside.join("renamed").is_symlink());
    });
}

#[test]
fn what_lies_in_memory_is_opened_without_waiting_and_nothing_else_is() {
    let temp = fresh_dir();
    let root = Root::open(temp.path()).unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    fs::write(temp.path().join("dir/file"), "text").unwrap();
    symlink("file", temp.path().join("dir/link")).unwrap();
    let open = |path: &str, most| {
        let opened = root.try_open_inline(&RelPath::parse(path).unwrap());
        opened.and_then(|mut opened| opened.try_load_inline(most).then_some(opened))
    };
    // What was just written is in memory; whether it counts depends on the file system and the kernel.
    if let Some(opened) = open("dir/file", 4) {
        assert_eq!(opened.path, "dir/file");
        assert_eq!(std::io::read_to_string(opened).unwrap(), "text");
    }
    for (path, most) in [
        ("dir/file", 3),
        ("dir/link", 4),
        ("dir", 4),
        ("dir/file/", 4),
        ("missing", 4),
        ("../dir/file", 4),
    ] {
        assert!(open(path, most).is_none(), "{path} {most}");
    }
    let walking = Root::open_with(temp.path(), sandbox::Resolver::WalkOnly).unwrap();
    let path = RelPath::parse("dir/file").unwrap();
    assert!(walking.try_open_inline(&path).is_none());
}

#[test]
fn a_tree_is_removed_without_following_links() {
    everywhere(|root, inside, outside| {
        fs::create_dir_all(inside.join("tree/a/b")).unwrap();
        fs::write(inside.join("tree/a/b/c"), "text").unwrap();
        symlink(outside, inside.join("tree/a/link")).unwrap();
        let tree = locate(root, "tree").unwrap();
        let removal = change()
            .remove_tree(&tree, &|| false, OnFault::Stop, &|_| {})
            .unwrap();
        assert_eq!(removal.files, 2);
        assert_eq!(removal.directories, 3);
        assert!(!inside.join("tree").exists());
    });
}

/// A tree that is more than one thread removes: 20 directories of 10 with 5 files and a link to the outside each.
fn large_tree(top: &Path, outside: &Path) {
    for outer in 0..20 {
        for inner in 0..10 {
            let dir = top.join(format!("d{outer}/d{inner}"));
            fs::create_dir_all(&dir).unwrap();
            for file in 0..5 {
                fs::write(dir.join(format!("f{file}")), "text").unwrap();
            }
            symlink(outside, dir.join("link")).unwrap();
        }
    }
}

#[test]
fn a_large_tree_is_removed_and_counted_by_several_threads() {
    everywhere(|root, inside, outside| {
        large_tree(&inside.join("tree"), outside);
        let told = AtomicU64::new(0);
        let tell = |count| {
            told.fetch_add(count, Ordering::Relaxed);
        };
        let tree = locate(root, "tree").unwrap();
        let removal = change()
            .remove_tree(&tree, &|| false, OnFault::Collect, &tell)
            .unwrap();
        assert_eq!(removal.files, 1200);
        assert_eq!(removal.directories, 221);
        assert!(removal.faults.is_empty());
        // The top one is the caller's to tell.
        assert_eq!(told.into_inner(), 1420);
        assert!(!inside.join("tree").exists());
    });
}

#[test]
fn a_removal_that_is_given_up_stops_all_its_threads() {
    everywhere(|root, inside, outside| {
        large_tree(&inside.join("tree"), outside);
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) > 600;
        let tree = locate(root, "tree").unwrap();
        let stopped = change().remove_tree(&tree, &stop, OnFault::Collect, &|_| {});
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert!(inside.join("tree").exists());
    });
}

#[test]
fn the_root_itself_is_protected() {
    everywhere(|root, _, _| {
        for path in ["", ".", "/", "./."] {
            let place = locate(root, path).unwrap();
            assert!(place.is_root());
            assert!(matches!(change().unlink(&place), Err(Error::RootProtected)));
            let removed = change().remove_tree(&place, &|| false, OnFault::Stop, &|_| {});
            assert!(matches!(removed, Err(Error::RootProtected)));
        }
    });
}

#[test]
fn links_tell_where_they_lead() {
    everywhere(|root, inside, outside| {
        fs::create_dir(inside.join("dir")).unwrap();
        symlink("dir", inside.join("in")).unwrap();
        symlink(outside, inside.join("out")).unwrap();
        symlink("nowhere", inside.join("dangling")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        let target = |path: &str| locate_itself(root, path).unwrap().link_target().unwrap();
        assert!(matches!(target("in"), LinkTarget::Inside { path, .. } if path == "dir"));
        assert_eq!(target("out"), LinkTarget::Outside);
        assert_eq!(target("dangling"), LinkTarget::Dangling);
        assert_eq!(target("loop"), LinkTarget::Loop);
    });
}

/// Walks a root in the smallest parts, each cut again before every step.
fn cut_up(root: &Root) -> Vec<String> {
    let cut = Cut {
        entries: 1,
        directories: 1,
    };
    let top = locate(root, "").unwrap().open_dir().unwrap();
    let mut parts = vec![Walker::new(top, WalkOptions::default())];
    let mut paths = Vec::new();
    while let Some(mut part) = parts.pop() {
        let rest = part.split(cut);
        let met = part.next(&mut |_| true);
        let more = met.is_some();
        paths.extend(met.map(|item| item.unwrap().path()));
        parts.extend(rest);
        parts.extend(more.then_some(part));
    }
    paths
}

#[test]
fn a_walk_goes_in_the_order_of_full_paths() {
    everywhere(|root, inside, _| {
        for path in ["a/x", "a/b/y", "a.txt", "a-b/z", "b", "a/b-c", "a/b.d"] {
            let path = inside.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let top = locate(root, "").unwrap().open_dir().unwrap();
        let mut walker = Walker::new(top, WalkOptions::default());
        let mut paths = Vec::new();
        while let Some(item) = walker.next(&mut |_| true) {
            paths.push(item.unwrap().path());
        }
        let mut sorted = paths.clone();
        sorted.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        assert_eq!(paths, sorted);
        assert_eq!(paths.len(), 10);
        assert_eq!(cut_up(root), paths);
    });
}

#[test]
fn deep_trees_are_walked_and_removed_with_few_descriptors() {
    let temp = fresh_dir();
    let root = Root::open(temp.path()).unwrap();
    let levels = 10_000;
    let mut dir = locate(&root, "").unwrap().open_dir().unwrap();
    let name = sandbox::Name::new(b"deep").unwrap();
    for _ in 0..levels {
        dir = change().make_dir_in(&dir, &name, 0o777).unwrap();
    }
    // While the deepest one is open, the kernel goes through everything below with each directory that is removed.
    drop(dir);
    let top = locate(&root, "").unwrap().open_dir().unwrap();
    let mut walker = Walker::new(top, WalkOptions::default());
    let mut met = 0;
    while let Some(item) = walker.next(&mut |_| true) {
        assert_eq!(item.unwrap().kind, FileKind::Directory);
        met += 1;
    }
    assert_eq!(met, levels);
    let tree = locate(&root, "deep").unwrap();
    let removal = change()
        .remove_tree(&tree, &|| false, OnFault::Stop, &|_| {})
        .unwrap();
    assert_eq!(removal.directories, levels);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn names_that_are_not_utf8_open_by_the_form_they_are_shown_in() {
    everywhere(|root, inside, _| {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        fs::write(inside.join(name), "text").unwrap();
        let entries = locate(root, "")
            .unwrap()
            .open_dir()
            .unwrap()
            .entries()
            .unwrap();
        assert!(entries[0].name.is_invalid_utf8());
        assert_eq!(read(root, &entries[0].name.shown()).unwrap(), b"text");
    });
}

#[test]
fn directories_made_for_nothing_go_again() {
    everywhere(|root, inside, _| {
        fs::create_dir(inside.join("there")).unwrap();
        let place = || locate(root, "there/new/deep/file").unwrap();
        drop(stage(&place()).unwrap());
        assert!(!inside.join("there/new").exists() && inside.join("there").is_dir());
        // What somebody else put there stays.
        let staged = stage(&place()).unwrap();
        fs::write(inside.join("there/new/theirs"), "").unwrap();
        drop(staged);
        assert!(
            !inside.join("there/new/deep").exists() && inside.join("there/new/theirs").exists()
        );
        stage(&place()).unwrap().commit().unwrap();
        assert!(inside.join("there/new/deep/file").exists());
    });
}

#[test]
fn a_deep_way_made_for_nothing_goes_again() {
    everywhere(|root, inside, _| {
        let path = "d/".repeat(200) + "file";
        drop(stage(&locate(root, &path).unwrap()).unwrap());
        assert_eq!(fs::read_dir(inside).unwrap().count(), 0);
    });
}
