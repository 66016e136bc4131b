//! A process is killed in the middle of changes: each is whole or taken back, and no undo is half.

use std::time::Duration;

use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::machine::{Chance, Killed, answered, ok, share};
use crate::harness::program;

/// How often each kind of work is killed: a thousand times in all.
const KILLS: usize = 250;
/// The latest moment of a kill, in microseconds.
const LATEST: u64 = 30_000;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn setup(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root", "undo_any": true}});
    program().root_with("workspace", tree.path(), keys)
}

/// What a tree is without its history.
fn files(tree: &Tree) -> Vec<(String, String)> {
    let mut all: Vec<_> = tree.listing().into_iter().collect();
    all.retain(|(path, _)| !path.starts_with(".mcp-filesystem"));
    all
}

/// Begins a call, kills the server after a while, and starts it again: that settles what was unfinished. Returns what was
/// answered too, if the call was confirmed.
async fn killed_during(
    tree: &Tree,
    server: Server,
    chance: &mut Chance,
    (tool, arguments): (&'static str, Value),
) -> (Server, Option<Value>) {
    let client = server.client().clone();
    let mut arguments = arguments;
    arguments["root"] = json!("workspace");
    let call = tokio::spawn(async move { answered(&client, tool, arguments).await });
    tokio::time::sleep(Duration::from_micros(chance.below(LATEST))).await;
    server.kill().await;
    let answer = Killed::ended(call).await;
    (setup(tree).start(Transport::Stdio).await, answer)
}

async fn verified(tree: &Tree) {
    let ended = setup(tree).arguments(["history", "verify"]).run().await;
    assert_eq!(ended.code, Some(0), "{}{:?}", ended.stdout, ended.stderr);
}

/// Undoing several files is whole or nothing, and can be repeated afterwards.
#[tokio::test]
async fn history_a_kill_during_undo_is_all_or_nothing() {
    let mut chance = Chance::new(11);
    let mut killed = Killed::default();
    let tree = Tree::new();
    for round in 0..share(KILLS) {
        let old = format!("old {round}\n");
        NAMES.iter().for_each(|name| tree.write(name, &old));
        let server = setup(&tree).start(Transport::Stdio).await;
        let before = files(&tree);
        let all = NAMES.map(|name| json!({"path": name, "content": "new\n"}));
        let reply = ok(&server, "write_file", json!({"files": all})).await;
        let change = reply["change"].as_str().expect("a change").to_owned();
        let after = files(&tree);
        let undo = ("undo", json!({"change": change}));
        let (server, answer) = killed_during(&tree, server, &mut chance, undo).await;
        let found = files(&tree);
        assert!(
            found == before || found == after,
            "round {round}: {found:?}"
        );
        killed.count(answer.as_ref(), found == before);
        if found == after {
            ok(&server, "undo", json!({"change": change})).await;
            assert_eq!(files(&tree), before, "round {round}");
        }
        server.kill().await;
    }
    killed.tell("undo of several files");
    verified(&tree).await;
}

/// A tree that is moved is at one place or the other, whole, and the move can be undone if it was made.
#[tokio::test]
async fn history_a_kill_during_a_move_of_a_tree_is_all_or_nothing() {
    let mut chance = Chance::new(13);
    let mut killed = Killed::default();
    let tree = Tree::new();
    for number in 0..40 {
        tree.write(
            format!("here/sub{}/f{number}", number % 4),
            format!("{number}\n"),
        );
    }
    let content = |top: &str| -> Vec<(String, String)> {
        let all = files(&tree).into_iter();
        let below = all.filter_map(|(path, what)| Some((path.strip_prefix(top)?.to_owned(), what)));
        below.collect()
    };
    let whole = content("here/");
    let (mut from, mut to) = ("here", "there");
    for round in 0..share(KILLS) {
        let server = setup(&tree).start(Transport::Stdio).await;
        let arguments = json!({"source_root": "workspace", "source_path": from, "dest_root": "workspace", "dest_path": to});
        let (server, answer) = killed_during(&tree, server, &mut chance, ("move", arguments)).await;
        let found = [content(&format!("{from}/")), content(&format!("{to}/"))];
        let is_moved = found[0].is_empty();
        assert_eq!(found[usize::from(is_moved)], whole, "round {round}");
        assert!(
            found[usize::from(!is_moved)].is_empty(),
            "round {round}: {found:?}"
        );
        killed.count(answer.as_ref(), is_moved);
        if is_moved {
            std::mem::swap(&mut from, &mut to);
        }
        server.kill().await;
    }
    killed.tell("move of a tree");
    verified(&tree).await;
}

/// A removed tree is there or gone whole; after a kill during pruning what is kept still comes back.
#[tokio::test]
async fn history_a_kill_during_removal_and_pruning_loses_nothing_that_is_kept() {
    let mut chance = Chance::new(17);
    let mut killed = Killed::default();
    let tree = Tree::new();
    let small = || {
        let history = json!({"place": "root", "max_changes": 6});
        let keys = json!({"allowed_tools": ["*"], "history": history});
        program().root_with("workspace", tree.path(), keys)
    };
    for number in 0..20 {
        tree.write(format!("tree/f{number}"), format!("{number}\n"));
    }
    let before = files(&tree);
    for round in 0..share(KILLS) {
        let server = small().start(Transport::Stdio).await;
        let mut names = Vec::new();
        for text in 0..4 {
            let arguments = json!({"path": "counter", "content": format!("{round} {text}\n")});
            let reply = ok(&server, "write_file", arguments).await;
            names.push(reply["change"].as_str().expect("a change").to_owned());
        }
        let remove = ("remove_folder", json!({"path": "tree"}));
        let (server, answer) = killed_during(&tree, server, &mut chance, remove).await;
        server.kill().await;
        killed.count(answer.as_ref(), !tree.has("tree"));
        // What the operator's command prunes is what the server would.
        let prune = small().arguments(["history", "prune"]).run();
        let wait = Duration::from_micros(chance.below(LATEST));
        // Giving up on it kills it.
        let _ = tokio::time::timeout(wait, prune).await;
        let server = small().start(Transport::Stdio).await;
        if !tree.has("tree") {
            ok(&server, "undo", json!({"path": "tree"})).await;
        }
        let last = names.last().expect("a change");
        ok(&server, "undo", json!({"change": last})).await;
        assert_eq!(tree.text("counter"), format!("{round} 2\n"));
        let mut found = files(&tree);
        found.retain(|(path, _)| path != "counter");
        assert_eq!(found, before, "round {round}");
        server.kill().await;
    }
    killed.tell("removal of a tree");
    verified(&tree).await;
}

/// What a kill left of an append is cut off at the next start.
#[tokio::test]
async fn history_an_append_is_whole_or_cut_off_after_a_kill() {
    let mut chance = Chance::new(19);
    let mut killed = Killed::default();
    let tree = Tree::new();
    let piece = "0123456789abcdef\n".repeat(400_000);
    let mut expected = String::from("begin\n");
    tree.write("log", &expected);
    for round in 0..share(KILLS) {
        let server = setup(&tree).start(Transport::Stdio).await;
        let arguments = json!({"path": "log", "content": piece, "mode": "append"});
        let (server, answer) =
            killed_during(&tree, server, &mut chance, ("write_file", arguments)).await;
        let found = tree.text("log");
        let with = expected.clone() + &piece;
        assert!(
            found == expected || found == with,
            "round {round}: {} bytes, {} before",
            found.len(),
            expected.len()
        );
        killed.count(answer.as_ref(), found == with);
        server.kill().await;
        if found.len() > 64_000_000 {
            expected = String::from("begin\n");
            tree.write("log", &expected);
        } else {
            expected = found;
        }
    }
    killed.tell("append");
    verified(&tree).await;
}

/// Of two processes on one root one is killed: the other goes on, and only the dead one's changes are settled.
#[tokio::test]
async fn history_two_processes_on_one_root_and_one_is_killed() {
    let mut chance = Chance::new(23);
    let mut killed = Killed::default();
    let tree = Tree::new();
    for round in 0..share(KILLS) {
        let old = format!("old {round}\n");
        NAMES.iter().for_each(|name| tree.write(name, &old));
        tree.write("other", &old);
        let survivor = setup(&tree).start(Transport::Stdio).await;
        let other = json!({"path": "other", "content": "kept\n"});
        let kept = ok(&survivor, "write_file", other).await;
        let server = setup(&tree).start(Transport::Stdio).await;
        let all = NAMES.map(|name| json!({"path": name, "content": "new\n"}));
        let write = ("write_file", json!({"files": all}));
        let (third, answer) = killed_during(&tree, server, &mut chance, write).await;
        let found: Vec<String> = NAMES.iter().map(|name| tree.text(name)).collect();
        assert!(
            found.iter().all(|text| *text == old) || found.iter().all(|text| text == "new\n"),
            "round {round}: {found:?}"
        );
        assert_eq!(tree.text("other"), "kept\n");
        let is_whole = found.iter().all(|text| text == "new\n");
        killed.count(answer.as_ref(), is_whole);
        if is_whole {
            // What the dead process did is undone by the one that lives.
            let undo = match &answer {
                Some(answer) => json!({"change": answer["change"]}),
                None => json!({"path": "a"}),
            };
            ok(&survivor, "undo", undo).await;
            assert!(
                NAMES.iter().all(|name| tree.text(name) == old),
                "round {round}"
            );
        }
        let change = kept["change"].as_str().expect("a change");
        ok(&survivor, "undo", json!({"change": change})).await;
        assert_eq!(tree.text("other"), old);
        third.kill().await;
        survivor.kill().await;
    }
    killed.tell("two processes");
    verified(&tree).await;
}
