//! `delete`.

use testkit::{Tree, json};

use super::set::Files;
use crate::harness::ToolSet;

#[tokio::test]
async fn files_delete_reply_and_types() {
    let tree = || {
        Tree::new()
            .file("file", "")
            .dir("empty")
            .file("kept", "")
            .link("link", "kept")
    };
    Files::both(tree, async |files| {
        for (path, kind) in [
            ("file", "file"),
            ("empty", "directory"),
            ("link", "symlink"),
        ] {
            let deleted = files.ok("delete", json!({"path": path})).await;
            assert_eq!(
                deleted,
                json!({"success": true, "path": path, "type": kind})
            );
            assert!(!files.tree().has(path));
        }
        assert!(files.tree().has("kept"), "a link goes, its target stays");
    })
    .await;
}

#[tokio::test]
async fn files_delete_recursive() {
    Files::both(
        || Tree::new().file("dir/sub/file", ""),
        async |files| {
            let error = files
                .fails("directory_not_empty", "delete", json!({"path": "dir"}))
                .await;
            assert!(
                error["message"]
                    .as_str()
                    .expect("text")
                    .contains("recursive")
            );
            assert!(files.tree().has("dir/sub/file"));
            let arguments = json!({"path": "dir", "recursive": true});
            let deleted = files.ok("delete", arguments).await;
            assert_eq!(deleted["type"], "directory");
            assert!(!files.tree().has("dir"));
        },
    )
    .await;
}

#[tokio::test]
async fn files_delete_force() {
    Files::both(
        || Tree::new().file("dir/file", "").link("out", "/etc"),
        async |files| {
            files
                .fails("not_found", "delete", json!({"path": "no"}))
                .await;
            let deleted = files
                .ok("delete", json!({"path": "no", "force": true}))
                .await;
            assert_eq!(deleted, json!({"success": true, "path": "no"}));
            let stayed = files
                .ok("delete", json!({"path": "dir", "force": true}))
                .await;
            assert_eq!(stayed["success"], false);
            assert_eq!(stayed["errors"][0]["code"], "directory_not_empty");
            assert_eq!(stayed["errors"][0]["path"], "dir");
            assert!(files.tree().has("dir/file"));
            for path in ["../x", "out"] {
                let outside = json!({"path": path, "force": true});
                files
                    .fails("path_validation_error", "delete", outside)
                    .await;
            }
        },
    )
    .await;
}

#[tokio::test]
async fn files_delete_never_takes_the_root() {
    Files::both(
        || Tree::new().file("f", ""),
        async |files| {
            for path in [".", "", "/"] {
                let whole = json!({"path": path, "recursive": true, "force": true});
                files.refuses("path", "delete", whole).await;
            }
            assert!(files.tree().has("f"));
        },
    )
    .await;
}
