//! What a root denies does not exist, for any tool.

use testkit::{Tree, json};

use crate::harness::program;

fn config(tree: &Tree, deny: &str) -> String {
    let path = tree.join("root").display().to_string();
    format!(
        "roots:\n  - name: workspace\n    path: \"{path}\"\n    allowed_tools: [\"*\"]\n    deny: {deny}\n"
    )
}

fn tree() -> Tree {
    Tree::new()
        .file("root/a.txt", "open MARK")
        .file("root/.env", "HIDDEN MARK")
        .file("root/.env.example", "open")
        .file("root/mixed/server.pem", "HIDDEN MARK")
        .file("root/mixed/b.txt", "open MARK")
}

#[tokio::test]
async fn what_is_denied_is_in_no_reply() {
    testkit::over_both(async |transport| {
        let tree = tree();
        let server = program()
            .config_text(config(&tree, "secrets"))
            .start(transport)
            .await;
        let calls = [
            ("list_folder", json!({"root": "workspace", "path": ""})),
            (
                "glob",
                json!({"root": "workspace", "path": "", "pattern": "**/*"}),
            ),
            (
                "grep",
                json!({"root": "workspace", "path": "", "pattern": "MARK"}),
            ),
            (
                "copy",
                json!({"source_root": "workspace", "dest_root": "workspace", "source_path": "mixed", "dest_path": "copied"}),
            ),
            (
                "list_folder",
                json!({"root": "workspace", "path": "copied"}),
            ),
            (
                "read_file",
                json!({"root": "workspace", "path": "mixed/server.pen"}),
            ),
        ];
        for (tool, arguments) in calls {
            let told = format!("{:?}", server.call(tool, arguments).await);
            assert!(
                !told.contains("server.pem") && !told.contains("HIDDEN"),
                "{tool}: {told}"
            );
        }
        assert!(!tree.has("root/copied/server.pem"));
        assert!(tree.has("root/copied/b.txt"));
    })
    .await;
}

#[tokio::test]
async fn what_is_denied_is_refused_as_missing() {
    testkit::over_both(async |transport| {
        let tree = tree();
        let server = program()
            .config_text(config(&tree, "secrets"))
            .start(transport)
            .await;
        for path in [".env", "mixed/server.pem", "mixed/../.env", "mixed/new.pem"] {
            for (tool, arguments) in [
                ("read_file", json!({"root": "workspace", "path": path})),
                ("stat_file", json!({"root": "workspace", "path": path})),
                ("remove_file", json!({"root": "workspace", "path": path})),
                (
                    "write_file",
                    json!({"root": "workspace", "path": path, "content": "x"}),
                ),
                (
                    "hash_file",
                    json!({"root": "workspace", "path": path, "algorithm": "md5"}),
                ),
            ] {
                let told = format!("{:?}", server.call(tool, arguments).await);
                assert!(
                    told.contains("not_found") && !told.contains("HIDDEN"),
                    "{tool} {path}: {told}"
                );
            }
        }
        for (tool, arguments) in [
            (
                "remove_folder",
                json!({"root": "workspace", "path": "mixed"}),
            ),
            (
                "move",
                json!({"source_root": "workspace", "dest_root": "workspace", "source_path": "mixed", "dest_path": "elsewhere"}),
            ),
        ] {
            let told = format!("{:?}", server.call(tool, arguments).await);
            assert!(
                told.contains("permission_denied") && !told.contains("server.pem"),
                "{tool}: {told}"
            );
        }
        assert!(tree.has("root/mixed/server.pem") && !tree.has("root/mixed/new.pem"));
        let example = server
            .call(
                "read_file",
                json!({"root": "workspace", "path": ".env.example"}),
            )
            .await;
        assert_eq!(example.ok()["content"], "open");
    })
    .await;
}
