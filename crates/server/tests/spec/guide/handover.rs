//! Content that the agent hands over by tool while it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::{Outcome, ProtocolVersion, Transport, Value, json};
use tokio::sync::Notify;

use super::set::{Guide, REVISIONS, marked, sampled, text_in, tree};
use crate::harness::{Harness, ToolSet};

/// A server whose client notifies when it is asked, and answers when it is notified.
async fn reluctant(
    revision: &ProtocolVersion,
    transport: Transport,
    answer: &str,
) -> (Harness<Guide>, Arc<Notify>, Arc<Notify>) {
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tree, answer) = (tree(), answer.to_owned());
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go));
    // Longer than a test waits, so that only an answer or a handover ends a call.
    let server = Guide::setup(&tree)
        .set("guide.sampling_timeout", 600)
        .revision(revision.clone())
        .sampling_later(move |_| {
            let (tell, wait, answer) = (Arc::clone(&tell), Arc::clone(&wait), answer.clone());
            async move {
                tell.notify_one();
                wait.notified().await;
                Ok(sampled(&answer))
            }
        })
        .start(transport)
        .await;
    (Harness::<Guide>::new(server, vec![tree]), asked, go)
}

#[tokio::test]
async fn content_handed_over_by_tool_while_pending_is_the_answer() {
    for revision in REVISIONS {
        for tool in ["guide_cache_file", "guide_read_file"] {
            testkit::over_both(async |transport| {
                let (guide, asked, go) = reluctant(&revision, transport, "I have cached it.").await;
                let request = guide.data("guide_request_file", json!({"path": "docs/a"}));
                let handover = async {
                    asked.notified().await;
                    guide
                        .data(tool, json!({"path": "docs/a", "content": "by tool"}))
                        .await;
                    go.notify_one();
                };
                let (data, ()) = tokio::join!(request, handover);
                assert_eq!(data["content"], "by tool");
                assert_eq!(data["source"], "handover");
                assert_eq!(data["cache"]["entries"], 1);
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_listing_handed_over_by_tool_while_pending_is_the_answer() {
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let (guide, asked, go) = reluctant(&revision, transport, "Done.").await;
            let request = guide.data("guide_request_directory", json!({"path": "docs"}));
            let handover = async {
                asked.notified().await;
                let listing = json!({"path": "docs", "entries": [{"name": "a", "type": "file"}]});
                guide.data("guide_list_directory", listing).await;
                go.notify_one();
            };
            let (data, ()) = tokio::join!(request, handover);
            assert_eq!(data["file_count"], 1);
            assert_eq!(data["source"], "handover");
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_hands_over_need_not_answer_at_all() {
    testkit::over_both(async |transport| {
        let (guide, asked, _) = reluctant(&ProtocolVersion::V_2025_11_25, transport, "").await;
        let request = guide.data(
            "guide_request_file",
            json!({"path": "docs/a", "refresh": true}),
        );
        let handover = async {
            asked.notified().await;
            guide.cache("docs/a", "by tool").await;
        };
        let (data, ()) = tokio::join!(request, handover);
        assert_eq!(data["content"], "by tool");
        assert_eq!(
            guide.data("guide_cache_stats", json!({})).await["questions_pending"],
            0
        );
    })
    .await;
}

#[tokio::test]
async fn other_calls_go_on_while_one_waits_for_its_client() {
    testkit::over_both(async |transport| {
        let tree = tree();
        let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go));
        let server = Guide::setup(&tree)
            .set("limits.max_concurrent_calls", 1)
            .sampling_later(move |params| {
                let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
                async move {
                    tell.notify_one();
                    wait.notified().await;
                    Ok(sampled(&marked(&params, "late")))
                }
            })
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let request = guide.data("guide_request_file", json!({"path": "docs/a"}));
        let others = async {
            asked.notified().await;
            let stats = guide.data("guide_cache_stats", json!({})).await;
            assert_eq!(stats["questions_pending"], 1);
            guide.cache("docs/b", "x").await;
            go.notify_one();
        };
        let (data, ()) = tokio::join!(request, others);
        assert_eq!(data["content"], "late");
    })
    .await;
}

#[tokio::test]
async fn a_handover_that_will_not_do_is_asked_for_once_more() {
    testkit::over_both(async |transport| {
        let (asked, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (tell, counted) = (Arc::clone(&asked), Arc::clone(&count));
        let tree = tree();
        let server = Guide::setup(&tree)
            .sampling_later(move |params| {
                let (tell, number) = (Arc::clone(&tell), counted.fetch_add(1, Ordering::SeqCst));
                async move {
                    tell.notify_one();
                    if number == 0 {
                        std::future::pending::<()>().await;
                    }
                    Ok(sampled(&marked(&params, "AP8B/g==")))
                }
            })
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let request = json!({"path": "docs/a", "binary": true});
        let request = guide.data("guide_request_file", request);
        let handover = async {
            asked.notified().await;
            // The file's bytes cannot be made from this text.
            let metadata = json!({"encoding": "utf-16le"});
            let text = json!({"path": "docs/a", "content": "text", "metadata": metadata});
            guide.data("guide_cache_file", text).await;
        };
        let (data, ()) = tokio::join!(request, handover);
        assert_eq!(data["content"], "AP8B/g==");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    })
    .await;
}

/// Calls a tool while the agent hands over the same for at most `times` questions; returns how often it was asked.
async fn handing_over(
    guide: &Harness<Guide>,
    (asked, go): (&Notify, &Notify),
    request: (&str, Value),
    handover: (&str, Value),
    times: usize,
) -> (Outcome, usize) {
    let mut count = 0;
    let agent = async {
        loop {
            asked.notified().await;
            count += 1;
            assert!(count <= 2, "asked without end");
            if count <= times {
                guide.data(handover.0, handover.1.clone()).await;
                go.notify_one();
            }
        }
    };
    let outcome = tokio::select! {
        outcome = guide.call(request.0, request.1) => outcome,
        () = agent => unreachable!("it never ends"),
    };
    (outcome, count)
}

fn flat_listing() -> (&'static str, Value) {
    let sub = json!({"name": "sub", "type": "directory"});
    (
        "guide_list_directory",
        json!({"path": "docs", "entries": [sub]}),
    )
}

fn everything_below() -> (&'static str, Value) {
    (
        "guide_request_directory",
        json!({"path": "docs", "recursive": true}),
    )
}

#[tokio::test]
async fn a_flat_listing_handed_over_twice_is_taken_with_a_warning() {
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let (guide, asked, go) = reluctant(&revision, transport, "Done.").await;
            let signs = (&*asked, &*go);
            let (request, handover) = (everything_below(), flat_listing());
            let (outcome, count) = handing_over(&guide, signs, request, handover, 2).await;
            let reply = outcome.ok();
            assert_eq!(count, 2);
            assert_eq!(reply["data"]["source"], "handover");
            let warning = reply["warnings"][0].as_str().unwrap();
            assert!(warning.contains("without their children"), "{reply}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_handover_that_is_not_what_was_asked_for_fails_after_the_second_time() {
    let filtered = json!({"path": "docs", "entries": [], "pattern": "*.md"});
    let older = json!({"path": "docs/a", "content": "old", "metadata": {"mtime": 50}});
    let cases = [
        (
            ("guide_request_directory", json!({"path": "docs"})),
            ("guide_list_directory", filtered),
            "pattern",
        ),
        (
            (
                "guide_request_file",
                json!({"path": "docs/a", "mtime": 100}),
            ),
            ("guide_cache_file", older),
            "mtime is older",
        ),
    ];
    for (revision, (request, handover, said)) in REVISIONS
        .into_iter()
        .flat_map(|revision| cases.clone().map(|case| (revision.clone(), case)))
    {
        testkit::over_both(async |transport| {
            let (guide, asked, go) = reluctant(&revision, transport, "Done.").await;
            let signs = (&*asked, &*go);
            let (request, handover) = (request.clone(), handover.clone());
            let (outcome, count) = handing_over(&guide, signs, request, handover, 2).await;
            let error = outcome.error();
            assert_eq!(count, 2);
            assert_eq!(error["error_type"], "system");
            assert!(text_in(error, "error").contains(said), "{error}");
        })
        .await;
    }
}

#[tokio::test]
async fn silence_after_a_handover_is_no_timeout() {
    testkit::over_both(async |transport| {
        let asked = Arc::new(Notify::new());
        let (tree, tell) = (tree(), Arc::clone(&asked));
        let server = Guide::setup(&tree)
            .set("guide.sampling_timeout", 2)
            .sampling_later(move |_| {
                tell.notify_one();
                std::future::pending()
            })
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let (signs, request) = ((&*asked, &Notify::new()), everything_below());
        let (outcome, _) = handing_over(&guide, signs, request, flat_listing(), 1).await;
        let entries = &outcome.ok()["data"]["entries"];
        assert_eq!(*entries, json!([{"name": "sub", "type": "directory"}]));
        let older = json!({"path": "docs/a", "content": "old", "metadata": {"mtime": 50}});
        let request = (
            "guide_request_file",
            json!({"path": "docs/a", "mtime": 100}),
        );
        let handover = ("guide_cache_file", older);
        let (outcome, _) = handing_over(&guide, signs, request, handover, 1).await;
        assert_eq!(
            outcome.error()["error_type"],
            "system",
            "{}",
            outcome.story()
        );
    })
    .await;
}
