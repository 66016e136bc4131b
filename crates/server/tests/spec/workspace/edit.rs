//! `edit_file`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

const CODE: &str = "fn one() {\n    start();\n    stop();\n}\n\nfn two() {\n    start();\n}\n";

#[tokio::test]
async fn workspace_edit_one_place() {
    Workspace::both(
        || Tree::new().file("src/a.rs", CODE).mode("src/a.rs", 0o640),
        async |workspace| {
            let edits = json!([{"old": "    stop();\n", "new": "    halt();\n    stop();\n"}]);
            let arguments = json!({"path": "src/a.rs", "edits": edits});
            let edited = workspace.ok("edit_file", arguments).await;
            assert_eq!(
                edited["files"],
                json!([{"path": "src/a.rs", "replacements": 1, "created": false, "size": CODE.len() + 12}])
            );
            assert_eq!(
                edited["changes"],
                json!([{"path": "src/a.rs", "line": 2, "lines": ["    start();", "    halt();", "    stop();", "}"]}])
            );
            assert_eq!(
                workspace.tree().text("src/a.rs"),
                CODE.replace("    stop", "    halt();\n    stop")
            );
            assert_eq!(workspace.tree().mode_of("src/a.rs"), 0o640);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_edit_text_shows_files_and_changed_lines() {
    Workspace::both(
        || Tree::new().file("a.rs", CODE).file("b.json", "{\"a\": 1}\n"),
        async |workspace| {
            let edits = json!([
                {"path": "a.rs", "old": "start", "new": "begin", "all": true},
                {"path": "b.json", "old": "1}", "new": "1,}"},
                {"path": "c/new.txt", "old": "", "new": "made\n"},
            ]);
            let arguments = json!({"edits": edits, "dry_run": true});
            let outcome = workspace.call("edit_file", arguments).await;
            let expected = "a.rs: 2 replacements, 65 bytes\nb.json: 1 replacement, 10 bytes\n\
                c/new.txt: created, 5 bytes\n==> a.rs <==\n1\tfn one() {\n2\t    begin();\n3\t    stop();\n--\n\
                6\tfn two() {\n7\t    begin();\n8\t}\n==> b.json <==\n1\t{\"a\": 1,}\n==> c/new.txt <==\n1\tmade\n\
                [b.json is no valid JSON now: line 1: key must be a string; dry run: nothing was changed]";
            assert_eq!(outcome.text, expected);
            assert_eq!(workspace.tree().text("a.rs"), CODE);
            assert_eq!(workspace.tree().listing().len(), 2);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_edit_refusals_have_one_form_and_change_nothing() {
    let tree = || {
        Tree::new()
            .file("a.rs", CODE)
            .file("b", "kept\n")
            .file("latin", b"caf\xe9\n")
            .file("wide", b"\xff\xfea\0b\0")
            .link("out", "../outside")
            .dir("dir")
    };
    Workspace::both(tree, async |workspace| {
        let before = workspace.tree().listing();
        let contents = |path: &str| workspace.tree().bytes(path);
        let kept = (contents("a.rs"), contents("b"));
        for (edit, code, message) in [
            (
                json!({"old": "start();", "new": "x"}),
                "edit_failed",
                "edit 2 of 2, a.rs: old occurs 2 times, in lines 2, 7; add lines around it or set all: true; nothing was changed",
            ),
            (
                json!({"old": "  start();\n  stop();", "new": "x"}),
                "edit_failed",
                "edit 2 of 2, a.rs: old not found; nearest is lines 2-3 (differs in indentation):\n2\t    start();\n3\t    stop();",
            ),
            (
                json!({"old": "halt();", "new": "    stop();"}),
                "edit_failed",
                "edit 2 of 2, a.rs: old not found, but new is already there, line 3",
            ),
            (
                json!({"old": "fn two() {\r\n", "new": "fn two() {\n"}),
                "edit_failed",
                "edit 2 of 2, a.rs: old and new are the same (line ends of the file are kept); nothing was changed",
            ),
            (
                json!({"old": "no such thing anywhere", "new": "x"}),
                "edit_failed",
                "edit 2 of 2, a.rs: old not found, nor any line like it; copy it from the file (read_file); nothing was changed",
            ),
            (
                json!({"old": "", "new": "x"}),
                "edit_failed",
                "edit 2 of 2, a.rs: the file exists, and an empty old makes a new one; give the text to replace, or use \
                 write_file; nothing was changed",
            ),
            (
                json!({"path": "latin", "old": "caf", "new": "x"}),
                "edit_failed",
                "edit failed: latin is not UTF-8 text but seems to be windows-1252 or Latin-1; edit_file changes UTF-8 files only",
            ),
            (
                json!({"path": "wide", "old": "a", "new": "x"}),
                "edit_failed",
                "edit failed: wide is not UTF-8 text but seems to be UTF-16LE; edit_file changes UTF-8 files only",
            ),
            (json!({"path": "dir", "old": "a", "new": "x"}), "is_a_directory", "path is a directory: dir"),
            (json!({"path": "aa.rs", "old": "a", "new": "x"}), "not_found", "file not found: aa.rs; did you mean a.rs?"),
            (json!({"path": "out/x", "old": "a", "new": "x"}), "path_outside_root", "path resolves outside root boundary"),
            (json!({"path": "../x", "old": "", "new": "x"}), "path_outside_root", "path resolves outside root boundary"),
        ] {
            let first = json!({"path": "b", "old": "kept", "new": "lost"});
            let arguments = json!({"path": "a.rs", "edits": [first, edit]});
            let found = workspace.message(code, "edit_file", arguments).await;
            assert!(found.starts_with(message), "{found}");
            assert_eq!(workspace.tree().listing(), before, "{message}");
            assert_eq!((contents("a.rs"), contents("b")), kept, "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_edit_arguments_are_named() {
    Workspace::both(
        || Tree::new().file("a", "x\n"),
        async |workspace| {
            for (arguments, word) in [
                (json!({"path": "a"}), "edits"),
                (json!({"path": "a", "edits": []}), "at least 1"),
                (
                    json!({"edits": [{"old": "x", "new": "y"}]}),
                    "edits[0] names no file",
                ),
                (
                    json!({"path": "a", "edits": [{"new": "y"}]}),
                    "edits[0].old",
                ),
                (
                    json!({"path": "a", "edits": [{"old": "x", "new": "y", "all": "true"}]}),
                    "edits[0].all",
                ),
            ] {
                let message = workspace
                    .message("invalid_arguments", "edit_file", arguments)
                    .await;
                assert!(message.contains(word), "{message}");
            }
            assert_eq!(workspace.tree().text("a"), "x\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_edit_line_ends_mark_and_end_stay() {
    let tree = || {
        Tree::new()
            .file("crlf", "one\r\ntwo\r\nthree")
            .file("mixed", "one\r\ntwo\nthree\r\n")
            .file("bom", "\u{feff}one\n")
            .file("quotes", "say \u{201c}hi\u{201d} \nbye\n")
    };
    Workspace::both(tree, async |workspace| {
        for (path, old, new, expected) in [
            (
                "crlf",
                "two\nthree",
                "2\n2.5\nthree",
                "one\r\n2\r\n2.5\r\nthree",
            ),
            (
                "mixed",
                "one\ntwo\n",
                "one\nnew\ntwo\n",
                "one\r\nnew\r\ntwo\nthree\r\n",
            ),
            ("bom", "one", "1", "\u{feff}1\n"),
            (
                "quotes",
                "say \"hi\"\nbye",
                "say \"hi\"\nciao",
                "say \u{201c}hi\u{201d} \nciao\n",
            ),
        ] {
            let arguments = json!({"path": path, "edits": [{"old": old, "new": new}]});
            let edited = workspace.ok("edit_file", arguments).await;
            assert_eq!(workspace.tree().text(path), expected);
            let notes = edited["notes"].as_array().map_or(0, Vec::len);
            assert_eq!(notes, usize::from(path == "quotes"), "{edited:#}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_edit_warns_about_files_that_no_longer_parse() {
    let tree = || {
        Tree::new()
            .file("a.yaml", "a:\n  b: 1\n")
            .file("a.toml", "[a]\nb = 1\n")
            .file("broken.json", "{,}\n")
    };
    Workspace::both(tree, async |workspace| {
        for (path, old, new, warning) in [
            (
                "a.yaml",
                "  b: 1",
                "  b: [1",
                "a.yaml is no valid YAML now: line ",
            ),
            (
                "a.toml",
                "b = 1",
                "b = ",
                "a.toml is no valid TOML now: line 2: ",
            ),
            (
                "new.json",
                "",
                "{",
                "new.json is no valid JSON now: line 1: ",
            ),
            ("broken.json", ",", ",,", ""),
        ] {
            let arguments = json!({"path": path, "edits": [{"old": old, "new": new}]});
            let edited = workspace.ok("edit_file", arguments).await;
            let found = edited["warnings"][0].as_str().unwrap_or_default();
            assert!(
                found.starts_with(warning) && found.is_empty() == warning.is_empty(),
                "{found}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_edit_a_large_file() {
    let line = "2026-01-01 some line of a log\n";
    let tree = Tree::new().file("log", format!("{0}needle here\n{0}", line.repeat(600_000)));
    Workspace::both(
        || Tree::new().file("log", tree.bytes("log")),
        async |workspace| {
            let arguments = json!({"path": "log", "edits": [{"old": "needle", "new": "thread"}]});
            let edited = workspace.ok("edit_file", arguments).await;
            assert_eq!(edited["changes"][0]["line"], 600_000);
            let expected = tree.text("log").replace("needle", "thread");
            assert!(workspace.tree().text("log") == expected);
        },
    )
    .await;
}
