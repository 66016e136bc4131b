//! `copy` and `move`.

use testkit::{Tree, json};

use super::set::Files;
use crate::harness::{ToolSet, each};

#[tokio::test]
async fn files_copy_a_file() {
    Files::both(
        || Tree::new().file("a", "12345").file("there", "old"),
        async |files| {
            let arguments = json!({"source": "a", "destination": "new/b"});
            let copied = files.ok("copy", arguments).await;
            assert_eq!(
                copied,
                json!({"success": true, "source": "a", "destination": "new/b", "bytes_copied": 5})
            );
            assert_eq!(files.tree().text("new/b"), "12345");
            let onto = json!({"source": "a", "destination": "there"});
            let error = files.fails("already_exists", "copy", onto).await;
            assert_eq!(error["details"]["path"], "there");
            assert_eq!(files.tree().text("there"), "old");
            let onto = json!({"source": "a", "destination": "there", "overwrite": true});
            files.ok("copy", onto).await;
            assert_eq!(files.tree().text("there"), "12345");
        },
    )
    .await;
}

#[tokio::test]
async fn files_copy_a_directory() {
    let tree = || {
        Tree::new()
            .file("d/a", "12")
            .file("d/s/b", "345")
            .file("there/a", "old")
            .file("there/c", "stays")
    };
    Files::both(tree, async |files| {
        let flat = json!({"source": "d", "destination": "e", "recursive": false});
        files.fails("is_a_directory", "copy", flat).await;
        assert!(!files.tree().has("e"));
        let copied = files
            .ok("copy", json!({"source": "d", "destination": "e"}))
            .await;
        assert_eq!(copied["bytes_copied"], 5);
        assert_eq!(files.tree().text("e/s/b"), "345");
        let onto = json!({"source": "d", "destination": "there"});
        files.fails("already_exists", "copy", onto).await;
        let onto = json!({"source": "d", "destination": "there", "overwrite": true});
        files.ok("copy", onto).await;
        assert_eq!(files.tree().text("there/a"), "12");
        assert_eq!(files.tree().text("there/c"), "stays");
        let into = json!({"source": "d", "destination": "d/s/d"});
        files.refuses("destination", "copy", into).await;
    })
    .await;
}

#[tokio::test]
async fn files_copy_names_what_it_left_out() {
    Files::both(
        || Tree::new().file("d/a", "1").link("d/out", "/etc/hostname"),
        async |files| {
            let copied = files
                .ok("copy", json!({"source": "d", "destination": "e"}))
                .await;
            assert_eq!(each(&copied["skipped"], "path"), ["d/out"]);
            assert!(!files.tree().has("e/out"));
        },
    )
    .await;
}

#[tokio::test]
async fn files_move() {
    let tree = || {
        Tree::new()
            .file("a", "1")
            .file("b", "2")
            .file("there", "old")
            .file("dir/x", "3")
    };
    Files::both(tree, async |files| {
        let moved = files
            .ok("move", json!({"source": "a", "destination": "new/a"}))
            .await;
        assert_eq!(
            moved,
            json!({"success": true, "source": "a", "destination": "new/a"})
        );
        assert_eq!(files.tree().text("new/a"), "1");
        assert!(!files.tree().has("a"));
        let onto = json!({"source": "b", "destination": "there"});
        files.fails("already_exists", "move", onto).await;
        assert_eq!(files.tree().text("there"), "old");
        let onto = json!({"source": "b", "destination": "there", "overwrite": true});
        files.ok("move", onto).await;
        assert_eq!(files.tree().text("there"), "2");
        files
            .ok("move", json!({"source": "dir", "destination": "renamed"}))
            .await;
        assert_eq!(files.tree().text("renamed/x"), "3");
        let into = json!({"source": "renamed", "destination": "renamed/y"});
        files.refuses("destination", "move", into).await;
        let root = json!({"source": ".", "destination": "x"});
        files.refuses("source", "move", root).await;
    })
    .await;
}

#[tokio::test]
async fn files_copy_and_move_errors_name_the_path_at_fault() {
    Files::both(
        || Tree::new().file("a", "1"),
        async |files| {
            for tool in ["copy", "move"] {
                for (source, destination, code, at_fault) in [
                    ("no", "x", "not_found", "no"),
                    ("../a", "x", "path_validation_error", "../a"),
                    ("a", "../x", "path_validation_error", "../x"),
                ] {
                    let arguments = json!({"source": source, "destination": destination});
                    let error = files.fails(code, tool, arguments).await;
                    assert_eq!(error["details"]["path"], at_fault, "{tool}");
                }
            }
            assert_eq!(files.tree().listing().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn files_a_refusal_to_replace_says_what_is_in_the_way() {
    let tree = || {
        Tree::new()
            .file("a", "1")
            .file("full/b", "2")
            .file("d/c", "3")
            .link("link", "full")
    };
    Files::both(tree, async |files| {
        for (tool, source, destination, code, words) in [
            (
                "copy",
                "a",
                "full",
                "already_exists",
                "A directory already exists there and cannot be replaced by a file",
            ),
            (
                "copy",
                "d",
                "a",
                "already_exists",
                "A file already exists there and cannot be replaced by a directory",
            ),
            (
                "move",
                "a",
                "full",
                "already_exists",
                "A directory already exists there and cannot be replaced by a file",
            ),
            (
                "move",
                "d",
                "a",
                "already_exists",
                "A file already exists there and cannot be replaced by a directory",
            ),
            (
                "move",
                "d",
                "full",
                "directory_not_empty",
                "The directory is not empty",
            ),
            (
                "move",
                "a",
                "link/",
                "already_exists",
                "A directory already exists there and cannot be replaced by a file",
            ),
            // The destination is the new path itself, and a file's path has no slash at its end.
            (
                "copy",
                "a",
                "new/",
                "not_a_directory",
                "The specified path is not a directory",
            ),
            (
                "move",
                "a",
                "new/",
                "not_a_directory",
                "The specified path is not a directory",
            ),
        ] {
            let arguments =
                json!({"source": source, "destination": destination, "overwrite": true});
            let error = files.fails(code, tool, arguments).await;
            assert_eq!(error["message"], words, "{tool} {source} {destination}");
        }
        let there = files.fails(
            "already_exists",
            "mkdir",
            json!({"path": "d", "recursive": false}),
        );
        assert_eq!(there.await["message"], "The directory already exists");
        let there = files.fails("already_exists", "mkdir", json!({"path": "a"}));
        assert_eq!(
            there.await["message"],
            "The path already exists and is not a directory"
        );
        assert_eq!(files.tree().text("a"), "1");
        assert_eq!(files.tree().text("full/b"), "2");
        assert!(!files.tree().has("new"));
    })
    .await;
}
