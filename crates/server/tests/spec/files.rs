//! The `files` set: every parameter, default, reply field and error of its specification.

use std::time::{Duration, Instant};

use testkit::{Outcome, Server, Setup, Transport, Tree, Value, json};

use crate::harness::{each, is_iso_8601, program};

/// A server of the set on one tree.
struct Files {
    server: Server,
    tree: Tree,
}

impl Files {
    /// Calls a tool and checks what is true of every reply.
    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.server.call(tool, arguments).await;
        let story = || outcome.story();
        let host = self.tree.path().to_str().expect("text");
        assert!(!outcome.whole.to_string().contains(host), "{}", story());
        let text: Value = serde_json::from_str(&outcome.text).expect("the text is JSON");
        assert_eq!(text, outcome.structured, "{}", story());
        if outcome.is_error {
            let error = &outcome.error()["error"];
            assert_eq!(error["details"]["operation"], tool, "{}", story());
            assert!(error["details"]["path"].is_string(), "{}", story());
        }
        outcome
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// The error of a call that has to fail with this code.
    async fn fails(&self, code: &str, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        let error = outcome.error()["error"].clone();
        assert_eq!(error["code"], code, "{}", outcome.story());
        error
    }

    /// The message of a call that fails because of this parameter.
    async fn refuses(&self, parameter: &str, tool: &str, arguments: Value) -> String {
        let error = self.fails("invalid_parameters", tool, arguments).await;
        assert_eq!(error["details"]["parameter"], parameter, "{error}");
        let message = error["message"].as_str().expect("a message").to_owned();
        assert!(message.contains(parameter), "{message}");
        message
    }
}

async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&Files)) {
    both_with(tree, |setup| setup, body).await;
}

async fn both_with(
    tree: impl Fn() -> Tree,
    settings: impl Fn(Setup) -> Setup,
    body: impl AsyncFn(&Files),
) {
    testkit::over_both(async |transport| {
        let tree = tree();
        let setup = settings(of_files().root("home", tree.path()));
        let server = setup.start(transport).await;
        body(&Files { server, tree }).await;
    })
    .await;
}

