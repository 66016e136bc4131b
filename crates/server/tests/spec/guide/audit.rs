//! What is logged and counted.

use testkit::{Setup, Transport, Value, json};

use super::set::{Guide, tree};
use crate::harness::{Harness, ToolSet};

/// Tries a path outside the allowed directories.
async fn names_a_forbidden_path(guide: &Harness<Guide>) {
    let forbidden = json!({"path": "x", "content": ""});
    guide.fails("security", "guide_cache_file", forbidden).await;
}

#[tokio::test]
async fn guide_bridge_23_operation_audit_log() {
    let trace = |setup: Setup| setup.arguments(["--log-level", "trace"]);
    Guide::both_with(tree, trace, async |guide| {
        let files = json!([{"path": "docs/a", "content": "x"}, {"path": "docs/b", "content": "y"}]);
        guide
            .data("guide_cache_file", json!({"files": files}))
            .await;
        guide.content("docs/a").await;
        for (operation, path) in [
            ("guide_cache_file", "docs/a"),
            ("guide_cache_file", "docs/b"),
            ("guide_request_file", "docs/a"),
        ] {
            let is_it = |line: &Value| {
                line["operation"] == operation && line["path"] == path && line["result"] == "ok"
            };
            let line = guide.server.logged(is_it).await;
            assert_eq!(line["level"], "TRACE");
            assert!(
                line["timestamp"].is_string() && line["client"].is_string(),
                "{line}"
            );
        }
        names_a_forbidden_path(guide).await;
        let line = guide
            .server
            .logged(|line| line["message"] == "violation")
            .await;
        assert_eq!(line["level"], "WARN");
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_24_security_violation_logging() {
    Guide::both(tree, async |guide| {
        for number in 1..=3 {
            let path = format!("../{number}");
            guide
                .fails("security", "guide_request_file", json!({"path": path}))
                .await;
            let line = guide
                .server
                .logged(|line| line["attempted_path"] == *path)
                .await;
            assert_eq!(line["violation"], "traversal");
            assert_eq!(line["client_violations"], json!(number));
            assert_eq!(line["tool"], "guide_request_file");
            assert_eq!(line["level"], "WARN");
            assert!(
                line["client"].as_str().unwrap().contains("testkit")
                    || guide.transport() == Transport::Http,
                "{line}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_24_audit_logging_for_all_operations() {
    let trace = |setup: Setup| setup.arguments(["--log-level", "trace"]);
    Guide::both_with(tree, trace, async |guide| {
        let secret = "the content itself";
        guide.cache("docs/a", secret).await;
        guide
            .fails("validation", "guide_cache_file", json!({"path": "docs/a"}))
            .await;
        let call = guide
            .server
            .logged(|line| line["tool"] == "guide_cache_file" && line["outcome"] == "ok")
            .await;
        assert!(
            call["timestamp"].is_string() && call["client"].is_string(),
            "{call}"
        );
        assert_eq!(call["path"], "docs/a");
        let failed = guide.server.logged(|line| line["outcome"] == "error").await;
        assert_eq!(failed["error_code"], "validation");
        let ours = guide.server.stderr();
        let ours = ours
            .iter()
            .filter(|line| line.contains("\"operation\"") || line.contains("\"tool\""));
        assert!(ours.clone().count() >= 3);
        assert!(
            ours.into_iter().all(|line| !line.contains(secret)),
            "contents are not logged"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_25_rate_limiting_consideration() {
    Guide::both(tree, async |guide| {
        let calls =
            (0..120).map(|number| json!({"path": format!("docs/{number}"), "content": "x"}));
        guide
            .server
            .call_all("guide_cache_file", calls.collect())
            .await;
        let line = guide
            .server
            .logged(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("unusual"))
            })
            .await;
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["calls"], 101);
        names_a_forbidden_path(guide).await;
        let data = guide.data("guide_cache_stats", json!({})).await;
        let client = &data["clients"][0];
        assert_eq!(client["is_you"], true);
        assert_eq!(client["calls"], 122);
        assert_eq!(client["violations"], 1);
        assert_eq!(data["violations"], 1);
        assert!(client["recent_calls"].as_u64().unwrap() > 0, "{client}");
    })
    .await;
}
