//! `grep`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, each};

#[tokio::test]
async fn workspace_e2e_048_a_match_with_context() {
    let code: String = (1..=20)
        .map(|n| {
            if n == 10 {
                "// TODO: fix this\n".to_owned()
            } else {
                format!("line {n}\n")
            }
        })
        .collect();
    Workspace::both(
        || Tree::new().file("code.go", &code),
        async |workspace| {
            let found = workspace
                .ok("grep", json!({"pattern": "TODO", "context_lines": 2}))
                .await;
            let expected = json!([{
                "file": "code.go", "line_number": 10, "column": 4, "line_content": "// TODO: fix this",
                "context_before": ["line 8", "line 9"], "context_after": ["line 11", "line 12"],
            }]);
            assert_eq!(found["matches"], expected);
            assert_eq!(found["total_matches"], 1);
            assert_eq!(found["truncated"], false);
            assert_eq!(found["timed_out"], false);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_049_case_insensitive() {
    Workspace::both(
        || Tree::new().file("log", "Error\nerror\nERROR\nfine\n"),
        async |workspace| {
            let search = json!({"pattern": "error", "case_insensitive": true});
            assert_eq!(workspace.ok("grep", search).await["total_matches"], 3);
            assert_eq!(
                workspace.ok("grep", json!({"pattern": "error"})).await["total_matches"],
                1
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_050_only_some_files() {
    let tree = || {
        Tree::new()
            .file("file.go", "TODO\n")
            .file("file.py", "TODO\n")
            .file("d/x.go", "TODO")
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace
            .ok("grep", json!({"pattern": "TODO", "glob_filter": "*.go"}))
            .await;
        assert_eq!(each(&found["matches"], "file"), ["d/x.go", "file.go"]);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_051_no_match() {
    Workspace::both(
        || Tree::new().file("f", "text\n"),
        async |workspace| {
            let found = workspace
                .ok("grep", json!({"pattern": "ZZZZUNIQUEZZZZZ"}))
                .await;
            assert_eq!(found["total_matches"], 0);
            assert_eq!(found["matches"], json!([]));
            assert_eq!(found["truncated"], false);
            assert_eq!(found["timed_out"], false);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_052_an_invalid_expression() {
    Workspace::both(Tree::new, async |workspace| {
        let message = workspace
            .message("invalid_pattern", "grep", json!({"pattern": "[invalid"}))
            .await;
        assert!(message.starts_with("invalid pattern: "), "{message}");
        assert!(
            message.contains("missing closing ]"),
            "the message does not say what is wrong: {message}"
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_016_expressions_are_those_of_go() {
    let code = "func main() {\n\tvar x interface{} = \"${HOME}\"\n}\n{{ .Name }}\nc++\nα_β\n";
    let tree = || Tree::new().file("main.go", code);
    Workspace::both(tree, async |workspace| {
        for (pattern, lines) in [
            (r"func main\(\) {", vec![1]),
            ("interface{}", vec![2]),
            (r"\${HOME}", vec![2]),
            ("{{ .Name }}", vec![4]),
            (r"\Qc++\E", vec![5]),
            (r"^\p{^Greek}+$", vec![1, 2, 3, 4, 5]),
            // Words are ASCII: the underscore alone is one.
            (r"\b_\b", vec![6]),
            ("[[]", vec![]),
        ] {
            let found = workspace.ok("grep", json!({"pattern": pattern})).await;
            let matches = found["matches"].as_array().unwrap();
            let found: Vec<_> = matches.iter().map(|line| &line["line_number"]).collect();
            assert_eq!(found, lines, "{pattern}");
        }
        for (pattern, words) in [
            ("c++", "invalid nested repetition ++"),
            ("(?<=a)b", "look-around (?<= is not supported"),
            ("*.go", "* has nothing to repeat"),
        ] {
            let message = workspace
                .message("invalid_pattern", "grep", json!({"pattern": pattern}))
                .await;
            assert!(message.contains(words), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_053_at_most_so_many() {
    let tree = || {
        (0..210).fold(Tree::new(), |tree, n| {
            tree.file(format!("d{}/f{n:03}", n % 7), "a match\n")
        })
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace
            .ok("grep", json!({"pattern": "match", "max_results": 5}))
            .await;
        let files = each(&found["matches"], "file");
        assert_eq!(
            files,
            ["d0/f000", "d0/f007", "d0/f014", "d0/f021", "d0/f028"]
        );
        assert_eq!(found["total_matches"], 5);
        assert_eq!(found["truncated"], true);
        let found = workspace.ok("grep", json!({"pattern": "match"})).await;
        assert_eq!(found["total_matches"], 100);
        assert_eq!(found["truncated"], true);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_054_binary_files_are_skipped() {
    let late = [vec![b'x'; 9000], b"\n\0 needle\n".to_vec()].concat();
    let tree = || {
        Tree::new()
            .file("binary", b"needle\0")
            .file("text", "needle\n")
            .file("late", &late)
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
        assert_eq!(
            each(&found["matches"], "file"),
            ["late", "text"],
            "binary is the first 8 KB"
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_016_exactly_the_maximum_is_not_truncated() {
    Workspace::both(
        || Tree::new().file("f", "x\nx\nx\n"),
        async |workspace| {
            for (max_results, truncated) in [(2, true), (3, false), (4, false)] {
                let found = workspace
                    .ok("grep", json!({"pattern": "x", "max_results": max_results}))
                    .await;
                assert_eq!(found["truncated"], truncated, "{max_results}: {found}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_016_only_below_the_path_and_so_deep() {
    let tree = || {
        Tree::new()
            .file("top", "x")
            .file("a/one", "x")
            .file("a/b/two", "x")
            .file("ab/no", "x")
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace
            .ok("grep", json!({"pattern": "x", "path": "a"}))
            .await;
        assert_eq!(each(&found["matches"], "file"), ["a/b/two", "a/one"]);
        let found = workspace
            .ok("grep", json!({"pattern": "x", "path": "a", "max_depth": 1}))
            .await;
        assert_eq!(each(&found["matches"], "file"), ["a/one"]);
        let found = workspace
            .ok("grep", json!({"pattern": "x", "path": "a/one"}))
            .await;
        assert_eq!(each(&found["matches"], "file"), ["a/one"]);
        workspace
            .fails("not_found", "grep", json!({"pattern": "x", "path": "gone"}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_016_what_leads_outside_is_not_searched() {
    let outside = Tree::new().file("secret.txt", "needle\n");
    let tree = || {
        Tree::new()
            .file("own.txt", "needle\n")
            .link("escape", outside.path())
            .link("secret.txt", outside.join("secret.txt"))
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
        assert_eq!(each(&found["matches"], "file"), ["own.txt"]);
        workspace
            .fails(
                "path_outside_root",
                "grep",
                json!({"pattern": "needle", "path": "escape"}),
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_016_long_lines_are_cut() {
    Workspace::both(
        || Tree::new().file("f", format!("needle {}\n", "y".repeat(5000))),
        async |workspace| {
            let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
            let line = found["matches"][0]["line_content"].as_str().unwrap();
            assert!(
                line.starts_with("needle y") && line.len() <= 2000,
                "{} bytes",
                line.len()
            );
            assert_eq!(found["matches"][0]["line_truncated"], true);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_016_files_and_counts() {
    Workspace::both(
        || {
            Tree::new()
                .file("a", "x\nx\n")
                .file("b", "x\n")
                .file("c", "y\n")
        },
        async |workspace| {
            let found = workspace
                .ok("grep", json!({"pattern": "x", "output": "files"}))
                .await;
            assert_eq!(each(&found["files"], "file"), ["a", "b"]);
            let found = workspace
                .ok("grep", json!({"pattern": "x", "output": "count"}))
                .await;
            assert_eq!(
                found["files"],
                json!([{"file": "a", "count": 2}, {"file": "b", "count": 1}])
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_016_gitignore_counts_only_when_asked() {
    let tree = || {
        Tree::new()
            .file(".gitignore", "*.log\n")
            .file("a.log", "x\n")
            .file("a.txt", "x\n")
    };
    Workspace::both(tree, async |workspace| {
        let search = json!({"pattern": "x"});
        assert_eq!(
            each(&workspace.ok("grep", search).await["matches"], "file"),
            ["a.log", "a.txt"]
        );
        let search = json!({"pattern": "x", "respect_gitignore": true});
        assert_eq!(
            each(&workspace.ok("grep", search).await["matches"], "file"),
            ["a.txt"]
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_us_005_todos_of_a_codebase() {
    let tree = || {
        Tree::new()
            .file("src/a.go", "one\ntwo\n// todo: a\nfour\nfive\n")
            .file("src/b.go", "// FixMe: b\n")
            .file("src/c.py", "# TODO: c\n")
            .file("src/d.go", b"\0TODO")
    };
    Workspace::both(tree, async |workspace| {
        let search = json!({"pattern": "TODO|FIXME", "glob_filter": "*.go", "context_lines": 2,
            "case_insensitive": true});
        let found = workspace.ok("grep", search).await;
        assert_eq!(each(&found["matches"], "file"), ["src/a.go", "src/b.go"]);
        assert_eq!(found["matches"][0]["context_before"], json!(["one", "two"]));
        assert_eq!(
            found["matches"][0]["context_after"],
            json!(["four", "five"])
        );
        assert_eq!(found["matches"][1]["context_before"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn workspace_grep_shows_the_piece_around_a_match_and_makes_no_line_ends_of_its_own() {
    let far = format!("{}needle{}\n", "ä".repeat(5000), "ö".repeat(5000));
    let long = format!("{}y\nxx\n", "x".repeat(3 << 20));
    Workspace::both(
        || Tree::new().file("far", &far).file("long", &long),
        async |workspace| {
            let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
            let only = &found["matches"][0];
            assert_eq!(only["column"], 5001);
            assert_eq!(only["line_truncated"], true);
            let content = only["line_content"].as_str().expect("text");
            assert!(
                content.contains("äneedleö") && content.len() <= 2000,
                "{content}"
            );
            assert!(only.get("line_in_parts").is_none(), "{only}");
            let ends = workspace
                .ok("grep", json!({"pattern": "x$", "path": "long"}))
                .await;
            assert_eq!(ends["total_matches"], 1, "{ends}");
            assert_eq!(ends["matches"][0]["line_number"], 2);
            assert_eq!(ends["lines_in_parts"], 1);
            let part = workspace
                .ok("grep", json!({"pattern": "xy$", "path": "long"}))
                .await;
            assert_eq!(part["matches"][0]["line_in_parts"], true, "{part}");
            assert_eq!(part["matches"][0]["column"], 3 << 20);
            let begins = workspace
                .ok("grep", json!({"pattern": "^xy", "path": "long"}))
                .await;
            assert_eq!(begins["total_matches"], 0, "{begins}");
        },
    )
    .await;
}

/// `one`, `needle two` and `three`, each a line, compressed by gzip.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xcf\x4b\xe5\xca\x4b\x4d\x4d\xc9\x49\x55\x28\x29\xcf\xe7\x2a\xc9\x28\x4a\x4d\xe5\x02\x00\x1a\xba\x2d\xa0\x15\x00\x00\x00";
/// The same as a frame of zstd with one block that is not compressed.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x20\x15\xa9\x00\x00one\nneedle two\nthree\n";

#[tokio::test]
async fn workspace_grep_literal_and_any_of_several_patterns() {
    Workspace::both(
        || Tree::new().file("a.rs", "f(x)\nfx\ng[0]\nh\n"),
        async |workspace| {
            let lines = async |arguments| {
                let found = workspace.ok("grep", arguments).await;
                let lines = each(&found["matches"], "line_content");
                lines.join(" ")
            };
            assert_eq!(
                lines(json!({"pattern": "f(x)", "literal": true})).await,
                "f(x)"
            );
            assert_eq!(lines(json!({"pattern": "f(x)"})).await, "fx");
            assert_eq!(lines(json!({"patterns": ["^h$", "g\\["]})).await, "g[0] h");
            let literal = json!({"patterns": ["f(", "[0]"], "literal": true});
            assert_eq!(lines(literal).await, "f(x) g[0]");
            for wrong in [json!({}), json!({"pattern": "a", "patterns": ["b"]})] {
                let message = workspace.message("invalid_arguments", "grep", wrong).await;
                assert!(message.contains("give pattern or patterns"), "{message}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_grep_from_the_end() {
    let log: String = (1..=100_000)
        .map(|n| format!("{n} line of a log\n"))
        .collect();
    Workspace::both(
        || Tree::new().file("big.log", &log).file("a.txt", "1\n2 line\n"),
        async |workspace| {
            let last = json!({"path": "big.log", "pattern": "line", "from_end": true, "max_results": 2});
            let outcome = workspace.call("grep", last).await;
            assert_eq!(
                outcome.text,
                "big.log\n-2:99999 line of a log\n-1:100000 line of a log\n\
                 [lines are counted from the file's end, as offset_lines of read_file is; \
                 2 matches; more come before: raise max_results or narrow path, pattern or glob_filter]"
            );
            assert_eq!(outcome.ok()["matches"][0]["line_number"], -2);
            let read = json!({"path": "big.log", "offset_lines": -2, "limit_lines": 1});
            let read = workspace.ok("read_file", read).await;
            assert_eq!(read["content"], "99999 line of a log\n");
            let small = json!({"path": "a.txt", "pattern": "line", "from_end": true});
            let small = workspace.ok("grep", small).await;
            assert_eq!(small["matches"][0]["line_number"], 2);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_compressed_files_are_searched_and_read_if_asked_for() {
    let tree = || {
        Tree::new()
            .file("a.log.gz", GZIP)
            .file("b.log.zst", ZSTD)
            .file("plain", "needle\n")
            .file("torn.gz", &GZIP[..20])
    };
    Workspace::both(tree, async |workspace| {
        let found = workspace.ok("grep", json!({"pattern": "needle"})).await;
        assert_eq!(each(&found["matches"], "file"), ["plain"]);
        let search = json!({"pattern": "needle", "search_compressed": true});
        let outcome = workspace.call("grep", search).await;
        assert_eq!(
            outcome.text,
            "a.log.gz\n2:needle two\n\nb.log.zst\n2:needle two\n\nplain\n1:needle\n\
             [1 could not be read: torn.gz (compressed content is damaged)]"
        );
        assert_eq!(outcome.ok()["unread"]["count"], 1);
        for path in ["a.log.gz", "b.log.zst"] {
            let read = json!({"path": path, "decompress": true, "offset_lines": 2});
            let read = workspace.ok("read_file", read).await;
            assert_eq!(read["content"], "needle two\nthree\n");
            assert_eq!(read["size"], 21);
            assert_eq!(read["lines_total"], 3);
        }
        let plain = json!({"path": "plain", "decompress": true});
        assert_eq!(
            workspace.ok("read_file", plain).await["content"],
            "needle\n"
        );
        let torn = json!({"path": "torn.gz", "decompress": true});
        workspace.fails("io_error", "read_file", torn).await;
    })
    .await;
}
