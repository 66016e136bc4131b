//! What a view hides does not exist: by no path, link, move or listing, with every means of look-up.

#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use sandbox::{
    Change, Durability, Error, FileKind, Follow, Located, OnExisting, OnFault, Parents, RelPath,
    Resolver, Root, View, WalkOptions, Walker,
};

const RESOLVERS: [Resolver; 3] = [
    Resolver::Auto,
    Resolver::WalkOnly,
    Resolver::WalkWithoutProc,
];

/// A tree of which `pub/**` exists, but nothing called `secret`, and what it looks like for everybody.
fn roots(path: &Path, resolver: Resolver) -> (Root, Root) {
    for dir in ["pub/dir/deep", "pub/mixed", "priv/dir"] {
        fs::create_dir_all(path.join(dir)).unwrap();
    }
    for (name, text) in [
        ("pub/a.txt", "open"),
        ("pub/dir/deep/b.txt", "open"),
        ("pub/mixed/secret", "hidden"),
        ("pub/mixed/c.txt", "open"),
        ("priv/p.txt", "hidden"),
        ("top.txt", "hidden"),
    ] {
        fs::write(path.join(name), text).unwrap();
    }
    symlink("../priv/p.txt", path.join("pub/link")).unwrap();
    symlink("../priv", path.join("pub/dirlink")).unwrap();
    symlink(path.join("priv/p.txt"), path.join("pub/absolute")).unwrap();
    symlink("dir", path.join("pub/good")).unwrap();
    let root = Root::open_with(path, resolver).unwrap();
    let view = View::new(&["pub/**"], &["**/secret"]).unwrap().unwrap();
    let seen = root.seen_through(Arc::new(view));
    (root, seen)
}

fn each(test: impl Fn(&Path, &Root, &Root)) {
    for resolver in RESOLVERS {
        let temp = tempfile::tempdir().unwrap();
        let (all, seen) = roots(temp.path(), resolver);
        test(temp.path(), &all, &seen);
    }
}

fn locate<'a>(root: &'a Root, path: &str) -> sandbox::Result<Located<'a>> {
    root.locate(&RelPath::parse(path).unwrap(), Follow::Last)
}

fn is_denied<T>(result: sandbox::Result<T>) -> bool {
    matches!(result, Err(Error::NotFound { denied: true, .. }))
}

fn change() -> Change {
    Change::begin(Durability::Fast)
}

#[test]
fn a_hidden_path_is_missing_however_it_is_reached() {
    each(|_, all, seen| {
        for path in [
            "priv/p.txt",
            "priv",
            "top.txt",
            "pub/mixed/secret",
            "pub/link",
            "pub/dirlink/p.txt",
            "pub/absolute",
            "pub/dir/../../priv/p.txt",
            "pub/../top.txt",
            "priv/none",
            "/priv/p.txt",
            "priv/new/deep",
        ] {
            assert!(is_denied(locate(seen, path)), "{path}");
            assert!(seen.open_file(&RelPath::parse(path).unwrap()).is_err());
            assert!(
                seen.try_open_inline(&RelPath::parse(path).unwrap())
                    .is_none()
            );
        }
        for path in [
            "pub/a.txt",
            "pub/good/deep/b.txt",
            "priv/../pub/a.txt",
            "pub/none/../a.txt",
        ] {
            assert!(locate(seen, path).unwrap().open_file().is_ok(), "{path}");
            assert!(
                seen.open_file(&RelPath::parse(path).unwrap()).is_ok(),
                "{path}"
            );
        }
        assert!(locate(all, "priv/p.txt").unwrap().open_file().is_ok());
        let link = seen
            .locate(&RelPath::parse("pub/link").unwrap(), Follow::Never)
            .unwrap();
        assert_eq!(link.link_target().unwrap(), sandbox::LinkTarget::Dangling);
        assert_eq!(link.dangling_target(), None);
    });
}

#[test]
fn listings_and_walks_leave_out_what_is_hidden() {
    each(|_, all, seen| {
        let names = |root: &Root, path: &str| {
            let dir = locate(root, path).unwrap().open_dir().unwrap();
            let mut names: Vec<_> = dir
                .entries()
                .unwrap()
                .iter()
                .map(|e| e.name.shown().into_owned())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(seen, ""), ["pub"]);
        assert_eq!(names(seen, "pub/mixed"), ["c.txt"]);
        assert_eq!(names(all, "pub/mixed"), ["c.txt", "secret"]);
        let mut walker = Walker::new(
            locate(seen, "").unwrap().open_dir().unwrap(),
            WalkOptions::default(),
        );
        while let Some(item) = walker.next(&mut |_| true) {
            let path = item.unwrap().path();
            assert!(
                path.starts_with("pub") && !path.contains("secret"),
                "{path}"
            );
        }
    });
}

