//! Full disks, disks that only read, files that cannot change, and disks that break.

use std::process::Command;

use testkit::{Setup, Transport, Tree, json, over_both};

use crate::harness::ToolSet;
use crate::harness::machine::{Small, call, contents, fails, left_out, may_mount, ok, succeeds};
use crate::workspace::Workspace;

#[tokio::test]
async fn faults_a_full_disk_is_its_own_error_and_changes_nothing() {
    if !may_mount() {
        return;
    }
    over_both(async |transport| {
        let other = Tree::new().big("large", 600_000).big("tree/d/large", 600_000);
        let more = |setup: Setup| setup.root("other", other.path());
        let small = Small::start("1m", transport, more).await;
        let server = &small.server;
        ok(server, "write_file", json!({"path": "old", "content": "old\n"})).await;
        let filler = "x".repeat(600_000);
        ok(server, "write_file", json!({"path": "filler", "content": filler})).await;
        let before = contents(&small.join(""));
        let elsewhere = other.listing();
        let more = "y".repeat(600_000);
        let patch = format!("@@ -1 +1 @@\n-old\n+{more}\n");
        let from_other = |source: &str, to: &str| {
            json!({"source_root": "other", "source_path": source, "dest_path": to})
        };
        let calls = [
            ("write_file", json!({"path": "old", "content": more})),
            ("write_file", json!({"path": "new/deep/f", "content": more})),
            ("write_file", json!({"path": "old", "content": more, "mode": "append"})),
            ("write_file", json!({"path": "n", "content": more, "mode": "append"})),
            ("write_file", json!({"path": "n", "content": more, "mode": "create_only"})),
            ("patch_file", json!({"path": "old", "patch": patch})),
            ("copy", json!({"source_path": "filler", "dest_path": "new/copy"})),
            ("copy", from_other("large", "new/copy")),
            ("copy", from_other("tree", "new/tree")),
            ("move", from_other("large", "new/moved")),
            ("move", from_other("tree", "new/tree")),
        ];
        for (tool, arguments) in calls {
            let error = fails(server, "disk_full", tool, arguments).await;
            assert!(error["message"].as_str().unwrap().contains("no space"), "{error}");
            assert_eq!(contents(&small.join("")), before, "{tool}");
            assert_eq!(other.listing(), elsewhere, "{tool}");
        }
        // Once there is room again everything works.
        ok(server, "remove_file", json!({"path": "filler"})).await;
        ok(server, "move", from_other("tree", "new/tree")).await;
        assert!(small.join("new/tree/d/large").exists() && !other.has("tree"));
    })
    .await;
}

#[tokio::test]
async fn faults_a_disk_without_inodes_is_full_too() {
    if !may_mount() {
        return;
    }
    // Not a single one is left for a history.
    let alone = |setup: Setup| setup.arguments(["--no-history"]);
    let small = Small::start("1m,nr_inodes=8", Transport::Stdio, alone).await;
    for number in 0..6 {
        ok(
            &small.server,
            "write_file",
            json!({"path": format!("f{number}"), "content": ""}),
        )
        .await;
    }
    let before = contents(&small.join(""));
    for (tool, arguments) in [
        ("write_file", json!({"path": "a/b/c/d/e", "content": ""})),
        ("create_folder", json!({"path": "a/b/c/d"})),
        ("copy", json!({"source_path": "f0", "dest_path": "a/b/c"})),
        (
            "move",
            json!({"source_path": "f0", "dest_path": "a/b/c/d/f"}),
        ),
    ] {
        fails(&small.server, "disk_full", tool, arguments).await;
        assert_eq!(contents(&small.join("")), before, "{tool}");
    }
}

#[tokio::test]
async fn faults_a_disk_that_becomes_read_only_refuses_changes_and_reads_on() {
    if !may_mount() {
        return;
    }
    over_both(async |transport| {
        // A history is open for writing, and so the system would refuse.
        let alone = |setup: Setup| setup.arguments(["--no-history"]);
        let small = Small::start("1m", transport, alone).await;
        let server = &small.server;
        ok(
            server,
            "write_file",
            json!({"path": "dir/f", "content": "text\n"}),
        )
        .await;
        assert!(small.run(&["mount", "-o", "remount,ro"]));
        let before = contents(&small.join(""));
        for (tool, arguments) in [
            ("write_file", json!({"path": "dir/f", "content": "x"})),
            ("write_file", json!({"path": "new/f", "content": "x"})),
            (
                "write_file",
                json!({"path": "dir/f", "content": "x", "mode": "append"}),
            ),
            (
                "patch_file",
                json!({"path": "dir/f", "patch": "@@ -1 +1 @@\n-text\n+x\n"}),
            ),
            ("create_folder", json!({"path": "new"})),
            ("remove_file", json!({"path": "dir/f"})),
            ("remove_folder", json!({"path": "dir"})),
            ("copy", json!({"source_path": "dir", "dest_path": "copy"})),
            ("move", json!({"source_path": "dir/f", "dest_path": "f"})),
        ] {
            fails(server, "permission_denied", tool, arguments).await;
        }
        assert_eq!(contents(&small.join("")), before);
        assert_eq!(
            ok(server, "read_file", json!({"path": "dir/f"})).await["content"],
            "text\n"
        );
        assert!(small.run(&["mount", "-o", "remount,rw"]));
        ok(server, "remove_folder", json!({"path": "dir"})).await;
    })
    .await;
}

