//! SIGHUP reads the config file again: what can change takes effect at once, and what cannot is named.

use std::time::Duration;

use testkit::{Http, Reply, Setup, Transport, Tree, Value, Wire, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::machine::left_out;
use crate::harness::message::{initialize, initialized, tool_call};
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

const PATIENCE: Duration = Duration::from_secs(20);
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Tokens, and their digests.
const EARLY: (&str, &str) = (
    "docs-token-0123456789",
    "sha256:d857bfb7f97e4c36761a2f72506a7365ec21fe36f4696e4f44734039ed9c9835",
);
const LATE: (&str, &str) = (
    "late-token-0123456789",
    "sha256:9f0cf3aafa42f32e1234d962b9c21cc0c3da97109a00de362ff86427a9d1d013",
);

const METRICS: &str = "metrics-token-0123456789";

fn tree() -> Tree {
    Tree::new().file("open.md", "open").file("inner/f", "inner")
}

fn client(name: &str, token: (&str, &str), root: Value) -> Value {
    json!({"name": name, "tokens": [token.1], "roots": {"workspace": root}})
}

fn with_clients(setup: Setup, clients: &[Value]) -> Setup {
    setup.set("clients", json!(clients))
}

async fn post(http: &Http, token: &str, more: &[(&str, &str)], message: &Value) -> Reply {
    let token = format!("Bearer {token}");
    let mut headers = vec![("authorization", token.as_str())];
    headers.extend(more);
    http.post("/mcp", &headers, message).await
}

fn read() -> Value {
    let arguments = json!({"root": "workspace", "path": "open.md"});
    tool_call(1, "read_file", &arguments)
}

fn write(path: &str) -> Value {
    let arguments = json!({"root": "workspace", "path": path, "content": "x"});
    tool_call(2, "write_file", &arguments)
}

/// The code of a tool's failure.
fn code(reply: &Value) -> &str {
    let code = &reply["result"]["structuredContent"]["error"]["code"];
    code.as_str().unwrap_or("none")
}

/// What the lines of a level say, each with the keys it names.
fn told(lines: &[Value], level: &str) -> String {
    let is_of_reload = |line: &&Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("settings") || message.contains("configuration")
    };
    let lines = lines.iter().filter(is_of_reload);
    let lines = lines.filter(|line| line["level"] == level);
    let told = lines.map(|line| format!("{} {} {}", line["message"], line["keys"], line["error"]));
    told.collect::<Vec<_>>().join("\n")
}

fn is_locked_in(started: &Value) -> bool {
    started["protections"].to_string().contains("landlock abi")
}

async fn started(wire: &Wire) -> Value {
    wire.logged(|line| line["message"] == "server started")
        .await
}

#[tokio::test]
async fn clients_are_added_removed_and_narrowed_while_they_work() {
    let tree = tree();
    let tokens = Tree::new().file("metrics", METRICS);
    let setup = Workspace::setup(&tree)
        .set("server.sessions", "on")
        .set("server.metrics_tokens_file", json!(tokens.join("metrics")));
    let early = |root| with_clients(setup.clone(), &[client("early", EARLY, root)]);
    let wire = early(json!({})).wire(Transport::Http).await;
    let http = wire.http();
    let begun = post(http, EARLY.0, &[], &initialize(&json!({}))).await;
    let tools = &begun.json()["result"]["capabilities"]["tools"];
    assert_eq!(tools["listChanged"], true, "{begun:?}");
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let session = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let written = post(http, EARLY.0, &session, &write("one")).await.json();
    assert_eq!(code(&written), "none", "{written}");
    assert_eq!(post(http, LATE.0, &[], &read()).await.status, 401);

    let narrow = client("early", EARLY, json!({"rights": ["read"]}));
    let added = [narrow, client("late", LATE, json!({}))];
    let lines = wire.reconfigure(&with_clients(setup.clone(), &added)).await;
    assert!(told(&lines, "INFO").contains("clients"), "{lines:?}");
    assert_eq!(told(&lines, "WARN"), "");
    let refused = post(http, EARLY.0, &session, &write("two")).await.json();
    assert_eq!(
        code(&refused),
        "tool_not_allowed",
        "in its session: {refused}"
    );
    assert!(!tree.has("two"));
    let reply = post(http, EARLY.0, &session, &read()).await.json();
    assert_eq!(code(&reply), "none", "{reply}");
    let begun = post(http, LATE.0, &[], &initialize(&json!({}))).await;
    assert_eq!(begun.status, 200, "{begun:?}");

    let only_late = with_clients(setup.clone(), &[client("late", LATE, json!({}))]);
    wire.reconfigure(&only_late).await;
    assert_eq!(post(http, EARLY.0, &session, &read()).await.status, 401);
    assert_eq!(post(http, EARLY.0, &[], &read()).await.status, 401);
    let begun = post(http, LATE.0, &[], &initialize(&json!({}))).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let token = format!("Bearer {METRICS}");
    let headers = [("authorization", token.as_str())];
    let page = http.send("GET", "/metrics", &headers).await.body;
    assert!(page.contains("mcp_filesystem_sessions 2"), "{page}");
}

