//! How large, how slow and how many requests may be.

use std::net::SocketAddr;
use std::time::Duration;

use testkit::{Transport, Tree, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{list_roots, status};
use crate::harness::message::{hash_endless, tool_call};
use crate::harness::{ToolSet, metrics_show, program};
use crate::workspace::Workspace;

#[tokio::test]
async fn large_bodies_are_not_begun() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree).set("server.max_body_size", 1000);
    let wire = setup.wire(Transport::Http).await;
    // No byte of the body is sent, so the answer cannot depend on it.
    let said = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n";
    let answer = wire.http().raw(said.as_bytes()).await;
    assert_eq!(status(&answer), Some(413), "{answer}");
    assert!(answer.contains("server.max_body_size"), "{answer}");
    let chunk = format!("3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1001));
    let unsaid = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"
    );
    let answer = wire.http().raw(unsaid.as_bytes()).await;
    assert_eq!(status(&answer), Some(413), "{answer}");
}

#[tokio::test]
async fn endless_headers_are_refused() {
    let tree = Tree::new();
    let wire = Workspace::setup(&tree).wire(Transport::Http).await;
    let endless = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "x".repeat(1 << 20)
    );
    let answer = wire.http().raw(endless.as_bytes()).await;
    assert!(matches!(status(&answer), Some(431) | None), "{answer}");
    assert_eq!(wire.http().get("/health").await.status, 200);
}

/// The head of a call, up to its length.
const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\n";

/// Connects, sends some bytes and returns the connection.
async fn begin(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

/// Everything that arrives until the server closes the connection.
async fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let end = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    assert!(end.is_ok(), "the connection is still open");
    answer
}

#[tokio::test]
async fn slow_senders_are_not_waited_for() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree).set("server.client_timeout", 1);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let silent = begin(address, "").await;
    let half_a_head = begin(address, "GET /health HTTP/1.1\r\nHost:").await;
    let half_a_body = begin(address, &format!("{HEAD}Content-Length: 100\r\n\r\n{{")).await;
    let whole = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let idle = begin(address, whole).await;
    let half_a_later_head = begin(
        address,
        &format!("{whole}{whole}GET /health HTTP/1.1\r\nHo"),
    )
    .await;
    until_closed(silent).await;
    until_closed(half_a_head).await;
    let answer = until_closed(half_a_body).await;
    assert!(answer.starts_with(b"HTTP/1.1 408"), "half a body");
    let answer = until_closed(idle).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "idle after a request");
    let answer = until_closed(half_a_later_head).await;
    let answers = String::from_utf8_lossy(&answer).matches("200 OK").count();
    assert_eq!(answers, 2, "half a head after two requests");
    assert_eq!(wire.http().get("/health").await.status, 200);
}

