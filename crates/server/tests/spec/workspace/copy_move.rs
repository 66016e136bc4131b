//! `copy` and `move`.

use testkit::{Tree, Value, json};

use super::Workspace;
use crate::harness::{Harness, ToolSet, each, program};

/// Arguments within root `workspace`.
fn within(source: &str, destination: &str) -> Value {
    json!({"source_path": source, "dest_path": destination})
}

/// Expects that a tool says what is missing, and makes no directory for it.
async fn a_missing_source_fails(tool: &str) {
    Workspace::both(Tree::new, async |workspace| {
        let message = workspace
            .message("not_found", tool, within("missing.txt", "x/y"))
            .await;
        assert!(
            message.contains("source file not found: missing.txt"),
            "{message}"
        );
        assert!(
            !workspace.tree().has("x"),
            "no parents are made for nothing"
        );
    })
    .await;
}

/// Arguments from root `source` to root `dest`.
fn across(source: &str, destination: &str) -> Value {
    json!({"source_root": "source", "source_path": source, "dest_root": "dest", "dest_path": destination})
}

async fn on_two_roots(source: impl Fn() -> Tree, body: impl AsyncFn(&Harness<Workspace>)) {
    let roots = || {
        vec![
            ("source", source(), &["*"][..]),
            ("dest", Tree::new(), &["*"][..]),
        ]
    };
    Workspace::both_on(roots, body).await;
}

