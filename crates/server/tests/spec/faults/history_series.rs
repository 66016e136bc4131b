//! Long series of changes, undone and redone byte for byte; several clients at once; other programs in between.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::machine::{Chance, call, ok, said, share};
use crate::harness::program;

/// How many series are run, and how many changes each has.
const SERIES: usize = 50;
const CHANGES: usize = 200;

fn setup(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root", "undo_any": true}});
    program().root_with("workspace", tree.path(), keys)
}

/// Everything below a directory but its history: names, kinds, modes, contents and links.
fn snapshot(top: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut pending = vec![top.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if entry.file_name() == ".mcp-filesystem" {
                continue;
            }
            let metadata = path.symlink_metadata().expect("an entry");
            let mode = metadata.mode() & 0o7777;
            let what = if metadata.is_symlink() {
                format!("-> {:?}", std::fs::read_link(&path).expect("a link"))
            } else if metadata.is_dir() {
                pending.push(path.clone());
                format!("dir {mode:o}")
            } else {
                format!("{mode:o} {:?}", std::fs::read(&path).expect("a file"))
            };
            all.push(format!("{} {what}", path.display()));
        }
    }
    all.sort();
    all
}

fn path(chance: &mut Chance) -> String {
    let name = |chance: &mut Chance| format!("n{}", chance.below(5));
    match chance.below(3) {
        0 => name(chance),
        1 => format!("d{}/{}", chance.below(3), name(chance)),
        _ => format!("d{}/e{}/{}", chance.below(3), chance.below(2), name(chance)),
    }
}

/// A call that changes something; it may fail, and then nothing is changed.
fn random_change(
    chance: &mut Chance,
    number: usize,
    (tree, names): (&Tree, &[String]),
) -> (&'static str, Value) {
    let one = path(chance);
    match chance.below(16) {
        10..=15 => later_change(chance, number, (tree, names)),
        0..=2 => (
            "write_file",
            json!({"path": one, "content": format!("{number}\n")}),
        ),
        3 => {
            let arguments =
                json!({"path": one, "content": format!("{number}\n"), "mode": "append"});
            ("write_file", arguments)
        }
        4 => {
            let files = json!([
                {"path": one, "content": "several\n"},
                {"path": format!("{one}-too"), "content": format!("{number}\n")},
            ]);
            ("write_file", json!({"files": files}))
        }
        5 => ("remove_file", json!({"path": one})),
        6 => (
            "remove_folder",
            json!({"path": format!("d{}", chance.below(3))}),
        ),
        7 => ("create_folder", json!({"path": one})),
        8 => {
            let to = path(chance);
            ("move", json!({"source_path": one, "dest_path": to}))
        }
        _ => {
            let to = path(chance);
            let source = format!("d{}", chance.below(3));
            (
                "copy",
                json!({"source_path": source, "dest_path": format!("{to}-copy")}),
            )
        }
    }
}

/// A call that needs to know what is there: an edit, a patch, a merge of directories, or an undo.
fn later_change(
    chance: &mut Chance,
    number: usize,
    (tree, names): (&Tree, &[String]),
) -> (&'static str, Value) {
    let files = ["n0", "n1", "n2", "d0/e0/n1", "d1/n2", "d1/n3"];
    let one = files[chance.below(files.len() as u64) as usize];
    let text = std::fs::read_to_string(tree.join(one)).unwrap_or_default();
    let line = text.lines().last().unwrap_or("nothing");
    let top = |chance: &mut Chance| format!("d{}", chance.below(3));
    match chance.below(5) {
        0 => {
            let edit = json!({"old": line, "new": format!("edited {number}")});
            ("edit_file", json!({"path": one, "edits": [edit]}))
        }
        1 => {
            let last = text.lines().count();
            let patch = format!("@@ -{last} +{last} @@\n-{line}\n+patched {number}\n");
            ("patch_file", json!({"path": one, "patch": patch}))
        }
        2 => {
            let ends = json!({"source_path": top(chance), "dest_path": top(chance)});
            ("copy", ends)
        }
        3 => {
            let source = format!("{}/e{}", top(chance), chance.below(2));
            let ends = json!({"source_path": source, "dest_path": top(chance)});
            ("move", ends)
        }
        _ => {
            // An older one may be refused later: what came in between can be inside of what came back.
            let change = names.last();
            (
                "undo",
                json!({"change": change.map_or("0", String::as_str)}),
            )
        }
    }
}

