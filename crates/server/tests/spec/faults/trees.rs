//! Trees that are copied and moved while others work in them: nothing that was confirmed is lost, and nobody sees a part.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use testkit::rmcp::model::{CallToolRequest, CallToolRequestParams};
use testkit::rmcp::service::PeerRequestOptions;
use testkit::{Server, Setup, Transport, Tree, json};

use crate::harness::machine::{
    Client, call, confirmed, contents, fails, left_out, ok, said, share, succeeds, temporary_names,
};
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

/// How many changes are made in each of the two kinds of moved trees.
const CHANGES: usize = 1_600;
const WRITERS: usize = 4;
/// How many files the moved tree has at least, so that the move takes a while.
const SEEDS: usize = 40;

/// What a writer was told is done: files with their content, and lines of its log.
#[derive(Default)]
struct Confirmed {
    files: BTreeMap<String, String>,
    lines: BTreeSet<String>,
    changes: usize,
}

/// Makes changes below `work`: new files, replaced files, renamed files, lines at the end of a file.
async fn write_for_ever(client: Client, writer: usize, changes: usize) -> Confirmed {
    let mut done = Confirmed::default();
    let write = async |path: &str, content: &str, mode: &str| {
        let path = format!("work/{path}");
        let arguments = json!({"path": path, "content": content, "mode": mode});
        confirmed(&client, "write_file", arguments).await
    };
    for change in 0.. {
        if done.changes >= changes {
            break;
        }
        let (name, content) = (format!("{writer}-{change}"), format!("{writer} {change}"));
        let is_done = match change % 4 {
            0 => {
                let created = write(&format!("d{writer}/c{name}"), &content, "create_only").await;
                created
                    .then(|| done.files.insert(format!("c{name}"), content))
                    .is_some()
            }
            1 => {
                let path = format!("d{writer}/u{name}");
                let both = write(&path, "old", "overwrite").await
                    && write(&path, &content, "overwrite").await;
                both.then(|| done.files.insert(format!("u{name}"), content))
                    .is_some()
            }
            2 => {
                let appended = write(&format!("log{writer}"), &format!("{name}\n"), "append").await;
                appended.then(|| done.lines.insert(name)).is_some()
            }
            _ => {
                let (from, to) = (format!("work/r{name}"), format!("work/d{writer}/s{name}"));
                let arguments = json!({"source_path": from, "dest_path": to});
                let both = write(&format!("r{name}"), &content, "overwrite").await
                    && confirmed(&client, "move", arguments).await;
                both.then(|| done.files.insert(format!("s{name}"), content))
                    .is_some()
            }
        };
        done.changes += usize::from(is_done);
    }
    done
}

/// Makes sure that there is something to move.
fn seed(work: &Path, with_link: bool) {
    std::fs::create_dir_all(work.join("seeds")).expect("a directory");
    for number in 0..SEEDS {
        std::fs::write(work.join(format!("seeds/{number}")), "seed").expect("a file");
    }
    if with_link && !work.join("link").is_symlink() {
        symlink("seeds", work.join("link")).expect("a link");
    }
}

/// Counts what was confirmed and is nowhere.
fn lost(done: &[Confirmed], places: [&Tree; 2]) -> usize {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for (path, content) in places.iter().flat_map(|tree| contents(tree.path())) {
        let text = String::from_utf8(content).expect("text");
        let name = path.rsplit('/').next().expect("a name").to_owned();
        if name.starts_with("log") {
            lines.extend(text.lines().map(str::to_owned));
        }
        files.entry(name).or_default().push(text);
    }
    let is_there = |name: &String, content: &String| {
        files.get(name).is_some_and(|found| found.contains(content))
    };
    done.iter()
        .map(|done| {
            let lost_files = done
                .files
                .iter()
                .filter(|(name, content)| !is_there(name, content));
            let lost_lines = done.lines.iter().filter(|line| !lines.contains(*line));
            lost_files.count() + lost_lines.count()
        })
        .sum()
}

