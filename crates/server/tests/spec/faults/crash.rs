//! The process is killed in the middle of its work: nothing is lost, and no half-written file is left.

use std::path::Path;
use std::time::Duration;

use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::machine::{
    Chance, confirmed, contents, left_out, said, share, temporary_names,
};
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

/// How often each of the six kinds of work is killed.
const KILLS: usize = 170;
/// The latest moment of a kill: many calls are done by then, and many are not.
const LATEST: Duration = Duration::from_millis(40);
/// The same for a whole tree, which takes longer.
const LATEST_OF_A_TREE: Duration = Duration::from_millis(300);
const FILES: usize = 60;

/// The moments of the kills, after the call began.
fn moments(seed: u64, latest: Duration) -> impl Iterator<Item = (usize, Duration)> {
    let mut chance = Chance::new(seed);
    let latest = u64::try_from(latest.as_micros()).expect("less than a second");
    (0..share(KILLS)).map(move |round| (round, Duration::from_micros(chance.below(latest))))
}

/// Begins a call and kills the server after a while, whether the call has ended or not.
async fn killed_during(server: Server, tool: &'static str, arguments: Value, moment: Duration) {
    let client = server.client().clone();
    let call = tokio::spawn(async move { confirmed(&client, tool, arguments).await });
    tokio::time::sleep(moment).await;
    server.kill().await;
    call.abort();
}

fn content(number: usize) -> String {
    format!("{number}\n").repeat(2000 + number)
}

fn full(tree: Tree) -> Tree {
    fill(&tree.join("tree"));
    tree
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
        let mut left = trees.iter().map(|tree| temporary_names(tree.path()));
        left.all(|names| names.is_empty())
    };
    assert!(becomes(clean).await, "temporary files stay");
    server.kill().await;
}

#[tokio::test]
async fn faults_a_kill_during_a_write_leaves_the_old_or_the_new() {
    let tree = Tree::new().file("f", "old".repeat(100_000));
    let setup = Workspace::setup(&tree);
    let (old, new) = ("old".repeat(100_000), "new".repeat(300_000));
    for (_, moment) in moments(1, LATEST) {
        tree.write("f", &old);
        let server = setup.clone().start(Transport::Stdio).await;
        let write = json!({"path": "f", "content": new});
        killed_during(server, "write_file", write, moment).await;
        let now = tree.text("f");
        assert!(now == old || now == new, "{} bytes", now.len());
    }
    nothing_is_left_after(setup, &[&tree]).await;
    assert_eq!(tree.listing().len(), 1);
}

#[tokio::test]
async fn faults_a_kill_during_an_edit_leaves_the_old_or_the_new() {
    let old = format!("first\n{}", "line\n".repeat(40_000));
    let tree = Tree::new().file("f", &old);
    let setup = Workspace::setup(&tree);
    let new = old.replace("first", "changed");
    for (_, moment) in moments(2, LATEST) {
        tree.write("f", &old);
        let server = setup.clone().start(Transport::Stdio).await;
        let patch = json!({"path": "f", "patch": "@@ -1 +1 @@\n-first\n+changed\n"});
        killed_during(server, "patch_file", patch, moment).await;
        let now = tree.text("f");
        assert!(now == old || now == new, "{} bytes", now.len());
    }
    nothing_is_left_after(setup, &[&tree]).await;
    assert_eq!(tree.listing().len(), 1);
}

/// A copied tree is there whole or not at all, and nothing of it stays after the next start.
#[tokio::test]
async fn faults_a_kill_during_a_copy_leaves_the_whole_copy_or_nothing() {
    let tree = full(Tree::new());
    let setup = Workspace::setup(&tree);
    let mut copies = 0;
    for (round, moment) in moments(3, LATEST_OF_A_TREE) {
        let server = setup.clone().start(Transport::Stdio).await;
        let name = format!("copy{round}");
        let copy = json!({"source_path": "tree", "dest_path": name});
        killed_during(server, "copy", copy, moment).await;
        assert_eq!(whole_files(&tree.join("tree")), FILES);
        if tree.has(&name) {
            assert_eq!(whole_files(&tree.join(&name)), FILES, "{name} is not whole");
            std::fs::remove_dir_all(tree.join(&name)).expect("a directory");
            copies += 1;
        }
    }
    said(&format!(
        "{copies} copies were there when the server was killed"
    ));
    nothing_is_left_after(setup, &[&tree]).await;
}

