//! Files that no rename replaces, and files that have a name before they are whole.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::{Setup, Transport, Tree, json, over_both};

use crate::harness::machine::{fails, may_mount, ok};
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

/// Starts the server behind a command in a mount namespace of its own.
fn behind(setup: Setup, mount: &str) -> Setup {
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    setup.wrapped_in(["unshare", "-m", "sh", "-c", &script])
}

#[tokio::test]
async fn faults_a_file_that_is_a_mount_point_is_rewritten_in_place_and_the_reply_says_so() {
    if !may_mount() {
        return;
    }
    over_both(async |transport| {
        let given = Tree::new().file("config.yml", "one\ntwo\nthree\n");
        let given = given.mode("config.yml", 0o640);
        let tree = Tree::new()
            .file("config.yml", "placeholder")
            .file("plain", "");
        let bind = format!(
            "mount --bind '{}' '{}'",
            given.join("config.yml").display(),
            tree.join("config.yml").display()
        );
        let inode = || std::fs::metadata(given.join("config.yml")).unwrap().ino();
        let before = inode();
        let server = behind(Workspace::setup(&tree), &bind)
            .start(transport)
            .await;
        let write = json!({"path": "config.yml", "content": "1\n2\n"});
        let reply = ok(&server, "write_file", write).await;
        assert_eq!(reply["not_atomic"], true, "{reply}");
        assert_eq!(reply["created"], false, "{reply}");
        assert_eq!(given.text("config.yml"), "1\n2\n");
        // What was there before is kept, although it was written over.
        let at = reply["change"].as_str().expect("a change");
        let before_it = ok(
            &server,
            "read_file",
            json!({"path": "config.yml", "at": at}),
        )
        .await;
        assert_eq!(before_it["content"], "one\ntwo\nthree\n", "{before_it}");
        let patch = json!({"path": "config.yml", "patch": "@@ -2 +2,2 @@\n-2\n+two\n+three\n"});
        let reply = ok(&server, "patch_file", patch).await;
        assert_eq!(reply["not_atomic"], true, "{reply}");
        assert_eq!(reply["size"], 12, "{reply}");
        assert_eq!(given.text("config.yml"), "1\ntwo\nthree\n");
        let plain = json!({"path": "plain", "content": "text"});
        let reply = ok(&server, "write_file", plain).await;
        assert!(reply.get("not_atomic").is_none(), "{reply}");
        let copy = json!({"source_path": "plain", "dest_path": "config.yml"});
        let reply = ok(&server, "copy", copy).await;
        assert_eq!(reply["not_atomic"], true, "{reply}");
        assert_eq!(given.text("config.yml"), "text");
        // It stays the same file with its own mode, and nothing else appears beside it.
        assert_eq!(inode(), before);
        assert_eq!(given.mode_of("config.yml"), 0o640);
        assert_eq!(tree.text("config.yml"), "placeholder");
        assert_eq!(tree.listing().len(), 2, "{:?}", tree.listing());
        // What must not replace does not.
        let create = json!({"path": "config.yml", "content": "x", "mode": "create_only"});
        fails(&server, "already_exists", "write_file", create).await;
        assert_eq!(given.text("config.yml"), "text");
    })
    .await;
}

#[tokio::test]
async fn faults_a_rewrite_in_place_that_finds_the_disk_full_changes_nothing() {
    if !may_mount() {
        return;
    }
    let old = "old\n".repeat(1000);
    let tree = Tree::new().file("config.yml", "placeholder").dir("disk");
    let mounts = format!(
        "mount -t tmpfs -o size=64k tmpfs '{disk}' && printf '{old}' > '{disk}/f' && mount --bind '{disk}/f' '{file}'",
        disk = tree.join("disk").display(),
        file = tree.join("config.yml").display(),
    );
    let server = behind(Workspace::setup(&tree), &mounts)
        .start(Transport::Stdio)
        .await;
    let write = json!({"path": "config.yml", "content": "x".repeat(200_000)});
    fails(&server, "disk_full", "write_file", write).await;
    let read = ok(&server, "read_file", json!({"path": "config.yml"})).await;
    assert_eq!(read["content"], old.as_str());
}

#[tokio::test]
async fn faults_without_proc_a_temporary_file_is_private_from_the_start() {
    if !may_mount() {
        return;
    }
    let tree = Tree::new().file("secret", "").mode("secret", 0o600);
    let server = behind(Workspace::setup(&tree), "mount -t tmpfs tmpfs /proc")
        .start(Transport::Stdio)
        .await;
    let stop = Arc::new(AtomicBool::new(false));
    let (seen_enough, directory) = (Arc::clone(&stop), tree.path().to_owned());
    let watcher = thread::spawn(move || {
        let mut modes = Vec::new();
        while !seen_enough.load(Ordering::Relaxed) {
            for entry in std::fs::read_dir(&directory).unwrap().flatten() {
                let is_temporary = entry.file_name().to_string_lossy().ends_with(".tmp");
                if let (true, Ok(metadata)) = (is_temporary, entry.metadata()) {
                    modes.push(metadata.permissions().mode() & 0o777);
                }
            }
            seen_enough.fetch_or(modes.len() > 20, Ordering::Relaxed);
        }
        modes
    });
    let content = "secret\n".repeat(100_000);
    for _ in 0..500 {
        ok(
            &server,
            "write_file",
            json!({"path": "secret", "content": content}),
        )
        .await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let modes = watcher.join().unwrap();
    assert!(
        !modes.is_empty(),
        "no temporary file was seen in 500 writes"
    );
    assert!(modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
    // A new file gets its usual mode, and nothing is left beside it.
    ok(
        &server,
        "write_file",
        json!({"path": "new", "content": "x"}),
    )
    .await;
    tree.write("usual", "");
    assert_eq!(tree.mode_of("new"), tree.mode_of("usual"));
    let mut left = tree.listing();
    left.retain(|path, _| !path.starts_with(".mcp-filesystem"));
    assert_eq!(left.len(), 3, "{left:?}");
}

#[tokio::test]
async fn faults_two_roots_on_one_directory_lose_no_edit() {
    if !may_mount() {
        return;
    }
    let lines: String = (0..64).map(|n| format!("<{n}>\n")).collect();
    let tree = Tree::new().file("one/f", lines).dir("two");
    let bind = format!(
        "mount --bind '{}' '{}'",
        tree.join("one").display(),
        tree.join("two").display()
    );
    let setup = program()
        .root("one", &tree.join("one"))
        .root("two", &tree.join("two"))
        .set("durability", "fast");
    let server = behind(setup, &bind).start(Transport::Stdio).await;
    let edits: Vec<_> = (0..64)
        .map(|n| {
            let root = if n % 2 == 0 { "one" } else { "two" };
            let edits = json!([{"old": format!("<{n}>"), "new": "done"}]);
            server.spawn_call(
                "edit_file",
                json!({"root": root, "path": "f", "edits": edits}),
            )
        })
        .collect();
    for edit in edits {
        edit.await.expect("an outcome").ok();
    }
    assert_eq!(tree.text("one/f"), "done\n".repeat(64));
}