#[tokio::test]
async fn limits_change_and_a_port_is_named() {
    let tree = tree();
    let wire = Workspace::setup(&tree).wire(Transport::Http).await;
    let http = wire.http();
    let next = Workspace::setup(&tree)
        .set("max_full_read_size", 2)
        .set("log.level", "debug")
        .set("limits.request_timeout", 7)
        .set("limits.max_concurrent_calls", 3)
        .set("toolsets", json!(["workspace", "files"]));
    let lines = wire.reconfigure(&next).await;
    let (applied, kept) = (told(&lines, "INFO"), told(&lines, "WARN"));
    for key in [
        "max_full_read_size",
        "limits.request_timeout",
        "limits.max_concurrent_calls",
    ] {
        assert!(applied.contains(key) && !kept.contains(key), "{lines:?}");
    }
    for key in ["toolsets", "log.level"] {
        assert!(kept.contains(key) && !applied.contains(key), "{lines:?}");
    }
    assert!(kept.contains("restart"), "{kept}");
    let reply = http.post("/mcp", &[], &read()).await.json();
    assert_eq!(code(&reply), "too_large", "{reply}");
    assert_eq!(http.post("/mcp/files", &[], &read()).await.status, 404);
}

#[tokio::test]
async fn a_mistake_keeps_all_of_the_old_state() {
    let tree = tree();
    let clients = [client("early", EARLY, json!({}))];
    let good = with_clients(Workspace::setup(&tree), &clients);
    let wire = good.clone().wire(Transport::Http).await;
    let http = wire.http();
    let missing = Workspace::setup(&tree).root("gone", &tree.join("not there"));
    let twice = [
        client("late", LATE, json!({})),
        client("late", EARLY, json!({})),
    ];
    let broken = [
        (good.clone().config_text("roots: ["), "not valid YAML"),
        (good.clone().set("limits.rate", "often"), "limits.rate"),
        (with_clients(missing, &clients), "not there"),
        (with_clients(Workspace::setup(&tree), &twice), "late"),
    ];
    for (broken, reason) in broken {
        let lines = wire.reconfigure(&broken).await;
        let error = told(&lines, "ERROR");
        assert!(
            error.contains(reason) && error.contains("stay in force"),
            "{reason}: {lines:?}"
        );
        assert_eq!(post(http, EARLY.0, &[], &read()).await.status, 200);
        assert_eq!(post(http, LATE.0, &[], &read()).await.status, 401);
    }
    wire.reconfigure(&with_clients(
        Workspace::setup(&tree),
        &[client("late", LATE, json!({}))],
    ))
    .await;
    assert_eq!(post(http, LATE.0, &[], &read()).await.status, 200);
}

