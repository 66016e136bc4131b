//! Large replies: how much memory they take, and what becomes of one whose file changes while it is sent.

use std::net::SocketAddr;
use std::path::Path;

use testkit::{Server, Transport, Tree, Value, Wire, json, over_both};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::ToolSet;
use crate::harness::machine::said;
use crate::harness::message::{initialize, tool_call};
use crate::memory::Memory;
use crate::workspace::Workspace;

const MIB: u64 = 1024 * 1024;
/// What buffers and the program itself take besides.
const SLACK: u64 = 8 * MIB;

fn mib(bytes: u64) -> u64 {
    bytes / MIB
}

/// A large text whose pieces end inside of characters, with everything that JSON escapes.
fn text() -> String {
    let bytes = match std::env::var_os("LIMITS_EXHAUSTIVE") {
        Some(_) => 100_000_000,
        None => 20_000_000,
    };
    let line = "plain words, \"quotes\" and \\ and \u{1}\té€🦀\r\n";
    let text = line.repeat(bytes / line.len());
    text + "the end without one"
}

/// Asks for a file, and gives the reply as it came.
async fn viewed(wire: &mut Wire, transport: Transport, path: &str) -> String {
    let message = tool_call(1, "view", &json!({"path": path}));
    match transport {
        Transport::Http => wire.http().post("/mcp/memory", &[], &message).await.body,
        Transport::Stdio => {
            wire.send(&message.to_string()).await;
            wire.next().await.expect("a reply")
        }
    }
}

