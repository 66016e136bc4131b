//! Where a history is: file systems without links, in memory, full or foreign; forged ones; nested roots.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use testkit::{Setup, Transport, Tree, json};

use crate::harness::machine::{Small, call, left_out, may_mount, ok, succeeds};
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

fn in_root(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    program().root_with("workspace", tree.path(), keys)
}

/// It is on unless somebody says otherwise, outside the root, and can be switched off.
#[tokio::test]
async fn history_is_on_by_default_and_outside_the_root() {
    let tree = Tree::new().file("a", "0\n");
    let setup = || program().root("workspace", tree.path());
    let server = setup().start(Transport::Stdio).await;
    let arguments = json!({"path": "a", "content": "1\n"});
    let reply = ok(&server, "write_file", arguments.clone()).await;
    assert!(reply["change"].is_string(), "{reply}");
    assert!(!tree.has(".mcp-filesystem"));
    let checked = setup().arguments(["check"]).run().await;
    assert!(
        checked
            .stdout
            .contains("history outside the root: 1 changes"),
        "{}",
        checked.stdout
    );
    server.stop().await;
    let off = program().root_with(
        "workspace",
        tree.path(),
        json!({"allowed_tools": ["*"], "history": "off"}),
    );
    for setup in [setup().arguments(["--no-history"]), off] {
        let server = setup.start(Transport::Stdio).await;
        let outcome = call(&server, "write_file", arguments.clone()).await;
        assert_eq!(outcome.ok().get("change"), None, "{}", outcome.story());
        assert!(!outcome.text.contains("undo"), "{}", outcome.story());
        let outcome = call(&server, "undo", json!({"change": "1"})).await;
        assert_eq!(
            outcome.error()["error"]["code"],
            "not_found",
            "{}",
            outcome.story()
        );
        server.stop().await;
    }
    assert!(!tree.has(".mcp-filesystem"));
}

/// Metrics tell what is kept, and what was undone.
#[tokio::test]
async fn history_metrics() {
    let tree = Tree::new().file("a", "0\n");
    let server = in_root(&tree).start(Transport::Http).await;
    for text in ["1\n", "2\n"] {
        let reply = ok(&server, "write_file", json!({"path": "a", "content": text})).await;
        if text == "2\n" {
            ok(&server, "undo", json!({"change": reply["change"]})).await;
        }
    }
    for line in [
        "mcp_filesystem_history_changes{root=\"workspace\"} 3",
        "mcp_filesystem_history_undone_total{root=\"workspace\"} 1",
        "mcp_filesystem_history_pruned_total{root=\"workspace\"} 0",
    ] {
        crate::harness::metrics_show(&server, line).await;
    }
}

/// Where neither place can be made the root works without, with one warning.
#[tokio::test]
async fn history_a_root_that_can_keep_none_works_without() {
    let tree = Tree::new()
        .file("a", "0\n")
        .file(".mcp-filesystem", "in the way");
    let server = in_root(&tree).start(Transport::Stdio).await;
    let outcome = call(
        &server,
        "write_file",
        json!({"path": "a", "content": "1\n"}),
    )
    .await;
    assert_eq!(outcome.ok().get("change"), None, "{}", outcome.story());
    let ended = server.stop().await;
    let warned = ended
        .stderr
        .iter()
        .filter(|line| line.contains("no history is kept"));
    assert_eq!(warned.count(), 1, "{:?}", ended.stderr);
    assert_eq!(tree.text(".mcp-filesystem"), "in the way");
}