async fn roots(http: &Http) -> Vec<String> {
    let reply = http
        .post("/mcp", &[], &tool_call(1, "list_roots", &json!({})))
        .await
        .json();
    let roots = reply["result"]["structuredContent"]["roots"].as_array();
    let names = roots.unwrap_or_else(|| panic!("{reply}")).iter();
    names
        .map(|root| root["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn roots_come_and_go_as_far_as_the_process_is_locked_in() {
    let (tree, other) = (tree(), Tree::new().file("f", "outside"));
    let wire = Workspace::setup(&tree).wire(Transport::Http).await;
    let is_locked = is_locked_in(&started(&wire).await);
    let http = wire.http();
    let inside = Workspace::setup(&tree).root("inner", &tree.join("inner"));
    let lines = wire.reconfigure(&inside).await;
    assert!(told(&lines, "INFO").contains("roots"), "{lines:?}");
    assert_eq!(roots(http).await, ["workspace", "inner"]);
    let write = json!({"root": "inner", "path": "new", "content": "x"});
    let reply = http
        .post("/mcp", &[], &tool_call(1, "write_file", &write))
        .await;
    assert_eq!(code(&reply.json()), "none", "{reply:?}");
    assert_eq!(tree.text("inner/new"), "x");
    let change = &reply.json()["result"]["structuredContent"]["change"];
    let undo = tool_call(1, "undo", &json!({"root": "inner", "change": change}));
    let reply = http.post("/mcp", &[], &undo).await;
    assert_eq!(code(&reply.json()), "none", "{reply:?}");
    assert!(!tree.has("inner/new"), "a new root keeps a history");

    let outside = Workspace::setup(&tree).root("other", other.path());
    let lines = wire.reconfigure(&outside).await;
    if is_locked {
        assert!(
            told(&lines, "WARN").contains("roots[1].path (other)"),
            "{lines:?}"
        );
        assert_eq!(roots(http).await, ["workspace"], "inner is gone");
    } else {
        left_out("this kernel has no Landlock");
        assert_eq!(roots(http).await, ["workspace", "other"]);
    }
    let gone = json!({"root": "inner", "path": "f"});
    let reply = http
        .post("/mcp", &[], &tool_call(1, "read_file", &gone))
        .await;
    assert_eq!(code(&reply.json()), "unknown_root", "{reply:?}");
}

#[tokio::test]
async fn every_key_of_a_root_that_stays_where_it_was_is_named() {
    let (tree, other) = (tree(), Tree::new());
    let wire = Workspace::setup(&tree).wire(Transport::Http).await;
    if !is_locked_in(&started(&wire).await) {
        return left_out("this kernel has no Landlock");
    }
    let keys = json!({"allowed_tools": ["read_file"], "deny": ["open.md"], "read_only": true});
    let moved = program().root_with("workspace", other.path(), keys);
    let lines = wire.reconfigure(&moved).await;
    let told = told(&lines, "WARN");
    for key in ["path", "deny", "read_only", "allowed_tools"] {
        let named = format!("roots[0].{key} (workspace)");
        assert!(told.contains(&named), "{key}: {told}");
    }
    assert!(!told.contains("quota"), "{told}");
}

#[tokio::test]
async fn without_landlock_roots_come_from_anywhere_and_read_only_ones_can_be_opened() {
    let (tree, other) = (tree(), Tree::new().file("f", "elsewhere"));
    let setup = |keys: Value| {
        program()
            .set("sandbox.landlock", "off")
            .root_with("workspace", tree.path(), keys)
    };
    let open = json!({"allowed_tools": ["*"]});
    let closed = json!({"allowed_tools": ["*"], "read_only": true});
    let wire = setup(closed.clone()).wire(Transport::Http).await;
    let http = wire.http();
    let reply = http.post("/mcp", &[], &write("a")).await.json();
    assert_eq!(code(&reply), "tool_not_allowed");
    let next = setup(open).root("other", other.path());
    let lines = wire.reconfigure(&next).await;
    assert_eq!(told(&lines, "WARN"), "");
    let reply = http.post("/mcp", &[], &write("a")).await.json();
    assert_eq!(code(&reply), "none", "{reply}");
    assert_eq!(roots(http).await, ["workspace", "other"]);
    wire.reconfigure(&setup(closed)).await;
    let reply = http.post("/mcp", &[], &write("b")).await.json();
    assert_eq!(code(&reply), "tool_not_allowed");
    assert_eq!(roots(http).await, ["workspace"]);
}

#[tokio::test]
async fn what_a_root_denies_and_may_hold_changes_and_its_history_stays() {
    let tree = tree();
    let setup = |keys: Value| program().root_with("workspace", tree.path(), keys);
    let open = json!({"allowed_tools": ["*"]});
    let wire = setup(open.clone()).wire(Transport::Http).await;
    let http = wire.http();
    let kept = http.post("/mcp", &[], &write("kept")).await.json();
    assert_eq!(code(&kept), "none", "{kept}");
    let closed = json!({"allowed_tools": ["*"], "deny": ["open.md"], "quota": {"max_files": 4}});
    wire.reconfigure(&setup(closed)).await;
    let reply = http.post("/mcp", &[], &read()).await.json();
    assert_eq!(code(&reply), "not_found", "{reply}");
    let reply = http.post("/mcp", &[], &write("too many")).await.json();
    assert_eq!(code(&reply), "disk_full", "{reply}");
    let change = &kept["result"]["structuredContent"]["change"];
    let undo = tool_call(1, "undo", &json!({"root": "workspace", "change": change}));
    let reply = http.post("/mcp", &[], &undo).await.json();
    assert_eq!(code(&reply), "none", "{reply}");
    assert!(!tree.has("kept"));
    wire.reconfigure(&setup(open)).await;
    let reply = http.post("/mcp", &[], &read()).await.json();
    assert_eq!(code(&reply), "none", "{reply}");
}

#[tokio::test]
async fn behind_landlock_a_read_only_root_needs_a_restart_to_be_opened() {
    let tree = tree();
    let setup = |keys: Value| program().root_with("workspace", tree.path(), keys);
    let closed = json!({"allowed_tools": ["*"], "read_only": true});
    let wire = setup(closed).wire(Transport::Http).await;
    if !is_locked_in(&started(&wire).await) {
        return left_out("this kernel has no Landlock");
    }
    let open = setup(json!({"allowed_tools": ["*"]}));
    let lines = wire.reconfigure(&open).await;
    assert!(
        told(&lines, "WARN").contains("roots[0].read_only (workspace)"),
        "{lines:?}"
    );
    let reply = wire.http().post("/mcp", &[], &write("a")).await.json();
    assert_eq!(code(&reply), "tool_not_allowed", "{reply}");
}

#[tokio::test]
async fn on_stdio_rights_change_and_the_client_hears_of_its_tools() {
    let tree = tree();
    let setup = || Workspace::setup(&tree);
    let mut wire = setup().wire(Transport::Stdio).await;
    let greeted = wire.request(&initialize(&json!({}))).await;
    assert_eq!(
        greeted["result"]["capabilities"]["tools"]["listChanged"], true,
        "{greeted}"
    );
    wire.notify(&initialized()).await;
    let stdio = json!({"name": "stdio", "roots": {"workspace": {"rights": ["read"]}}});
    wire.reconfigure(&with_clients(setup(), &[stdio])).await;
    let line = wire.next().await.expect("the server hung up");
    let told: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(told["method"], TOOLS_CHANGED, "{told}");
    let reply = wire.request(&write("no")).await;
    assert!(
        ["read_only", "tool_not_allowed"].contains(&code(&reply)),
        "{reply}"
    );
    assert!(!tree.has("no"));
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    let listed = wire.request(&list).await.to_string();
    assert!(!listed.contains("write_file") && listed.contains("read_file"));
    wire.reconfigure(&setup()).await;
    let line = wire.next().await.expect("the server hung up");
    assert!(line.contains(TOOLS_CHANGED), "{line}");
    let reply = wire.request(&write("yes")).await;
    assert_eq!(code(&reply), "none", "{reply}");
}

/// Older revisions have no end of a subscription, so the last update says it.
#[tokio::test]
async fn what_is_watched_is_said_to_be_watched_no_longer_when_rights_change() {
    const UNSURE: &str = "io.github.mcp-filesystem/unsure";
    let tree = tree();
    let setup = || Workspace::setup(&tree);
    let mut wire = setup().wire(Transport::Stdio).await;
    wire.request(&initialize(&json!({}))).await;
    wire.notify(&initialized()).await;
    let uri = "fs://workspace/open.md";
    let ask = |method: &str| {
        let method = format!("resources/{method}");
        json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"uri": uri}})
    };
    let begun = wire.request(&ask("subscribe")).await;
    assert_eq!(begun["result"], json!({}), "{begun}");
    let stdio = json!({"name": "stdio", "roots": {"workspace": {"rights": ["read"]}}});
    wire.reconfigure(&with_clients(setup(), &[stdio])).await;
    let mut last = Value::Null;
    while last["method"] != "notifications/resources/updated" {
        let line = wire.next().await.expect("the server hung up");
        last = serde_json::from_str(&line).expect("JSON");
    }
    assert_eq!(last["params"]["uri"], uri, "{last}");
    let unsure = last["params"]["_meta"][UNSURE].as_str().expect("a reason");
    assert!(unsure.contains("subscribe again"), "{unsure}");
    // It is forgotten a moment after that was told; the second answer is the same either way.
    wire.request(&ask("unsubscribe")).await;
    let again = wire.request(&ask("unsubscribe")).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let begun = wire.request(&ask("subscribe")).await;
    assert_eq!(begun["result"], json!({}), "{begun}");
    tree.write("open.md", "changed");
    let line = wire.next().await.expect("the server hung up");
    let told: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(told["params"], json!({ "uri": uri }), "{told}");
}

