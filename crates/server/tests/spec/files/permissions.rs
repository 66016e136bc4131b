//! What the operator and the system do not allow.

use testkit::{Tree, Value, json};

use super::set::{Files, of_files};
use crate::harness::{Harness, ToolSet};

#[tokio::test]
async fn files_permission_denied_by_the_operator() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        let setup = of_files().root_with(
            "home",
            tree.path(),
            json!({"allowed_tools": ["*"], "read_only": true}),
        );
        let server = setup.start(transport).await;
        let files = Harness::<Files>::new(server, vec![tree]);
        let tools = files.server.list_tools().await;
        let reads = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
        assert!(!tools.is_empty() && tools.iter().all(reads), "{tools:?}");
        let error = files
            .fails("permission_denied", "delete", json!({"path": "f"}))
            .await;
        let message = error["message"].as_str().expect("text");
        assert!(
            message.starts_with("Permission denied to access the specified path"),
            "{message}"
        );
        assert!(files.tree().has("f"));
    })
    .await;
}

#[tokio::test]
async fn files_permission_denied_by_the_system() {
    let tree = || {
        Tree::new()
            .file("secret", "x")
            .mode("secret", 0)
            .file("fixed", "x")
            .mode("fixed", 0o444)
    };
    Files::both(tree, async |files| {
        let info = files.ok("info", json!({"path": "secret"})).await;
        if info["permissions"]["readable"] == true {
            // No permission bits bind the superuser.
            return;
        }
        let error = files
            .fails("permission_denied", "read", json!({"path": "secret"}))
            .await;
        assert_eq!(
            error["message"],
            "Permission denied to access the specified path"
        );
        let write = json!({"path": "fixed", "content": "y"});
        files.fails("permission_denied", "write", write).await;
        assert_eq!(files.tree().text("fixed"), "x");
    })
    .await;
}
