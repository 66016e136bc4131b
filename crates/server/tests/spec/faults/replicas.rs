//! Several processes on one directory: none loses what another was told is done.

use std::process::Command;
use std::sync::Arc;

use testkit::{Server, Setup, Transport, Tree, Value, json};
use tokio::task::JoinSet;

use crate::harness::machine::{contents, may_mount};
use crate::harness::{ToolSet, becomes};
use crate::workspace::Workspace;

/// How many processes work on one directory.
const REPLICAS: usize = 3;
/// How many changes of one file they make.
const CHANGES: usize = 300;

/// The two ways of ordering them: by the files themselves, and by a directory that all share.
fn ways() -> [Option<Tree>; 2] {
    [None, Some(Tree::new())]
}

fn setup(tree: &Tree, state: Option<&Tree>) -> Setup {
    let setup = Workspace::setup(tree)
        .set("toolsets", json!(["workspace", "memory"]))
        .set("durability", "fast");
    match state {
        Some(state) => setup.set("cluster.state_dir", json!(state.join("state"))),
        None => setup,
    }
}

async fn start(tree: &Tree, state: Option<&Tree>) -> Vec<Arc<Server>> {
    let mut servers = Vec::new();
    for _ in 0..REPLICAS {
        let server = setup(tree, state).start(Transport::Stdio).await;
        servers.push(Arc::new(server));
    }
    servers
}

/// A file with a line for every change.
fn lines() -> String {
    (0..CHANGES)
        .map(|number| format!("slot {number}.\n"))
        .collect()
}

/// One change of the file, by one of the tools that change a part of it, and what it leaves there.
fn change(number: usize) -> (&'static str, Value, String) {
    let (old, new) = (format!("slot {number}."), format!("done {number}."));
    let arguments = match number % 4 {
        0 => {
            let edits = json!([{"path": "deep/er/f", "old": old, "new": new}]);
            ("edit_file", json!({"root": "workspace", "edits": edits}))
        }
        1 => {
            let line = number + 1;
            let patch = format!("@@ -{line} +{line} @@\n-{old}\n+{new}\n");
            let patch = json!({"root": "workspace", "path": "deep/er/f", "patch": patch});
            ("patch_file", patch)
        }
        2 => {
            let edit = json!({"path": "deep/er/f", "old_str": old, "new_str": new});
            ("str_replace", edit)
        }
        _ => {
            let content = format!("{new}\n");
            let write = json!({"root": "workspace", "path": "deep/er/f", "content": content, "mode": "append"});
            ("write_file", write)
        }
    };
    (arguments.0, arguments.1, new)
}

