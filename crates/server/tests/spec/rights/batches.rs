//! Calls about several files refuse a hidden file that exists and one that does not in the same words, whichever comes first.

use testkit::{Transport, Tree, Value, json};

use crate::harness::program;

/// What is told of calls about a visible or a refused file and then this hidden one.
fn batches(hidden: &str) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for first in ["new.txt", "there.md", "new/new.txt", "dir"] {
        let write = |path: &str| json!({"path": path, "content": "x", "mode": "create_only"});
        calls.push((
            "write_file",
            json!({"files": [write(first), write(hidden)]}),
        ));
        calls.push((
            "write_file",
            json!({"files": [write(hidden), write(first)]}),
        ));
        let edit = |path: &str, old: &str| json!({"path": path, "old": old, "new": "x"});
        calls.push((
            "edit_file",
            json!({"edits": [edit(first, "missing"), edit(hidden, "a")]}),
        ));
        calls.push((
            "edit_file",
            json!({"edits": [edit(first, ""), edit(hidden, "")]}),
        ));
        let hunk = |path: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n");
        calls.push(("patch_file", json!({"patch": hunk(first) + &hunk(hidden)})));
    }
    calls
}

#[tokio::test]
async fn a_batch_does_not_tell_which_hidden_files_exist() {
    let tree = Tree::new()
        .dir("root/dir")
        .file("root/there.md", "a\n")
        .file("root/hidden_there.txt", "a\n");
    let path = tree.join("root").display().to_string();
    let config = format!(
        "roots:\n  - {{name: r, path: \"{path}\", allowed_tools: [\"*\"]}}\n\
         clients:\n  - name: stdio\n    roots: {{r: {{paths: [\"**/*.md\"]}}}}\n"
    );
    let server = program().config_text(config).start(Transport::Stdio).await;
    let there = batches("hidden_there.txt");
    let missing = batches("hidden_never.txt");
    for ((tool, of_there), (_, of_missing)) in there.into_iter().zip(missing) {
        let mut told = Vec::new();
        for mut arguments in [of_there, of_missing] {
            arguments["root"] = json!("r");
            let outcome = server.call(tool, arguments).await;
            assert!(outcome.is_error, "{tool}: {}", outcome.whole);
            told.push(
                outcome
                    .whole
                    .to_string()
                    .replace("hidden_there", "hidden_never"),
            );
        }
        assert_eq!(told[0], told[1], "{tool}");
    }
}
