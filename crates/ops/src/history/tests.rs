//! Changes and undo by calls of several clients.

use super::*;
use crate::operation::Operation;
use crate::testing::{Tree, context};
use crate::write::{SyntaxCheck, Write, WriteMode};
use crate::{OnFault, OnMissing, Recurse, Remove, RemoveTarget};
use std::sync::Arc;
use std::time::Duration;

fn root(tree: &Tree) -> Arc<Root> {
    let settings = sandbox::HistorySettings {
        place: sandbox::HistoryPlace::Root,
        keep: Duration::from_secs(3600),
        max_bytes: 1 << 30,
        max_changes: 1000,
        undo_any: false,
    };
    let root = Root::open(&tree.host(".")).unwrap();
    Arc::new(root.with_history(settings).unwrap())
}

fn place(root: &Arc<Root>, path: &str) -> crate::Place {
    crate::Place::new(Arc::clone(root), path).unwrap()
}

fn of_client(account: &str) -> Context {
    let mut context = context();
    context.change_notes = sandbox::ChangeNotes::of(sandbox::Author {
        account: account.to_owned(),
        client: account.to_owned(),
        ..sandbox::Author::default()
    });
    context
}

fn write(root: &Arc<Root>, path: &str, text: &str, account: &str) {
    let write = Write {
        place: place(root, path),
        bytes: text.as_bytes().to_vec(),
        mode: WriteMode::Overwrite,
        parents: sandbox::Parents::Create,
        syntax: SyntaxCheck::Skip,
    };
    write.run(&of_client(account)).unwrap();
}

fn undo(root: &Arc<Root>, target: UndoTarget) -> std::result::Result<Undone, UndoRefusal> {
    undo_by(root, target, UndoBy::Anyone)
}

fn undo_by(
    root: &Arc<Root>,
    target: UndoTarget,
    by: UndoBy,
) -> std::result::Result<Undone, UndoRefusal> {
    let account = match &by {
        UndoBy::Anyone => "undoer",
        UndoBy::Account { account, .. } => account,
    };
    let context = of_client(account);
    let undo = Undo {
        root: Arc::clone(root),
        others: Vec::new(),
        target,
        by,
        forbids: |_, _| false,
        tools: Vec::new(),
        is_rehearsal: false,
    };
    match undo.run(&context) {
        Ok(undone) => Ok(undone),
        Err(Error::UndoRefused(refusal)) => Err(*refusal),
        Err(error) => panic!("{error:?}"),
    }
}

fn undo_last_of(root: &Arc<Root>, account: &str) -> std::result::Result<Undone, UndoRefusal> {
    undo_by(root, UndoTarget::Last, own(account))
}

fn own(account: &str) -> UndoBy {
    UndoBy::Account {
        account: account.to_owned(),
        before: None,
    }
}

fn newest(root: &Arc<Root>) -> u64 {
    let filter = ChangeFilter {
        limit: 1,
        ..ChangeFilter::default()
    };
    changes(root, &filter)[0].record.number
}

#[test]
fn each_client_takes_back_its_own_changes_one_by_one() {
    let tree = Tree::with(&[("a", "0"), ("b", "0")]);
    let root = root(&tree);
    for text in ["1", "2"] {
        write(&root, "a", text, "one");
        write(&root, "b", text, "two");
    }
    undo_last_of(&root, "one").unwrap();
    assert_eq!((tree.read("a"), tree.read("b")), ("1".into(), "2".into()));
    undo_last_of(&root, "one").unwrap();
    assert_eq!((tree.read("a"), tree.read("b")), ("0".into(), "2".into()));
    assert_eq!(
        undo_last_of(&root, "one").unwrap_err(),
        UndoRefusal::NothingLeft
    );
    let told = changes(
        &root,
        &ChangeFilter {
            path: Some("a".to_owned()),
            limit: 10,
            ..ChangeFilter::default()
        },
    );
    let undone: Vec<bool> = told.iter().map(|one| one.undone_by.is_some()).collect();
    assert_eq!(undone, [false, false, true, true]);
}