#[tokio::test]
async fn workspace_e2e_041_copy_within_a_root() {
    Workspace::both(
        || Tree::new().file("original.txt", "content"),
        async |workspace| {
            let copied = workspace
                .ok("copy", within("original.txt", "duplicate.txt"))
                .await;
            assert_eq!(
                copied["source"],
                json!({"root": "workspace", "path": "original.txt"})
            );
            assert_eq!(
                copied["destination"],
                json!({"root": "workspace", "path": "duplicate.txt"})
            );
            assert_eq!(copied["is_directory"], false);
            assert_eq!(copied["size"], 7);
            assert_eq!(copied["files_copied"], 1);
            assert_eq!(copied["skipped"], json!([]));
            assert_eq!(
                workspace.read("original.txt").await,
                workspace.read("duplicate.txt").await
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_042_copy_across_roots() {
    on_two_roots(
        || Tree::new().file("file.txt", "content"),
        async |workspace| {
            workspace.ok("copy", across("file.txt", "file.txt")).await;
            for number in [0, 1] {
                assert_eq!(workspace.tree_of(number).text("file.txt"), "content");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_043_copy_a_tree() {
    let tree = || {
        Tree::new()
            .file("project/a", "1")
            .file("project/sub/b", "2")
            .dir("project/empty")
    };
    Workspace::both(tree, async |workspace| {
        let copied = workspace
            .ok("copy", within("project", "project-backup"))
            .await;
        assert_eq!(copied["is_directory"], true);
        assert_eq!(copied["files_copied"], 2);
        let found = workspace
            .ok("glob", json!({"pattern": "project-backup/**/*"}))
            .await;
        let expected = [
            "project-backup/a",
            "project-backup/empty",
            "project-backup/sub",
            "project-backup/sub/b",
        ];
        assert_eq!(each(&found["matches"], "path"), expected);
        assert_eq!(workspace.tree().text("project-backup/sub/b"), "2");
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_044_copy_what_is_missing() {
    a_missing_source_fails("copy").await;
}

#[tokio::test]
async fn workspace_fr_014_files_are_overwritten_and_directories_entered() {
    let tree = || {
        Tree::new()
            .file("f", "new")
            .file("old", "old")
            .dir("dir")
            .file("tree/x", "x")
    };
    Workspace::both(tree, async |workspace| {
        workspace.ok("copy", within("f", "old")).await;
        assert_eq!(workspace.tree().text("old"), "new");
        let copied = workspace.ok("copy", within("f", "dir")).await;
        assert_eq!(copied["destination"]["path"], "dir/f");
        assert_eq!(workspace.tree().text("dir/f"), "new");
        workspace.ok("copy", within("tree", "dir")).await;
        assert_eq!(workspace.tree().text("dir/tree/x"), "x");
        workspace.ok("copy", within("f", "made/on/the/way")).await;
        assert_eq!(workspace.tree().text("made/on/the/way"), "new");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_014_never_into_itself() {
    Workspace::both(
        || Tree::new().file("dir/sub/f", "f"),
        async |workspace| {
            let before = workspace.tree().listing();
            for destination in ["dir/sub/copy", "dir/sub", "dir"] {
                workspace
                    .fails("invalid_arguments", "copy", within("dir", destination))
                    .await;
            }
            assert_eq!(workspace.tree().listing(), before);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_014_links_and_special_files_of_a_tree() {
    let outside = Tree::new().file("secret", "secret");
    let target = outside.join("secret");
    let tree = || {
        Tree::new()
            .file("tree/own", "own")
            .file("shared", "shared")
            .link("tree/inner", "own")
            .link("tree/other", "../shared")
            .link("tree/escape", &target)
            .pipe("tree/pipe")
    };
    Workspace::both(tree, async |workspace| {
        let copied = workspace.ok("copy", within("tree", "copy")).await;
        let mut skipped = each(&copied["skipped"], "path");
        skipped.sort_unstable();
        assert_eq!(skipped, ["tree/escape", "tree/pipe"]);
        let listing = workspace.tree().listing();
        assert_eq!(listing["copy/inner"], "link own");
        assert_eq!(listing["copy/other"], "file shared");
        assert!(!listing.contains_key("copy/escape"));
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_014_modes_are_kept_without_setuid() {
    Workspace::both(
        || Tree::new().file("tool", "x").mode("tool", 0o4755),
        async |workspace| {
            workspace.ok("copy", within("tool", "copy")).await;
            assert_eq!(workspace.tree().mode_of("copy"), 0o755);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_006_a_report_into_the_backup() {
    let roots = || {
        let report = Tree::new().file("data/report.csv", "a,b\n");
        vec![
            ("workspace", report, &["copy"][..]),
            ("backup", Tree::new(), &["copy"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let report = json!({"source_path": "data/report.csv",
            "dest_root": "backup", "dest_path": "data/report.csv"});
        for content in ["a,b\n", "changed\n"] {
            workspace.tree().write("data/report.csv", content);
            workspace.ok("copy", report.clone()).await;
            assert_eq!(workspace.tree_of(1).text("data/report.csv"), content);
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_045_rename() {
    Workspace::both(
        || Tree::new().file("old_name.txt", "content"),
        async |workspace| {
            let moved = workspace
                .ok("move", within("old_name.txt", "new_name.txt"))
                .await;
            assert_eq!(
                moved["source"],
                json!({"root": "workspace", "path": "old_name.txt"})
            );
            assert_eq!(
                moved["destination"],
                json!({"root": "workspace", "path": "new_name.txt"})
            );
            let message = workspace
                .message("not_found", "stat_file", json!({"path": "old_name.txt"}))
                .await;
            assert!(message.contains("not found"), "{message}");
            assert_eq!(workspace.read("new_name.txt").await, "content");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_046_move_across_roots() {
    on_two_roots(
        || Tree::new().file("file.txt", "content").file("dir/f", "f"),
        async |workspace| {
            workspace.ok("move", across("file.txt", "file.txt")).await;
            workspace.ok("move", across("dir", "dir")).await;
            assert_eq!(workspace.tree_of(1).text("file.txt"), "content");
            assert_eq!(workspace.tree_of(1).text("dir/f"), "f");
            assert!(workspace.tree().listing().is_empty());
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_047_move_what_is_missing() {
    a_missing_source_fails("move").await;
}

#[tokio::test]
async fn workspace_fr_015_files_are_overwritten_and_directories_entered() {
    let tree = || {
        Tree::new()
            .file("f", "new")
            .file("old", "old")
            .file("g", "g")
            .dir("dir")
            .file("tree/x", "x")
    };
    Workspace::both(tree, async |workspace| {
        workspace.ok("move", within("f", "old")).await;
        assert_eq!(workspace.tree().text("old"), "new");
        let moved = workspace.ok("move", within("g", "dir")).await;
        assert_eq!(moved["destination"]["path"], "dir/g");
        workspace.ok("move", within("tree", "dir")).await;
        assert_eq!(workspace.tree().text("dir/tree/x"), "x");
        workspace
            .fails("already_exists", "move", within("dir", "old"))
            .await;
        assert_eq!(workspace.tree().text("old"), "new");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_015_a_link_is_moved_itself() {
    Workspace::both(
        || Tree::new().file("target", "t").link("link", "target"),
        async |workspace| {
            workspace.ok("move", within("link", "renamed")).await;
            let listing = workspace.tree().listing();
            assert_eq!(listing["renamed"].as_str(), "link target");
            assert_eq!(listing["target"].as_str(), "file t");
            assert!(!listing.contains_key("link"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_015_the_root_and_circles_are_refused() {
    Workspace::both(
        || Tree::new().file("dir/sub/f", "f"),
        async |workspace| {
            let before = workspace.tree().listing();
            workspace
                .fails("root_protected", "move", within(".", "elsewhere"))
                .await;
            workspace
                .fails("invalid_arguments", "move", within("dir", "dir/sub/dir"))
                .await;
            assert_eq!(workspace.tree().listing(), before);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_015_a_read_only_root_gives_nothing_away() {
    testkit::over_both(async |transport| {
        let (source, dest) = (Tree::new().file("f", "f"), Tree::new());
        let setup = program()
            .root_with(
                "source",
                source.path(),
                json!({"allowed_tools": ["*"], "read_only": true}),
            )
            .root("dest", dest.path());
        let server = setup.start(transport).await;
        let refused = server.call("move", across("f", "f")).await;
        assert_eq!(refused.error()["error"]["code"], "tool_not_allowed");
        server.call("copy", across("f", "f")).await.ok();
        assert_eq!(source.text("f"), "f");
        assert_eq!(dest.text("f"), "f");
    })
    .await;
}

#[tokio::test]
async fn workspace_special_files_can_be_moved() {
    Workspace::both(Tree::new, async |workspace| {
        let made = std::process::Command::new("mkfifo")
            .arg(workspace.tree().join("fifo"))
            .status();
        assert!(made.expect("mkfifo").success());
        workspace
            .ok(
                "move",
                json!({"source_path": "fifo", "dest_path": "d/other"}),
            )
            .await;
        assert!(workspace.tree().has("d/other") && !workspace.tree().has("fifo"));
        workspace.tree().write("f", "x");
        let onto = json!({"source_path": "f", "dest_path": "d/other"});
        workspace.fails("not_a_file", "move", onto).await;
        assert_eq!(workspace.tree().text("f"), "x");
    })
    .await;
}
