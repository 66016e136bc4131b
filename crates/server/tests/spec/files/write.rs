//! `write`.

use testkit::{Tree, json};

use super::set::{Files, keys};
use crate::harness::ToolSet;

#[tokio::test]
async fn files_write_reply() {
    Files::both(Tree::new, async |files| {
        let arguments = json!({"path": "f.txt", "content": "héllo"});
        let written = files.ok("write", arguments).await;
        assert_eq!(
            keys(&written),
            ["bytes_written", "metadata", "path", "success"]
        );
        assert_eq!(written["success"], true);
        assert_eq!(written["path"], "f.txt");
        assert_eq!(written["bytes_written"], 6);
        assert_eq!(keys(&written["metadata"]), ["modified", "path", "size"]);
        assert_eq!(written["metadata"]["size"], 6);
        assert_eq!(files.tree().text("f.txt"), "héllo");
    })
    .await;
}

#[tokio::test]
async fn files_write_modes() {
    Files::both(Tree::new, async |files| {
        let write = |mode: &str, path: &str, content: &str| {
            let arguments = json!({"path": path, "content": content, "mode": mode});
            files.call("write", arguments)
        };
        write("overwrite", "a", "1").await.ok();
        write("overwrite", "a", "2").await.ok();
        assert_eq!(files.tree().text("a"), "2");
        write("append", "a", "3").await.ok();
        let appended = write("append", "new", "4").await.ok().clone();
        assert_eq!(appended["bytes_written"], 1);
        assert_eq!(appended["metadata"]["size"], 1);
        assert_eq!(files.tree().text("a"), "23");
        assert_eq!(files.tree().text("new"), "4");
        for mode in ["create", "create_new"] {
            write(mode, mode, "5").await.ok();
            let refused = write(mode, "a", "6").await;
            let error = &refused.error()["error"];
            assert_eq!(error["code"], "already_exists");
            assert_eq!(
                error["message"],
                "The file already exists and overwrite is not enabled"
            );
            assert_eq!(files.tree().text(mode), "5");
        }
        assert_eq!(files.tree().text("a"), "23");
        let wrong = json!({"path": "a", "content": "", "mode": "truncate"});
        let message = files.refuses("mode", "write", wrong).await;
        assert!(
            message.contains("create, overwrite, append, create_new"),
            "{message}"
        );
    })
    .await;
}

#[tokio::test]
async fn files_write_base64() {
    Files::both(Tree::new, async |files| {
        let arguments = json!({"path": "f", "content": "AP8=", "encoding": "base64"});
        let written = files.ok("write", arguments).await;
        assert_eq!(written["bytes_written"], 2);
        assert_eq!(files.tree().bytes("f"), b"\0\xff");
        let wrong = json!({"path": "g", "content": "A*==", "encoding": "base64"});
        files.refuses("content", "write", wrong).await;
        let wrong = json!({"path": "g", "content": "", "encoding": "binary"});
        files.refuses("encoding", "write", wrong).await;
        assert!(!files.tree().has("g"));
    })
    .await;
}

#[tokio::test]
async fn files_write_make_dirs() {
    Files::both(Tree::new, async |files| {
        let arguments = json!({"path": "a/b/f", "content": "x"});
        files.fails("not_found", "write", arguments).await;
        assert!(!files.tree().has("a"));
        let arguments = json!({"path": "a/b/f", "content": "x", "make_dirs": true});
        files.ok("write", arguments).await;
        assert_eq!(files.tree().text("a/b/f"), "x");
    })
    .await;
}

#[tokio::test]
async fn files_write_errors() {
    let tree = || Tree::new().dir("dir").link("out", "../outside");
    Files::both(tree, async |files| {
        let write = |path: &str| json!({"path": path, "content": "x"});
        files.fails("is_a_directory", "write", write("dir")).await;
        for path in ["out", "../f"] {
            files
                .fails("path_validation_error", "write", write(path))
                .await;
        }
        assert_eq!(files.tree().listing().len(), 2, "nothing was left behind");
    })
    .await;
}

#[tokio::test]
async fn files_what_is_missing_on_the_way_says_how_to_make_it() {
    Files::both(Tree::new, async |files| {
        let error = files
            .fails("not_found", "write", json!({"path": "a/b", "content": ""}))
            .await;
        assert!(
            error["details"]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("make_dirs"))
        );
        let error = files
            .fails(
                "not_found",
                "mkdir",
                json!({"path": "a/b", "recursive": false}),
            )
            .await;
        assert!(
            error["details"]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("recursive"))
        );
    })
    .await;
}
