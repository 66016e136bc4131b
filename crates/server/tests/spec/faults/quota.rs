//! Quotas: every tool that adds something is refused in time, and no quota is exceeded.

use testkit::{Setup, Transport, Tree, Value, json, over_both};

use crate::harness::machine::{contents, fails, ok};
use crate::harness::{ToolSet, becomes, machine, program};
use crate::workspace::Workspace;

fn limited(tree: &Tree, quota: Value) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "quota": quota});
    program().root_with("workspace", tree.path(), keys)
}

/// The bytes of all files, and the number of entries.
fn held(tree: &Tree) -> (usize, usize) {
    let all = contents(tree.path());
    (all.values().map(Vec::len).sum(), all.len())
}

#[tokio::test]
async fn quota_bytes_are_refused_before_they_are_seen() {
    over_both(async |transport| {
        let tree = Tree::new().file("old", "12345\n").file("dir/four", "4444");
        let other = Tree::new().file("tree/large", "x".repeat(95)).file("large", "y".repeat(95));
        let setup = limited(&tree, json!({"max_bytes": 100})).root("other", other.path());
        let server = setup.start(transport).await;
        let before = contents(tree.path());
        let large = "z".repeat(97);
        let patch = format!("@@ -1 +1 @@\n-12345\n+{large}\n");
        let from_other = |source: &str, to: &str| {
            json!({"source_root": "other", "source_path": source, "dest_path": to})
        };
        for (tool, arguments) in [
            ("write_file", json!({"path": "old", "content": large})),
            ("write_file", json!({"path": "new/f", "content": large})),
            ("write_file", json!({"path": "old", "content": large, "mode": "append"})),
            ("write_file", json!({"path": "n/f", "content": large, "mode": "append"})),
            ("write_file", json!({"path": "n/f", "content": large, "mode": "create_only"})),
            ("patch_file", json!({"path": "old", "patch": patch})),
            ("copy", from_other("large", "new/copy")),
            ("copy", from_other("tree", "new/tree")),
            ("move", from_other("large", "new/moved")),
            ("move", from_other("tree", "new/tree")),
        ] {
            let error = fails(&server, "disk_full", tool, arguments).await;
            let details = &error["details"];
            assert_eq!(details["quota"], "max_bytes");
            assert_eq!(details["limit"], 100);
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("10 of the 100 bytes"), "{message}");
            assert_eq!(contents(tree.path()), before, "{tool}");
        }
        assert_eq!(other.listing().len(), 3);
        // Shrinking and removing are never refused, and make room.
        ok(&server, "write_file", json!({"path": "old", "content": "1"})).await;
        ok(&server, "remove_folder", json!({"path": "dir"})).await;
        ok(&server, "move", from_other("large", "moved")).await;
        assert_eq!(held(&tree).0, 96);
        ok(&server, "copy", json!({"source_path": "old", "dest_path": "copy"})).await;
        fails(&server, "disk_full", "copy", json!({"source_path": "moved", "dest_path": "c"})).await;
        // Moving out makes room as well.
        let out = json!({"source_path": "moved", "dest_root": "other", "dest_path": "back"});
        ok(&server, "move", out).await;
        ok(&server, "write_file", json!({"path": "last", "content": "z".repeat(97)})).await;
    })
    .await;
}

#[tokio::test]
async fn quota_files_count_every_entry() {
    over_both(async |transport| {
        let tree = Tree::new().file("dir/f", "");
        let server = limited(&tree, json!({"max_files": 4}))
            .start(transport)
            .await;
        let before = contents(tree.path());
        for (tool, arguments) in [
            ("create_folder", json!({"path": "a/b/c"})),
            ("write_file", json!({"path": "a/b/c", "content": ""})),
            ("copy", json!({"source_path": "dir", "dest_path": "a/copy"})),
        ] {
            let error = fails(&server, "disk_full", tool, arguments).await;
            assert_eq!(error["details"]["quota"], "max_files");
            assert_eq!(contents(tree.path()), before, "{tool}");
        }
        ok(
            &server,
            "copy",
            json!({"source_path": "dir", "dest_path": "copy"}),
        )
        .await;
        fails(
            &server,
            "disk_full",
            "create_folder",
            json!({"path": "more"}),
        )
        .await;
        ok(
            &server,
            "write_file",
            json!({"path": "dir/f", "content": "not a new file"}),
        )
        .await;
        ok(
            &server,
            "move",
            json!({"source_path": "dir/f", "dest_path": "copy/f"}),
        )
        .await;
        ok(&server, "create_folder", json!({"path": "more"})).await;
    })
    .await;
}

