//! What the server writes on standard error.

use testkit::{Transport, Tree, Value, json};

use super::Workspace;
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