/// Files of the tree get other names, elsewhere.
fn link(tree: &Tree, elsewhere: &Tree) {
    tree.write("d1/n3", "three\n");
    for (number, path) in ["n0", "d0/e0/n1", "d1/n3"].into_iter().enumerate() {
        let link = elsewhere.join(format!("l{number}"));
        std::fs::hard_link(tree.join(path), link).expect("another name");
    }
}

fn fill(tree: &Tree) {
    tree.write("n0", "zero\n");
    tree.write("d0/e0/n1", "one\n");
    tree.write("d1/n2", "two\n");
    std::os::unix::fs::symlink("n0", tree.join("d0/link")).expect("a link");
    std::os::unix::fs::symlink("nowhere", tree.join("n4")).expect("a link");
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(tree.join("n0"), mode(0o640)).expect("its mode");
    std::fs::set_permissions(tree.join("d1"), mode(0o750)).expect("its mode");
}

#[tokio::test]
async fn history_a_random_series_is_undone_and_redone_byte_for_byte() {
    for (seed, has_undos) in (0..share(SERIES)).flat_map(|seed| [(seed, false), (seed, true)]) {
        let (tree, elsewhere) = (Tree::new(), Tree::new());
        fill(&tree);
        link(&tree, &elsewhere);
        let server = setup(&tree).start(Transport::Stdio).await;
        let mut chance = Chance::new(seed as u64 + 31);
        let mut made = std::collections::BTreeMap::<&str, usize>::new();
        let mut states = vec![snapshot(tree.path())];
        let mut names = Vec::new();
        for number in 0..CHANGES {
            let known: &[String] = if has_undos { &names } else { &[] };
            let (tool, arguments) = random_change(&mut chance, number, (&tree, known));
            let outcome = call(&server, tool, arguments).await;
            match outcome.structured["change"].as_str() {
                Some(change) => {
                    assert_eq!(
                        outcome.structured.get("not_kept"),
                        None,
                        "{}",
                        outcome.story()
                    );
                    names.push(change.to_owned());
                    *made.entry(tool).or_default() += 1;
                    states.push(snapshot(tree.path()));
                }
                None => assert_eq!(
                    Some(&snapshot(tree.path())),
                    states.last(),
                    "{}",
                    outcome.story()
                ),
            }
        }
        assert!(names.len() > CHANGES / 4, "{} changes", names.len());
        said(&format!("seed {seed}: {made:?}"));
        assert!(made.len() > 5, "{made:?}");
        let mut undos = Vec::new();
        for (name, state) in names.iter().zip(&states).rev() {
            let reply = ok(&server, "undo", json!({"change": name})).await;
            assert_eq!(snapshot(tree.path()), *state, "seed {seed}, before {name}");
            undos.push(reply["change"].as_str().expect("a change").to_owned());
        }
        for (undo, state) in undos.iter().rev().zip(&states[1..]) {
            ok(&server, "undo", json!({"change": undo})).await;
            assert_eq!(snapshot(tree.path()), *state, "seed {seed}, redo of {undo}");
        }
        // What was undone and redone before is not always undone with all others at once: it may be refused.
        if has_undos {
            continue;
        }
        // All at once, and forward again.
        let first = names.first().expect("a change");
        let all = ok(&server, "undo", json!({"to": first})).await;
        assert_eq!(snapshot(tree.path()), states[0], "seed {seed}");
        ok(&server, "undo", json!({"change": all["change"]})).await;
        assert_eq!(Some(&snapshot(tree.path())), states.last(), "seed {seed}");
    }
}

/// Of two clients that undo the same change at once one does, and the other is told.
#[tokio::test]
async fn history_two_clients_undo_at_once() {
    for round in 0..share(500) {
        let tree = Tree::new().file("a", "0\n").file("dir/b", "0\n");
        let one = setup(&tree).start(Transport::Stdio).await;
        let two = setup(&tree).start(Transport::Stdio).await;
        let files = json!([{"path": "a", "content": "1\n"}, {"path": "dir/b", "content": "1\n"}]);
        let reply = ok(&one, "write_file", json!({"files": files})).await;
        let undo = json!({"change": reply["change"]});
        let (first, second, third) = tokio::join!(
            call(&one, "undo", undo.clone()),
            call(&one, "undo", undo.clone()),
            call(&two, "undo", undo.clone()),
        );
        let outcomes = [&first, &second, &third];
        let done = outcomes.iter().filter(|outcome| !outcome.is_error).count();
        assert_eq!(
            done,
            1,
            "round {round}: {}\n{}\n{}",
            first.story(),
            second.story(),
            third.story()
        );
        for outcome in outcomes.iter().filter(|outcome| outcome.is_error) {
            let code = &outcome.error()["error"]["code"];
            assert_eq!(code, "version_conflict", "{}", outcome.story());
        }
        assert_eq!(
            (tree.text("a"), tree.text("dir/b")),
            ("0\n".into(), "0\n".into())
        );
    }
}

