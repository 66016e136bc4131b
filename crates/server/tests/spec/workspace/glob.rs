//! `glob`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, each, is_iso_8601};

fn files(paths: &[&str]) -> Tree {
    paths
        .iter()
        .fold(Tree::new(), |tree, path| tree.file(path, "12"))
}

#[tokio::test]
async fn workspace_e2e_055_a_pattern() {
    Workspace::both(
        || files(&["a.go", "b.go", "c.txt", "sub/d.go"]),
        async |workspace| {
            let found = workspace.ok("glob", json!({"pattern": "*.go"})).await;
            assert_eq!(each(&found["matches"], "path"), ["a.go", "b.go"]);
            assert_eq!(found["total_matches"], 2);
            assert_eq!(found["truncated"], false);
            let first = &found["matches"][0];
            assert_eq!(first["type"], "file");
            assert_eq!(first["size"], 2);
            assert!(is_iso_8601(&first["modified_at"]), "{first}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_056_an_expression() {
    Workspace::both(
        || files(&["test_1.go", "test_2.go", "main.go"]),
        async |workspace| {
            let found = workspace
                .ok("glob", json!({"regex": r"test_\d+\.go"}))
                .await;
            assert_eq!(each(&found["matches"], "path"), ["test_1.go", "test_2.go"]);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_057_any_depth() {
    Workspace::both(
        || files(&["src/a.go", "src/pkg/b.go", "src/pkg/sub/c.go", "src/x.rs"]),
        async |workspace| {
            let found = workspace.ok("glob", json!({"pattern": "**/*.go"})).await;
            let expected = ["src/a.go", "src/pkg/b.go", "src/pkg/sub/c.go"];
            assert_eq!(each(&found["matches"], "path"), expected);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_058_only_files() {
    let tree = || files(&["a", "b"]).dir("d").link("l", "a");
    Workspace::both(tree, async |workspace| {
        for (kind, expected) in [
            ("file", &["a", "b"][..]),
            ("directory", &["d"]),
            ("symlink", &["l"]),
            ("all", &["a", "b", "d", "l"]),
        ] {
            let found = workspace
                .ok("glob", json!({"pattern": "*", "type_filter": kind}))
                .await;
            assert_eq!(each(&found["matches"], "path"), expected, "{kind}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_059_no_match() {
    Workspace::both(
        || files(&["a.go"]),
        async |workspace| {
            let found = workspace.ok("glob", json!({"pattern": "*.xyz"})).await;
            assert_eq!(found["total_matches"], 0);
            assert_eq!(found["matches"], json!([]));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_060_pattern_or_expression_not_both() {
    Workspace::both(Tree::new, async |workspace| {
        for arguments in [json!({"pattern": "*.go", "regex": r".*\.go"}), json!({})] {
            let message = workspace
                .message("invalid_arguments", "glob", arguments)
                .await;
            assert!(
                message.contains("exactly one of pattern or regex"),
                "{message}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_076_an_invalid_expression() {
    Workspace::both(Tree::new, async |workspace| {
        let message = workspace
            .message("invalid_pattern", "glob", json!({"regex": "[unclosed"}))
            .await;
        assert!(
            message.contains("missing closing ] of [unclosed"),
            "{message}"
        );
        let message = workspace
            .message("invalid_pattern", "glob", json!({"pattern": "{a,b"}))
            .await;
        assert!(message.contains("pattern"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_017_globs_are_those_of_doublestar() {
    let tree = || {
        Tree::new()
            .file("src/a.go", "")
            .file("odd/]", "")
            .file("odd/-", "")
            .file("odd/x}", "")
    };
    Workspace::both(tree, async |workspace| {
        for (pattern, expected) in [
            ("src/**", vec!["src", "src/a.go"]),
            (r"odd/[\]a]", vec!["odd/]"]),
            (r"odd/[\-y]", vec!["odd/-"]),
            ("odd/x}", vec!["odd/x}"]),
            ("{odd,none}/x}", vec!["odd/x}"]),
        ] {
            let found = workspace.ok("glob", json!({"pattern": pattern})).await;
            assert_eq!(each(&found["matches"], "path"), expected, "{pattern}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_017_sorted_and_at_most_so_many() {
    let names: Vec<String> = (0..150).map(|n| format!("d{}/f{n}", n % 3)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Workspace::both(
        || files(&names),
        async |workspace| {
            let search = json!({"pattern": "**/f*", "max_results": 3});
            let found = workspace.ok("glob", search).await;
            assert_eq!(
                each(&found["matches"], "path"),
                ["d0/f0", "d0/f102", "d0/f105"]
            );
            assert_eq!(found["total_matches"], 3);
            assert_eq!(found["truncated"], true);
            let found = workspace.ok("glob", json!({"pattern": "**/f*"})).await;
            assert_eq!(found["total_matches"], 100);
            assert_eq!(found["truncated"], true);
            let all = json!({"pattern": "**/f*", "max_results": 150});
            let found = workspace.ok("glob", all).await;
            let mut expected = names.clone();
            expected.sort_unstable();
            assert_eq!(each(&found["matches"], "path"), expected);
            assert_eq!(found["truncated"], false);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_017_only_below_the_path_and_so_deep() {
    Workspace::both(
        || files(&["a/x.go", "a/b/y.go", "z.go", "a/.hidden/h.go"]),
        async |workspace| {
            let found = workspace
                .ok("glob", json!({"pattern": "*.go", "path": "a"}))
                .await;
            assert_eq!(each(&found["matches"], "path"), ["a/x.go"]);
            let found = workspace
                .ok("glob", json!({"pattern": "**/*.go", "path": "a"}))
                .await;
            assert_eq!(
                each(&found["matches"], "path"),
                ["a/.hidden/h.go", "a/b/y.go", "a/x.go"]
            );
            let found = workspace
                .ok("glob", json!({"pattern": "**/*.go", "max_depth": 2}))
                .await;
            assert_eq!(each(&found["matches"], "path"), ["a/x.go", "z.go"]);
            let found = workspace
                .ok("glob", json!({"regex": "^b/", "path": "a"}))
                .await;
            assert_eq!(each(&found["matches"], "path"), ["a/b/y.go"]);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_017_links_are_found_not_followed() {
    let outside = files(&["secret.go"]);
    Workspace::both(
        || {
            files(&["own.go"])
                .link("escape", outside.path())
                .link("l.go", "own.go")
        },
        async |workspace| {
            let found = workspace.ok("glob", json!({"pattern": "**/*.go"})).await;
            assert_eq!(each(&found["matches"], "path"), ["l.go", "own.go"]);
            workspace
                .fails(
                    "path_outside_root",
                    "glob",
                    json!({"pattern": "*", "path": "escape"}),
                )
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_017_bombs_are_refused() {
    Workspace::both(Tree::new, async |workspace| {
        let deep = "{".repeat(10_000);
        workspace
            .fails("invalid_pattern", "glob", json!({"pattern": deep}))
            .await;
        workspace
            .fails(
                "invalid_pattern",
                "glob",
                json!({"regex": "(a{1000}){1000}"}),
            )
            .await;
        let long = "a".repeat(1 << 20);
        workspace
            .fails("invalid_pattern", "grep", json!({"pattern": long}))
            .await;
    })
    .await;
}