#[tokio::test]
async fn quota_16_writers_never_exceed_it() {
    over_both(async |transport| {
        let tree = Tree::new();
        let quota = json!({"max_bytes": 20_000, "max_files": 40});
        let server = limited(&tree, quota).start(transport).await;
        let mut calls = Vec::new();
        for number in 0..160_usize {
            let content = "x".repeat(number * 7 % 900 + 1);
            let path = format!("d{}/f{number}", number % 4);
            let arguments = json!({"path": path, "content": content});
            let arguments = Workspace::complete("write_file", arguments);
            calls.push(server.spawn_call("write_file", arguments));
            if calls.len() == 16 {
                let mut refused = 0;
                for call in calls.drain(..) {
                    let outcome = call.await.expect("an outcome");
                    let code = &outcome.structured["error"]["code"];
                    assert!(
                        !outcome.is_error || code == "disk_full",
                        "{}",
                        outcome.story()
                    );
                    refused += usize::from(outcome.is_error);
                }
                let (bytes, files) = held(&tree);
                assert!(bytes <= 20_000 && files <= 40, "{bytes} bytes in {files}");
                assert!(number < 100 || refused > 0);
            }
        }
        let (bytes, files) = held(&tree);
        assert!(
            bytes > 19_000 || files == 40,
            "there was room: {bytes} in {files}"
        );
    })
    .await;
}

