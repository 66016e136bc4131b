//! Paths as such: their limits, their odd forms, and what a slash at the end means.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::io::Errno;
use sandbox::{Error, FileKind, LinkTarget, OnExisting, PathFault, RelPath, Resolver, Root};

use crate::support::{change, fresh_dir, locate, locate_itself, rename_as, under_filter, write};
use crate::{everywhere, read};

fn fault(path: &str) -> Option<PathFault> {
    match RelPath::parse(path) {
        Err(Error::InvalidPath { fault, .. }) => Some(fault),
        _ => None,
    }
}

#[test]
fn what_no_path_can_be_is_said_before_anything_is_looked_up() {
    assert_eq!(fault("a\0b"), Some(PathFault::Nul));
    assert_eq!(fault(&"a/".repeat(2048)), Some(PathFault::TooLong));
    assert_eq!(fault(&"a/".repeat(2047)), None);
    assert_eq!(fault(&"n".repeat(256)), Some(PathFault::NameTooLong));
    assert_eq!(
        fault(&format!("a/{}/b", "n".repeat(256))),
        Some(PathFault::NameTooLong)
    );
    assert_eq!(fault(&"n".repeat(255)), None);
}

#[test]
fn the_longest_names_and_paths_are_reached() {
    everywhere(|root, inside, _| {
        let name = "n".repeat(255);
        write(root, &name, b"text").unwrap();
        assert_eq!(read(root, &name).unwrap(), b"text");
        // Fifteen long names and one that fills the path up to its limit.
        let long = format!("{}{}", format!("{name}/").repeat(15), "f".repeat(255));
        fs::remove_file(inside.join(&name)).unwrap();
        write(root, &long, b"deep").unwrap();
        assert_eq!(read(root, &long).unwrap(), b"deep");
    });
}

#[test]
fn forty_links_are_followed_and_no_more() {
    everywhere(|root, inside, _| {
        fs::write(inside.join("link0"), "text").unwrap();
        for number in 1..=41 {
            symlink(
                format!("link{}", number - 1),
                inside.join(format!("link{number}")),
            )
            .unwrap();
        }
        assert_eq!(read(root, "link40").unwrap(), b"text");
        assert!(matches!(read(root, "link41"), Err(Error::Loop { .. })));
        let last = locate_itself(root, "link41").unwrap();
        assert_eq!(last.link_target().unwrap(), LinkTarget::Loop);
        symlink("there", inside.join("here")).unwrap();
        symlink("here", inside.join("there")).unwrap();
        assert!(matches!(read(root, "here"), Err(Error::Loop { .. })));
        assert!(matches!(write(root, "here", b"x"), Err(Error::Loop { .. })));
    });
}

#[test]
fn going_down_and_up_often_costs_little() {
    everywhere(|root, inside, _| {
        fs::create_dir(inside.join("a")).unwrap();
        fs::write(inside.join("file"), "text").unwrap();
        let path = format!("{}file", "a/../".repeat(800));
        assert_eq!(read(root, &path).unwrap(), b"text");
    });
}

#[test]
fn a_path_that_goes_down_and_up_a_deep_tree_ends() {
    let temp = fresh_dir();
    let root = Root::open_with(temp.path(), Resolver::WalkOnly).unwrap();
    let deep = "d/".repeat(1000);
    change().make_dirs(&locate(&root, &deep).unwrap()).unwrap();
    let path = format!("{deep}{}", "../d/".repeat(400));
    assert!(matches!(locate(&root, &path), Err(Error::Loop { .. })));
    let few = format!("{deep}{}", "../d/".repeat(10));
    assert!(
        locate(&root, &few)
            .unwrap()
            .metadata()
            .unwrap()
            .is_directory()
    );
}