/// Moves `work` away as often as it can while others write there; the figures are changes, moves, and what was lost.
async fn moved_under_writers(here: &Tree, there: &Tree, with_link: bool) -> (usize, usize, usize) {
    let server = program()
        .root("workspace", here.path())
        .root("there", there.path())
        .set("durability", "fast")
        .start(Transport::Http)
        .await;
    let changes = share(CHANGES).div_ceil(WRITERS);
    let start = |writer| {
        let client = server.client().clone();
        tokio::spawn(write_for_ever(client, writer, changes))
    };
    let writers: Vec<_> = (0..WRITERS).map(start).collect();
    let (mut moves, mut tries) = (0, 0);
    while tries == 0 || writers.iter().any(|writer| !writer.is_finished()) {
        seed(&here.join("work"), with_link);
        let arguments = json!({"source_path": "work", "dest_root": "there",
            "dest_path": format!("work{tries}")});
        moves += usize::from(confirmed(server.client(), "move", arguments).await);
        tries += 1;
    }
    let mut done = Vec::new();
    for writer in writers {
        done.push(writer.await.expect("a writer ends"));
    }
    server.stop().await;
    assert_eq!(temporary_names(here.path()), [""; 0]);
    assert_eq!(temporary_names(there.path()), [""; 0]);
    let changes = done.iter().map(|done| done.changes).sum();
    (changes, moves, lost(&done, [here, there]))
}

fn device(tree: &Tree) -> u64 {
    std::fs::metadata(tree.path()).expect("a directory").dev()
}

#[tokio::test]
async fn faults_no_confirmed_change_is_lost_in_a_tree_that_moves_to_another_file_system() {
    let (here, there) = (Tree::new(), Tree::in_memory());
    if device(&here) == device(&there) {
        return left_out("there is no second file system");
    }
    let (changes, moves, lost) = moved_under_writers(&here, &there, false).await;
    said(&format!(
        "between file systems: {changes} changes confirmed, {moves} moves, {lost} lost"
    ));
    assert_eq!(lost, 0);
    assert!(moves > 0, "nothing was ever moved: the test shows nothing");
}

#[tokio::test]
async fn faults_no_confirmed_change_is_lost_in_a_tree_with_links_that_moves_to_another_root() {
    let (here, there) = (Tree::in_memory(), Tree::in_memory());
    let (changes, moves, lost) = moved_under_writers(&here, &there, true).await;
    said(&format!(
        "between roots: {changes} changes confirmed, {moves} moves, {lost} lost"
    ));
    assert_eq!(lost, 0);
    assert!(moves > 0, "nothing was ever moved: the test shows nothing");
}

/// How many copies are cancelled.
const CANCELLED: usize = 100;

/// A tree whose copy takes a while: many names of one file.
fn slow_to_copy(tree: Tree) -> Tree {
    let tree = tree.big("content", 4 << 20).dir("src");
    (0..48).fold(tree, |tree, number| {
        tree.hard_link(format!("src/{number}"), "content")
    })
}

async fn copy_begun(
    server: &Server,
    to: &str,
) -> testkit::rmcp::service::RequestHandle<testkit::rmcp::RoleClient> {
    let arguments = Workspace::complete("copy", json!({"source_path": "src", "dest_path": to}));
    let arguments = arguments.as_object().expect("an object").clone();
    let params = CallToolRequestParams::new("copy").with_arguments(arguments);
    let request = CallToolRequest::new(params).into();
    let options = PeerRequestOptions::no_options();
    let sent = server.client().send_cancellable_request(request, options);
    sent.await.expect("a call")
}

fn top_has_temporary(tree: &Tree) -> bool {
    let names = std::fs::read_dir(tree.path())
        .expect("a directory")
        .flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .any(|name| name.starts_with(".mcp-filesystem-"))
}

