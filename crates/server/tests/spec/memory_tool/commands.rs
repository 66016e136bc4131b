//! The commands that change something: their texts, and what they leave.

use testkit::{Transport, Tree, json};

use super::MemoryTool;

#[tokio::test]
async fn memory_tool_create() {
    MemoryTool::both(Tree::new, async |memory| {
        let create = json!({"command": "create", "path": "/memories/a/b.md", "file_text": "x\n"});
        assert_eq!(
            memory.ok(create.clone()).await,
            "File created successfully at: /memories/a/b.md"
        );
        assert_eq!(memory.tree.text("a/b.md"), "x\n");
        assert_eq!(memory.tree.mode_of("a/b.md") & 0o777, 0o600);
        assert_eq!(memory.tree.mode_of("a") & 0o777, 0o700);
        assert_eq!(
            memory.fails(create).await,
            "Error: File /memories/a/b.md already exists"
        );
        let directory = json!({"command": "create", "path": "/memories/a", "file_text": ""});
        assert_eq!(
            memory.fails(directory).await,
            "Error: File /memories/a already exists"
        );
    })
    .await;
}

#[tokio::test]
async fn memory_tool_create_may_overwrite() {
    let tree = Tree::new().file("f", "old");
    let server = crate::harness::program()
        .set("toolsets", json!(["memory_tool"]))
        .set("memory_tool.create", "overwrite")
        .root("notes", tree.path())
        .endpoint("/mcp/memory_tool")
        .start(Transport::Http)
        .await;
    let create = json!({"command": "create", "path": "/memories/f", "file_text": "new"});
    let made = server.call("memory", create).await;
    assert_eq!(
        made.text,
        "File created successfully at: /memories/f",
        "{}",
        made.story()
    );
    assert_eq!(tree.text("f"), "new");
}

#[tokio::test]
async fn memory_tool_str_replace() {
    let tree = || {
        Tree::new()
            .file("f", "1\n2\n3\n4\n5\n6\n")
            .file("g", "same\nother\nsame\n")
            .dir("d")
    };
    MemoryTool::both(tree, async |memory| {
        let replace = |path: &str, old: &str, new: testkit::Value| {
            json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
        };
        assert_eq!(
            memory.ok(replace("/memories/f", "4", json!("four"))).await,
            "The memory file has been edited.\n     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
        );
        assert_eq!(
            memory.ok(replace("/memories/f", "four\n", json!(null))).await,
            "The memory file has been edited.\n     2\t2\n     3\t3\n     4\t5\n     5\t6"
        );
        assert_eq!(memory.tree.text("f"), "1\n2\n3\n5\n6\n");
        for path in ["/memories/none", "/memories/d"] {
            assert_eq!(
                memory.fails(replace(path, "x", json!("y"))).await,
                format!("Error: The path {path} does not exist. Please provide a valid path.")
            );
        }
        assert_eq!(
            memory.fails(replace("/memories/f", "nine", json!("9"))).await,
            "No replacement was performed, old_str `nine` did not appear verbatim in /memories/f."
        );
        assert_eq!(
            memory.fails(replace("/memories/g", "same", json!("x"))).await,
            "No replacement was performed. Multiple occurrences of old_str `same` in lines: 1, 3. Please ensure it is unique"
        );
        // What was looked for is content, which no log holds.
        let logged = memory.server.stderr().join("\n");
        assert!(!logged.contains("nine"), "{logged}");
    })
    .await;
}

#[tokio::test]
async fn memory_tool_insert() {
    let tree = || Tree::new().file("f", "a\nb").file("empty", "").dir("d");
    MemoryTool::both(tree, async |memory| {
        let insert = |path: &str, line: i64, text: &str| {
            json!({"command": "insert", "path": path, "insert_line": line, "insert_text": text})
        };
        for (line, text) in [(0, "first"), (2, "between\n"), (4, "last")] {
            assert_eq!(
                memory.ok(insert("/memories/f", line, text)).await,
                "The file /memories/f has been edited."
            );
        }
        assert_eq!(memory.tree.text("f"), "first\na\nbetween\nb\nlast\n");
        memory.ok(insert("/memories/empty", 0, "x")).await;
        assert_eq!(memory.tree.text("empty"), "x\n");
        for line in [-1, 6] {
            assert_eq!(
                memory.fails(insert("/memories/f", line, "x")).await,
                format!(
                    "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 5]"
                )
            );
        }
        for path in ["/memories/none", "/memories/d"] {
            assert_eq!(
                memory.fails(insert(path, 0, "x")).await,
                format!("Error: The path {path} does not exist")
            );
        }
    })
    .await;
}

#[tokio::test]
async fn memory_tool_delete() {
    let tree = || {
        Tree::new()
            .file("f", "")
            .file("d/.hidden", "")
            .file("d/e/g", "")
    };
    MemoryTool::both(tree, async |memory| {
        let delete = |path: &str| json!({"command": "delete", "path": path});
        for path in ["/memories/f", "/memories/d"] {
            assert_eq!(
                memory.ok(delete(path)).await,
                format!("Successfully deleted {path}")
            );
        }
        assert!(memory.tree.listing().is_empty());
        assert_eq!(
            memory.fails(delete("/memories/f")).await,
            "Error: The path /memories/f does not exist"
        );
        for path in ["/memories", "/memories/", "/memories/x/.."] {
            assert_eq!(
                memory.fails(delete(path)).await,
                "Error: Cannot delete the /memories directory itself"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn memory_tool_rename() {
    let tree = || Tree::new().file("f", "x").file("g", "y");
    MemoryTool::both(tree, async |memory| {
        let rename =
            |old: &str, new: &str| json!({"command": "rename", "old_path": old, "new_path": new});
        assert_eq!(
            memory.fails(rename("/memories/f", "/memories/g")).await,
            "Error: The destination /memories/g already exists"
        );
        // Of two faults the missing source is told.
        assert_eq!(
            memory.fails(rename("/memories/none", "/memories/g")).await,
            "Error: The path /memories/none does not exist"
        );
        assert_eq!(
            memory.fails(rename("/memories/f", "/elsewhere")).await,
            "Path must start with /memories, got: /elsewhere"
        );
        assert_eq!(
            memory.fails(rename("/memories", "/memories/x")).await,
            "Error: Cannot rename the /memories directory itself"
        );
        assert_eq!(
            memory.ok(rename("/memories/f", "/memories/new/f")).await,
            "Successfully renamed /memories/f to /memories/new/f"
        );
        assert_eq!(memory.tree.text("new/f"), "x");
        assert_eq!(memory.tree.mode_of("new") & 0o777, 0o700);
    })
    .await;
}
