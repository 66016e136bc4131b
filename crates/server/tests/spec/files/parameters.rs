//! Parameters that are missing, unknown or of the wrong kind.

use testkit::{Tree, json};

use super::set::Files;
use crate::harness::ToolSet;

#[tokio::test]
async fn files_invalid_parameters_are_named() {
    Files::both(
        || Tree::new().file("f", ""),
        async |files| {
            for (tool, arguments, parameter) in [
                ("list", json!({}), "path"),
                ("read", json!({"path": null}), "path"),
                ("read", json!({"path": 5}), "path"),
                ("read", json!({"path": "f", "max_size": "big"}), "max_size"),
                ("read", json!({"path": "f", "max_size": 1.5}), "max_size"),
                ("read", json!({"path": "f", "lines": 5}), "lines"),
                ("write", json!({"path": "g"}), "content"),
                ("write", json!({"path": "g", "content": {}}), "content"),
                (
                    "write",
                    json!({"path": "g", "content": "", "mode": 1}),
                    "mode",
                ),
                (
                    "mkdir",
                    json!({"path": "g", "recursive": "yes"}),
                    "recursive",
                ),
                ("delete", json!({"path": "f", "force": 1}), "force"),
                ("copy", json!({"source": "f"}), "destination"),
                ("move", json!({"destination": "f"}), "source"),
                ("info", json!({"path": ["f"]}), "path"),
                ("search", json!({"root_path": "."}), "pattern"),
                ("search", json!({"pattern": "x"}), "root_path"),
                (
                    "search",
                    json!({"root_path": "", "pattern": "x", "context_lines": 1001}),
                    "context_lines",
                ),
            ] {
                files.refuses(parameter, tool, arguments).await;
            }
            let near = json!({"path": "f", "startLine": 1});
            let message = files.refuses("startLine", "read", near).await;
            assert!(message.contains("did you mean start_line?"), "{message}");
            assert_eq!(files.tree().listing().len(), 1, "nothing happened");
        },
    )
    .await;
}