/// The new directory of a copy is nobody's until it is whole: what another client puts under that name stays.
#[tokio::test]
async fn faults_a_cancelled_copy_removes_nothing_of_other_clients() {
    let tree = slow_to_copy(Tree::in_memory());
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let mut removed = 0;
    for round in 0..share(CANCELLED) {
        let to = format!("dst{round}");
        let copy = copy_begun(&server, &to).await;
        assert!(
            becomes(async || top_has_temporary(&tree) || tree.has(&to)).await,
            "no copy begins"
        );
        let mine = json!({"path": format!("{to}/mine"), "content": to});
        ok(&server, "write_file", mine).await;
        copy.cancel(None).await.expect("a connection");
        assert!(
            becomes(async || !top_has_temporary(&tree)).await,
            "the copy's own stays"
        );
        let kept = std::fs::read_to_string(tree.join(&to).join("mine"));
        removed += usize::from(kept.ok().as_deref() != Some(to.as_str()));
        std::fs::remove_dir_all(tree.join(&to)).expect("a directory");
    }
    said(&format!(
        "{} copies cancelled, {removed} files of others removed",
        share(CANCELLED)
    ));
    assert_eq!(removed, 0);
    let cancelled = server
        .logged(|line| line["error_code"] == "cancelled")
        .await;
    assert_eq!(
        cancelled["tool"], "copy",
        "no copy was cancelled: the test shows nothing"
    );
}

/// What is in the making is in no listing, in no search and in no copy.
#[tokio::test]
async fn faults_nobody_sees_what_is_in_the_making() {
    testkit::over_both(async |transport| {
        let hidden = format!("dir/.mcp-filesystem-1-1-1-{:032x}.tmp", 7);
        let tree = Tree::new()
            .file("dir/file", "needle")
            .file(format!("{hidden}/file"), "needle")
            .file(
                format!("dir/.mcp-filesystem-1-1-1-{:032x}.tmp", 8),
                "needle",
            )
            .file("dir/.mcp-filesystem-notes", "needle");
        let server = Workspace::setup(&tree).start(transport).await;
        let listed = ok(&server, "list_folder", json!({"path": "dir"})).await;
        assert_eq!(listed["count"], 2, "{listed}");
        let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
        assert_eq!(found["total_matches"], 2, "{found}");
        let inside = json!({"path": format!("{hidden}/file")});
        fails(&server, "not_found", "read_file", inside).await;
        let new = format!("dir/.mcp-filesystem-1-1-1-{:032x}.tmp", 9);
        let new = json!({"path": new, "content": "would be swept"});
        fails(&server, "not_found", "write_file", new).await;
        let found = ok(&server, "glob", json!({"pattern": "**"})).await;
        assert!(!found.to_string().contains("tmp"), "{found}");
        let copied = ok(
            &server,
            "copy",
            json!({"source_path": "dir", "dest_path": "copy"}),
        )
        .await;
        assert_eq!(copied["files_copied"], 2, "{copied}");
        ok(&server, "remove_folder", json!({"path": "dir"})).await;
        assert_eq!(
            tree.listing().len(),
            3,
            "a directory goes with all it holds"
        );
    })
    .await;
}

/// A server of two roots on different file systems.
async fn two_file_systems(
    transport: Transport,
    more: impl FnOnce(Setup) -> Setup,
) -> Option<(Tree, Tree, Server)> {
    let (here, there) = (Tree::new(), Tree::in_memory());
    if device(&here) == device(&there) {
        left_out("there is no second file system");
        return None;
    }
    let setup = program()
        .root("workspace", here.path())
        .root("there", there.path());
    let server = more(setup).start(transport).await;
    Some((here, there, server))
}

/// Runs a few lines of Python, which reach what the standard library here does not.
fn python(lines: &str, path: &Path) -> bool {
    succeeds(
        Command::new("python3")
            .arg("-c")
            .arg(format!("import os,sys\np=sys.argv[1]\n{lines}"))
            .arg(path),
    )
}

/// An access control list: the owner and user 12345 may read and write, the group nothing, others nothing.
const LIST: &str = "import struct
e=[(1,6,0xffffffff),(2,6,12345),(4,0,0xffffffff),(16,6,0xffffffff),(32,0,0xffffffff)]
a=struct.pack('<I',2)+b''.join(struct.pack('<HHI',*x) for x in e)
os.setxattr(p,'system.posix_acl_access',a)";

