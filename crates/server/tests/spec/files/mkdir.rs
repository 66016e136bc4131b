//! `mkdir`.

use testkit::{Tree, json};

use super::set::Files;
use crate::harness::ToolSet;

#[tokio::test]
async fn files_mkdir() {
    Files::both(
        || Tree::new().dir("there").file("file", ""),
        async |files| {
            let made = files.ok("mkdir", json!({"path": "a/b/c"})).await;
            assert_eq!(made, json!({"success": true, "path": "a/b/c"}));
            assert_eq!(files.tree().listing()["a/b/c"], "directory");
            files.ok("mkdir", json!({"path": "there"})).await;
            let flat = |path: &str| json!({"path": path, "recursive": false});
            files.ok("mkdir", flat("flat")).await;
            files.fails("already_exists", "mkdir", flat("there")).await;
            files.fails("not_found", "mkdir", flat("x/y")).await;
            assert!(!files.tree().has("x"));
            let file = json!({"path": "file"});
            files.fails("already_exists", "mkdir", file).await;
            let below = json!({"path": "file/x"});
            files.fails("not_a_directory", "mkdir", below).await;
            let outside = json!({"path": "../x"});
            files.fails("path_validation_error", "mkdir", outside).await;
        },
    )
    .await;
}
