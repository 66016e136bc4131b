//! `list_folder`, `create_folder`, `remove_folder`, `remove_file`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, each, is_iso_8601};

#[tokio::test]
async fn workspace_e2e_004_list_folder() {
    Workspace::both(
        || {
            Tree::new()
                .file("b.txt", "bb")
                .file("a.txt", "a")
                .dir("sub")
        },
        async |workspace| {
            let listed = workspace.ok("list_folder", json!({"path": "."})).await;
            assert_eq!(each(&listed["entries"], "name"), ["a.txt", "b.txt", "sub"]);
            assert_eq!(
                each(&listed["entries"], "type"),
                ["file", "file", "directory"]
            );
            assert_eq!(listed["root"], "workspace");
            assert_eq!(listed["count"], 3);
            assert_eq!(listed["entries"][1]["size"], 2);
            for entry in listed["entries"].as_array().unwrap() {
                assert!(
                    entry["size"].is_u64() && is_iso_8601(&entry["modified_at"]),
                    "{entry}"
                );
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_005_list_an_empty_folder() {
    Workspace::both(
        || Tree::new().dir("empty"),
        async |workspace| {
            let listed = workspace.ok("list_folder", json!({"path": "empty"})).await;
            assert_eq!(listed["entries"], json!([]));
            assert_eq!(listed["count"], 0);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_006_list_a_file() {
    Workspace::both(
        || Tree::new().file("data.txt", ""),
        async |workspace| {
            let message = workspace
                .message(
                    "not_a_directory",
                    "list_folder",
                    json!({"path": "data.txt"}),
                )
                .await;
            assert!(
                message.contains("not a directory") && message.contains("data.txt"),
                "{message}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_004_root_itself_has_several_names() {
    Workspace::both(
        || Tree::new().file("d/f", ""),
        async |workspace| {
            for path in ["", ".", "/", "d/.."] {
                let listed = workspace.ok("list_folder", json!({"path": path})).await;
                assert_eq!(each(&listed["entries"], "name"), ["d"], "{path:?}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_004_only_immediate_children_in_byte_order() {
    let tree = || {
        let names = ["b", "B", "a", ".hidden", "a/deep/x", "é"];
        names.iter().fold(Tree::new(), |tree, name| match *name {
            "a" => tree.dir("a"),
            name => tree.file(name, ""),
        })
    };
    Workspace::both(tree, async |workspace| {
        let listed = workspace.ok("list_folder", json!({"path": "."})).await;
        assert_eq!(
            each(&listed["entries"], "name"),
            [".hidden", "B", "a", "b", "é"]
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_004_links_say_where_they_lead() {
    let tree = || {
        Tree::new()
            .file("file", "")
            .dir("dir")
            .link("to_file", "file")
            .link("to_dir", "dir")
            .link("to_out", "/etc")
            .link("to_nowhere", "gone")
    };
    Workspace::both(tree, async |workspace| {
        let listed = workspace.ok("list_folder", json!({"path": ""})).await;
        let entry = |name: &str| {
            let entries = listed["entries"].as_array().unwrap();
            entries
                .iter()
                .find(|entry| entry["name"] == name)
                .unwrap()
                .clone()
        };
        for (name, target) in [
            ("to_file", "file"),
            ("to_dir", "directory"),
            ("to_out", "external"),
        ] {
            assert_eq!(entry(name)["type"], "symlink", "{name}");
            assert_eq!(entry(name)["target_type"], target, "{name}");
        }
        assert_eq!(entry("to_nowhere")["type"], "symlink");
        assert!(entry("file").get("target_type").is_none());
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_004_a_missing_folder_is_not_found() {
    Workspace::both(
        || Tree::new().dir("source"),
        async |workspace| {
            let message = workspace
                .message("not_found", "list_folder", json!({"path": "sorce"}))
                .await;
            assert!(message.contains("directory not found: sorce"), "{message}");
            assert!(message.contains("source"), "no near match: {message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_025_create_nested_folders() {
    Workspace::both(Tree::new, async |workspace| {
        let made = workspace
            .ok("create_folder", json!({"path": "a/b/c"}))
            .await;
        assert_eq!(made["path"], "a/b/c");
        assert_eq!(made["created"], true);
        let listed = workspace.ok("list_folder", json!({"path": "a/b"})).await;
        assert_eq!(each(&listed["entries"], "name"), ["c"]);
        assert_eq!(each(&listed["entries"], "type"), ["directory"]);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_026_create_an_existing_folder() {
    Workspace::both(
        || Tree::new().file("existing_dir/kept", "kept"),
        async |workspace| {
            let made = workspace
                .ok("create_folder", json!({"path": "existing_dir"}))
                .await;
            assert_eq!(made["created"], true);
            assert_eq!(made["existed"], true);
            assert_eq!(workspace.tree().text("existing_dir/kept"), "kept");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_027_create_a_folder_over_a_file() {
    Workspace::both(
        || Tree::new().file("conflict", "kept"),
        async |workspace| {
            let message = workspace
                .message(
                    "already_exists",
                    "create_folder",
                    json!({"path": "conflict"}),
                )
                .await;
            assert!(
                message.contains("file") && message.contains("conflict"),
                "{message}"
            );
            assert_eq!(workspace.tree().text("conflict"), "kept");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_009_a_file_on_the_way_stops_it() {
    Workspace::both(
        || Tree::new().file("file", "kept"),
        async |workspace| {
            let before = workspace.tree().listing();
            workspace
                .fails(
                    "not_a_directory",
                    "create_folder",
                    json!({"path": "file/below"}),
                )
                .await;
            assert_eq!(workspace.tree().listing(), before);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_028_remove_a_tree() {
    Workspace::both(
        || {
            Tree::new()
                .file("dir/a", "")
                .file("dir/sub/b", "")
                .file("kept", "")
        },
        async |workspace| {
            let removed = workspace.ok("remove_folder", json!({"path": "dir"})).await;
            assert_eq!(removed["path"], "dir");
            assert_eq!(removed["removed"], true);
            let message = workspace
                .message("not_found", "stat_file", json!({"path": "dir"}))
                .await;
            assert!(message.contains("not found"), "{message}");
            assert_eq!(workspace.tree().listing().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_029_the_root_itself_stays() {
    Workspace::both(
        || Tree::new().file("sub/f", ""),
        async |workspace| {
            for path in ["", ".", "/", "sub/..", "./"] {
                let message = workspace
                    .message("root_protected", "remove_folder", json!({"path": path}))
                    .await;
                assert!(
                    message.contains("cannot remove root directory"),
                    "{path:?}: {message}"
                );
            }
            assert!(workspace.tree().has("sub/f"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_030_remove_a_missing_folder() {
    Workspace::both(Tree::new, async |workspace| {
        let message = workspace
            .message("not_found", "remove_folder", json!({"path": "nonexistent"}))
            .await;
        assert!(
            message.contains("directory not found: nonexistent"),
            "{message}"
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_031_remove_a_file_as_a_folder() {
    Workspace::both(
        || Tree::new().file("not_a_dir.txt", "kept"),
        async |workspace| {
            let arguments = json!({"path": "not_a_dir.txt"});
            let message = workspace
                .message("not_a_directory", "remove_folder", arguments)
                .await;
            assert!(message.contains("file, not a directory"), "{message}");
            assert!(message.contains("remove_file"), "{message}");
            assert!(workspace.tree().has("not_a_dir.txt"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_010_links_inside_are_unlinked_not_followed() {
    let tree = || {
        Tree::new()
            .file("kept/f", "kept")
            .dir("dir/sub")
            .link("dir/sub/l", "../../kept")
    };
    Workspace::both(tree, async |workspace| {
        workspace.ok("remove_folder", json!({"path": "dir"})).await;
        assert_eq!(workspace.tree().text("kept/f"), "kept");
        assert!(!workspace.tree().has("dir"));
    })
    .await;
}

#[tokio::test]
async fn workspace_us_007_remove_build_output() {
    Workspace::both(
        || {
            Tree::new()
                .file("tmp/build-output/deep/er/o", "")
                .dir("tmp/other")
        },
        async |workspace| {
            workspace
                .ok("remove_folder", json!({"path": "tmp/build-output"}))
                .await;
            let message = workspace
                .message(
                    "not_found",
                    "remove_folder",
                    json!({"path": "tmp/build-output"}),
                )
                .await;
            assert!(message.contains("directory not found"), "{message}");
            assert!(workspace.tree().has("tmp/other"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_019_remove_a_file() {
    Workspace::both(
        || Tree::new().file("to_delete.txt", "").file("kept", ""),
        async |workspace| {
            let removed = workspace
                .ok("remove_file", json!({"path": "to_delete.txt"}))
                .await;
            assert_eq!(removed["path"], "to_delete.txt");
            assert_eq!(removed["removed"], true);
            let message = workspace
                .message("not_found", "stat_file", json!({"path": "to_delete.txt"}))
                .await;
            assert!(message.contains("not found: to_delete.txt"), "{message}");
            assert!(workspace.tree().has("kept"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_020_remove_a_missing_file() {
    Workspace::both(Tree::new, async |workspace| {
        let message = workspace
            .message("not_found", "remove_file", json!({"path": "ghost.txt"}))
            .await;
        assert!(message.contains("file not found: ghost.txt"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_021_remove_a_directory_as_a_file() {
    Workspace::both(
        || Tree::new().dir("mydir"),
        async |workspace| {
            let message = workspace
                .message("is_a_directory", "remove_file", json!({"path": "mydir"}))
                .await;
            assert!(
                message.contains("is a directory") && message.contains("remove_folder"),
                "{message}"
            );
            assert!(workspace.tree().has("mydir"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_007_a_link_is_removed_not_its_target() {
    Workspace::both(
        || Tree::new().file("target", "kept").link("link", "target"),
        async |workspace| {
            workspace.ok("remove_file", json!({"path": "link"})).await;
            assert!(!workspace.tree().has("link"));
            assert_eq!(workspace.tree().text("target"), "kept");
        },
    )
    .await;
}
