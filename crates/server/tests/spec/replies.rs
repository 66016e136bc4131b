//! Which halves of a reply a client gets, and how the text half is written.

use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::message::tool_call;
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

/// A greeting of a client with this name.
fn greeting(client: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": client, "version": "1"}}})
}

/// What a request of 2026-07-28 says of its client.
fn introduction(client: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}})
}

fn tools_list() -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
}

/// The tool list and a reply, as a greeted client gets them.
async fn as_client(setup: Setup, client: &str) -> (Value, Value) {
    let mut wire = setup.wire(Transport::Stdio).await;
    wire.request(&greeting(client)).await;
    let list = wire.request(&tools_list()).await;
    let reply = wire.request(&tool_call(3, "list_roots", &json!({}))).await;
    (list["result"].clone(), reply["result"].clone())
}

fn has_output_schemas(list: &Value) -> bool {
    let tools = list["tools"].as_array().expect("tools");
    let with = tools.iter().filter(|tool| tool["outputSchema"].is_object());
    let count = with.count();
    assert!(count == 0 || count == tools.len(), "{list:#}");
    count > 0
}

fn halves(reply: &Value) -> (bool, bool) {
    (
        reply["content"][0]["text"].is_string(),
        reply["structuredContent"].is_object(),
    )
}

#[tokio::test]
async fn workspace_clients_that_drop_the_text_get_text_alone() {
    let tree = Tree::new();
    for (client, structured) in [
        ("claude-code", false),
        ("codex-mcp-client", false),
        ("opencode", false),
        ("Visual Studio Code - Insiders", false),
        ("claude-ai", true),
        ("", true),
    ] {
        let (list, reply) = as_client(Workspace::setup(&tree), client).await;
        assert_eq!(has_output_schemas(&list), structured, "{client}");
        assert_eq!(halves(&reply), (true, structured), "{client}: {reply:#}");
        assert_eq!(list["ttlMs"], 0, "{client}");
        assert_eq!(list["cacheScope"], "private", "{client}");
    }
}

#[tokio::test]
async fn workspace_the_operator_decides_over_the_client_name() {
    let tree = Tree::new();
    for (replies, expected) in [
        ("both", (true, true)),
        ("text", (true, false)),
        ("structured", (false, true)),
    ] {
        for client in ["claude-code", "claude-ai"] {
            let setup = Workspace::setup(&tree).arguments(["--replies", replies]);
            let (list, reply) = as_client(setup, client).await;
            assert_eq!(halves(&reply), expected, "{replies} {client}: {reply:#}");
            assert_eq!(has_output_schemas(&list), expected.1, "{replies} {client}");
            assert_eq!(list["cacheScope"], "public", "{replies} {client}");
        }
    }
}

#[tokio::test]
async fn workspace_requests_that_introduce_their_client_are_answered_for_it() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let mut wire = Workspace::setup(&tree).wire(transport).await;
        for (client, structured) in [("claude-code", false), ("claude-ai", true)] {
            let mut list = tools_list();
            list["params"]["_meta"] = introduction(client);
            let mut call = tool_call(3, "list_roots", &json!({}));
            call["params"]["_meta"] = introduction(client);
            let (list, reply) = match transport {
                Transport::Stdio => (wire.request(&list).await, wire.request(&call).await),
                Transport::Http => {
                    let revision = ("MCP-Protocol-Version", "2026-07-28");
                    let listing = [revision, ("Mcp-Method", "tools/list")];
                    let method = ("Mcp-Method", "tools/call");
                    let calling = [revision, method, ("Mcp-Name", "list_roots")];
                    let http = wire.http();
                    (
                        http.post("/mcp", &listing, &list).await.json(),
                        http.post("/mcp", &calling, &call).await.json(),
                    )
                }
            };
            assert_eq!(has_output_schemas(&list["result"]), structured, "{client}");
            assert_eq!(halves(&reply["result"]), (true, structured), "{reply:#}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_text_can_be_json_for_programs() {
    let tree = Tree::new().file("f", "x");
    let setup = Workspace::setup(&tree).set("server.text", "json");
    let server = setup.start(Transport::Stdio).await;
    let arguments = json!({"root": "workspace", "path": "f"});
    let reply = server.call("read_file", arguments).await;
    let text: Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(text, reply.structured, "{}", reply.story());
    assert_eq!(text["content"], "x");
}

#[tokio::test]
async fn workspace_the_setting_of_replies_is_one_of_four_words() {
    let ended = program()
        .arguments(["--replies", "neither", "."])
        .run()
        .await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
}
