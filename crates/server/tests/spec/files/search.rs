//! `search`.

use testkit::{Tree, Value, json};

use super::set::Files;
use crate::harness::{ToolSet, each};

fn searched_tree() -> Tree {
    Tree::new()
        .file("a.txt", "zero\nHello world\ntwo\nhello again\n")
        .file("b.rs", "fn hello() {}\n")
        .file("sub/c.txt", "a.b\naxb\n")
        .file("binary", b"hello\0")
}

#[tokio::test]
async fn files_search_reply() {
    Files::both(searched_tree, async |files| {
        let arguments = json!({"root_path": ".", "pattern": "hello"});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found,
            json!({
                "total_matches": 3, "files_searched": 3, "files_matched": 2,
                "matches": [
                    {"file": "a.txt", "matches": [
                        {"line_number": 2, "column": 1, "line": "Hello world", "context": []},
                        {"line_number": 4, "column": 1, "line": "hello again", "context": []},
                    ]},
                    {"file": "b.rs", "matches": [
                        {"line_number": 1, "column": 4, "line": "fn hello() {}", "context": []},
                    ]},
                ],
            })
        );
        let nothing = json!({"root_path": "", "pattern": "nowhere"});
        let found = files.ok("search", nothing).await;
        assert_eq!(found["total_matches"], 0);
        assert_eq!(found["matches"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn files_search_case_and_regex() {
    Files::both(searched_tree, async |files| {
        let total = async |more: Value| {
            let mut arguments = json!({"root_path": ""});
            let object = arguments.as_object_mut().expect("an object");
            object.extend(more.as_object().expect("an object").clone());
            files.ok("search", arguments).await["total_matches"].clone()
        };
        assert_eq!(total(json!({"pattern": "HELLO"})).await, 3);
        let exact = json!({"pattern": "Hello", "case_sensitive": true});
        assert_eq!(total(exact).await, 1);
        assert_eq!(total(json!({"pattern": "a.b"})).await, 1, "literal");
        assert_eq!(total(json!({"pattern": "a.b", "regex": true})).await, 2);
        assert_eq!(total(json!({"pattern": "("})).await, 1, "literal");
        let wrong = json!({"root_path": "", "pattern": "(", "regex": true});
        files.refuses("pattern", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_which_files() {
    Files::both(searched_tree, async |files| {
        let matched = async |more: Value| {
            let mut arguments = json!({"root_path": "", "pattern": "", "regex": false});
            let object = arguments.as_object_mut().expect("an object");
            object.extend(more.as_object().expect("an object").clone());
            let found = files.ok("search", arguments).await;
            each(&found["matches"], "file").join(" ")
        };
        assert_eq!(matched(json!({})).await, "a.txt b.rs sub/c.txt");
        let text = json!({"file_pattern": "*.txt"});
        assert_eq!(matched(text).await, "a.txt sub/c.txt");
        assert_eq!(matched(json!({"recursive": false})).await, "a.txt b.rs");
        assert_eq!(matched(json!({"root_path": "sub"})).await, "sub/c.txt");
        assert_eq!(matched(json!({"root_path": "b.rs"})).await, "b.rs");
        let small = json!({"max_file_size": 14});
        assert_eq!(matched(small).await, "b.rs sub/c.txt");
        let wrong = json!({"root_path": "", "pattern": "x", "file_pattern": "[a"});
        files.refuses("file_pattern", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_max_results() {
    Files::both(searched_tree, async |files| {
        let search = |max: u64| json!({"root_path": "", "pattern": "hello", "max_results": max});
        let found = files.ok("search", search(2)).await;
        assert_eq!(found["total_matches"], 2);
        assert_eq!(found["files_matched"], 1);
        assert_eq!(found["truncated"], true);
        assert!(
            files
                .ok("search", search(3))
                .await
                .get("truncated")
                .is_none()
        );
        files.refuses("max_results", "search", search(0)).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_context() {
    Files::both(searched_tree, async |files| {
        let arguments = json!({"root_path": "a.txt", "pattern": "world", "context_lines": 1});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found["matches"][0]["matches"][0]["context"],
            json!([
                {"line_number": 1, "content": "zero"},
                {"line_number": 2, "content": "Hello world"},
                {"line_number": 3, "content": "two"},
            ])
        );
        let arguments = json!({"root_path": "b.rs", "pattern": "fn", "context_lines": 5});
        let found = files.ok("search", arguments).await;
        assert_eq!(
            found["matches"][0]["matches"][0]["context"],
            json!([{"line_number": 1, "content": "fn hello() {}"}])
        );
        let wrong = json!({"root_path": "", "pattern": "x", "context_lines": -1});
        files.refuses("context_lines", "search", wrong).await;
    })
    .await;
}

#[tokio::test]
async fn files_search_errors() {
    Files::both(searched_tree, async |files| {
        for (path, code) in [("no", "not_found"), ("..", "path_validation_error")] {
            let arguments = json!({"root_path": path, "pattern": "x"});
            let error = files.fails(code, "search", arguments).await;
            assert_eq!(error["details"]["path"], path);
        }
    })
    .await;
}

#[tokio::test]
async fn files_search_counts_what_was_too_large() {
    let tree = || {
        Tree::new()
            .file("large", "x".repeat(100))
            .file("small", "x")
    };
    Files::both(tree, async |files| {
        let arguments = json!({"root_path": ".", "pattern": "x", "max_file_size": 50});
        let found = files.ok("search", arguments).await;
        assert_eq!(found["total_matches"], 1);
        assert_eq!(found["files_too_large"], 1);
        let found = files
            .ok("search", json!({"root_path": ".", "pattern": "x"}))
            .await;
        assert_eq!(found.get("files_too_large"), None);
    })
    .await;
}

#[tokio::test]
async fn files_search_shows_the_piece_around_a_match() {
    let far = format!("{}needle\n", "x".repeat(10_000));
    let long = format!("{}y\nxx\n", "x".repeat(3 << 20));
    Files::both(
        || Tree::new().file("far", &far).file("long", &long),
        async |files| {
            let found = files
                .ok("search", json!({"root_path": "", "pattern": "needle"}))
                .await;
            let only = &found["matches"][0]["matches"][0];
            assert_eq!(only["column"], 10_001);
            assert_eq!(only["line_truncated"], true);
            assert!(
                only["line"].as_str().expect("text").ends_with("xneedle"),
                "{only}"
            );
            let arguments = json!({"root_path": "long", "pattern": "x$", "regex": true});
            let ends = files.ok("search", arguments).await;
            assert_eq!(ends["total_matches"], 1, "{ends}");
            assert_eq!(ends["lines_in_parts"], 1, "{ends}");
        },
    )
    .await;
}
