//! The budget of bytes: request bodies, replies, session streams and uploads, by client and in all.

use std::net::SocketAddr;

use testkit::{Server, Setup, Transport, Tree, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use super::connections::{ATTACKER, OTHER, ask, connect};
use super::{few_or_all, status};
use crate::harness::machine::said;
use crate::harness::message::{initialize, tool_call};
use crate::harness::{ToolSet, becomes, becomes_in_ten_seconds, metrics_show, program};
use crate::workspace::Workspace;

const MIB: u64 = 1024 * 1024;

fn request(headers: &str, body: &Value, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn whole(body: &Value) -> String {
    request("", body, body.to_string().len())
}

/// A value on the page of metrics.
async fn metric(server: &Server, name: &str) -> u64 {
    let page = server.http().get("/metrics").await.body;
    let value = page.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

/// Sends almost all of a body of 16 MiB, as far as the server takes it, and waits.
async fn unfinished(address: SocketAddr) {
    let mut stream = connect(ATTACKER, address).await;
    let head = request("", &json!(""), 16 * 1024 * 1024);
    let _ = stream.write_all(head.as_bytes()).await;
    let piece = vec![b' '; 1024 * 1024];
    for _ in 0..15 {
        // A body that is refused is not read to its end.
        let _ = stream.write_all(&piece).await;
    }
    std::future::pending().await
}

#[tokio::test]
async fn unfinished_bodies_of_one_client_have_a_bound_and_leave_no_memory_behind() {
    let tree = Tree::new().file("f", "x");
    let setup = Workspace::setup(&tree)
        .set("server.client_timeout", 600)
        .set("durability", "fast");
    let server = setup.start(Transport::Http).await;
    server
        .call("read_file", json!({"root": "workspace", "path": "f"}))
        .await
        .ok();
    let idle = server.memory().resident;
    let (address, bodies) = (server.http().address(), few_or_all(12, 188));
    let attackers: Vec<_> = (0..bodies)
        .map(|_| tokio::spawn(unfinished(address)))
        .collect();
    // Two of them fit into the share of one client; the others are told so.
    let refused = format!(
        "mcp_filesystem_refusals_total{{status=\"429\"}} {}",
        bodies - 2
    );
    metrics_show(&server, &refused).await;
    assert_eq!(
        metric(&server, "mcp_filesystem_held_bytes ").await,
        32 * MIB
    );
    let hanging = server.memory();
    assert!(hanging.peak <= idle + 64 * MIB, "{idle} -> {hanging:?}");

    let large = json!({"root": "workspace", "path": "own", "content": "y".repeat(100_000)});
    let write = tool_call(1, "write_file", &large);
    let mut other = connect(OTHER, address).await;
    let answer = ask(&mut other, &whole(&write)).await;
    assert!(
        answer.contains("\"isError\":false"),
        "another client has its share: {answer}"
    );
    let mut own = connect(ATTACKER, address).await;
    let answer = ask(&mut own, &whole(&write)).await;
    assert_eq!(status(&answer), Some(429), "{answer}");
    assert!(
        answer.to_ascii_lowercase().contains("retry-after: "),
        "{answer}"
    );
    assert!(
        answer.contains("limits.max_held_bytes_per_client"),
        "{answer}"
    );
    let small = json!({"root": "workspace", "path": "own", "content": "z"});
    let mut own = connect(ATTACKER, address).await;
    let answer = ask(&mut own, &whole(&tool_call(2, "write_file", &small))).await;
    assert!(
        answer.contains("\"isError\":false"),
        "a small change needs no room: {answer}"
    );
    assert_eq!(tree.text("own"), "z");

    attackers.iter().for_each(tokio::task::JoinHandle::abort);
    metrics_show(&server, "mcp_filesystem_held_bytes 0").await;
    let returned =
        becomes_in_ten_seconds(async || server.memory().resident <= idle + 16 * MIB).await;
    let after = server.memory().resident;
    said(&format!(
        "{bodies} unfinished bodies: idle {} MiB, peak {} MiB, after {} MiB",
        idle / MIB,
        hanging.peak / MIB,
        after / MIB
    ));
    assert!(returned, "{idle} -> {after}");
}

#[tokio::test]
async fn a_body_whose_length_is_not_told_is_counted_too() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree)
        .set("limits.max_held_bytes_per_client", MIB)
        .set("limits.max_held_bytes", 2 * MIB);
    let server = setup.start(Transport::Http).await;
    let mut stream = connect(ATTACKER, server.http().address()).await;
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = format!("40000\r\n{}\r\n", " ".repeat(0x40000));
    stream.write_all(piece.as_bytes()).await.unwrap();
    let counted = async || metric(&server, "mcp_filesystem_held_bytes ").await >= MIB / 4;
    assert!(becomes(counted).await, "what came is counted");
    drop(stream);
    metrics_show(&server, "mcp_filesystem_held_bytes 0").await;
}

/// Sends all but the last bytes of a body of so many, and keeps the connection.
async fn held_back(from: [u8; 4], address: SocketAddr, bytes: usize) -> TcpStream {
    let mut stream = connect(from, address).await;
    let head = request("", &json!(""), bytes);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; bytes - 100]).await.unwrap();
    stream
}