/// The same changes, undone, on another file system; the root is mounted for the server alone.
async fn is_undone(server: &testkit::Server, join: impl Fn(&str) -> std::path::PathBuf) {
    let read = |path: &str| std::fs::read_to_string(join(path)).unwrap_or_default();
    for (path, content) in [("a", "0\n"), ("dir/b", "0\n")] {
        ok(
            server,
            "write_file",
            json!({"path": path, "content": content}),
        )
        .await;
    }
    let mut names = Vec::new();
    for (tool, arguments) in [
        ("write_file", json!({"path": "a", "content": "1\n"})),
        ("write_file", json!({"path": "a", "content": "2\n"})),
        (
            "write_file",
            json!({"path": "a", "content": "more\n", "mode": "append"}),
        ),
        ("move", json!({"source_path": "a", "dest_path": "c"})),
        ("remove_folder", json!({"path": "dir"})),
        ("remove_file", json!({"path": "c"})),
    ] {
        let outcome = call(server, tool, arguments).await;
        assert_eq!(outcome.ok().get("not_kept"), None, "{}", outcome.story());
        names.push(
            outcome.ok()["change"]
                .as_str()
                .expect("a change")
                .to_owned(),
        );
    }
    for name in names.iter().rev() {
        ok(server, "undo", json!({"change": name})).await;
    }
    assert_eq!((read("a"), read("dir/b")), ("0\n".into(), "0\n".into()));
    ok(server, "write_file", json!({"path": "a", "content": "x\n"})).await;
}

#[tokio::test]
async fn history_in_memory() {
    if may_mount() {
        let small = Small::start("4m", Transport::Stdio, |setup| setup).await;
        is_undone(&small.server, |path| small.join(path)).await;
        let reserved = small
            .join(".mcp-filesystem")
            .metadata()
            .expect("it is in the root");
        assert_eq!(reserved.permissions().mode() & 0o777, 0o700);
        let listed = ok(&small.server, "list_folder", json!({"path": ""})).await;
        assert!(!listed.to_string().contains("mcp-filesystem"), "{listed}");
    }
}

/// A file system without links: what is replaced is exchanged, or copied.
#[tokio::test]
async fn history_on_a_file_system_without_links() {
    let tree = Tree::new();
    let image = Tree::new().sparse("image", 16 << 20);
    let image = image.join("image");
    let made = succeeds(Command::new("mkfs.vfat").arg(&image));
    let mount = format!(
        "mount -o loop '{}' '{}'",
        image.display(),
        tree.path().display()
    );
    let probe = ["-m", "sh", "-c", &mount];
    if !made || !succeeds(Command::new("unshare").args(probe)) {
        left_out("no file system without links can be mounted here");
        return;
    }
    let mount = format!("{mount} && exec \"$0\" \"$@\"");
    let setup = Workspace::setup(&tree).wrapped_in(["unshare", "-m", "sh", "-c", &mount]);
    let server = setup.start(Transport::Stdio).await;
    let pid = server.pid();
    let join = |path: &str| format!("/proc/{pid}/root{}", tree.join(path).display()).into();
    is_undone(&server, join).await;
}

/// On a full disk the oldest changes go before any write fails.
#[tokio::test]
async fn history_makes_room_on_a_full_disk() {
    if !may_mount() {
        return;
    }
    let small = Small::start("4m", Transport::Stdio, |setup| setup).await;
    let server = &small.server;
    for round in 0..20 {
        let content = format!("{round}\n").repeat(300_000);
        let content = content.get(..700_000).unwrap_or(&content);
        ok(
            server,
            "write_file",
            json!({"path": "a", "content": content}),
        )
        .await;
    }
    let reply = ok(
        server,
        "write_file",
        json!({"path": "b", "content": "last\n"}),
    )
    .await;
    ok(server, "undo", json!({"change": reply["change"]})).await;
    assert!(!small.join("b").exists());
}

