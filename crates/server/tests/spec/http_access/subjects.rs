//! What belongs to the subject of an access token: to none of another kind with the same name, whatever client it is.

use testkit::{Http, Transport, Tree, Value, json};

use super::issuer::{ISSUER, KeyEndpoint, SERVER, SigningKey, claims, now, with};
use super::oauth::{SCOPE, of_issuer};
use crate::harness::message::tool_call;
use crate::harness::program;
use crate::resources::{Era, headers, message};

/// The claims of a program that has the name of a person.
fn of_program(name: &str) -> Value {
    let mut program = with(claims("", SCOPE), "client_id", name);
    program.as_object_mut().expect("claims").remove("sub");
    program
}

/// A store belongs to a subject: to none of another kind with the same name, and whatever client the subject is.
#[tokio::test]
async fn a_subject_keeps_its_memory() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let oauth =
        json!({"issuer": ISSUER, "public_url": SERVER, "jwks_uri": issuer.url, "scopes": {}});
    let served = |client: &str| {
        let own =
            json!({"name": client, "oauth": {"claim": {"iss": ISSUER}}, "roots": {"notes": {}}});
        program()
            .set("toolsets", json!(["memory_tool"]))
            .set("memory_tool.store", "per_client")
            .set("auth.oauth", oauth.clone())
            .set("clients", json!([own]))
            .root("notes", tree.path())
    };
    let wire = served("one").wire(Transport::Http).await;
    let person = claims("x", SCOPE);
    let machine = of_program("x");
    let said = async |claims: &Value, input: Value| {
        let token = format!("Bearer {}", key.token(claims));
        let headers = [
            ("authorization", token.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let call = tool_call(1, "memory", &input);
        wire.http().post("/mcp", &headers, &call).await.body
    };
    let create = json!({"command": "create", "path": "/memories/me", "file_text": "of a person"});
    let view = json!({"command": "view", "path": "/memories/me"});
    let told = said(&person, create).await;
    assert!(told.contains("File created successfully"), "{told}");
    let told = said(&machine, view.clone()).await;
    assert!(!told.contains("of a person"), "{told}");
    wire.reconfigure(&served("two")).await;
    let told = said(&person, view).await;
    assert!(told.contains("of a person"), "{told}");
}

#[tokio::test]
async fn a_session_belongs_to_its_subject() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let setup = of_issuer(&tree, &issuer).set("server.sessions", "on");
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    let token = |subject: &str, more: u64| {
        let claims = with(claims(subject, SCOPE), "exp", now() + 600 + more);
        format!("Bearer {}", key.token(&claims))
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}
    }});
    let greeted = http
        .post("/mcp", &[("authorization", &token("alice", 0))], &hello)
        .await;
    let session = greeted.header("mcp-session-id").unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let status = async |token: &str| {
        let headers = [("authorization", token), ("mcp-session-id", &*session)];
        http.post("/mcp", &headers, &ping).await.status
    };
    assert_eq!(status(&token("bob", 0)).await, 404);
    assert_eq!(
        status(&token("alice", 60)).await,
        200,
        "with the next token"
    );
}

/// Calls a tool of a set with a token and returns the whole reply.
async fn said(http: &Http, token: &str, set: &str, tool: &str, arguments: &Value) -> String {
    // Without a session `guide` can be called in the newest revision alone.
    let call = json!({"name": tool, "arguments": arguments});
    let call = message(Era::Newest, 1, "tools/call", call);
    let mut own = headers(Era::Newest, &call);
    own.push(("authorization", format!("Bearer {token}")));
    let own: Vec<(&str, &str)> = own
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    http.post(&format!("/mcp/{set}"), &own, &call).await.body
}

/// Files of an agent, and changes that may be undone.
#[tokio::test]
async fn a_person_and_a_program_of_one_name_share_nothing() {
    let (tree, project, key) = (Tree::new(), Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let setup = of_issuer(&tree, &issuer)
        .set("toolsets", json!(["workspace", "guide"]))
        .set("guide.project_root", json!(project.path()));
    let wire = setup.wire(Transport::Http).await;
    let person = key.token(&claims("alice", SCOPE));
    let program = key.token(&of_program("alice"));
    let http = wire.http();
    let file = json!({"path": "docs/plan.md", "content": "of a person"});
    let told = said(http, &person, "guide", "guide_cache_file", &file).await;
    assert!(told.contains(r#""isError":false"#), "{told}");
    let own = json!({"path": "docs/plan.md"});
    for (token, is_own) in [(&program, false), (&person, true)] {
        let told = said(http, token, "guide", "guide_request_file", &own).await;
        assert_eq!(told.contains("of a person"), is_own, "{told}");
    }
    let write = json!({"root": "workspace", "path": "a", "content": "of a person"});
    said(http, &person, "workspace", "write_file", &write).await;
    let undo = json!({"root": "workspace"});
    for (token, is_own) in [(&program, false), (&person, true)] {
        let told = said(http, token, "workspace", "undo", &undo).await;
        assert_eq!(told.contains(r#""isError":false"#), is_own, "{told}");
        assert_eq!(tree.has("a"), !is_own);
    }
}
