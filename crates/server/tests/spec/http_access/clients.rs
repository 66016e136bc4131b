//! Named clients: what one may not have does not exist for it.

use testkit::{Http, Setup, Transport, Tree, Value, json};

use super::list_roots;
use crate::harness::ToolSet;
use crate::workspace::Workspace;

/// The tokens of the clients, and their digests.
const DOCS: (&str, &str) = (
    "docs-token-0123456789",
    "sha256:d857bfb7f97e4c36761a2f72506a7365ec21fe36f4696e4f44734039ed9c9835",
);
const ADDER: (&str, &str) = (
    "adder-token-0123456789",
    "sha256:c772a82226e168b81efed2da5b6ebc84689e5d43202b4fdd7936277e0b61bec5",
);
const MEMORIES: (&str, &str) = (
    "memories-token-0123456789",
    "sha256:677bfc6eca01417a6d9f541ee1e2239f31a415ee6c04fd4e3f78f5481781b767",
);
const SLOW: (&str, &str) = (
    "slow-token-0123456789",
    "sha256:be8190af768f977015261a1fa6ae684d9d25ed64e8347a1c06b60ea6dd180767",
);

fn tree() -> Tree {
    Tree::new()
        .file("docs/open.md", "MARK open")
        .file("docs/private/plan.md", "HIDDEN MARK")
        .file("src/secret.rs", "HIDDEN MARK")
        .link("docs/way", "../src/secret.rs")
}

fn setup(tree: &Tree) -> Setup {
    Workspace::setup(tree).set(
        "clients",
        json!([
            {"name": "docs", "tokens": [DOCS.1], "roots": {"workspace": {
                "tools": ["read_file", "list_folder", "grep", "glob", "write_file", "copy"],
                "paths": ["docs/**", "!docs/private"], "rights": ["read"]}}},
            {"name": "adder", "tokens": [ADDER.1], "roots": {"workspace": {"rights": ["read", "create"]}}},
            {"name": "memories", "tokens": [MEMORIES.1], "toolsets": ["memory"], "roots": {"workspace": {}}},
            {"name": "slow", "tokens": [SLOW.1], "rate": {"per_second": 1, "burst": 2}, "roots": {"workspace": {}}},
        ]),
    )
}

async fn post(http: &Http, token: &str, message: &Value) -> (u16, String, Value) {
    let value = format!("Bearer {token}");
    let reply = http
        .post("/mcp", &[("authorization", &value)], message)
        .await;
    let (status, text) = (reply.status, reply.body.clone());
    let json = if status == 200 {
        reply.json()
    } else {
        Value::Null
    };
    (status, text, json)
}

/// Calls a tool on the root; returns the code of the failure and the whole answer as text.
async fn call(http: &Http, token: &str, tool: &str, mut arguments: Value) -> (String, String) {
    let roots: &[&str] = match arguments.get("source_path") {
        Some(_) => &["source_root", "dest_root"],
        None => &["root"],
    };
    for root in roots {
        arguments[*root] = json!("workspace");
    }
    let mut message = list_roots();
    message["params"] = json!({"name": tool, "arguments": arguments});
    let (_, text, reply) = post(http, token, &message).await;
    let code = &reply["result"]["structuredContent"]["error"]["code"];
    (code.as_str().unwrap_or("none").to_owned(), text)
}

#[tokio::test]
async fn what_a_client_may_not_have_does_not_exist_for_it() {
    let tree = tree();
    let wire = setup(&tree).wire(Transport::Http).await;
    let http = wire.http();
    let mut list = list_roots();
    list["method"] = json!("tools/list");
    list["params"] = json!({});
    let (_, text, reply) = post(http, DOCS.0, &list).await;
    let tools = reply["result"]["tools"].as_array().expect(&text);
    let mut names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["glob", "grep", "list_folder", "list_roots", "read_file"]
    );
    for (tool, arguments) in [
        ("list_folder", json!({"path": ""})),
        ("list_folder", json!({"path": "docs"})),
        ("glob", json!({"path": "", "pattern": "**/*"})),
        ("grep", json!({"path": "", "pattern": "MARK"})),
        ("read_file", json!({"path": "docs/opan.md"})),
        ("read_file", json!({"path": "docs/private/plam.md"})),
    ] {
        let (_, text) = call(http, DOCS.0, tool, arguments).await;
        for hidden in ["HIDDEN", "secret.rs", "plan.md", "\"src"] {
            assert!(!text.contains(hidden), "{tool}: {hidden} in {text}");
        }
    }
    for path in [
        "src/secret.rs",
        "docs/private/plan.md",
        "docs/way",
        "docs/../src/secret.rs",
    ] {
        let (code, text) = call(http, DOCS.0, "read_file", json!({"path": path})).await;
        assert!(
            code == "not_found" && !text.contains("HIDDEN"),
            "{path}: {text}"
        );
    }
    let (code, text) = call(http, DOCS.0, "read_file", json!({"path": "docs/open.md"})).await;
    assert!(code == "none" && text.contains("MARK open"), "{text}");
    let write = json!({"path": "docs/new.md", "content": "x"});
    let (code, text) = call(http, DOCS.0, "write_file", write).await;
    assert!(
        code == "tool_not_allowed" && !tree.has("docs/new.md"),
        "{text}"
    );
}

