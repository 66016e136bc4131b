//! The chain of the audit file, and `audit verify`, which follows it.

use std::path::Path;

use testkit::{Ended, Server, Setup, Transport, Tree, Value, json};

use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

const FILE: &str = "calls.log";

fn with_audit(tree: &Tree, logs: &Tree) -> Setup {
    Workspace::setup(tree).set("log.audit_file", json!(logs.join(FILE)))
}

async fn call(server: &Server) {
    let arguments = json!({"root": "workspace", "path": "f"});
    server.call("read_file", arguments).await.ok();
}

/// Makes calls and gives back the lines of the file.
async fn recorded(logs: &Tree, calls: usize, transport: Transport) -> Vec<String> {
    let tree = Tree::new().file("f", "x");
    let server = with_audit(&tree, logs).start(transport).await;
    for _ in 0..calls {
        call(&server).await;
    }
    server.stop().await;
    lines(logs, FILE)
}

fn lines(logs: &Tree, name: &str) -> Vec<String> {
    logs.text(name).lines().map(str::to_owned).collect()
}

/// Writes lines as a file and verifies it.
async fn verified(logs: &Tree, lines: &[String]) -> (Option<i32>, Value) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(logs.join("other.log"), text).unwrap();
    verify(&[&logs.join("other.log")]).await
}

async fn verify(files: &[&Path]) -> (Option<i32>, Value) {
    let ended = run(files, &[]).await;
    (ended.code, verdict(&ended))
}

async fn run(files: &[&Path], more: &[&str]) -> Ended {
    let files = files.iter().map(|path| path.display().to_string());
    let words = ["audit", "verify"].map(str::to_owned).into_iter();
    let words = words.chain(more.iter().map(|word| (*word).to_owned()));
    program().arguments(words.chain(files)).run().await
}

/// What is said of the last file.
fn verdict(ended: &Ended) -> Value {
    let last = ended.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{ended:?}"))
}

#[tokio::test]
async fn audit_chain_an_untouched_file_verifies_and_each_line_follows_the_one_before() {
    testkit::over_both(async |transport| {
        let logs = Tree::new();
        let lines = recorded(&logs, 5, transport).await;
        let parsed: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let numbers: Vec<_> = parsed.iter().map(|line| line["seq"].as_u64()).collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4), Some(5)]);
        assert_eq!(parsed[0]["prev"], "0".repeat(64));
        assert_eq!(parsed[0]["first"], true);
        assert_eq!(parsed[1].get("first"), None);
        let (code, verdict) = verify(&[&logs.join(FILE)]).await;
        assert_eq!(code, Some(0), "{verdict}");
        assert_eq!(verdict["ok"], true);
        assert_eq!(verdict["lines"], 5);
        assert_eq!(verdict["seq"], 5);
    })
    .await;
}

#[tokio::test]
async fn audit_chain_the_first_altered_or_missing_line_is_named() {
    let logs = Tree::new();
    let lines = recorded(&logs, 7, Transport::Stdio).await;
    let altered = {
        let mut lines = lines.clone();
        lines[3] = lines[3].replace("\"path\":\"f\"", "\"path\":\"g\"");
        lines
    };
    let removed = [&lines[..3], &lines[4..]].concat();
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    let beheaded = lines[1..].to_vec();
    let mut doubled = lines.clone();
    doubled.insert(4, lines[3].clone());
    for (what, changed, line, fault) in [
        ("altered", &altered, 4, "altered"),
        ("removed", &removed, 4, "missing"),
        ("swapped", &swapped, 4, "missing"),
        ("beheaded", &beheaded, 1, "missing"),
        ("doubled", &doubled, 5, "misplaced"),
    ] {
        assert_ne!(changed, &lines, "{what}");
        let (code, verdict) = verified(&logs, changed).await;
        assert_eq!(code, Some(1), "{what}: {verdict}");
        assert_eq!(verdict["ok"], false, "{what}: {verdict}");
        assert_eq!(verdict["line"], line, "{what}: {verdict}");
        assert_eq!(verdict["fault"], fault, "{what}: {verdict}");
    }
    let (code, verdict) = verified(&logs, &lines).await;
    assert_eq!(code, Some(0), "{verdict}");
}

