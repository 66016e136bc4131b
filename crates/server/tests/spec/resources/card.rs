//! What the server says of itself before and while clients talk to it: card, icon, traces.

use testkit::{Transport, Tree, Value, json};

use super::{Era, Peer, over_all};
use crate::harness::ToolSet;
use crate::workspace::Workspace;

#[tokio::test]
async fn card_tells_what_the_server_is_and_where() {
    let tree = Tree::new();
    let tokens = Tree::new().file("tokens", "alpha-1-of-sixteen\n");
    let wire = Workspace::setup(&tree)
        .set("server.bearer_tokens_file", json!(tokens.join("tokens")))
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    for path in ["/mcp", "/mcp/workspace"] {
        let reply = http.get(&format!("{path}/server-card")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("application/mcp-server-card+json"));
        assert!(
            reply
                .header("cache-control")
                .is_some_and(|kept| kept.contains("max-age"))
        );
        let card: Value = serde_json::from_str(&reply.body).expect("JSON");
        let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../server.json");
        let published: Value =
            serde_json::from_str(&testkit::text_of(published.as_ref())).expect("JSON");
        for field in ["name", "description", "version"] {
            assert_eq!(card[field], published[field], "{field}");
        }
        assert_eq!(card["remotes"][0]["url"], http.url(path));
        assert_eq!(card["remotes"][0]["type"], "streamable-http");
        let revisions = card["remotes"][0]["supportedProtocolVersions"].as_array();
        assert!(revisions.is_some_and(|all| all.contains(&json!("2026-07-28"))));
        assert!(!reply.body.contains(tree.path().to_str().unwrap()));
    }
    assert_eq!(http.get("/mcp/other/server-card").await.status, 401);
    assert_eq!(
        http.send("DELETE", "/mcp/server-card", &[]).await.status,
        405
    );
    let forged = http
        .send("GET", "/mcp/server-card", &[("host", "evil.example")])
        .await;
    assert_ne!(forged.status, 200);
}

#[tokio::test]
async fn card_icon_comes_with_the_name() {
    let tree = Tree::new();
    let mut peer = Peer::new(Workspace::setup(&tree), Transport::Stdio, Era::Newest).await;
    let found = peer.ok("server/discover", json!({})).await;
    let icon = &found["_meta"]["io.modelcontextprotocol/serverInfo"]["icons"][0];
    assert_eq!(icon["mimeType"], "image/svg+xml", "{found}");
    let source = icon["src"].as_str().unwrap();
    assert!(source.starts_with("data:image/svg+xml;base64,") && source.len() < 1000);
}

#[tokio::test]
async fn card_traces_are_in_the_log() {
    let tree = Tree::new().file("f", "x");
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
            let meta = json!({"traceparent": trace, "tracestate": "vendor=1"});
            let read = json!({"uri": "fs://workspace/f", "_meta": meta});
            peer.ok("resources/read", read).await;
            let call = json!({"name": "read_file", "_meta": meta,
                "arguments": {"path": "missing"}});
            peer.ok("tools/call", call).await;
            for outcome in ["ok", "error"] {
                let line = peer.wire.logged(|line| line["outcome"] == outcome).await;
                assert_eq!(line["traceparent"], trace, "{line}");
                assert_eq!(line["tracestate"], "vendor=1", "{line}");
            }
            let odd = json!({"uri": "fs://workspace/", "_meta": {"traceparent": "x\ny"}});
            peer.ok("resources/read", odd).await;
            let line = peer.wire.logged(|line| line["path"] == ".").await;
            assert!(line.get("traceparent").is_none(), "{line}");
        },
    )
    .await;
}