#[tokio::test]
async fn a_large_file_of_the_memory_is_sent_from_its_file() {
    let text = text();
    let tree = Tree::new().file("small", "x").file("large", &text);
    over_both(async |transport| {
        let mut wire = Memory::setup(&tree).wire(transport).await;
        if transport == Transport::Stdio {
            wire.request(&initialize(&json!({}))).await;
        }
        viewed(&mut wire, transport, "small").await;
        let idle = wire.memory().peak;
        let reply = viewed(&mut wire, transport, "large").await;
        let peak = wire.memory().peak;
        let line = wire.logged(|line| line["path"] == "large").await;
        let newline = usize::from(transport == Transport::Stdio);
        assert_eq!(line["response_size"], reply.len() + newline, "{line}");
        said(&format!(
            "view of {} MB over {transport:?}: idle {} MiB, peak {} MiB",
            text.len() / 1_000_000,
            mib(idle),
            mib(peak)
        ));
        let content = json!(text).to_string();
        assert_eq!(
            reply.matches(&content).count(),
            2,
            "both halves are the file"
        );
        let size = text.len();
        let end = format!(r#","encoding":"utf-8","size":{size}}},"isError":false}}}}"#);
        assert!(reply.ends_with(&end));
        assert!(peak <= idle + SLACK, "{idle} -> {peak}");
    })
    .await;
}

#[tokio::test]
async fn a_small_and_a_large_file_look_the_same() {
    let small = "a\u{7}\"é\n".repeat(100);
    let large = "a\u{7}\"é\n".repeat(300_000);
    let tree = Tree::new().file("small", &small).file("large", &large);
    for replies in ["both", "text", "structured"] {
        let setup = Memory::setup(&tree).arguments(["--replies", replies]);
        let server = setup.start(Transport::Http).await;
        for (path, text) in [("small", &small), ("large", &large)] {
            let arguments = json!({"path": path});
            let message = tool_call(1, "view", &arguments);
            let reply = server.http().post("/mcp/memory", &[], &message).await;
            let mut expected = String::from(r#"{"jsonrpc":"2.0","id":1,"result":{"content":["#);
            let json = json!(text).to_string();
            if replies != "structured" {
                expected += &format!(r#"{{"type":"text","text":{json}}}"#);
            }
            expected.push(']');
            if replies != "text" {
                let size = text.len();
                expected += &format!(
                    r#","structuredContent":{{"type":"file","content":{json},"encoding":"utf-8","size":{size}}}"#
                );
            }
            expected += r#","isError":false}}"#;
            assert!(reply.body == expected, "{replies} {path}");
            // A length that could be wrong is not given.
            let is_given = reply.header("content-length").is_some();
            assert_eq!(is_given, path == "small", "{replies} {path}");
        }
    }
}

/// Asks for the large file, lets it change once the reply has begun, and reads the rest of the reply; also tells how many
/// bytes the body has.
async fn reply_beside(address: SocketAddr, change: impl FnOnce()) -> (Value, usize) {
    let body = tool_call(1, "view", &json!({"path": "large"})).to_string();
    let request = format!(
        "POST /mcp/memory HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1000];
    stream.read_exact(&mut answer).await.unwrap();
    change();
    stream.read_to_end(&mut answer).await.unwrap();
    let body = unchunked(body_of(&answer));
    (parsed(&body), body.len())
}

fn body_of(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    &answer[end.expect("headers") + 4..]
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\r').expect("a size");
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[end + 2..][..size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

fn parsed(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    text.parse().expect("JSON, whatever became of the file")
}

#[expect(
    clippy::disallowed_methods,
    reason = "another program works on the same files"
)]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("a rename");
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent_is_cut_and_the_reply_says_so() {
    let line = "as it was\n";
    let text = line.repeat(3_000_000);
    let tree = Tree::new().file("large", &text);
    let server = Memory::setup(&tree).start(Transport::Http).await;
    let address = server.http().address();
    let words = "\n[the file changed while it was sent: what follows is left out; view it again]";

    let overwrite = || tree.write("large", "AS IT IS!\n".repeat(3_000_000));
    let shrink = || tree.write("large", "as it");
    for change in [&overwrite as &dyn Fn(), &shrink] {
        let (reply, bytes) = reply_beside(address, change).await;
        let is_cut =
            |line: &Value| line["message"] == "a reply was cut" && line["response_size"] == bytes;
        let line = server.logged(is_cut).await;
        assert!(line["logged_size"].as_u64() > Some(bytes as u64), "{line}");
        assert_eq!(line["path"], "large");
        let result = &reply["result"];
        assert_eq!(result["isError"], true);
        let shown = result["content"][0]["text"].as_str().unwrap();
        let shown = shown.strip_suffix(words).expect("it says so");
        assert!(shown.len() < text.len() && text.starts_with(shown));
        assert_eq!(result["structuredContent"]["content"], words);
        tree.write("large", &text);
    }
    let append = || tree.append("large", line);
    let (reply, _) = reply_beside(address, append).await;
    let result = &reply["result"];
    assert_eq!(
        result["isError"], false,
        "what was asked for is still there"
    );
    assert!(result["content"][0]["text"] == text && result["structuredContent"]["content"] == text);
    let replace = || {
        tree.write("new", "another");
        rename(&tree.join("new"), &tree.join("large"));
    };
    tree.write("large", &text);
    let (reply, _) = reply_beside(address, replace).await;
    assert_eq!(
        reply["result"]["isError"], false,
        "the old file is still open"
    );
}

/// Asks for a large reply, and checks how much memory it takes above what is resident after a small one.
async fn takes_at_most_twice(server: &Server, tool: &str, small: Value, large: Value) {
    server.call(tool, small).await.ok();
    let idle = server.memory().peak;
    let message = tool_call(1, tool, &large);
    let reply = server.http().post("/mcp", &[], &message).await;
    let (size, peak) = (reply.body.len() as u64, server.memory().peak);
    said(&format!(
        "{tool} with a reply of {} MiB: idle {} MiB, peak {} MiB",
        mib(size),
        mib(idle),
        mib(peak)
    ));
    assert!(size > 10 * MIB, "{tool}: {size}");
    // What the C library keeps of the pieces that a list is made of is part of it.
    assert!(
        peak <= idle + 2 * size + SLACK,
        "{tool}: {size}: {idle} -> {peak}"
    );
}

#[tokio::test]
async fn a_large_search_takes_little_more_than_twice_its_reply() {
    let line = format!("needle {}\n", "x".repeat(30));
    let mut tree = Tree::new().file("small", "needle\n");
    for number in 0..100 {
        tree = tree.file(format!("directory/of/file{number}.txt"), line.repeat(1200));
    }
    // Otherwise that is also how much text a search returns.
    let setup = Workspace::setup(&tree).set("limits.max_file_size", 100 * MIB);
    let server = setup.start(Transport::Http).await;
    let search = |most: u64| json!({"root": "workspace", "path": ".", "pattern": "needle", "max_results": most});
    takes_at_most_twice(&server, "grep", search(1), search(1_000_000)).await;
}

#[tokio::test]
async fn large_lists_take_little_more_than_twice_their_replies() {
    let mut tree = Tree::new().file("small/file", "");
    for number in 0..100_000 {
        tree = tree.file(format!("directory/file{number:06}.txt"), "");
    }
    for tool in ["list_folder", "glob"] {
        let server = Workspace::setup(&tree).start(Transport::Http).await;
        let request = |path: &str| match tool {
            "glob" => {
                json!({"root": "workspace", "path": path, "pattern": "*", "max_results": 1_000_000})
            }
            _ => json!({"root": "workspace", "path": path}),
        };
        takes_at_most_twice(&server, tool, request("small"), request("directory")).await;
    }
}
