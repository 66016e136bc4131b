//! Every code that occurs on a healthy host, with its message. The set's own unit tests cover faults of the host.

use std::os::unix::ffi::OsStrExt;

use testkit::{Transport, Tree, json};

use super::set::{Memory, error};
use crate::harness::{ToolSet, program};

#[tokio::test]
async fn memory_content_has_to_match_its_encoding() {
    Memory::both(Tree::new, async |memory| {
        for content in ["!", "aGVsbG8", "aGVs\nbG8=", "-_-_"] {
            let create = json!({"path": "f", "content": content, "encoding": "base64"});
            let failure = memory.failure("create", create).await;
            assert_eq!(failure["code"], "invalid_encoding");
            let message = "Content does not match specified encoding";
            assert_eq!(failure["message"], message);
            assert!(failure["reason"].is_string(), "{failure}");
        }
        assert!(memory.tree().listing().is_empty());
    })
    .await;
}

#[tokio::test]
async fn memory_arguments_are_named() {
    Memory::both(
        || Tree::new().file("f", "a"),
        async |memory| {
            let cases = [
                (
                    "create",
                    json!({"path": "g", "content": ""}),
                    "missing required argument: encoding (one of utf-8, base64)",
                ),
                (
                    "create",
                    json!({"path": "g", "content": "", "encoding": "latin1"}),
                    "invalid encoding: latin1; valid values: utf-8, base64",
                ),
                (
                    "insert",
                    json!({"path": "f", "insert_line": "1", "new_str": ""}),
                    "argument insert_line must be an integer, got string \"1\"",
                ),
                (
                    "str_replace",
                    json!({"path": "f", "old_str": "", "new_str": "x"}),
                    "invalid old_str: must not be empty",
                ),
            ];
            for (tool, arguments, message) in cases {
                let failure = memory.failure(tool, arguments).await;
                assert_eq!(failure["code"], "invalid_arguments");
                assert_eq!(failure["message"], message);
            }
            assert_eq!(memory.tree().listing().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_what_the_specification_does_not_name() {
    let tree = || {
        Tree::new()
            .file("f", "a")
            .dir("d")
            .pipe("pipe")
            .link("loop", "loop")
            .sparse("huge", (100 << 20) + 1)
    };
    Memory::both(tree, async |memory| {
        let view = |path: &str| json!({"path": path});
        let edit = |path: &str| json!({"path": path, "old_str": "a", "new_str": "b"});
        let create = |path: &str| json!({"path": path, "content": "", "encoding": "utf-8"});
        let rename = json!({"old_path": "d", "new_path": "d/e"});
        let long = "n".repeat(300);
        let too_long = format!("Invalid path: {long}: a path has at most 4095 bytes, a name 255");
        let too_large = "File too large: huge has 104857601 bytes, the limit is 104857600";
        let in_parts = format!("{too_large}; view a part of it with view_range");
        let cases = [
            (
                "str_replace",
                edit("d"),
                "is_a_directory",
                "Is a directory: d",
                "d",
            ),
            (
                "create",
                create("new/"),
                "is_a_directory",
                "Is a directory: new/",
                "new/",
            ),
            (
                "create",
                create("f/g"),
                "not_a_directory",
                "Not a directory: f/g",
                "f/g",
            ),
            (
                "view",
                view("pipe"),
                "not_a_file",
                "Not a regular file: pipe is a fifo",
                "pipe",
            ),
            (
                "view",
                view("loop"),
                "invalid_path",
                "Too many symbolic links: loop",
                "loop",
            ),
            ("view", view(&long), "invalid_path", &too_long, &long),
            ("view", view("huge"), "too_large", &in_parts, "huge"),
            ("str_replace", edit("huge"), "too_large", too_large, "huge"),
            (
                "rename",
                rename,
                "invalid_arguments",
                "Cannot move a directory into itself: d",
                "d",
            ),
        ];
        for (tool, arguments, code, message, path) in cases {
            assert_eq!(
                memory.failure(tool, arguments).await,
                error(code, message, path)
            );
        }
    })
    .await;
}

#[tokio::test]
async fn memory_the_storage_itself_stays() {
    Memory::both(
        || Tree::new().dir("d"),
        async |memory| {
            for path in [".", "", "d/.."] {
                let failure = memory.failure("delete", json!({"path": path})).await;
                assert_eq!(failure["code"], "permission_denied");
                assert_eq!(failure["message"], format!("Permission denied: {path}"));
                let rename = json!({"old_path": path, "new_path": "e"});
                let failure = memory.failure("rename", rename).await;
                assert_eq!(failure["message"], "Permission denied");
            }
            assert!(memory.tree().has("d"));
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_read_only_storage_is_only_viewed() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "a");
        let keys = json!({"allowed_tools": ["*"], "read_only": true});
        let setup = program()
            .root_with("notes", tree.path(), keys)
            .set("toolsets", json!(["memory"]))
            .endpoint("/mcp/memory");
        let server = setup.start(transport).await;
        let viewed = server.call("view", json!({"path": "f"})).await;
        assert_eq!(viewed.ok()["content"], "a");
        let deleted = server.call("delete", json!({"path": "f"})).await;
        assert_eq!(
            *deleted.error(),
            json!({
                "code": "permission_denied", "message": "Permission denied: f",
                "reason": "the storage is read-only",
            })
        );
        assert!(tree.has("f"));
    })
    .await;
}

#[tokio::test]
async fn memory_an_escape_is_logged_as_one() {
    let tree = Tree::new();
    let server = Memory::setup(&tree).start(Transport::Stdio).await;
    server
        .call("view", json!({"path": "/etc/passwd"}))
        .await
        .error();
    let line = server
        .logged(|line| line["error_code"] == "path_security")
        .await;
    assert_eq!(line["level"], "WARN", "{line}");
    assert_eq!(line["toolset"], "memory", "{line}");
}

#[tokio::test]
async fn memory_a_file_is_not_renamed_to_what_must_be_a_directory() {
    Memory::both(
        || Tree::new().file("a.md", "x"),
        async |memory| {
            let arguments = json!({"old_path": "a.md", "new_path": "new/"});
            let error = memory.failure("rename", arguments).await;
            assert_eq!(error["code"], "not_a_directory");
            assert!(memory.tree().has("a.md") && !memory.tree().has("new"));
        },
    )
    .await;
}

#[tokio::test]
async fn memory_names_that_are_not_utf_8_are_marked() {
    Memory::both(
        || Tree::new().file("plain", ""),
        async |memory| {
            let listed = memory.ok("view", json!({"path": "."})).await;
            assert_eq!(listed.get("invalid_utf8"), None);
            let odd = std::ffi::OsStr::from_bytes(b"bad\xff");
            memory.tree().write(odd, "x");
            let listed = memory.ok("view", json!({"path": "."})).await;
            assert_eq!(listed["invalid_utf8"], true);
            let name = listed["entries"][0].clone();
            assert_eq!(
                memory.ok("view", json!({"path": name})).await["content"],
                "x"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_rename_blames_and_logs_the_right_path() {
    let long = "n".repeat(300);
    Memory::both(
        || Tree::new().file("f", "x"),
        async |memory| {
            let rename = |old: &str, new: &str| json!({"old_path": old, "new_path": new});
            let error = memory
                .fails("invalid_path", "rename", rename("f", &long))
                .await;
            assert_eq!(error["path"], long.as_str());
            let error = memory
                .fails("path_security", "rename", rename("none", "../x"))
                .await;
            assert_eq!(error["path"], "../x");
            let line = memory
                .server
                .logged(|line| line["error_code"] == "path_security")
                .await;
            assert_eq!(line["path"], "none");
            assert_eq!(line["destination_path"], "../x");
            assert_eq!(line["attempted_path"], "../x");
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_way_out_through_a_file_is_told_and_logged() {
    Memory::both(
        || Tree::new().file("f", "x"),
        async |memory| {
            let view = json!({"path": "f/../../etc/passwd"});
            memory.fails("path_security", "view", view).await;
            memory
                .server
                .logged(|line| line["attempted_path"] == "f/../../etc/passwd")
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn memory_entries_of_a_directory_that_is_not_empty_are_named() {
    Memory::both(
        || {
            let tree = Tree::new()
                .file("d/.a", "")
                .file("d/.b", "")
                .file("e/.a", "")
                .file("e/c", "")
                .dir("e/d");
            (0..20).fold(tree, |tree, number| {
                tree.file(format!("many/f{number:02}"), "")
            })
        },
        async |memory| {
            let error = memory
                .fails("directory_not_empty", "delete", json!({"path": "d"}))
                .await;
            assert_eq!(error["holds"], json!([".a", ".b"]));
            let error = memory
                .fails("directory_not_empty", "delete", json!({"path": "e"}))
                .await;
            assert_eq!(error["holds"], json!([".a", "c", "d"]));
            let error = memory
                .fails("directory_not_empty", "delete", json!({"path": "many"}))
                .await;
            let first = (0..10).map(|number| format!("f{number:02}"));
            assert_eq!(error["holds"], json!(first.collect::<Vec<_>>()));
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_part_of_a_file_is_viewed() {
    Memory::both_with(
        || Tree::new().file("f", "one\ntwo\nthree\n"),
        |setup| setup.arguments(["--max-file-size", "10"]),
        async |memory| {
            let view = |range: [i64; 2]| json!({"path": "f", "view_range": range});
            for (range, content) in [
                ([2, 2], "two\n"),
                ([2, -1], "two\nthree\n"),
                ([3, 9], "three\n"),
            ] {
                let viewed = memory.ok("view", view(range)).await;
                assert_eq!(viewed["content"], content, "{range:?}");
                assert_eq!(viewed["size"], 14);
            }
            for range in [[0, 1], [2, 1], [1, -2]] {
                memory.fails("invalid_arguments", "view", view(range)).await;
            }
            // The operator's limit holds for the whole file, and for a part: what is left out is said.
            let error = memory
                .fails("too_large", "view", json!({"path": "f"}))
                .await;
            let message = error["message"].as_str().expect("a message");
            assert!(
                message.ends_with("view a part of it with view_range"),
                "{message}"
            );
            let cut = memory.ok("view", view([1, -1])).await;
            assert_eq!(cut["content"], "one\ntwo\n");
            assert_eq!(
                (&cut["truncated"], &cut["next_line"]),
                (&json!(true), &json!(3))
            );
            let rest = memory.ok("view", view([3, -1])).await;
            assert!(
                rest.get("truncated").is_none() && rest.get("next_line").is_none(),
                "{rest}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn memory_every_code_is_listed() {
    let tree = Tree::new();
    let server = Memory::setup(&tree).start(testkit::Transport::Stdio).await;
    for tool in server.list_tools().await {
        let codes = &tool["outputSchema"]["properties"]["code"]["enum"];
        let codes = codes.as_array().expect("codes");
        assert!(codes.iter().any(|code| code == "path_security"), "{tool}");
    }
}

#[tokio::test]
async fn memory_the_text_of_a_part_that_is_cut_says_how_to_go_on() {
    let tree = Tree::new().file("f", "one\ntwo\nthree\n");
    let setup = Memory::setup(&tree).arguments(["--max-file-size", "10"]);
    let server = setup.start(testkit::Transport::Stdio).await;
    let part = json!({"path": "f", "view_range": [1, -1]});
    let viewed = server.call("view", part).await;
    let note = "[cut, because it is too much for a reply; go on with view_range [3, -1]]";
    assert_eq!(viewed.text, format!("one\ntwo\n{note}"));
}

/// What `undo` says of a change that is not there, or not kept, has a code of the list.
#[tokio::test]
async fn memory_undo_of_an_unknown_change_has_a_listed_code() {
    let tree = Tree::new();
    let memory = json!({"root": "data", "undo": true});
    let setup = program().root("data", tree.path());
    let setup = setup
        .set("toolsets", json!(["memory"]))
        .set("memory", memory);
    let server = setup.start(testkit::Transport::Stdio).await;
    let failed = server.call("undo", json!({"change": "4f2a"})).await;
    let code = &failed.error()["code"];
    assert_eq!(code, "not_found", "{}", failed.story());
    for tool in server.list_tools().await {
        let codes = tool["outputSchema"]["properties"]["code"]["enum"].clone();
        let codes = codes.as_array().expect("codes").clone();
        assert!(
            codes.contains(code) && codes.contains(&json!("gone")),
            "{tool}"
        );
    }
}
