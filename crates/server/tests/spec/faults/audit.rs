//! An audit file that cannot be written.

use std::path::PathBuf;

use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::becomes;
use crate::harness::machine::{call, fails, may_mount, ok};
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

/// A server whose audit file is on a small disk that only it sees.
async fn with_small_disk(
    tree: &Tree,
    logs: &Tree,
    size: &str,
    more: impl FnOnce(Setup) -> Setup,
) -> Server {
    let mount = format!(
        "mount -t tmpfs -o size={size} tmpfs '{}' && exec \"$0\" \"$@\"",
        logs.path().display()
    );
    let setup = Workspace::setup(tree).set("log.audit_file", json!(logs.join("calls.log")));
    let setup = more(setup).wrapped_in(["unshare", "-m", "sh", "-c", &mount]);
    setup.start(Transport::Stdio).await
}

/// The host path of a file on that disk.
fn on_disk(server: &Server, logs: &Tree, name: &str) -> PathBuf {
    let path = logs.join(name);
    PathBuf::from(format!("/proc/{}/root{}", server.pid(), path.display()))
}

fn lines(server: &Server, logs: &Tree) -> Vec<Value> {
    let text = std::fs::read_to_string(on_disk(server, logs, "calls.log")).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
    parsed.collect()
}

#[tokio::test]
async fn faults_a_change_that_cannot_be_recorded_is_refused_and_none_goes_unrecorded() {
    if !may_mount() {
        return;
    }
    let (tree, logs) = (Tree::new().file("f", "text"), Tree::new());
    let server = with_small_disk(&tree, &logs, "2m", |setup| setup).await;
    let filler = on_disk(&server, &logs, "filler");
    // As much as fits: the rest of the disk is full.
    let _ = std::fs::write(&filler, vec![0; 4 << 20]);
    let long = format!(
        "{}/{}/{}/file",
        "a".repeat(250),
        "b".repeat(250),
        "c".repeat(250)
    );
    let mut made = 0;
    let refused = loop {
        let arguments = json!({"path": long, "content": made.to_string()});
        let outcome = call(&server, "write_file", arguments).await;
        if outcome.is_error {
            break outcome;
        }
        made += 1;
        assert!(made < 5000, "the disk is never full");
    };
    let error = &refused.error()["error"];
    assert_eq!(error["code"], "io_error", "{}", refused.story());
    assert!(
        error["message"].as_str().unwrap().contains("audit file"),
        "{error}"
    );
    assert_eq!(tree.text(&long), (made - 1).to_string());
    // Reading goes on, and every change that was made is there, each line whole.
    ok(&server, "read_file", json!({"path": "f"})).await;
    let is_change = |line: &&Value| line["tool"] == "write_file" && line["outcome"] == "ok";
    let recorded = || lines(&server, &logs).iter().filter(is_change).count();
    let all_are = async || recorded() == made;
    assert!(
        becomes(all_are).await,
        "{} of {made} are recorded",
        recorded()
    );
    let failing = |line: &Value| line["message"] == "the audit file cannot be written";
    let line = server.logged(failing).await;
    assert_eq!(line["level"].as_str(), Some("ERROR"));
    assert_eq!(line["changes"].as_str(), Some("refused"));
    // With room again changes are made again.
    std::fs::remove_file(&filler).unwrap();
    let again = async || {
        let arguments = json!({"path": "again", "content": ""});
        !call(&server, "write_file", arguments).await.is_error
    };
    assert!(becomes(again).await, "changes are still refused");
}

#[tokio::test]
async fn faults_a_disk_without_room_for_the_record_is_found_before_the_first_change() {
    if !may_mount() {
        return;
    }
    let (tree, logs) = (Tree::new().file("f", "text"), Tree::new());
    let server = with_small_disk(&tree, &logs, "64k", |setup| setup).await;
    fails(
        &server,
        "io_error",
        "write_file",
        json!({"path": "new", "content": ""}),
    )
    .await;
    fails(&server, "io_error", "remove_file", json!({"path": "f"})).await;
    ok(&server, "read_file", json!({"path": "f"})).await;
    assert!(tree.has("f") && !tree.has("new"));
}

#[tokio::test]
async fn faults_changes_go_on_without_a_record_where_that_was_chosen() {
    if !may_mount() {
        return;
    }
    let (tree, logs) = (Tree::new(), Tree::new());
    let go_on = |setup: Setup| setup.set("log.audit_on_failure", "continue");
    let server = with_small_disk(&tree, &logs, "64k", go_on).await;
    ok(&server, "write_file", json!({"path": "new", "content": ""})).await;
    assert!(tree.has("new"));
    let failing = |line: &Value| line["message"] == "the audit file cannot be written";
    assert_eq!(server.logged(failing).await["changes"], "not recorded");
}

#[tokio::test]
async fn faults_check_finds_an_audit_file_that_cannot_be_opened() {
    let tree = Tree::new().dir("directory");
    let root = Tree::new();
    for (name, reason) in [
        ("directory", "not a regular file"),
        ("missing/calls.log", "no such file or directory"),
    ] {
        let setup = program().root("workspace", root.path());
        let setup = setup.set("log.audit_file", json!(tree.join(name)));
        let ended = setup.arguments(["check"]).run().await;
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let said = ended.stderr.join("\n");
        assert!(
            said.contains("log.audit_file") && said.contains(reason),
            "{said}"
        );
    }
    let setup = program().root("workspace", root.path());
    let setup = setup.set("log.audit_file", json!(tree.join("new.log")));
    let ended = setup.arguments(["check"]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!tree.has("new.log"), "check makes no file");
}