/// Makes all changes at once through all servers, and returns what those that were confirmed leave.
async fn change_all(servers: &[Arc<Server>], meanwhile: impl AsyncFnOnce()) -> Vec<String> {
    let mut calls = JoinSet::new();
    for number in 0..CHANGES {
        let server = Arc::clone(&servers[number % servers.len()]);
        calls.spawn(async move {
            let (tool, arguments, leaves) = change(number);
            let outcome = server.try_call(tool, arguments).await;
            outcome
                .is_ok_and(|outcome| !outcome.is_error)
                .then_some(leaves)
        });
    }
    meanwhile().await;
    let done = calls.join_all().await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn faults_of_the_changes_of_one_file_by_three_processes_none_is_lost() {
    for state in ways() {
        let tree = Tree::new().file("deep/er/f", lines());
        let servers = start(&tree, state.as_ref()).await;
        let confirmed = change_all(&servers, async || {}).await;
        assert_eq!(confirmed.len(), CHANGES);
        let text = tree.text("deep/er/f");
        let lost: Vec<_> = confirmed
            .iter()
            .filter(|done| !text.contains(&**done))
            .collect();
        assert!(lost.is_empty(), "{} lost: {lost:?}", lost.len());
        assert_eq!(contents(tree.path()).len(), 3, "{:?}", tree.listing());
    }
}

#[tokio::test]
async fn faults_a_process_that_is_killed_loses_nothing_that_was_confirmed_and_holds_up_nobody() {
    for state in ways() {
        let tree = Tree::new().file("deep/er/f", lines());
        let servers = start(&tree, state.as_ref()).await;
        let victim = servers[0].pid().to_string();
        let confirmed = change_all(&servers, async || {
            let begun = becomes(async || tree.text("deep/er/f").contains("done"));
            assert!(begun.await, "no change was made");
            assert!(
                Command::new("kill")
                    .args(["-9", &victim])
                    .status()
                    .unwrap()
                    .success()
            );
        });
        let confirmed = confirmed.await;
        // The two others make all of theirs.
        assert!(
            confirmed.len() >= CHANGES / REPLICAS * 2,
            "{}",
            confirmed.len()
        );
        let text = tree.text("deep/er/f");
        let lost: Vec<_> = confirmed
            .iter()
            .filter(|done| !text.contains(&**done))
            .collect();
        assert!(lost.is_empty(), "{} lost: {lost:?}", lost.len());
    }
}

#[tokio::test]
async fn faults_files_that_several_processes_make_at_once_hold_what_each_was_told_is_there() {
    for state in ways() {
        let tree = Tree::new();
        let servers = start(&tree, state.as_ref()).await;
        let mut calls = JoinSet::new();
        for number in 0..120 {
            let server = Arc::clone(&servers[number % REPLICAS]);
            // Each file is made, and added to, by all processes.
            let path = format!("new/{}", number / 12);
            let content = format!("<{number}>\n");
            calls.spawn(async move {
                let write = json!({"root": "workspace", "path": path, "content": content, "mode": "append"});
                server.call("write_file", write).await.ok();
                (path, content)
            });
        }
        for (path, content) in calls.join_all().await {
            let text = tree.text(&path);
            assert!(
                text.contains(&content),
                "{path}: {content} is not in {text}"
            );
        }
        assert_eq!(contents(tree.path()).len(), 11, "{:?}", tree.listing());
    }
}

#[tokio::test]
async fn faults_a_tree_that_one_process_moves_takes_along_what_others_were_told_is_in_it() {
    for state in ways() {
        let tree = Tree::new().file("a/f", "|");
        let servers = start(&tree, state.as_ref()).await;
        let mover = Arc::clone(&servers[0]);
        let moves = tokio::spawn(async move {
            for round in 0..20 {
                let (from, to) = if round % 2 == 0 {
                    ("a", "b")
                } else {
                    ("b", "a")
                };
                let ends = json!({"source_root": "workspace", "source_path": from, "dest_root": "workspace", "dest_path": to});
                mover.call("move", ends).await.ok();
            }
        });
        let mut kept = Vec::new();
        for number in 0..60 {
            let content = format!("<{number}>");
            let path = ["a/f", "b/f"][number % 2];
            let edits = json!([{"path": path, "old": "|", "new": format!("{content}|")}]);
            let edit = json!({"root": "workspace", "edits": edits});
            let outcome = servers[1 + number % 2].try_call("edit_file", edit).await;
            if outcome.is_ok_and(|outcome| !outcome.is_error) {
                kept.push(content);
            }
        }
        moves.await.unwrap();
        let all: String = ["a/f", "b/f"]
            .into_iter()
            .filter(|path| tree.has(path))
            .map(|path| tree.text(path))
            .collect();
        let lost: Vec<_> = kept.iter().filter(|one| !all.contains(&**one)).collect();
        assert!(lost.is_empty(), "{lost:?} of {}: {all}", kept.len());
    }
}

#[tokio::test]
async fn faults_replicas_share_one_quota() {
    let (tree, state) = (Tree::new(), Tree::new());
    let quota = json!({"allowed_tools": ["*"], "quota": {"max_bytes": 100_000}});
    let setup = Setup::new(env!("CARGO_BIN_EXE_mcp-filesystem"))
        .root_with("workspace", tree.path(), quota)
        .set("cluster.state_dir", json!(state.join("state")))
        .set("durability", "fast");
    let mut servers = Vec::new();
    for _ in 0..REPLICAS {
        servers.push(Arc::new(setup.clone().start(Transport::Stdio).await));
    }
    let mut calls = JoinSet::new();
    for number in 0..60 {
        let server = Arc::clone(&servers[number % REPLICAS]);
        calls.spawn(async move {
            let write = json!({"path": format!("f{number}"), "content": "x".repeat(10_000)});
            let outcome = server.call("write_file", write).await;
            if outcome.is_error {
                assert_eq!(outcome.error()["error"]["code"], "disk_full");
            }
            !outcome.is_error
        });
    }
    let made = calls
        .join_all()
        .await
        .into_iter()
        .filter(|made| *made)
        .count();
    assert_eq!(made, 10, "{:?}", tree.listing().keys());
}

/// F5: what cannot be removed cannot be moved, and nothing is left at the destination.
#[tokio::test]
async fn faults_what_is_moved_out_of_a_read_only_file_system_leaves_no_copy() {
    if !may_mount() {
        return;
    }
    let tree = Tree::new()
        .file("ro/f", "text")
        .file("ro/d/f", "text")
        .dir("rw");
    let script = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,ro,bind '{0}' && exec \"$0\" \"$@\"",
        tree.join("ro").display()
    );
    let setup = Setup::new(env!("CARGO_BIN_EXE_mcp-filesystem"))
        .root("ro", &tree.join("ro"))
        .root("rw", &tree.join("rw"))
        .wrapped_in(["unshare", "-m", "sh", "-c", &script]);
    let server = setup.start(Transport::Stdio).await;
    for path in ["f", "d"] {
        let ends =
            json!({"source_root": "ro", "source_path": path, "dest_root": "rw", "dest_path": path});
        let outcome = server.call("move", ends).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            "permission_denied",
            "{path}"
        );
    }
    assert_eq!(tree.listing().len(), 5, "{:?}", tree.listing());
}
