//! Nothing outside a root is read, changed or revealed.

use std::collections::BTreeSet;

use testkit::{Tree, Value, json};

use super::Workspace;
use crate::harness::{Harness, ToolSet, each, program};

/// Every tool that takes a path, with arguments that would work on `path`.
fn every_tool_on(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("list_folder", json!({"path": path})),
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "x"})),
        (
            "write_file",
            json!({"path": path, "content": "x", "mode": "append"}),
        ),
        (
            "write_file",
            json!({"path": path, "content": "x", "mode": "create_only"}),
        ),
        ("remove_file", json!({"path": path})),
        (
            "edit_file",
            json!({"path": path, "edits": [{"old": "x", "new": "y"}]}),
        ),
        (
            "patch_file",
            json!({"path": path, "patch": "@@ -0,0 +1 @@\n+x\n"}),
        ),
        ("create_folder", json!({"path": path})),
        ("remove_folder", json!({"path": path})),
        ("stat_file", json!({"path": path})),
        ("hash_file", json!({"path": path, "algorithm": "md5"})),
        ("permissions_file", json!({"path": path})),
        ("copy", json!({"source_path": path, "dest_path": "new"})),
        ("copy", json!({"source_path": "inside", "dest_path": path})),
        ("move", json!({"source_path": path, "dest_path": "new"})),
        ("move", json!({"source_path": "inside", "dest_path": path})),
        ("compare", json!({"path": path, "other": "inside"})),
        ("compare", json!({"path": "inside", "other": path})),
        ("grep", json!({"path": path, "pattern": "x"})),
        ("glob", json!({"path": path, "pattern": "*"})),
        ("watch", json!({"path": path, "timeout_seconds": 1})),
        ("changes", json!({"path": path})),
        ("undo", json!({"path": path})),
    ]
}

/// Expects that a path is refused because it leads out of its root.
async fn is_outside(workspace: &Harness<Workspace>, tool: &str, path: &str) {
    let message = workspace
        .message("path_outside_root", tool, json!({"path": path}))
        .await;
    assert!(
        message.starts_with("path resolves outside root boundary"),
        "{message}"
    );
}

