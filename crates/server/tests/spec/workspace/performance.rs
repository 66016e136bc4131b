//! Bounds on memory, time and results. Benchmarks measure the speed.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, each};

/// SHA-256 of 50 MiB as [`Tree::big`] makes them.
const BIG: &str = "0d5285014d5afe24fda5ad9a7edd74cc3861b77acc57ccee48fe0404771105a0";

fn many(count: usize) -> Tree {
    (0..count).fold(Tree::new().dir("big"), |tree, n| {
        tree.file(format!("big/f{n:05}"), "")
    })
}

/// A tree that takes far longer than a second to search: one long file under thousands of names.
fn endless() -> Tree {
    let tree = Tree::new()
        .file("a.txt", "needle\n")
        .file("big/0", "nothing of interest\n".repeat(1 << 20));
    (1..4000).fold(tree, |tree, n| tree.hard_link(format!("big/{n}"), "big/0"))
}

#[tokio::test]
async fn workspace_e2e_077_a_large_folder() {
    Workspace::both(
        || many(1500),
        async |workspace| {
            let listed = workspace.ok("list_folder", json!({"path": "big"})).await;
            assert_eq!(listed["count"], 1500);
            let names = each(&listed["entries"], "name");
            assert_eq!(names.len(), 1500);
            assert_eq!(names[0], "f00000");
            assert_eq!(names[1499], "f01499");
            assert!(names.is_sorted());
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_078_hash_a_large_file() {
    Workspace::both(
        || Tree::new().big("large.bin", 50 << 20),
        async |workspace| {
            workspace
                .ok("stat_file", json!({"path": "large.bin"}))
                .await;
            let before = workspace.server.memory().peak;
            let hash = json!({"path": "large.bin", "algorithm": "sha256"});
            let hashed = workspace.ok("hash_file", hash).await;
            assert_eq!(hashed["hash"], json!(BIG));
            assert_eq!(hashed["size"], json!(50 << 20));
            let grown = workspace.server.memory().peak - before;
            assert!(grown < 16 << 20, "memory grew by {grown} bytes");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_079_a_search_that_takes_too_long() {
    Workspace::both(endless, async |workspace| {
        let search = json!({"pattern": "n[eo]+dle", "timeout_seconds": 1});
        let found = workspace.ok("grep", search).await;
        assert_eq!(found["timed_out"], true);
        assert_eq!(
            each(&found["matches"], "file"),
            ["a.txt"],
            "what was found so far"
        );
        assert!(found["files_searched"].as_u64().unwrap() < 4000, "{found}");
    })
    .await;
}

#[tokio::test]
async fn workspace_a_search_takes_no_longer_than_the_operator_lets_it() {
    testkit::over_both(async |transport| {
        let tree = endless();
        let setup = Workspace::setup(&tree).set("limits.search_timeout", 1);
        let server = setup.start(transport).await;
        let search = json!({"root": "workspace", "pattern": "n[eo]+dle", "timeout_seconds": 3600});
        let outcome = server.call("grep", search).await;
        assert_eq!(outcome.ok()["timed_out"], true);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_001_just_under_a_megabyte_is_read_whole() {
    let text = "0123456789abcde\n".repeat((1 << 16) - 1);
    Workspace::both(
        || Tree::new().file("f", &text),
        async |workspace| {
            assert_eq!(workspace.read("f").await, text);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_002_ten_thousand_entries() {
    Workspace::both(
        || many(10_000),
        async |workspace| {
            let listed = workspace.ok("list_folder", json!({"path": "big"})).await;
            assert_eq!(listed["count"], 10_000);
            assert_eq!(listed["entries"].as_array().unwrap().len(), 10_000);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_003_memory_does_not_grow_with_a_file() {
    Workspace::both(
        || Tree::new().sparse("huge", 48 << 20),
        async |workspace| {
            workspace.ok("stat_file", json!({"path": "huge"})).await;
            let before = workspace.server.memory().peak;
            for algorithm in ["md5", "sha1", "sha256"] {
                workspace
                    .ok("hash_file", json!({"path": "huge", "algorithm": algorithm}))
                    .await;
            }
            let part = json!({"path": "huge", "offset_bytes": 40 << 20, "limit_bytes": 10});
            workspace.ok("read_file", part).await;
            workspace
                .ok("copy", json!({"source_path": "huge", "dest_path": "copy"}))
                .await;
            let grown = workspace.server.memory().peak - before;
            assert!(grown < 24 << 20, "memory grew by {grown} bytes");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_004_the_default_timeout_is_told_and_bounded() {
    Workspace::both(
        || Tree::new().file("f", ""),
        async |workspace| {
            let tools = workspace.server.list_tools().await;
            for name in ["grep", "glob"] {
                let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
                let timeout = &tool["inputSchema"]["properties"]["timeout_seconds"];
                assert_eq!(timeout["default"], 300, "{timeout}");
                assert_eq!(timeout["minimum"], 1, "{timeout}");
                let never = json!({"pattern": "x", "timeout_seconds": 0});
                workspace.fails("invalid_arguments", name, never).await;
            }
            let found = workspace
                .ok("glob", json!({"pattern": "*", "timeout_seconds": 1}))
                .await;
            assert_eq!(found["timed_out"], false);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_004_other_calls_have_a_deadline_too() {
    let tree = || Tree::new().sparse("endless", 1 << 40);
    Workspace::both_with(
        tree,
        |setup| setup.set("limits.request_timeout", 1),
        async |workspace| {
            let hash = json!({"path": "endless", "algorithm": "sha256"});
            workspace.fails("timeout", "hash_file", hash).await;
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_005_fifty_calls_at_once() {
    let tree = || {
        (0..50).fold(Tree::new(), |tree, n| {
            tree.file(format!("f{n}"), format!("{n}"))
        })
    };
    Workspace::both(tree, async |workspace| {
        let arguments = |n| json!({"root": "workspace", "path": format!("f{n}")});
        let outcomes = workspace
            .server
            .call_all("read_file", (0..50).map(arguments).collect())
            .await;
        for (n, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.ok()["content"], n.to_string());
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_005_long_searches_do_not_hold_up_reads() {
    Workspace::both(endless, async |workspace| {
        let search = json!({"root": "workspace", "pattern": "n[eo]+dle", "timeout_seconds": 20});
        let searches: Vec<_> = (0..20)
            .map(|_| workspace.server.spawn_call("grep", search.clone()))
            .collect();
        for _ in 0..5 {
            assert_eq!(workspace.read("a.txt").await, "needle\n");
        }
        assert!(
            searches.iter().all(|search| !search.is_finished()),
            "the reads waited for a search"
        );
        searches.iter().for_each(tokio::task::JoinHandle::abort);
    })
    .await;
}
