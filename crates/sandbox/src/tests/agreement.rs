//! Random trees and hostile paths: what is inside by the kernel's own resolution is reached, with the same inode
//! and path; everything else is refused; and no descriptor ever refers to anything outside.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};

use proptest::prelude::*;
use rustix::io::Errno;

use super::support::{Ground, RESOLVERS, fresh_dir, under_filter};
use crate::resolve::Tail;
use crate::{Error, Follow, Located, RelPath, Resolver, Root};

/// More links than any chain here may have, as the kernel counts them.
const MAX_LINKS: usize = 40;

/// Something to be made at a path.
#[derive(Debug, Clone)]
enum Node {
    Dir,
    File,
    Link(String),
}

/// Pieces that lead everywhere a path can lead, well and badly formed.
fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c"]),
        2 => Just(".."),
        1 => prop::sample::select(vec![".", "", "missing", "inside", "outside", "secret"]),
    ]
}

fn relative() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 1..6).prop_map(|pieces| pieces.join("/"))
}

/// A link's text: relative, to the root, to outside, or to the top; `BASE` stands for the directory above.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => relative(),
        2 => relative().prop_map(|path| format!("BASE/inside/{path}")),
        1 => relative().prop_map(|path| format!("BASE/outside/{path}")),
        1 => relative().prop_map(|path| format!("BASE/{path}")),
        1 => relative().prop_map(|path| format!("/{path}")),
    ]
    .prop_filter("a link has a text", |text| !text.is_empty())
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        3 => Just(Node::Dir),
        2 => Just(Node::File),
        4 => text().prop_map(Node::Link),
    ]
}

fn tree() -> impl Strategy<Value = Vec<(String, Node)>> {
    let place = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4);
    prop::collection::vec((place.prop_map(|pieces| pieces.join("/")), node()), 1..14)
}

/// Makes what can be made: not what would lie beneath a file or a link.
fn build(base: &Path, tree: &[(String, Node)]) {
    for (place, node) in tree {
        let path = base.join("inside").join(place);
        if path
            .parent()
            .is_none_or(|parent| !parent.is_dir() || is_beneath_link(base, parent))
        {
            continue;
        }
        let _ = match node {
            Node::Dir => fs::create_dir(&path),
            Node::File if path.symlink_metadata().is_err() => fs::write(&path, place),
            Node::File => Ok(()),
            Node::Link(text) => symlink(text.replace("BASE", &base.to_string_lossy()), &path),
        };
    }
}

fn is_beneath_link(base: &Path, dir: &Path) -> bool {
    fs::canonicalize(dir).unwrap() != *dir || !dir.starts_with(base)
}

/// What plain path strings say of a path, looked up in peace.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// It passes through, or ends in, a directory that is neither inside the root nor above it.
    Leaves,
    /// It stays inside; the kernel says the rest.
    Stays,
}

/// Follows a path as the kernel does, by strings, and watches where it goes.
fn verdict(base: &Path, path: &str) -> Verdict {
    let inside = base.join("inside");
    let mut position = inside.clone();
    let mut pending: VecDeque<PathBuf> = pieces(Path::new(path.trim_start_matches('/')));
    let mut links = 0;
    while let Some(piece) = pending.pop_front() {
        if !position.is_dir() {
            pending.push_front(piece);
            return beyond(&inside, &position, &pending);
        }
        let next = match piece.to_str() {
            Some("..") => position.parent().unwrap_or(Path::new("/")).to_owned(),
            _ => position.join(&piece),
        };
        if !next.starts_with(&inside) && !inside.starts_with(&next) {
            return Verdict::Leaves;
        }
        match fs::read_link(&next) {
            Ok(text) if piece.to_str() != Some("..") => {
                links += 1;
                if links > MAX_LINKS {
                    return Verdict::Stays;
                }
                if text.is_absolute() {
                    position = PathBuf::from("/");
                }
                let mut steps = pieces(&text);
                steps.append(&mut pending);
                pending = steps;
            }
            _ => position = next,
        }
    }
    if position.starts_with(&inside) {
        Verdict::Stays
    } else {
        Verdict::Leaves
    }
}

/// A path goes on after what is not a directory: where nothing is, it counts as leaving if it would climb out
/// of the root from there, as it would if the directory existed.
fn beyond(inside: &Path, position: &Path, pending: &VecDeque<PathBuf>) -> Verdict {
    if position.symlink_metadata().is_ok() {
        return Verdict::Stays;
    }
    let mut depth = position.strip_prefix(inside).unwrap().components().count();
    for piece in pending {
        depth = match (piece.to_str(), depth) {
            (Some(".."), 0) => return Verdict::Leaves,
            (Some(".."), depth) => depth - 1,
            _ => depth + 1,
        };
    }
    Verdict::Stays
}

fn pieces(path: &Path) -> VecDeque<PathBuf> {
    path.components()
        .filter(|piece| matches!(piece, Component::Normal(_) | Component::ParentDir))
        .map(|piece| PathBuf::from(piece.as_os_str()))
        .collect()
}

/// The path of a descriptor, as the kernel reports it.
fn stands_at(fd: BorrowedFd<'_>) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap()
}