#[tokio::test]
async fn without_a_config_file_no_other_tools_are_announced() {
    let tree = tree();
    let path = tree.path().display().to_string();
    let setup = program().arguments([path]);
    let mut wire = setup.wire(Transport::Stdio).await;
    let greeted = wire.request(&initialize(&json!({}))).await;
    let tools = &greeted["result"]["capabilities"]["tools"];
    assert!(
        tools.is_object() && tools["listChanged"].is_null(),
        "{greeted}"
    );
}

/// A stream of events over HTTP.
pub(super) struct Events(Lines<BufReader<TcpStream>>);

impl Events {
    pub(super) async fn open(
        http: &Http,
        verb: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Events {
        let address = http.address();
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let mut request = format!(
            "{verb} /mcp HTTP/1.1\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("\r\n{body}");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it is sent");
        Events(BufReader::new(stream).lines())
    }

    /// The next message; none once the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            let line = timeout(PATIENCE, self.0.next_line()).await;
            let line = line.expect("no line in time").ok().flatten()?;
            let data = line.strip_prefix("data: ").filter(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
            // The last chunk of a body.
            if line == "0" {
                return None;
            }
        }
    }
}

#[tokio::test]
async fn in_sessions_and_on_subscriptions_clients_hear_of_their_tools() {
    let tree = tree();
    let setup = Workspace::setup(&tree).set("server.sessions", "on");
    let two = |root| {
        let clients = [
            client("early", EARLY, root),
            client("late", LATE, json!({})),
        ];
        with_clients(setup.clone(), &clients)
    };
    let wire = two(json!({})).wire(Transport::Http).await;
    let http = wire.http();
    let begun = post(http, EARLY.0, &[], &initialize(&json!({}))).await;
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let token = format!("Bearer {}", EARLY.0);
    let in_session = [
        ("authorization", token.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut events = Events::open(http, "GET", &in_session, "").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let listen = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}});
    let newest = |token| {
        [
            ("authorization", token),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "subscriptions/listen"),
        ]
    };
    let mut listening = Events::open(http, "POST", &newest(&token), &listen.to_string()).await;
    let first = listening.next().await.expect("an acknowledgement");
    let granted = &first["params"]["notifications"];
    assert_eq!(granted["toolsListChanged"], true, "{first}");
    let other = format!("Bearer {}", LATE.0);
    let mut unconcerned = Events::open(http, "POST", &newest(&other), &listen.to_string()).await;
    unconcerned.next().await.expect("an acknowledgement");

    wire.reconfigure(&two(json!({"rights": ["read"]}))).await;
    let told = events.next().await.expect("the stream goes on");
    assert_eq!(told["method"], TOOLS_CHANGED, "{told}");
    let told = listening.next().await.expect("the stream goes on");
    assert_eq!(told["method"], TOOLS_CHANGED, "{told}");
    let id = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*id, 9, "{told}");

    wire.reconfigure(&setup).await;
    assert!(
        events.next().await.is_none(),
        "a session of a client that is gone ends"
    );
    let last = listening.next().await.expect("the end is told");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    let last = unconcerned.next().await.expect("the end is told");
    assert_eq!(last["result"]["resultType"], "complete", "only now: {last}");
}
