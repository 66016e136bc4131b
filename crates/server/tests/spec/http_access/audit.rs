//! The audit file, and what violations tell about their client.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{Http, Reply, Setup, Transport, Tree, Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::machine::{left_out, said, share};
use crate::harness::message::{hash_endless, initialize, tool_call};
use crate::harness::{ToolSet, becomes, metrics_show};
use crate::workspace::Workspace;

fn with_audit(tree: &Tree, logs: &Tree) -> Setup {
    Workspace::setup(tree).set("log.audit_file", json!(logs.join("calls.log")))
}

fn lines(logs: &Tree, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(logs.join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn audit_every_call_is_one_line_whatever_the_log_level() {
    testkit::over_both(async |transport| {
        let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
        // Over HTTP the start-up line tells the address.
        let level = match transport {
            Transport::Stdio => "error",
            Transport::Http => "info",
        };
        let setup = with_audit(&tree, &logs).set("log.level", level);
        let server = setup.start(transport).await;
        let paths = ["f", "no", "../x", "a\nb"];
        for path in paths {
            server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
        }
        let ended = server.stop().await;
        assert_eq!(ended.log().is_empty(), transport == Transport::Stdio);
        let written = lines(&logs, "calls.log");
        let seen: Vec<_> = written
            .iter()
            .map(|line| line["path"].as_str().unwrap())
            .collect();
        assert_eq!(seen, paths, "{transport:?}");
        assert_eq!(written[2]["message"], "violation");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(logs.join("calls.log"))
                .unwrap()
                .permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    })
    .await;
}

#[tokio::test]
async fn audit_a_file_that_was_moved_away_is_let_go_of_on_hangup() {
    testkit::over_both(async |transport| {
        let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
        let server = with_audit(&tree, &logs).start(transport).await;
        let call = async || {
            server
                .call("read_file", json!({"root": "workspace", "path": "f"}))
                .await
                .ok();
        };
        call().await;
        std::fs::rename(logs.join("calls.log"), logs.join("calls.1")).unwrap();
        server.reload();
        assert!(
            becomes(async || logs.has("calls.log")).await,
            "{transport:?}"
        );
        call().await;
        server.stop().await;
        assert_eq!(lines(&logs, "calls.1").len(), 1, "{transport:?}");
        assert_eq!(lines(&logs, "calls.log").len(), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn audit_a_file_that_cannot_be_written_is_a_start_up_error() {
    let (tree, logs) = (Tree::new(), Tree::new().dir("calls.log"));
    let ended = with_audit(&tree, &logs).refuse(Transport::Stdio).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.stderr.join("\n");
    assert!(
        line.contains("log.audit_file") && line.contains("not a regular file"),
        "{line}"
    );
}

/// Methods by which files are resources, and prompts, take the road of every call: a line each, with the client's trace, and
/// a figure each.
#[tokio::test]
async fn audit_methods_that_are_no_tools_are_there_too() {
    let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
    let setup = with_audit(&tree, &logs).set("server.sessions", "on");
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    let begun = http.post("/mcp", &[], &initialize(&json!({}))).await;
    let session = begun
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let of_template = json!({"type": "ref/resource", "uri": "fs://workspace/{+path}"});
    let typed = json!({"name": "path", "value": ""});
    let asked = [
        ("resources/read", json!({"uri": "fs://workspace/f"})),
        (
            "resources/directory/read",
            json!({"uri": "fs://workspace/"}),
        ),
        (
            "completion/complete",
            json!({"ref": of_template, "argument": typed}),
        ),
        ("prompts/get", json!({"name": "changes"})),
        ("resources/subscribe", json!({"uri": "fs://workspace/f"})),
    ];
    let trace =
        |number: usize| format!("00-0af7651916cd43dd8448eb211c8031{number:02}-00f067aa0ba902b7-01");
    for (number, (method, params)) in asked.iter().enumerate() {
        let mut params = params.clone();
        params["_meta"]["traceparent"] = json!(trace(number));
        let message = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
        let reply = http.post("/mcp", &headers, &message).await.json();
        assert!(reply["result"].is_object(), "{method}: {reply}");
    }
    // A list is the operator's own words and nobody's file: it is no call.
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "resources/list"});
    let reply = http.post("/mcp", &headers, &list).await.json();
    assert!(reply["result"].is_object(), "{reply}");
    let metrics = http.get("/metrics").await.body;
    wire.stop().await;
    let written = lines(&logs, "calls.log");
    assert_eq!(written.len(), asked.len(), "{written:?}");
    for (number, ((method, _), line)) in asked.iter().zip(&written).enumerate() {
        assert_eq!(line["tool"], *method, "{line}");
        assert_eq!(line["outcome"], "ok", "{line}");
        assert_eq!(line["traceparent"], trace(number).as_str(), "{line}");
        let figure = format!("tool=\"{method}\"");
        assert!(metrics.contains(&figure), "{method} has no figures");
    }
}

/// They have the rate of calls, too.
#[tokio::test]
async fn audit_methods_that_are_no_tools_have_the_rate_of_calls() {
    let tree = Tree::new().file("f", "x");
    let rate = json!({"per_second": 1, "burst": 1});
    let setup = Workspace::setup(&tree).set("limits.rate", rate);
    let wire = setup.wire(Transport::Http).await;
    let mut refused = Value::Null;
    for id in 0..3 {
        let params = json!({"uri": "fs://workspace/f"});
        let read =
            json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params});
        let headers = [("mcp-protocol-version", "2025-11-25")];
        let reply = wire.http().post("/mcp", &headers, &read).await.json();
        if reply["error"].is_object() {
            refused = reply["error"].clone();
        }
    }
    assert_eq!(refused["data"]["code"], "rate_limited", "{refused}");
}

#[tokio::test]
async fn audit_violations_are_counted_per_client() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        let server = Workspace::setup(&tree).start(transport).await;
        for path in ["f", "../one", "../two"] {
            server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
        }
        let line = server
            .logged(|line| line["attempted_path"] == "../two")
            .await;
        assert_eq!(line["client_violations"], 2, "{line}");
        assert_eq!(line["client_calls"], 3, "{line}");
    })
    .await;
}

