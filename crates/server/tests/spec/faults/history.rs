//! The history of a root: every change is written down, can be taken back, and survives kills.

use std::time::Duration;

use testkit::{Setup, Transport, Tree, Value, json, over_both};

use crate::harness::machine::{Chance, Killed, answered, ok, share};
use crate::harness::program;

/// How often a call that changes several files is killed.
const KILLS: usize = 200;
/// The latest moment of a kill.
const LATEST: u64 = 30_000;

/// A root that keeps its history inside.
fn setup(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    program().root_with("workspace", tree.path(), keys)
}

/// What the files of a tree are, without the history.
fn files(tree: &Tree) -> Vec<(String, String)> {
    let mut all: Vec<_> = tree.listing().into_iter().collect();
    all.retain(|(path, _)| !path.starts_with(".mcp-filesystem"));
    all
}

async fn run(tree: &Tree, words: &[&str]) -> (Option<i32>, String, String) {
    let ended = setup(tree).arguments(words.iter().copied()).run().await;
    (ended.code, ended.stdout, ended.stderr.join("\n"))
}

/// The changes as programs get them, the newest first.
async fn changes(tree: &Tree) -> Vec<Value> {
    let (code, stdout, stderr) = run(tree, &["history"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let lines = stdout.lines().map(serde_json_line);
    lines.collect()
}

fn serde_json_line(line: &str) -> Value {
    line.parse().expect("a JSON object in each line")
}

#[tokio::test]
async fn history_changes_have_names_and_are_taken_back() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "one\n").file("dir/b", "two\n");
        let before = files(&tree);
        let server = setup(&tree).start(transport).await;
        let mut names = Vec::new();
        for (tool, arguments) in [
            ("write_file", json!({"path": "a", "content": "changed\n"})),
            (
                "edit_file",
                json!({"path": "dir/b", "edits": [{"old": "two", "new": "2"}]}),
            ),
            ("write_file", json!({"path": "new/deep/c", "content": "x"})),
            ("create_folder", json!({"path": "made/here"})),
            ("remove_file", json!({"path": "a"})),
            ("remove_folder", json!({"path": "dir"})),
        ] {
            let mut arguments = arguments;
            arguments["root"] = json!("workspace");
            let outcome = server.call(tool, arguments).await;
            let change = outcome.whole["structuredContent"]["change"].clone();
            let change = change
                .as_str()
                .unwrap_or_else(|| panic!("{}", outcome.story()));
            names.push(change.to_owned());
        }
        let outcome = server
            .call(
                "read_file",
                json!({"root": "workspace", "path": "new/deep/c"}),
            )
            .await;
        assert!(!outcome.whole.to_string().contains("\"change\""));
        let listed = changes(&tree).await;
        let shown: Vec<&str> = listed
            .iter()
            .filter_map(|one| one["change"].as_str())
            .collect();
        let mut newest_first = names.clone();
        newest_first.reverse();
        assert_eq!(shown, newest_first);
        assert_eq!(listed[0]["tool"], "remove_folder");
        let (code, _, stderr) = run(&tree, &["undo", &names[0]]).await;
        assert_eq!(code, Some(1), "later changes of the file come first");
        assert!(stderr.contains(&names[4]), "{stderr}");
        let (code, stdout, stderr) = run(&tree, &["undo", "--since", &names[0]]).await;
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert_eq!(files(&tree), before);
        let (code, stdout, _) = run(&tree, &["history", "verify"]).await;
        assert_eq!(
            (code, stdout.contains("\"ok\":true")),
            (Some(0), true),
            "{stdout}"
        );
        let redo = stdout_of_undo(&changes(&tree).await);
        let (code, _, stderr) = run(&tree, &["undo", &redo]).await;
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!tree.join("dir").exists() && tree.join("new/deep/c").exists());
    })
    .await;
}

/// The name of the newest change.
fn stdout_of_undo(listed: &[Value]) -> String {
    listed[0]["change"].as_str().expect("a name").to_owned()
}

