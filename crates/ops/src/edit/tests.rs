//! Several files at once: what becomes of them, and of the directories on the way, if one fails.

use super::*;
use crate::testing::{Tree, context};

/// Files below new directories, in two orders: made for the first, or for the second.
const ORDERS: [[&str; 3]; 2] = [
    ["new/file", "new/deep/er/file", "last"],
    ["new/deep/er/file", "new/file", "last"],
];

fn places(tree: &Tree, paths: &[&str]) -> Vec<Place> {
    paths.iter().map(|path| tree.place(path)).collect()
}

fn stage_all<'e, 'a>(edited: &'e [Edited<'a>]) -> StagedFiles<'e, 'a> {
    let mut staged = StagedFiles::default();
    for edited in edited {
        staged.push(edited, edited.stage_content(b"new").unwrap());
    }
    staged
}

#[test]
fn files_that_are_never_seen_leave_no_directories() {
    for paths in ORDERS {
        let tree = Tree::new();
        let context = context();
        let places = places(&tree, &paths);
        let (_turn, edited) =
            Edited::begin_all(&places, RequestPart::Files, Place::file_to_write, &context).unwrap();
        let staged = stage_all(&edited);
        assert!(tree.has("new/deep/er"));
        drop(staged);
        assert!(tree.names("").is_empty(), "{paths:?}: {:?}", tree.names(""));
    }
}

#[test]
fn files_that_were_seen_are_put_back_with_their_directories() {
    for paths in ORDERS {
        let tree = Tree::with(&[("old", "old")]);
        let context = context();
        let paths = [&["old"][..], &paths].concat();
        let places = places(&tree, &paths);
        let (turn, edited) =
            Edited::begin_all(&places, RequestPart::Files, Place::file_to_write, &context).unwrap();
        edited[0].open_to_replace().unwrap();
        let staged = stage_all(&edited);
        // Somebody else makes the last file, which is to be new.
        tree.file("last", "theirs");
        let failure = staged.commit_all(&turn).unwrap_err();
        // The call begins again with that one locked.
        assert!(matches!(failure, Error::Stale { .. }), "{failure:?}");
        assert_eq!(tree.names(""), ["last", "old"], "{paths:?}");
        assert_eq!(tree.read("old"), "old");
        assert_eq!(tree.read("last"), "theirs");
    }
}

#[test]
fn a_directory_that_others_use_by_now_stays() {
    let tree = Tree::new();
    let context = context();
    let places = places(&tree, &["new/file", "last"]);
    let (turn, edited) =
        Edited::begin_all(&places, RequestPart::Files, Place::file_to_write, &context).unwrap();
    let staged = stage_all(&edited);
    tree.file("last", "theirs").file("new/other", "theirs");
    staged.commit_all(&turn).unwrap_err();
    assert_eq!(tree.names("new"), ["other"]);
}