#[tokio::test]
async fn audit_a_call_whose_client_hung_up_is_there_too() {
    let (tree, logs) = (Tree::new().sparse("endless", 1 << 42), Tree::new());
    let server = with_audit(&tree, &logs).start(Transport::Http).await;
    let hash = hash_endless(1);
    let http = server.http().clone();
    let call = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
    metrics_show(&server, "mcp_filesystem_calls_running 1").await;
    call.abort();
    let line = server.logged(|line| line["tool"] == "hash_file").await;
    assert_eq!(line["error_code"], "cancelled");
    server.stop().await;
    assert_eq!(lines(&logs, "calls.log").len(), 1);
}

#[tokio::test]
async fn audit_the_end_of_the_process_waits_for_calls_whose_clients_are_gone() {
    for sessions in ["off", "on"] {
        let (tree, logs) = (Tree::new().sparse("endless", 1 << 42), Tree::new());
        let setup = with_audit(&tree, &logs).set("server.sessions", sessions);
        let server = setup.start(Transport::Http).await;
        // One call of the client, in a session if there are sessions, and one by hand that asks for progress.
        let call = server.spawn_call(
            "hash_file",
            json!({"root": "workspace", "path": "endless", "algorithm": "md5"}),
        );
        let mut hash = hash_endless(1);
        hash["params"]["_meta"] = json!({"progressToken": 1});
        let http = server.http().clone();
        let raw = tokio::spawn(async move { http.post("/mcp", &[], &hash).await });
        let wanted = if sessions == "on" { 1 } else { 2 };
        let running = format!("mcp_filesystem_calls_running {wanted}");
        metrics_show(&server, &running).await;
        call.abort();
        raw.abort();
        server.stop().await;
        let lines = lines(&logs, "calls.log");
        assert_eq!(lines.len(), wanted, "{sessions}: {lines:?}");
    }
}

/// A process that holds a lease on a file: others who open the file wait until the lease ends.
struct Lease {
    holder: Child,
}

