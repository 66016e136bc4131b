//! Sessions of clients up to 2025-11-25, if the operator wants them.

use testkit::{Http, Reply, Setup, Transport, Tree, json};

use super::list_roots;
use crate::harness::ToolSet;
use crate::harness::message::{initialize, tool_call};
use crate::workspace::Workspace;

fn with_sessions(tree: &Tree) -> Setup {
    Workspace::setup(tree).set("server.sessions", "on")
}

async fn begin(http: &Http, headers: &[(&str, &str)]) -> Reply {
    let request = initialize(&json!({}));
    http.post("/mcp", headers, &request).await
}

async fn call(http: &Http, session: &str, headers: &[(&str, &str)]) -> u16 {
    let mut all = vec![
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    all.extend(headers);
    http.post("/mcp", &all, &list_roots()).await.status
}

#[tokio::test]
async fn sessions_work_have_a_cap_and_end() {
    let tree = Tree::new();
    let wire = with_sessions(&tree)
        .set("server.max_sessions", 2)
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let first = begin(http, &[]).await;
    let first = first.header("mcp-session-id").unwrap().to_owned();
    let second = begin(http, &[]).await;
    assert!(
        second
            .header("mcp-session-id")
            .is_some_and(|own| own != first)
    );
    let third = begin(http, &[]).await;
    assert_eq!(third.status, 503, "{third:?}");
    assert!(third.body.contains("server.max_sessions"), "{third:?}");
    assert!(third.header("retry-after").is_some());
    assert_eq!(
        call(http, &first, &[]).await,
        200,
        "those who are in stay in"
    );
    let page = http.get("/metrics").await.body;
    assert!(page.contains("mcp_filesystem_sessions 2"), "{page}");

    let ended = http
        .send("DELETE", "/mcp", &[("mcp-session-id", &first)])
        .await;
    assert_eq!(ended.status, 204, "{ended:?}");
    let again = http
        .send("DELETE", "/mcp", &[("mcp-session-id", &first)])
        .await;
    assert_eq!(again.status, 404, "{again:?}");
    assert_eq!(call(http, &first, &[]).await, 404);
    assert_eq!(begin(http, &[]).await.status, 200, "there is room again");
    assert_eq!(call(http, "forged", &[]).await, 404);
}

/// The id of the last event in a stream.
fn last_id(events: &str) -> Option<&str> {
    let mut ids = events.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.next_back()
}

#[tokio::test]
async fn a_stream_that_broke_is_read_on_by_the_id_of_its_last_event() {
    let tree = Tree::new().file("f", "content");
    let wire = with_sessions(&tree).wire(Transport::Http).await;
    let http = wire.http();
    let session = begin(http, &[]).await;
    let session = session.header("mcp-session-id").unwrap();
    let newest = ("mcp-protocol-version", "2025-11-25");
    let own = [("mcp-session-id", session), newest];
    let read = tool_call(7, "read_file", &json!({"root": "workspace", "path": "f"}));
    let whole = http.post("/mcp", &own, &read).await.body;
    // What a client that lost the connection has seen: the first event, which only has an id.
    let (first, rest) = whole.split_once("\n\n").unwrap();
    assert!(
        rest.contains("\"id\":7") && !first.contains("\"id\":7"),
        "{whole}"
    );
    let resume = async |session: &str, last: &str| {
        let headers = [
            ("mcp-session-id", session),
            newest,
            ("accept", "text/event-stream"),
            ("last-event-id", last),
        ];
        http.send("GET", "/mcp", &headers).await
    };
    let resumed = resume(session, last_id(first).unwrap()).await;
    assert_eq!(resumed.header("content-type"), Some("text/event-stream"));
    assert_eq!(resumed.body, rest, "all that was missed, with the same ids");
    let behind_the_reply = resume(session, last_id(&whole).unwrap()).await;
    assert_eq!(
        (behind_the_reply.status, &*behind_the_reply.body),
        (200, "")
    );

    // Event ids are those of a session: in another one they lead nowhere.
    let other = begin(http, &[]).await;
    let other = other.header("mcp-session-id").unwrap();
    let foreign = resume(other, last_id(first).unwrap()).await;
    assert!(!foreign.body.contains("content"), "{foreign:?}");
    assert_eq!(resume("forged", last_id(first).unwrap()).await.status, 404);
}

#[tokio::test]
async fn a_session_is_its_holders_alone() {
    let (tree, tokens) = (
        Tree::new(),
        Tree::new().file("tokens", "one-of-the-two-tokens\ntwo-of-the-two-tokens\n"),
    );
    let setup = with_sessions(&tree).set("server.bearer_tokens_file", json!(tokens.join("tokens")));
    let wire = setup.wire(Transport::Http).await;
    let (one, two) = (
        ("authorization", "Bearer one-of-the-two-tokens"),
        ("authorization", "Bearer two-of-the-two-tokens"),
    );
    let begun = begin(wire.http(), &[one]).await;
    let session = begun.header("mcp-session-id").unwrap();
    assert_eq!(call(wire.http(), session, &[one]).await, 200);
    assert_eq!(call(wire.http(), session, &[two]).await, 404);
    let headers = [("mcp-session-id", session), two];
    let ended = wire.http().send("DELETE", "/mcp", &headers).await;
    assert_eq!(ended.status, 404, "{ended:?}");
    assert_eq!(call(wire.http(), session, &[one]).await, 200);
}

#[tokio::test]
async fn the_newest_revision_needs_no_session_where_there_are_some() {
    let tree = Tree::new();
    let setup = with_sessions(&tree).revision(testkit::ProtocolVersion::V_2026_07_28);
    let server = setup.start(Transport::Http).await;
    server.call("list_roots", json!({})).await.ok();
    let page = server.http().get("/metrics").await.body;
    assert!(page.contains("mcp_filesystem_sessions 0"), "{page}");
}

#[tokio::test]
async fn sessions_bring_no_more_calls_than_their_host_may_make() {
    let tree = Tree::new();
    let wire = with_sessions(&tree)
        .set("limits.rate", json!({"per_second": 1, "burst": 2}))
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let mut refused = 0;
    for _ in 0..6 {
        let begun = begin(http, &[]).await;
        let session = begun.header("mcp-session-id").unwrap();
        let headers = [
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let reply = http.post("/mcp", &headers, &list_roots()).await;
        refused += usize::from(reply.body.contains("rate_limited"));
    }
    assert!(refused >= 2, "{refused} of 6 calls were refused");
}

#[tokio::test]
async fn two_session_ids_are_refused_also_where_they_are_the_same() {
    let tree = Tree::new();
    let wire = with_sessions(&tree).wire(Transport::Http).await;
    let http = wire.http();
    let begun = begin(http, &[]).await;
    let session = begun.header("mcp-session-id").unwrap();
    let twice = [("mcp-session-id", session), ("mcp-session-id", session)];
    let refused = [
        http.post("/mcp", &twice, &list_roots()).await,
        http.send(
            "GET",
            "/mcp",
            &[twice[0], twice[1], ("accept", "text/event-stream")],
        )
        .await,
        http.send("DELETE", "/mcp", &twice).await,
        begin(http, &twice).await,
    ];
    for reply in refused {
        assert_eq!(reply.status, 400, "{reply:?}");
        let fault = "there is more than one Mcp-Session-Id header";
        assert!(reply.body.contains(fault), "{reply:?}");
    }
    assert_eq!(call(http, session, &[]).await, 200, "it is still there");
}

#[tokio::test]
async fn headers_that_repeat_nothing_of_the_body_are_refused() {
    let tree = Tree::new();
    let wire = Workspace::setup(&tree).wire(Transport::Http).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (header, value) in [("mcp-name", "read_file"), ("mcp-param-root", "workspace")] {
        let reply = wire.http().post("/mcp", &[(header, value)], &list).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        let words = reply.json()["error"]["message"].to_string();
        assert!(
            words
                .to_lowercase()
                .contains(&format!("unexpected {header} header")),
            "{words}"
        );
    }
    assert_eq!(wire.http().post("/mcp", &[], &list).await.status, 200);
}
