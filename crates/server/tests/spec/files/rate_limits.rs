//! How many calls a client may make.

use std::time::Duration;

use testkit::{Transport, Tree, json};

use super::set::Files;
use crate::harness::{ToolSet, program};

#[tokio::test]
async fn files_rate_limited_with_a_time_to_wait() {
    let rate = json!({"per_second": 1, "burst": 2});
    Files::both_with(
        || Tree::new().file("f", "x"),
        |setup| setup.set("limits.rate", rate.clone()),
        async |files| {
            let info = || files.call("info", json!({"path": "f"}));
            info().await.ok();
            info().await.ok();
            let mut refused = None;
            for _ in 0..3 {
                let outcome = info().await;
                if outcome.is_error {
                    refused = Some(outcome.error()["error"].clone());
                    break;
                }
            }
            let error = refused.expect("the third to fifth call cannot all be in time");
            assert_eq!(error["code"], "rate_limited");
            let wait = error["details"]["retry_after_ms"].as_u64().expect("a time");
            assert!((1..=1001).contains(&wait), "{wait}");
            tokio::time::sleep(Duration::from_millis(wait)).await;
            info().await.ok();
        },
    )
    .await;
}

#[tokio::test]
async fn files_rate_limits_hold_for_workspace_too() {
    let tree = Tree::new();
    let setup = program()
        .root("home", tree.path())
        .set("limits.rate", json!({"per_second": 1, "burst": 1}));
    let server = setup.start(Transport::Http).await;
    server.call("list_roots", json!({})).await.ok();
    let mut codes = Vec::new();
    for _ in 0..3 {
        let outcome = server.call("list_roots", json!({})).await;
        codes.push(outcome.structured["error"]["code"].clone());
    }
    assert!(codes.contains(&json!("rate_limited")), "{codes:?}");
}
