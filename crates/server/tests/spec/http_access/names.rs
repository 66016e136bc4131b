//! Hosts, origins and the shape of requests.

use testkit::{Transport, Tree, Wire, json};

use super::{list_roots, status};
use crate::harness::ToolSet;
use crate::workspace::Workspace;

async fn open_to(hosts: &[&str], origins: &[&str]) -> (Tree, Wire) {
    let tree = Tree::new().file("f", "x");
    let setup = Workspace::setup(&tree)
        .set("server.allowed_hosts", json!(hosts))
        .set("server.allowed_origins", json!(origins));
    let wire = setup.wire(Transport::Http).await;
    (tree, wire)
}

fn post(headers: &str) -> Vec<u8> {
    let body = list_roots().to_string();
    let fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close";
    let length = body.len();
    format!("POST /mcp HTTP/1.1\r\n{fixed}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[tokio::test]
async fn hosts_of_strangers_are_refused_and_told_what_to_configure() {
    let (_tree, wire) = open_to(&["files.example"], &[]).await;
    let port = wire.http().address().port();
    for host in ["localhost", "127.0.0.1", "files.example", "[::1]"] {
        let answer = wire
            .http()
            .raw(&post(&format!("Host: {host}:{port}\r\n")))
            .await;
        assert_eq!(status(&answer), Some(200), "{host}: {answer}");
    }
    for host in ["evil.com", "127.0.0.1.evil.com", "localhost.", "10.0.0.1"] {
        let answer = wire.http().raw(&post(&format!("Host: {host}\r\n"))).await;
        assert_eq!(status(&answer), Some(403), "{host}: {answer}");
        assert!(answer.contains("server.allowed_hosts"), "{answer}");
    }
    for hosts in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: a b\r\n",
    ] {
        let answer = wire.http().raw(&post(hosts)).await;
        assert_eq!(status(&answer), Some(400), "{hosts:?}: {answer}");
    }
}

#[tokio::test]
async fn origins_of_strangers_are_refused() {
    let (_tree, wire) = open_to(&[], &["https://app.example"]).await;
    for origin in [
        "https://evil.example",
        "null",
        "http://app.example",
        "http://localhost:1",
    ] {
        let reply = wire
            .http()
            .post("/mcp", &[("origin", origin)], &list_roots())
            .await;
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
        assert!(reply.body.contains("server.allowed_origins"), "{reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    let listed = [("origin", "https://app.example")];
    let reply = wire.http().post("/mcp", &listed, &list_roots()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let allowed = reply.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://app.example"));
}

#[tokio::test]
async fn browsers_may_ask_first_from_listed_origins() {
    let (_tree, wire) = open_to(&[], &["https://app.example"]).await;
    let ask = |origin| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "content-type,mcp-protocol-version",
            ),
        ];
        async move { headers }
    };
    let headers = ask("https://app.example").await;
    let reply = wire.http().send("OPTIONS", "/mcp", &headers).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    let allowed = reply.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("mcp-protocol-version"), "{allowed}");
    let headers = ask("https://evil.example").await;
    let reply = wire.http().send("OPTIONS", "/mcp", &headers).await;
    assert_eq!(reply.status, 403, "{reply:?}");
}

#[tokio::test]
async fn a_body_has_one_length() {
    let (_tree, wire) = open_to(&[], &[]).await;
    for order in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let request = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{order}\r\n0\r\n\r\n");
        let answer = wire.http().raw(request.as_bytes()).await;
        assert_eq!(status(&answer), Some(400), "{answer}");
        assert!(answer.contains("exclude each other"), "{answer}");
    }
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd";
    let answer = wire.http().raw(request.as_bytes()).await;
    assert_eq!(status(&answer), Some(400), "{answer}");
}

#[tokio::test]
async fn nothing_hides_behind_a_body_of_unsaid_length() {
    let (_tree, wire) = open_to(&[], &[]).await;
    let body = list_roots().to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        body.len()
    );
    let answer = wire.http().raw(request.as_bytes()).await;
    assert_eq!(status(&answer), Some(200), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[tokio::test]
async fn absolute_addresses_count_like_hosts() {
    let (_tree, wire) = open_to(&[], &[]).await;
    let request =
        "GET http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = wire.http().raw(request.as_bytes()).await;
    assert_eq!(status(&answer), Some(403), "{answer}");
}

#[tokio::test]
async fn bodies_that_are_no_message_are_explained() {
    let (_tree, wire) = open_to(&[], &[]).await;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let cases = [
        ("nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":3,"x":"\ud800"}"#, -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600),
    ];
    for (body, code) in cases {
        let reply = wire.http().post_text("/mcp", &headers, body).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
        assert_eq!(reply.json()["error"]["code"], code, "{body}: {reply:?}");
    }
    let reply = wire.http().post_text("/mcp", &headers, "").await;
    assert_eq!(reply.status, 400, "{reply:?}");
}

#[tokio::test]
async fn media_types_are_read_as_people_write_them() {
    let (_tree, wire) = open_to(&[], &[]).await;
    let body = list_roots().to_string();
    let status = async |kind: &str, accept: &str| {
        let headers = [("content-type", kind), ("accept", accept)];
        let reply = wire.http().post_text("/mcp", &headers, &body).await;
        reply.status
    };
    assert_eq!(status("APPLICATION/JSON; charset=UTF-8", "*/*").await, 200);
    assert_eq!(status("text/plain", "*/*").await, 415);
    assert_eq!(status("application/json", "text/html").await, 406);
}

#[tokio::test]
async fn other_paths_and_methods_have_their_answers() {
    let (_tree, wire) = open_to(&[], &[]).await;
    let reply = wire.http().get("/other").await;
    assert_eq!(reply.status, 404, "{reply:?}");
    assert!(reply.body.contains("/mcp/workspace"), "{reply:?}");
    for (method, path) in [
        ("PUT", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("DELETE", "/health"),
        ("POST", "/metrics"),
    ] {
        let reply = wire.http().send(method, path, &[]).await;
        assert_eq!(reply.status, 405, "{method} {path}: {reply:?}");
    }
}