#[tokio::test]
async fn slow_readers_are_not_waited_for() {
    let tree = Tree::new().file("large", "x\n".repeat(500_000));
    let setup = Workspace::setup(&tree)
        .set("server.client_timeout", 1)
        .arguments(["--log-level", "debug"]);
    let wire = setup.wire(Transport::Http).await;
    let arguments = json!({"root": "workspace", "path": "large"});
    let read = tool_call(1, "read_file", &arguments).to_string();
    let request = format!("{HEAD}Content-Length: {}\r\n\r\n{read}", read.len());
    let stream = begin(wire.http().address(), &request).await;
    let own_address = stream.local_addr().unwrap().to_string();
    wire.logged(|line| line["message"] == "a connection broke" && line["address"] == *own_address)
        .await;
    let answer = until_closed(stream).await;
    assert!(
        answer.len() < 1_000_000,
        "the server waited for the reader: {} bytes",
        answer.len()
    );
    assert_eq!(wire.http().get("/health").await.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_cap_wait_for_their_turn() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree)
        .set("server.max_connections", 2)
        .set("server.max_connections_per_address", 3);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let call = list_roots().to_string();
    let call = format!("{HEAD}Content-Length: {}\r\n\r\n{call}", call.len());
    let mut held = [begin(address, &call).await, begin(address, &call).await];
    for stream in &mut held {
        // A connection that was let in keeps its place.
        stream.read_exact(&mut [0; 12]).await.unwrap();
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    third.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let early = timeout(Duration::from_millis(300), third.read_to_end(&mut answer)).await;
    assert!(early.is_err(), "it was served beside {} others", held.len());
    drop(held);
    third.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn calls_beyond_the_cap_wait_for_their_turn() {
    let tree = Tree::new().sparse("endless", 1 << 42).file("f", "x");
    let setup = Workspace::setup(&tree)
        .set("limits.max_concurrent_calls", 1)
        .set("limits.request_timeout", 300);
    let server = setup.start(Transport::Http).await;
    let hash = hash_endless(1);
    let http = server.http().clone();
    let long = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
    metrics_show(&server, "mcp_filesystem_calls_running 1").await;
    let short = server.spawn_call("read_file", json!({"root": "workspace", "path": "f"}));
    metrics_show(&server, "mcp_filesystem_calls_waiting 1").await;
    long.abort();
    assert_eq!(short.await.unwrap().ok()["content"], "x");
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed_although_it_sent_more_than_its_request() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let setup = Workspace::setup(&tree);
    let server = setup.start(Transport::Http).await;
    let hash = hash_endless(1);
    let hash = hash.to_string();
    let request = format!("{HEAD}Content-Length: {}\r\n\r\n{hash}\r\n", hash.len());
    let mut stream = TcpStream::connect(server.http().address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    metrics_show(&server, "mcp_filesystem_calls_running 1").await;
    drop(stream);
    metrics_show(&server, "mcp_filesystem_calls_running 0").await;
    let line = server.logged(|line| line["tool"] == "hash_file").await;
    assert_eq!(line["error_code"], "cancelled");
    // Nobody stopped it: it would have run for half a minute.
    assert!(line["duration_ms"].as_f64().unwrap() < 20_000.0, "{line}");
}

#[tokio::test]
async fn metrics_tell_calls_refusals_and_connections() {
    let tree = Tree::new().file("f", "x");
    let setup = Workspace::setup(&tree);
    let server = setup.start(Transport::Http).await;
    server
        .call("read_file", json!({"root": "workspace", "path": "f"}))
        .await
        .ok();
    server
        .call("read_file", json!({"root": "workspace", "path": "no"}))
        .await
        .error();
    let refused = [("origin", "https://evil.example")];
    server.http().post("/mcp", &refused, &list_roots()).await;
    let page = server.http().get("/metrics").await;
    let kind = page.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    for line in [
        "mcp_filesystem_calls_total{toolset=\"workspace\",tool=\"read_file\",outcome=\"ok\"} 1",
        "mcp_filesystem_calls_total{toolset=\"workspace\",tool=\"read_file\",outcome=\"not_found\"} 1",
        "mcp_filesystem_call_duration_seconds_count{toolset=\"workspace\",tool=\"read_file\"} 2",
        "mcp_filesystem_refusals_total{status=\"403\"} 1",
    ] {
        assert!(
            page.body.lines().any(|own| own == line),
            "{line}\n{}",
            page.body
        );
    }
    assert!(!page.body.contains(&*tree.path().to_string_lossy()));
}

#[tokio::test]
async fn metrics_tell_of_the_cache_where_there_is_one() {
    let tree = Tree::new().dir("docs");
    let setup = program()
        .set("toolsets", json!(["guide"]))
        .set("guide.project_root", json!(tree.path()));
    let server = setup.start(Transport::Http).await;
    let file = json!({"path": "docs/a.md", "content": "hello"});
    server.call("guide_cache_file", file).await.ok();
    let page = server.http().get("/metrics").await.body;
    assert!(
        page.contains("mcp_filesystem_guide_cache_entries 1\n"),
        "{page}"
    );
    assert!(page.contains("mcp_filesystem_sessions 1\n"), "{page}");
}
