//! Writing, editing, moving.

use testkit::{Tree, json};

use super::Reference;

#[tokio::test]
async fn reference_writes_need_their_directory() {
    Reference::both(Tree::new, async |reference| {
        let path = reference.host("new.txt");
        let wrote = reference
            .ok("write_file", json!({"path": path, "content": "x\n"}))
            .await;
        assert_eq!(wrote, format!("Successfully wrote to {path}"));
        assert_eq!(reference.tree().text("new.txt"), "x\n");
        let message = reference.fails("write_file", json!({"path": "no/new", "content": ""}));
        let missing = reference.host("no/new");
        assert_eq!(
            message.await,
            format!("ENOENT: no such file or directory, open '{missing}'")
        );
        let made = reference
            .ok("create_directory", json!({"path": "no/where"}))
            .await;
        assert_eq!(made, "Successfully created directory no/where");
    })
    .await;
}

#[tokio::test]
async fn reference_an_edit_keeps_line_ends_and_shows_a_diff() {
    let tree = || Tree::new().file("f", "one\r\n  two\r\nthree\r\n");
    Reference::both(tree, async |reference| {
        let edits = json!([{"oldText": "two\nthree", "newText": "2\n3"}]);
        let dry = json!({"path": "f", "edits": edits, "dryRun": true});
        let diff = reference.ok("edit_file", dry).await;
        let path = reference.host("f");
        let line = "=".repeat(67);
        assert_eq!(
            diff,
            format!(
                "```diff\nIndex: {path}\n{line}\n--- {path}\toriginal\n+++ {path}\tmodified\n@@ -1,3 +1,3 @@\n one\n-  two\n\
                 -three\n+  2\n+3\n```\n\n"
            )
        );
        assert_eq!(reference.tree().text("f"), "one\r\n  two\r\nthree\r\n");
        reference.ok("edit_file", json!({"path": "f", "edits": edits})).await;
        assert_eq!(reference.tree().text("f"), "one\r\n  2\r\n3\r\n");
    })
    .await;
}

#[tokio::test]
async fn reference_an_edit_matches_trimmed_lines_in_one_place_only() {
    let tree = || {
        Tree::new()
            .file("f", "if x {\n    y();\n}\n")
            .file("g", "  a\n a\n")
    };
    Reference::both(tree, async |reference| {
        let edits = json!([{"oldText": "  y();  ", "newText": "z();"}]);
        reference
            .ok("edit_file", json!({"path": "f", "edits": edits}))
            .await;
        assert_eq!(reference.tree().text("f"), "if x {\n    z();\n}\n");
        let edits = json!([{"oldText": "a ", "newText": "b"}]);
        let message = reference
            .fails("edit_file", json!({"path": "g", "edits": edits}))
            .await;
        assert!(
            message.starts_with("Found 2 matches for edit, in lines 1, 2;"),
            "{message}"
        );
        let edits = json!([{"oldText": "a", "newText": "b"}]);
        let message = reference
            .fails("edit_file", json!({"path": "g", "edits": edits}))
            .await;
        assert!(message.starts_with("Found 2 matches for edit"), "{message}");
        let edits = json!([{"oldText": "none", "newText": "b"}]);
        let message = reference
            .fails("edit_file", json!({"path": "g", "edits": edits}))
            .await;
        assert_eq!(message, "Could not find exact match for edit:\nnone");
        assert_eq!(reference.tree().text("g"), "  a\n a\n");
    })
    .await;
}

#[tokio::test]
async fn reference_a_move_never_overwrites() {
    let tree = || Tree::new().file("a", "a").file("b", "b").dir("d");
    Reference::both(tree, async |reference| {
        let message = reference.fails("move_file", json!({"source": "a", "destination": "b"}));
        let there = reference.host("b");
        assert_eq!(
            message.await,
            format!("Destination already exists: {there}")
        );
        let moved = json!({"source": "a", "destination": "d/a"});
        let text = reference.ok("move_file", moved).await;
        assert_eq!(text, "Successfully moved a to d/a");
        let (source, missing) = (reference.host("none"), reference.host("x"));
        let message = reference.fails("move_file", json!({"source": "none", "destination": "x"}));
        assert_eq!(
            message.await,
            format!("ENOENT: no such file or directory, rename '{source}' -> '{missing}'")
        );
        assert_eq!(reference.tree().text("b"), "b");
    })
    .await;
}

#[tokio::test]
async fn reference_wrong_arguments_are_a_readable_failure() {
    Reference::both(Tree::new, async |reference| {
        let message = reference.fails("read_file", json!({})).await;
        let begins =
            "MCP error -32602: Input validation error: Invalid arguments for tool read_file: ";
        assert!(message.starts_with(begins), "{message}");
    })
    .await;
}