#[tokio::test]
async fn faults_what_cannot_change_is_permission_denied() {
    let tree = Tree::new().file("dir/fixed", "text\n").file("other", "o");
    let fixed = tree.join("dir/fixed");
    let flag = |word: &str| succeeds(Command::new("chattr").arg(word).arg(&fixed));
    if !flag("+i") {
        return left_out("files cannot be made immutable here");
    }
    // With a history a directory goes whole, with what cannot be changed in it.
    let setup = Workspace::setup(&tree).arguments(["--no-history"]);
    let server = setup.start(Transport::Stdio).await;
    let calls = [
        ("write_file", json!({"path": "dir/fixed", "content": "x"})),
        (
            "write_file",
            json!({"path": "dir/fixed", "content": "x", "mode": "append"}),
        ),
        (
            "patch_file",
            json!({"path": "dir/fixed", "patch": "@@ -1 +1 @@\n-text\n+x\n"}),
        ),
        ("remove_file", json!({"path": "dir/fixed"})),
        ("remove_folder", json!({"path": "dir"})),
        (
            "move",
            json!({"source_path": "dir/fixed", "dest_path": "moved"}),
        ),
        (
            "move",
            json!({"source_path": "other", "dest_path": "dir/fixed"}),
        ),
        (
            "copy",
            json!({"source_path": "other", "dest_path": "dir/fixed"}),
        ),
    ];
    let mut codes = Vec::new();
    for (tool, arguments) in calls {
        let outcome = call(&server, tool, arguments).await;
        codes.push((tool, outcome.structured["error"]["code"].clone()));
    }
    let kept = (
        tree.text("dir/fixed"),
        tree.text("other"),
        tree.listing().len(),
    );
    assert!(flag("-i"));
    assert_eq!(kept, ("text\n".to_owned(), "o".to_owned(), 3));
    for (tool, code) in codes {
        // A move or copy onto what is there is refused for that reason first.
        assert!(
            code == "permission_denied" || code == "already_exists",
            "{tool}: {code}"
        );
    }
}

#[tokio::test]
async fn faults_another_user_is_told_permission_denied() {
    let tree = Tree::new()
        .file("theirs/file", "text\n")
        .file("private/secret", "s")
        .file("closed/f", "needle")
        .mode("private/secret", 0o600)
        .mode("closed", 0o700)
        .mode("", 0o755);
    let bin = Tree::new().mode("", 0o755);
    let copy = bin.join("mcp-filesystem");
    std::fs::copy(env!("CARGO_BIN_EXE_mcp-filesystem"), &copy).expect("a copy of the program");
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    if !succeeds(Command::new(user[0]).args(&user[1..]).arg("true")) {
        return left_out("this user cannot become another");
    }
    let setup = Setup::new(&copy)
        .wrapped_in(user)
        .directory("/")
        .arguments([tree.path().display().to_string()]);
    let name = tree.name();
    let server = setup.start(Transport::Stdio).await;
    let before = tree.listing();
    let ends = json!({"source_root": name, "dest_root": name});
    for (tool, arguments) in [
        ("read_file", json!({"path": "private/secret"})),
        ("write_file", json!({"path": "theirs/file", "content": "x"})),
        (
            "write_file",
            json!({"path": "theirs/new/f", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": "theirs/file", "content": "x", "mode": "append"}),
        ),
        (
            "patch_file",
            json!({"path": "theirs/file", "patch": "@@ -1 +1 @@\n-text\n+x\n"}),
        ),
        ("create_folder", json!({"path": "theirs/new"})),
        ("remove_file", json!({"path": "theirs/file"})),
        ("remove_folder", json!({"path": "theirs"})),
        ("list_folder", json!({"path": "closed"})),
        ("stat_file", json!({"path": "closed/f"})),
        (
            "hash_file",
            json!({"path": "private/secret", "algorithm": "md5"}),
        ),
        (
            "copy",
            json!({"source_path": "private/secret", "dest_path": "x"}),
        ),
        (
            "move",
            json!({"source_path": "theirs/file", "dest_path": "x"}),
        ),
    ] {
        let mut arguments = arguments;
        let words = arguments.as_object_mut().unwrap();
        match tool {
            "copy" | "move" => words.extend(ends.as_object().unwrap().clone()),
            _ => drop(words.insert("root".to_owned(), json!(name))),
        }
        let outcome = server.call(tool, arguments).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            "permission_denied",
            "{}",
            outcome.story()
        );
    }
    let found = server
        .call("grep", json!({"root": name, "pattern": "needle|text|s"}))
        .await;
    assert_eq!(found.ok()["total_matches"], 1, "{}", found.story());
    assert_eq!(found.ok()["files_skipped"], 2, "{}", found.story());
    assert_eq!(tree.listing(), before);
}

/// Reading a process's memory where nothing is mapped fails as a broken disk does.
#[tokio::test]
async fn faults_a_disk_that_breaks_while_it_is_read_is_said_to() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree).root("process", std::path::Path::new("/proc/self"));
    let server = setup.start(Transport::Stdio).await;
    let on_memory = json!({"root": "process", "path": "mem"});
    let read = server.call("read_file", on_memory.clone()).await;
    if read.structured["error"]["code"] == "permission_denied" {
        return left_out("the memory of a process cannot be opened here");
    }
    let part = json!({"root": "process", "path": "mem", "offset_bytes": 0, "limit_bytes": 10});
    let hash = json!({"root": "process", "path": "mem", "algorithm": "sha256"});
    let copy = json!({"source_root": "process", "source_path": "mem", "dest_root": "workspace",
        "dest_path": "new/copy"});
    for (tool, arguments) in [
        ("read_file", on_memory.clone()),
        ("read_file", part),
        ("hash_file", hash),
        ("copy", copy),
    ] {
        let outcome = server.call(tool, arguments).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            "io_error",
            "{}",
            outcome.story()
        );
    }
    assert!(tree.listing().is_empty(), "nothing is left of the copy");
}
