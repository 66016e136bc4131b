//! When what is cached is not good enough any more, and how long a call waits.

use std::sync::Arc;
use std::time::Duration;

use testkit::{Setup, json};
use tokio::sync::Notify;

use super::set::{Agent, Guide, PLAIN, REVISIONS, asked, marked, sampled, text_in, tree};
use crate::harness::{Harness, ToolSet};

#[tokio::test]
async fn a_listing_throws_out_what_it_does_not_have_as_it_is_cached() {
    let fresh = || Agent::saying("fresh");
    asked(PLAIN, fresh, async |guide, agent| {
        for name in ["same", "gone", "larger", "older"] {
            let metadata = json!({"mtime": 10});
            let file = json!({"path": format!("docs/{name}"), "content": "abc", "metadata": metadata});
            guide.data("guide_cache_file", file).await;
        }
        let entry = |name: &str, size: u64, mtime: u64| json!({"name": name, "type": "file", "size": size, "mtime": mtime});
        let entries = json!([entry("same", 3, 10), entry("larger", 4, 10), entry("older", 3, 9)]);
        let listing = json!({"path": "docs", "entries": entries});
        let data = guide.data("guide_list_directory", listing).await;
        let expected = json!(["docs/gone", "docs/larger", "docs/older"]);
        assert_eq!(data["invalidated"], expected);
        assert_eq!(guide.content("docs/same").await, "abc");
        assert!(agent.prompts().is_empty());
        assert_eq!(guide.content("docs/older").await, "fresh");
    })
    .await;
}

#[tokio::test]
async fn what_came_without_a_time_is_asked_for_again() {
    let soon = |setup: Setup| setup.set("guide.recheck", 1);
    let agent = || {
        Agent::new(|prompt| {
            let is_file = prompt.contains("Read the file");
            Ok(if is_file { "fresh" } else { "[]" }.to_owned())
        })
    };
    asked(soon, agent, async |guide, agent| {
        guide.cache("docs/a", "old").await;
        let timed = json!({"path": "docs/timed", "content": "old", "metadata": {"mtime": 10}});
        guide.data("guide_cache_file", timed).await;
        let listing = json!({"path": "src", "entries": [{"name": "x", "type": "file"}]});
        guide.data("guide_list_directory", listing).await;
        let data = guide
            .data("guide_request_file", json!({"path": "docs/a"}))
            .await;
        assert_eq!(data["content"], "old");
        assert_eq!(data["age_seconds"], 0);
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(guide.content("docs/a").await, "fresh");
        let data = guide
            .data("guide_request_file", json!({"path": "docs/timed"}))
            .await;
        assert_eq!(data["content"], "old", "its time is known");
        assert_eq!(data["age_seconds"], 1);
        let data = guide
            .data("guide_request_directory", json!({"path": "src"}))
            .await;
        assert_eq!(data["file_count"], 0);
        assert_eq!(data["source"], "client");
        assert_eq!(agent.prompts().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_keeps_what_it_handed_over() {
    let soon = |setup: Setup| setup.set("guide.recheck", 1);
    Guide::both_with(tree, soon, async |guide| {
        guide.cache("docs/a", "old").await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let reply = guide
            .ok("guide_request_file", json!({"path": "docs/a"}))
            .await;
        assert_eq!(reply["data"]["content"], "old");
        let warning = reply["warnings"][0].as_str().expect("a warning");
        assert!(warning.contains("1 seconds ago without mtime"), "{warning}");
        let refresh = json!({"path": "docs/a", "refresh": true});
        guide
            .fails("unsupported", "guide_request_file", refresh)
            .await;
    })
    .await;
}

#[tokio::test]
async fn hash_and_size_are_those_of_the_bytes() {
    // "é" in Latin-1 is the byte e9.
    let hash = "de2e331d891ae267a7009cb45b4e8830f170e0c937288ea2731a1941c7a53b0d";
    Guide::both(tree, async |guide| {
        let metadata = json!({"encoding": "latin-1", "size": 1});
        let file = json!({"path": "docs/a", "content": "é", "metadata": metadata});
        let reply = guide.ok("guide_cache_file", file).await;
        assert!(reply.get("warnings").is_none(), "{reply}");
        assert_eq!(reply["data"]["metadata"]["size"], 1);
        assert_eq!(reply["data"]["content_hash"], hash);
        let bytes = json!({"path": "docs/b", "content": "6Q==", "binary": true});
        let same = guide.data("guide_cache_file", bytes).await;
        assert_eq!(reply["data"]["content_hash"], same["content_hash"]);
        // The hash of the file's bytes is what an upload is compared with.
        let upload = json!({"path": "docs/c", "content": "é", "encoding": "latin-1", "content_hash": same["content_hash"]});
        let upload = guide.data("guide_read_file", upload).await;
        assert_eq!(upload["hash_verified"], true);
        assert_eq!(upload["content_hash"], same["content_hash"]);
        // Nobody can say whether this file begins with a byte order mark.
        let metadata = json!({"encoding": "utf-16le"});
        let file = json!({"path": "docs/d", "content": "é", "metadata": metadata});
        let reply = guide.ok("guide_cache_file", file).await;
        let warning = reply["warnings"][0].as_str().expect("a warning");
        assert!(warning.contains("utf-16le are not known"), "{warning}");
    })
    .await;
}

#[tokio::test]
async fn a_client_hears_that_its_call_still_waits() {
    testkit::over_both(async |transport| {
        let go = Arc::new(Notify::new());
        let (wait, tree) = (Arc::clone(&go), tree());
        let server = Guide::setup(&tree)
            .sampling_later(move |params| {
                let wait = Arc::clone(&wait);
                async move {
                    wait.notified().await;
                    Ok(sampled(&marked(&params, "late")))
                }
            })
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let call = guide
            .server
            .spawn_call("guide_request_file", json!({"path": "docs/a"}));
        for _ in 0..200 {
            if !guide.server.progress().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        go.notify_one();
        let outcome = call.await.expect("the call's task ends");
        assert_eq!(outcome.ok()["data"]["content"], "late");
        let progress = guide.server.progress();
        assert!(progress[0]["progress"].as_f64() > Some(0.0), "{progress:?}");
    })
    .await;
}

#[tokio::test]
async fn agents_have_fifty_seconds_by_default() {
    let tree = tree();
    let ended = Guide::setup(&tree).arguments(["settings"]).run().await;
    let line = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("| `guide.sampling_timeout`"));
    assert!(line.is_some_and(|line| line.contains("50")), "{ended:?}");
}

#[tokio::test]
async fn only_configured_paths_are_warned_of() {
    for revision in REVISIONS {
        let settings = |setup: Setup| setup.revision(revision.clone());
        Guide::both_with(tree, settings, async |guide| {
            // A violation is logged after everything that is said at the start.
            let outside = json!({"path": "secret"});
            let error = guide.fails("security", "guide_request_file", outside).await;
            assert!(text_in(&error, "error").contains("secret"));
            guide
                .server
                .logged(|line| line["message"] == "violation")
                .await;
            let warned = guide.server.stderr();
            let warned = warned.iter().filter(|line| line.contains("does not exist"));
            assert_eq!(warned.count(), 0, "the usual paths need not be there");
        })
        .await;
    }
}
