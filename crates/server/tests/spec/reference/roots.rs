//! Roots of a client narrow what is served, and never widen it.

use testkit::{Transport, Tree, Value, Wire, json};

use super::set::{setup, text};
use crate::harness::message::{initialize, initialized, tool_call};

/// Begins as a client with roots, and answers the question for them.
async fn begun(tree: &Tree, roots: &Value) -> Wire {
    let mut wire = setup()
        .arguments([text(tree.path())])
        .wire(Transport::Stdio)
        .await;
    wire.request(&initialize(&json!({"roots": {"listChanged": true}})))
        .await;
    wire.notify(&initialized()).await;
    answer(&mut wire, roots).await;
    wire
}

async fn answer(wire: &mut Wire, roots: &Value) {
    let question = wire.next().await.expect("a question");
    let question: Value = serde_json::from_str(&question).expect("JSON");
    assert_eq!(question["method"], "roots/list", "{question}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}});
    wire.send(&answer.to_string()).await;
}

async fn read(wire: &mut Wire, path: &str) -> Value {
    let call = tool_call(7, "read_text_file", &json!({"path": path}));
    wire.request(&call).await["result"].clone()
}

fn uri(tree: &Tree, path: &str) -> Value {
    json!([{"uri": format!("file://{}", text(&tree.join(path)))}])
}

fn tree() -> Tree {
    Tree::new()
        .file("f", "outer")
        .file("sub/g", "inner")
        .link("sub/up", "../f")
}

#[tokio::test]
async fn reference_roots_inside_narrow() {
    let tree = tree();
    let mut wire = begun(&tree, &uri(&tree, "sub")).await;
    assert_eq!(read(&mut wire, "g").await["content"][0]["text"], "inner");
    let host = text(&tree.join("f")).to_owned();
    for path in [host.as_str(), "up", "../f"] {
        let refused = read(&mut wire, path).await;
        assert_eq!(refused["isError"], true, "{path}: {refused}");
        let message = refused["content"][0]["text"].as_str().expect("a text");
        assert!(message.starts_with("Access denied"), "{message}");
    }
    // It changes its mind, and a call right behind already holds to that.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    wire.notify(&changed).await;
    answer(&mut wire, &uri(&tree, "")).await;
    assert_eq!(read(&mut wire, "f").await["content"][0]["text"], "outer");
}

#[tokio::test]
async fn reference_roots_outside_change_nothing() {
    let tree = tree();
    for roots in [
        json!([{"uri": "file:///"}, {"uri": "file:///etc"}]),
        json!([{"uri": "https://example.org/"}]),
        json!([]),
        uri(&tree, "missing"),
    ] {
        let mut wire = begun(&tree, &roots).await;
        let warning = wire
            .logged(|line| {
                line["message"]
                    .to_string()
                    .contains("none of the client's directories")
            })
            .await;
        assert_eq!(warning["level"], "WARN", "{roots}: {warning}");
        assert_eq!(
            read(&mut wire, "f").await["content"][0]["text"],
            "outer",
            "{roots}"
        );
        let refused = read(&mut wire, "/etc/passwd").await;
        assert_eq!(refused["isError"], true, "{roots}: {refused}");
    }
}

/// The newest revision has no way to ask a client beside its own requests.
#[tokio::test]
async fn reference_a_client_of_the_newest_revision_is_not_asked() {
    let tree = tree();
    let mut wire = setup()
        .arguments([text(tree.path())])
        .wire(Transport::Stdio)
        .await;
    let call = json!({"name": "read_text_file", "arguments": {"path": "f"}});
    let mut call = crate::resources::message(crate::resources::Era::Newest, 1, "tools/call", call);
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    call["params"]["_meta"][capabilities] = json!({"roots": {}});
    // A question of the server would come before the answer.
    let answer = wire.request(&call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "outer", "{answer}");
}

#[tokio::test]
async fn reference_a_client_without_roots_is_not_asked() {
    let tree = tree();
    let mut wire = setup()
        .arguments([text(tree.path())])
        .wire(Transport::Stdio)
        .await;
    wire.request(&initialize(&json!({}))).await;
    wire.notify(&initialized()).await;
    assert_eq!(read(&mut wire, "f").await["content"][0]["text"], "outer");
}
