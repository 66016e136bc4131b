//! A full disk with a history: the oldest changes go before any tool fails, and what cannot be kept is told.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::machine::{Small, call, left_out, may_mount, ok, succeeds};

/// How many old contents there are when a tool finds the disk full.
const OLD: usize = 8;
/// The size of each of them.
const OLD_BYTES: usize = 200_000;
/// The most of anything that fits on the disk.
const FILES_MAX: usize = 10_000;

/// What there is none of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Bytes,
    Inodes,
}

/// Where a small file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Loop,
}

impl Kind {
    async fn start(self, full: Full, image: &Path, more: impl FnOnce(Setup) -> Setup) -> Small {
        let transport = Transport::Stdio;
        let more = |setup| more(setup).set("durability", "fast");
        match (self, full) {
            (Kind::Memory, Full::Bytes) => Small::start("8m", transport, more).await,
            (Kind::Memory, Full::Inodes) => Small::start("16m,nr_inodes=60", transport, more).await,
            (Kind::Loop, _) => {
                let image = image.display();
                let mount = |root: &Path| format!("mount -o loop '{image}' '{}'", root.display());
                Small::mounted(mount, transport, more).await
            }
        }
    }
}

/// Makes an ext4 file system in a file; `false` if that cannot be done or mounted here.
fn made_image(image: &Path, full: Full) -> bool {
    let inodes = match full {
        Full::Bytes => "400",
        Full::Inodes => "72",
    };
    let is_sized = File::create(image).and_then(|file| file.set_len(16 << 20));
    let make = ["-q", "-F", "-m", "0", "-b", "1024", "-N", inodes];
    let mount = "mount -o loop \"$0\" /mnt";
    is_sized.is_ok()
        && succeeds(Command::new("mkfs.ext4").args(make).arg(image))
        && succeeds(
            Command::new("unshare")
                .args(["-m", "sh", "-c", mount])
                .arg(image),
        )
}

/// Fills the disk from outside until nothing more fits.
fn fill(small: &Small, full: Full) {
    let filler = small.join("filler");
    if std::fs::create_dir_all(&filler).is_err() {
        // What is kept has filled it already.
        return;
    }
    match full {
        Full::Inodes => {
            let full = (0..FILES_MAX).find(|n| File::create(filler.join(n.to_string())).is_err());
            assert!(full.is_some(), "it is not full");
        }
        Full::Bytes => {
            let mut file = File::create(filler.join("bytes")).expect("a file");
            for size in [1 << 16, 1 << 10, 1] {
                let piece = vec![b'x'; size];
                let mut pieces = (0..FILES_MAX).map(|_| file.write_all(&piece));
                assert!(pieces.any(|written| written.is_err()), "it is not full");
            }
        }
    }
}

/// Makes room from outside, and gives the history old content that may go.
async fn refill_history(small: &Small) {
    let _ = std::fs::remove_dir_all(small.join("filler"));
    for number in 0..OLD {
        let content = format!("{number}\n").repeat(OLD_BYTES / 2);
        ok(
            &small.server,
            "write_file",
            json!({"path": "old", "content": content}),
        )
        .await;
    }
}

/// Calls of every tool that needs room, or that writes down what it does.
fn calls() -> Vec<(&'static str, Value)> {
    let more = "m\n".repeat(30_000);
    let patch = "@@ -1 +1 @@\n-first\n+1st\n";
    vec![
        ("write_file", json!({"path": "new", "content": more})),
        ("write_file", json!({"path": "a/b/c/new", "content": more})),
        (
            "write_file",
            json!({"path": "text", "content": more, "mode": "append"}),
        ),
        (
            "write_file",
            json!({"files": [{"path": "two", "content": more}, {"path": "d/three", "content": more}]}),
        ),
        (
            "edit_file",
            json!({"path": "text", "edits": [{"old": "last", "new": "the last"}]}),
        ),
        ("patch_file", json!({"path": "text", "patch": patch})),
        ("create_folder", json!({"path": "made/here"})),
        (
            "copy",
            json!({"source_path": "text", "dest_path": "copied"}),
        ),
        (
            "copy",
            json!({"source_path": "dir", "dest_path": "copies/dir"}),
        ),
        (
            "move",
            json!({"source_root": "other", "source_path": "tree", "dest_path": "moved/tree"}),
        ),
        (
            "move",
            json!({"source_path": "copied", "dest_path": "renamed"}),
        ),
        ("remove_file", json!({"path": "renamed"})),
        ("remove_folder", json!({"path": "copies"})),
    ]
}