#[tokio::test]
async fn faults_a_move_between_file_systems_keeps_what_a_rename_keeps() {
    testkit::over_both(async |transport| {
        let Some((here, there, server)) = two_file_systems(transport, |setup| setup).await else {
            return;
        };
        let here = here
            .file("tree/sub/file", "text")
            .file("tree/plain", "p")
            .mode("tree/plain", 0o6755)
            .mode("tree/sub", 0o1750)
            .mode("tree", 0o751)
            .sparse("tree/holes", 64 << 20)
            .file("lone", "l");
        let file = here.join("tree/sub/file");
        let has_attributes = python("os.setxattr(p,'user.colour',b'red')", &file);
        let has_list = python(LIST, &file);
        for path in [
            &file,
            &here.join("tree/sub"),
            &here.join("tree"),
            &here.join("lone"),
        ] {
            assert!(python("os.utime(p,ns=(1_000_000_123,2_000_000_456))", path));
        }
        for name in ["tree", "lone"] {
            let to = json!({"source_path": name, "dest_root": "there", "dest_path": name});
            ok(&server, "move", to).await;
            assert!(!here.has(name), "{name} stays");
        }
        let moved = there.join("tree/sub/file");
        for path in [
            &moved,
            &there.join("tree/sub"),
            &there.join("tree"),
            &there.join("lone"),
        ] {
            let metadata = std::fs::metadata(path).expect("it is there");
            assert_eq!(metadata.mtime(), 2, "{}", path.display());
            assert_eq!(metadata.mtime_nsec(), 456, "{}", path.display());
        }
        let mode = |path: &str| there.mode_of(path) & 0o7777;
        assert_eq!(mode("tree/plain"), 0o755, "set-uid never survives a copy");
        assert_eq!(mode("tree/sub"), 0o1750);
        assert_eq!(mode("tree"), 0o751, "the top keeps its mode too");
        let holes = std::fs::metadata(there.join("tree/holes")).expect("it is there");
        assert_eq!(holes.len(), 64 << 20);
        assert!(holes.blocks() * 512 < 1 << 20, "{} blocks", holes.blocks());
        if has_attributes {
            assert!(
                python("assert os.getxattr(p,'user.colour')==b'red'", &moved),
                "an attribute is lost"
            );
        }
        if has_list {
            assert!(
                python(
                    "assert len(os.getxattr(p,'system.posix_acl_access'))==44",
                    &moved
                ),
                "the list is lost"
            );
        } else {
            left_out("this file system has no access control lists");
        }
    })
    .await;
}

/// With a list, the mode's group bits are not the group's rights: a copy without the list must not make them so.
#[tokio::test]
async fn faults_a_copy_of_a_file_with_a_list_gives_its_group_nothing() {
    let tree = Tree::new().file("dir/file", "text").mode("dir/file", 0o600);
    if !python(LIST, &tree.join("dir/file")) {
        return left_out("this file system has no access control lists");
    }
    assert_eq!(tree.mode_of("dir/file") & 0o777, 0o660);
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    for (from, to, copy) in [("dir/file", "one", "one"), ("dir", "two", "two/file")] {
        ok(
            &server,
            "copy",
            json!({"source_path": from, "dest_path": to}),
        )
        .await;
        assert_eq!(tree.mode_of(copy) & 0o777, 0o600, "{copy}");
    }
}

#[tokio::test]
async fn faults_set_uid_never_survives_a_write() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("tool", "a\n").mode("tool", 0o6755);
        let server = Workspace::setup(&tree).start(transport).await;
        for (tool, arguments) in [
            (
                "write_file",
                json!({"path": "tool", "content": "b\n", "mode": "append"}),
            ),
            ("write_file", json!({"path": "tool", "content": "a\n"})),
            (
                "patch_file",
                json!({"path": "tool", "patch": "@@ -1 +1 @@\n-a\n+c\n"}),
            ),
        ] {
            let permissions = std::fs::Permissions::from_mode(0o6755);
            std::fs::set_permissions(tree.join("tool"), permissions).expect("a file of ours");
            ok(&server, tool, arguments).await;
            assert_eq!(tree.mode_of("tool") & 0o7777, 0o755, "{tool}");
        }
    })
    .await;
}