#[tokio::test]
async fn when_all_clients_together_hold_too_much_the_next_one_is_told_to_come_back() {
    const MOST: usize = 2 * 1024 * 1024;
    let tree = Tree::new();
    let setup = Workspace::setup(&tree)
        .set("server.client_timeout", 600)
        .set("limits.max_held_bytes_per_client", MOST * 3 / 4)
        .set("limits.max_held_bytes", MOST);
    let server = setup.start(Transport::Http).await;
    let address = server.http().address();
    let held = [
        held_back(ATTACKER, address, MOST / 2 - 1000).await,
        held_back(OTHER, address, MOST / 2 - 1000).await,
    ];
    let full = async || metric(&server, "mcp_filesystem_held_bytes ").await >= 2 * MIB - 4000;
    assert!(becomes(full).await, "both bodies are counted");
    let content = json!({"root": "workspace", "path": "f", "content": "y".repeat(MOST / 8)});
    let write = whole(&tool_call(1, "write_file", &content));
    let mut third = connect([127, 0, 0, 3], address).await;
    let answer = ask(&mut third, &write).await;
    assert_eq!(status(&answer), Some(503), "{answer}");
    let lower = answer.to_ascii_lowercase();
    assert!(lower.contains("retry-after: 5\r\n"), "{answer}");
    assert!(answer.ends_with("limits.max_held_bytes"), "{answer}");
    drop(held);
    metrics_show(&server, "mcp_filesystem_held_bytes 0").await;
    let mut third = connect([127, 0, 0, 3], address).await;
    let answer = ask(&mut third, &write).await;
    assert!(answer.contains("\"isError\":false"), "{answer}");
}

fn with_large_file(tree: &Tree) -> Setup {
    Workspace::setup(tree)
        .set("server.sessions", "on")
        .set("server.client_timeout", 600)
        .set("server.replies", "both")
        .set("max_full_read_size", 10 * MIB)
}

/// Connects with hardly any buffer of its own, so that what it does not read waits in the server.
async fn small_reader(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind(SocketAddr::new(ATTACKER.into(), 0)).unwrap();
    socket.connect(address).await.unwrap()
}

