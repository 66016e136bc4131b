//! `list`.

use testkit::{Tree, Value, json};

use super::set::{Files, keys};
use crate::harness::{ToolSet, each, is_iso_8601};

fn listed_tree() -> Tree {
    Tree::new()
        .file("a.txt", "12345")
        .file("b.rs", "")
        .file("sub/c.txt", "")
        .file("sub/deep/d.txt", "")
        .file(".hidden", "")
        .file(".git/config", "")
        .link("link", "a.txt")
}

#[tokio::test]
async fn files_list_own_entries_with_metadata() {
    Files::both(listed_tree, async |files| {
        let listed = files.ok("list", json!({"path": "."})).await;
        assert_eq!(keys(&listed), ["entries"]);
        let entries = &listed["entries"];
        assert_eq!(each(entries, "name"), ["a.txt", "b.rs", "link", "sub"]);
        let file = &entries[0];
        assert_eq!(
            keys(file),
            ["is_hidden", "modified", "name", "path", "size", "type"]
        );
        assert_eq!(file["type"], "file");
        assert_eq!(file["size"], 5);
        assert_eq!(file["is_hidden"], false);
        assert!(is_iso_8601(&file["modified"]));
        assert_eq!(entries[2]["type"], "symlink");
        let directory = &entries[3];
        assert_eq!(directory["type"], "directory");
        assert_eq!(
            keys(directory),
            ["is_hidden", "modified", "name", "path", "type"]
        );
    })
    .await;
}

#[tokio::test]
async fn files_list_paths_are_relative_to_the_root() {
    Files::both(listed_tree, async |files| {
        for path in ["sub", "/sub", "./sub/", "sub/deep/.."] {
            let listed = files.ok("list", json!({"path": path})).await;
            assert_eq!(
                each(&listed["entries"], "path"),
                ["sub/c.txt", "sub/deep"],
                "{path}"
            );
        }
        let whole = files.ok("list", json!({"path": ""})).await;
        assert_eq!(whole["entries"].as_array().expect("a list").len(), 4);
    })
    .await;
}

#[tokio::test]
async fn files_list_pattern() {
    Files::both(listed_tree, async |files| {
        let paths = async |arguments: Value| {
            let listed = files.ok("list", arguments).await;
            each(&listed["entries"], "path").join(" ")
        };
        assert_eq!(
            paths(json!({"path": "", "pattern": "*.txt"})).await,
            "a.txt"
        );
        let deep = json!({"path": "", "pattern": "*.txt", "recursive": true});
        assert_eq!(paths(deep).await, "a.txt sub/c.txt sub/deep/d.txt");
        let by_path = json!({"path": "", "pattern": "sub/*.txt", "recursive": true});
        assert_eq!(paths(by_path).await, "sub/c.txt");
        let wrong = json!({"path": "", "pattern": "[a"});
        files.refuses("pattern", "list", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_list_recursive_and_hidden() {
    Files::both(listed_tree, async |files| {
        let paths = async |recursive: bool, include_hidden: bool| {
            let arguments =
                json!({"path": "", "recursive": recursive, "include_hidden": include_hidden});
            let listed = files.ok("list", arguments).await;
            each(&listed["entries"], "path").join(" ")
        };
        assert_eq!(
            paths(true, false).await,
            "a.txt b.rs link sub sub/c.txt sub/deep sub/deep/d.txt"
        );
        assert_eq!(paths(false, true).await, ".git .hidden a.txt b.rs link sub");
        assert!(paths(true, true).await.contains(".git/config"));
        let hidden = json!({"path": "", "include_hidden": true});
        let listed = files.ok("list", hidden).await;
        assert_eq!(listed["entries"][0]["is_hidden"], true);
    })
    .await;
}

#[tokio::test]
async fn files_list_without_metadata() {
    Files::both(listed_tree, async |files| {
        let arguments = json!({"path": "", "metadata": false});
        let listed = files.ok("list", arguments).await;
        for entry in listed["entries"].as_array().expect("a list") {
            assert_eq!(keys(entry), ["is_hidden", "name", "path"]);
        }
    })
    .await;
}

#[tokio::test]
async fn files_list_errors() {
    Files::both(listed_tree, async |files| {
        files
            .fails("not_a_directory", "list", json!({"path": "a.txt"}))
            .await;
        files
            .fails("not_found", "list", json!({"path": "no"}))
            .await;
        let outside = json!({"path": "../x"});
        files.fails("path_validation_error", "list", outside).await;
    })
    .await;
}