#[tokio::test]
async fn quota_holds_in_all_sets_and_is_told_by_check() {
    let tree = Tree::new().file("f", "12345");
    let setup = limited(&tree, json!({"max_bytes": 10, "max_files": 7}))
        .set("toolsets", json!(["files", "memory"]));
    let files = setup
        .clone()
        .endpoint("/mcp/files")
        .start(Transport::Http)
        .await;
    let write = json!({"path": "n", "content": "123456"});
    let error = files.call("write", write).await.error()["error"].clone();
    assert_eq!(error["code"], "disk_full");
    assert_eq!(error["details"]["limit"], 10);
    drop(files);
    let memory = setup
        .clone()
        .endpoint("/mcp/memory")
        .start(Transport::Http)
        .await;
    let create = json!({"path": "n", "content": "123456", "encoding": "utf-8"});
    let error = memory.call("create", create).await.error().clone();
    assert_eq!(error["code"], "disk_full");
    assert!(error.to_string().contains("5 of the 10 bytes"), "{error}");
    let insert = json!({"path": "f", "line": 1, "text": "123456"});
    let refused = memory.call("insert", insert).await;
    assert!(refused.is_error, "{}", refused.story());
    drop(memory);
    let ended = setup.arguments(["check"]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = "quota: at most 10 bytes in at most 7 files and directories";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    assert_eq!(tree.listing().len(), 1);
}

#[tokio::test]
async fn quota_counts_what_others_write_and_remove() {
    let tree = Tree::new();
    let server = limited(&tree, json!({"max_bytes": 100}))
        .start(Transport::Stdio)
        .await;
    ok(
        &server,
        "write_file",
        json!({"path": "own", "content": "x".repeat(60)}),
    )
    .await;
    tree.write("theirs", "y".repeat(30));
    let write = json!({"path": "more", "content": "z".repeat(50)});
    fails(&server, "disk_full", "write_file", write.clone()).await;
    std::fs::remove_file(tree.join("own")).expect("it is there");
    // After a refusal the server counts again, but no more than once a second.
    let fits = async || {
        let outcome = machine::call(&server, "write_file", write.clone()).await;
        !outcome.is_error
    };
    assert!(becomes(fits).await, "what others removed is still counted");
}

#[tokio::test]
async fn quota_of_a_root_that_was_opened_again_counts_what_is_there_now() {
    let tree = Tree::new().file("data/old", "x".repeat(90));
    let keys = json!({"allowed_tools": ["*"], "quota": {"max_bytes": 100}});
    let server = program()
        .root_with("workspace", &tree.join("data"), keys)
        .set("sandbox.landlock", "off")
        .start(Transport::Stdio)
        .await;
    let write = |bytes: usize| json!({"path": "new", "content": "y".repeat(bytes)});
    fails(&server, "disk_full", "write_file", write(50)).await;
    std::fs::rename(tree.join("data"), tree.join("before")).expect("it is there");
    std::fs::create_dir(tree.join("data")).expect("its name is free");
    std::fs::write(tree.join("data/there"), "z".repeat(40)).expect("it is there");
    let fits = async || {
        let outcome = machine::call(&server, "write_file", write(50)).await;
        !outcome.is_error
    };
    assert!(becomes(fits).await, "the directory of before is counted");
    fails(&server, "disk_full", "write_file", write(70)).await;
}

#[tokio::test]
async fn quota_counts_all_of_a_tree_that_an_undo_brings_back_or_takes_away() {
    over_both(async |transport| {
        let tree = Tree::new()
            .file("dir/a", "x".repeat(30))
            .file("dir/sub/b", "y".repeat(30));
        let server = limited(&tree, json!({"max_bytes": 100}))
            .start(transport)
            .await;
        let write = |bytes: usize| json!({"path": "new", "content": "z".repeat(bytes)});
        let removed = ok(&server, "remove_folder", json!({"path": "dir"})).await;
        ok(&server, "write_file", write(60)).await;
        let before = contents(tree.path());
        let undo = json!({"change": removed["change"]});
        let error = fails(&server, "disk_full", "undo", undo.clone()).await;
        assert_eq!(error["details"]["quota"], "max_bytes");
        assert_eq!(contents(tree.path()), before);
        ok(&server, "remove_file", json!({"path": "new"})).await;
        let undone = ok(&server, "undo", undo).await;
        let error = fails(&server, "disk_full", "write_file", write(60)).await;
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("60 of the 100 bytes"), "{message}");
        // What goes again makes room at once.
        ok(&server, "undo", json!({"change": undone["change"]})).await;
        ok(&server, "write_file", write(100)).await;
        assert_eq!(held(&tree).0, 100);
    })
    .await;
}

/// What an undo cuts off a file makes room, and what it adds again needs room.
#[tokio::test]
async fn quota_counts_the_end_of_a_file_that_an_undo_cuts_off_or_adds_again() {
    over_both(async |transport| {
        let tree = Tree::new().file("log", "1234567890");
        let setup = limited(&tree, json!({"max_bytes": 100}));
        let write = |bytes: usize| json!({"path": "new", "content": "z".repeat(bytes)});
        let append = json!({"path": "log", "content": "y".repeat(60), "mode": "append"});
        let server = setup.clone().start(transport).await;
        let appended = ok(&server, "write_file", append).await;
        let arguments = json!({"root": "workspace", "change": appended["change"]});
        let undone = ok(&server, "undo", arguments).await;
        // What was cut off made room at once.
        ok(&server, "write_file", write(90)).await;
        ok(&server, "write_file", write(60)).await;
        drop(server);
        let server = setup.start(transport).await;
        ok(&server, "write_file", write(50)).await;
        let redo = json!({"root": "workspace", "change": undone["change"]});
        let error = fails(&server, "disk_full", "undo", redo.clone()).await;
        assert_eq!(error["details"]["quota"], "max_bytes");
        assert_eq!(held(&tree).0, 60);
        ok(&server, "write_file", write(30)).await;
        ok(&server, "undo", redo).await;
        assert_eq!(held(&tree).0, 100);
        let more = json!({"path": "more", "content": "m"});
        fails(&server, "disk_full", "write_file", more).await;
    })
    .await;
}
