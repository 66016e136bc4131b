//! One store for all, or one a client; a store that cannot be changed; beside `memory`.

use testkit::{Transport, Tree, json};

use super::MemoryTool;
use crate::harness::message::{initialize, tool_call};
use crate::harness::program;

#[tokio::test]
async fn memory_tool_each_client_has_its_store() {
    let tree = Tree::new()
        .file("tokens", "first-token-of-ann\nsecond-token-of-bob\n")
        .dir("notes");
    let wire = program()
        .set("toolsets", json!(["memory_tool"]))
        .set("memory_tool.store", "per_client")
        .set("server.bearer_tokens_file", tree.join("tokens").to_str())
        .root("notes", &tree.join("notes"))
        .wire(Transport::Http)
        .await;
    let call = |input: testkit::Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory", "arguments": input}});
    let headers = |token: &str| {
        vec![
            ("authorization".to_owned(), format!("Bearer {token}")),
            ("mcp-protocol-version".to_owned(), "2025-11-25".to_owned()),
        ]
    };
    let said = async |token: &str, input: testkit::Value| {
        let headers = headers(token);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = wire
            .http()
            .post("/mcp", &headers, &call(input))
            .await
            .json();
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let create =
        |text: &str| json!({"command": "create", "path": "/memories/me", "file_text": text});
    for (token, text) in [
        ("first-token-of-ann", "ann"),
        ("second-token-of-bob", "bob"),
    ] {
        assert_eq!(
            said(token, create(text)).await,
            "File created successfully at: /memories/me"
        );
    }
    for (token, text) in [
        ("first-token-of-ann", "ann"),
        ("second-token-of-bob", "bob"),
    ] {
        let view = json!({"command": "view", "path": "/memories/me"});
        assert!(said(token, view).await.ends_with(&format!("\t{text}")));
        let listed = said(token, json!({"command": "view", "path": "/memories"})).await;
        assert_eq!(listed.matches("/memories/").count(), 1, "{listed}");
    }
    assert_eq!(testkit::names_in(&tree.join("notes")).len(), 2);
    let up = json!({"command": "view", "path": "/memories/../client-x"});
    assert!(
        said("first-token-of-ann", up)
            .await
            .contains("would escape")
    );
}

/// A session ends, and its client's memory stays.
#[tokio::test]
async fn memory_tool_a_client_finds_its_store_in_its_next_session() {
    let tree = Tree::new();
    let wire = program()
        .set("toolsets", json!(["memory_tool"]))
        .set("memory_tool.store", "per_client")
        .set("server.sessions", "on")
        .root("notes", tree.path())
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let create = json!({"command": "create", "path": "/memories/me", "file_text": "kept"});
    let view = json!({"command": "view", "path": "/memories/me"});
    for (input, words) in [(create, "File created successfully"), (view, "kept")] {
        let begun = http.post("/mcp", &[], &initialize(&json!({}))).await;
        let session = begun.header("mcp-session-id").expect("a session");
        let session = [
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let told = http
            .post("/mcp", &session, &tool_call(1, "memory", &input))
            .await;
        assert!(told.body.contains(words), "{}", told.body);
    }
}

#[tokio::test]
async fn memory_tool_a_read_only_store_can_be_viewed() {
    let tree = Tree::new().file("f", "x");
    let server = program()
        .set("toolsets", json!(["memory_tool"]))
        .root_with(
            "notes",
            tree.path(),
            json!({"allowed_tools": ["*"], "read_only": true}),
        )
        .endpoint("/mcp/memory_tool")
        .start(Transport::Http)
        .await;
    let viewed = server
        .call("memory", json!({"command": "view", "path": "/memories/f"}))
        .await;
    assert!(!viewed.is_error, "{}", viewed.story());
    let deleted = server
        .call(
            "memory",
            json!({"command": "delete", "path": "/memories/f"}),
        )
        .await;
    assert!(deleted.is_error && tree.has("f"), "{}", deleted.story());
}

#[tokio::test]
async fn memory_tool_beside_memory_on_one_directory() {
    let tree = Tree::new();
    let path = tree.path().to_str().expect("text");
    let server = program()
        .arguments(["--toolset", "memory,memory_tool", "--base-path", path])
        .start(Transport::Stdio)
        .await;
    let create = json!({"command": "create", "path": "/memories/f", "file_text": "x"});
    server.call("memory", create).await;
    let viewed = server.call("view", json!({"path": "f"})).await;
    assert_eq!(viewed.ok()["content"], "x");
}

#[tokio::test]
async fn memory_tool_needs_a_base_path() {
    for set in ["memory_tool", "memory"] {
        let ended = program()
            .arguments(["--toolset", set])
            .refuse(Transport::Stdio)
            .await;
        let line = ended.stderr.join("\n");
        assert_eq!(ended.code, Some(1), "{line}");
        assert!(
            line.contains("--base-path") && line.contains("BASE_PATH"),
            "{line}"
        );
    }
    let tree = Tree::new();
    let memory = MemoryTool::start(tree, Transport::Stdio).await;
    assert!(memory.view("/memories").await.ends_with("\t/memories"));
}
