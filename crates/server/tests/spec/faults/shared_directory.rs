//! The directory that replicas share: if it cannot protect anything, the server does not start.

use testkit::{Ended, Http, Server, Setup, Transport, Tree, json, names_in};

use crate::harness::machine::{fails, ok};
use crate::harness::message::tool_call;
use crate::harness::{becomes, program};

const OPEN: [&str; 1] = ["*"];

fn setup(tree: &Tree) -> Setup {
    program()
        .root("workspace", tree.path())
        .set("durability", "fast")
}

#[track_caller]
fn refused(ended: &Ended, words: &[&str]) {
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    for word in words {
        assert!(
            ended.stderr.concat().contains(word),
            "no {word:?} in {ended:?}"
        );
    }
}

fn slots(state: &std::path::Path) -> usize {
    let names = names_in(state).into_iter();
    names.filter(|name| name.starts_with("slot-")).count()
}

async fn edit(server: &Server, path: &str) {
    let write = json!({"path": path, "content": "text"});
    ok(server, "write_file", write).await;
}

#[tokio::test]
async fn faults_cluster_without_a_directory_locks_in_the_only_writable_root() {
    for nothing in [json!({}), json!(null)] {
        let (tree, frozen) = (Tree::new(), Tree::new());
        let keys = json!({"allowed_tools": OPEN, "read_only": true});
        let setup = setup(&tree)
            .root_with("frozen", frozen.path(), keys)
            .set("cluster", nothing);
        let server = setup.start(Transport::Stdio).await;
        let write = json!({"root": "workspace", "path": "f", "content": "text"});
        ok(&server, "write_file", write).await;
        let state = tree.join(".mcp-filesystem/cluster");
        assert!(slots(&state) >= 2, "{:?}", names_in(&state));
        let listed = ok(
            &server,
            "list_folder",
            json!({"root": "workspace", "path": "."}),
        )
        .await;
        assert!(!listed.to_string().contains("mcp-filesystem"), "{listed}");
        let id = json!({"root": "workspace", "path": ".mcp-filesystem/cluster/id"});
        assert!(server.call("read_file", id).await.is_error);
        server.stop().await;
    }
    let (one, other) = (Tree::new(), Tree::new());
    let several = setup(&one)
        .root("other", other.path())
        .set("cluster", json!({}));
    let words = ["cluster.state_dir", "exactly one is writable, and 2 are"];
    refused(&several.refuse(Transport::Stdio).await, &words);
}

#[tokio::test]
async fn faults_a_shared_directory_that_clients_could_see_is_refused() {
    let tree = Tree::new().dir("there");
    for inside in [
        "state",
        "there",
        ".",
        "there/../state",
        "new/.mcp-filesystem/../state",
    ] {
        let setup = setup(&tree).set("cluster.state_dir", json!(tree.join(inside)));
        let words = ["cluster.state_dir", "\"workspace\"", ".mcp-filesystem"];
        refused(&setup.refuse(Transport::Stdio).await, &words);
        assert_eq!(tree.listing().len(), 1, "{inside}: {:?}", tree.listing());
    }
    let missing = setup(&tree).root("gone", &tree.join("gone"));
    let missing = missing.set(
        "cluster.state_dir",
        json!(tree.join("gone/.mcp-filesystem/cluster")),
    );
    refused(
        &missing.refuse(Transport::Stdio).await,
        &["gone", "no such file"],
    );
    assert!(!tree.has("gone"), "a missing root is not made");
    let hidden = tree.join("there/.mcp-filesystem/cluster");
    let server = setup(&tree).set("cluster.state_dir", json!(hidden));
    let server = server.start(Transport::Stdio).await;
    edit(&server, "f").await;
    assert!(slots(&hidden) >= 2);
    server.stop().await;
}

/// Somebody cleans up in the shared directory.
#[tokio::test]
async fn faults_slots_that_are_removed_are_made_again_and_the_next_change_waits_for_them() {
    let (tree, state) = (Tree::new(), Tree::new());
    let setup = setup(&tree)
        .set("cluster.state_dir", json!(state.path()))
        .set("limits.request_timeout", 2);
    let server = setup.start(Transport::Stdio).await;
    edit(&server, "f").await;
    let before = slots(state.path());
    for name in names_in(state.path()) {
        if name.starts_with("slot-") {
            std::fs::remove_file(state.join(&name)).unwrap();
        }
    }
    edit(&server, "f").await;
    assert_eq!(slots(state.path()), before);
    // Whoever holds the new files holds up a change.
    let named = names_in(state.path()).into_iter();
    let slots = named.filter(|name| name.starts_with("slot-"));
    let held: Vec<_> = slots
        .map(|name| {
            let file = std::fs::File::open(state.join(&name)).unwrap();
            file.lock().unwrap();
            file
        })
        .collect();
    let write = json!({"path": "f", "content": "other"});
    fails(&server, "timeout", "write_file", write).await;
    assert_eq!(tree.text("f"), "text");
    drop(held);
    edit(&server, "f").await;
    server.stop().await;
}

