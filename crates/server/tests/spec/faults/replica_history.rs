//! Replicas keep one history: each lists and undoes what others did, and settles what a killed one left.

use std::time::Duration;

use testkit::{Server, Setup, Transport, Tree, Value, json, names_in};

use crate::harness::machine::{Chance, confirmed, contents, ok, said, share, temporary_names};
use crate::harness::{becomes, program};

/// How often a replica is killed.
const KILLS: usize = 500;
/// The latest moment of a kill, in microseconds.
const LATEST: u64 = 30_000;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn setup(tree: &Tree, state: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"undo_any": true}});
    program()
        .root_with("workspace", tree.path(), keys)
        .set("cluster.state_dir", json!(state.join("state")))
}

async fn replicas(tree: &Tree, state: &Tree) -> [Server; 3] {
    let start = || setup(tree, state).start(Transport::Stdio);
    [start().await, start().await, start().await]
}

async fn listed(server: &Server, wanted: Value) -> Vec<String> {
    let reply = ok(server, "changes", wanted).await;
    let changes = reply["changes"].as_array().expect("changes");
    let name = |change: &Value| change["change"].as_str().expect("a name").to_owned();
    changes.iter().map(name).collect()
}

/// The directories of histories in a root.
fn stores(tree: &Tree) -> Vec<String> {
    let names = names_in(&tree.join(".mcp-filesystem")).into_iter();
    names.filter(|name| name != ".gitignore").collect()
}

#[tokio::test]
async fn faults_replicas_keep_one_history_and_undo_each_others_changes() {
    let (tree, state) = (Tree::new().file("f", "0"), Tree::new());
    let servers = replicas(&tree, &state).await;
    let mut made = Vec::new();
    for round in 0..6 {
        let edits =
            json!([{"path": "f", "old": round.to_string(), "new": (round + 1).to_string()}]);
        let reply = ok(&servers[round % 3], "edit_file", json!({"edits": edits})).await;
        made.push(reply["change"].as_str().expect("a change").to_owned());
    }
    made.reverse();
    for server in &servers {
        assert_eq!(listed(server, json!({})).await, made);
    }
    for (round, change) in made.iter().enumerate() {
        ok(&servers[(round + 1) % 3], "undo", json!({"change": change})).await;
        assert_eq!(tree.text("f"), (5 - round).to_string());
    }
    let stores = stores(&tree);
    assert_eq!(stores.len(), 1, "{stores:?}");
    assert!(stores[0].starts_with("cluster-"), "{stores:?}");
    for server in servers {
        server.stop().await;
    }
    let verified = setup(&tree, &state).arguments(["history", "verify"]);
    let verified = verified.run().await;
    assert_eq!(
        verified.code,
        Some(0),
        "{}{:?}",
        verified.stdout,
        verified.stderr
    );
}

/// One is killed in the middle of a change of several files. The others run on, settle it, and undo it if it was made.
#[tokio::test]
async fn faults_what_a_killed_replica_left_is_settled_while_others_run_on() {
    let mut chance = Chance::new(23);
    let (tree, state) = (Tree::new(), Tree::new());
    let [settler, other, mut victim] = replicas(&tree, &state).await;
    let mut were_made = 0;
    // Else two open record files could be those of the other and of the dead one.
    let first = json!({"path": NAMES[0], "content": "first\n"});
    ok(&settler, "write_file", first).await;
    for round in 0..share(KILLS) {
        let (old, new) = (format!("old {round}\n"), format!("new {round}\n"));
        let all = |text: &str| NAMES.map(|name| json!({"path": name, "content": text}));
        let reply = ok(&other, "write_file", json!({"files": all(&old)})).await;
        // Only what is newer is counted: a list is not as long as all changes of all rounds.
        let since = json!({"since": reply["change"]});
        let client = victim.client().clone();
        let write = json!({"root": "workspace", "files": all(&new)});
        let call = tokio::spawn(async move { confirmed(&client, "write_file", write).await });
        tokio::time::sleep(Duration::from_micros(chance.below(LATEST))).await;
        victim.kill().await;
        call.abort();
        // The two others have their record files open, and the dead one has neither a file nor a name any more.
        let is_settled = async || {
            let held = |name: &String| name.starts_with("replica-");
            let living = names_in(&state.join("state")).into_iter().filter(held);
            let records = tree
                .join(".mcp-filesystem")
                .join(&stores(&tree)[0])
                .join("records");
            let open = names_in(&records);
            let open = open.iter().filter(|name| name.ends_with(".open")).count();
            living.count() == 2 && open <= 2 && temporary_names(tree.path()).is_empty()
        };
        assert!(
            becomes(is_settled).await,
            "round {round}: {:?}",
            tree.listing()
        );
        let texts = NAMES.map(|name| tree.text(name));
        let is_made = texts[0] == new;
        let whole = if is_made { &new } else { &old };
        assert!(
            texts.iter().all(|text| text == whole),
            "round {round}: {texts:?}"
        );
        let changes = listed(&other, since).await;
        assert_eq!(changes.len(), usize::from(is_made), "round {round}");
        if is_made {
            ok(&other, "undo", json!({"change": changes[0]})).await;
            assert_eq!(
                NAMES.map(|name| tree.text(name)),
                [(); 4].map(|()| old.clone())
            );
            were_made += 1;
        }
        victim = setup(&tree, &state).start(Transport::Stdio).await;
    }
    said(&format!(
        "{were_made} of {} changes were made before the kill",
        share(KILLS)
    ));
    assert_eq!(contents(tree.path()).len(), NAMES.len());
    for server in [settler, other, victim] {
        server.stop().await;
    }
}
