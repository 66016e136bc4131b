//! What a root denies does not exist, for any tool.
#![expect(
    clippy::disallowed_methods,
    reason = "tests change the roots from outside the sandbox"
)]

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

/// Exceptions in every directory make a name possible as that of a directory: the past is judged by what was there.
#[tokio::test]
async fn the_past_of_what_is_denied_is_not_told() {
    let tree = tree();
    let [all, denied] = ["[]", "secrets"].map(|deny| {
        let config = config(&tree, deny).replace("deny: []", "");
        program().config_text(config)
    });
    let server = all.start(testkit::Transport::Stdio).await;
    let write = |path: &str| json!({"root": "workspace", "path": path, "content": "HIDDEN new"});
    let change = server.call("write_file", write(".env")).await.ok()["change"].clone();
    let gone = json!({"root": "workspace", "path": ".env"});
    server.call("remove_file", gone).await.ok();
    let gone = json!({"root": "workspace", "path": "mixed"});
    server.call("remove_folder", gone).await.ok();
    drop(server);
    let server = denied.start(testkit::Transport::Stdio).await;
    let at = |path: &str| json!({"root": "workspace", "path": path, "at": change});
    let compared = json!({"root": "workspace", "path": ".env", "at": change, "other": "a.txt"});
    for (tool, arguments) in [
        (
            "changes",
            json!({"root": "workspace", "path": "", "diff": true}),
        ),
        (
            "watch",
            json!({"root": "workspace", "path": "", "since": "2020-01-01T00:00:00Z", "timeout_seconds": 1}),
        ),
        ("read_file", at(".env")),
        ("read_file", at("mixed/server.pem")),
        ("compare", compared),
        ("undo", json!({"root": "workspace", "dry_run": true})),
    ] {
        let told = format!("{:?}", server.call(tool, arguments.clone()).await);
        let names_it = told.contains("server.pem") || told.contains(".env\\\"");
        let names_it = names_it && tool != "read_file" && tool != "compare";
        assert!(
            !names_it && !told.contains("HIDDEN"),
            "{tool} {arguments}: {told}"
        );
    }
    let told = server.call("read_file", at("mixed/b.txt")).await;
    assert_eq!(told.ok()["content"], "open MARK");
}

#[tokio::test]
async fn that_something_denied_goes_is_not_told() {
    let tree = tree();
    let server = program().config_text(config(&tree, "secrets"));
    let server = server.start(testkit::Transport::Stdio).await;
    let remove = async || {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        for path in [".env", "mixed/server.pem", "a.txt"] {
            std::fs::remove_file(tree.join("root").join(path)).expect("it is there");
        }
    };
    let watch = json!({"root": "workspace", "path": "", "timeout_seconds": 2});
    let (told, ()) = tokio::join!(server.call("watch", watch), remove());
    let told = format!("{told:?}");
    assert!(told.contains("a.txt"), "{told}");
    assert!(
        !told.contains(".env") && !told.contains("server.pem"),
        "{told}"
    );
}
