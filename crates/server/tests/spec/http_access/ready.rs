//! `/ready`, and what a server does between SIGTERM and its end.

#![expect(
    clippy::disallowed_methods,
    reason = "a test moves a root away behind the server's back"
)]

use std::path::Path;
use std::sync::Arc;

use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::ToolSet;
use crate::harness::becomes;
use crate::harness::message::tool_call;
use crate::workspace::Workspace;

fn setup(tree: &Tree) -> Setup {
    Workspace::setup(tree).set("durability", "fast")
}

fn call(id: u64, tool: &str, mut arguments: Value) -> Value {
    arguments["root"] = json!("workspace");
    tool_call(id, tool, &arguments)
}

#[tokio::test]
async fn ready_says_whether_the_roots_answer() {
    let tree = Tree::new().dir("root");
    let server = Setup::new(env!("CARGO_BIN_EXE_mcp-filesystem"))
        .root("workspace", &tree.join("root"))
        .start(Transport::Http)
        .await;
    let reply = server.http().get("/ready").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body.as_str(), "ready");
    assert_eq!(server.http().send("POST", "/ready", &[]).await.status, 405);
    std::fs::rename(tree.join("root"), tree.join("elsewhere")).unwrap();
    let is_told = becomes(async || server.http().get("/ready").await.status == 503);
    assert!(is_told.await, "a root that is gone is not ready");
    let reply = server.http().get("/ready").await;
    assert_eq!(reply.body, "a root does not answer", "and names none");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(server.http().get("/health").await.status, 200);
    let logged = server.stop().await.log();
    let is_named = |line: &Value| line["level"] == "WARN" && line["root"] == "workspace";
    let words = "a root does not answer: the server is not ready";
    let told = logged.iter().filter(|line| line["message"] == words);
    assert_eq!(told.filter(|line| is_named(line)).count(), 1, "{logged:?}");
}

#[tokio::test]
async fn ready_is_over_at_sigterm_while_running_calls_finish_and_every_answer_ends_its_connection()
{
    let tree = Tree::new().file("f", "text");
    let server = setup(&tree).start(Transport::Http).await;
    let http = Arc::new(server.http().clone());
    let watching = Arc::clone(&http);
    let watch = tokio::spawn(async move {
        let arguments = json!({"path": "f", "timeout_seconds": 60});
        watching
            .post("/mcp", &[], &call(1, "watch", arguments))
            .await
    });
    let runs = becomes(async || server.has_open(Path::new("anon_inode:inotify")));
    assert!(runs.await, "the watch waits");
    server.terminate();
    assert!(becomes(async || http.get("/ready").await.status == 503).await);
    let draining = http.get("/ready").await;
    assert_eq!(draining.body, "draining");
    assert_eq!(draining.header("retry-after"), Some("1"));
    assert_eq!(http.get("/health").await.status, 200);
    let late = http
        .post("/mcp", &[], &call(2, "read_file", json!({"path": "f"})))
        .await;
    assert_eq!(late.status, 200);
    assert_eq!(late.header("connection"), Some("close"));
    tree.write("f", "changed");
    let reply = watch.await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("changed f"), "{}", reply.body);
}