#[tokio::test]
async fn history_oldest_changes_go_before_a_tool_finds_the_disk_full() {
    if !may_mount() {
        return;
    }
    for full in [Full::Bytes, Full::Inodes] {
        for kind in [Kind::Memory, Kind::Loop] {
            every_tool_finds_room(kind, full).await;
        }
    }
}

async fn every_tool_finds_room(kind: Kind, full: Full) {
    let images = Tree::new();
    let image = images.join("image");
    if kind == Kind::Loop && !made_image(&image, full) {
        return left_out("no image of a disk can be made and mounted here");
    }
    let other = Tree::new().file("tree/sub/f", "x".repeat(50_000));
    let small = kind
        .start(full, &image, |setup| setup.root("other", other.path()))
        .await;
    let server = &small.server;
    let text = format!("first\n{}last\n", "text\n".repeat(20_000));
    ok(
        server,
        "write_file",
        json!({"path": "text", "content": text}),
    )
    .await;
    ok(
        server,
        "write_file",
        json!({"path": "dir/sub/f", "content": text}),
    )
    .await;
    for (tool, arguments) in calls() {
        refill_history(&small).await;
        fill(&small, full);
        let outcome = call(server, tool, arguments.clone()).await;
        assert!(!outcome.is_error, "{kind:?} {full:?} {}", outcome.story());
        assert!(outcome.ok()["change"].is_string(), "{}", outcome.story());
    }
    // An undo frees what others need, and never what it needs itself.
    let added = "a\n".repeat(50_000);
    let append = json!({"path": "text", "content": added, "mode": "append"});
    let before = std::fs::read(small.join("text")).expect("a file");
    let mut last = ok(server, "write_file", append).await["change"].clone();
    let after = std::fs::read(small.join("text")).expect("a file");
    for expected in [&before, &after, &before] {
        refill_history(&small).await;
        fill(&small, full);
        let undo = json!({"root": "workspace", "change": last});
        let outcome = call(server, "undo", undo).await;
        assert!(!outcome.is_error, "{kind:?} {full:?} {}", outcome.story());
        last = outcome.ok()["change"].clone();
        let found = std::fs::read(small.join("text")).expect("a file");
        assert!(found == *expected, "{} bytes", found.len());
    }
}

/// Where nothing more can go, the error says so with the path, and nothing is changed.
#[tokio::test]
async fn history_an_undo_and_an_edit_on_a_full_disk_say_so() {
    if !may_mount() {
        return;
    }
    let images = Tree::new();
    for kind in [Kind::Memory, Kind::Loop] {
        let image = images.join("image");
        if kind == Kind::Loop && !made_image(&image, Full::Bytes) {
            return left_out("no image of a disk can be made and mounted here");
        }
        let small = kind.start(Full::Bytes, &image, |setup| setup).await;
        let server = &small.server;
        let text = format!("{}last\n", "text\n".repeat(100_000));
        ok(
            server,
            "write_file",
            json!({"path": "text", "content": text}),
        )
        .await;
        let append = json!({"path": "text", "content": text, "mode": "append"});
        let change = ok(server, "write_file", append).await["change"].clone();
        fill(&small, Full::Bytes);
        let before = std::fs::read(small.join("text")).expect("a file");
        let edits = json!([{"old": "last\ntext", "new": "the last\ntext"}]);
        for (tool, arguments) in [
            ("edit_file", json!({"path": "text", "edits": edits})),
            ("undo", json!({"root": "workspace", "change": change})),
        ] {
            let outcome = call(server, tool, arguments).await;
            let error = &outcome.error()["error"];
            assert_eq!(error["code"], "disk_full", "{kind:?} {}", outcome.story());
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("text"), "{message}");
            assert!(std::fs::read(small.join("text")).expect("a file") == before);
        }
    }
}

/// Where there is no room for a history, a reply says that its change cannot be undone.
#[tokio::test]
async fn history_a_first_change_on_a_full_disk_says_that_it_is_not_kept() {
    if !may_mount() {
        return;
    }
    let small = Small::start("1m,nr_inodes=8", Transport::Stdio, |setup| setup).await;
    std::fs::write(small.join("gone"), "x").expect("a file");
    fill(&small, Full::Inodes);
    let outcome = call(&small.server, "remove_file", json!({"path": "gone"})).await;
    let reply = outcome.ok();
    assert!(reply.get("change").is_none(), "{}", outcome.story());
    assert_eq!(reply["not_kept"], true, "{}", outcome.story());
    assert!(
        outcome.text.contains("cannot be undone"),
        "{}",
        outcome.story()
    );
    assert!(!small.join("gone").exists());
}