/// A history that came with an archive is never recovered or undone from.
#[tokio::test]
async fn history_a_forged_one_is_left_alone() {
    let tree = Tree::new().file("a", "mine\n");
    let metadata = tree.path().metadata().expect("a root");
    let born = metadata.created().map_or(String::new(), |born| {
        let since = born.duration_since(std::time::UNIX_EPOCH).expect("a time");
        format!(".{:x}.{:x}", since.as_secs(), since.subsec_nanos())
    });
    let (device, inode) = (metadata.dev(), metadata.ino());
    let store = format!(".mcp-filesystem/{device:x}-{inode:x}{born}");
    let part = json!({"kind": "replace", "path": "a", "object": "1.0",
        "old": {"kind": "f", "inode": 1, "size": 5, "modified": 0, "mode": 420},
        "new": {"kind": "f", "inode": tree.join("a").metadata().expect("a").ino(), "mode": 420}});
    let line = json!({"n": 1, "by": {"time": 1}, "parts": [part], "prev": ""});
    tree.write(
        format!("{store}/records/000000000001-00000001.open"),
        format!("{line}\n"),
    );
    tree.write(format!("{store}/objects/1.0"), "evil\n");
    tree.write(format!("{store}/counter"), "00000000000000000001");
    let header = json!({"history": 1, "device": 1, "inode": 1});
    tree.write(format!("{store}/header"), header.to_string());
    let mode = |path: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.join(path), mode).expect("its mode");
    };
    mode(".mcp-filesystem", 0o700);
    mode(&store, 0o700);
    let server = in_root(&tree).start(Transport::Stdio).await;
    assert_eq!(tree.text("a"), "mine\n");
    let outcome = call(&server, "undo", json!({"change": "1"})).await;
    assert!(outcome.is_error, "{}", outcome.story());
    let reply = ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "new\n"}),
    )
    .await;
    ok(&server, "undo", json!({"change": reply["change"]})).await;
    assert_eq!(tree.text("a"), "mine\n");
    assert_eq!(tree.text(format!("{store}/objects/1.0")), "evil\n");
    let ended = server.stop().await;
    let warned = ended
        .stderr
        .iter()
        .any(|line| line.contains("not this root's"));
    assert!(warned, "{:?}", ended.stderr);
}

/// A root inside another keeps its own history, which the outer one does not see.
#[tokio::test]
async fn history_nested_roots() {
    let tree = Tree::new().file("inner/a", "0\n").file("b", "0\n");
    let keys = || json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    let setup = program().root_with("outer", tree.path(), keys()).root_with(
        "inner",
        &tree.join("inner"),
        keys(),
    );
    let server = setup.start(Transport::Stdio).await;
    let write = async |root: &str, path: &str| {
        let arguments = json!({"root": root, "path": path, "content": "1\n"});
        server.call("write_file", arguments).await.ok()["change"].clone()
    };
    let (inner, outer) = (write("inner", "a").await, write("outer", "b").await);
    let listed = server
        .call("glob", json!({"root": "outer", "pattern": "**/*"}))
        .await;
    assert!(
        !listed.text.contains("mcp-filesystem"),
        "{}",
        listed.story()
    );
    for (root, change) in [("outer", &outer), ("inner", &inner)] {
        server
            .call("undo", json!({"root": root, "change": change}))
            .await
            .ok();
    }
    assert_eq!(
        (tree.text("inner/a"), tree.text("b")),
        ("0\n".into(), "0\n".into())
    );
    let removed = server
        .call("remove_folder", json!({"root": "outer", "path": "inner"}))
        .await;
    assert!(!removed.is_error, "{}", removed.story());
    assert!(!tree.has("inner"));
    let undo = json!({"root": "outer", "change": removed.ok()["change"]});
    server.call("undo", undo).await.ok();
    assert_eq!(tree.text("inner/a"), "0\n");
}

/// A program that has a removed file open writes on into what is kept; what comes back has that.
#[tokio::test]
async fn history_an_open_writer_below_a_removed_tree() {
    let tree = Tree::new().file("dir/log", "one\n");
    let server = in_root(&tree).start(Transport::Stdio).await;
    let open = std::fs::OpenOptions::new()
        .append(true)
        .open(tree.join("dir/log"));
    let mut open = open.expect("a file");
    let reply = ok(&server, "remove_folder", json!({"path": "dir"})).await;
    std::io::Write::write_all(&mut open, b"two\n").expect("it is written");
    assert!(!tree.has("dir"));
    ok(&server, "undo", json!({"change": reply["change"]})).await;
    assert_eq!(tree.text("dir/log"), "one\ntwo\n");
}