#[test]
fn two_dots_after_a_plain_name_need_no_such_name() {
    everywhere(|root, inside, _| {
        fs::create_dir_all(inside.join("dir/sub")).unwrap();
        fs::write(inside.join("file"), "text").unwrap();
        fs::write(inside.join("dir/file"), "deeper").unwrap();
        symlink("dir/sub", inside.join("link")).unwrap();
        symlink("zz/../file", inside.join("dotted")).unwrap();
        for path in [
            "zz/../file",
            "zz/yy/../../file",
            "zz/../zz/../file",
            "file/../file",
            "file/x/../../file",
            "dir/zz/../../file",
            "link/../zz/../../file",
        ] {
            assert_eq!(read(root, path).unwrap(), b"text", "{path}");
        }
        // After a link it is the directory above the link's target.
        assert_eq!(read(root, "link/../file").unwrap(), b"deeper");
        assert_eq!(read(root, "link/zz/../../file").unwrap(), b"deeper");
        for path in ["zz/..", "zz/yy/../..", "file/.."] {
            assert_eq!(locate(root, path).unwrap().path(), ".", "{path}");
        }
        for path in ["zz/../../x", "file/../../x", "zz/yy/../../../x"] {
            let refused = locate(root, path);
            assert!(matches!(refused, Err(Error::Outside { .. })), "{path}");
        }
        // The text of a link means what it means to the kernel.
        assert!(matches!(read(root, "dotted"), Err(Error::NotFound { .. })));
        assert!(matches!(
            read(root, "zz/yy/.."),
            Err(Error::NotFound { .. })
        ));
        for path in ["zz/.mcp-filesystem/x", "zz/yy/../.mcp-filesystem"] {
            let refused = write(root, path, b"x");
            assert!(matches!(refused, Err(Error::NotFound { .. })), "{path}");
        }
        write(root, "zz/../new", b"x").unwrap();
        assert!(inside.join("new").exists() && !inside.join("zz").exists());
    });
}

#[test]
fn a_slash_at_the_end_wants_a_directory() {
    everywhere(|root, inside, _| {
        fs::create_dir(inside.join("dir")).unwrap();
        fs::write(inside.join("file"), "text").unwrap();
        symlink("file", inside.join("link")).unwrap();
        symlink("file/", inside.join("slashed")).unwrap();
        symlink("dir/", inside.join("to-dir")).unwrap();
        symlink("new/", inside.join("to-new")).unwrap();
        for path in [
            "file/",
            "file/.",
            "link/",
            "slashed",
            "slashed/",
            "file/x/..",
            "file/x",
        ] {
            let result = read(root, path);
            assert!(
                matches!(result, Err(Error::NotADirectory { .. })),
                "{path}: {result:?}"
            );
            let parsed = RelPath::parse(path).unwrap();
            let opened = root.open_file(&parsed);
            assert!(
                matches!(opened, Err(Error::NotADirectory { .. })),
                "{path}: {opened:?}"
            );
        }
        for path in ["dir", "dir/", "dir/.", "to-dir", "to-dir/"] {
            assert_eq!(locate(root, path).unwrap().path(), "dir", "{path}");
        }
        for path in ["new/", "new/.", "to-new", "more/new/"] {
            let result = write(root, path, b"x");
            assert!(
                matches!(result, Err(Error::IsADirectory { .. })),
                "{path}: {result:?}"
            );
        }
        let (file, to) = (locate(root, "file").unwrap(), locate(root, "new/").unwrap());
        let refused = rename_as(&file, &to, OnExisting::Fail);
        assert!(matches!(refused, Err(Error::NotADirectory { .. })));
        assert!(!inside.join("new").exists());
        rename_as(&locate(root, "dir").unwrap(), &to, OnExisting::Fail).unwrap();
        assert!(inside.join("new").is_dir());
        change().make_dir(&locate(root, "made/").unwrap()).unwrap();
        assert!(inside.join("made").is_dir());
    });
}