/// Every descriptor that a place holds is beneath the root.
fn is_beneath(inside: &Path, place: &Located<'_>) {
    assert!(stands_at(place.parent()).starts_with(inside));
    if let Tail::Existing { fd, .. } = place.tail() {
        let fd = std::os::fd::AsFd::as_fd(fd);
        assert!(stands_at(fd).starts_with(inside) && stands_at(fd) != *inside);
    }
    if let Ok(opened) = place.open_file() {
        let fd = std::os::fd::AsFd::as_fd(&opened.file);
        assert!(stands_at(fd).starts_with(inside));
    }
    if let Ok(dir) = place.open_dir() {
        assert!(stands_at(dir.fd()).starts_with(inside));
    }
}

/// The path without `name/..` where the name is inside and no link: that much is resolved before anything is looked up.
fn reduced(inside: &Path, path: &str) -> String {
    let at = |pieces: &[PathBuf]| inside.join(pieces.iter().collect::<PathBuf>());
    let is_inside = |pieces: &[PathBuf]| {
        let above = (0..pieces.len()).rev();
        let mut there = above.filter_map(|length| fs::canonicalize(at(&pieces[..length])).ok());
        there.next().is_some_and(|real| real.starts_with(inside))
    };
    let mut kept: Vec<PathBuf> = Vec::new();
    for piece in pieces(Path::new(path.trim_start_matches('/'))) {
        let is_plain = kept.last().is_some_and(|last| last.as_os_str() != "..")
            && is_inside(&kept)
            && fs::read_link(at(&kept)).is_err();
        if piece.as_os_str() == ".." && is_plain {
            kept.pop();
        } else {
            kept.push(piece);
        }
    }
    let path: PathBuf = kept.iter().collect();
    path.to_string_lossy().into_owned()
}

/// Compares what a root says of a path with what the kernel says in peace.
fn agrees(root: &Root, base: &Path, given: &str) {
    let inside = base.join("inside");
    let place = root.locate(&RelPath::parse(given).unwrap(), Follow::Last);
    if let Ok(place) = &place {
        is_beneath(&inside, place);
    }
    // A slash or a dot at the end asks for a directory, to the kernel as well.
    let ending = if given.ends_with('/') || given.ends_with("/.") || given.ends_with("..") {
        "/"
    } else {
        ""
    };
    let path = &(reduced(&inside, given) + ending);
    if verdict(base, path) == Verdict::Leaves {
        assert!(
            matches!(place, Err(Error::Outside { .. })),
            "{path:?}: {place:?}"
        );
        return;
    }
    match fs::canonicalize(format!("{}/{path}", inside.display())) {
        Ok(real) => same_place(&inside, &real, &place.unwrap()),
        Err(error) => same_error(&error, path, place),
    }
}

fn same_place(inside: &Path, real: &Path, place: &Located<'_>) {
    let relative = real.strip_prefix(inside).unwrap();
    let expected = if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        relative.to_string_lossy().into_owned()
    };
    assert_eq!(place.path(), expected);
    assert_eq!(
        place.require().unwrap().inode,
        fs::metadata(real).unwrap().ino()
    );
}

fn same_error(error: &std::io::Error, path: &str, place: Result<Located<'_>, Error>) {
    let agreed = match (error.kind(), &place) {
        (ErrorKind::NotFound, Ok(place)) => place.require().is_err(),
        (ErrorKind::NotFound, Err(Error::NotFound { .. })) => true,
        (ErrorKind::NotADirectory, Err(Error::NotADirectory { .. })) => true,
        (_, Err(Error::Loop { .. })) => Errno::from_io_error(error) == Some(Errno::LOOP),
        _ => false,
    };
    assert!(agreed, "{path:?}: {error} against {place:?}");
}

fn check_tree(tree: &[(String, Node)], paths: &[String]) {
    let ground = Ground::new(fresh_dir());
    let base = fs::canonicalize(ground.inside())
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    build(&base, tree);
    let check = |resolver| {
        let root = Root::open_with(&base.join("inside"), resolver).unwrap();
        paths.iter().for_each(|path| agrees(&root, &base, path));
    };
    RESOLVERS.into_iter().for_each(check);
    under_filter(Errno::NOSYS, || check(Resolver::Auto));
    under_filter(Errno::PERM, || check(Resolver::Auto));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_are_resolved_as_the_kernel_does(
        tree in tree(),
        paths in prop::collection::vec(relative(), 24),
        slashes in prop::sample::select(vec!["", "/"]),
    ) {
        let paths: Vec<String> = paths.iter().map(|path| format!("{slashes}{path}")).collect();
        check_tree(&tree, &paths);
    }
}

/// One of every kind of thing that a path can meet.
fn hostile_tree() -> Vec<(String, Node)> {
    let link = |name: &str, text: &str| (name.to_owned(), Node::Link(text.to_owned()));
    vec![
        ("a".to_owned(), Node::Dir),
        ("a/b".to_owned(), Node::Dir),
        ("a/b/c".to_owned(), Node::File),
        link("a/c", "b/c"),
        link("b", "BASE/inside/a"),
        link("a/a", "../../outside"),
        link("a/b/a", "a"),
        link("a/b/b", "/"),
        link("c", "../inside/a/b"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hostile_paths_stay_inside_and_reach_what_is_there(
        paths in prop::collection::vec(prop::collection::vec(piece(), 1..12), 24),
    ) {
        let paths: Vec<String> = paths.iter().map(|pieces| pieces.join("/")).collect();
        check_tree(&hostile_tree(), &paths);
    }
}