#[tokio::test]
async fn faults_a_kill_during_a_removal_leaves_whole_files() {
    for (_, moment) in moments(4, LATEST) {
        let tree = full(Tree::new().file("kept/f1", content(1)));
        let server = Workspace::setup(&tree).start(Transport::Stdio).await;
        killed_during(server, "remove_folder", json!({"path": "tree"}), moment).await;
        whole_files(tree.path());
        assert_eq!(tree.text("kept/f1"), content(1));
        nothing_is_left_after(Workspace::setup(&tree), &[&tree]).await;
    }
}

/// Between file systems a move is a copy: the source goes only when the copy is complete and on disk. At each moment one of
/// both names has everything.
#[tokio::test]
async fn faults_a_kill_during_a_move_between_file_systems_loses_nothing() {
    let (source, memory) = (Tree::new(), Tree::in_memory());
    if same_file_system(&source, &memory) {
        return left_out("there is no second file system");
    }
    let setup = program()
        .root("workspace", source.path())
        .root("other", memory.path());
    let mut moved = 0;
    for (round, moment) in moments(5, LATEST_OF_A_TREE) {
        fill(&source.join("tree"));
        let server = setup.clone().start(Transport::Stdio).await;
        let name = format!("tree{round}");
        let arguments = json!({"source_path": "tree", "dest_root": "other", "dest_path": name});
        killed_during(server, "move", arguments, moment).await;
        let (from, to) = (source.join("tree"), memory.join(&name));
        let (stayed, came) = (files_in(&from), files_in(&to));
        assert!(
            stayed == FILES || came == FILES,
            "{stayed} stayed, {came} came"
        );
        assert!(came == FILES || came == 0, "a part of the tree is seen");
        moved += usize::from(came == FILES);
        for path in [from, to] {
            let _ = std::fs::remove_dir_all(path);
        }
    }
    said(&format!(
        "{moved} moves were complete when the server was killed"
    ));
    nothing_is_left_after(setup, &[&source, &memory]).await;
}

fn same_file_system(one: &Tree, other: &Tree) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |tree: &Tree| std::fs::metadata(tree.path()).expect("a directory").dev();
    device(one) == device(other)
}

fn files_in(path: &Path) -> usize {
    if path.exists() { whole_files(path) } else { 0 }
}

/// Makes the tree that is copied and moved.
fn fill(tree: &Path) {
    for number in 0..FILES {
        let directory = tree.join(format!("d{}", number % 5));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("f{number}")), content(number)).expect("a file");
    }
}

#[tokio::test]
async fn faults_a_kill_during_a_rename_leaves_one_of_both() {
    let tree = full(Tree::new());
    let other = Tree::new();
    let setup = Workspace::setup(&tree).root("other", other.path());
    for (_, moment) in moments(6, LATEST) {
        let server = setup.clone().start(Transport::Stdio).await;
        let there = tree.has("tree");
        let (from, to) = if there {
            ("workspace", "other")
        } else {
            ("other", "workspace")
        };
        let arguments = json!({"source_root": from, "source_path": "tree", "dest_root": to,
            "dest_path": "tree"});
        killed_during(server, "move", arguments, moment).await;
        assert!(tree.has("tree") != other.has("tree"), "both or none");
        assert_eq!(whole_files(tree.path()) + whole_files(other.path()), FILES);
    }
    nothing_is_left_after(setup, &[&tree, &other]).await;
}