#[test]
fn odd_characters_are_ordinary() {
    everywhere(|root, inside, _| {
        for name in [
            "~",
            "$HOME",
            "%2e%2e",
            "%252e",
            "．．",
            "a\\..\\b",
            "C:",
            "a\nb",
            "a\u{202e}b",
            "...",
            " ",
            "-rf",
            "*",
        ] {
            write(root, name, name.as_bytes()).unwrap();
            assert_eq!(
                fs::read(inside.join(name)).unwrap(),
                name.as_bytes(),
                "{name:?}"
            );
            assert_eq!(locate(root, name).unwrap().path(), name);
        }
    });
}

#[test]
fn a_directory_with_the_roots_name_as_a_prefix_is_outside() {
    everywhere(|root, inside, _| {
        let twin = inside.with_file_name("inside-twin");
        fs::create_dir_all(&twin).unwrap();
        fs::write(twin.join("file"), "twin").unwrap();
        symlink(twin.join("file"), inside.join("link")).unwrap();
        for path in [
            "../inside-twin/file",
            "link",
            "../inside/../inside-twin/file",
        ] {
            assert!(
                matches!(read(root, path), Err(Error::Outside { .. })),
                "{path}"
            );
        }
    });
}

#[test]
fn links_into_proc_are_text_like_any_other() {
    everywhere(|root, inside, _| {
        for target in [
            "/proc/self/root",
            "/proc/self/cwd",
            "/proc/self/fd/0",
            "/proc/self/exe",
        ] {
            symlink(target, inside.join("link")).unwrap();
            for path in ["link", "link/etc", "link/.."] {
                assert!(
                    matches!(locate(root, path), Err(Error::Outside { .. })),
                    "{path}"
                );
            }
            fs::remove_file(inside.join("link")).unwrap();
        }
    });
}

#[test]
fn a_root_may_be_reached_through_a_link_and_be_replaced_later() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    fs::create_dir(path("real")).unwrap();
    symlink(path("real"), path("configured")).unwrap();
    fs::write(path("real/file"), "text").unwrap();
    symlink(path("configured/file"), path("real/by-configured")).unwrap();
    symlink(path("real/file"), path("real/by-real")).unwrap();
    let root = Root::open(&path("configured")).unwrap();
    for link in ["by-configured", "by-real"] {
        assert_eq!(read(&root, link).unwrap(), b"text", "{link}");
    }
    fs::rename(path("real"), path("moved")).unwrap();
    fs::create_dir(path("real")).unwrap();
    fs::write(path("real/file"), "another root's").unwrap();
    for link in ["by-configured", "by-real", "file"] {
        assert_eq!(read(&root, link).unwrap(), b"text", "{link}");
    }
}

#[test]
fn the_filter_answers_as_an_old_kernel_does() {
    let outcome = |errno| {
        let temp = tempfile::tempdir().unwrap();
        let still_used = std::sync::atomic::AtomicBool::new(true);
        under_filter(errno, || {
            let root = Root::open(temp.path()).unwrap();
            write(&root, "a/b", b"text").unwrap();
            read(&root, "a/b").unwrap();
            still_used.store(root.uses_openat2(), std::sync::atomic::Ordering::Relaxed);
        });
        still_used.into_inner()
    };
    assert!(!outcome(Errno::NOSYS), "ENOSYS is remembered");
    assert!(outcome(Errno::PERM), "EPERM may be about one call only");
}

#[test]
fn what_is_found_is_told_as_it_is() {
    everywhere(|root, inside, _| {
        fs::write(inside.join("file"), "text").unwrap();
        symlink("file", inside.join("link")).unwrap();
        let kind = |place: sandbox::Located<'_>| place.metadata().unwrap().kind;
        assert_eq!(kind(locate(root, "link").unwrap()), FileKind::File);
        assert_eq!(
            kind(locate_itself(root, "link").unwrap()),
            FileKind::Symlink
        );
        let missing = locate(root, "no/such").unwrap();
        assert!(missing.metadata().is_none());
        let error = missing.require().unwrap_err();
        assert!(matches!(error, Error::NotFound { missing, .. } if missing == "no"));
    });
}
