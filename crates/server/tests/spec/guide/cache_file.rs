//! `guide_cache_file`.

use testkit::{Setup, json};

use super::set::{Guide, PLAIN, text_in, tree};
use crate::harness::ToolSet;

/// SHA-256 of "# Plan\n".
pub(super) const PLAN_HASH: &str =
    "c3964bb3b70a957ec9b233c7dd3653f6ba17701ab00facf88ae1393dc6155577";

#[tokio::test]
async fn guide_tools_01_cache_single_file() {
    Guide::both(tree, async |guide| {
        let reply = guide
            .ok(
                "guide_cache_file",
                json!({"path": "./docs//plan.md", "content": "# Plan\n"}),
            )
            .await;
        let data = &reply["data"];
        assert_eq!(data["cache_key"], "docs/plan.md");
        assert_eq!(data["status"], "cached");
        assert_eq!(data["content_hash"], json!(PLAN_HASH));
        let metadata = &data["metadata"];
        assert_eq!(metadata["size"], 7);
        assert_eq!(metadata["encoding"], "utf-8");
        assert!(
            metadata["cached_at"].as_str().unwrap().ends_with('Z'),
            "{metadata}"
        );
        assert_eq!(guide.content("docs/plan.md").await, "# Plan\n");
        // The files are the agent's: nothing was written.
        assert!(!guide.tree().has("docs/plan.md"));
    })
    .await;
}