#[tokio::test]
async fn workspace_e2e_063_dots_do_not_lead_out() {
    Workspace::both(
        || Tree::new().dir("a"),
        async |workspace| {
            for path in [
                "../../etc/passwd",
                "..",
                "a/../../x",
                "missing/../../x",
                "/../etc/passwd",
                "./.././x",
            ] {
                is_outside(workspace, "read_file", path).await;
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_064_links_do_not_lead_out() {
    Workspace::both(
        || Tree::new().link("escape", "/tmp"),
        async |workspace| {
            is_outside(workspace, "list_folder", "escape").await;
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_065_links_inside_are_followed() {
    testkit::over_both(async |transport| {
        let tree = Tree::new()
            .file("dir/real.txt", "real")
            .link("link.txt", "dir/real.txt");
        let absolute = tree.join("dir");
        let tree = tree
            .link("absolute", &absolute)
            .link("dir/up", "../link.txt");
        let server = Workspace::setup(&tree).start(transport).await;
        for path in ["link.txt", "absolute/real.txt", "dir/up", "absolute/up"] {
            let read = server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
            assert_eq!(read.ok()["content"], "real", "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_066_a_tool_that_is_not_allowed() {
    let roots = || vec![("readonly", Tree::new(), &["list_folder", "read_file"][..])];
    Workspace::both_on(roots, async |workspace| {
        let write = json!({"root": "readonly", "path": "f", "content": "x"});
        let message = workspace
            .message("tool_not_allowed", "write_file", write)
            .await;
        assert_eq!(message, "tool write_file not allowed on root readonly");
        assert!(workspace.tree().listing().is_empty());
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_067_copy_denied_by_its_source() {
    let roots = || {
        let source = Tree::new().file("f", "x");
        vec![
            ("restricted", source, &["list_folder"][..]),
            ("dest", Tree::new(), &["*"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let copy = json!({"source_root": "restricted", "source_path": "f",
            "dest_root": "dest", "dest_path": "f"});
        let message = workspace.message("tool_not_allowed", "copy", copy).await;
        assert_eq!(message, "tool copy not allowed on root restricted");
        assert!(workspace.tree_of(1).listing().is_empty());
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_068_copy_denied_by_its_destination() {
    let roots = || {
        let source = Tree::new().file("f", "x");
        vec![
            ("source", source, &["*"][..]),
            ("readonly", Tree::new(), &["list_folder", "read_file"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let copy = json!({"source_root": "source", "source_path": "f",
            "dest_root": "readonly", "dest_path": "f"});
        let message = workspace.message("tool_not_allowed", "copy", copy).await;
        assert_eq!(message, "tool copy not allowed on root readonly");
        assert!(workspace.tree_of(1).listing().is_empty());
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_069_a_removed_tree_takes_nothing_outside_along() {
    let outside = Tree::new().file("kept/f", "kept");
    let before = outside.listing();
    Workspace::both(
        || {
            Tree::new()
                .link("dir/escape", outside.path())
                .file("dir/f", "")
        },
        async |workspace| {
            workspace.ok("remove_folder", json!({"path": "dir"})).await;
            assert!(workspace.tree().listing().is_empty());
            assert_eq!(outside.listing(), before);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_070_nul_bytes() {
    Workspace::both(
        || Tree::new().file("file", ""),
        async |workspace| {
            let message = workspace
                .message("invalid_path", "read_file", json!({"path": "file\0.txt"}))
                .await;
            assert!(message.contains("NUL"), "{message}");
            for (tool, arguments) in every_tool_on("inside\0") {
                workspace.fails("invalid_path", tool, arguments).await;
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_071_percent_signs_are_literal() {
    let name = "%2e%2e%2fetc%2fpasswd";
    Workspace::both(
        || Tree::new().dir("etc"),
        async |workspace| {
            workspace
                .fails("not_found", "read_file", json!({"path": name}))
                .await;
            workspace
                .fails(
                    "not_found",
                    "read_file",
                    json!({"path": "%252e%252e%252fetc"}),
                )
                .await;
            workspace
                .ok("write_file", json!({"path": name, "content": "own"}))
                .await;
            assert_eq!(workspace.tree().text(name), "own");
            assert_eq!(workspace.read(name).await, "own");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_001_dots_inside_are_resolved() {
    Workspace::both(
        || Tree::new().file("b", "b").file("a/f", "f").link("l", "a"),
        async |workspace| {
            for path in ["a/../b", "./b", "/b", "a/.././b", "l/../b", "//b"] {
                assert_eq!(workspace.read(path).await, "b", "{path}");
            }
            workspace
                .ok(
                    "write_file",
                    json!({"path": "a/../new/./x", "content": "x"}),
                )
                .await;
            assert_eq!(workspace.tree().text("new/x"), "x");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_001_a_twin_of_the_root_is_outside() {
    testkit::over_both(async |transport| {
        let host = Tree::new().file("root/f", "").file("root-evil/secret", "s");
        let host = host
            .link("root/link", "../root-evil/secret")
            .link("root/back", "../root/f");
        let server = program()
            .root("workspace", &host.join("root"))
            .start(transport)
            .await;
        for path in ["link", "../root-evil/secret"] {
            let read = server
                .call("read_file", json!({"root": "workspace", "path": path}))
                .await;
            assert_eq!(read.error()["error"]["code"], "path_outside_root");
        }
        server
            .call("read_file", json!({"root": "workspace", "path": "back"}))
            .await
            .ok();
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_001_a_root_may_be_a_link_itself() {
    testkit::over_both(async |transport| {
        let host = Tree::new().file("real/f", "f").link("alias", "real");
        let server = program()
            .root("workspace", &host.join("alias"))
            .start(transport)
            .await;
        let read = server
            .call("read_file", json!({"root": "workspace", "path": "f"}))
            .await;
        assert_eq!(read.ok()["content"], "f");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_001_what_is_to_be_made_is_checked_too() {
    let outside = Tree::new();
    Workspace::both(
        || {
            Tree::new()
                .link("out", outside.path())
                .link("dangling", outside.join("made"))
        },
        async |workspace| {
            for path in ["out/made", "out/deep/made", "dangling"] {
                workspace
                    .fails(
                        "path_outside_root",
                        "write_file",
                        json!({"path": path, "content": ""}),
                    )
                    .await;
                workspace
                    .fails("path_outside_root", "create_folder", json!({"path": path}))
                    .await;
            }
            assert!(outside.listing().is_empty());
        },
    )
    .await;
}

#[tokio::test]
async fn every_tool_that_takes_a_path_is_tried_with_paths_that_lead_out() {
    Workspace::both(Tree::new, async |workspace| {
        let takes_path = |tool: &&Value| {
            let arguments = &tool["inputSchema"]["properties"];
            ["path", "source_path"]
                .iter()
                .any(|name| arguments[name].is_object())
        };
        let tools = workspace.server.list_tools().await;
        let offered: BTreeSet<&str> = tools
            .iter()
            .filter(takes_path)
            .map(|tool| tool["name"].as_str().unwrap_or_default())
            .collect();
        let tried: BTreeSet<&str> = every_tool_on("x")
            .into_iter()
            .map(|(tool, _)| tool)
            .collect();
        assert_eq!(tried, offered);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_006_every_tool_checks_its_path() {
    let outside = Tree::new().file("f", "secret");
    let before = outside.listing();
    let tree = || {
        Tree::new()
            .file("inside", "x")
            .link("escape", outside.path())
    };
    Workspace::both(tree, async |workspace| {
        let own = workspace.tree().listing();
        for path in ["../x", "escape/f", "escape/new", "escape/../../x"] {
            for (tool, arguments) in every_tool_on(path) {
                workspace.fails("path_outside_root", tool, arguments).await;
            }
        }
        assert_eq!(outside.listing(), before);
        assert_eq!(workspace.tree().listing(), own);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_007_links_themselves_are_refused_where_they_lead_out() {
    let outside = Tree::new().file("f", "secret");
    let before = outside.listing();
    let tree = || {
        Tree::new()
            .file("inside", "x")
            .link("l", outside.join("f"))
            .link("d", outside.path())
    };
    Workspace::both(tree, async |workspace| {
        let own = workspace.tree().listing();
        for path in ["l", "d"] {
            for (tool, arguments) in every_tool_on(path) {
                // The link's own mode and its own changes tell nothing about its target.
                if !["permissions_file", "changes", "undo"].contains(&tool) {
                    workspace.fails("path_outside_root", tool, arguments).await;
                }
            }
        }
        assert_eq!(outside.listing(), before.clone());
        assert_eq!(workspace.tree().listing(), own);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_009_whole_trees_stay_inside() {
    let outside = Tree::new().file("secret", "needle");
    let before = outside.listing();
    let tree = || {
        Tree::new()
            .file("t/own", "needle")
            .link("t/deep/out", outside.path())
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace
            .ok("grep", json!({"path": "t", "pattern": "needle"}))
            .await;
        assert_eq!(each(&found["matches"], "file"), ["t/own"]);
        let found = workspace
            .ok("glob", json!({"path": "t", "pattern": "**/*"}))
            .await;
        assert_eq!(
            each(&found["matches"], "path"),
            ["t/deep", "t/deep/out", "t/own"]
        );
        workspace
            .ok("copy", json!({"source_path": "t", "dest_path": "c"}))
            .await;
        assert!(!workspace.tree().has("c/deep/out/secret"));
        workspace.ok("remove_folder", json!({"path": "t"})).await;
        assert_eq!(outside.listing(), before);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_010_chains_and_circles_of_links() {
    let tree = || {
        let chain = (1..=10).fold(Tree::new().link("c0", "/etc"), |tree, n| {
            tree.link(format!("c{n}"), format!("c{}", n - 1))
        });
        chain
            .link("loop", "loop")
            .link("up", "..")
            .link("root", "/")
            .link("proc", "/proc/self/root")
    };
    Workspace::both(tree, async |workspace| {
        for path in ["c10/passwd", "up/x", "root/etc/passwd", "proc/etc/passwd"] {
            workspace
                .fails("path_outside_root", "read_file", json!({"path": path}))
                .await;
        }
        workspace
            .fails("invalid_path", "read_file", json!({"path": "loop"}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_010_odd_names_are_names() {
    let names = [
        "~",
        "$HOME",
        "..\\..\\x",
        "C:",
        "\u{ff0e}\u{ff0e}",
        "a\nb",
        "\u{202e}x",
        "...",
        " ",
    ];
    Workspace::both(Tree::new, async |workspace| {
        for name in names {
            workspace
                .ok("write_file", json!({"path": name, "content": name}))
                .await;
            assert_eq!(workspace.read(name).await, name);
        }
        assert_eq!(workspace.tree().listing().len(), names.len());
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_010_absurd_paths_are_errors() {
    Workspace::both(Tree::new, async |workspace| {
        for path in ["x/".repeat(3000), "n".repeat(256)] {
            workspace
                .fails("invalid_path", "read_file", json!({"path": path}))
                .await;
        }
        workspace
            .fails(
                "path_outside_root",
                "read_file",
                json!({"path": "../".repeat(900)}),
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_us_011_a_link_to_etc() {
    Workspace::both(
        || Tree::new().link("escape", "/etc"),
        async |workspace| {
            let outcome = workspace
                .call("read_file", json!({"path": "escape/passwd"}))
                .await;
            assert_eq!(outcome.error()["error"]["code"], "path_outside_root");
            assert!(
                outcome
                    .text
                    .starts_with("path resolves outside root boundary"),
                "{}",
                outcome.text
            );
            let exists = workspace
                .call("stat_file", json!({"path": "escape/passwd"}))
                .await;
            let missing = workspace
                .call("stat_file", json!({"path": "escape/paXXwd"}))
                .await;
            assert_eq!(
                exists.text.replace("passwd", "paXXwd"),
                missing.text,
                "nothing is told"
            );
        },
    )
    .await;
}
