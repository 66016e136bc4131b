//! Slips that deserve an answer: paths that are nearly right, and links that lead to nothing or out.

use testkit::{Transport, Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, program};

const DECOMPOSED: &str = "notes/A\u{308}nderungen.md";
const COMPOSED: &str = "notes/\u{c4}nderungen.md";

#[tokio::test]
async fn workspace_slip_a_composed_name_opens_a_decomposed_file() {
    Workspace::both(
        || Tree::new().file(DECOMPOSED, "one\ntwo\n"),
        async |workspace| {
            let edits = json!([{"old": "two", "new": "TWO"}]);
            let edited = json!({"path": COMPOSED, "edits": edits});
            let edited = workspace.ok("edit_file", edited).await;
            assert_eq!(edited["files"][0]["path"], DECOMPOSED);
            let patch = "@@ -1,2 +1,2 @@\n-one\n+ONE\n TWO\n";
            let patched = json!({"path": COMPOSED, "patch": patch});
            workspace.ok("patch_file", patched).await;
            assert_eq!(workspace.tree().text(DECOMPOSED), "ONE\nTWO\n");
            for tool in ["stat_file", "permissions_file"] {
                let told = workspace.ok(tool, json!({"path": COMPOSED})).await;
                assert_eq!(told["path"], DECOMPOSED, "{tool}");
            }
            let hashed = json!({"path": COMPOSED, "algorithm": "md5"});
            workspace.ok("hash_file", hashed).await;
            let found = json!({"path": COMPOSED, "pattern": "ONE"});
            assert_eq!(workspace.ok("grep", found).await["total_matches"], 1);
            // What destroys needs the very name, and is told how to get it.
            let removed = json!({"path": COMPOSED});
            let message = workspace.message("not_found", "remove_file", removed).await;
            let hint = format!("{DECOMPOSED} (written with a combining diaeresis)?");
            assert!(message.contains(&hint), "{message}");
            assert!(workspace.tree().has(DECOMPOSED) && !workspace.tree().has(COMPOSED));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_slip_names_of_the_same_letters_are_told_apart() {
    let (one, other) = ("x\u{323}\u{307}", "x\u{307}\u{323}");
    Workspace::both(
        || {
            Tree::new()
                .file("\u{212b}", "sign")
                .file("A\u{30a}", "letter")
        },
        async |workspace| {
            let message = workspace
                .message("not_found", "read_file", json!({"path": "\u{c5}"}))
                .await;
            assert!(
                message.contains("(written with a combining ring above)"),
                "{message}"
            );
        },
    )
    .await;
    Workspace::both(
        || Tree::new().file(format!("{one}/a"), "1").dir("y"),
        async |workspace| {
            let read = json!({"path": format!("{other}/a")});
            assert_eq!(workspace.ok("read_file", read).await["content"], "1");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_slip_host_paths_are_taken_where_the_root_takes_them() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("dir/a.md", "text").file("b.md", "b");
        let host = |path: &str| tree.join(path).display().to_string();
        let taking = program().root_with(
            "ws",
            tree.path(),
            json!({"allowed_tools": ["*"], "host_paths": true}),
        );
        let server = taking.start(transport).await;
        let read = json!({"path": host("dir/a.md")});
        let read = server.call("read_file", read).await;
        assert_eq!(read.ok()["path"], "dir/a.md");
        let written = json!({"path": host("dir/new.md"), "content": "n"});
        server.call("write_file", written).await.ok();
        assert_eq!(tree.text("dir/new.md"), "n");
        let out = server
            .call("read_file", json!({"path": host("../x")}))
            .await;
        assert_eq!(out.error()["error"]["code"], "path_outside_root");
        let listed = server.call("list_folder", json!({"path": host("")})).await;
        assert_eq!(listed.ok()["path"], ".");
        let plain = program().root("ws", tree.path()).start(transport).await;
        let read = json!({"path": host("dir/a.md")});
        let read = plain.call("read_file", read).await;
        assert_eq!(read.error()["error"]["code"], "not_found");
    })
    .await;
}

#[tokio::test]
async fn workspace_slip_directories_of_the_command_line_take_host_paths() {
    let tree = Tree::new().file("a.md", "text");
    let host = tree.path().display().to_string();
    let server = program().arguments([host.clone()]);
    let server = server.start(Transport::Stdio).await;
    let read = json!({"path": format!("{host}/a.md")});
    assert_eq!(server.call("read_file", read).await.ok()["path"], "a.md");
}

#[tokio::test]
async fn workspace_slip_dots_after_a_name_that_is_missing() {
    Workspace::both(
        || {
            Tree::new()
                .file("a.md", "text")
                .file("dir/b", "b")
                .link("l", "dir")
        },
        async |workspace| {
            for path in [
                "zz/../a.md",
                "zz/yy/../../a.md",
                "a.md/../a.md",
                "l/../a.md",
            ] {
                assert_eq!(workspace.read(path).await, "text", "{path}");
            }
            let write = json!({"path": "zz/../new.md", "content": "n"});
            workspace.ok("write_file", write).await;
            assert!(workspace.tree().has("new.md") && !workspace.tree().has("zz"));
            for path in ["zz/../../x", "a.md/../../x"] {
                workspace
                    .fails("path_outside_root", "read_file", json!({"path": path}))
                    .await;
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_slip_links_say_where_they_lead() {
    let tree = || {
        Tree::new()
            .dir("docs")
            .link("gone.md", "docs/old.md")
            .link("nowhere", "missing/dir")
            .link("out", "/etc")
            .link("docs/up", "../../elsewhere")
    };
    Workspace::both(tree, async |workspace| {
        let table = [
            (
                "gone.md",
                "not_found",
                "file not found: gone.md; it is a symlink to docs/old.md, where nothing is",
            ),
            (
                "nowhere/a",
                "not_found",
                "file not found: nowhere/a; nowhere is a symlink to missing/dir, where nothing is",
            ),
            (
                "out/passwd",
                "path_outside_root",
                "path resolves outside root boundary: the symlink out leads out of the root",
            ),
            (
                "docs/up",
                "path_outside_root",
                "path resolves outside root boundary: the symlink docs/up leads out of the root",
            ),
            (
                "../x",
                "path_outside_root",
                "path resolves outside root boundary (root",
            ),
        ];
        for (path, code, expected) in table {
            let message = workspace
                .message(code, "read_file", json!({"path": path}))
                .await;
            assert!(message.starts_with(expected), "{message}");
            assert!(
                !message.contains("/etc") && !message.contains("elsewhere"),
                "{message}"
            );
        }
        let edits = json!([{"old": "a", "new": "b"}]);
        let edit = json!({"path": "gone.md", "edits": edits});
        let message = workspace.message("not_found", "edit_file", edit).await;
        assert!(
            message.contains("it is a symlink to docs/old.md"),
            "{message}"
        );
    })
    .await;
}
