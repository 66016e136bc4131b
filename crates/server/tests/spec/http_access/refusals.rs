//! Requests that were refused before they became calls: each is in the log, the metrics and the operator's page.

use testkit::{Http, Tree, Value, Wire, json};

use super::admin::{asked, served, setup};
use super::{list_roots, status};
use crate::harness::becomes;
use crate::harness::message::tool_call;

#[tokio::test]
async fn admin_requests_that_never_became_calls_are_told_by_sender() {
    let (tree, tokens) = (Tree::new(), Tree::new());
    tokens.write("clients", "client-token-0123456789\n");
    let setup =
        setup(&tree, &tokens).set("server.bearer_tokens_file", json!(tokens.join("clients")));
    let (wire, admin) = served(setup).await;
    assert_eq!(asked(&admin, "clients").await["refused"], json!([]));
    let wrong = ("authorization", "Bearer wrong-token-0123456789");
    for headers in [&[][..], &[wrong]] {
        let reply = wire.http().post("/mcp?x=1", headers, &list_roots()).await;
        assert_eq!(reply.status, 401);
    }
    let foreign = b"GET /mcp HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(wire.http().raw(foreign).await.starts_with("HTTP/1.1 403 "));
    let token = ("authorization", "Bearer client-token-0123456789");
    let plain = wire.http().post_text("/mcp", &[token], "{").await;
    assert_eq!(plain.status, 415);
    let told = asked(&admin, "clients").await;
    let refused = told["refused"].as_array().expect("a list");
    let of = |status: u64| refused.iter().find(|one| one["status"] == status);
    let unknown = of(401).expect("a row");
    assert_eq!(unknown["sender"], "127.0.0.1");
    assert_eq!(unknown["count"], 2);
    assert_eq!(unknown["path"], "/mcp", "never the query");
    let reason = unknown["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("the token is not known here"), "{reason}");
    assert_eq!(of(403).expect("a row")["count"], 1);
    assert_eq!(of(415).expect("a row")["path"], "/mcp/workspace");
    assert_eq!(told["clients"], json!([]), "nobody called");
    assert!(!told.to_string().contains("wrong-token"), "{told}");
}

/// The operator's name for the client, and its token.
const DOCS: (&str, &str) = ("authorization", "Bearer docs-token-0123456789");
const DOCS_DIGEST: &str = "sha256:d857bfb7f97e4c36761a2f72506a7365ec21fe36f4696e4f44734039ed9c9835";

/// The requests of the client `docs` that are refused, each with its status and a word of the reason.
async fn refuse_each_way(http: &Http) -> Vec<(u16, &'static str)> {
    let json = ("content-type", "application/json");
    let both = ("accept", "application/json, text/event-stream");
    let mut refused = Vec::new();
    let bodies = [
        ("{", "Parse error"),
        ("[]", "batches are not taken"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "does not accept JSON-RPC responses",
        ),
    ];
    for (body, word) in bodies {
        let reply = http.post_text("/mcp", &[DOCS, json, both], body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        refused.push((400, word));
    }
    let other_tool = [DOCS, ("mcp-name", "another_tool")];
    let reply = http.post("/mcp", &other_tool, &list_roots()).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    refused.push((400, "another_tool"));
    for (method, path, status, word) in [
        ("PUT", "/mcp", 405, "use POST"),
        (
            "GET",
            "/mcp/files",
            404,
            "there are /mcp, /mcp/workspace, /health and",
        ),
        (
            "GET",
            "/metrics",
            404,
            "there are /mcp, /mcp/workspace, /health and",
        ),
        (
            "GET",
            "/elsewhere",
            404,
            "there are /mcp, /mcp/workspace, /health and",
        ),
    ] {
        let reply = http.send(method, path, &[DOCS]).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        refused.push((status, word));
    }
    refused
}

/// Stops the server and returns the lines of its log about refused requests.
async fn refusals_in_the_log(wire: Wire) -> Vec<Value> {
    let lines = wire.stop().await.log().into_iter();
    let refused = lines.filter(|line| line["message"] == "request refused");
    refused.collect()
}

#[tokio::test]
async fn admin_what_a_known_client_is_refused_is_told_with_its_name() {
    let (tree, tokens) = (Tree::new(), Tree::new());
    let clients = json!([
        {"name": "docs", "tokens": [DOCS_DIGEST], "toolsets": ["workspace"], "roots": {"workspace": {}}}
    ]);
    let setup = setup(&tree, &tokens)
        .set("toolsets", json!(["workspace", "files"]))
        .set("server.sessions", "off")
        .set("clients", clients);
    let (wire, admin) = served(setup).await;
    let refused = refuse_each_way(wire.http()).await;
    let told = asked(&admin, "clients").await["refused"].clone();
    let counts = told.as_array().expect("a list").iter();
    let counts = counts.map(|row| format!("{} {} {}", row["client"], row["status"], row["count"]));
    let mut counts: Vec<String> = counts.collect();
    counts.sort();
    assert_eq!(
        counts,
        [r#""docs" 400 4"#, r#""docs" 404 3"#, r#""docs" 405 1"#]
    );
    let lines = refusals_in_the_log(wire).await;
    assert_eq!(lines.len(), refused.len(), "{lines:?}");
    for (line, (status, word)) in lines.iter().zip(&refused) {
        assert_eq!(line["status"], *status, "{line}");
        assert_eq!(line["client"], "docs", "{line}");
        assert!(line["reason"].to_string().contains(word), "{word}: {line}");
    }
    // What exists, but not for the client, was probed on purpose.
    let probes: Vec<&Value> = lines.iter().map(|line| &line["violation"]).collect();
    let (endpoint, none) = (json!("endpoint"), Value::Null);
    assert_eq!(probes[5..], [&endpoint, &endpoint, &none]);
    assert!(probes[..5].iter().all(|one| one.is_null()), "{probes:?}");
}

#[tokio::test]
async fn admin_bytes_that_are_no_request_are_told_by_sender() {
    let (tree, tokens) = (Tree::new(), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let garbage = wire.http().raw(b"\x16\x03\x01 no request\r\n\r\n").await;
    assert!(garbage.starts_with("HTTP/1.1 400 "), "{garbage}");
    let large = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let large = wire.http().raw(large.as_bytes()).await;
    // The connection may be closed before the client has read the answer.
    assert!(matches!(status(&large), Some(431) | None), "{large}");
    let both = becomes(async || {
        let told = asked(&admin, "clients").await;
        let has = |code: u64| {
            let rows = told["refused"].as_array().into_iter().flatten();
            rows.filter(|row| row["status"] == code && row["count"] == 1)
                .count()
                == 1
        };
        has(400) && has(431)
    });
    assert!(both.await);
    let call = tool_call(1, "list_roots", &json!({}));
    assert_eq!(wire.http().post("/mcp", &[], &call).await.status, 200);
    let metrics = wire.http().get("/metrics").await.body;
    let counted = |status: u16| format!("refusals_total{{status=\"{status}\"}} 1");
    assert!(
        metrics.contains(&counted(400)) && metrics.contains(&counted(431)),
        "{metrics}"
    );
    let lines = refusals_in_the_log(wire).await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line["address"] == "127.0.0.1"));
}
