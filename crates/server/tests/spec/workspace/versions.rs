//! `version` in replies, and `if_version`: a change is made only if the file is what the client saw.

#![expect(
    clippy::disallowed_methods,
    reason = "a test removes a file behind the server's back"
)]

use std::time::Duration;

use testkit::{Outcome, Tree, Value, json};

use super::Workspace;
use super::set::is_version;
use crate::harness::{Harness, ToolSet};

/// Calls a tool and leaves the versions in its reply.
async fn raw(workspace: &Harness<Workspace>, tool: &str, arguments: Value) -> Outcome {
    let arguments = Workspace::complete(tool, arguments);
    workspace.server.call(tool, arguments).await
}

/// The version in the reply of a call that has to succeed, which is also in the last line of its text.
async fn version(workspace: &Harness<Workspace>, tool: &str, arguments: Value) -> String {
    let outcome = raw(workspace, tool, arguments).await;
    let reply = outcome.ok();
    let version = match &reply["files"][0]["version"] {
        Value::Null => &reply["version"],
        version => version,
    };
    let version = version.as_str();
    let version = version.unwrap_or_else(|| panic!("{}", outcome.story()));
    assert!(is_version(version), "{version}");
    let last = outcome.text.lines().last().unwrap_or_default();
    let noted = format!("version {version}");
    assert!(last.contains(&noted), "{}", outcome.story());
    version.to_owned()
}

/// Checks that a call conflicts, and gives back the version that it tells.
async fn conflict(workspace: &Harness<Workspace>, tool: &str, arguments: Value) -> Value {
    let error = workspace.fails("version_conflict", tool, arguments).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("nothing was changed"), "{message}");
    error["details"]["version"].clone()
}

fn one_file() -> Tree {
    Tree::new().file("f", "one\n")
}