/// Calls on one server at once get names of their own, and each can be undone.
#[tokio::test]
async fn history_calls_at_once_are_changes_of_their_own() {
    let tree = Tree::new();
    for number in 0..64 {
        tree.write(format!("f{number}"), "old\n");
    }
    let before = snapshot(tree.path());
    let server = setup(&tree).start(Transport::Stdio).await;
    let writes = (0..64).map(|number| {
        json!({"root": "workspace", "path": format!("f{number}"), "content": format!("{number}\n")})
    });
    let outcomes = server.call_all("write_file", writes.collect()).await;
    let names: std::collections::BTreeSet<String> = outcomes
        .iter()
        .map(|outcome| {
            outcome.ok()["change"]
                .as_str()
                .expect("a change")
                .to_owned()
        })
        .collect();
    assert_eq!(names.len(), 64);
    let undos = names
        .iter()
        .map(|name| json!({"root": "workspace", "change": name}));
    for outcome in server.call_all("undo", undos.collect()).await {
        outcome.ok();
    }
    assert_eq!(snapshot(tree.path()), before);
}

/// Directories that an undo left, because they held something else, go when the change is undone again.
#[tokio::test]
async fn history_directories_on_the_way_go_with_the_last_undo() {
    let tree = Tree::new();
    let before = snapshot(tree.path());
    let server = setup(&tree).start(Transport::Stdio).await;
    let made = ok(&server, "create_folder", json!({"path": "d/e/f"})).await;
    let beside = ok(
        &server,
        "write_file",
        json!({"path": "d/beside", "content": "x"}),
    )
    .await;
    let undo = async |change: &Value| ok(&server, "undo", json!({"change": change})).await;
    let undone = undo(&made["change"]).await;
    assert!(tree.has("d/beside") && !tree.has("d/e"));
    undo(&undone["change"]).await;
    assert!(tree.has("d/e/f"));
    undo(&beside["change"]).await;
    undo(&made["change"]).await;
    assert_eq!(snapshot(tree.path()), before);
}

/// What a move replaced comes back with what was moved.
#[tokio::test]
async fn history_a_file_that_a_move_replaced_comes_back() {
    let tree = Tree::new()
        .file("a", "a\n")
        .file("b", "b\n")
        .dir("d")
        .dir("e");
    let before = snapshot(tree.path());
    let setup = setup(&tree).set("toolsets", json!(["files"]));
    let server = setup.start(Transport::Stdio).await;
    for (source, destination) in [("a", "b"), ("d", "e")] {
        let arguments = json!({"source": source, "destination": destination, "overwrite": true});
        let moved = server.call("move", arguments).await.ok().clone();
        assert!(!tree.has(source));
        let undo = json!({"change": moved["change"]});
        server.call("undo", undo).await.ok();
        assert_eq!(snapshot(tree.path()), before, "{source}");
    }
}

/// Objects that somebody deleted are gone: the change says so, and nothing else breaks.
#[tokio::test]
async fn history_objects_deleted_by_hand_are_gone() {
    let tree = Tree::new().file("a", "0\n").file("b", "0\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let first = ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "1\n"}),
    )
    .await;
    for entry in objects(&tree) {
        std::fs::remove_file(entry).expect("an object");
    }
    let second = ok(
        &server,
        "write_file",
        json!({"path": "b", "content": "1\n"}),
    )
    .await;
    for (tool, arguments) in [
        ("undo", json!({"change": first["change"]})),
        ("undo", json!({"to": first["change"]})),
        ("undo", json!({"change": first["change"], "dry_run": true})),
        ("read_file", json!({"path": "a", "at": first["change"]})),
    ] {
        let outcome = call(&server, tool, arguments).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            "gone",
            "{}",
            outcome.story()
        );
        assert_eq!(
            (tree.text("a"), tree.text("b")),
            ("1\n".into(), "1\n".into())
        );
    }
    ok(&server, "changes", json!({"diff": true})).await;
    ok(&server, "undo", json!({"change": second["change"]})).await;
    assert_eq!(tree.text("b"), "0\n");
}

