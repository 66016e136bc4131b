//! `compare`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

#[tokio::test]
async fn workspace_compare_directories() {
    let tree = || {
        Tree::new()
            .file("a/same", "same")
            .file("a/copy.rs", "one")
            .file("a/longer", "long")
            .file("a/gone/x", "")
            .file("b/same", "same")
            .file("b/copy.rs", "two")
            .file("b/longer", "longer")
            .file("b/new", "")
    };
    Workspace::both(tree, async |workspace| {
        let arguments = json!({"path": "a", "other": "b"});
        let outcome = workspace.call("compare", arguments).await;
        assert_eq!(
            outcome.text,
            "only in a: gone/\nonly in b: new\ndiffer: copy.rs (same size), longer\n1 equal"
        );
        assert_eq!(outcome.structured["identical"], false);
        let same = workspace
            .ok("compare", json!({"path": "a", "other": "a"}))
            .await;
        assert_eq!(same["identical"], json!(true));
        assert_eq!(same["equal"], json!(4));
    })
    .await;
}

#[tokio::test]
async fn workspace_compare_files() {
    let tree = || {
        Tree::new()
            .file("a", "1\n2\n")
            .file("b", "1\n3\n")
            .file("bytes", b"\xff")
            .dir("dir")
    };
    Workspace::both(tree, async |workspace| {
        let outcome = workspace
            .call("compare", json!({"path": "a", "other": "b"}))
            .await;
        assert_eq!(outcome.text, "--- a\n+++ b\n@@ -1,2 +1,2 @@\n 1\n-2\n+3");
        let outcome = workspace
            .call("compare", json!({"path": "a", "other": "a"}))
            .await;
        assert_eq!(outcome.text, "identical, 4 bytes");
        let outcome = workspace
            .call("compare", json!({"path": "a", "other": "bytes"}))
            .await;
        assert_eq!(outcome.text, "they differ: 4 and 1 bytes");
        for (other, code) in [
            ("dir", "not_a_directory"),
            ("none", "not_found"),
            ("../x", "path_outside_root"),
        ] {
            workspace
                .fails(code, "compare", json!({"path": "a", "other": other}))
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_compare_across_roots_needs_both() {
    let roots = || {
        vec![
            ("one", Tree::new().file("f", "1\n"), &["compare"][..]),
            ("two", Tree::new().file("f", "2\n"), &["compare"][..]),
            ("closed", Tree::new().file("f", "3\n"), &["read_file"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let arguments = json!({"root": "one", "path": "f", "other": "f", "other_root": "two"});
        let compared = workspace.ok("compare", arguments).await;
        assert_eq!(compared["diff"], "--- f\n+++ f\n@@ -1 +1 @@\n-1\n+2\n");
        let arguments = json!({"root": "one", "path": "f", "other": "f", "other_root": "closed"});
        workspace
            .fails("tool_not_allowed", "compare", arguments)
            .await;
        let arguments = json!({"root": "one", "path": "f", "other": "f", "other_root": "none"});
        workspace.fails("unknown_root", "compare", arguments).await;
    })
    .await;
}
