//! What the cache keeps, for how long, and what it counts.

use std::time::Duration;

use testkit::{Setup, json};

use super::set::{Agent, Guide, PLAIN, asked, tree};
use crate::harness::ToolSet;

#[tokio::test]
async fn guide_bridge_14_cache_file_content() {
    Guide::both(tree, async |guide| {
        let metadata = json!({"mtime": 5, "encoding": "utf-8", "size": 3});
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": metadata});
        let data = guide.data("guide_cache_file", arguments).await;
        assert_eq!(data["cache_key"], "docs/a");
        let read = guide
            .data("guide_request_file", json!({"path": "docs/a"}))
            .await;
        let metadata = &read["metadata"];
        assert_eq!(metadata["mtime"], 5.0);
        assert_eq!(metadata["encoding"], "utf-8");
        assert_eq!(metadata["size"], 3);
        let cache = &read["cache"];
        assert_eq!(cache["entries"], 1);
        assert_eq!(cache["bytes"], 3);
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_15_cache_hit() {
    let short = |setup: Setup| setup.set("guide.cache_ttl", 1);
    asked(
        short,
        || Agent::saying("asked"),
        async |guide, agent| {
            guide.cache("docs/a", "handed").await;
            assert_eq!(guide.content("docs/a").await, "handed");
            assert_eq!(guide.cache_figures().await["hits"], 1);
            assert!(agent.prompts().is_empty());
            tokio::time::sleep(Duration::from_millis(1100)).await;
            assert_eq!(
                guide.content("docs/a").await,
                "asked",
                "the entry has expired"
            );
            assert_eq!(guide.cache_figures().await["expirations"], 1);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_16_cache_miss() {
    asked(
        PLAIN,
        || Agent::saying("asked"),
        async |guide, agent| {
            for _ in 0..3 {
                assert_eq!(guide.content("docs/a").await, "asked");
            }
            let figures = guide.cache_figures().await;
            assert_eq!(figures["misses"], 1);
            assert_eq!(figures["hits"], 2);
            assert_eq!(agent.prompts().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_17_cache_invalidation_by_modification_time() {
    asked(
        PLAIN,
        || Agent::saying("fresh"),
        async |guide, agent| {
            let old = json!({"path": "docs/a", "content": "old", "metadata": {"mtime": 10}});
            guide.data("guide_cache_file", old).await;
            let same = json!({"path": "docs/a", "mtime": 10});
            assert_eq!(
                guide.data("guide_request_file", same).await["content"],
                "old"
            );
            let newer = json!({"path": "docs/a", "mtime": 11});
            let data = guide.data("guide_request_file", newer.clone()).await;
            assert_eq!(data["content"], "fresh");
            assert_eq!(data["metadata"]["mtime"], 11.0);
            assert_eq!(data["cache"]["invalidations"], 1);
            let again = guide.data("guide_request_file", newer).await;
            assert_eq!(again["source"], "cache");
            assert_eq!(agent.prompts().len(), 1);
            let refresh = json!({"path": "docs/a", "refresh": true});
            let refreshed = guide.data("guide_request_file", refresh).await;
            assert_eq!(refreshed["source"], "client");
            assert_eq!(agent.prompts().len(), 2);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_18_cache_size_management() {
    let small = |setup: Setup| setup.set("guide.cache_size", 100);
    Guide::both_with(tree, small, async |guide| {
        for number in 0..20 {
            let data = guide
                .cache(&format!("docs/{number}"), &"x".repeat(10))
                .await;
            assert!(data["cache"]["bytes"].as_u64().unwrap() <= 100, "{data}");
        }
        let figures = guide.cache_figures().await;
        assert_eq!(figures["entries"], 10);
        assert_eq!(figures["evictions"], 10);
        assert!(guide.holds("docs/19").await && !guide.holds("docs/9").await);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_26_cache_synchronization() {
    asked(
        |setup| setup.set("guide.cache_size", 10),
        || Agent::saying("asked"),
        async |guide, agent| {
            guide.cache("docs/a", "handed").await;
            assert_eq!(guide.content("docs/a").await, "handed");
            assert!(
                agent.prompts().is_empty(),
                "the bridge has what the tool stored"
            );
            guide.cache("docs/b", "0123456789").await;
            assert_eq!(
                guide.content("docs/a").await,
                "asked",
                "the tool's file pushed it out"
            );
            let figures = guide.cache_figures().await;
            assert_eq!(figures["hits"], 1);
            assert_eq!(figures["misses"], 1);
            assert_eq!(figures["evictions"], 2);
        },
    )
    .await;
}

#[tokio::test]
async fn what_the_agent_does_not_have_any_more_goes() {
    asked(
        PLAIN,
        || {
            Agent::new(|prompt| {
                Ok(match prompt.contains("Read the file") {
                    true => "File not found: \"docs/a\"".to_owned(),
                    false => "Directory not found: \"docs/sub\"".to_owned(),
                })
            })
        },
        async |guide, agent| {
            guide.cache("docs/a", "old").await;
            let sub = json!({"name": "sub", "type": "directory", "children": []});
            let file = json!({"name": "a", "type": "file"});
            let listing = json!({"path": "docs", "entries": [sub, file]});
            guide.data("guide_list_directory", listing).await;
            for (tool, path) in [
                ("guide_request_file", "docs/a"),
                ("guide_request_directory", "docs/sub"),
            ] {
                guide.data(tool, json!({"path": path})).await;
                let refresh = json!({"path": path, "refresh": true});
                guide.fails("not_found", tool, refresh).await;
                guide.fails("not_found", tool, json!({"path": path})).await;
            }
            assert_eq!(agent.prompts().len(), 4);
            assert_eq!(guide.cache_figures().await["entries"], 0);
        },
    )
    .await;
}
