//! The specification's acceptance criteria.

use testkit::{Transport, Tree, Value, json};

use super::set::{Memory, error, escape};
use crate::harness::{ToolSet, catalogue, tool_names};

#[tokio::test]
async fn memory_ac_01_the_server_starts_and_connects() {
    Memory::both(Tree::new, async |memory| {
        let info = memory.server.info();
        assert_eq!(info["serverInfo"]["name"], "file-storage-backend");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_02_six_tools_are_there_and_callable() {
    Memory::both(
        || Tree::new().file("f", "one\n"),
        async |memory| {
            let tools = memory.server.list_tools().await;
            assert_eq!(tool_names(&tools), catalogue("memory").await);
            memory.view("f").await;
            memory.create("g", "x").await;
            memory.replace("f", "one", "two").await;
            let insert = json!({"path": "f", "insert_line": 1, "new_str": "zero\n"});
            memory.ok("insert", insert).await;
            memory.ok("delete", json!({"path": "g"})).await;
            let rename = json!({"old_path": "f", "new_path": "h"});
            let renamed = memory.ok("rename", rename).await;
            assert_eq!(
                renamed,
                json!({"success": true, "old_path": "f", "new_path": "h"})
            );
            assert_eq!(memory.tree().text("h"), "zero\ntwo\n");
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_02_hints_are_true_to_fact() {
    let tree = Tree::new();
    let server = Memory::setup(&tree).start(Transport::Stdio).await;
    for tool in server.list_tools().await {
        let name = tool["name"].as_str().expect("a name");
        let hints = &tool["annotations"];
        assert_eq!(hints["openWorldHint"], false, "{name}");
        assert_eq!(hints["readOnlyHint"], name == "view", "{name}");
        let loses = matches!(name, "str_replace" | "delete");
        assert_eq!(hints["destructiveHint"], loses, "{name}");
    }
}

#[tokio::test]
async fn memory_ac_03_create_then_view() {
    Memory::both(Tree::new, async |memory| {
        for (number, content) in ["text", "é 😀\r\n\u{feff}\0 no end", "\n\n"]
            .iter()
            .enumerate()
        {
            let path = format!("f{number}");
            memory.create(&path, content).await;
            let viewed = memory.view(&path).await;
            assert_eq!(viewed["content"], *content);
            assert_eq!(viewed["size"], content.len());
        }
    })
    .await;
}

#[tokio::test]
async fn memory_ac_04_text_replacement() {
    Memory::both(
        || Tree::new().file("f", "Budget: $50k\nTeam: 5\n"),
        async |memory| {
            memory
                .replace("f", "Budget: $50k", "Budget: $45k $& \\1")
                .await;
            assert_eq!(memory.tree().text("f"), "Budget: $45k $& \\1\nTeam: 5\n");
            memory.replace("f", "Team: 5\n", "").await;
            assert_eq!(memory.tree().text("f"), "Budget: $45k $& \\1\n");
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_05_files_outlive_the_server() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let server = Memory::setup(&tree).start(transport).await;
        let create = json!({"path": "a/f", "content": "kept", "encoding": "utf-8"});
        server.call("create", create).await.ok();
        server.stop().await;
        let server = Memory::setup(&tree).start(transport).await;
        let viewed = server.call("view", json!({"path": "a/f"})).await;
        assert_eq!(viewed.ok()["content"], "kept");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_06_create_never_replaces() {
    let tree = || Tree::new().file("d/f", "old").link("link", "d/f");
    Memory::both(tree, async |memory| {
        for path in ["d/f", "./d/f", "d", "link", "."] {
            let create = json!({"path": path, "content": "new", "encoding": "utf-8"});
            let message = format!("File already exists: {path}");
            let failure = memory.failure("create", create).await;
            assert_eq!(failure, error("file_exists", &message, path));
        }
        assert_eq!(memory.tree().text("d/f"), "old");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_07_view_what_is_missing() {
    Memory::both(
        || Tree::new().file("file.md", ""),
        async |memory| {
            for path in ["nothing", "no/where", "nodes/", "file.md/below", "file.md/"] {
                let message = format!("File not found: {path}");
                let failure = memory.failure("view", json!({"path": path})).await;
                assert_eq!(failure, error("file_not_found", &message, path));
            }
            let failure = memory.failure("view", json!({"path": "fiel.md"})).await;
            assert_eq!(failure["message"], "File not found: fiel.md");
            assert_eq!(failure["near"], json!(["file.md"]));
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_08_a_string_that_is_missing() {
    Memory::both(
        || Tree::new().file("f", "# Project\n  Status: Planing\nend\n"),
        async |memory| {
            let replace = |old: &str| json!({"path": "f", "old_str": old, "new_str": "x"});
            let failure = memory.failure("str_replace", replace("@@@@@@")).await;
            let expected = error("string_not_found", "String not found in file", "f");
            assert_eq!(failure, expected);
            let failure = memory
                .failure("str_replace", replace("Status: Planning"))
                .await;
            assert_eq!(failure["message"], "String not found in file");
            assert_eq!(
                failure["hint"],
                json!({"line": 2, "text": "  Status: Planing"})
            );
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_09_a_string_that_is_not_unique() {
    Memory::both(
        || Tree::new().file("f", "a b\nc\nb\nb b\n"),
        async |memory| {
            let replace = json!({"path": "f", "old_str": "b", "new_str": "x"});
            let failure = memory.failure("str_replace", replace).await;
            assert_eq!(failure["code"], "string_not_unique");
            assert_eq!(failure["message"], "String appears 4 times, must be unique");
            assert_eq!(failure["lines"], json!([1, 3, 4, 4]));
            assert_eq!(memory.tree().text("f"), "a b\nc\nb\nb b\n");
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_10_an_invalid_line_number() {
    let tree = || Tree::new().file("f", "a\nb\n").file("empty", "");
    Memory::both(tree, async |memory| {
        for (path, line, max) in [
            ("f", 0, 3),
            ("f", -1, 3),
            ("f", 4, 3),
            ("f", i64::MAX, 3),
            ("empty", 2, 1),
        ] {
            let insert = json!({"path": path, "insert_line": line, "new_str": "x"});
            let message = format!("Line number {line} out of range (1-{max})");
            let failure = memory.failure("insert", insert).await;
            assert_eq!(failure, error("invalid_line_number", &message, path));
        }
        assert_eq!(memory.tree().text("f"), "a\nb\n");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_11_hidden_files_count() {
    let tree = || Tree::new().file("d/.hidden", "").dir("empty");
    Memory::both(tree, async |memory| {
        let failure = memory.failure("delete", json!({"path": "d"})).await;
        let message = "Directory not empty: d";
        let mut expected = error("directory_not_empty", message, "d");
        expected["holds"] = json!([".hidden"]);
        assert_eq!(failure, expected);
        memory.ok("delete", json!({"path": "empty/"})).await;
        memory.ok("delete", json!({"path": "d/.hidden"})).await;
        assert!(memory.tree().has("d"), "the directory above stays");
        memory.ok("delete", json!({"path": "d"})).await;
        assert!(memory.tree().listing().is_empty());
    })
    .await;
}

/// A call of each tool on this path.
fn calls_on(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("view", json!({"path": path})),
        (
            "create",
            json!({"path": path, "content": "", "encoding": "utf-8"}),
        ),
        (
            "str_replace",
            json!({"path": path, "old_str": "a", "new_str": "b"}),
        ),
        (
            "insert",
            json!({"path": path, "insert_line": 1, "new_str": "b"}),
        ),
        ("delete", json!({"path": path})),
        ("rename", json!({"old_path": path, "new_path": "free"})),
        ("rename", json!({"old_path": "f", "new_path": path})),
    ]
}

#[tokio::test]
async fn memory_ac_12_no_path_leaves_the_storage() {
    Memory::both(
        || Tree::new().file("f", "a").dir("d"),
        async |memory| {
            for path in ["../f", "d/../../f", "..", "d/../../../../../etc/passwd"] {
                for (tool, arguments) in calls_on(path) {
                    assert_eq!(
                        memory.failure(tool, arguments).await,
                        escape(path),
                        "{tool}"
                    );
                }
            }
            for path in ["/etc/passwd", "/f", "/", "f\0"] {
                for (tool, arguments) in calls_on(path) {
                    let failure = memory.failure(tool, arguments).await;
                    assert!(failure["reason"].is_string(), "{failure}");
                    for key in ["code", "message", "path"] {
                        assert_eq!(failure[key], escape(path)[key], "{tool}");
                    }
                }
            }
            assert_eq!(memory.view("d/../f").await["content"], "a");
            assert_eq!(memory.tree().listing().len(), 2);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_13_no_link_leaves_the_storage() {
    let outside = Tree::new().file("secret", "a");
    let tree = || {
        Tree::new()
            .file("f", "a")
            .link("file", outside.join("secret"))
            .link("dir", outside.path())
            .link("inside", "f")
    };
    Memory::both(tree, async |memory| {
        for path in ["file", "dir", "dir/secret", "dir/new"] {
            for (tool, arguments) in calls_on(path) {
                assert_eq!(
                    memory.failure(tool, arguments).await,
                    escape(path),
                    "{tool}"
                );
            }
        }
        memory.replace("inside", "a", "b").await;
        assert_eq!(memory.tree().text("f"), "b");
        assert_eq!(memory.tree().listing().len(), 4);
    })
    .await;
    assert_eq!(outside.listing().len(), 1);
    assert_eq!(outside.text("secret"), "a");
}

#[tokio::test]
async fn memory_ac_14_parents_are_made() {
    Memory::both(Tree::new, async |memory| {
        memory.create("deep/nested/path/file.txt", "x").await;
        assert_eq!(memory.tree().text("deep/nested/path/file.txt"), "x");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_15_empty_files() {
    Memory::both(Tree::new, async |memory| {
        memory.create("empty", "").await;
        let expected = json!({"type": "file", "content": "", "encoding": "utf-8", "size": 0});
        assert_eq!(memory.view("empty").await, expected);
        memory.ok("delete", json!({"path": "empty"})).await;
        assert!(!memory.tree().has("empty"));
    })
    .await;
}

#[tokio::test]
async fn memory_ac_16_binary_files() {
    Memory::both(Tree::new, async |memory| {
        let content = "iVBORw0KGgoAAAAN/w==";
        let create = json!({"path": "logo.png", "content": content, "encoding": "base64"});
        memory.ok("create", create).await;
        assert_eq!(
            memory.tree().bytes("logo.png"),
            b"\x89PNG\r\n\x1a\n\0\0\0\r\xff"
        );
        let viewed = memory.view("logo.png").await;
        let expected =
            json!({"type": "file", "content": content, "encoding": "base64", "size": 13});
        assert_eq!(viewed, expected);
    })
    .await;
}

#[tokio::test]
async fn memory_ac_17_no_text_operation_on_binary_files() {
    Memory::both(
        || Tree::new().file("bin", b"a\xff\xfe"),
        async |memory| {
            let message = "Cannot perform text operation on binary file";
            let replace = json!({"path": "bin", "old_str": "a", "new_str": "b"});
            let insert = json!({"path": "bin", "insert_line": 1, "new_str": "b"});
            for (tool, arguments) in [("str_replace", replace), ("insert", insert)] {
                let failure = memory.failure(tool, arguments).await;
                assert_eq!(failure, error("binary_file", message, "bin"));
            }
            assert_eq!(memory.tree().bytes("bin"), b"a\xff\xfe");
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_18_names_are_sorted_by_code_point() {
    let names = [
        "10", "2", "B", "_", "a", "b.md", "sub", "É", "é", "\u{ff21}", "😀",
    ];
    let tree = || {
        let add = |tree: Tree, name: &&str| tree.file(name, "");
        names
            .iter()
            .rev()
            .fold(Tree::new(), add)
            .file(".hidden", "")
    };
    Memory::both(tree, async |memory| {
        let expected = json!({"type": "directory", "entries": names});
        for path in [".", "", "./"] {
            assert_eq!(memory.view(path).await, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn memory_ac_19_trailing_slashes() {
    let tree = || Tree::new().file("nodes/a.md", "").dir("empty").dir("old");
    Memory::both(tree, async |memory| {
        let expected = json!({"type": "directory", "entries": ["a.md"]});
        for path in ["nodes", "nodes/", "nodes//", "./nodes/."] {
            assert_eq!(memory.view(path).await, expected);
        }
        let empty: [&str; 0] = [];
        let expected = json!({"type": "directory", "entries": empty});
        assert_eq!(memory.view("empty/").await, expected);
        memory
            .ok("rename", json!({"old_path": "old/", "new_path": "new/"}))
            .await;
        assert!(memory.tree().has("new") && !memory.tree().has("old"));
        memory.ok("delete", json!({"path": "new/"})).await;
        assert!(!memory.tree().has("new"));
    })
    .await;
}

#[tokio::test]
async fn memory_ac_20_rename_moves_and_makes_parents() {
    let tree = || {
        Tree::new()
            .file("drafts/note.md", "x")
            .file("there", "kept")
    };
    Memory::both(tree, async |memory| {
        let rename = |old: &str, new: &str| json!({"old_path": old, "new_path": new});
        memory
            .ok("rename", rename("drafts/note.md", "archive/2025/note.md"))
            .await;
        assert_eq!(memory.view("archive/2025/note.md").await["content"], "x");
        let failure = memory
            .failure("view", json!({"path": "drafts/note.md"}))
            .await;
        assert_eq!(failure["code"], "file_not_found");
        memory.ok("rename", rename("archive", "a/b")).await;
        assert_eq!(memory.tree().text("a/b/2025/note.md"), "x");
        for new in ["there", "a", "drafts", "a/b/2025/note.md"] {
            let failure = memory
                .failure("rename", rename("a/b/2025/note.md", new))
                .await;
            let message = format!("File already exists: {new}");
            assert_eq!(failure, error("file_exists", &message, new));
        }
        let failure = memory.failure("rename", rename("nothing", "free")).await;
        let message = "File not found: nothing";
        assert_eq!(failure, error("file_not_found", message, "nothing"));
        assert_eq!(memory.tree().text("there"), "kept");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_21_the_caller_controls_newlines() {
    Memory::both(Tree::new, async |memory| {
        for (number, (content, line, text, expected)) in [
            ("a\nb\n", 2, "x\n", "a\nx\nb\n"),
            ("a\nb\n", 2, "x", "a\nxb\n"),
            ("a\nb\n", 1, "x\ny\n", "x\ny\na\nb\n"),
            ("a\nb\n", 3, "x", "a\nb\nx"),
            ("a\nb", 3, "x", "a\nb\nx"),
            ("", 1, "x", "x"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = format!("f{number}");
            memory.create(&path, content).await;
            let insert = json!({"path": path, "insert_line": line, "new_str": text});
            let reply = memory.ok("insert", insert).await;
            assert_eq!(reply, json!({"success": true, "path": path}));
            assert_eq!(memory.tree().text(&path), expected, "{content:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn memory_ac_22_a_failed_call_leaves_nothing() {
    Memory::both(
        || Tree::new().file("f", "a a").dir("d"),
        async |memory| {
            for (tool, arguments) in [
                (
                    "create",
                    json!({"path": "f", "content": "x", "encoding": "utf-8"}),
                ),
                (
                    "create",
                    json!({"path": "new/g", "content": "!", "encoding": "base64"}),
                ),
                (
                    "create",
                    json!({"path": "f/g", "content": "x", "encoding": "utf-8"}),
                ),
                (
                    "str_replace",
                    json!({"path": "f", "old_str": "a", "new_str": "x"}),
                ),
                (
                    "insert",
                    json!({"path": "f", "insert_line": 9, "new_str": "x"}),
                ),
                ("rename", json!({"old_path": "g", "new_path": "new/g"})),
                ("rename", json!({"old_path": "d", "new_path": "d/e/f"})),
                ("delete", json!({"path": "."})),
            ] {
                memory.failure(tool, arguments).await;
            }
            assert_eq!(memory.tree().text("f"), "a a");
            let names: Vec<String> = memory.tree().listing().into_keys().collect();
            assert_eq!(names, ["d", "f"]);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_ac_23_a_view_is_current() {
    Memory::both(Tree::new, async |memory| {
        memory.create("f", "0").await;
        for number in 0..20 {
            let (old, new) = (number.to_string(), (number + 1).to_string());
            assert_eq!(memory.view("f").await["content"], old);
            memory.replace("f", &old, &new).await;
        }
        memory.tree().write("f", "from outside");
        assert_eq!(memory.view("f").await["content"], "from outside");
    })
    .await;
}

#[tokio::test]
async fn memory_ac_24_every_error_has_code_and_message() {
    Memory::both(
        || {
            Tree::new()
                .file("f", "a")
                .dir("d")
                .pipe("pipe")
                .link("loop", "loop")
        },
        async |memory| {
            for tool in &catalogue("memory").await {
                for arguments in [json!({}), json!({"path": 1}), json!({"paht": "f"})] {
                    let failure = memory.failure(tool, arguments).await;
                    assert_eq!(failure["code"], "invalid_arguments", "{failure}");
                }
            }
            for path in ["d", "pipe", "loop", "f/below"] {
                let edit = json!({"path": path, "old_str": "a", "new_str": "b"});
                // The harness checks what is true of every error.
                memory.failure("str_replace", edit).await;
            }
        },
    )
    .await;
}