#[tokio::test]
async fn audit_chain_a_cut_end_is_seen_with_the_head_that_the_log_has() {
    let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
    let setup = with_audit(&tree, &logs).set("log.audit_head_every", 1);
    let server = setup.start(Transport::Http).await;
    for _ in 0..4 {
        call(&server).await;
    }
    let is_head = |line: &Value| line["message"] == "audit head";
    let head = server.logged(is_head).await;
    let hash = head["hash"].as_str().unwrap().to_owned();
    server.stop().await;
    let lines = lines(&logs, FILE);
    let file = logs.join(FILE);
    let ended = run(&[&file], &["--head", &hash]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Without the head nothing tells that there was more.
    let seen = usize::try_from(head["seq"].as_u64().unwrap()).unwrap();
    let (code, verdict) = verified(&logs, &lines[..seen - 1]).await;
    assert_eq!(code, Some(0), "{verdict}");
    let ended = run(&[&logs.join("other.log")], &["--head", &hash]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(verdict_fault(&ended), "head_not_found");
    let ended = run(&[&file], &["--head", "abc"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

fn verdict_fault(ended: &Ended) -> String {
    verdict(ended)["fault"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn audit_chain_the_head_is_logged_at_the_end_or_never() {
    for (every, heads) in [(3600, 1), (0, 0)] {
        let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
        let setup = with_audit(&tree, &logs).set("log.audit_head_every", every);
        let server = setup.start(Transport::Stdio).await;
        call(&server).await;
        let ended = server.stop().await;
        let is_head = |line: &&Value| line["message"] == "audit head";
        let log = ended.log();
        assert_eq!(log.iter().filter(is_head).count(), heads, "{log:?}");
    }
}

#[tokio::test]
async fn audit_chain_a_restart_and_a_kill_go_on_with_the_chain() {
    let logs = Tree::new();
    recorded(&logs, 2, Transport::Stdio).await;
    let lines = recorded(&logs, 2, Transport::Http).await;
    assert_eq!(lines.len(), 4);
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["seq"], 4);
    // A power failure can leave half a line.
    let text = logs.text(FILE) + "{\"timestamp\":\"2026";
    std::fs::write(logs.join(FILE), text).unwrap();
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(0), "{verdict}");
    let lines = recorded(&logs, 2, Transport::Stdio).await;
    assert_eq!(lines.len(), 7);
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["seq"], 7);
    let note = verdict["notes"][0].as_str().unwrap();
    assert!(note.contains("line 5 was cut off"), "{note}");
}

#[tokio::test]
async fn audit_chain_a_file_of_an_older_version_is_continued() {
    let logs = Tree::new().file(FILE, "{\"message\":\"call\"}\n{\"message\":\"call\"}\n");
    recorded(&logs, 2, Transport::Stdio).await;
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["lines"].as_u64(), Some(4));
    assert_eq!(verdict["seq"].as_u64(), Some(2));
    assert!(
        verdict["notes"][0]
            .as_str()
            .unwrap()
            .contains("first 2 lines")
    );
    let altered = logs
        .text(FILE)
        .replacen("call\"}\n{\"time", "cold\"}\n{\"time", 1);
    std::fs::write(logs.join(FILE), altered).unwrap();
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(1), "{verdict}");
    assert_eq!(verdict["line"], json!(2), "{verdict}");
}

#[tokio::test]
async fn audit_chain_rotated_files_are_one_chain() {
    let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
    let server = with_audit(&tree, &logs).start(Transport::Http).await;
    for number in 1..=2 {
        call(&server).await;
        call(&server).await;
        assert!(becomes(async || lines(&logs, FILE).len() == 2).await);
        std::fs::rename(logs.join(FILE), logs.join(format!("calls.{number}"))).unwrap();
        server.reload();
        assert!(becomes(async || logs.has(FILE)).await);
    }
    call(&server).await;
    server.stop().await;
    let (one, two, last) = (logs.join("calls.1"), logs.join("calls.2"), logs.join(FILE));
    let (code, verdict) = verify(&[&one, &two, &last]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["seq"], 5);
    // Each file is whole by itself too.
    let (code, verdict) = verify(&[&two]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["first_seq"], json!(3), "{verdict}");
    // A file between them is missing.
    let ended = run(&[&one, &last], &[]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let first: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["fault"], "next_does_not_follow", "{first}");
}

#[tokio::test]
async fn audit_chain_many_clients_and_two_processes_write_one_chain() {
    let (tree, logs) = (Tree::new().file("f", "x"), Tree::new());
    let first = with_audit(&tree, &logs).start(Transport::Http).await;
    let second = with_audit(&tree, &logs).start(Transport::Stdio).await;
    let calls = |server| async move {
        let twenty = (0..20).map(|_| call(server));
        futures_all(twenty).await;
    };
    for _ in 0..5 {
        tokio::join!(calls(&first), calls(&second));
    }
    first.stop().await;
    second.stop().await;
    let (code, verdict) = verify(&[&logs.join(FILE)]).await;
    assert_eq!(code, Some(0), "{verdict}");
    assert_eq!(verdict["lines"], 200);
}

/// Waits for all of them at once.
async fn futures_all(all: impl IntoIterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[tokio::test]
async fn audit_chain_what_cannot_be_read_is_an_error() {
    let logs = Tree::new().dir("dir");
    for (name, reason) in [("missing", "no such file"), ("dir", "not a regular file")] {
        let ended = run(&[&logs.join(name)], &[]).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let said = ended.stderr.join("\n");
        assert!(said.contains(reason), "{said}");
    }
    let ended = program().arguments(["audit", "verify"]).run().await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
}