#[tokio::test]
async fn guide_tools_02_cache_with_metadata() {
    Guide::both(tree, async |guide| {
        let metadata = json!({"mtime": 1000.5, "encoding": "latin-1", "size": 3});
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": metadata});
        let data = guide.data("guide_cache_file", arguments).await;
        assert_eq!(data["metadata"]["mtime"], 1000.5);
        assert_eq!(data["metadata"]["encoding"], "windows-1252");
        let asked = json!({"path": "docs/a", "mtime": 1000.5});
        assert_eq!(
            guide.data("guide_request_file", asked).await["content"],
            "abc"
        );
        let newer = json!({"path": "docs/a", "mtime": 1001});
        guide
            .fails("unsupported", "guide_request_file", newer)
            .await;
        assert_eq!(guide.cache_figures().await["invalidations"], 1);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_03_security_policy_violation() {
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "secret/keys", "content": "x"});
        let error = guide.fails("security", "guide_cache_file", arguments).await;
        let message = text_in(&error, "error");
        assert!(
            message.contains("secret/keys") && message.contains("allowed"),
            "{message}"
        );
        let line = guide
            .server
            .logged(|line| line["message"] == "violation")
            .await;
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["attempted_path"], "secret/keys");
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_04_overwrite_existing_cache_entry() {
    Guide::both(tree, async |guide| {
        let first = guide.cache("docs/a", "one").await;
        let second = guide.cache("docs/a", "two").await;
        assert_eq!(first["status"], "cached");
        assert_eq!(second["status"], "updated");
        assert_eq!(second["cache"]["updates"], 1);
        let times = [&first, &second]
            .map(|data| data["metadata"]["cached_at"].as_str().unwrap().to_owned());
        assert!(times[0] <= times[1], "{times:?}");
        assert_eq!(guide.content("docs/a").await, "two");
    })
    .await;
}

#[tokio::test]
async fn guide_tools_05_cache_size_limit_exceeded() {
    let small = |setup: Setup| setup.set("guide.cache_size", 25);
    Guide::both_with(tree, small, async |guide| {
        for path in ["docs/a", "docs/b"] {
            guide.cache(path, "0123456789").await;
        }
        // Using the first makes the second the least recently used.
        guide.content("docs/a").await;
        let arguments = json!({"path": "docs/c", "content": "0123456789"});
        let reply = guide.ok("guide_cache_file", arguments).await;
        assert_eq!(reply["data"]["evicted"], json!({"entries": 1, "bytes": 10}));
        assert_eq!(reply["data"]["cache"]["evictions"], 1);
        assert!(
            reply["warnings"][0].as_str().unwrap().contains("full"),
            "{reply}"
        );
        assert!(guide.holds("docs/a").await && !guide.holds("docs/b").await);
        let large = json!({"path": "docs/d", "content": "x".repeat(26)});
        guide.fails("validation", "guide_cache_file", large).await;
        assert!(
            guide.holds("docs/c").await,
            "nothing went for what cannot fit"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_25_guide_cache_file_tool() {
    Guide::both(tree, async |guide| {
        let data = guide.cache("docs/a", "x").await;
        assert_eq!(data["cache"]["entries"], 1);
        assert_eq!(data["cache"]["bytes"], 1);
        let invalid = json!({"path": "/home/user/.ssh/id_rsa", "content": "x"});
        guide.fails("security", "guide_cache_file", invalid).await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_26_batch_file_caching() {
    Guide::both(tree, async |guide| {
        let files = |paths: &[&str]| {
            let files = paths
                .iter()
                .map(|path| json!({"path": path, "content": "new"}));
            json!({"files": files.collect::<Vec<_>>()})
        };
        guide.cache("docs/a", "old").await;
        for last in ["../b", "docs/\n", "secret"] {
            let call = guide
                .call("guide_cache_file", files(&["docs/a", "docs/c", last]))
                .await;
            assert!(call.is_error, "{}", call.story());
        }
        assert_eq!(
            guide.content("docs/a").await,
            "old",
            "nothing of a refused batch is stored"
        );
        assert!(!guide.holds("docs/c").await);
        let data = guide
            .data("guide_cache_file", files(&["docs/a", "docs/b", "src/c"]))
            .await;
        assert_eq!(data["file_count"], 3);
        assert_eq!(data["total_size"], 9);
        let statuses = data["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| &file["status"]);
        assert_eq!(
            statuses.collect::<Vec<_>>(),
            ["updated", "cached", "cached"]
        );
    })
    .await;
}

#[tokio::test]
async fn content_needs_the_path_of_a_file() {
    Guide::both(tree, async |guide| {
        for path in ["docs/", "docs/a/", "docs/a/."] {
            for tool in ["guide_cache_file", "guide_read_file"] {
                let file = json!({"path": path, "content": "x"});
                let error = guide.fails("validation", tool, file).await;
                let message = text_in(&error, "error");
                assert!(message.contains("the path of a file"), "{message}");
            }
        }
        let files =
            json!([{"path": "docs/a", "content": "x"}, {"path": "docs/b/", "content": "x"}]);
        let batch = json!({"files": files});
        guide.fails("validation", "guide_cache_file", batch).await;
        assert_eq!(guide.cache_figures().await["entries"], 0);
        let listing = json!({"path": "docs/", "entries": []});
        guide.data("guide_list_directory", listing).await;
    })
    .await;
}

#[tokio::test]
async fn nothing_at_all_names_both_ways_to_cache() {
    Guide::both_with(tree, PLAIN, async |guide| {
        let error = guide
            .fails("validation", "guide_cache_file", json!({}))
            .await;
        let message = text_in(&error, "error");
        assert!(message.contains("path and content, or files"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn thirty_two_clients_write_at_once_and_the_figures_add_up() {
    let small = |setup: Setup| setup.set("guide.cache_size", 1000);
    Guide::both_with(tree, small, async |guide| {
        let calls = (0..32 * 8).map(|number| {
            json!({"path": format!("docs/{}", number % 40), "content": "x".repeat(number % 100)})
        });
        let outcomes = guide
            .server
            .call_all("guide_cache_file", calls.collect())
            .await;
        for outcome in &outcomes {
            assert!(outcome.ok()["data"]["cache"]["bytes"].as_u64().unwrap() <= 1000);
        }
        let figures = guide.cache_figures().await;
        let number = |key: &str| figures[key].as_u64().unwrap();
        let inserted = outcomes
            .iter()
            .filter(|outcome| outcome.ok()["data"]["status"] == "cached");
        assert_eq!(
            inserted.count() as u64,
            number("entries") + number("evictions")
        );
        let updated = outcomes
            .iter()
            .filter(|outcome| outcome.ok()["data"]["status"] == "updated");
        assert_eq!(updated.count() as u64, number("updates"));
    })
    .await;
}
