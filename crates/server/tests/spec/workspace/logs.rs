//! What the server writes on standard error.

use testkit::{Transport, Tree, Value, json};

use super::Workspace;
use crate::harness::message::{initialize, tool_call};
use crate::harness::{ToolSet, is_iso_8601, program};

#[tokio::test]
async fn workspace_nfr_017_every_call_is_logged() {
    Workspace::both(
        || Tree::new().file("d/f", "x"),
        async |workspace| {
            workspace.ok("read_file", json!({"path": "d/f"})).await;
            workspace
                .fails("not_found", "stat_file", json!({"path": "gone"}))
                .await;
            let line = workspace
                .server
                .logged(|line| line["tool"] == "read_file")
                .await;
            assert_eq!(line["toolset"], "workspace");
            assert_eq!(line["root"], "workspace");
            assert_eq!(line["path"], "d/f");
            assert_eq!(line["outcome"], "ok");
            assert_eq!(line["level"], "INFO");
            assert!(is_iso_8601(&line["timestamp"]), "{line}");
            assert!(
                line["duration_ms"].is_number() && line["client"].is_string(),
                "{line}"
            );
            assert!(line["response_size"].as_u64().unwrap() > 0, "{line}");
            assert!(
                line["message"].is_string() && line.get("error_code").is_none(),
                "{line}"
            );
            let line = workspace
                .server
                .logged(|line| line["tool"] == "stat_file")
                .await;
            assert_eq!(line["outcome"], "error");
            assert_eq!(line["error_code"], "not_found");
            assert_eq!(line["level"], "INFO");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_017_one_json_object_a_line() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let server = Workspace::setup(&tree).start(transport).await;
        let path = "a\nb\u{1b}[31m\"}{";
        let _ = server
            .call("read_file", json!({"root": "workspace", "path": path}))
            .await;
        let ended = server.stop().await;
        assert_eq!(ended.log().len(), ended.stderr.len(), "{ended:?}");
        assert!(
            ended.log().iter().any(|line| line["path"] == path),
            "{ended:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_018_the_start_is_logged() {
    testkit::over_both(async |transport| {
        let (one, two) = (Tree::new(), Tree::new());
        let setup = program()
            .root("first", one.path())
            .root("second", two.path());
        let server = setup.start(transport).await;
        let line = server.logged(|line| line.get("address").is_some()).await;
        assert_eq!(line["level"], "INFO");
        let roots = line["roots"].to_string();
        assert!(
            roots.contains("first") && roots.contains("second"),
            "{line}"
        );
        let text = line.to_string();
        assert!(text.contains("config.yaml"), "no config file: {line}");
        for tree in [&one, &two] {
            assert!(
                !text.contains(tree.path().to_str().unwrap()),
                "a root's path: {line}"
            );
        }
        if transport == Transport::Http {
            assert_eq!(line["address"], server.http().address().to_string());
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_018_no_other_line_has_a_host_path() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x").link("out", "/etc");
        let host = tree.path().display().to_string();
        let server = Workspace::setup(&tree).start(transport).await;
        for (tool, arguments) in [
            ("read_file", json!({"root": "workspace", "path": "f"})),
            ("read_file", json!({"root": "workspace", "path": "gone"})),
            (
                "write_file",
                json!({"root": "workspace", "path": "f/x", "content": ""}),
            ),
            (
                "read_file",
                json!({"root": "workspace", "path": "out/passwd"}),
            ),
        ] {
            let _ = server.call(tool, arguments).await;
        }
        let ended = server.stop().await;
        let info = |line: &&Value| line["level"] != "WARN";
        for line in ended.log().iter().filter(info) {
            assert!(!line.to_string().contains(&host), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_019_escapes_are_warnings_with_all_details() {
    Workspace::both(
        || Tree::new().link("escape", "/etc"),
        async |workspace| {
            for path in ["escape/passwd", "../../etc/shadow"] {
                workspace
                    .fails("path_outside_root", "read_file", json!({"path": path}))
                    .await;
                let line = workspace.server.logged(|line| line["path"] == path).await;
                assert_eq!(line["level"], "WARN", "{line}");
                assert_eq!(line["tool"], "read_file");
                assert_eq!(line["root"], "workspace");
                assert_eq!(line["outcome"], "error");
                assert_eq!(line["error_code"], "path_outside_root");
                assert!(
                    line["resolved_path"].is_string(),
                    "where would it have led? {line}"
                );
            }
            let line = workspace
                .server
                .logged(|line| line["path"] == "escape/passwd")
                .await;
            assert_eq!(line["resolved_path"], "/etc/passwd");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_019_denials_are_warnings() {
    let roots = || vec![("limited", Tree::new(), &["list_folder"][..])];
    Workspace::both_on(roots, async |workspace| {
        let arguments = json!({"root": "limited", "path": "f"});
        workspace
            .fails("tool_not_allowed", "remove_file", arguments)
            .await;
        let line = workspace
            .server
            .logged(|line| line["tool"] == "remove_file")
            .await;
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["error_code"], "tool_not_allowed");
        assert_eq!(line["root"], "limited");
        assert_eq!(line["path"], "f");
    })
    .await;
}

#[tokio::test]
async fn workspace_a_copy_is_logged_with_where_it_went() {
    Workspace::both(
        || Tree::new().file("a", "x"),
        async |workspace| {
            let arguments = json!({"source_path": "a", "dest_path": "d/b"});
            workspace.ok("copy", arguments).await;
            let line = workspace.server.logged(|line| line["tool"] == "copy").await;
            assert_eq!(line["path"], "a");
            assert_eq!(line["destination_path"], "d/b");
            assert_eq!(line["destination_root"], "workspace");
            let missing = json!({"source_path": "gone", "dest_path": "e"});
            workspace.fails("not_found", "move", missing).await;
            let line = workspace.server.logged(|line| line["tool"] == "move").await;
            assert_eq!(line["path"], "gone");
            assert_eq!(line["destination_path"], "e");
            workspace
                .fails("invalid_path", "stat_file", json!({"path": "a\0b"}))
                .await;
            let line = workspace
                .server
                .logged(|line| line["tool"] == "stat_file")
                .await;
            assert_eq!(line["level"], "WARN");
            assert_eq!(line["message"], "violation");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_no_level_logs_what_is_in_files() {
    testkit::over_both(async |transport| {
        for level in ["debug", "trace"] {
            let tree = Tree::new();
            let server = Workspace::setup(&tree)
                .set("log.level", level)
                .start(transport)
                .await;
            let write = json!({"root": "workspace", "path": "f", "content": "TOPSECRET"});
            server.call("write_file", write).await.ok();
            let read = json!({"root": "workspace", "path": "f"});
            server.call("read_file", read).await.ok();
            let ended = server.stop().await;
            assert!(ended.log().iter().any(|line| line["tool"] == "read_file"));
            let said = ended.stderr.join("\n");
            assert!(!said.contains("TOPSECRET"), "{level}: {said}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_019_a_link_that_leads_outside_is_told_with_where_whatever_was_tried() {
    Workspace::both(
        || Tree::new().link("d/escape", "/nowhere/else").file("f", ""),
        async |workspace| {
            let to = json!({"source_path": "d/escape", "dest_path": "x"});
            for (tool, arguments) in [
                ("remove_file", json!({"path": "d/escape"})),
                ("stat_file", json!({"path": "d/escape"})),
                ("permissions_file", json!({"path": "d/escape"})),
                ("move", to.clone()),
                ("copy", to),
            ] {
                workspace.fails("path_outside_root", tool, arguments).await;
                let line = workspace.server.logged(|line| line["tool"] == tool).await;
                assert_eq!(line["level"], "WARN", "{line}");
                assert_eq!(line["resolved_path"], "/nowhere/else", "{line}");
                assert_eq!(line["attempted_path"], "d/escape", "{line}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_a_failure_is_logged_with_both_ends_and_the_reason() {
    Workspace::both(
        || Tree::new().file("a", "TOPSECRET\n").file("b", ""),
        async |workspace| {
            let below = json!({"source_path": "a", "dest_path": "b/x"});
            workspace.fails("not_a_directory", "copy", below).await;
            let line = workspace.server.logged(|line| line["tool"] == "copy").await;
            assert_eq!(line["path"], "a", "{line}");
            assert_eq!(line["root"], "workspace", "{line}");
            assert_eq!(line["destination_path"], "b/x", "{line}");
            assert_eq!(line["destination_root"], "workspace", "{line}");
            assert_eq!(line["failed_path"], "b/x", "{line}");
            assert!(
                line["reason"].as_str().unwrap().contains("not a directory"),
                "{line}"
            );
            let out = json!({"source_path": "a", "dest_path": "../out"});
            workspace.fails("path_outside_root", "move", out).await;
            let line = workspace.server.logged(|line| line["tool"] == "move").await;
            assert_eq!(line["path"], "a", "{line}");
            assert_eq!(line["destination_path"], "../out", "{line}");
            assert_eq!(line["attempted_path"], "../out", "{line}");
            // All paths of a call with a list are there, also if it fails.
            let edits = json!([
                {"path": "a", "old": "WRONG", "new": "x"},
                {"path": "b", "old": "WRONG", "new": "x"},
            ]);
            workspace
                .fails("edit_failed", "edit_file", json!({"edits": edits}))
                .await;
            let line = workspace
                .server
                .logged(|line| line["tool"] == "edit_file")
                .await;
            assert_eq!(line["paths"], json!(["a", "b"]), "{line}");
            assert!(
                line["reason"].as_str().unwrap().contains("edit 1 of 2"),
                "{line}"
            );
            assert!(!line.to_string().contains("TOPSECRET"), "{line}");
            // So are those that only a patch names.
            let patch = "--- a/a\n+++ b/a\n@@\n-WRONG\n+x\n*** Add File: ../c\n+x\n";
            let failed = json!({"patch": patch});
            workspace
                .fails("path_outside_root", "patch_file", failed)
                .await;
            let line = workspace
                .server
                .logged(|line| line["tool"] == "patch_file")
                .await;
            assert_eq!(line["paths"], json!(["a", "../c"]), "{line}");
            // What is in a file is no reason.
            let patch = json!({"path": "a", "patch": "@@ -1 +1 @@\n-WRONG\n+x\n"});
            workspace.fails("patch_failed", "patch_file", patch).await;
            let line = workspace
                .server
                .logged(|line| line["tool"] == "patch_file" && line["path"] == "a")
                .await;
            assert!(
                line["reason"].as_str().unwrap().contains("hunk 1"),
                "{line}"
            );
            let text = line.to_string();
            assert!(
                !text.contains("TOPSECRET") && !text.contains("WRONG"),
                "{line}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_the_response_size_is_what_goes_over_the_wire() {
    let tree = Tree::new().file("f", "quotes \" and\nlines\n");
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    for (number, path) in [(7, "f"), (8, "gone")] {
        let call = tool_call(
            number,
            "read_file",
            &json!({"root": "workspace", "path": path}),
        );
        let reply = server.http().post("/mcp", &[], &call).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let line = server.logged(|line| line["path"] == path).await;
        assert_eq!(line["response_size"], reply.body.len(), "{line} {reply:?}");
    }
}

#[tokio::test]
async fn workspace_the_response_size_has_the_event_of_a_session() {
    let tree = Tree::new().file("f", "quotes \" and\nlines\n");
    let setup = Workspace::setup(&tree).set("server.sessions", "on");
    let server = setup.start(Transport::Http).await;
    let greeting = initialize(&json!({}));
    let greeted = server.http().post("/mcp", &[], &greeting).await;
    let session = greeted.header("mcp-session-id").unwrap().to_owned();
    for (number, path) in [(7, "f"), (8, "gone")] {
        let call = tool_call(
            number,
            "read_file",
            &json!({"root": "workspace", "path": path}),
        );
        let headers = [("mcp-session-id", &*session)];
        let reply = server.http().post("/mcp", &headers, &call).await;
        let is_event = reply
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        assert!(is_event, "{reply:?}");
        let line = server.logged(|line| line["path"] == path).await;
        assert_eq!(line["response_size"], reply.body.len(), "{line} {reply:?}");
    }
}

#[tokio::test]
async fn workspace_the_response_size_has_the_end_of_the_line() {
    let tree = Tree::new().file("f", "quotes \" and\nlines\n");
    let mut wire = Workspace::setup(&tree).wire(Transport::Stdio).await;
    wire.request(&initialize(&json!({}))).await;
    let call = tool_call(7, "read_file", &json!({"root": "workspace", "path": "f"}));
    wire.send(&call.to_string()).await;
    let reply = wire.next().await.expect("a reply");
    let line = wire.logged(|line| line["path"] == "f").await;
    assert_eq!(line["response_size"], reply.len() + 1, "{line} {reply}");
}
