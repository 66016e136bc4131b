//! The operator's page and its interface: who is let in, what is told, what can be done. `tests/clients/admin_page.mjs`
//! uses the page itself in a browser.

use testkit::{Http, Reply, Setup, Transport, Tree, Value, Wire, json};

use super::list_roots;
use crate::harness::message::tool_call;
use crate::harness::{becomes, program};

pub(super) const TOKEN: (&str, &str) = ("authorization", "Bearer operator-token-0123456789");

pub(super) fn setup(tree: &Tree, tokens: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    setup_with(tree, tokens, keys)
}

fn setup_with(tree: &Tree, tokens: &Tree, keys: Value) -> Setup {
    tokens.write("admin", "operator-token-0123456789\n");
    program()
        .root_with("workspace", tree.path(), keys)
        .set("admin.listen", "127.0.0.1:0")
        .set("admin.token_file", json!(tokens.join("admin")))
}

/// A server with a page, and the page's address.
pub(super) async fn served(setup: Setup) -> (Wire, Http) {
    let wire = setup.wire(Transport::Http).await;
    let started = wire
        .logged(|line| line["message"] == "server started")
        .await;
    let address = started["admin"].as_str().expect("an address");
    let admin = Http::at(address.parse().expect("an address"));
    (wire, admin)
}

async fn call(wire: &Wire, tool: &str, arguments: &Value) -> Value {
    let message = tool_call(1, tool, arguments);
    let reply = wire.http().post("/mcp", &[], &message).await;
    reply.json()["result"].clone()
}

pub(super) async fn asked(admin: &Http, name: &str) -> Value {
    let reply = admin.send("GET", &format!("/api/{name}"), &[TOKEN]).await;
    assert_eq!(reply.status, 200, "{name}: {}", reply.body);
    reply.json()
}

async fn told(admin: &Http, name: &str, body: &Value) -> Reply {
    let path = format!("/api/{name}");
    admin.post_text(&path, &[TOKEN], &body.to_string()).await
}

fn content(tree: &Tree) -> String {
    std::fs::read_to_string(tree.join("a")).expect("a file")
}

