//! The process is killed in the middle of its work: nothing is lost, and no half-written file is left.

use std::path::Path;
use std::time::Duration;

use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::machine::{contents, left_out, said};
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

/// How often each kind of work is killed, each time a little later.
const ROUNDS: u64 = 14;
/// How much later each round kills.
const STEP: Duration = Duration::from_micros(1500);
const FILES: usize = 60;

/// Begins a call and kills the server after a while, whether the call has ended or not.
async fn killed_during(server: Server, tool: &'static str, arguments: Value, round: u64) {
    let client = server.client().clone();
    let Value::Object(arguments) = Workspace::complete(tool, arguments) else {
        unreachable!("arguments are an object")
    };
    let params = testkit::rmcp::model::CallToolRequestParams::new(tool).with_arguments(arguments);
    let call = tokio::spawn(async move { client.call_tool(params).await });
    tokio::time::sleep(STEP * u32::try_from(round).expect("few rounds")).await;
    server.kill().await;
    call.abort();
}

fn content(number: usize) -> String {
    format!("{number}\n").repeat(2000 + number)
}

fn full(tree: Tree) -> Tree {
    (0..FILES).fold(tree, |tree, number| {
        tree.file(format!("tree/d{}/f{number}", number % 5), content(number))
    })
}

/// Fails if a file below `path` is not what it should be; returns how many there are.
#[track_caller]
fn whole_files(path: &Path) -> usize {
    let mut files = 0;
    for (name, found) in contents(path) {
        let number = name
            .rsplit_once("/f")
            .and_then(|(_, number)| number.parse().ok());
        if let Some(number) = number {
            assert_eq!(found, content(number).as_bytes(), "{name} is not whole");
            files += 1;
        }
    }
    files
}

/// Starts the server once more, which removes what the killed one left, and waits for that.
async fn nothing_is_left_after(setup: Setup, trees: &[&Tree]) {
    let server = setup.start(Transport::Stdio).await;
    let clean = async || {
        !trees.iter().any(|tree| {
            let names = contents(tree.path());
            names.keys().any(|name| name.contains(".mcp-filesystem-"))
        })
    };
    assert!(becomes(clean).await, "temporary files stay");
    server.kill().await;
}

#[tokio::test]
async fn faults_a_kill_during_a_write_leaves_the_old_or_the_new() {
    let tree = Tree::new().file("f", "old".repeat(100_000));
    let setup = Workspace::setup(&tree);
    let (old, new) = ("old".repeat(100_000), "new".repeat(300_000));
    for round in 0..ROUNDS {
        tree.write("f", &old);
        let server = setup.clone().start(Transport::Stdio).await;
        let write = json!({"path": "f", "content": new});
        killed_during(server, "write_file", write, round * 2).await;
        let now = tree.text("f");
        assert!(now == old || now == new, "{} bytes", now.len());
    }
    nothing_is_left_after(setup, &[&tree]).await;
    assert_eq!(tree.listing().len(), 1);
}

#[tokio::test]
async fn faults_a_kill_during_a_copy_leaves_whole_files_and_the_source() {
    let tree = full(Tree::new());
    let setup = Workspace::setup(&tree);
    for round in 0..ROUNDS {
        let server = setup.clone().start(Transport::Stdio).await;
        let copy = json!({"source_path": "tree", "dest_path": format!("copy{round}")});
        killed_during(server, "copy", copy, round).await;
        assert_eq!(whole_files(&tree.join("tree")), FILES);
    }
    whole_files(tree.path());
    nothing_is_left_after(setup, &[&tree]).await;
}

#[tokio::test]
async fn faults_a_kill_during_a_removal_leaves_whole_files() {
    for round in 0..ROUNDS {
        let tree = full(Tree::new().file("kept/f1", content(1)));
        let server = Workspace::setup(&tree).start(Transport::Stdio).await;
        killed_during(server, "remove_folder", json!({"path": "tree"}), round).await;
        whole_files(tree.path());
        assert_eq!(tree.text("kept/f1"), content(1));
    }
}

/// Between file systems a move is a copy: the source goes only when the copy is complete and on disk.
#[tokio::test]
async fn faults_a_kill_during_a_move_between_file_systems_loses_nothing() {
    let Ok(memory) = tempfile::Builder::new()
        .prefix("other-")
        .tempdir_in("/dev/shm")
    else {
        return left_out("there is no second file system");
    };
    let mut moved = 0;
    for round in 0..ROUNDS {
        let source = full(Tree::new());
        let to = memory.path().join(round.to_string());
        std::fs::create_dir(&to).expect("a directory");
        let setup = program()
            .root("workspace", source.path())
            .root("other", &to);
        let server = setup.start(Transport::Stdio).await;
        let arguments = json!({"source_path": "tree", "dest_root": "other", "dest_path": "tree"});
        killed_during(server, "move", arguments, round * 3).await;
        let (stayed, came) = (whole_files(source.path()), whole_files(&to));
        assert!(
            stayed == FILES || came == FILES,
            "{stayed} stayed, {came} came"
        );
        moved += usize::from(came == FILES);
    }
    said(&format!(
        "{moved} of {ROUNDS} moves were complete when the server was killed"
    ));
}

#[tokio::test]
async fn faults_a_kill_during_a_rename_leaves_one_of_both() {
    let tree = full(Tree::new());
    let other = Tree::new();
    let setup = Workspace::setup(&tree).root("other", other.path());
    for round in 0..ROUNDS {
        let server = setup.clone().start(Transport::Stdio).await;
        let there = tree.has("tree");
        let (from, to) = if there {
            ("workspace", "other")
        } else {
            ("other", "workspace")
        };
        let arguments = json!({"source_root": from, "source_path": "tree", "dest_root": to,
            "dest_path": "tree"});
        killed_during(server, "move", arguments, round).await;
        assert!(tree.has("tree") != other.has("tree"), "both or none");
        assert_eq!(whole_files(tree.path()) + whole_files(other.path()), FILES);
    }
}
