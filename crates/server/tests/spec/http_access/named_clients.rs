//! Named clients at the door: calls at once, access tokens with rights, and clients that the operator keeps out.

use std::time::Duration;

use testkit::{Http, Transport, Tree, Value, json};

use super::issuer::{ISSUER, KeyEndpoint, SERVER, SigningKey, claims, with};
use crate::harness::message::tool_call;
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

const BUSY: (&str, &str) = (
    "busy-token-0123456789",
    "sha256:07d17a97cfd767616468969b02f2adab3f9e908867af4a88a2c614ae82eed73f",
);
const WHOLE: (&str, &str) = (
    "whole-token-0123456789",
    "sha256:f93e3080c65d3ef5f9f6afe86d82c8e2dc3076ed0aaa24214914c62ff6aae5ce",
);

async fn call(http: &Http, token: &str, tool: &str, arguments: &Value) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let message = tool_call(1, tool, arguments);
    let reply = http.post("/mcp", &headers, &message).await;
    let told = if reply.status == 200 {
        reply.json()
    } else {
        Value::Null
    };
    (reply.status, told)
}

fn code(told: &Value) -> &str {
    let code = &told["result"]["structuredContent"]["error"]["code"];
    code.as_str().unwrap_or("none")
}

#[tokio::test]
async fn a_client_has_so_many_calls_at_once_and_no_more() {
    let tree = Tree::new().file("a", "text").sparse("endless", 1 << 42);
    let roots = json!({"workspace": {}});
    let clients = json!([
        {"name": "busy", "tokens": [BUSY.1], "max_calls": 2, "roots": roots},
        {"name": "whole", "tokens": [WHOLE.1], "roots": roots},
    ]);
    let setup = Workspace::setup(&tree).set("clients", clients);
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    let hash = json!({"root": "workspace", "path": "endless", "algorithm": "md5"});
    let running: Vec<_> = (0..2)
        .map(|_| {
            let (http, hash) = (http.clone(), hash.clone());
            tokio::spawn(async move { call(&http, BUSY.0, "hash_file", &hash).await })
        })
        .collect();
    let read = json!({"root": "workspace", "path": "a"});
    let refused = becomes(async || {
        let told = call(http, BUSY.0, "read_file", &read).await.1;
        code(&told) == "rate_limited"
    });
    assert!(refused.await, "a third call beside two that run");
    // Others are not concerned.
    assert_eq!(
        code(&call(http, WHOLE.0, "read_file", &read).await.1),
        "none"
    );
    running.iter().for_each(tokio::task::JoinHandle::abort);
    let free = becomes(async || {
        let told = call(http, BUSY.0, "read_file", &read).await.1;
        code(&told) == "none"
    });
    assert!(free.await, "calls that ended leave room");
}

#[tokio::test]
async fn an_access_token_has_the_rights_of_its_subject_or_claim() {
    let tree = Tree::new()
        .file("docs/a", "of docs")
        .file("src/b", "of src");
    let key = SigningKey::new("a");
    let issuer = KeyEndpoint::start(&[&key]).await;
    let part =
        |paths: &str, rights: Value| json!({"workspace": {"paths": [paths], "rights": rights}});
    let clients = json!([
        {"name": "alice", "oauth": {"subject": "alice"}, "roots": part("docs/**", json!(["read"]))},
        {"name": "builders", "oauth": {"claim": {"department": "build"}},
            "roots": part("src/**", json!(["read", "create", "change"]))},
    ]);
    let oauth = json!({"issuer": ISSUER, "public_url": SERVER, "jwks_uri": issuer.url});
    let setup = Workspace::setup(&tree)
        .set("auth.oauth", oauth)
        .set("clients", clients);
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    let alice = key.token(&claims("alice", ""));
    let bob = key.token(&with(claims("bob", ""), "department", "build"));
    let read = |path: &str| json!({"root": "workspace", "path": path});
    for (token, path, expected) in [
        (&alice, "docs/a", "none"),
        (&alice, "src/b", "not_found"),
        (&bob, "src/b", "none"),
        (&bob, "docs/a", "not_found"),
    ] {
        let (status, told) = call(http, token, "read_file", &read(path)).await;
        assert_eq!(status, 200, "{path}: {told}");
        assert_eq!(code(&told), expected, "{path}: {told}");
    }
    let write = |path: &str| json!({"root": "workspace", "path": path, "content": "new"});
    let told = call(http, &alice, "write_file", &write("docs/new")).await.1;
    assert_ne!(code(&told), "none", "{told}");
    assert!(!tree.has("docs/new"));
    let told = call(http, &bob, "write_file", &write("src/new")).await.1;
    assert_eq!(code(&told), "none", "{told}");
    let told = call(http, &bob, "remove_file", &read("src/new")).await.1;
    assert!(tree.has("src/new"), "{told}");
    // Whoever is neither is nobody.
    for stranger in [
        claims("carol", ""),
        with(claims("carol", ""), "department", "sales"),
    ] {
        let (status, _) = call(http, &key.token(&stranger), "read_file", &read("docs/a")).await;
        assert_eq!(status, 403);
    }
}

#[tokio::test]
async fn a_named_client_that_is_suspended_is_refused() {
    let (tree, files) = (Tree::new().file("a", "text"), Tree::new());
    files.write("admin", "operator-token-0123456789\n");
    let roots = json!({"workspace": {}});
    let clients = json!([
        {"name": "busy", "tokens": [BUSY.1], "roots": roots},
        {"name": "whole", "tokens": [WHOLE.1], "roots": roots},
    ]);
    let setup = program()
        .root("workspace", tree.path())
        .set("clients", clients)
        .set("admin.listen", "127.0.0.1:0")
        .set("admin.token_file", json!(files.join("admin")));
    let wire = setup.wire(Transport::Http).await;
    let started = wire.logged(|line| line["admin"].is_string()).await;
    let address = started["admin"].as_str().expect("an address");
    let admin = Http::at(address.parse().expect("an address"));
    let http = wire.http();
    let read = json!({"root": "workspace", "path": "a"});
    for token in [BUSY.0, WHOLE.0] {
        assert_eq!(code(&call(http, token, "read_file", &read).await.1), "none");
    }
    let operator = ("authorization", "Bearer operator-token-0123456789");
    let suspend = async |suspended: bool| {
        let body = json!({"client": "busy", "suspended": suspended}).to_string();
        let reply = admin.post_text("/api/suspend", &[operator], &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    };
    let is_refused = async |token: &str| {
        let (status, told) = call(http, token, "read_file", &read).await;
        status != 200 || code(&told) != "none"
    };
    suspend(true).await;
    assert!(is_refused(BUSY.0).await, "its calls are refused");
    assert!(!is_refused(WHOLE.0).await, "others are not concerned");
    suspend(false).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!is_refused(BUSY.0).await, "it is let in again");
}