#[tokio::test]
async fn admin_the_interface_needs_its_own_token_and_host() {
    let (tree, tokens) = (Tree::new(), Tree::new());
    tokens.write("clients", "client-token-0123456789\n");
    let setup =
        setup(&tree, &tokens).set("server.bearer_tokens_file", json!(tokens.join("clients")));
    let (wire, admin) = served(setup).await;
    let of_client = ("authorization", "Bearer client-token-0123456789");
    let wrong: [&[(&str, &str)]; 3] = [&[], &[of_client], &[TOKEN, TOKEN]];
    for headers in wrong {
        for name in ["live", "roots", "clients", "nothing"] {
            let reply = admin.send("GET", &format!("/api/{name}"), headers).await;
            assert_eq!(reply.status, 401, "{name} {headers:?}");
        }
    }
    let in_query = "/api/live?token=operator-token-0123456789";
    assert_eq!(admin.send("GET", in_query, &[]).await.status, 401);
    // The token of the page is none for clients.
    let reply = wire.http().post("/mcp", &[TOKEN], &list_roots()).await;
    assert_eq!(reply.status, 401);
    let foreign = b"GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    let answer = admin.raw(foreign).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let origin = ("origin", "http://evil.example");
    let reply = admin.send("GET", "/api/live", &[TOKEN, origin]).await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn admin_the_page_is_there_for_anyone_and_holds_nothing() {
    let (tree, tokens) = (Tree::new().file("secret-name", ""), Tree::new());
    let (_wire, admin) = served(setup(&tree, &tokens)).await;
    for path in ["/", "/page.js", "/page.css"] {
        let reply = admin.send("GET", path, &[]).await;
        assert_eq!(reply.status, 200, "{path}");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert!(!reply.body.contains("secret-name"));
    }
    assert_eq!(admin.send("GET", "/other", &[]).await.status, 404);
    assert_eq!(admin.send("POST", "/", &[]).await.status, 405);
}

#[tokio::test]
async fn admin_calls_are_told_as_they_end() {
    let (tree, tokens) = (Tree::new().file("a", "text"), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    call(
        &wire,
        "read_file",
        &json!({"root": "workspace", "path": "a"}),
    )
    .await;
    call(
        &wire,
        "read_file",
        &json!({"root": "workspace", "path": "../b"}),
    )
    .await;
    let live = asked(&admin, "live").await;
    let ended = live["calls"]["ended"].as_array().expect("calls").clone();
    assert_eq!(ended.len(), 2, "{live}");
    assert_eq!(ended[0]["tool"], "read_file");
    assert_eq!(ended[0]["path"], "a");
    assert_eq!(ended[0]["outcome"], "ok");
    assert_eq!(ended[1]["outcome"], "path_outside_root");
    assert_eq!(ended[1]["violation"], true);
    assert!(live["memory_bytes"].as_u64() > Some(100_000), "{live}");
    let next = &live["calls"]["next"];
    let live = asked(&admin, &format!("live?after={next}")).await;
    assert_eq!(live["calls"]["ended"], json!([]));
    let clients = asked(&admin, "clients").await;
    assert_eq!(clients["clients"][0]["calls"], 2);
    assert_eq!(clients["clients"][0]["violations"], 1);
}

#[tokio::test]
async fn admin_running_calls_are_told() {
    let (tree, tokens) = (Tree::new().sparse("endless", 1 << 42), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let http = wire.http().clone();
    let hash = json!({"root": "workspace", "path": "endless", "algorithm": "md5"});
    let call = tool_call(1, "hash_file", &hash);
    let running = tokio::spawn(async move { http.post("/mcp", &[], &call).await });
    let shown = becomes(async || {
        let live = asked(&admin, "live").await;
        live["calls"]["running"][0]["path"] == "endless"
    });
    assert!(shown.await);
    running.abort();
    let gone = becomes(async || asked(&admin, "live").await["calls"]["running_total"] == 0);
    assert!(gone.await);
}

#[tokio::test]
async fn admin_a_suspended_client_is_refused_until_it_is_let_in() {
    let (tree, tokens) = (Tree::new().file("a", "text"), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let read = json!({"root": "workspace", "path": "a"});
    call(&wire, "read_file", &read).await;
    let clients = asked(&admin, "clients").await;
    let client = &clients["clients"][0]["client"];
    let reply = told(
        &admin,
        "suspend",
        &json!({"client": client, "suspended": true}),
    )
    .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let refused = call(&wire, "read_file", &read).await;
    assert_eq!(refused["isError"], true);
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["code"], "rate_limited");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("suspended"))
    );
    let reply = told(
        &admin,
        "suspend",
        &json!({"client": client, "suspended": false}),
    )
    .await;
    assert_eq!(reply.status, 200);
    assert_eq!(call(&wire, "read_file", &read).await["isError"], false);
    let nobody = json!({"client": "nobody", "suspended": true});
    assert_eq!(told(&admin, "suspend", &nobody).await.status, 404);
}

#[tokio::test]
async fn admin_a_change_is_taken_back_after_a_rehearsal() {
    let (tree, tokens) = (Tree::new().file("a", "old"), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let write = json!({"root": "workspace", "path": "a", "content": "new"});
    call(&wire, "write_file", &write).await;
    let changes = told(&admin, "changes", &json!({"root": "workspace"}))
        .await
        .json();
    let change = &changes["changes"][0]["change"];
    assert_eq!(changes["changes"][0]["tool"], "write_file", "{changes}");
    let undo = |dry_run: bool| json!({"root": "workspace", "change": change, "dry_run": dry_run});
    let rehearsed = told(&admin, "undo", &undo(true)).await;
    assert_eq!(rehearsed.status, 200, "{}", rehearsed.body);
    assert_eq!(rehearsed.json()["parts"][0]["kind"], "replace");
    assert_eq!(content(&tree), "new");
    assert_eq!(told(&admin, "undo", &undo(false)).await.status, 200);
    assert_eq!(content(&tree), "old");
    let again = told(&admin, "undo", &undo(false)).await;
    assert_eq!(again.status, 409, "{}", again.body);
    let roots = asked(&admin, "roots").await;
    assert_eq!(roots["roots"][0]["name"], "workspace");
    assert_eq!(roots["roots"][0]["history"]["changes"], 2, "{roots}");
}

#[tokio::test]
async fn admin_a_change_is_shown_line_by_line() {
    let tree = Tree::new()
        .file("a", "same\nold\n")
        .file("dir/file", "text");
    let tokens = Tree::new();
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let write = json!({"root": "workspace", "path": "a", "content": "same\nnew\n"});
    let change = call(&wire, "write_file", &write).await["structuredContent"]["change"].clone();
    let shown = json!({"root": "workspace", "change": change});
    let diff = told(&admin, "diff", &shown).await;
    assert_eq!(diff.status, 200, "{}", diff.body);
    let diff = diff.json();
    let text = diff["diff"].as_str().expect("a diff");
    assert!(text.contains("\n-old\n+new\n"), "{text}");
    assert_eq!(diff["added"], json!(1));
    assert_eq!(diff["removed"], json!(1));
    assert_eq!(diff["truncated"], false);
    // Of what is no text nothing is known, and a directory has no lines.
    let bytes = json!({"root": "workspace", "path": "b", "content": "AP8A", "encoding": "base64"});
    let change = call(&wire, "write_file", &bytes).await["structuredContent"]["change"].clone();
    let of_bytes = json!({"root": "workspace", "change": change});
    let copy = json!({"source_root": "workspace", "source_path": "dir", "dest_root": "workspace", "dest_path": "copy"});
    let change = call(&wire, "copy", &copy).await["structuredContent"]["change"].clone();
    let of_directory = json!({"root": "workspace", "change": change});
    for (shown, reason) in [
        (of_bytes, "binary, large"),
        (of_directory, "whole files or directories"),
    ] {
        let told = told(&admin, "diff", &shown).await.json();
        assert_eq!(told["diff"], Value::Null, "{told}");
        assert!(told["reason"].to_string().contains(reason), "{told}");
    }
}

#[tokio::test]
async fn admin_one_removed_file_is_brought_back_after_a_rehearsal() {
    let tree = Tree::new().file("dir/a", "first").file("dir/b", "second");
    let (wire, admin) = served(setup(&tree, &Tree::new())).await;
    for name in ["dir/a", "dir/b"] {
        call(
            &wire,
            "remove_file",
            &json!({"root": "workspace", "path": name}),
        )
        .await;
    }
    call(
        &wire,
        "remove_folder",
        &json!({"root": "workspace", "path": "dir"}),
    )
    .await;
    let changes = told(
        &admin,
        "changes",
        &json!({"root": "workspace", "path": "dir/a"}),
    )
    .await;
    let changes = changes.json()["changes"]
        .as_array()
        .expect("changes")
        .clone();
    let removal = changes
        .iter()
        .find(|one| one["tool"] == "remove_file")
        .expect("the removal");
    let restore = |dry_run: bool| json!({"root": "workspace", "change": removal["change"], "path": "dir/a", "dry_run": dry_run});
    let rehearsed = told(&admin, "restore", &restore(true)).await;
    assert_eq!(rehearsed.status, 200, "{}", rehearsed.body);
    assert_eq!(rehearsed.json()["size"], 5);
    assert!(!tree.has("dir/a"));
    let restored = told(&admin, "restore", &restore(false)).await;
    assert_eq!(restored.status, 200, "{}", restored.body);
    assert_eq!(tree.text("dir/a"), "first");
    assert!(!tree.has("dir/b"), "only one file was wanted");
    let again = told(&admin, "restore", &restore(false)).await;
    assert_eq!(again.status, 409, "{}", again.body);
    // It is a change of the operator, which can be taken back.
    let change = &restored.json()["change"];
    let undo = json!({"root": "workspace", "change": change, "dry_run": false});
    assert_eq!(told(&admin, "undo", &undo).await.status, 200);
    assert!(!tree.has("dir/a"));
    let missing =
        json!({"root": "workspace", "change": removal["change"], "path": "never", "dry_run": true});
    assert_eq!(told(&admin, "restore", &missing).await.status, 409);
    let outside =
        json!({"root": "workspace", "change": removal["change"], "path": "../x", "dry_run": false});
    assert_eq!(told(&admin, "restore", &outside).await.status, 409);
}

#[tokio::test]
async fn admin_each_root_tells_its_risks() {
    let (tree, tokens) = (Tree::new().file(".env", "x"), Tree::new());
    let (wire, admin) = served(setup(&tree, &tokens)).await;
    let risks = async || {
        let roots = asked(&admin, "roots").await;
        roots["roots"][0]["risks"].to_string()
    };
    let told = risks().await;
    assert!(
        told.contains("1 entry that usually holds secrets (.env)"),
        "{told}"
    );
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}, "deny": "secrets"});
    wire.reconfigure(&setup_with(&tree, &tokens, keys)).await;
    let told = risks().await;
    assert!(!told.contains(".env"), "after SIGHUP: {told}");
}