#[test]
fn nothing_is_made_where_it_would_not_exist() {
    each(|path, _, seen| {
        for name in ["priv/new", "pub/secret", "pub/mixed/secret/x", "new"] {
            assert!(is_denied(locate(seen, name)), "{name}");
        }
        let staged = change().stage(
            &locate(seen, "pub/x/y").unwrap(),
            OnExisting::Fail,
            Parents::Create,
        );
        staged.unwrap().commit().unwrap();
        // A directory on the way may be made, a file in its place may not.
        fs::rename(path.join("pub"), path.join("old")).unwrap();
        let place = locate(seen, "pub").unwrap();
        assert!(is_denied(change().stage(
            &place,
            OnExisting::Fail,
            Parents::Create
        )));
        assert_eq!(change().make_dirs(&place).unwrap(), 1);
        let dir = locate(seen, "pub").unwrap().open_dir().unwrap();
        let secret = sandbox::Name::new(b"secret").unwrap();
        assert!(is_denied(change().make_dir_in(&dir, &secret, 0o755)));
        assert!(is_denied(change().make_link_in(&dir, &secret, b"x")));
        assert!(is_denied(change().stage_in(
            &dir,
            &secret,
            OnExisting::Replace
        )));
    });
}

#[test]
fn a_directory_with_hidden_entries_stays_where_it_is() {
    each(|path, _, seen| {
        let never = || false;
        let refused = |result: sandbox::Result<()>| match result {
            Err(Error::PermissionDenied { path }) => path,
            other => panic!("{other:?}"),
        };
        let mixed = || locate(seen, "pub/mixed").unwrap();
        let to = || locate(seen, "pub/moved").unwrap();
        let moved = change().rename(&mixed(), &to(), OnExisting::Fail, &never);
        assert_eq!(refused(moved), "pub/mixed");
        let removed = change().remove_tree(&mixed(), &never, OnFault::Stop, &|_| {});
        assert_eq!(refused(removed.map(drop)), "pub/mixed");
        fs::remove_file(path.join("pub/mixed/c.txt")).unwrap();
        assert_eq!(refused(change().remove_empty_dir(&mixed())), "pub/mixed");
        assert_eq!(fs::read(path.join("pub/mixed/secret")).unwrap(), b"hidden");
        let dir = locate(seen, "pub/dir").unwrap();
        change()
            .rename(&dir, &to(), OnExisting::Fail, &never)
            .unwrap();
        let tree = locate(seen, "pub/moved").unwrap();
        change()
            .remove_tree(&tree, &never, OnFault::Stop, &|_| {})
            .unwrap();
    });
}

#[test]
fn what_was_moved_away_is_not_told_by_an_open_directory() {
    for resolver in [Resolver::Auto, Resolver::WalkOnly] {
        let temp = tempfile::tempdir().unwrap();
        let (_, seen) = roots(temp.path(), resolver);
        let dir = locate(&seen, "pub/dir").unwrap().open_dir().unwrap();
        let deep = sandbox::Name::new(b"deep").unwrap();
        let file = sandbox::Name::new(b"b.txt").unwrap();
        let below = dir.open_dir(&deep).unwrap();
        assert!(below.open_file(&file).is_ok());
        fs::rename(temp.path().join("pub/dir"), temp.path().join("priv/away")).unwrap();
        fs::write(temp.path().join("priv/away/deep/b.txt"), "hidden").unwrap();
        assert!(below.entries().is_err());
        assert!(below.open_file(&file).is_err());
        assert!(below.locate(&seen, &file).is_err());
        assert!(dir.entries().is_err());
    }
}

#[test]
fn a_root_that_was_moved_itself_is_still_judged() {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path().join("root");
    fs::create_dir(&place).unwrap();
    let (_, seen) = roots(&place, Resolver::Auto);
    fs::rename(&place, temp.path().join("elsewhere")).unwrap();
    assert!(locate(&seen, "pub/a.txt").unwrap().open_file().is_ok());
    assert!(is_denied(locate(&seen, "top.txt")));
    assert!(seen.shows("pub/a.txt", FileKind::File) && !seen.shows("top.txt", FileKind::File));
}
