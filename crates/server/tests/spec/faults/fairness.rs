//! One client's heavy calls, and what another client gets done beside them. What is asserted is the order of replies,
//! never their time.

use testkit::{Http, Reply, Setup, Transport, Tree, Value, json};
use tokio::task::JoinHandle;

use crate::harness::message::tool_call;
use crate::harness::{ToolSet, becomes};
use crate::workspace::Workspace;

/// How many heavy calls the attacker has under way: `make bench-starve` has fifty times as many.
const ATTACKERS: u64 = 5;
const ATTACKER: (&str, &str) = ("authorization", "Bearer greedy-1-of-sixteen");
const VICTIM: (&str, &str) = ("authorization", "Bearer modest-2-of-sixteen");

/// Calls without an end that a test could wait for.
fn heavy_calls() -> [(&'static str, Value); 3] {
    [
        ("hash_file", json!({"path": "endless", "algorithm": "md5"})),
        (
            "read_file",
            json!({"path": "endless", "offset_lines": 1_000_000_000_000_u64}),
        ),
        (
            "grep",
            json!({"path": "many", "pattern": "(?:[a-c]{0,40}){0,45}[0-9]"}),
        ),
    ]
}

/// One text under so many names that a search of them all takes minutes on any machine, and no room on the disk.
fn tree() -> Tree {
    let tree = Tree::new()
        .sparse("endless", 1 << 42)
        .file("many/0", "abcabcabc\n".repeat(900_000))
        .file("f", "small\n");
    (1..2_000).fold(tree, |tree, number| {
        tree.hard_link(format!("many/{number}"), "many/0")
    })
}

fn setup(tree: &Tree, tokens: &Tree) -> Setup {
    tokens.write("tokens", "greedy-1-of-sixteen\nmodest-2-of-sixteen\n");
    Workspace::setup(tree)
        .set("server.bearer_tokens_file", json!(tokens.join("tokens")))
        .set("limits.request_timeout", 600)
        .set("limits.search_timeout", 600)
        .set("durability", "fast")
}

fn message(id: u64, tool: &str, mut arguments: Value) -> Value {
    arguments["root"] = json!("workspace");
    tool_call(id, tool, &arguments)
}

async fn call(http: &Http, tool: &str, arguments: Value) -> Value {
    let reply = http
        .post("/mcp", &[VICTIM], &message(1, tool, arguments))
        .await;
    let result = &reply.json()["result"];
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

/// Begins so many calls of the attacker.
fn attack(
    http: &Http,
    tool: &'static str,
    arguments: &Value,
    calls: u64,
) -> Vec<JoinHandle<Reply>> {
    let begin = |id| {
        let (http, message) = (http.clone(), message(id, tool, arguments.clone()));
        tokio::spawn(async move { http.post("/mcp", &[ATTACKER], &message).await })
    };
    (0..calls).map(begin).collect()
}

/// Waits until so many calls run and so many wait.
async fn calls_become(http: &Http, running: u64, waiting: u64) {
    let lines = [
        format!("mcp_filesystem_calls_running {running}"),
        format!("mcp_filesystem_calls_waiting {waiting}"),
    ];
    let shown = becomes(async || {
        let page = http.send("GET", "/metrics", &[VICTIM]).await.body;
        lines.iter().all(|line| page.lines().any(|own| own == line))
    });
    assert!(shown.await, "never: {lines:?}");
}

/// Everything that small calls do, and heavy calls that are soon done.
async fn work(http: &Http, round: u64) {
    let content = format!("round {round}\n");
    let written = json!({"path": "written", "content": content});
    call(http, "write_file", written).await;
    let read = call(http, "read_file", json!({"path": "written"})).await;
    assert_eq!(read["content"], content);
    let status = call(http, "stat_file", json!({"path": "f"})).await;
    assert_eq!(status["size"], 6);
    let listed = call(http, "list_folder", json!({"path": "."})).await;
    assert!(
        listed["entries"]
            .as_array()
            .is_some_and(|all| all.len() >= 4),
        "{listed}"
    );
    let hash = call(http, "hash_file", json!({"path": "f", "algorithm": "md5"})).await;
    assert_eq!(hash["hash"].as_str().map(str::len), Some(32), "{hash}");
    let found = call(http, "grep", json!({"path": "f", "pattern": "small"})).await;
    assert_eq!(found["total_matches"], 1);
}

#[tokio::test]
async fn fairness_small_calls_do_not_wait_for_another_clients_heavy_ones() {
    let (tree, tokens) = (tree(), Tree::new());
    let setup = setup(&tree, &tokens);
    for (tool, arguments) in heavy_calls() {
        let server = setup.clone().wire(Transport::Http).await;
        let running = attack(server.http(), tool, &arguments, ATTACKERS);
        calls_become(server.http(), ATTACKERS, 0).await;
        for round in 0..3 {
            work(server.http(), round).await;
        }
        assert!(
            running.iter().all(|call| !call.is_finished()),
            "{tool} {arguments}"
        );
        running.iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test]
async fn fairness_waiting_heavy_calls_hold_no_slots_of_others() {
    let (tree, tokens) = (tree(), Tree::new());
    let setup = setup(&tree, &tokens).set("limits.max_concurrent_calls", 4);
    let server = setup.wire(Transport::Http).await;
    let (tool, arguments) = &heavy_calls()[0];
    let running = attack(server.http(), tool, arguments, 20);
    calls_become(server.http(), 3, 17).await;
    let read = call(server.http(), "read_file", json!({"path": "f"})).await;
    assert_eq!(read["content"], "small\n");
    assert!(running.iter().all(|call| !call.is_finished()));
    running.iter().for_each(JoinHandle::abort);
}
