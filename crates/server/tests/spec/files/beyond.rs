//! The tools from the specification's own list of what may come: `compare`, `hash`, `watch`.

use std::time::Duration;

use testkit::{Tree, json};

use super::Files;
use crate::harness::{ToolSet, each};

#[tokio::test]
async fn files_compare_directories_and_files() {
    let tree = || {
        Tree::new()
            .file("a/same", "same")
            .file("a/f", "1\n2\n")
            .file("b/same", "same")
            .file("b/f", "1\n3\n")
            .file("b/new", "")
    };
    Files::both(tree, async |files| {
        let outcome = files
            .call("compare", json!({"path": "a", "other": "b"}))
            .await;
        assert_eq!(
            outcome.text,
            "only in b: new\ndiffer: f (same size)\n1 equal"
        );
        assert_eq!(outcome.ok()["only_in_other"], json!(["new"]));
        let outcome = files
            .call("compare", json!({"path": "a\\f", "other": "b/f"}))
            .await;
        assert_eq!(outcome.ok()["identical"], false);
        assert!(outcome.text.ends_with("\n 1\n-2\n+3"), "{}", outcome.text);
        files
            .fails("not_found", "compare", json!({"path": "a", "other": "c"}))
            .await;
        files
            .fails(
                "path_validation_error",
                "compare",
                json!({"path": "../a", "other": "b"}),
            )
            .await;
        files
            .refuses("other", "compare", json!({"path": "a", "other": 1}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn files_hash_is_sha256_unless_another_is_asked_for() {
    let tree = || Tree::new().file("f", "hello").dir("dir");
    Files::both(tree, async |files| {
        let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let outcome = files.call("hash", json!({"path": "f"})).await;
        let reply = json!({"path": "f", "algorithm": "sha256", "hash": sha256, "size": 5});
        assert_eq!(*outcome.ok(), reply);
        assert_eq!(outcome.text, format!("path: f\nsha256: {sha256}\nsize: 5"));
        for (algorithm, hash) in [
            ("md5", "5d41402abc4b2a76b9719d911017c592"),
            ("sha1", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ] {
            let arguments = json!({"path": "f", "algorithm": algorithm});
            assert_eq!(files.ok("hash", arguments).await["hash"], hash);
        }
        files
            .fails("not_found", "hash", json!({"path": "no"}))
            .await;
        files
            .fails("is_a_directory", "hash", json!({"path": "dir"}))
            .await;
        files
            .refuses(
                "algorithm",
                "hash",
                json!({"path": "f", "algorithm": "crc"}),
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn files_watch_tells_a_change_or_that_there_was_none() {
    Files::both(
        || Tree::new().file("f", ""),
        async |files| {
            let outcome = files.call("watch", json!({"timeout_seconds": 1})).await;
            assert_eq!(*outcome.ok(), json!({"timed_out": true, "changes": []}));
            let watch = files.server.spawn_call("watch", json!({"path": "f"}));
            for number in 0..200 {
                if watch.is_finished() {
                    break;
                }
                files.tree().write("f", number.to_string());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let outcome = watch.await.unwrap();
            assert_eq!(
                outcome.ok()["changes"],
                json!([{"path": "f", "kind": "changed"}])
            );
            files
                .fails("not_found", "watch", json!({"path": "no"}))
                .await;
            files
                .refuses("timeout_seconds", "watch", json!({"timeout_seconds": 0}))
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn files_a_backslash_separates_names_in_patterns_too() {
    let tree = || {
        Tree::new()
            .file("src/deep/a.rs", "needle\n")
            .file("src/b.rs", "needle\n")
    };
    Files::both(tree, async |files| {
        let list = json!({"path": ".", "recursive": true, "pattern": "src\\deep\\a*"});
        let listed = files.ok("list", list).await;
        assert_eq!(each(&listed["entries"], "path"), ["src/deep/a.rs"]);
        let search =
            json!({"root_path": ".\\src", "pattern": "needle", "file_pattern": "deep\\a.rs"});
        let found = files.ok("search", search).await;
        assert_eq!(found["files_matched"], 1);
    })
    .await;
}

#[tokio::test]
async fn files_a_symlink_is_told() {
    let tree = || Tree::new().file("f", "").link("l", "f");
    Files::both(tree, async |files| {
        let listed = files.ok("list", json!({"path": "."})).await;
        let told = |name: &str| {
            let entries = listed["entries"].as_array().expect("entries");
            let own = entries
                .iter()
                .find(|entry| entry["name"] == name)
                .expect("an entry");
            own["is_symlink"] == true
        };
        assert!(told("l") && !told("f"), "{listed}");
        assert_eq!(
            files.ok("info", json!({"path": "l"})).await["is_symlink"],
            true
        );
        assert!(
            files
                .ok("info", json!({"path": "f"}))
                .await
                .get("is_symlink")
                .is_none()
        );
    })
    .await;
}

#[tokio::test]
async fn files_the_server_describes_itself() {
    Files::both(Tree::new, async |files| {
        assert_eq!(
            files.server.info()["serverInfo"]["description"],
            "A secure MCP server for filesystem operations"
        );
    })
    .await;
}
