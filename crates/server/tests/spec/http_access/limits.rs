//! How large, how slow and how many requests may be.

use std::time::Duration;

use testkit::{Transport, Tree, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{list_roots, status};
use crate::harness::program;

#[tokio::test]
async fn large_bodies_are_not_begun() {
    let tree = Tree::new();
    let setup = program()
        .root("workspace", tree.path())
        .set("server.max_body_size", 1000);
    let wire = setup.wire(Transport::Http).await;
    // Nothing of the body is sent: the answer cannot depend on it.
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
    let wire = program()
        .root("workspace", tree.path())
        .wire(Transport::Http)
        .await;
    let endless = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "x".repeat(1 << 20)
    );
    let answer = wire.http().raw(endless.as_bytes()).await;
    assert!(matches!(status(&answer), Some(431) | None), "{answer}");
    assert_eq!(wire.http().get("/health").await.status, 200);
}

/// Everything that a slow client can leave unfinished; the server gives each of them half a minute.
#[tokio::test]
async fn slow_clients_are_not_waited_for() {
    let tree = Tree::new().file("large", "x\n".repeat(4_000_000));
    let setup = program()
        .root("workspace", tree.path())
        .set("max_full_read_size", 16_000_000);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
        {"name": "read_file", "arguments": {"root": "workspace", "path": "large"}}});
    let read = read.to_string();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\n";
    let unread = format!("{head}Content-Length: {}\r\n\r\n{read}", read.len());
    let starts = [
        ("silent", String::new()),
        ("half a head", "GET /health HTTP/1.1\r\nHost:".to_owned()),
        (
            "half a body",
            format!("{head}Content-Length: 100\r\n\r\n{{"),
        ),
        (
            "idle",
            "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        ("not reading", unread),
    ];
    let mut tasks = tokio::task::JoinSet::new();
    for (what, start) in starts {
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            if what == "not reading" {
                // From the first byte of the reply on, longer than the server waits for one to be taken.
                stream.readable().await.unwrap();
                tokio::time::sleep(Duration::from_secs(40)).await;
            }
            let mut answer = Vec::new();
            let end = timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
            assert!(end.is_ok(), "{what}: the connection is still open");
            (what, answer)
        });
    }
    while let Some(ended) = tasks.join_next().await {
        let (what, answer) = ended.unwrap();
        match what {
            "half a body" => assert!(answer.starts_with(b"HTTP/1.1 408"), "{what}"),
            "not reading" => assert!(answer.len() < 8_000_000, "{what}: it was waited for"),
            _ => {}
        }
    }
    assert_eq!(wire.http().get("/health").await.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_cap_wait_for_their_turn() {
    let tree = Tree::new();
    let setup = program()
        .root("workspace", tree.path())
        .set("server.max_connections", 2);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let held = [
        TcpStream::connect(address).await.unwrap(),
        TcpStream::connect(address).await.unwrap(),
    ];
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
    let setup = program()
        .root("workspace", tree.path())
        .set("limits.max_concurrent_calls", 1)
        .set("limits.request_timeout", 300);
    let server = setup.start(Transport::Http).await;
    let hash = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hash_file",
        "arguments": {"root": "workspace", "path": "endless", "algorithm": "md5"}}});
    let http = server.http().clone();
    let long = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
    becomes(&server, "mcp_filesystem_calls_running 1").await;
    let short = server.spawn_call("read_file", json!({"root": "workspace", "path": "f"}));
    becomes(&server, "mcp_filesystem_calls_waiting 1").await;
    long.abort();
    assert_eq!(short.await.unwrap().ok()["content"], "x");
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed_although_it_sent_more_than_its_request() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let setup = program().root("workspace", tree.path());
    let server = setup.start(Transport::Http).await;
    let hash = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hash_file",
        "arguments": {"root": "workspace", "path": "endless", "algorithm": "md5"}}});
    let hash = hash.to_string();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{hash}\r\n", hash.len());
    let mut stream = TcpStream::connect(server.http().address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    becomes(&server, "mcp_filesystem_calls_running 1").await;
    drop(stream);
    becomes(&server, "mcp_filesystem_calls_running 0").await;
    let line = server.logged(|line| line["tool"] == "hash_file").await;
    assert_eq!(line["error_code"], "cancelled");
    // Its own time would have been half a minute.
    assert!(line["duration_ms"].as_f64().unwrap() < 20_000.0, "{line}");
}

/// Waits until the metrics have a line, for at most ten seconds.
async fn becomes(server: &testkit::Server, line: &str) {
    for _ in 0..1000 {
        let page = server.http().get("/metrics").await.body;
        if page.lines().any(|own| own == line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {line}");
}

#[tokio::test]
async fn metrics_tell_calls_refusals_and_connections() {
    let tree = Tree::new().file("f", "x");
    let setup = program().root("workspace", tree.path());
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