#[tokio::test]
async fn admin_bad_requests_are_told_what_is_wrong() {
    let (tree, tokens) = (Tree::new(), Tree::new());
    let (_wire, admin) = served(setup(&tree, &tokens)).await;
    let cases = [
        (
            "undo",
            json!({"root": "workspace", "change": "1"}),
            400,
            "dry_run",
        ),
        (
            "undo",
            json!({"root": "workspace", "change": "?", "dry_run": true}),
            400,
            "no name of a change",
        ),
        (
            "undo",
            json!({"root": "workspace", "change": "1", "dry_run": true}),
            409,
            "no such change",
        ),
        (
            "undo",
            json!({"root": "other", "change": "1", "dry_run": true}),
            404,
            "no root other",
        ),
        (
            "diff",
            json!({"root": "workspace", "change": "1"}),
            409,
            "no such change",
        ),
        (
            "restore",
            json!({"root": "workspace", "change": "1", "path": "a"}),
            400,
            "dry_run",
        ),
        ("changes", json!({}), 400, "root"),
        ("changes", json!([]), 400, "Bad Request"),
        ("suspend", json!({"client": 1}), 400, "expected a string"),
        ("live", json!({}), 405, "use GET"),
        ("nothing", json!({}), 404, "there are"),
    ];
    for (name, body, status, word) in cases {
        let reply = told(&admin, name, &body).await;
        assert_eq!(reply.status, status, "{name} {body}: {}", reply.body);
        assert!(reply.body.contains(word), "{name} {body}: {}", reply.body);
    }
    let large = "x".repeat(100_000);
    let reply = told(&admin, "changes", &json!({"root": large})).await;
    assert_eq!(reply.status, 400);
}