#[tokio::test]
async fn session_streams_that_nobody_reads_have_a_bound() {
    let tree = Tree::new()
        .file("large", "x".repeat(5 << 20))
        .file("f", "x");
    let server = with_large_file(&tree).start(Transport::Http).await;
    let idle = server.memory().resident;
    let address = server.http().address();
    let greeting = server
        .http()
        .post("/mcp", &[], &initialize(&json!({})))
        .await;
    let session = greeting.header("mcp-session-id").unwrap().to_owned();
    let readers = few_or_all(8, 40);
    let mut held = Vec::new();
    for id in 0..readers as u64 {
        let call = tool_call(
            id,
            "read_file",
            &json!({"root": "workspace", "path": "large"}),
        );
        let headers = format!("Mcp-Session-Id: {session}\r\n");
        let mut stream = small_reader(address).await;
        let call = request(&headers, &call, call.to_string().len());
        stream.write_all(call.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let count = async |outcome: &str| {
        let labels = format!("toolset=\"workspace\",tool=\"read_file\",outcome=\"{outcome}\"");
        metric(&server, &format!("mcp_filesystem_calls_total{{{labels}}} ")).await
    };
    let answered =
        becomes(async || count("ok").await + count("rate_limited").await == readers as u64);
    assert!(answered.await, "{} of {readers}", count("ok").await);
    let (served, refused) = (count("ok").await, count("rate_limited").await);
    assert!(
        served >= 1 && refused >= readers as u64 - 4,
        "{served} served, {refused} refused"
    );
    let bytes = metric(&server, "mcp_filesystem_held_bytes ").await;
    assert!(bytes <= 32 * MIB, "{bytes} bytes are held");
    let now = server.memory();
    said(&format!(
        "{readers} session readers that do not read: {served} served, {refused} refused, {} MiB held; idle {} MiB, \
         peak {} MiB, now {} MiB",
        bytes / MIB,
        idle / MIB,
        now.peak / MIB,
        now.resident / MIB
    ));
    assert!(now.peak <= idle + 128 * MIB, "{idle} -> {now:?}");
    let mut other = connect(OTHER, address).await;
    let hello = ask(&mut other, &whole(&initialize(&json!({})))).await;
    assert_eq!(
        status(&hello),
        Some(200),
        "another client is served: {hello}"
    );
    drop(held);
    // The session keeps a little for streams that are resumed.
    let released = async || metric(&server, "mcp_filesystem_held_bytes ").await < MIB;
    assert!(becomes(released).await, "their room is free again");
}

#[tokio::test]
async fn what_is_larger_than_a_share_is_served_alone() {
    let tree = Tree::new().file("large", "x".repeat(1_000_000));
    let setup = with_large_file(&tree).set("limits.max_held_bytes_per_client", 100_000);
    let server = setup.start(Transport::Http).await;
    for _ in 0..3 {
        let read = server
            .call("read_file", json!({"root": "workspace", "path": "large"}))
            .await;
        assert_eq!(read.ok()["content"].as_str().unwrap().len(), 1_000_000);
    }
}

#[tokio::test]
async fn chunks_of_uploads_are_counted_until_the_file_is_whole() {
    let tree = Tree::new().dir("docs");
    let setup = program()
        .set("toolsets", json!(["guide"]))
        .set("guide.project_root", json!(tree.path()))
        .set("limits.max_held_bytes_per_client", 280_000);
    let server = setup.start(Transport::Http).await;
    let chunk = |path: &str, index: u32| json!({"path": path, "content": "c".repeat(100_000), "chunk_index": index, "chunk_count": 2});
    server
        .call("guide_read_file", chunk("docs/a.md", 0))
        .await
        .ok();
    // The session keeps a little for streams that are resumed.
    let held = async || metric(&server, "mcp_filesystem_held_bytes ").await;
    let is_chunk = async || (100_000..110_000).contains(&held().await);
    assert!(becomes(is_chunk).await, "{} bytes are held", held().await);
    let refused = server.call("guide_read_file", chunk("docs/b.md", 0)).await;
    assert!(
        refused.story().contains("Too many bytes of this client"),
        "{}",
        refused.story()
    );
    // A small chunk of another one has room.
    let small = json!({"path": "docs/c.md", "content": "c", "chunk_index": 0, "chunk_count": 2});
    server.call("guide_read_file", small).await.ok();
}

/// Many searches at once, each with a reply of some megabytes: what they gather is counted before their replies are made.
#[tokio::test]
async fn searches_of_one_client_have_a_bound_while_they_run() {
    let line = format!("needle {}\n", "x".repeat(90));
    let tree = Tree::new().file("large", line.repeat(30_000));
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    let small = json!({"root": "workspace", "pattern": "needle", "max_results": 10});
    server.call("grep", small.clone()).await.ok();
    let idle = server.memory().resident;
    let large = json!({"root": "workspace", "pattern": "needle", "max_results": 1_000_000});
    let calls: Vec<_> = (0..24)
        .map(|_| server.spawn_call("grep", large.clone()))
        .collect();
    let mut served = 0;
    for call in calls {
        let outcome = call.await.expect("an outcome");
        if outcome.is_error {
            let code = &outcome.structured["error"]["code"];
            assert_eq!(code, "rate_limited", "{}", outcome.story());
        } else {
            served += 1;
        }
    }
    assert!(served > 0);
    let peak = server.memory().peak;
    assert!(
        peak <= idle + 256 * MIB,
        "{idle} -> {peak}, {served} served"
    );
    server.call("grep", small).await.ok();
}

/// Many reads at once of one byte each, for which all of a file is decoded.
#[tokio::test]
async fn reads_that_decode_a_whole_file_have_a_bound_however_little_they_return() {
    let text: Vec<u8> = "line\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [vec![0xff, 0xfe], text.repeat(800_000)].concat();
    let tree = Tree::new().file("large", marked);
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    let byte = |encoding: Value| {
        let mut read =
            json!({"root": "workspace", "path": "large", "offset_bytes": 0, "limit_bytes": 1});
        if !encoding.is_null() {
            read["encoding"] = encoding;
        }
        read
    };
    let idle = server.memory().resident;
    let calls: Vec<_> = (0..24)
        .map(|number| match number % 2 {
            0 => byte(json!("utf-16le")),
            _ => byte(Value::Null),
        })
        .map(|read| server.spawn_call("read_file", read))
        .collect();
    let mut served = 0;
    for call in calls {
        let outcome = call.await.expect("an outcome");
        if outcome.is_error {
            let error = &outcome.structured["error"];
            assert_eq!(error["code"], "rate_limited", "{}", outcome.story());
            assert_eq!(
                error["details"]["retry_after_ms"],
                1000,
                "{}",
                outcome.story()
            );
        } else {
            assert_eq!(outcome.structured["content"], "l");
            served += 1;
        }
    }
    assert!(served > 0);
    let peak = server.memory().peak;
    assert!(
        peak <= idle + 128 * MIB,
        "{idle} -> {peak}, {served} served"
    );
}