/// A removal that cannot end says how far it came.
#[tokio::test]
async fn faults_a_removal_that_fails_tells_what_it_did() {
    testkit::over_both(async |transport| {
        let tree = (0..20).fold(Tree::new(), |tree, number| tree.file(format!("dir/a{number}"), ""));
        let tree = tree.file("dir/z/fixed", "");
        let fixed = tree.join("dir/z/fixed");
        let flag = |word: &str| succeeds(Command::new("chattr").arg(word).arg(&fixed));
        if !flag("+i") {
            return left_out("files cannot be made immutable here");
        }
        // With a history it goes whole, in one step.
        let setup = Workspace::setup(&tree).arguments(["--no-history"]);
        let server = setup.start(transport).await;
        let error = call(&server, "remove_folder", json!({"path": "dir"})).await;
        let message = error.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        let left = tree.listing().len();
        assert!(flag("-i"));
        assert_eq!(error.error()["error"]["code"], "permission_denied");
        let expected = format!("removed {} of 23 entries, then: permission denied: dir/z/fixed; the rest is still there", 23 - left);
        assert!(message.starts_with(&expected), "{message} but {left} are left");
    })
    .await;
}

/// Where a part of the source cannot be removed after a move, both sides are there, and the reply says so.
#[tokio::test]
async fn faults_a_move_whose_source_cannot_go_leaves_both_and_says_so() {
    let Some((here, there, server)) = two_file_systems(Transport::Stdio, |setup| setup).await
    else {
        return;
    };
    let here = here.file("dir/a", "a").file("dir/fixed", "f");
    let fixed = here.join("dir/fixed");
    let flag = |word: &str| succeeds(Command::new("chattr").arg(word).arg(&fixed));
    if !flag("+i") {
        return left_out("files cannot be made immutable here");
    }
    let to = json!({"source_path": "dir", "dest_root": "there", "dest_path": "dir"});
    let error = fails(&server, "permission_denied", "move", to).await;
    assert!(flag("-i"));
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("copied everything to dir, then: permission denied: dir/fixed"),
        "{message}"
    );
    assert_eq!(there.text("dir/a"), "a");
    assert_eq!(there.text("dir/fixed"), "f");
    assert_eq!(
        here.text("dir/fixed"),
        "f",
        "what cannot go has its name back"
    );
    assert!(temporary_names(here.path()).is_empty());
}

#[tokio::test]
async fn faults_a_copy_locks_nothing_at_its_source() {
    let mut tree = Tree::new().file("work/0", "one text for all").dir("copies");
    for number in 1..6_000 {
        tree = tree.hard_link(format!("work/d{}/{number}", number % 60), "work/0");
    }
    let server = Workspace::setup(&tree)
        .set("durability", "fast")
        .start(Transport::Http)
        .await;
    let arguments = json!({"source_root": "workspace", "source_path": "work",
        "dest_root": "workspace", "dest_path": "copies/work"});
    let copy = server.spawn_call("copy", arguments);
    let copies = tree.join("copies");
    assert!(becomes(async || !temporary_names(&copies).is_empty()).await);
    for path in ["work/new", "work/d1/new"] {
        let write = json!({"root": "workspace", "path": path, "content": "new"});
        server.call("write_file", write).await.ok();
    }
    let rename = json!({"source_root": "workspace", "source_path": "work/new",
        "dest_root": "workspace", "dest_path": "work/renamed"});
    server.call("move", rename).await.ok();
    assert!(!copy.is_finished(), "the writes waited for the copy");
    let copied = copy.await.expect("an outcome");
    assert!(!copied.is_error, "{}", copied.story());
    assert!(copies.join("work/d1").is_dir());
}