/// The names of metrics in a query.
fn metrics_of(query: &str) -> Vec<&str> {
    let words =
        query.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let is_name = |word: &&str| word.starts_with("mcp_filesystem_") || word.starts_with("process_");
    words.filter(is_name).collect()
}

#[tokio::test]
async fn the_dashboard_asks_for_metrics_that_there_are() {
    let tree = Tree::new().file("a", "text");
    let keys = json!({"allowed_tools": ["*"], "quota": {"max_bytes": 1000}});
    let setup = program().root_with("workspace", tree.path(), keys);
    let wire = setup.wire(Transport::Http).await;
    call(
        &wire,
        "read_file",
        &json!({"root": "workspace", "path": "a"}),
    )
    .await;
    wire.http()
        .send("GET", "/mcp", &[("host", "evil.example")])
        .await;
    let text = include_str!("../../../../../packaging/grafana.json");
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries = targets.filter_map(|target| target["expr"].as_str());
    let names: Vec<&str> = queries.flat_map(metrics_of).collect();
    assert!(names.len() > 10, "{names:?}");
    for needed in [
        "mcp_filesystem_history_changes",
        "mcp_filesystem_history_bytes",
        "process_start_time_seconds",
        "mcp_filesystem_build_info",
    ] {
        assert!(names.contains(&needed), "no panel shows {needed}");
    }
    let known = becomes(async || {
        let page = wire.http().get("/metrics").await.body;
        let is_told = |name: &&str| {
            let mut lines = page.lines();
            lines.any(|line| {
                line.strip_prefix(*name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
        };
        names.iter().all(is_told)
    });
    assert!(
        known.await,
        "{names:?} in {}",
        wire.http().get("/metrics").await.body
    );
}

#[tokio::test]
async fn admin_a_configured_client_can_be_kept_out_before_it_calls_and_the_operator_is_recorded() {
    let (tree, tokens, logs) = (Tree::new().file("a", "text"), Tree::new(), Tree::new());
    let digest = "sha256:d857bfb7f97e4c36761a2f72506a7365ec21fe36f4696e4f44734039ed9c9835";
    let clients = json!([{"name": "docs", "tokens": [digest], "roots": {"workspace": {}}}]);
    let setup = setup(&tree, &tokens)
        .set("clients", clients)
        .set("log.audit_file", json!(logs.join("calls")));
    let (wire, admin) = served(setup).await;
    let listed = asked(&admin, "clients").await;
    assert_eq!(listed["clients"][0]["client"], "docs", "{listed}");
    let suspend = |suspended| json!({"client": "docs", "suspended": suspended});
    assert_eq!(told(&admin, "suspend", &suspend(true)).await.status, 200);
    let own = ("authorization", "Bearer docs-token-0123456789");
    for method in ["tools/list", "resources/list", "initialize"] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        let reply = wire.http().post("/mcp", &[own], &message).await.json();
        let error = reply["error"]["message"].to_string();
        assert!(error.contains("suspended"), "{method}: {reply}");
    }
    assert_eq!(told(&admin, "suspend", &suspend(false)).await.status, 200);
    let write = json!({"root": "workspace", "path": "a", "content": "new"});
    let message = tool_call(1, "write_file", &write);
    let reply = wire.http().post("/mcp", &[own], &message).await.json();
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    let changes = told(&admin, "changes", &json!({"root": "workspace"})).await;
    let change = changes.json()["changes"][0]["change"].clone();
    let undo = json!({"root": "workspace", "change": change, "dry_run": false});
    assert_eq!(told(&admin, "undo", &undo).await.status, 200);
    assert_eq!(content(&tree), "text");
    wire.stop().await;
    let text = std::fs::read_to_string(logs.join("calls")).expect("an audit file");
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        format!("{} {}", line["client"], line["tool"])
    });
    let by_operator: Vec<String> = lines.filter(|line| line.contains("operator")).collect();
    assert_eq!(
        by_operator,
        [
            r#""operator" "suspend""#,
            r#""operator" "suspend""#,
            r#""operator" "undo""#
        ]
    );
}