#[tokio::test]
async fn workspace_versions_every_reply_about_a_file_has_one_that_the_next_change_takes() {
    Workspace::both(one_file, async |workspace| {
        let read = version(workspace, "read_file", json!({"path": "f"})).await;
        let stat = version(workspace, "stat_file", json!({"path": "f"})).await;
        assert_eq!(read, stat);
        let arguments = json!({"path": "f", "content": "two\n", "if_version": read});
        let written = version(workspace, "write_file", arguments).await;
        let edits = json!([{"old": "two", "new": "three"}]);
        let arguments = json!({"path": "f", "edits": edits, "if_version": written});
        let edited = version(workspace, "edit_file", arguments).await;
        let patch = "@@ -1 +1 @@\n-three\n+four\n";
        let arguments = json!({"path": "f", "patch": patch, "if_version": edited});
        let patched = version(workspace, "patch_file", arguments).await;
        let arguments =
            json!({"path": "f", "content": "more\n", "mode": "append", "if_version": patched});
        let appended = version(workspace, "write_file", arguments).await;
        let arguments = json!({"source_path": "f", "dest_path": "g", "if_version": appended});
        let moved = version(workspace, "move", arguments).await;
        assert_eq!(
            moved,
            version(workspace, "read_file", json!({"path": "g"})).await
        );
        let arguments = json!({"source_path": "g", "dest_path": "h"});
        let copied = version(workspace, "copy", arguments).await;
        assert_eq!(
            copied,
            version(workspace, "stat_file", json!({"path": "h"})).await
        );
        workspace
            .ok("remove_file", json!({"path": "g", "if_version": moved}))
            .await;
        assert_eq!(workspace.tree().text("h"), "four\nmore\n");
        assert_eq!(workspace.tree().listing().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_a_file_that_changed_is_left_alone() {
    Workspace::both(one_file, async |workspace| {
        let seen = version(workspace, "read_file", json!({"path": "f"})).await;
        // Another program, in place and of the same size.
        workspace.tree().write("f", "uno\n");
        let before = workspace.tree().listing();
        let edits = json!([{"old": "uno", "new": "x"}]);
        let patch = "@@ -1 +1 @@\n-uno\n+x\n";
        for (tool, arguments) in [
            (
                "write_file",
                json!({"path": "f", "content": "x", "if_version": seen}),
            ),
            (
                "edit_file",
                json!({"path": "f", "edits": edits, "if_version": seen}),
            ),
            (
                "edit_file",
                json!({"path": "f", "edits": edits, "if_version": seen, "dry_run": true}),
            ),
            (
                "patch_file",
                json!({"path": "f", "patch": patch, "if_version": seen}),
            ),
            ("remove_file", json!({"path": "f", "if_version": seen})),
            (
                "move",
                json!({"source_path": "f", "dest_path": "g", "if_version": seen}),
            ),
        ] {
            let present = conflict(workspace, tool, arguments).await;
            let now = version(workspace, "stat_file", json!({"path": "f"})).await;
            assert_eq!(present, now, "{tool}");
            assert_eq!(workspace.tree().listing(), before, "{tool}");
            assert_eq!(workspace.tree().text("f"), "uno\n", "{tool}");
        }
        std::fs::remove_file(workspace.tree().join("f")).unwrap();
        let arguments = json!({"path": "f", "content": "x", "if_version": seen});
        assert_eq!(
            conflict(workspace, "write_file", arguments).await,
            Value::Null
        );
        let arguments = json!({"path": "f", "if_version": seen});
        workspace.fails("not_found", "remove_file", arguments).await;
        assert!(!workspace.tree().has("f"));
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_nothing_is_never_any_version() {
    Workspace::both(one_file, async |workspace| {
        let edits = json!([{"old": "one", "new": "x"}]);
        let patch = "@@ -1 +1 @@\n-one\n+x\n";
        for wrong in [
            Value::Null,
            json!(""),
            json!("latest"),
            json!(7),
            json!("sAAAAAAAA "),
        ] {
            for (tool, mut arguments) in [
                ("write_file", json!({"path": "f", "content": "x"})),
                ("edit_file", json!({"path": "f", "edits": edits})),
                ("patch_file", json!({"path": "f", "patch": patch})),
                ("remove_file", json!({"path": "f"})),
                ("move", json!({"source_path": "f", "dest_path": "g"})),
            ] {
                arguments["if_version"] = wrong.clone();
                let message = workspace
                    .message("invalid_arguments", tool, arguments)
                    .await;
                assert!(message.contains("if_version"), "{tool} {wrong}: {message}");
            }
            let files = json!([{"path": "f", "content": "x", "if_version": wrong}]);
            let arguments = json!({"files": files});
            workspace
                .fails("invalid_arguments", "write_file", arguments)
                .await;
            let edits = json!([{"path": "f", "old": "one", "new": "x", "if_version": wrong}]);
            let arguments = json!({"edits": edits});
            workspace
                .fails("invalid_arguments", "edit_file", arguments)
                .await;
        }
        assert_eq!(workspace.tree().text("f"), "one\n");
        assert_eq!(workspace.tree().listing().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_of_several_clients_with_one_version_one_wins() {
    Workspace::both(one_file, async |workspace| {
        for round in 0..5 {
            let seen = version(workspace, "read_file", json!({"path": "f"})).await;
            let write = |number: usize| {
                let content = format!("round {round} client {number}\n");
                json!({"root": "workspace", "path": "f", "content": content, "if_version": seen})
            };
            let all = (0..12).map(write).collect();
            let outcomes = workspace.server.call_all("write_file", all).await;
            let won: Vec<&Outcome> = outcomes.iter().filter(|one| !one.is_error).collect();
            assert_eq!(won.len(), 1, "round {round}");
            for lost in outcomes.iter().filter(|one| one.is_error) {
                let code = &lost.error()["error"]["code"];
                assert_eq!(code, "version_conflict", "{}", lost.story());
            }
            assert_eq!(
                won[0].ok()["version"],
                version(workspace, "read_file", json!({"path": "f"}))
                    .await
                    .as_str()
            );
        }
        // Different tools take the same turns.
        let seen = version(workspace, "read_file", json!({"path": "f"})).await;
        let edits = json!([{"old": "round", "new": "edited"}]);
        let edit = json!({"root": "workspace", "path": "f", "edits": edits, "if_version": seen});
        let remove = json!({"root": "workspace", "path": "f", "if_version": seen});
        let (edited, removed) = tokio::join!(
            workspace.server.call("edit_file", edit),
            workspace.server.call("remove_file", remove),
        );
        assert_ne!(edited.is_error, removed.is_error, "{}", edited.story());
        assert_eq!(workspace.tree().has("f"), removed.is_error);
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_of_several_files_are_one_by_one() {
    let tree = || Tree::new().file("a", "a\n").file("b", "b\n");
    Workspace::both(tree, async |workspace| {
        let read = raw(workspace, "read_file", json!({"paths": ["a", "b"]})).await;
        let seen = |file: usize| read.ok()["files"][file]["version"].clone();
        assert_ne!(seen(0), seen(1));
        let files = |version: Value| {
            json!({"files": [
                {"path": "a", "content": "A\n", "if_version": seen(0)},
                {"path": "b", "content": "B\n", "if_version": version},
                {"path": "c", "content": "C\n"},
            ]})
        };
        conflict(workspace, "write_file", files(seen(0))).await;
        assert_eq!(workspace.tree().listing().len(), 2);
        assert_eq!(workspace.tree().text("a"), "a\n");
        let written = raw(workspace, "write_file", files(seen(1))).await;
        let version_of =
            |outcome: &Outcome, file: usize| outcome.ok()["files"][file]["version"].clone();
        assert_eq!(written.ok()["version"], version_of(&written, 0));
        assert_eq!(
            written.text.matches(", version h").count(),
            3,
            "{}",
            written.text
        );
        let edits = |version: Value| {
            json!({"path": "a", "if_version": version_of(&written, 0), "edits": [
                {"old": "A", "new": "1"},
                {"path": "b", "old": "B", "new": "2", "if_version": version},
                {"path": "c", "old": "C", "new": "3"},
            ]})
        };
        conflict(workspace, "edit_file", edits(seen(1))).await;
        assert_eq!(workspace.tree().text("c"), "C\n");
        let edited = raw(workspace, "edit_file", edits(version_of(&written, 1))).await;
        assert_eq!(
            edited.ok()["files"][2]["version"].as_str().map(is_version),
            Some(true)
        );
        assert_eq!(workspace.tree().text("b"), "2\n");
        // A patch of several files has no single version.
        let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+x\n";
        let arguments = json!({"patch": patch, "if_version": version_of(&edited, 0)});
        let message = workspace
            .message("invalid_arguments", "patch_file", arguments)
            .await;
        assert!(message.contains("give path too"), "{message}");
        let arguments =
            json!({"files": [{"path": "a", "content": ""}], "if_version": version_of(&edited, 0)});
        workspace
            .fails("invalid_arguments", "write_file", arguments)
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_of_large_and_of_settled_files() {
    let tree = || one_file().big("large", 300 * 1024);
    Workspace::both(tree, async |workspace| {
        let large = version(workspace, "stat_file", json!({"path": "large"})).await;
        assert!(large.starts_with('s'), "{large}");
        let content = "x".repeat(300 * 1024);
        let arguments = json!({"path": "large", "content": content, "if_version": large});
        let written = version(workspace, "write_file", arguments).await;
        let edits = json!([{"old": "x".repeat(300 * 1024), "new": "y".repeat(300 * 1024)}]);
        let arguments = json!({"path": "large", "edits": edits, "if_version": written});
        let edited = version(workspace, "edit_file", arguments).await;
        let arguments = json!({"path": "large", "content": "", "if_version": written});
        assert_eq!(
            conflict(workspace, "write_file", arguments).await,
            edited.as_str()
        );

        let young = version(workspace, "read_file", json!({"path": "f"})).await;
        assert!(young.starts_with('h'), "{young}");
        let mut settled = young.clone();
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            settled = version(workspace, "read_file", json!({"path": "f"})).await;
            if settled != young {
                break;
            }
        }
        assert!(settled.starts_with('s'), "{settled}");
        // Both forms are of the same file.
        let patch = "@@ -1 +1 @@\n-one\n+two\n";
        let arguments = json!({"path": "f", "patch": patch, "if_version": young});
        workspace.ok("patch_file", arguments).await;
        let arguments = json!({"path": "f", "if_version": settled});
        conflict(workspace, "remove_file", arguments).await;
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_only_files_have_one_and_links_have_that_of_their_file() {
    let tree = || one_file().link("link", "f").dir("dir");
    Workspace::both(tree, async |workspace| {
        let of_file = version(workspace, "stat_file", json!({"path": "f"})).await;
        assert_eq!(
            of_file,
            version(workspace, "read_file", json!({"path": "link"})).await
        );
        let outcome = raw(workspace, "stat_file", json!({"path": "dir"})).await;
        assert_eq!(outcome.ok().get("version"), None);
        let arguments = json!({"source_path": "dir", "dest_path": "d", "if_version": of_file});
        let message = workspace
            .message("invalid_arguments", "move", arguments)
            .await;
        assert!(message.contains("only files have versions"), "{message}");
        let moved = raw(
            workspace,
            "move",
            json!({"source_path": "dir", "dest_path": "d"}),
        )
        .await;
        assert_eq!(moved.ok().get("version"), None);
        let arguments = json!({"path": "link", "if_version": of_file});
        workspace.ok("remove_file", arguments).await;
        assert!(!workspace.tree().has("link") && workspace.tree().has("f"));
    })
    .await;
}

#[tokio::test]
async fn workspace_versions_are_told_where_a_change_may_follow() {
    let settings = |tools: &'static [&'static str]| {
        move |tree: &Tree| crate::harness::program().root_allowing("workspace", tree.path(), tools)
    };
    for (tools, told) in [
        (&["read_file", "stat_file"] as &[&str], false),
        (&["read_file", "stat_file", "edit_file"], true),
    ] {
        testkit::over_both(async |transport| {
            let tree = one_file();
            let server = settings(tools)(&tree).start(transport).await;
            for tool in ["read_file", "stat_file"] {
                let outcome = server.call(tool, json!({"path": "f"})).await;
                assert_eq!(
                    outcome.ok().get("version").is_some(),
                    told,
                    "{}",
                    outcome.story()
                );
                assert_eq!(
                    outcome.text.contains("[version "),
                    told,
                    "{}",
                    outcome.story()
                );
            }
            // A client that wants no line numbers wants the content as it is.
            let arguments = json!({"path": "f", "line_numbers": false});
            let outcome = server.call("read_file", arguments).await;
            assert_eq!(outcome.text, "one\n");
            assert_eq!(outcome.ok().get("version").is_some(), told);
        })
        .await;
    }
}
