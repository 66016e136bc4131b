//! `watch`.

#![expect(
    clippy::disallowed_methods,
    reason = "a test changes files behind the server's back"
)]

use std::time::{Duration, Instant};

use testkit::{Outcome, Transport, Tree, Value, json};
use tokio::task::JoinHandle;

use super::Workspace;
use crate::harness::message::{cancelled, initialize, initialized, tool_call};
use crate::harness::{Harness, ToolSet};

fn begin(workspace: &Harness<Workspace>, arguments: Value) -> JoinHandle<Outcome> {
    let arguments = Workspace::complete("watch", arguments);
    workspace.server.spawn_call("watch", arguments)
}

/// Repeats a change until the watch tells of one: nobody knows when it began.
async fn seen(watch: JoinHandle<Outcome>, change: impl AsyncFn(usize)) -> Outcome {
    for number in 0..200 {
        if watch.is_finished() {
            break;
        }
        change(number).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut outcome = watch.await.unwrap();
    // Whose changes they were, `faults/history_tools.rs` looks at.
    if let Some(changes) = outcome.structured["changes"].as_array_mut() {
        for change in changes.iter_mut().filter_map(Value::as_object_mut) {
            change.remove("change");
            change.remove("client");
        }
    }
    outcome
}

fn has(outcome: &Outcome, path: &str, kind: &str) -> bool {
    let changes = outcome.ok()["changes"].as_array().unwrap();
    changes.contains(&json!({"path": path, "kind": kind}))
}

#[tokio::test]
async fn workspace_watch_tells_what_other_programs_change() {
    let tree = || Tree::new().file("dir/f", "one").file("beside", "");
    Workspace::both(tree, async |workspace| {
        let watch = begin(workspace, json!({"path": "dir"}));
        let outcome = seen(watch, async |number| {
            workspace.tree().write("beside", number.to_string());
            workspace.tree().write("dir/f", number.to_string());
        })
        .await;
        assert!(has(&outcome, "dir/f", "changed"), "{}", outcome.story());
        assert_eq!(outcome.ok()["timed_out"], false);
        assert!(!outcome.text.contains("beside"), "{}", outcome.text);
        assert_eq!(outcome.text, "changed dir/f");

        let watch = begin(workspace, json!({}));
        let outcome = seen(watch, async |number| {
            let path = format!("dir/new{number}/deep/x");
            let host = workspace.tree().join(&path);
            std::fs::create_dir_all(host.parent().unwrap()).unwrap();
            workspace.tree().write(&path, "");
        })
        .await;
        let changes = outcome.ok()["changes"].as_array().unwrap();
        let deep = |change: &Value| {
            let path = change["path"].as_str().unwrap_or_default();
            path.ends_with("/deep/x") && change["kind"] == "created"
        };
        assert!(changes.iter().any(deep), "{}", outcome.story());

        let watch = begin(workspace, json!({"path": "dir/f"}));
        let outcome = seen(watch, async |number| {
            let other = workspace.tree().join("dir/other");
            std::fs::write(&other, number.to_string()).unwrap();
            std::fs::rename(other, workspace.tree().join("dir/f")).unwrap();
        })
        .await;
        let only = json!([{"path": "dir/f", "kind": "changed"}]);
        assert_eq!(outcome.ok()["changes"], only);
    })
    .await;
}

#[tokio::test]
async fn workspace_watch_tells_the_changes_of_this_server_and_no_temporary_name() {
    let tree = || Tree::new().file("f", "one").file("old", "");
    Workspace::both(tree, async |workspace| {
        let watch = begin(workspace, json!({}));
        let outcome = seen(watch, async |number| {
            let arguments = json!({"path": "f", "content": number.to_string()});
            workspace.ok("write_file", arguments).await;
        })
        .await;
        assert_eq!(
            outcome.ok()["changes"],
            json!([{"path": "f", "kind": "changed"}])
        );
        let watch = begin(workspace, json!({}));
        let outcome = seen(watch, async |_| {
            if workspace.tree().has("old") {
                workspace.ok("remove_file", json!({"path": "old"})).await;
            } else {
                let arguments = json!({"path": "old", "content": ""});
                workspace.ok("write_file", arguments).await;
            }
        })
        .await;
        assert!(
            ["created", "changed", "removed"]
                .iter()
                .any(|kind| has(&outcome, "old", kind)),
            "{}",
            outcome.story()
        );
        assert!(
            !outcome.whole.to_string().contains(".tmp"),
            "{}",
            outcome.story()
        );
        // Looking is no change.
        let watch = begin(workspace, json!({"timeout_seconds": 1}));
        for _ in 0..10 {
            workspace.read("f").await;
            workspace.ok("grep", json!({"pattern": "x"})).await;
            let edits = json!([{"old": "no such text", "new": ""}]);
            let arguments = json!({"path": "f", "edits": edits});
            workspace.fails("edit_failed", "edit_file", arguments).await;
        }
        let outcome = watch.await.unwrap();
        assert_eq!(outcome.ok()["changes"], json!([]), "{}", outcome.story());
    })
    .await;
}

#[tokio::test]
async fn workspace_watch_a_timeout_is_a_success() {
    Workspace::both(Tree::new, async |workspace| {
        let start = Instant::now();
        let outcome = workspace.call("watch", json!({"timeout_seconds": 1})).await;
        assert!(start.elapsed() >= Duration::from_secs(1));
        let reply = json!({"root": "workspace", "timed_out": true, "changes": []});
        assert_eq!(*outcome.ok(), reply);
        assert_eq!(outcome.text, "nothing changed in time");
    })
    .await;
}

#[tokio::test]
async fn workspace_watch_refuses_what_it_cannot_watch() {
    let tree = || Tree::new().file("f", "").link("out", "../outside");
    Workspace::both(tree, async |workspace| {
        for (code, arguments) in [
            ("not_found", json!({"path": "missing"})),
            ("path_outside_root", json!({"path": ".."})),
            ("path_outside_root", json!({"path": "out"})),
            ("invalid_arguments", json!({"timeout_seconds": 0})),
            ("invalid_arguments", json!({"timeout_seconds": 301})),
            ("invalid_arguments", json!({"since": "yesterday"})),
            ("not_found", json!({"since": "4f2a"})),
        ] {
            workspace.fails(code, "watch", arguments).await;
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_watch_holds_no_slot_and_one_client_has_only_some() {
    let settings = |setup: testkit::Setup| setup.set("limits.max_concurrent_calls", 1);
    let tree = || Tree::new().file("f", "one");
    Workspace::both_with(tree, settings, async |workspace| {
        let watches: Vec<_> = (0..8)
            .map(|_| begin(workspace, json!({"timeout_seconds": 3})))
            .collect();
        // Each of them has begun by then.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let refused = async || {
            let arguments = json!({"root": "workspace", "timeout_seconds": 1});
            let outcome = workspace.server.call("watch", arguments).await;
            outcome.is_error && outcome.error()["error"]["code"] == "rate_limited"
        };
        assert!(refused().await, "the ninth");
        assert_eq!(workspace.read("f").await, "one");
        for watch in watches {
            assert_eq!(watch.await.unwrap().ok()["timed_out"], true);
        }
        assert!(!refused().await, "the others have ended");
    })
    .await;
}

#[tokio::test]
async fn workspace_watch_is_cancelled_at_once() {
    let tree = Tree::new();
    let mut wire = Workspace::setup(&tree).wire(Transport::Stdio).await;
    wire.request(&initialize(&json!({}))).await;
    wire.notify(&initialized()).await;
    let call = tool_call(
        7,
        "watch",
        &json!({"root": "workspace", "timeout_seconds": 60}),
    );
    wire.send(&call.to_string()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    wire.notify(&cancelled(7)).await;
    let line = wire.logged(|line| line["tool"] == "watch").await;
    assert_eq!(line["error_code"], "cancelled", "{line}");
    wire.stop().await;
}

#[tokio::test]
async fn workspace_watch_a_removed_directory_is_told() {
    let tree = || {
        (0..200).fold(Tree::new(), |tree, number| {
            tree.dir(format!("dir/{number}"))
        })
    };
    Workspace::both(tree, async |workspace| {
        let watch = begin(workspace, json!({"path": "dir"}));
        let outcome = seen(watch, async |number| {
            std::fs::remove_dir(workspace.tree().join(format!("dir/{number}"))).unwrap();
        })
        .await;
        let changes = outcome.ok()["changes"].as_array().unwrap();
        assert!(!changes.is_empty(), "{}", outcome.story());
        for change in changes {
            assert_eq!(change["kind"], "removed", "{}", outcome.story());
        }
    })
    .await;
}