fn of_files() -> Setup {
    program()
        .arguments(["--toolset", "files"])
        .endpoint("/mcp/files")
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

// ---- the server and its tools

#[tokio::test]
async fn files_server_name_and_version() {
    both(Tree::new, async |files| {
        let info = &files.server.info()["serverInfo"];
        assert_eq!(info["name"], "filesystem-server");
        assert_eq!(info["version"], "0.1.0");
    })
    .await;
}

#[tokio::test]
async fn files_tools_in_order_with_true_hints() {
    let expected = [
        ("list", true, false, true),
        ("read", true, false, true),
        ("write", false, true, false),
        ("mkdir", false, false, true),
        ("delete", false, true, true),
        ("copy", false, true, true),
        ("move", false, true, true),
        ("info", true, false, true),
        ("search", true, false, true),
    ];
    both(Tree::new, async |files| {
        let tools = files.server.list_tools().await;
        let hints = tools.iter().map(|tool| {
            let hint = |name: &str| tool["annotations"][name].as_bool().expect("a hint");
            assert!(!hint("openWorldHint"));
            (
                tool["name"].as_str().expect("a name"),
                hint("readOnlyHint"),
                hint("destructiveHint"),
                hint("idempotentHint"),
            )
        });
        assert_eq!(hints.collect::<Vec<_>>(), expected);
    })
    .await;
}

/// The schemas of the specification: parameter, type, default; required ones have none.
#[tokio::test]
async fn files_parameters_and_defaults_are_those_of_the_specification() {
    let none = Value::Null;
    let table = [
        ("list", "path", "string", none.clone()),
        ("list", "pattern", "string", json!("*")),
        ("list", "recursive", "boolean", json!(false)),
        ("list", "include_hidden", "boolean", json!(false)),
        ("list", "metadata", "boolean", json!(true)),
        ("read", "path", "string", none.clone()),
        ("read", "encoding", "string", json!("utf8")),
        ("read", "start_line", "integer", none.clone()),
        ("read", "end_line", "integer", none.clone()),
        ("read", "max_size", "integer", json!(1_048_576)),
        ("write", "path", "string", none.clone()),
        ("write", "content", "string", none.clone()),
        ("write", "encoding", "string", json!("utf8")),
        ("write", "mode", "string", json!("overwrite")),
        ("write", "make_dirs", "boolean", json!(false)),
        ("mkdir", "path", "string", none.clone()),
        ("mkdir", "recursive", "boolean", json!(true)),
        ("delete", "path", "string", none.clone()),
        ("delete", "recursive", "boolean", json!(false)),
        ("delete", "force", "boolean", json!(false)),
        ("copy", "source", "string", none.clone()),
        ("copy", "destination", "string", none.clone()),
        ("copy", "overwrite", "boolean", json!(false)),
        ("copy", "recursive", "boolean", json!(true)),
        ("move", "source", "string", none.clone()),
        ("move", "destination", "string", none.clone()),
        ("move", "overwrite", "boolean", json!(false)),
        ("info", "path", "string", none.clone()),
        ("search", "root_path", "string", none.clone()),
        ("search", "pattern", "string", none.clone()),
        ("search", "regex", "boolean", json!(false)),
        ("search", "file_pattern", "string", json!("*")),
        ("search", "recursive", "boolean", json!(true)),
        ("search", "case_sensitive", "boolean", json!(false)),
        ("search", "max_results", "integer", json!(100)),
        ("search", "max_file_size", "integer", json!(10_485_760)),
        ("search", "context_lines", "integer", json!(0)),
    ];
    both(Tree::new, async |files| {
        let tools = files.server.list_tools().await;
        let mut seen = 0;
        for tool in &tools {
            let properties = tool["inputSchema"]["properties"].as_object().expect("some");
            seen += properties.len();
            for (_, name, kind, default) in table.iter().filter(|row| tool["name"] == row.0) {
                let property = &properties[*name];
                assert_eq!(property["type"], *kind, "{} {name}", tool["name"]);
                assert_eq!(property["default"], *default, "{} {name}", tool["name"]);
                assert!(property["description"].is_string(), "{name}");
            }
        }
        assert_eq!(seen, table.len(), "no other parameters");
        let choices = |tool: usize, name: &str| {
            tools[tool]["inputSchema"]["properties"][name]["enum"].clone()
        };
        assert_eq!(choices(1, "encoding"), json!(["utf8", "base64", "binary"]));
        assert_eq!(choices(2, "encoding"), json!(["utf8", "base64"]));
        assert_eq!(
            choices(2, "mode"),
            json!(["create", "overwrite", "append", "create_new"])
        );
    })
    .await;
}

// ---- list

fn listed_tree() -> Tree {
    Tree::new()
        .file("a.txt", "12345")
        .file("b.rs", "")
        .file("sub/c.txt", "")
        .file("sub/deep/d.txt", "")
        .file(".hidden", "")
        .file(".git/config", "")
        .link("link", "a.txt")
}

#[tokio::test]
async fn files_list_own_entries_with_metadata() {
    both(listed_tree, async |files| {
        let listed = files.ok("list", json!({"path": "."})).await;
        assert_eq!(keys(&listed), ["entries"]);
        let entries = &listed["entries"];
        assert_eq!(each(entries, "name"), ["a.txt", "b.rs", "link", "sub"]);
        let file = &entries[0];
        assert_eq!(
            keys(file),
            ["is_hidden", "modified", "name", "path", "size", "type"]
        );
        assert_eq!((&file["type"], &file["size"]), (&json!("file"), &json!(5)));
        assert_eq!(file["is_hidden"], false);
        assert!(is_iso_8601(&file["modified"]));
        assert_eq!(entries[2]["type"], "symlink");
        let directory = &entries[3];
        assert_eq!(directory["type"], "directory");
        assert_eq!(
            keys(directory),
            ["is_hidden", "modified", "name", "path", "type"]
        );
    })
    .await;
}

#[tokio::test]
async fn files_list_paths_are_relative_to_the_root() {
    both(listed_tree, async |files| {
        for path in ["sub", "/sub", "./sub/", "sub/deep/.."] {
            let listed = files.ok("list", json!({"path": path})).await;
            assert_eq!(
                each(&listed["entries"], "path"),
                ["sub/c.txt", "sub/deep"],
                "{path}"
            );
        }
        let whole = files.ok("list", json!({"path": ""})).await;
        assert_eq!(whole["entries"].as_array().expect("a list").len(), 4);
    })
    .await;
}

#[tokio::test]
async fn files_list_pattern() {
    both(listed_tree, async |files| {
        let paths = async |arguments: Value| {
            let listed = files.ok("list", arguments).await;
            each(&listed["entries"], "path").join(" ")
        };
        assert_eq!(
            paths(json!({"path": "", "pattern": "*.txt"})).await,
            "a.txt"
        );
        let deep = json!({"path": "", "pattern": "*.txt", "recursive": true});
        assert_eq!(paths(deep).await, "a.txt sub/c.txt sub/deep/d.txt");
        let by_path = json!({"path": "", "pattern": "sub/*.txt", "recursive": true});
        assert_eq!(paths(by_path).await, "sub/c.txt");
        let wrong = json!({"path": "", "pattern": "[a"});
        files.refuses("pattern", "list", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_list_recursive_and_hidden() {
    both(listed_tree, async |files| {
        let paths = async |recursive: bool, include_hidden: bool| {
            let arguments =
                json!({"path": "", "recursive": recursive, "include_hidden": include_hidden});
            let listed = files.ok("list", arguments).await;
            each(&listed["entries"], "path").join(" ")
        };
        assert_eq!(
            paths(true, false).await,
            "a.txt b.rs link sub sub/c.txt sub/deep sub/deep/d.txt"
        );
        assert_eq!(paths(false, true).await, ".git .hidden a.txt b.rs link sub");
        assert!(paths(true, true).await.contains(".git/config"));
        let hidden = json!({"path": "", "include_hidden": true});
        let listed = files.ok("list", hidden).await;
        assert_eq!(listed["entries"][0]["is_hidden"], true);
    })
    .await;
}

#[tokio::test]
async fn files_list_without_metadata() {
    both(listed_tree, async |files| {
        let arguments = json!({"path": "", "metadata": false});
        let listed = files.ok("list", arguments).await;
        for entry in listed["entries"].as_array().expect("a list") {
            assert_eq!(keys(entry), ["is_hidden", "name", "path"]);
        }
    })
    .await;
}

#[tokio::test]
async fn files_list_errors() {
    both(listed_tree, async |files| {
        files
            .fails("not_a_directory", "list", json!({"path": "a.txt"}))
            .await;
        files
            .fails("not_found", "list", json!({"path": "no"}))
            .await;
        let outside = json!({"path": "../x"});
        files.fails("path_validation_error", "list", outside).await;
    })
    .await;
}

// ---- read

#[tokio::test]
async fn files_read_reply() {
    both(
        || Tree::new().file("d/f.txt", "one\ntwo\nthree"),
        async |files| {
            let read = files.ok("read", json!({"path": "d/f.txt"})).await;
            assert_eq!(
                keys(&read),
                [
                    "content",
                    "encoding",
                    "line_count",
                    "metadata",
                    "size",
                    "truncated"
                ]
            );
            assert_eq!(read["content"], "one\ntwo\nthree");
            assert_eq!(read["encoding"], "utf8");
            assert_eq!(
                (&read["size"], &read["line_count"]),
                (&json!(13), &json!(3))
            );
            assert_eq!(read["truncated"], false);
            assert_eq!(keys(&read["metadata"]), ["modified", "path", "size"]);
            assert_eq!(read["metadata"]["path"], "d/f.txt");
            assert_eq!(read["metadata"]["size"], 13);
            assert!(is_iso_8601(&read["metadata"]["modified"]));
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_encodings() {
    let tree = || {
        Tree::new()
            .file("text", "hi\n")
            .file("bytes", b"\0\xff")
            .file("latin", b"caf\xe9")
    };
    both(tree, async |files| {
        for (path, encoding, content, told) in [
            ("text", "utf8", "hi\n", "utf8"),
            ("text", "base64", "aGkK", "base64"),
            ("text", "binary", "aGkK", "base64"),
            ("bytes", "utf8", "AP8=", "base64"),
            ("latin", "utf8", "Y2Fm6Q==", "base64"),
        ] {
            let arguments = json!({"path": path, "encoding": encoding});
            let read = files.ok("read", arguments).await;
            assert_eq!(read["content"], content, "{path} {encoding}");
            assert_eq!(read["encoding"], told, "{path} {encoding}");
        }
        let read = files.ok("read", json!({"path": "bytes"})).await;
        assert_eq!(read["size"], 2, "the bytes, not their base64");
        let wrong = json!({"path": "text", "encoding": "utf16"});
        files.refuses("encoding", "read", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_read_lines_are_zero_indexed_and_inclusive() {
    both(
        || Tree::new().file("f", "l0\nl1\nl2\nl3\n"),
        async |files| {
            for (range, content, lines) in [
                (json!({"start_line": 0, "end_line": 0}), "l0\n", 1),
                (json!({"start_line": 1, "end_line": 2}), "l1\nl2\n", 2),
                (json!({"start_line": 2}), "l2\nl3\n", 2),
                (json!({"end_line": 1}), "l0\nl1\n", 2),
                (json!({"start_line": 3, "end_line": 99}), "l3\n", 1),
                (json!({"start_line": 50}), "", 0),
            ] {
                let mut arguments = range.clone();
                arguments["path"] = json!("f");
                let read = files.ok("read", arguments).await;
                assert_eq!(read["content"], content, "{range}");
                assert_eq!(read["line_count"], lines, "{range}");
                assert_eq!(read["truncated"], false, "{range}");
                assert_eq!(read["metadata"]["size"], 12, "{range}");
            }
            let wrong = json!({"path": "f", "start_line": 3, "end_line": 1});
            files.refuses("end_line", "read", wrong).await;
            let wrong = json!({"path": "f", "start_line": -1});
            files.refuses("start_line", "read", wrong).await;
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_truncates_with_a_warning() {
    both(
        || Tree::new().file("f", "0123456789\nabc\n"),
        async |files| {
            let read = files.ok("read", json!({"path": "f", "max_size": 4})).await;
            assert_eq!(read["content"], "0123");
            assert_eq!(
                (&read["size"], &read["truncated"]),
                (&json!(4), &json!(true))
            );
            assert_eq!(read["metadata"]["size"], 15);
            let warning = read["warning"].as_str().expect("a warning");
            assert!(warning.contains("max_size is 4"), "{warning}");
            let whole = files.ok("read", json!({"path": "f", "max_size": 15})).await;
            assert_eq!(whole["truncated"], false);
            assert!(whole.get("warning").is_none());
            let lines = json!({"path": "f", "start_line": 1, "max_size": 2});
            let read = files.ok("read", lines).await;
            assert_eq!(
                (&read["content"], &read["truncated"]),
                (&json!("ab"), &json!(true))
            );
            files
                .refuses("max_size", "read", json!({"path": "f", "max_size": 0}))
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_default_is_one_mebibyte() {
    both(
        || Tree::new().file("f", "x".repeat((1 << 20) + 1)),
        async |files| {
            let read = files.ok("read", json!({"path": "f"})).await;
            assert_eq!(
                (&read["size"], &read["truncated"]),
                (&json!(1 << 20), &json!(true))
            );
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_never_cuts_a_character() {
    both(
        || Tree::new().file("f", "aé€😀z"),
        async |files| {
            for (max, content) in [
                (1, "a"),
                (2, "a"),
                (3, "aé"),
                (5, "aé"),
                (6, "aé€"),
                (9, "aé€"),
                (10, "aé€😀"),
            ] {
                let read = files
                    .ok("read", json!({"path": "f", "max_size": max}))
                    .await;
                assert_eq!(read["content"], content, "{max}");
                assert_eq!(read["encoding"], "utf8", "{max}");
                assert_eq!(read["size"], content.len(), "{max}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_the_server_maximum_holds() {
    both_with(
        || Tree::new().file("f", "0123456789"),
        |setup| setup.set("limits.max_file_size", 3),
        async |files| {
            let read = files.ok("read", json!({"path": "f"})).await;
            assert_eq!(
                (&read["content"], &read["truncated"]),
                (&json!("012"), &json!(true))
            );
            let warning = read["warning"].as_str().expect("a warning");
            assert!(warning.contains("maximum is 3"), "{warning}");
            let read = files.ok("read", json!({"path": "f", "max_size": 2})).await;
            assert_eq!(read["content"], "01");
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_errors() {
    let tree = || {
        Tree::new()
            .dir("dir")
            .file("report.txt", "")
            .pipe("pipe")
            .link("out", "/etc/hostname")
            .link("loop", "loop")
    };
    both(tree, async |files| {
        let missing = files
            .fails("not_found", "read", json!({"path": "reprot.txt"}))
            .await;
        assert_eq!(missing["message"], "The specified path does not exist");
        assert_eq!(missing["details"]["path"], "reprot.txt");
        assert_eq!(missing["details"]["near"], json!(["report.txt"]));
        files
            .fails("is_a_directory", "read", json!({"path": "dir"}))
            .await;
        files
            .fails("io_error", "read", json!({"path": "pipe"}))
            .await;
        for path in ["out", "../x", "dir/../../x"] {
            let error = files
                .fails("path_validation_error", "read", json!({"path": path}))
                .await;
            assert_eq!(
                error["message"],
                "Path is outside of the allowed root directory"
            );
            assert_eq!(error["details"]["path"], path);
        }
        for path in ["a\0b", "loop"] {
            files
                .fails("path_validation_error", "read", json!({"path": path}))
                .await;
        }
        let inside = files
            .fails("not_found", "read", json!({"path": "/etc/hostname"}))
            .await;
        assert_eq!(inside["details"]["operation"], "read");
    })
    .await;
}

// ---- write

#[tokio::test]
async fn files_write_reply() {
    both(Tree::new, async |files| {
        let arguments = json!({"path": "f.txt", "content": "héllo"});
        let written = files.ok("write", arguments).await;
        assert_eq!(
            keys(&written),
            ["bytes_written", "metadata", "path", "success"]
        );
        assert_eq!(
            (&written["success"], &written["path"]),
            (&json!(true), &json!("f.txt"))
        );
        assert_eq!(written["bytes_written"], 6);
        assert_eq!(keys(&written["metadata"]), ["modified", "path", "size"]);
        assert_eq!(written["metadata"]["size"], 6);
        assert_eq!(files.tree.text("f.txt"), "héllo");
    })
    .await;
}

#[tokio::test]
async fn files_write_modes() {
    both(Tree::new, async |files| {
        let write = |mode: &str, path: &str, content: &str| {
            let arguments = json!({"path": path, "content": content, "mode": mode});
            files.call("write", arguments)
        };
        write("overwrite", "a", "1").await.ok();
        write("overwrite", "a", "2").await.ok();
        assert_eq!(files.tree.text("a"), "2");
        write("append", "a", "3").await.ok();
        let appended = write("append", "new", "4").await.ok().clone();
        assert_eq!(
            (&appended["bytes_written"], &appended["metadata"]["size"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(
            (files.tree.text("a"), files.tree.text("new")),
            ("23".into(), "4".into())
        );
        for mode in ["create", "create_new"] {
            write(mode, mode, "5").await.ok();
            let refused = write(mode, "a", "6").await;
            let error = &refused.error()["error"];
            assert_eq!(error["code"], "already_exists");
            assert_eq!(
                error["message"],
                "The file already exists and overwrite is not enabled"
            );
            assert_eq!(files.tree.text(mode), "5");
        }
        assert_eq!(files.tree.text("a"), "23");
        let wrong = json!({"path": "a", "content": "", "mode": "truncate"});
        let message = files.refuses("mode", "write", wrong).await;
        assert!(
            message.contains("create, overwrite, append, create_new"),
            "{message}"
        );
    })
    .await;
}

#[tokio::test]
async fn files_write_base64() {
    both(Tree::new, async |files| {
        let arguments = json!({"path": "f", "content": "AP8=", "encoding": "base64"});
        let written = files.ok("write", arguments).await;
        assert_eq!(written["bytes_written"], 2);
        assert_eq!(files.tree.bytes("f"), b"\0\xff");
        let wrong = json!({"path": "g", "content": "A*==", "encoding": "base64"});
        files.refuses("content", "write", wrong).await;
        let wrong = json!({"path": "g", "content": "", "encoding": "binary"});
        files.refuses("encoding", "write", wrong).await;
        assert!(!files.tree.has("g"));
    })
    .await;
}

#[tokio::test]
async fn files_write_make_dirs() {
    both(Tree::new, async |files| {
        let arguments = json!({"path": "a/b/f", "content": "x"});
        files.fails("not_found", "write", arguments).await;
        assert!(!files.tree.has("a"));
        let arguments = json!({"path": "a/b/f", "content": "x", "make_dirs": true});
        files.ok("write", arguments).await;
        assert_eq!(files.tree.text("a/b/f"), "x");
    })
    .await;
}

#[tokio::test]
async fn files_write_errors() {
    let tree = || Tree::new().dir("dir").link("out", "../outside");
    both(tree, async |files| {
        let write = |path: &str| json!({"path": path, "content": "x"});
        files.fails("is_a_directory", "write", write("dir")).await;
        for path in ["out", "../f"] {
            files
                .fails("path_validation_error", "write", write(path))
                .await;
        }
        assert_eq!(files.tree.listing().len(), 2, "nothing was left behind");
    })
    .await;
}

// ---- mkdir

#[tokio::test]
async fn files_mkdir() {
    both(
        || Tree::new().dir("there").file("file", ""),
        async |files| {
            let made = files.ok("mkdir", json!({"path": "a/b/c"})).await;
            assert_eq!(made, json!({"success": true, "path": "a/b/c"}));
            assert_eq!(files.tree.listing()["a/b/c"], "directory");
            files.ok("mkdir", json!({"path": "there"})).await;
            let flat = |path: &str| json!({"path": path, "recursive": false});
            files.ok("mkdir", flat("flat")).await;
            files.fails("already_exists", "mkdir", flat("there")).await;
            files.fails("not_found", "mkdir", flat("x/y")).await;
            assert!(!files.tree.has("x"));
            let file = json!({"path": "file"});
            files.fails("already_exists", "mkdir", file).await;
            let below = json!({"path": "file/x"});
            files.fails("not_a_directory", "mkdir", below).await;
            let outside = json!({"path": "../x"});
            files.fails("path_validation_error", "mkdir", outside).await;
        },
    )
    .await;
}

// ---- delete

#[tokio::test]
async fn files_delete_reply_and_types() {
    let tree = || {
        Tree::new()
            .file("file", "")
            .dir("empty")
            .file("kept", "")
            .link("link", "kept")
    };
    both(tree, async |files| {
        for (path, kind) in [
            ("file", "file"),
            ("empty", "directory"),
            ("link", "symlink"),
        ] {
            let deleted = files.ok("delete", json!({"path": path})).await;
            assert_eq!(
                deleted,
                json!({"success": true, "path": path, "type": kind})
            );
            assert!(!files.tree.has(path));
        }
        assert!(files.tree.has("kept"), "a link goes, its target stays");
    })
    .await;
}

#[tokio::test]
async fn files_delete_recursive() {
    both(
        || Tree::new().file("dir/sub/file", ""),
        async |files| {
            let error = files
                .fails("directory_not_empty", "delete", json!({"path": "dir"}))
                .await;
            assert!(
                error["message"]
                    .as_str()
                    .expect("text")
                    .contains("recursive")
            );
            assert!(files.tree.has("dir/sub/file"));
            let arguments = json!({"path": "dir", "recursive": true});
            let deleted = files.ok("delete", arguments).await;
            assert_eq!(deleted["type"], "directory");
            assert!(!files.tree.has("dir"));
        },
    )
    .await;
}

#[tokio::test]
async fn files_delete_force() {
    both(
        || Tree::new().file("dir/file", "").link("out", "/etc"),
        async |files| {
            files
                .fails("not_found", "delete", json!({"path": "no"}))
                .await;
            let deleted = files
                .ok("delete", json!({"path": "no", "force": true}))
                .await;
            assert_eq!(deleted, json!({"success": true, "path": "no"}));
            let stayed = files
                .ok("delete", json!({"path": "dir", "force": true}))
                .await;
            assert_eq!(stayed["success"], false);
            assert_eq!(stayed["errors"][0]["code"], "directory_not_empty");
            assert_eq!(stayed["errors"][0]["path"], "dir");
            assert!(files.tree.has("dir/file"));
            for path in ["../x", "out"] {
                let outside = json!({"path": path, "force": true});
                files
                    .fails("path_validation_error", "delete", outside)
                    .await;
            }
        },
    )
    .await;
}

#[tokio::test]
async fn files_delete_never_takes_the_root() {
    both(
        || Tree::new().file("f", ""),
        async |files| {
            for path in [".", "", "/"] {
                let whole = json!({"path": path, "recursive": true, "force": true});
                files.refuses("path", "delete", whole).await;
            }
            assert!(files.tree.has("f"));
        },
    )
    .await;
}

// ---- copy and move

#[tokio::test]
async fn files_copy_a_file() {
    both(
        || Tree::new().file("a", "12345").file("there", "old"),
        async |files| {
            let arguments = json!({"source": "a", "destination": "new/b"});
            let copied = files.ok("copy", arguments).await;
            assert_eq!(
                copied,
                json!({"success": true, "source": "a", "destination": "new/b", "bytes_copied": 5})
            );
            assert_eq!(files.tree.text("new/b"), "12345");
            let onto = json!({"source": "a", "destination": "there"});
            let error = files.fails("already_exists", "copy", onto).await;
            assert_eq!(error["details"]["path"], "there");
            assert_eq!(files.tree.text("there"), "old");
            let onto = json!({"source": "a", "destination": "there", "overwrite": true});
            files.ok("copy", onto).await;
            assert_eq!(files.tree.text("there"), "12345");
        },
    )
    .await;
}

#[tokio::test]
async fn files_copy_a_directory() {
    let tree = || {
        Tree::new()
            .file("d/a", "12")
            .file("d/s/b", "345")
            .file("there/a", "old")
            .file("there/c", "stays")
    };
    both(tree, async |files| {
        let flat = json!({"source": "d", "destination": "e", "recursive": false});
        files.fails("is_a_directory", "copy", flat).await;
        assert!(!files.tree.has("e"));
        let copied = files
            .ok("copy", json!({"source": "d", "destination": "e"}))
            .await;
        assert_eq!(copied["bytes_copied"], 5);
        assert_eq!(files.tree.text("e/s/b"), "345");
        let onto = json!({"source": "d", "destination": "there"});
        files.fails("already_exists", "copy", onto).await;
        let onto = json!({"source": "d", "destination": "there", "overwrite": true});
        files.ok("copy", onto).await;
        assert_eq!(files.tree.text("there/a"), "12");
        assert_eq!(files.tree.text("there/c"), "stays");
        let into = json!({"source": "d", "destination": "d/s/d"});
        files.refuses("destination", "copy", into).await;
    })
    .await;
}

#[tokio::test]
async fn files_copy_names_what_it_left_out() {
    both(
        || Tree::new().file("d/a", "1").link("d/out", "/etc/hostname"),
        async |files| {
            let copied = files
                .ok("copy", json!({"source": "d", "destination": "e"}))
                .await;
            assert_eq!(each(&copied["skipped"], "path"), ["d/out"]);
            assert!(!files.tree.has("e/out"));
        },
    )
    .await;
}

#[tokio::test]
async fn files_move() {
    let tree = || {
        Tree::new()
            .file("a", "1")
            .file("b", "2")
            .file("there", "old")
            .file("dir/x", "3")
    };
    both(tree, async |files| {
        let moved = files
            .ok("move", json!({"source": "a", "destination": "new/a"}))
            .await;
        assert_eq!(
            moved,
            json!({"success": true, "source": "a", "destination": "new/a"})
        );
        assert_eq!(files.tree.text("new/a"), "1");
        assert!(!files.tree.has("a"));
        let onto = json!({"source": "b", "destination": "there"});
        files.fails("already_exists", "move", onto).await;
        assert_eq!(files.tree.text("there"), "old");
        let onto = json!({"source": "b", "destination": "there", "overwrite": true});
        files.ok("move", onto).await;
        assert_eq!(files.tree.text("there"), "2");
        files
            .ok("move", json!({"source": "dir", "destination": "renamed"}))
            .await;
        assert_eq!(files.tree.text("renamed/x"), "3");
        let into = json!({"source": "renamed", "destination": "renamed/y"});
        files.refuses("destination", "move", into).await;
        let root = json!({"source": ".", "destination": "x"});
        files.refuses("source", "move", root).await;
    })
    .await;
}

#[tokio::test]
async fn files_copy_and_move_errors_name_the_path_at_fault() {
    both(
        || Tree::new().file("a", "1"),
        async |files| {
            for tool in ["copy", "move"] {
                for (source, destination, code, at_fault) in [
                    ("no", "x", "not_found", "no"),
                    ("../a", "x", "path_validation_error", "../a"),
                    ("a", "../x", "path_validation_error", "../x"),
                ] {
                    let arguments = json!({"source": source, "destination": destination});
                    let error = files.fails(code, tool, arguments).await;
                    assert_eq!(error["details"]["path"], at_fault, "{tool}");
                }
            }
            assert_eq!(files.tree.listing().len(), 1);
        },
    )
    .await;
}

// ---- info

#[tokio::test]
async fn files_info_reply() {
    both(
        || Tree::new().file("d/f.txt", "12345").mode("d/f.txt", 0o644),
        async |files| {
            let mut info = files.ok("info", json!({"path": "d/f.txt"})).await;
            for time in ["modified", "accessed"] {
                assert!(is_iso_8601(&info[time]), "{time}: {info}");
            }
            // Not every file system remembers it.
            if let Some(created) = info.get("created") {
                assert!(is_iso_8601(created), "{info}");
            }
            let times = info.as_object_mut().expect("an object");
            times.retain(|key, _| !["created", "modified", "accessed"].contains(&key.as_str()));
            assert_eq!(
                info,
                json!({
                    "exists": true, "type": "file", "name": "f.txt", "path": "d/f.txt", "size": 5,
                    "permissions": {"readable": true, "writable": true, "executable": false},
                    "is_hidden": false, "mime_type": "text/plain",
                })
            );
        },
    )
    .await;
}

#[tokio::test]
async fn files_info_of_directories_hidden_files_and_programs() {
    let tree = || Tree::new().file("d/.tool", "").mode("d/.tool", 0o755);
    both(tree, async |files| {
        let directory = files.ok("info", json!({"path": "d"})).await;
        assert_eq!(directory["type"], "directory");
        assert!(directory.get("mime_type").is_none());
        let tool = files.ok("info", json!({"path": "d/.tool"})).await;
        assert_eq!(tool["is_hidden"], true);
        assert_eq!(tool["permissions"]["executable"], true);
        let root = files.ok("info", json!({"path": "."})).await;
        assert_eq!((&root["name"], &root["path"]), (&json!(""), &json!(".")));
    })
    .await;
}

#[tokio::test]
async fn files_info_mime_type_by_content_then_by_name() {
    let tree = || {
        Tree::new()
            .file("picture.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
            .file("data.json", "{}")
            .file("page", "<!DOCTYPE html><html></html>")
            .file("Makefile", "all:\n")
            .file("bytes", b"\0\x01\x02")
    };
    both(tree, async |files| {
        for (path, mime) in [
            ("picture.txt", "image/png"),
            ("data.json", "application/json"),
            ("page", "text/html"),
            ("Makefile", "text/plain"),
            ("bytes", "application/octet-stream"),
        ] {
            let info = files.ok("info", json!({"path": path})).await;
            assert_eq!(info["mime_type"], mime, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn files_info_of_nothing_is_no_error() {
    both(
        || Tree::new().dir("d"),
        async |files| {
            let info = files.ok("info", json!({"path": "d/no.txt"})).await;
            assert_eq!(
                info,
                json!({"exists": false, "name": "no.txt", "path": "d/no.txt"})
            );
            let outside = json!({"path": "../no"});
            files.fails("path_validation_error", "info", outside).await;
        },
    )
    .await;
}

// ---- search

fn searched_tree() -> Tree {
    Tree::new()
        .file("a.txt", "zero\nHello world\ntwo\nhello again\n")
        .file("b.rs", "fn hello() {}\n")
        .file("sub/c.txt", "a.b\naxb\n")
        .file("binary", b"hello\0")
}

#[tokio::test]
async fn files_search_reply() {
    both(searched_tree, async |files| {
        let arguments = json!({"root_path": ".", "pattern": "hello"});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found,
            json!({
                "total_matches": 3, "files_searched": 3, "files_matched": 2,
                "matches": [
                    {"file": "a.txt", "matches": [
                        {"line_number": 2, "line": "Hello world", "context": []},
                        {"line_number": 4, "line": "hello again", "context": []},
                    ]},
                    {"file": "b.rs", "matches": [
                        {"line_number": 1, "line": "fn hello() {}", "context": []},
                    ]},
                ],
            })
        );
        let nothing = json!({"root_path": "", "pattern": "nowhere"});
        let found = files.ok("search", nothing).await;
        assert_eq!(
            (&found["total_matches"], &found["matches"]),
            (&json!(0), &json!([]))
        );
    })
    .await;
}

#[tokio::test]
async fn files_search_case_and_regex() {
    both(searched_tree, async |files| {
        let total = async |more: Value| {
            let mut arguments = json!({"root_path": ""});
            let object = arguments.as_object_mut().expect("an object");
            object.extend(more.as_object().expect("an object").clone());
            files.ok("search", arguments).await["total_matches"].clone()
        };
        assert_eq!(total(json!({"pattern": "HELLO"})).await, 3);
        let exact = json!({"pattern": "Hello", "case_sensitive": true});
        assert_eq!(total(exact).await, 1);
        assert_eq!(total(json!({"pattern": "a.b"})).await, 1, "literal");
        assert_eq!(total(json!({"pattern": "a.b", "regex": true})).await, 2);
        assert_eq!(total(json!({"pattern": "("})).await, 1, "literal");
        let wrong = json!({"root_path": "", "pattern": "(", "regex": true});
        files.refuses("pattern", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_which_files() {
    both(searched_tree, async |files| {
        let matched = async |more: Value| {
            let mut arguments = json!({"root_path": "", "pattern": "", "regex": false});
            let object = arguments.as_object_mut().expect("an object");
            object.extend(more.as_object().expect("an object").clone());
            let found = files.ok("search", arguments).await;
            each(&found["matches"], "file").join(" ")
        };
        assert_eq!(matched(json!({})).await, "a.txt b.rs sub/c.txt");
        let text = json!({"file_pattern": "*.txt"});
        assert_eq!(matched(text).await, "a.txt sub/c.txt");
        assert_eq!(matched(json!({"recursive": false})).await, "a.txt b.rs");
        assert_eq!(matched(json!({"root_path": "sub"})).await, "sub/c.txt");
        assert_eq!(matched(json!({"root_path": "b.rs"})).await, "b.rs");
        let small = json!({"max_file_size": 14});
        assert_eq!(matched(small).await, "b.rs sub/c.txt");
        let wrong = json!({"root_path": "", "pattern": "x", "file_pattern": "[a"});
        files.refuses("file_pattern", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_max_results() {
    both(searched_tree, async |files| {
        let search = |max: u64| json!({"root_path": "", "pattern": "hello", "max_results": max});
        let found = files.ok("search", search(2)).await;
        assert_eq!(
            (&found["total_matches"], &found["files_matched"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(found["truncated"], true);
        assert!(
            files
                .ok("search", search(3))
                .await
                .get("truncated")
                .is_none()
        );
        files.refuses("max_results", "search", search(0)).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_context() {
    both(searched_tree, async |files| {
        let arguments = json!({"root_path": "a.txt", "pattern": "world", "context_lines": 1});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found["matches"][0]["matches"][0]["context"],
            json!([
                {"line_number": 1, "content": "zero"},
                {"line_number": 2, "content": "Hello world"},
                {"line_number": 3, "content": "two"},
            ])
        );
        let arguments = json!({"root_path": "b.rs", "pattern": "fn", "context_lines": 5});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found["matches"][0]["matches"][0]["context"],
            json!([{"line_number": 1, "content": "fn hello() {}"}])
        );
        let wrong = json!({"root_path": "", "pattern": "x", "context_lines": -1});
        files.refuses("context_lines", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_errors() {
    both(searched_tree, async |files| {
        for (path, code) in [("no", "not_found"), ("..", "path_validation_error")] {
            let arguments = json!({"root_path": path, "pattern": "x"});
            let error = files.fails(code, "search", arguments).await;
            assert_eq!(error["details"]["path"], path);
        }
    })
    .await;
}

// ---- bad input of every kind

#[tokio::test]
async fn files_invalid_parameters_are_named() {
    both(
        || Tree::new().file("f", ""),
        async |files| {
            for (tool, arguments, parameter) in [
                ("list", json!({}), "path"),
                ("read", json!({"path": null}), "path"),
                ("read", json!({"path": 5}), "path"),
                ("read", json!({"path": "f", "max_size": "big"}), "max_size"),
                ("read", json!({"path": "f", "max_size": 1.5}), "max_size"),
                ("read", json!({"path": "f", "lines": 5}), "lines"),
                ("write", json!({"path": "g"}), "content"),
                ("write", json!({"path": "g", "content": {}}), "content"),
                (
                    "write",
                    json!({"path": "g", "content": "", "mode": 1}),
                    "mode",
                ),
                (
                    "mkdir",
                    json!({"path": "g", "recursive": "yes"}),
                    "recursive",
                ),
                ("delete", json!({"path": "f", "force": 1}), "force"),
                ("copy", json!({"source": "f"}), "destination"),
                ("move", json!({"destination": "f"}), "source"),
                ("info", json!({"path": ["f"]}), "path"),
                ("search", json!({"root_path": "."}), "pattern"),
                ("search", json!({"pattern": "x"}), "root_path"),
                (
                    "search",
                    json!({"root_path": "", "pattern": "x", "context_lines": 1001}),
                    "context_lines",
                ),
            ] {
                files.refuses(parameter, tool, arguments).await;
            }
            let near = json!({"path": "f", "startLine": 1});
            let message = files.refuses("startLine", "read", near).await;
            assert!(message.contains("did you mean start_line?"), "{message}");
            assert_eq!(files.tree.listing().len(), 1, "nothing happened");
        },
    )
    .await;
}

// ---- permissions

#[tokio::test]
async fn files_permission_denied_by_the_operator() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        let setup = of_files().root_with(
            "home",
            tree.path(),
            json!({"allowed_tools": ["*"], "read_only": true}),
        );
        let server = setup.start(transport).await;
        let files = Files { server, tree };
        let names = files.server.list_tools().await;
        let names: Vec<&str> = names
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names, ["list", "read", "info", "search"]);
        let error = files
            .fails("permission_denied", "delete", json!({"path": "f"}))
            .await;
        let message = error["message"].as_str().expect("text");
        assert!(
            message.starts_with("Permission denied to access the specified path"),
            "{message}"
        );
        assert!(files.tree.has("f"));
    })
    .await;
}

#[tokio::test]
async fn files_permission_denied_by_the_system() {
    let tree = || {
        Tree::new()
            .file("secret", "x")
            .mode("secret", 0)
            .file("fixed", "x")
            .mode("fixed", 0o444)
    };
    both(tree, async |files| {
        let info = files.ok("info", json!({"path": "secret"})).await;
        if info["permissions"]["readable"] == true {
            // The superuser may do everything.
            return;
        }
        let error = files
            .fails("permission_denied", "read", json!({"path": "secret"}))
            .await;
        assert_eq!(
            error["message"],
            "Permission denied to access the specified path"
        );
        let write = json!({"path": "fixed", "content": "y"});
        files.fails("permission_denied", "write", write).await;
        assert_eq!(files.tree.text("fixed"), "x");
    })
    .await;
}

// ---- configuration

/// What a server reads first, to see which root it has.
async fn content(server: &Server) -> Value {
    let read = server.call("read", json!({"path": "which"})).await;
    read.ok()["content"].clone()
}

#[tokio::test]
async fn files_root_flag_then_environment_then_file_then_current_directory() {
    testkit::over_both(async |transport| {
        let trees =
            ["flag", "environment", "file", "current"].map(|name| Tree::new().file("which", name));
        let [flag, environment, file, current] = &trees;
        let path = |tree: &Tree| tree.path().display().to_string();
        let here = of_files().directory(current.path());
        let server = here.clone().start(transport).await;
        assert_eq!(content(&server).await, "current");
        let with_file = here.root("home", file.path());
        let server = with_file.clone().start(transport).await;
        assert_eq!(content(&server).await, "file");
        let with_both = with_file.variable("FS_SERVER_ROOT", &path(environment));
        let server = with_both.clone().start(transport).await;
        assert_eq!(content(&server).await, "environment");
        let with_all = with_both.arguments(["--root-dir".to_owned(), path(flag)]);
        let server = with_all.start(transport).await;
        assert_eq!(content(&server).await, "flag");
    })
    .await;
}

#[tokio::test]
async fn files_max_file_size_flag_then_environment_then_file() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "0123456789");
        let size = async |setup: Setup| {
            let server = setup.start(transport).await;
            let read = server.call("read", json!({"path": "f"})).await;
            read.ok()["size"].clone()
        };
        let setup = of_files().root("home", tree.path());
        assert_eq!(size(setup.clone()).await, 10);
        let setup = setup.set("limits.max_file_size", 3);
        assert_eq!(size(setup.clone()).await, 3);
        let setup = setup.variable("FS_MAX_FILE_SIZE", "2");
        assert_eq!(size(setup.clone()).await, 2);
        assert_eq!(size(setup.arguments(["--max-file-size", "1"])).await, 1);
    })
    .await;
}

/// Seeks a line in a file that takes minutes to read, and copies it; the copy leaves nothing behind.
async fn times_out(setup: Setup, transport: Transport) {
    let tree = Tree::new().sparse("endless", 1 << 40);
    let setup = setup.root("home", tree.path());
    let server = setup.start(transport).await;
    let files = Files { server, tree };
    let start = Instant::now();
    let endless = json!({"path": "endless", "start_line": 5});
    let error = files.fails("timeout", "read", endless).await;
    assert!(start.elapsed() < Duration::from_secs(10), "{error}");
    assert_eq!(error["details"]["path"], "endless");
    let copy = json!({"source": "endless", "destination": "copy"});
    files.fails("timeout", "copy", copy).await;
    let listed = files
        .server
        .call("list", json!({"path": "", "include_hidden": true}))
        .await;
    assert_eq!(
        listed.ok()["entries"].as_array().map(Vec::len),
        Some(1),
        "{listed:?}"
    );
}

#[tokio::test]
async fn files_request_timeout_flag_wins() {
    testkit::over_both(async |transport| {
        let setup = of_files()
            .set("limits.request_timeout", 600)
            .variable("FS_REQUEST_TIMEOUT", "600")
            .arguments(["--request-timeout", "1"]);
        times_out(setup, transport).await;
    })
    .await;
}

#[tokio::test]
async fn files_request_timeout_environment_wins_over_the_file() {
    testkit::over_both(async |transport| {
        let setup = of_files()
            .set("limits.request_timeout", 600)
            .variable("FS_REQUEST_TIMEOUT", "1");
        times_out(setup, transport).await;
    })
    .await;
}

#[tokio::test]
async fn files_log_level_flag_then_environment() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let setup = of_files()
            .root("home", tree.path())
            .variable("FS_LOG_LEVEL", "error");
        // Over HTTP the client needs the start-up line, which is at info.
        if transport == Transport::Stdio {
            let server = setup.clone().start(transport).await;
            server.call("list", json!({"path": ""})).await.ok();
            let ended = server.stop().await;
            assert!(ended.stderr.is_empty(), "{ended:?}");
        }
        let setup = setup.arguments(["--log-level", "info"]);
        let server = setup.start(transport).await;
        server.call("list", json!({"path": ""})).await.ok();
        let line = server.logged(|line| line["message"] == "call").await;
        assert_eq!(
            (&line["toolset"], &line["tool"], &line["outcome"]),
            (&json!("files"), &json!("list"), &json!("ok"))
        );
        assert!(line["timestamp"].is_string());
    })
    .await;
}

#[tokio::test]
async fn files_bad_settings_do_not_start() {
    let tree = Tree::new();
    for (name, value) in [
        ("FS_MAX_FILE_SIZE", "big"),
        ("FS_REQUEST_TIMEOUT", "0"),
        ("FS_LOG_LEVEL", "loud"),
        ("FS_SERVER_ROOT", "/does/not/exist"),
    ] {
        let setup = of_files().root("home", tree.path()).variable(name, value);
        let ended = setup.refuse(Transport::Stdio).await;
        assert!(matches!(ended.code, Some(1 | 2)), "{name}: {ended:?}");
    }
}

#[tokio::test]
async fn files_has_its_endpoint_beside_workspace() {
    let tree = Tree::new().file("f", "x");
    for (endpoint, name) in [
        ("/mcp", "mcp-filesystem"),
        ("/mcp/workspace", "mcp-filesystem"),
        ("/mcp/files", "filesystem-server"),
    ] {
        let setup = program()
            .root("home", tree.path())
            .arguments(["--toolset", "workspace,files"])
            .endpoint(endpoint);
        let server = setup.start(Transport::Http).await;
        assert_eq!(server.info()["serverInfo"]["name"], name, "{endpoint}");
    }
}

// ---- rate limits

#[tokio::test]
async fn files_rate_limited_with_a_time_to_wait() {
    let rate = json!({"per_second": 1, "burst": 2});
    both_with(
        || Tree::new().file("f", "x"),
        |setup| setup.set("limits.rate", rate.clone()),
        async |files| {
            let info = || files.call("info", json!({"path": "f"}));
            info().await.ok();
            info().await.ok();
            let mut refused = None;
            for _ in 0..3 {
                let outcome = info().await;
                if outcome.is_error {
                    refused = Some(outcome.error()["error"].clone());
                    break;
                }
            }
            let error = refused.expect("the third to fifth call cannot all be in time");
            assert_eq!(error["code"], "rate_limited");
            let wait = error["details"]["retry_after_ms"].as_u64().expect("a time");
            assert!((1..=1001).contains(&wait), "{wait}");
            tokio::time::sleep(Duration::from_millis(wait)).await;
            info().await.ok();
        },
    )
    .await;
}

#[tokio::test]
async fn files_rate_limits_hold_for_workspace_too() {
    let tree = Tree::new();
    let setup = program()
        .root("home", tree.path())
        .set("limits.rate", json!({"per_second": 1, "burst": 1}));
    let server = setup.start(Transport::Http).await;
    server.call("list_roots", json!({})).await.ok();
    let mut codes = Vec::new();
    for _ in 0..3 {
        let outcome = server.call("list_roots", json!({})).await;
        codes.push(outcome.structured["error"]["code"].clone());
    }
    assert!(codes.contains(&json!("rate_limited")), "{codes:?}");
}

#[tokio::test]
async fn files_a_refusal_to_replace_says_what_is_in_the_way() {
    let tree = || {
        Tree::new()
            .file("a", "1")
            .file("full/b", "2")
            .file("d/c", "3")
            .link("link", "full")
    };
    both(tree, async |files| {
        for (tool, source, destination, code, words) in [
            (
                "copy",
                "a",
                "full",
                "already_exists",
                "A directory is there, which a file cannot replace",
            ),
            (
                "copy",
                "d",
                "a",
                "already_exists",
                "A file is there, which a directory cannot replace",
            ),
            (
                "move",
                "a",
                "full",
                "already_exists",
                "A directory is there, which a file cannot replace",
            ),
            (
                "move",
                "d",
                "a",
                "already_exists",
                "A file is there, which a directory cannot replace",
            ),
            (
                "move",
                "d",
                "full",
                "directory_not_empty",
                "The directory is not empty",
            ),
            (
                "move",
                "a",
                "link/",
                "already_exists",
                "A directory is there, which a file cannot replace",
            ),
            // The destination is the new path itself, so a file cannot be called so.
            (
                "copy",
                "a",
                "new/",
                "not_a_directory",
                "The specified path is not a directory",
            ),
            (
                "move",
                "a",
                "new/",
                "not_a_directory",
                "The specified path is not a directory",
            ),
        ] {
            let arguments =
                json!({"source": source, "destination": destination, "overwrite": true});
            let error = files.fails(code, tool, arguments).await;
            assert_eq!(error["message"], words, "{tool} {source} {destination}");
        }
        let there = files.fails(
            "already_exists",
            "mkdir",
            json!({"path": "d", "recursive": false}),
        );
        assert_eq!(there.await["message"], "The directory already exists");
        let there = files.fails("already_exists", "mkdir", json!({"path": "a"}));
        assert_eq!(
            there.await["message"],
            "The path already exists and is not a directory"
        );
        assert_eq!(
            (files.tree.text("a"), files.tree.text("full/b")),
            ("1".into(), "2".into())
        );
        assert!(!files.tree.has("new"));
    })
    .await;
}

#[tokio::test]
async fn files_what_is_missing_on_the_way_says_how_to_make_it() {
    both(Tree::new, async |files| {
        let error = files
            .fails("not_found", "write", json!({"path": "a/b", "content": ""}))
            .await;
        assert!(
            error["details"]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("make_dirs"))
        );
        let error = files
            .fails(
                "not_found",
                "mkdir",
                json!({"path": "a/b", "recursive": false}),
            )
            .await;
        assert!(
            error["details"]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("recursive"))
        );
    })
    .await;
}

#[tokio::test]
async fn files_search_counts_what_was_too_large() {
    let tree = || {
        Tree::new()
            .file("large", "x".repeat(100))
            .file("small", "x")
    };
    both(tree, async |files| {
        let arguments = json!({"root_path": ".", "pattern": "x", "max_file_size": 50});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            (&found["total_matches"], &found["files_too_large"]),
            (&json!(1), &json!(1))
        );
        let found = files
            .ok("search", json!({"root_path": ".", "pattern": "x"}))
            .await;
        assert_eq!(found.get("files_too_large"), None);
    })
    .await;
}