fn objects(tree: &Tree) -> Vec<std::path::PathBuf> {
    let reserved = tree.join(".mcp-filesystem");
    let stores = std::fs::read_dir(reserved).expect("a history").flatten();
    let stores = stores.map(|entry| entry.path().join("objects"));
    let objects = stores.filter(|path| path.is_dir());
    let objects = objects.flat_map(|path| std::fs::read_dir(path).expect("objects").flatten());
    objects.map(|entry| entry.path()).collect()
}

/// Names are ordered: what was pruned is gone, what was never given is not found.
#[tokio::test]
async fn history_what_was_pruned_is_gone_and_what_never_was_is_not_found() {
    let tree = Tree::new().file("a", "0\n");
    let small = || {
        let keys = json!({"allowed_tools": ["*"], "history": {"place": "root", "max_changes": 3}});
        program().root_with("workspace", tree.path(), keys)
    };
    let server = small().start(Transport::Stdio).await;
    let mut names = Vec::new();
    for text in 0..10 {
        let arguments = json!({"path": "a", "content": format!("{text}\n")});
        let reply = ok(&server, "write_file", arguments).await;
        names.push(reply["change"].as_str().expect("a change").to_owned());
    }
    let ended = small().arguments(["history", "prune"]).run().await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.stderr);
    let reply = ok(&server, "changes", json!({})).await;
    assert_eq!(
        reply["changes"].as_array().expect("changes").len(),
        3,
        "{reply}"
    );
    for (change, code) in [(names[0].as_str(), "gone"), ("fff", "not_found")] {
        for (tool, argument) in [("undo", "change"), ("undo", "to"), ("changes", "since")] {
            let mut arguments = json!({});
            arguments[argument] = json!(change);
            let outcome = call(&server, tool, arguments).await;
            assert_eq!(
                outcome.error()["error"]["code"],
                code,
                "{}",
                outcome.story()
            );
        }
        let outcome = call(&server, "read_file", json!({"path": "a", "at": change})).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            code,
            "{}",
            outcome.story()
        );
    }
    ok(&server, "undo", json!({"to": names[7]})).await;
    assert_eq!(tree.text("a"), "6\n");
    let checked = small().arguments(["check"]).run().await;
    assert!(
        checked.stdout.contains("history in the root: "),
        "{}",
        checked.stdout
    );
    assert!(
        checked.stdout.contains("the oldest of "),
        "{}",
        checked.stdout
    );
}

async fn edited_elsewhere(server: &Server, tree: &Tree, chance: &mut Chance, round: usize) {
    let name = format!("f{}", chance.below(4));
    match chance.below(4) {
        0 => tree.write(&name, format!("other {round}\n")),
        1 => {
            let _ = std::fs::remove_file(tree.join(&name));
        }
        2 => {
            let _ = std::fs::rename(tree.join(&name), tree.join("f0"));
        }
        _ => {
            let arguments = json!({"path": name, "content": format!("{round}\n")});
            call(server, "write_file", arguments).await;
        }
    }
}

/// Whatever other programs do in between, an undo restores what was there before its change, or changes nothing.
#[tokio::test]
async fn history_other_programs_change_files_in_between() {
    let tree = Tree::new();
    let server = setup(&tree).start(Transport::Stdio).await;
    let mut chance = Chance::new(41);
    for round in 0..share(10_000) {
        let name = format!("f{}", chance.below(4));
        let before = snapshot(tree.path());
        let arguments = json!({"path": name, "content": format!("mine {round}\n")});
        let outcome = call(&server, "write_file", arguments).await;
        let change = outcome.structured["change"].clone();
        let is_disturbed = chance.below(2) == 0;
        if is_disturbed {
            edited_elsewhere(&server, &tree, &mut chance, round).await;
        }
        let now = snapshot(tree.path());
        let undone = call(&server, "undo", json!({"change": change})).await;
        match (undone.is_error, is_disturbed) {
            (true, _) => {
                assert!(is_disturbed, "{}", undone.story());
                assert_eq!(snapshot(tree.path()), now, "{}", undone.story());
            }
            (false, false) => assert_eq!(snapshot(tree.path()), before, "round {round}"),
            (false, true) => {
                let is_its = |line: &&String| line.contains(&format!("/{name} "));
                let after = snapshot(tree.path());
                assert!(
                    after.iter().filter(is_its).eq(before.iter().filter(is_its)),
                    "round {round}: {before:?} {after:?}"
                );
                let others = |line: &&String| !is_its(line);
                assert!(
                    after.iter().filter(others).eq(now.iter().filter(others)),
                    "round {round}: {now:?} {after:?}"
                );
            }
        }
    }
}