/// A secret that was overwritten can be taken out of the history for good.
#[tokio::test]
async fn history_forgets_a_path() {
    let tree = Tree::new()
        .file("secret", "hunter2\n")
        .file("other", "old\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let mut names = Vec::new();
    for path in ["secret", "other"] {
        let arguments = json!({"root": "workspace", "path": path, "content": "new\n"});
        let outcome = server.call("write_file", arguments).await;
        let change = &outcome.whole["structuredContent"]["change"];
        names.push(change.as_str().expect("a name").to_owned());
    }
    let kept = |tree: &Tree| {
        let all = tree.listing().into_iter();
        all.filter(|(_, what)| what.contains("hunter2")).count()
    };
    assert_eq!(kept(&tree), 1);
    let (code, _, stderr) = run(&tree, &["history", "forget", "secret"]).await;
    assert_eq!((code, kept(&tree)), (Some(0), 0), "{stderr}");
    let (code, _, stderr) = run(&tree, &["undo", &names[0]]).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no longer kept"), "{stderr}");
    let (code, ..) = run(&tree, &["undo", &names[1]]).await;
    assert_eq!((code, tree.text("other").as_str()), (Some(0), "old\n"));
    // Also what went with a directory around it.
    tree.write("dir/sub/secret", "hunter2\n");
    tree.write("dir/sub/other", "x\n");
    let arguments = json!({"root": "workspace", "path": "dir"});
    let outcome = server.call("remove_folder", arguments).await;
    let change = outcome.ok()["change"].as_str().expect("a name").to_owned();
    assert_eq!(kept(&tree), 1);
    let (code, _, stderr) = run(&tree, &["history", "forget", "dir/sub/secret"]).await;
    assert_eq!((code, kept(&tree)), (Some(0), 0), "{stderr}");
    let (code, _, stderr) = run(&tree, &["undo", &change]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(tree.has("dir/sub/other") && !tree.has("dir/sub/secret"));
}

/// What is to be forgotten is followed through moves, whatever the spelling; if nothing is kept, that is an error.
#[tokio::test]
async fn history_forgets_what_was_moved() {
    for spelling in ["secret", "./secret", "/secret", "b", "b/"] {
        let tree = Tree::new().file("secret", "hunter2\n");
        let server = setup(&tree).start(Transport::Stdio).await;
        ok(
            &server,
            "move",
            json!({"source_path": "secret", "dest_path": "b"}),
        )
        .await;
        ok(
            &server,
            "write_file",
            json!({"path": "b", "content": "new\n"}),
        )
        .await;
        let kept = || {
            let all = tree.listing().into_iter();
            all.filter(|(_, what)| what.contains("hunter2")).count()
        };
        assert_eq!(kept(), 1);
        let (code, stdout, stderr) = run(&tree, &["history", "forget", spelling]).await;
        assert_eq!((code, kept()), (Some(0), 0), "{spelling}: {stderr}");
        assert_eq!(serde_json_line(&stdout)["removed"], 1, "{stdout}");
        let (code, stdout, stderr) = run(&tree, &["history", "forget", spelling]).await;
        assert_eq!(code, Some(1), "{stdout}");
        assert!(stderr.contains("nothing is kept of "), "{stderr}");
    }
}

/// Each command prints objects if no terminal reads them.
#[tokio::test]
async fn history_commands_print_objects_in_a_pipe() {
    let tree = Tree::new().file("a", "one\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let reply = ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "2\n"}),
    )
    .await;
    server.stop().await;
    let change = reply["change"].as_str().expect("a name");
    for (words, expected) in [
        (
            &["history", "verify"][..],
            json!({"root": "workspace", "ok": true, "lines": 2}),
        ),
        (
            &["history", "prune"],
            json!({"root": "workspace", "removed": 0, "stuck": 0}),
        ),
        (
            &["undo", "--dry-run", change],
            json!({"root": "workspace", "change": change, "undone": false, "undone_by": null}),
        ),
        (
            &["undo", change],
            json!({"root": "workspace", "change": change, "undone": true, "undone_by": "2"}),
        ),
        (
            &["history", "forget", "a"],
            json!({"root": "workspace", "path": "a", "removed": 1}),
        ),
    ] {
        let (code, stdout, stderr) = run(&tree, words).await;
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
        assert_eq!(serde_json_line(&stdout), expected, "{words:?}");
    }
}

/// An altered line of the records is found.
#[tokio::test]
async fn history_verify_names_an_altered_line() {
    let tree = Tree::new().file("a", "one\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    for text in ["2", "3"] {
        let arguments = json!({"root": "workspace", "path": "a", "content": text});
        server.call("write_file", arguments).await;
    }
    server.stop().await;
    let all = tree.listing().into_iter();
    let record = all
        .map(|(path, _)| path)
        .find(|path| path.ends_with(".jsonl") || path.ends_with(".open"));
    let record = record.expect("a record file");
    let text = tree.text(&record);
    tree.write(&record, text.replacen("write_file", "write-file", 1));
    let (code, stdout, stderr) = run(&tree, &["history", "verify"]).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("line 1"), "{stderr}");
    let told = serde_json_line(&stdout);
    assert_eq!((&told["ok"], &told["line"]), (&json!(false), &json!(1)));
    std::fs::remove_file(tree.join(&record)).expect("it goes");
    let (code, stdout, _) = run(&tree, &["history", "verify"]).await;
    assert_eq!(code, Some(1));
    assert_eq!(serde_json_line(&stdout)["fault"], "missing", "{stdout}");
}

/// A call that changes several files is whole or taken back, whenever the process is killed.
#[tokio::test]
async fn history_a_kill_during_edits_of_several_files_is_all_or_nothing() {
    let tree = Tree::new();
    let mut chance = Chance::new(7);
    let mut killed = Killed::default();
    for round in 0..share(KILLS) {
        let (old, new) = (format!("old {round}\n"), format!("new {round}\n"));
        for name in ["a", "b", "c", "d"] {
            tree.write(name, &old);
        }
        let server = setup(&tree).start(Transport::Stdio).await;
        let client = server.client().clone();
        let files: Vec<Value> = ["a", "b", "c", "d"]
            .iter()
            .map(|name| json!({"path": name, "content": new}))
            .collect();
        let arguments = json!({"root": "workspace", "files": files});
        let call = tokio::spawn(async move { answered(&client, "write_file", arguments).await });
        tokio::time::sleep(Duration::from_micros(chance.below(LATEST))).await;
        server.kill().await;
        let answer = Killed::ended(call).await;
        // The next start settles it before the first call.
        let server = setup(&tree).start(Transport::Stdio).await;
        let found: Vec<String> = ["a", "b", "c", "d"].map(|name| tree.text(name)).to_vec();
        assert!(
            found.iter().all(|text| *text == old) || found.iter().all(|text| *text == new),
            "round {round}: {found:?}"
        );
        killed.count(answer.as_ref(), found.iter().all(|text| *text == new));
        server.kill().await;
    }
    killed.tell("edits of several files");
    let (code, stdout, stderr) = run(&tree, &["history", "verify"]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
}