impl Lease {
    /// Takes a lease, which ends when it is dropped. The kernel ends it after 45 seconds by itself.
    fn on(path: &Path) -> Option<Lease> {
        // F_SETLEASE is 1024 and F_WRLCK is 1. Its holder is told by SIGIO when others wait.
        let script = "$SIG{IO} = 'IGNORE'; open(F, '+<', $ARGV[0]) && fcntl(F, 1024, 1) || exit 1; \
                      $| = 1; print \"held\\n\"; <STDIN>;";
        let mut command = Command::new("perl");
        command.args(["-e", script]).arg(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().ok()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take()?)
            .read_line(&mut line)
            .ok()?;
        (line == "held\n").then_some(Lease { holder })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The holder may have ended by itself; either way the lease is gone.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn call(tool: &str, mut arguments: Value) -> Value {
    arguments["root"] = json!("workspace");
    tool_call(1, tool, &arguments)
}

/// Writes files one after the other until a write has to wait; returns that one and how many went before.
async fn write_until_one_waits(http: &Http) -> (JoinHandle<Reply>, usize) {
    for number in 0..20_000 {
        let (http, path) = (http.clone(), format!("f{number}"));
        let write = call("write_file", json!({"path": path, "content": "x"}));
        let mut write = tokio::spawn(async move { http.post("/mcp", &[], &write).await });
        match timeout(Duration::from_secs(1), &mut write).await {
            Ok(reply) => assert_eq!(reply.unwrap().status, 200),
            // A machine may be slow, but the queue alone holds a thousand lines.
            Err(_) if number >= 1000 => return (write, number),
            Err(_) => assert_eq!(write.await.unwrap().status, 200),
        }
    }
    panic!("no write ever waits");
}

#[tokio::test]
async fn audit_a_file_that_takes_no_byte_holds_up_changes_and_nothing_else() {
    let (tree, logs) = (Tree::in_memory().file("f", "x"), Tree::new());
    let setup = with_audit(&tree, &logs)
        .set("durability", "fast")
        .set("limits.max_concurrent_calls", 8);
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    // Opening the new file takes as long as the lease lasts, and no line is written meanwhile.
    std::fs::rename(logs.join("calls.log"), logs.join("calls.1")).unwrap();
    logs.write("calls.log", "");
    let Some(lease) = Lease::on(&logs.join("calls.log")) else {
        return left_out("there is no perl, or no lease can be had");
    };
    wire.reload();
    let (first, written) = write_until_one_waits(http).await;

    // Far more changes than calls may run at once.
    let late = (0..40).map(|number| {
        let (http, path) = (http.clone(), format!("late{number}"));
        let write = call("write_file", json!({"path": path, "content": "x"}));
        tokio::spawn(async move { http.post("/mcp", &[], &write).await })
    });
    let late: Vec<JoinHandle<Reply>> = late.chain([first]).collect();
    // With everything tried it goes on for twenty seconds.
    let (begun, stuck) = (
        Instant::now(),
        Duration::from_millis(20 * share(1000) as u64),
    );
    let mut reads = 0;
    while reads < 10 || begun.elapsed() < stuck {
        reads += 1;
        assert_eq!(http.get("/health").await.status, 200);
        let read = call("read_file", json!({"path": "f"}));
        let read = http.post("/mcp", &[], &read);
        assert_eq!(
            read.await.json()["result"]["structuredContent"]["content"],
            "x"
        );
    }
    assert!(
        late.iter().all(|write| !write.is_finished()),
        "changes wait"
    );
    assert!(
        !tree.has("late0"),
        "a change that waits has changed nothing"
    );
    // Its size alone: to open the file is to wait for the lease.
    let size = std::fs::metadata(logs.join("calls.log")).unwrap().len();
    assert_eq!(size, 0, "nothing is written");

    drop(lease);
    for write in late {
        let reply = write.await.unwrap().json();
        assert_ne!(reply["result"]["isError"], true, "{reply}");
    }
    assert!(tree.has("late0"));
    wire.stop().await;
    let recorded = lines(&logs, "calls.1").len() + lines(&logs, "calls.log").len();
    assert_eq!(recorded, written + 41 + reads, "no call is missing");
    said(&format!(
        "{reads} reads in {:.1} s while 41 changes waited",
        begun.elapsed().as_secs_f64()
    ));
}
