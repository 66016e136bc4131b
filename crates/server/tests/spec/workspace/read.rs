//! `read_file`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

fn hundred_lines() -> String {
    (1..=100).map(|number| format!("line {number}\n")).collect()
}

#[tokio::test]
async fn workspace_e2e_007_read_a_small_file() {
    let content = "0123456789".repeat(10);
    Workspace::both(
        || Tree::new().file("small.txt", &content),
        async |workspace| {
            let read = workspace
                .ok("read_file", json!({"path": "small.txt"}))
                .await;
            assert_eq!(read["content"], content.as_str());
            assert_eq!(read["size"], 100);
            assert_eq!(read["lines_total"], 1);
            assert_eq!(read["truncated"], false);
            assert_eq!(read["binary"], false);
            assert_eq!(read["encoding"], "utf-8");
            assert_eq!(read["path"], "small.txt");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_008_a_large_file_is_not_read_whole() {
    let tree = || Tree::new().file("large.txt", "x".repeat(500));
    Workspace::both_with(tree, |setup| setup.set("max_full_read_size", 100), async |workspace| {
        let outcome = workspace.call("read_file", json!({"path": "large.txt"})).await;
        let error = &outcome.error()["error"];
        assert_eq!(error["code"], "too_large");
        let message = error["message"].as_str().unwrap();
        let worded = "file too large for full read (size: 500B, limit: 100B); use offset/limit parameters";
        assert!(message.starts_with(worded), "{message}");
        assert_eq!(error["details"]["size"], 500);
        assert_eq!(error["details"]["limit"], 100);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_009_read_by_bytes() {
    let all: Vec<u8> = (0..=255).collect();
    let text: String = (0..256)
        .map(|n| char::from(b'a' + (n % 26) as u8))
        .collect();
    Workspace::both(
        || Tree::new().file("data.bin", &all).file("data.txt", &text),
        async |workspace| {
            let part = |path: &str| json!({"path": path, "offset_bytes": 10, "limit_bytes": 20});
            let read = workspace.ok("read_file", part("data.bin")).await;
            assert_eq!(read["encoding"], "base64");
            assert_eq!(read["content"], "CgsMDQ4PEBESExQVFhcYGRobHB0=");
            let read = workspace.ok("read_file", part("data.txt")).await;
            assert_eq!(read["content"], text[10..30]);
            assert_eq!(read["size"], 256);
            assert_eq!(read["truncated"], true);
            assert!(read.get("lines_total").is_none(), "{read}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_010_read_by_lines() {
    Workspace::both(
        || Tree::new().file("lines.txt", hundred_lines()),
        async |workspace| {
            let part = json!({"path": "lines.txt", "offset_lines": 50, "limit_lines": 5});
            let read = workspace.ok("read_file", part).await;
            assert_eq!(
                read["content"],
                "line 50\nline 51\nline 52\nline 53\nline 54\n"
            );
            assert_eq!(read["start_line"], 50);
            assert_eq!(read["end_line"], 54);
            assert_eq!(read["lines_total"], 100);
            assert_eq!(read["truncated"], true);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_011_bytes_and_lines_exclude_each_other() {
    Workspace::both(
        || Tree::new().file("file.txt", "x"),
        async |workspace| {
            for mixed in [
                json!({"path": "file.txt", "offset_bytes": 0, "offset_lines": 1}),
                json!({"path": "file.txt", "limit_bytes": 1, "limit_lines": 1}),
                json!({"path": "file.txt", "offset_bytes": 0, "limit_lines": 1}),
            ] {
                let message = workspace
                    .message("invalid_arguments", "read_file", mixed)
                    .await;
                assert!(message.contains("mutually exclusive"), "{message}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_012_read_beyond_the_end() {
    Workspace::both(
        || Tree::new().file("short.txt", "1\n2\n3\n4\n5\n"),
        async |workspace| {
            let beyond = json!({"path": "short.txt", "offset_lines": 100, "limit_lines": 10});
            let outcome = workspace.call("read_file", beyond).await;
            let read = outcome.ok();
            assert_eq!(read["content"], "");
            assert_eq!(read["lines_total"], 5);
            assert_eq!(read["truncated"], false);
            assert!(
                outcome.text.contains('5'),
                "no note of the total: {}",
                outcome.text
            );
            let beyond = json!({"path": "short.txt", "offset_bytes": 100, "limit_bytes": 10});
            let read = workspace.ok("read_file", beyond).await;
            assert_eq!(read["content"], "");
            assert_eq!(read["size"], 10);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_013_binary_files_are_flagged() {
    Workspace::both(
        || Tree::new().file("image.bin", b"\x00\x01bin"),
        async |workspace| {
            let part = json!({"path": "image.bin", "offset_bytes": 0, "limit_bytes": 100});
            for arguments in [part, json!({"path": "image.bin"})] {
                let outcome = workspace.call("read_file", arguments).await;
                let read = outcome.ok();
                assert_eq!(read["binary"], true);
                assert_eq!(read["encoding"], "base64");
                assert_eq!(read["content"], "AAFiaW4=");
                assert_eq!(outcome.text.lines().count(), 1, "{}", outcome.text);
                assert!(outcome.text.contains("binary"), "{}", outcome.text);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_the_threshold_itself_is_allowed() {
    let tree = || {
        Tree::new()
            .file("fits", "x".repeat(100))
            .file("over", "x".repeat(101))
    };
    Workspace::both_with(
        tree,
        |setup| setup.set("max_full_read_size", 100),
        async |workspace| {
            workspace.ok("read_file", json!({"path": "fits"})).await;
            workspace
                .fails("too_large", "read_file", json!({"path": "over"}))
                .await;
            for part in [
                json!({"path": "over", "limit_bytes": 101}),
                json!({"path": "over", "offset_bytes": 0}),
                json!({"path": "over", "limit_lines": 1}),
                json!({"path": "over", "offset_lines": 1}),
            ] {
                let read = workspace.ok("read_file", part).await;
                assert_eq!(read["content"].as_str().unwrap().len(), 101);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_the_text_shows_numbered_lines() {
    Workspace::both(
        || Tree::new().file("f", "one\ntwo\nthree\n"),
        async |workspace| {
            let outcome = workspace
                .call("read_file", json!({"path": "f", "offset_lines": 2}))
                .await;
            assert_eq!(outcome.text, "2\ttwo\n3\tthree\n");
            let plain = json!({"path": "f", "line_numbers": false});
            assert_eq!(
                workspace.call("read_file", plain).await.text,
                "one\ntwo\nthree\n"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_lines_are_counted_as_people_do() {
    let tree = || {
        Tree::new()
            .file("empty", "")
            .file("open", "a\nb")
            .file("closed", "a\nb\n")
    };
    Workspace::both(tree, async |workspace| {
        for (path, lines) in [("empty", 0), ("open", 2), ("closed", 2)] {
            let read = workspace.ok("read_file", json!({"path": path})).await;
            assert_eq!(read["lines_total"], lines, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_005_lines_from_the_end() {
    Workspace::both(
        || Tree::new().file("log", hundred_lines()),
        async |workspace| {
            let last = json!({"path": "log", "offset_lines": -2});
            let read = workspace.ok("read_file", last).await;
            assert_eq!(read["content"], "line 99\nline 100\n");
            assert_eq!(read["start_line"], 99);
            assert_eq!(read["end_line"], 100);
            workspace
                .fails(
                    "invalid_arguments",
                    "read_file",
                    json!({"path": "log", "offset_lines": 0}),
                )
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_absurd_limits_cost_nothing() {
    Workspace::both(
        || Tree::new().file("f", "a\nb\n"),
        async |workspace| {
            let before = workspace.server.memory().peak;
            for key in ["limit_lines", "limit_bytes"] {
                let read = workspace
                    .ok(
                        "read_file",
                        json!({"path": "f", key: 1_000_000_000_000_u64}),
                    )
                    .await;
                assert_eq!(read["content"], "a\nb\n");
                assert_eq!(read["truncated"], false);
            }
            assert!(workspace.server.memory().peak < before + (64 << 20));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_bytes_never_cut_a_character_in_two() {
    Workspace::both(
        || Tree::new().file("f", "aé😀z"),
        async |workspace| {
            for offset in 0..=8 {
                for limit in 1..=8 {
                    let part = json!({"path": "f", "offset_bytes": offset, "limit_bytes": limit});
                    let read = workspace.ok("read_file", part).await;
                    let whole = read["encoding"] == "base64"
                        || !read["content"].as_str().unwrap().contains('\u{fffd}');
                    assert!(whole, "{offset}+{limit}: {read}");
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_005_directories_and_pipes_are_not_read() {
    Workspace::both(
        || Tree::new().dir("dir").pipe("pipe"),
        async |workspace| {
            let message = workspace
                .message("is_a_directory", "read_file", json!({"path": "dir"}))
                .await;
            assert!(message.contains("dir"), "{message}");
            workspace
                .fails("not_a_file", "read_file", json!({"path": "pipe"}))
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_001_a_source_file_with_line_numbers() {
    Workspace::both(
        || Tree::new().file("src/main.go", "package main\n"),
        async |workspace| {
            let outcome = workspace
                .call("read_file", json!({"path": "src/main.go"}))
                .await;
            assert_eq!(outcome.text, "1\tpackage main\n");
            let message = workspace
                .message("not_found", "read_file", json!({"path": "src/min.go"}))
                .await;
            assert!(
                message.starts_with("file not found: src/min.go"),
                "{message}"
            );
            assert!(
                message.contains("did you mean src/main.go?"),
                "no near match: {message}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_001_sizes_are_worded_for_people() {
    Workspace::both(|| Tree::new().sparse("big.log", 5_452_595), async |workspace| {
        let message = workspace.message("too_large", "read_file", json!({"path": "big.log"})).await;
        let worded = "file too large for full read (size: 5.2MB, limit: 1MB); use offset/limit parameters";
        assert!(message.starts_with(worded), "{message}");
    })
    .await;
}

#[tokio::test]
async fn workspace_us_002_fifty_lines_of_a_large_log() {
    let log: String = (1..=60_000)
        .map(|n| format!("{n:06} something happened again\n"))
        .collect();
    Workspace::both(
        || Tree::new().file("app.log", &log),
        async |workspace| {
            let part = json!({"path": "app.log", "offset_lines": 1000, "limit_lines": 50});
            let outcome = workspace.call("read_file", part).await;
            let read = outcome.ok();
            assert_eq!(read["start_line"], 1000);
            assert_eq!(read["end_line"], 1049);
            assert_eq!(read["lines_total"], 60_000);
            assert!(
                outcome.text.starts_with("1000\t001000 something"),
                "{}",
                outcome.text
            );
            assert_eq!(outcome.text.lines().count(), 51);
            let last = outcome.text.lines().next_back();
            let more = "[lines 1000-1049 of 60000; go on with offset_lines: 1050]";
            assert_eq!(last, Some(more));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_lines_are_returned_where_counting_all_takes_too_long() {
    let numbers: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    let tree = || {
        Tree::new()
            .file("huge.log", &numbers)
            .stretched("huge.log", 1 << 40)
    };
    Workspace::both_with(
        tree,
        |setup| setup.set("limits.request_timeout", 4),
        async |workspace| {
            let lines = json!({"path": "huge.log", "offset_lines": 2000, "limit_lines": 2});
            let read = workspace.ok("read_file", lines).await;
            assert_eq!(read["content"], "2000\n2001\n");
            assert_eq!(read["start_line"], 2000);
            assert_eq!(read["end_line"], 2001);
            assert_eq!(read["truncated"], true);
            assert!(read.get("lines_total").is_none(), "{read}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_line_numbers_follow_a_file_that_changes() {
    let lines = |count: usize| -> String { (1..=count).map(|n| format!("{n:019}\n")).collect() };
    Workspace::both(
        || Tree::new().file("app.log", lines(50_000)),
        async |workspace| {
            let from =
                |line: i64| json!({"path": "app.log", "offset_lines": line, "limit_lines": 1});
            for line in [40_000, 40_000, 7, 49_999] {
                let read = workspace.ok("read_file", from(line)).await;
                assert_eq!(read["content"], format!("{line:019}\n"));
                assert_eq!(read["lines_total"], 50_000);
            }
            workspace.tree().write("app.log", lines(60_001));
            let read = workspace.ok("read_file", from(-1)).await;
            assert_eq!(read["content"], format!("{:019}\n", 60_001));
            assert_eq!(read["start_line"], 60_001);
            assert_eq!(read["lines_total"], 60_001);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_lines_that_do_not_fit_are_left_out_whole() {
    let settings = |setup: testkit::Setup| setup.set("limits.max_file_size", 20);
    let tree = || {
        Tree::new()
            .file("lines", "line 1\nline 2\nline 3\nline 4\n")
            .file("long", "x".repeat(50) + "\nshort\n")
    };
    Workspace::both_with(tree, settings, async |workspace| {
        let mut next = 1;
        let mut whole = String::new();
        for _ in 0..2 {
            let arguments = json!({"path": "lines", "offset_lines": next, "limit_lines": 10});
            let read = workspace.ok("read_file", arguments).await;
            whole += read["content"].as_str().unwrap();
            next = read["end_line"].as_u64().unwrap() + 1;
        }
        assert_eq!(whole.as_str(), "line 1\nline 2\nline 3\nline 4\n");
        assert_eq!(next, 5);
        let read = workspace
            .ok("read_file", json!({"path": "long", "limit_lines": 2}))
            .await;
        assert_eq!(
            read["content"],
            "x".repeat(20),
            "one that is too long by itself is cut"
        );
        assert!(
            read["note"].as_str().unwrap().contains("offset_bytes 20"),
            "{read}"
        );
        assert_eq!(read["truncated"], true);
    })
    .await;
}