#[tokio::test]
async fn rights_are_judged_by_what_a_call_would_do() {
    let tree = tree();
    let wire = setup(&tree).wire(Transport::Http).await;
    let http = wire.http();
    let new = json!({"path": "docs/new.md", "content": "new"});
    let (code, text) = call(http, ADDER.0, "write_file", new).await;
    assert_eq!(code, "none", "{text}");
    for (tool, expected, arguments) in [
        (
            "write_file",
            "permission_denied",
            json!({"path": "docs/open.md", "content": "x"}),
        ),
        (
            "edit_file",
            "permission_denied",
            json!({"path": "docs/open.md", "edits": [{"old": "MARK", "new": "x"}]}),
        ),
        (
            "copy",
            "permission_denied",
            json!({"source_path": "src/secret.rs", "dest_path": "docs/open.md"}),
        ),
        (
            "remove_file",
            "tool_not_allowed",
            json!({"path": "docs/open.md"}),
        ),
        ("remove_folder", "tool_not_allowed", json!({"path": "docs"})),
        (
            "move",
            "tool_not_allowed",
            json!({"source_path": "docs/open.md", "dest_path": "docs/moved.md"}),
        ),
    ] {
        let (code, text) = call(http, ADDER.0, tool, arguments).await;
        assert_eq!(code, expected, "{tool}: {text}");
    }
    assert_eq!(tree.text("docs/open.md"), "MARK open");
    assert!(tree.has("docs/new.md") && !tree.has("docs/moved.md"));
}

#[tokio::test]
async fn a_client_has_its_own_sets_rate_and_name() {
    let tree = tree();
    let wire = setup(&tree).wire(Transport::Http).await;
    let http = wire.http();
    assert_eq!(
        post(http, "unknown-token-0123456789", &list_roots())
            .await
            .0,
        401
    );
    assert_eq!(http.post("/mcp", &[], &list_roots()).await.status, 401);
    assert_eq!(post(http, MEMORIES.0, &list_roots()).await.0, 404);
    let read = || json!({"path": "docs/open.md"});
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(call(http, SLOW.0, "read_file", read()).await.0);
    }
    assert_eq!(codes, ["none", "none", "rate_limited"]);
    assert_eq!(call(http, ADDER.0, "read_file", read()).await.0, "none");
    let line = wire.logged(|line| line["tool"] == "read_file").await;
    assert!(
        line["client"].as_str().unwrap().ends_with("(slow)"),
        "{line}"
    );
}

#[tokio::test]
async fn on_stdio_the_caller_is_the_client_stdio() {
    let tree = tree();
    let clients = json!([{"name": "stdio", "roots": {"workspace": {"rights": ["read"]}}}]);
    let server = Workspace::setup(&tree)
        .set("clients", clients)
        .start(Transport::Stdio)
        .await;
    let write = json!({"root": "workspace", "path": "new", "content": "x"});
    let told = format!("{:?}", server.call("write_file", write).await);
    assert!(
        told.contains("read_only") || told.contains("tool_not_allowed"),
        "{told}"
    );
    let read = json!({"root": "workspace", "path": "docs/open.md"});
    let told = format!("{:?}", server.call("read_file", read).await);
    assert!(told.contains("MARK open") && !tree.has("new"), "{told}");
}

#[tokio::test]
async fn a_mistake_in_clients_ends_the_start() {
    let tree = tree();
    for (client, reason) in [
        (
            json!({"name": "a", "roots": {}}),
            "nobody can be this client",
        ),
        (
            json!({"name": "a b", "tokens": [DOCS.1], "roots": {}}),
            "letters, digits",
        ),
        (
            json!({"name": "a", "tokens": ["plain-token-0123456789"], "roots": {}}),
            "sha256:",
        ),
        (
            json!({"name": "a", "tokens": [DOCS.1], "roots": {"workspcae": {}}}),
            "workspace",
        ),
        (
            json!({"name": "a", "tokens": [DOCS.1], "roots": {"workspace": {"rights": ["create"]}}}),
            "read",
        ),
        (
            json!({"name": "a", "tokens": [DOCS.1], "roots": {"workspace": {"paths": ["../x"]}}}),
            "../x",
        ),
        (
            json!({"name": "a", "oauth": {"subject": "ann"}, "roots": {}}),
            "auth.oauth",
        ),
    ] {
        let setup = Workspace::setup(&tree).set("clients", json!([client]));
        let ended = setup.refuse(Transport::Http).await;
        let line = ended.stderr.join("\n");
        assert!(
            line.contains(reason) && !line.contains("plain-token"),
            "{reason}: {line}"
        );
    }
}