/// Where something is mounted below a tree, nothing on the mount is moved away or lost by an undo.
#[tokio::test]
async fn history_a_mount_below_a_removed_tree() {
    if !may_mount() {
        return;
    }
    let small = Small::start("4m", Transport::Stdio, |setup| setup).await;
    let server = &small.server;
    ok(
        server,
        "write_file",
        json!({"path": "dir/file", "content": "x\n"}),
    )
    .await;
    ok(server, "create_folder", json!({"path": "dir/mnt"})).await;
    assert!(small.run(&[
        "sh",
        "-c",
        "mount -t tmpfs tmpfs \"$0/dir/mnt\" && echo y > \"$0/dir/mnt/y\""
    ]));
    // The mount goes with the directory, and comes back with it; nothing on it is touched.
    let reply = ok(server, "remove_folder", json!({"path": "dir"})).await;
    assert!(!small.join("dir").exists(), "{reply}");
    ok(server, "undo", json!({"change": reply["change"]})).await;
    assert!(small.join("dir/file").exists() && small.join("dir/mnt/y").exists());
}

/// What is mounted below something that is kept is not emptied when that is pruned, and is told.
#[tokio::test]
async fn history_a_mount_below_what_is_pruned_stays() {
    if !may_mount() {
        return;
    }
    let mounted = Tree::new().file("theirs", "y\n");
    let tree = Tree::new().file("dir/file", "x\n").dir("dir/mnt");
    let setup = || {
        let keys = json!({"allowed_tools": ["*"], "history": {"place": "root", "max_changes": 1}});
        program().root_with("workspace", tree.path(), keys)
    };
    let server = setup().start(Transport::Stdio).await;
    ok(&server, "remove_folder", json!({"path": "dir"})).await;
    server.stop().await;
    let listing = tree.listing().into_iter();
    let mut kept = listing
        .map(|(path, _)| path)
        .filter(|path| path.ends_with("/mnt"));
    let kept = kept.next().expect("it is kept");
    let (source, target) = (mounted.path().display(), tree.join(kept));
    let mount = format!(
        "mount --bind '{source}' '{}' && exec \"$0\" \"$@\"",
        target.display()
    );
    let server = setup().start(Transport::Stdio).await;
    ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "1\n"}),
    )
    .await;
    server.stop().await;
    let prune = setup().arguments(["history", "prune"]);
    let ended = prune
        .wrapped_in(["unshare", "-m", "sh", "-c", &mount])
        .run()
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "{\"root\":\"workspace\",\"removed\":1,\"stuck\":1}";
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    assert_eq!(mounted.text("theirs"), "y\n");
    // The next one that has something to remove finishes it, once nothing is mounted there.
    let server = setup().start(Transport::Stdio).await;
    ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "2\n"}),
    )
    .await;
    server.stop().await;
    let ended = setup().arguments(["history", "prune"]).run().await;
    assert_eq!((ended.code, target.exists()), (Some(0), false), "{ended:?}");
}

/// A directory that belongs to somebody else goes with the tree around it and comes back with it.
#[tokio::test]
async fn history_another_users_directory_below_a_removed_tree() {
    let tree = Tree::new().file("dir/theirs/file", "x\n");
    if std::os::unix::fs::chown(tree.join("dir/theirs"), Some(65_534), Some(65_534)).is_err() {
        left_out("only the superuser can give a directory away");
        return;
    }
    let server = in_root(&tree).start(Transport::Stdio).await;
    let reply = ok(&server, "remove_folder", json!({"path": "dir"})).await;
    assert!(!tree.has("dir"));
    ok(&server, "undo", json!({"change": reply["change"]})).await;
    assert_eq!(tree.text("dir/theirs/file"), "x\n");
    let owner = tree
        .join("dir/theirs")
        .metadata()
        .expect("it is back")
        .uid();
    assert_eq!(owner, 65_534);
}

/// A process that was started and only reads leaves nothing behind.
#[tokio::test]
async fn history_is_made_at_the_first_change() {
    let tree = Tree::new().file("a", "0\n");
    let server = in_root(&tree).start(Transport::Stdio).await;
    ok(&server, "read_file", json!({"path": "a"})).await;
    ok(&server, "changes", json!({})).await;
    assert!(!tree.has(".mcp-filesystem"));
    ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "1\n"}),
    )
    .await;
    assert!(becomes(async || tree.has(".mcp-filesystem/.gitignore")).await);
}