#[tokio::test]
async fn faults_without_the_shared_account_of_a_quota_nothing_is_added() {
    let (tree, state) = (Tree::new(), Tree::new());
    let keys = json!({"allowed_tools": OPEN, "quota": {"max_bytes": 1000}});
    let setup = program()
        .root_with("workspace", tree.path(), keys)
        .set("cluster.state_dir", json!(state.path()))
        .set("limits.request_timeout", 2);
    let server = setup.start(Transport::Stdio).await;
    edit(&server, "f").await;
    let mut names = names_in(state.path()).into_iter();
    let record = names.find(|name| name.starts_with("quota-")).unwrap();
    let record = state.join(record);
    let held = std::fs::File::open(&record).unwrap();
    held.lock().unwrap();
    fails(
        &server,
        "timeout",
        "write_file",
        json!({"path": "g", "content": "g"}),
    )
    .await;
    drop(held);
    edit(&server, "h").await;
    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(&record).unwrap();
    let write = json!({"path": "i", "content": "i"});
    fails(&server, "io_error", "write_file", write).await;
    ok(&server, "list_roots", json!({})).await;
    let mut files: Vec<String> = tree.listing().into_keys().collect();
    files.retain(|path| !path.starts_with(".mcp-filesystem"));
    assert_eq!(files, ["f", "h"]);
    server.stop().await;
}

/// A root that the operator added since the start is cleared up too, before the dead replica is forgotten.
#[tokio::test]
async fn faults_what_a_dead_replica_left_in_a_root_that_was_added_later_is_cleared_up() {
    let (tree, added, state) = (Tree::new(), Tree::new(), Tree::new());
    let setup = setup(&tree)
        .set("cluster.state_dir", json!(state.path()))
        .set("sandbox.landlock", "off");
    let wire = setup.clone().wire(Transport::Http).await;
    wire.reconfigure(&setup.root("added", added.path())).await;
    let left = format!(".mcp-filesystem-1-1-abc-{:032x}.tmp", 7);
    added.write(&left, "left");
    state.write(format!("replica-{:016x}", 0xabc), "");
    let is_forgotten = async || !state.has(format!("replica-{:016x}", 0xabc));
    assert!(becomes(is_forgotten).await, "{:?}", names_in(state.path()));
    assert!(!added.has(&left), "{:?}", names_in(added.path()));
}

/// Appends lines through one replica after the other, each until its answers say that it ends.
async fn append(replicas: Vec<Http>, client: usize, enough: usize) -> Vec<String> {
    let (mut at, mut made) = (client, Vec::new());
    while made.len() < enough {
        let line = format!("{client}.{}\n", made.len());
        let arguments =
            json!({"root": "workspace", "path": "f", "content": line, "mode": "append"});
        let call = tool_call(made.len() as u64, "write_file", &arguments);
        let replica = &replicas[at % replicas.len()];
        let reply = replica.post("/mcp", &[], &call).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_ne!(reply.json()["result"]["isError"], true, "{reply:?}");
        made.push(line);
        if reply.header("connection") == Some("close") {
            at += 1;
        }
    }
    made
}

#[tokio::test]
async fn faults_one_of_three_replicas_drains_and_no_call_fails() {
    let (tree, state) = (Tree::new(), Tree::new());
    let setup = setup(&tree).set("cluster.state_dir", json!(state.path()));
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(setup.clone().start(Transport::Http).await);
    }
    let replicas: Vec<Http> = servers.iter().map(|server| server.http().clone()).collect();
    let clients = (0..6).map(|client| tokio::spawn(append(replicas.clone(), client, 60)));
    let clients: Vec<_> = clients.collect();
    let has_begun = async || tree.has("f") && tree.text("f").lines().count() > 30;
    assert!(becomes(has_begun).await);
    let ended = servers.remove(0).stop().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let alive = names_in(state.path()).into_iter();
    let alive = alive.filter(|name| name.starts_with("replica-")).count();
    assert_eq!(alive, 2, "who ends in order leaves nothing to clear up");
    let mut made = Vec::new();
    for client in clients {
        made.extend(client.await.unwrap());
    }
    let text = tree.text("f");
    let lost: Vec<_> = made
        .iter()
        .filter(|line| !text.contains(&***line))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(text.lines().count(), 360);
    for server in servers {
        server.stop().await;
    }
}
