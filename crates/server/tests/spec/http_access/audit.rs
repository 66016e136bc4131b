//! The audit file, and what violations tell about their client.

use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::program;

fn with_audit(tree: &Tree, logs: &Tree) -> Setup {
    program()
        .root("workspace", tree.path())
        .set("log.audit_file", json!(logs.join("calls.log")))
}

fn lines(logs: &Tree, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(logs.join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn audit_every_call_is_one_line_whatever_the_log_level() {
    testkit::over_both(async |transport| {
        let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
        // Over HTTP the start-up line tells the address.
        let level = match transport {
            Transport::Stdio => "error",
            Transport::Http => "info",
        };
        let setup = with_audit(&tree, &logs).set("log.level", level);
        let server = setup.start(transport).await;
        let paths = ["f", "no", "../x", "a\nb"];
        for path in paths {
            server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
        }
        let ended = server.stop().await;
        assert_eq!(ended.log().is_empty(), transport == Transport::Stdio);
        let written = lines(&logs, "calls.log");
        let seen: Vec<_> = written
            .iter()
            .map(|line| line["path"].as_str().unwrap())
            .collect();
        assert_eq!(seen, paths, "{transport:?}");
        assert_eq!(written[2]["message"], "violation");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(logs.join("calls.log"))
                .unwrap()
                .permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    })
    .await;
}

#[tokio::test]
async fn audit_a_file_that_was_moved_away_is_let_go_of_on_hangup() {
    testkit::over_both(async |transport| {
        let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
        let server = with_audit(&tree, &logs).start(transport).await;
        let call = async || {
            server
                .call("read_file", json!({"root": "workspace", "path": "f"}))
                .await
                .ok();
        };
        call().await;
        std::fs::rename(logs.join("calls.log"), logs.join("calls.1")).unwrap();
        server.reload();
        for _ in 0..500 {
            if logs.join("calls.log").exists() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        call().await;
        server.stop().await;
        assert_eq!(lines(&logs, "calls.1").len(), 1, "{transport:?}");
        assert_eq!(lines(&logs, "calls.log").len(), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn audit_a_file_that_cannot_be_written_is_a_start_up_error() {
    let (tree, logs) = (Tree::new(), Tree::new().dir("calls.log"));
    let ended = with_audit(&tree, &logs).refuse(Transport::Stdio).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.stderr.join("\n");
    assert!(
        line.contains("log.audit_file") && line.contains("not a regular file"),
        "{line}"
    );
}

#[tokio::test]
async fn audit_violations_are_counted_per_client() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        let server = program()
            .root("workspace", tree.path())
            .start(transport)
            .await;
        for path in ["f", "../one", "../two"] {
            server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
        }
        let line = server
            .logged(|line| line["attempted_path"] == "../two")
            .await;
        assert_eq!(line["client_violations"], 2, "{line}");
        assert_eq!(line["client_calls"], 3, "{line}");
    })
    .await;
}

#[tokio::test]
async fn audit_a_call_whose_client_hung_up_is_there_too() {
    let (tree, logs) = (Tree::new().sparse("endless", 1 << 42), Tree::new());
    let server = with_audit(&tree, &logs).start(Transport::Http).await;
    let hash = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hash_file",
        "arguments": {"root": "workspace", "path": "endless", "algorithm": "md5"}}});
    let http = server.http().clone();
    let call = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
    for _ in 0..1000 {
        let page = server.http().get("/metrics").await.body;
        if page.contains("mcp_filesystem_calls_running 1") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    call.abort();
    let line = server.logged(|line| line["tool"] == "hash_file").await;
    assert_eq!(line["error_code"], "cancelled");
    server.stop().await;
    assert_eq!(lines(&logs, "calls.log").len(), 1);
}

#[tokio::test]
async fn audit_the_end_of_the_process_waits_for_calls_whose_clients_are_gone() {
    for sessions in ["off", "on"] {
        let (tree, logs) = (Tree::new().sparse("endless", 1 << 42), Tree::new());
        let setup = with_audit(&tree, &logs).set("server.sessions", sessions);
        let server = setup.start(Transport::Http).await;
        // Progress is told by rmcp, so the call takes that way; the client of the test kit has a session of its own.
        let call = server.spawn_call(
            "hash_file",
            json!({"root": "workspace", "path": "endless", "algorithm": "md5"}),
        );
        let hash = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hash_file",
            "arguments": {"root": "workspace", "path": "endless", "algorithm": "md5"}, "_meta": {"progressToken": 1}}});
        let http = server.http().clone();
        let raw = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
        let wanted = match sessions {
            "on" => 1,
            _ => 2,
        };
        for _ in 0..1000 {
            let page = server.http().get("/metrics").await.body;
            if page.contains(&format!("mcp_filesystem_calls_running {wanted}")) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        call.abort();
        raw.abort();
        server.stop().await;
        let lines = lines(&logs, "calls.log");
        assert_eq!(lines.len(), wanted, "{sessions}: {lines:?}");
    }
}