#[test]
fn a_conflict_names_who_changed_it_since_and_all_at_once_goes() {
    let tree = Tree::with(&[("a", "0")]);
    let root = root(&tree);
    write(&root, "a", "1", "one");
    write(&root, "a", "2", "two");
    let first = changes(
        &root,
        &ChangeFilter {
            limit: 10,
            ..ChangeFilter::default()
        },
    )
    .pop()
    .unwrap();
    let number = first.record.number;
    match undo(&root, UndoTarget::Change(number)).unwrap_err() {
        UndoRefusal::Conflict {
            path,
            since: Some(since),
            ..
        } => {
            assert_eq!((path.as_str(), since.author.client.as_str()), ("a", "two"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(tree.read("a"), "2");
    undo(&root, UndoTarget::Since(number, None)).unwrap();
    assert_eq!(tree.read("a"), "0");
    assert_eq!(
        undo(&root, UndoTarget::Change(9999)).unwrap_err(),
        UndoRefusal::Unknown
    );
}

#[test]
fn a_removed_tree_comes_back() {
    let tree = Tree::with(&[("dir/sub/file", "text")]);
    tree.link("dir/link", "sub/file");
    let root = root(&tree);
    let remove = Remove {
        place: place(&root, "dir"),
        target: RemoveTarget::Directory,
        recurse: Recurse::Yes,
        on_missing: OnMissing::Fail,
        on_fault: OnFault::Stop,
    };
    remove.run(&of_client("one")).unwrap();
    assert!(!tree.has("dir"));
    undo(&root, UndoTarget::LastOfPath("dir/sub/file".to_owned())).unwrap();
    assert_eq!(tree.read("dir/link"), "text");
}

/// What was taken back and made again counts as it is now, however often.
#[test]
fn undo_and_redo_go_on_and_on() {
    let tree = Tree::with(&[("a", "0")]);
    let root = root(&tree);
    write(&root, "a", "1", "one");
    let first = newest(&root);
    for _ in 0..3 {
        undo(&root, UndoTarget::Change(first)).unwrap();
        assert_eq!(tree.read("a"), "0");
        let by = newest(&root);
        assert_eq!(
            undo(&root, UndoTarget::Change(first)).unwrap_err(),
            UndoRefusal::AlreadyUndone(by - if by == first + 1 { 0 } else { by - first - 1 })
        );
        assert_eq!(
            undo_last_of(&root, "one").unwrap_err(),
            UndoRefusal::NothingLeft
        );
        undo(&root, UndoTarget::Change(by)).unwrap();
        assert_eq!(tree.read("a"), "1");
    }
}

#[test]
fn changes_that_were_made_again_together_go_together() {
    let tree = Tree::with(&[("a", "0"), ("b", "0")]);
    let root = root(&tree);
    write(&root, "a", "1", "one");
    let first = newest(&root);
    write(&root, "b", "1", "one");
    let second = newest(&root);
    undo(&root, UndoTarget::Since(first, None)).unwrap();
    undo(&root, UndoTarget::Change(newest(&root))).unwrap();
    let again = newest(&root);
    assert_eq!((tree.read("a"), tree.read("b")), ("1".into(), "1".into()));
    assert_eq!(
        undo(&root, UndoTarget::Change(second)).unwrap_err(),
        UndoRefusal::Together(again)
    );
    write(&root, "a", "2", "one");
    undo(&root, UndoTarget::Since(first, None)).unwrap();
    assert_eq!((tree.read("a"), tree.read("b")), ("0".into(), "0".into()));
}

/// Everything since a change includes what was taken back since: it comes again.
#[test]
fn all_since_a_change_brings_back_what_was_taken_back_since() {
    let tree = Tree::with(&[("a", "0"), ("b", "0")]);
    let root = root(&tree);
    write(&root, "a", "1", "one");
    let first = newest(&root);
    write(&root, "b", "1", "one");
    let second = newest(&root);
    undo(&root, UndoTarget::Change(first)).unwrap();
    assert_eq!((tree.read("a"), tree.read("b")), ("0".into(), "1".into()));
    undo(&root, UndoTarget::Since(second, None)).unwrap();
    assert_eq!((tree.read("a"), tree.read("b")), ("1".into(), "0".into()));
}

#[test]
fn a_client_takes_back_only_what_it_made() {
    let tree = Tree::with(&[("a", "0")]);
    let root = root(&tree);
    write(&root, "a", "1", "stdio/x/1");
    let number = newest(&root);
    let refused = undo_by(&root, UndoTarget::Change(number), own("stdio/y/1"));
    assert!(matches!(refused, Err(UndoRefusal::Foreign(_))));
    let later = UndoBy::Account {
        account: "stdio/x/2".to_owned(),
        before: Some("stdio/x/".to_owned()),
    };
    assert_eq!(
        undo_by(&root, UndoTarget::Last, later.clone()).unwrap_err(),
        UndoRefusal::NothingLeft
    );
    undo_by(&root, UndoTarget::Change(number), later).unwrap();
    assert_eq!(tree.read("a"), "0");
}

#[test]
fn a_file_is_read_as_it_was() {
    let tree = Tree::with(&[("a", "0\n")]);
    let root = root(&tree);
    write(&root, "a", "1\n", "one");
    let first = newest(&root);
    let append = Write {
        place: place(&root, "a"),
        bytes: b"more\n".to_vec(),
        mode: WriteMode::Append,
        parents: sandbox::Parents::Create,
        syntax: SyntaxCheck::Skip,
    };
    append.run(&of_client("one")).unwrap();
    let second = newest(&root);
    let at = |number| {
        let read = crate::Read {
            place: place(&root, "a"),
            range: crate::ReadRange::Whole,
            max_bytes: None,
            oversize: crate::Oversize::Cut,
            text: crate::TextPolicy::Detect,
            totals: crate::Totals::Skip,
            form: crate::StoredForm::AsStored,
        };
        let read = read.run_at(&Moment::Change(number), &context());
        read.map(|contents| String::from_utf8(contents.body.as_bytes().to_vec()).unwrap())
    };
    assert_eq!(at(first).unwrap(), "0\n");
    assert_eq!(at(second).unwrap(), "1\n");
    let remove = Remove {
        place: place(&root, "a"),
        target: RemoveTarget::File,
        recurse: Recurse::No,
        on_missing: OnMissing::Fail,
        on_fault: OnFault::Stop,
    };
    remove.run(&of_client("one")).unwrap();
    let third = newest(&root);
    assert_eq!(at(second).unwrap(), "1\n");
    assert_eq!(at(third).unwrap(), "1\nmore\n");
    assert_eq!(at(first).unwrap(), "0\n");
    let listed = ListChanges {
        place: place(&root, ""),
        since: None,
        client: Some("one".to_owned()),
        limit: 2,
        diffs: DiffWish::Lines,
    };
    let listed = listed.run(&context()).unwrap();
    assert!(listed.more);
    let counts: Vec<(u64, u64)> = listed
        .changes
        .iter()
        .map(|told| told.diff.as_ref().unwrap())
        .map(|diff| (diff.added, diff.removed))
        .collect();
    assert_eq!(counts, [(0, 2), (1, 0)]);
}