#[tokio::test]
async fn metrics_and_other_endpoints_do_not_exist_for_a_named_client() {
    let (tree, tokens) = (
        tree(),
        Tree::new()
            .file("metrics", "metrics-token-0123456789\n")
            .file("all", "file-token-0123456789\n"),
    );
    let wire = setup(&tree)
        .set("toolsets", json!(["workspace", "memory"]))
        .set("server.metrics_tokens_file", json!(tokens.join("metrics")))
        .set("server.bearer_tokens_file", json!(tokens.join("all")))
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let get = async |token: &str, path: &str| {
        let value = format!("Bearer {token}");
        http.send("GET", path, &[("authorization", value.as_str())])
            .await
    };
    for (token, status) in [
        ("metrics-token-0123456789", 200),
        ("file-token-0123456789", 200),
        (DOCS.0, 404),
        ("unknown-token-0123456789", 401),
    ] {
        let reply = get(token, "/metrics").await;
        assert_eq!(reply.status, status, "{token}: {}", reply.body);
    }
    let called = post(http, "metrics-token-0123456789", &list_roots()).await;
    assert_eq!(called.0, 401, "it opens nothing else");
    let none = get(MEMORIES.0, "/none").await.body;
    assert!(
        none.contains("/mcp/memory") && !none.contains("workspace") && !none.contains("/metrics"),
        "{none}"
    );
    let none = get("file-token-0123456789", "/none").await.body;
    assert!(
        none.contains("/mcp, /mcp/workspace, /mcp/memory, /metrics"),
        "{none}"
    );
}

#[tokio::test]
async fn with_clients_nothing_that_is_told_is_for_shared_caches() {
    let (tree, tokens) = (tree(), Tree::new().file("all", "file-token-0123456789\n"));
    let wire = setup(&tree)
        .set("server.replies", "both")
        .set("server.bearer_tokens_file", json!(tokens.join("all")))
        .wire(Transport::Http)
        .await;
    for token in [ADDER.0, "file-token-0123456789"] {
        for method in ["tools/list", "resources/list", "server/discover"] {
            let value = format!("Bearer {token}");
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}
            });
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
            let headers = [
                ("authorization", value.as_str()),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", method),
            ];
            let reply = wire.http().post("/mcp", &headers, &message).await.json();
            let scope = &reply["result"]["cacheScope"];
            assert_eq!(scope, "private", "{method} of {token}: {reply}");
        }
    }
}

#[tokio::test]
async fn check_tells_what_each_caller_has_in_effect() {
    let (tree, tokens) = (tree(), Tree::new().file("all", "file-token-0123456789\n"));
    let keys = json!({"allowed_tools": ["read_file", "write_file"], "read_only": true});
    let oauth = json!({
        "issuer": "https://login.example.org", "public_url": "https://files.example.org",
        "jwks_uri": "https://login.example.org/keys", "scopes": {"files:read": "readers"}
    });
    let clients = json!([
        {"name": "readers", "roots": {"workspace": {"tools": ["read_file", "grep"]}}},
        {"name": "docs", "tokens": [DOCS.1], "roots": {"workspace": {"paths": ["docs/**"]}}},
    ]);
    let ended = crate::harness::program()
        .root_with("workspace", tree.path(), keys)
        .set("auth.oauth", oauth)
        .set("clients", clients)
        .set("server.bearer_tokens_file", json!(tokens.join("all")))
        .arguments(["check"])
        .run()
        .await;
    for line in [
        "the client readers: access tokens with the scope files:read",
        "workspace: may read; read_file; every path",
        "the client docs: 1 token",
        "workspace: may read; read_file, write_file; docs/**",
        "callers with a token of server.bearer_tokens_file",
        "need a restart: host, port, toolsets",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {ended:?}");
    }
}

#[tokio::test]
async fn a_root_that_exists_for_others_only_and_an_undo_beyond_the_rights_are_violations() {
    let (tree, other) = (tree(), Tree::new().file("f", "x"));
    let clients = json!([
        {"name": "docs", "tokens": [DOCS.1], "roots": {"workspace": {"rights": ["read", "create"]}}},
    ]);
    let wire = Workspace::setup(&tree)
        .root("other", other.path())
        .set("clients", clients)
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    for (root, level) in [("other", "WARN"), ("nowhere", "INFO")] {
        let mut message = list_roots();
        message["params"] = json!({"name": "read_file", "arguments": {"root": root, "path": "f"}});
        let (_, text, reply) = post(http, DOCS.0, &message).await;
        let code = &reply["result"]["structuredContent"]["error"]["code"];
        assert_eq!(code, "unknown_root", "{text}");
        let is_call = |line: &Value| line["tool"] == "read_file" && line["root"] == root;
        let line = wire.logged(is_call).await;
        assert_eq!(line["level"], level, "{line}");
    }
    let new = json!({"path": "new", "content": "x"});
    assert_eq!(call(http, DOCS.0, "write_file", new).await.0, "none");
    for dry_run in [true, false] {
        let arguments = json!({"dry_run": dry_run});
        let (code, text) = call(http, DOCS.0, "undo", arguments).await;
        assert_eq!(code, "permission_denied", "{text}");
    }
    assert!(tree.has("new"));
    let line = wire.logged(|line| line["tool"] == "undo").await;
    assert_eq!(line["level"], "WARN", "{line}");
}
