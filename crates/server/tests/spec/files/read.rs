//! `read`.

use testkit::{Tree, json};

use super::set::{Files, keys};
use crate::harness::{ToolSet, is_iso_8601};

#[tokio::test]
async fn files_read_reply() {
    Files::both(
        || Tree::new().file("d/f.txt", "one\ntwo\nthree"),
        async |files| {
            let read = files.ok("read", json!({"path": "d/f.txt"})).await;
            assert_eq!(
                keys(&read),
                [
                    "content",
                    "encoding",
                    "line_count",
                    "metadata",
                    "size",
                    "truncated"
                ]
            );
            assert_eq!(read["content"], "one\ntwo\nthree");
            assert_eq!(read["encoding"], "utf8");
            assert_eq!(read["size"], 13);
            assert_eq!(read["line_count"], 3);
            assert_eq!(read["truncated"], false);
            assert_eq!(keys(&read["metadata"]), ["modified", "path", "size"]);
            assert_eq!(read["metadata"]["path"], "d/f.txt");
            assert_eq!(read["metadata"]["size"], 13);
            assert!(is_iso_8601(&read["metadata"]["modified"]));
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_encodings() {
    let tree = || {
        Tree::new()
            .file("text", "hi\n")
            .file("bytes", b"\0\xff")
            .file("latin", b"caf\xe9")
    };
    Files::both(tree, async |files| {
        for (path, encoding, content, told) in [
            ("text", "utf8", "hi\n", "utf8"),
            ("text", "base64", "aGkK", "base64"),
            ("text", "binary", "aGkK", "base64"),
            ("bytes", "utf8", "AP8=", "base64"),
            ("latin", "utf8", "Y2Fm6Q==", "base64"),
        ] {
            let arguments = json!({"path": path, "encoding": encoding});
            let read = files.ok("read", arguments).await;
            assert_eq!(read["content"], content, "{path} {encoding}");
            assert_eq!(read["encoding"], told, "{path} {encoding}");
        }
        let read = files.ok("read", json!({"path": "bytes"})).await;
        assert_eq!(read["size"], 2, "the bytes, not their base64");
        let wrong = json!({"path": "text", "encoding": "utf16"});
        files.refuses("encoding", "read", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_read_lines_are_zero_indexed_and_inclusive() {
    Files::both(
        || Tree::new().file("f", "l0\nl1\nl2\nl3\n"),
        async |files| {
            for (range, content, lines) in [
                (json!({"start_line": 0, "end_line": 0}), "l0\n", 1),
                (json!({"start_line": 1, "end_line": 2}), "l1\nl2\n", 2),
                (json!({"start_line": 2}), "l2\nl3\n", 2),
                (json!({"end_line": 1}), "l0\nl1\n", 2),
                (json!({"start_line": 3, "end_line": 99}), "l3\n", 1),
                (json!({"start_line": 50}), "", 0),
            ] {
                let mut arguments = range.clone();
                arguments["path"] = json!("f");
                let read = files.ok("read", arguments).await;
                assert_eq!(read["content"], content, "{range}");
                assert_eq!(read["line_count"], lines, "{range}");
                assert_eq!(read["truncated"], false, "{range}");
                assert_eq!(read["metadata"]["size"], 12, "{range}");
            }
            let wrong = json!({"path": "f", "start_line": 3, "end_line": 1});
            files.refuses("end_line", "read", wrong).await;
            let wrong = json!({"path": "f", "start_line": -1});
            files.refuses("start_line", "read", wrong).await;
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_truncates_with_a_warning() {
    Files::both(
        || Tree::new().file("f", "0123456789\nabc\n"),
        async |files| {
            let read = files.ok("read", json!({"path": "f", "max_size": 4})).await;
            assert_eq!(read["content"], "0123");
            assert_eq!(read["size"], 4);
            assert_eq!(read["truncated"], true);
            assert_eq!(read["metadata"]["size"], 15);
            let warning = read["warning"].as_str().expect("a warning");
            assert!(warning.contains("max_size is 4"), "{warning}");
            let whole = files.ok("read", json!({"path": "f", "max_size": 15})).await;
            assert_eq!(whole["truncated"], false);
            assert!(whole.get("warning").is_none());
            let lines = json!({"path": "f", "start_line": 1, "max_size": 2});
            let read = files.ok("read", lines).await;
            assert_eq!(read["content"], "ab");
            assert_eq!(read["truncated"], true);
            files
                .refuses("max_size", "read", json!({"path": "f", "max_size": 0}))
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_default_is_one_mebibyte() {
    Files::both(
        || Tree::new().file("f", "x".repeat((1 << 20) + 1)),
        async |files| {
            let read = files.ok("read", json!({"path": "f"})).await;
            assert_eq!(read["size"], 1 << 20);
            assert_eq!(read["truncated"], true);
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_max_size_never_cuts_a_character() {
    Files::both(
        || Tree::new().file("f", "aé€😀z"),
        async |files| {
            for (max, content) in [
                (1, "a"),
                (2, "a"),
                (3, "aé"),
                (5, "aé"),
                (6, "aé€"),
                (9, "aé€"),
                (10, "aé€😀"),
            ] {
                let read = files
                    .ok("read", json!({"path": "f", "max_size": max}))
                    .await;
                assert_eq!(read["content"], content, "{max}");
                assert_eq!(read["encoding"], "utf8", "{max}");
                assert_eq!(read["size"], content.len(), "{max}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_the_server_maximum_holds() {
    Files::both_with(
        || Tree::new().file("f", "0123456789"),
        |setup| setup.set("limits.max_file_size", 3),
        async |files| {
            let read = files.ok("read", json!({"path": "f"})).await;
            assert_eq!(read["content"], "012");
            assert_eq!(read["truncated"], true);
            let warning = read["warning"].as_str().expect("a warning");
            assert!(warning.contains("maximum is 3"), "{warning}");
            let read = files.ok("read", json!({"path": "f", "max_size": 2})).await;
            assert_eq!(read["content"], "01");
        },
    )
    .await;
}

#[tokio::test]
async fn files_read_errors() {
    let tree = || {
        Tree::new()
            .dir("dir")
            .file("report.txt", "")
            .pipe("pipe")
            .link("out", "/etc/hostname")
            .link("loop", "loop")
    };
    Files::both(tree, async |files| {
        let missing = files
            .fails("not_found", "read", json!({"path": "reprot.txt"}))
            .await;
        assert_eq!(missing["message"], "The specified path does not exist");
        assert_eq!(missing["details"]["path"], "reprot.txt");
        assert_eq!(missing["details"]["near"], json!(["report.txt"]));
        files
            .fails("is_a_directory", "read", json!({"path": "dir"}))
            .await;
        files
            .fails("io_error", "read", json!({"path": "pipe"}))
            .await;
        for path in ["out", "../x", "dir/../../x"] {
            let error = files
                .fails("path_validation_error", "read", json!({"path": path}))
                .await;
            assert_eq!(
                error["message"],
                "Path is outside of the allowed root directory"
            );
            assert_eq!(error["details"]["path"], path);
        }
        for path in ["a\0b", "loop"] {
            files
                .fails("path_validation_error", "read", json!({"path": path}))
                .await;
        }
        let inside = files
            .fails("not_found", "read", json!({"path": "/etc/hostname"}))
            .await;
        assert_eq!(inside["details"]["operation"], "read");
    })
    .await;
}
