//! What one client hands over does not exist for another: files, listings, uploads, questions, figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::rmcp::model::{CallToolRequestParams, CallToolResponse};
use testkit::{AnotherClient, Outcome, ProtocolVersion, Setup, Transport, Tree, json};
use tokio::sync::Notify;

use super::set::{Agent, Guide, REVISIONS, marked, sampled, tree};
use crate::harness::{Harness, ToolSet};

const TOKENS: [&str; 2] = ["the-token-of-client-one", "the-token-of-client-two"];

/// A server with two clients: each with a token of its own, or, without tokens, each in a session of its own.
struct TwoClients {
    one: Harness<Guide>,
    other: AnotherClient,
    _tokens: Tree,
}

async fn two_clients(
    revision: &ProtocolVersion,
    with_tokens: bool,
    settings: impl Fn(Setup) -> Setup,
    agents: [Agent; 2],
) -> TwoClients {
    let tokens = Tree::new().file("tokens", TOKENS.join("\n"));
    let tree = tree();
    let client = |setup: Setup, number: usize| {
        let setup = agents[number].answering(setup.revision(revision.clone()));
        if with_tokens {
            setup.token(TOKENS[number])
        } else {
            setup
        }
    };
    let mut setup = settings(Guide::setup(&tree));
    if with_tokens {
        let file = tokens.join("tokens");
        setup = setup.set("server.bearer_tokens_file", json!(file));
    }
    let other = client(setup.clone(), 1);
    let server = client(setup, 0).start(Transport::Http).await;
    let other = server.another_client(&other).await;
    TwoClients {
        one: Harness::new(server, vec![tree]),
        other,
        _tokens: tokens,
    }
}

/// Every way in which two clients are told apart.
fn kinds() -> [(ProtocolVersion, bool); 3] {
    let [older, newest] = REVISIONS;
    [(older.clone(), true), (older, false), (newest, true)]
}

fn data(outcome: &Outcome) -> testkit::Value {
    outcome.ok()["data"].clone()
}

#[tokio::test]
async fn clients_neither_get_nor_replace_each_others_files() {
    for (revision, with_tokens) in kinds() {
        let agents = [Agent::saying("asked of one"), Agent::saying("asked of two")];
        let two = two_clients(&revision, with_tokens, |setup| setup, agents.clone()).await;
        two.one.cache("docs/plan.md", "the plan of one").await;
        let listing = json!({"path": "docs", "entries": [{"name": "plan.md", "type": "file"}]});
        two.one.data("guide_list_directory", listing).await;
        let request = json!({"path": "docs/plan.md"});
        let read = two.other.call("guide_request_file", request.clone()).await;
        assert_eq!(data(&read)["content"], "asked of two", "{}", read.story());
        assert_eq!(data(&read)["cache"]["hits"], 0, "{}", read.story());
        let file = json!({"path": "docs/plan.md", "content": "the plan of two"});
        let stored = two.other.call("guide_cache_file", file).await;
        assert_eq!(data(&stored)["status"], "updated", "its own answer");
        // A listing without the file invalidates only the client's own.
        let empty = json!({"path": "docs", "entries": []});
        let listed = two.other.call("guide_list_directory", empty).await;
        assert_eq!(data(&listed)["invalidated"], json!(["docs/plan.md"]));
        assert_eq!(two.one.content("docs/plan.md").await, "the plan of one");
        let listed = two
            .one
            .data("guide_request_directory", json!({"path": "docs"}));
        assert_eq!(listed.await["file_count"], 1);
        assert!(
            agents[0].prompts().is_empty(),
            "it has everything it asked for"
        );
        // Figures are a client's own, too.
        let stats = two.other.call("guide_cache_stats", json!({})).await;
        let stats = data(&stats);
        assert_eq!(stats["cache"]["entries"], 1, "its empty listing");
        assert_eq!(
            stats["clients"].as_array().map(Vec::len),
            Some(1),
            "{stats}"
        );
        assert_eq!(stats["clients"][0]["is_you"], true);
    }
}

#[tokio::test]
async fn uploads_of_two_clients_do_not_mix() {
    for (revision, with_tokens) in kinds() {
        let agents = [Agent::saying("x"), Agent::saying("x")];
        let two = two_clients(&revision, with_tokens, |setup| setup, agents).await;
        let chunk = |index: u32, content: &str| json!({"path": "docs/big", "content": content, "chunk_index": index, "chunk_count": 2});
        two.one.data("guide_read_file", chunk(0, "one ")).await;
        let second = two.other.call("guide_read_file", chunk(1, "two")).await;
        assert_eq!(data(&second)["complete"], false);
        let stats = two.one.data("guide_cache_stats", json!({})).await;
        assert_eq!(stats["uploads_pending"], 1);
        assert_eq!(stats["upload_bytes"], 4);
        let whole = two.one.data("guide_read_file", chunk(1, "one")).await;
        assert_eq!(whole["complete"], true);
        assert_eq!(two.one.content("docs/big").await, "one one");
    }
}

#[tokio::test]
async fn a_handover_of_another_client_answers_nothing() {
    let asked = Arc::new(Notify::new());
    let go = Arc::new(Notify::new());
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go));
    let agents = [Agent::saying("not used"), Agent::saying("x")];
    let settings = |setup: Setup| setup.set("guide.sampling_timeout", 600);
    let two = two_clients(&REVISIONS[0], true, settings, agents).await;
    // The first client answers when it is told to.
    let slow = Guide::setup(two.one.tree())
        .token(TOKENS[0])
        .sampling_later(move |params| {
            let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
            async move {
                tell.notify_one();
                wait.notified().await;
                Ok(sampled(&marked(&params, "its own answer")))
            }
        });
    let slow = two.one.server.another_client(&slow).await;
    let request = slow.call("guide_request_file", json!({"path": "docs/a"}));
    let other = async {
        asked.notified().await;
        let file = json!({"path": "docs/a", "content": "planted"});
        two.other.call("guide_cache_file", file).await.ok();
        let stats = two.other.call("guide_cache_stats", json!({})).await;
        assert_eq!(data(&stats)["questions_pending"], 0);
        let stats = two.one.data("guide_cache_stats", json!({})).await;
        assert_eq!(stats["questions_pending"], 1, "a token is one client");
        go.notify_one();
    };
    let (read, ()) = tokio::join!(request, other);
    assert_eq!(data(&read)["content"], "its own answer");
    assert_eq!(data(&read)["source"], "client");
}

#[tokio::test]
async fn a_question_that_one_client_carries_is_no_use_to_another() {
    let agents = [Agent::saying("x"), Agent::saying("x")];
    let two = two_clients(&REVISIONS[1], true, |setup| setup, agents).await;
    let arguments = json!({"path": "docs/a"});
    let arguments = arguments.as_object().expect("an object");
    let params = CallToolRequestParams::new("guide_request_file").with_arguments(arguments.clone());
    let client = two.one.server.client();
    let asked = client.call_tool_once(params.clone()).await;
    let CallToolResponse::InputRequired(question) = asked.expect("a response") else {
        panic!("nothing was asked")
    };
    let requests = serde_json::to_value(&question.input_requests).expect("JSON");
    let answer = sampled(&marked(&requests["agent_file"]["params"], "its content"));
    let mut params = params;
    params.input_responses = Some([("agent_file".to_owned(), answer)].into());
    params.request_state = question.request_state;
    for (client, is_own) in [(two.other.client(), false), (client, true)] {
        let reply = client.call_tool_once(params.clone()).await;
        let CallToolResponse::Complete(reply) = reply.expect("a response") else {
            panic!("it was answered")
        };
        let reply = reply.structured_content.expect("an object");
        assert_eq!(reply["success"], is_own, "{reply}");
        if !is_own {
            assert_eq!(reply["error_type"], "security", "{reply}");
        }
    }
}

#[tokio::test]
async fn one_cache_may_be_shared_on_purpose() {
    for (revision, with_tokens) in kinds() {
        let agents = [Agent::saying("x"), Agent::saying("x")];
        let shared = |setup: Setup| setup.set("guide.cache", "shared");
        let two = two_clients(&revision, with_tokens, shared, agents).await;
        two.one.cache("docs/plan.md", "the plan").await;
        let request = json!({"path": "docs/plan.md"});
        let read = two.other.call("guide_request_file", request).await;
        assert_eq!(data(&read)["content"], "the plan");
        assert_eq!(data(&read)["source"], "cache");
        let stats = two.other.call("guide_cache_stats", json!({})).await;
        assert_eq!(data(&stats)["clients"].as_array().map(Vec::len), Some(2));
    }
}

#[tokio::test]
async fn a_flood_of_one_client_leaves_the_others_their_files() {
    let agents = [Agent::saying("asked"), Agent::saying("asked")];
    let small = |setup: Setup| setup.set("guide.cache_size", 10_000);
    let two = two_clients(&REVISIONS[0], true, small, agents).await;
    two.one.cache("docs/mine", "mine").await;
    for number in 0..30 {
        let file = json!({"path": format!("docs/{number}"), "content": "x".repeat(1000)});
        let stored = two.other.call("guide_cache_file", file).await;
        assert!(data(&stored)["cache"]["bytes"].as_u64() <= Some(10_000));
    }
    assert_eq!(two.one.content("docs/mine").await, "mine");
    assert_eq!(two.one.cache_figures().await["evictions"], 0);
}

#[tokio::test]
async fn equal_requests_are_one_question() {
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
            let (count, wait) = (Arc::clone(&asked), Arc::clone(&go));
            let tree = tree();
            let server = Guide::setup(&tree)
                .revision(revision.clone())
                .sampling_later(move |params| {
                    count.fetch_add(1, Ordering::SeqCst);
                    let wait = Arc::clone(&wait);
                    async move {
                        wait.notified().await;
                        Ok(sampled(&marked(&params, "told once")))
                    }
                })
                .start(transport)
                .await;
            let guide = Harness::<Guide>::new(server, vec![tree]);
            let call = || guide.call("guide_request_file", json!({"path": "docs/a"}));
            let calls = async { tokio::join!(call(), call(), call(), call(), call()) };
            let answer = async {
                // All five have looked for the file when the question is answered.
                while guide.cache_figures().await["misses"] != 5 {}
                let stats = guide.data("guide_cache_stats", json!({})).await;
                assert_eq!(stats["questions_pending"], 1);
                go.notify_one();
            };
            let ((one, two, three, four, five), ()) = tokio::join!(calls, answer);
            for outcome in [one, two, three, four, five] {
                assert_eq!(data(&outcome)["content"], "told once");
                assert_eq!(data(&outcome)["source"], "client", "{}", outcome.story());
            }
            assert_eq!(asked.load(Ordering::SeqCst), 1);
            assert_eq!(guide.cache_figures().await["updates"], 0);
            assert_eq!(
                guide.data("guide_cache_stats", json!({})).await["questions_pending"],
                0
            );
        })
        .await;
    }
}

#[tokio::test]
async fn equal_requests_fail_as_one() {
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let agent = Agent::literally("I have no files, sorry.");
            let settings = |setup: Setup| agent.answering(setup.revision(revision.clone()));
            let guide = Guide::start(tree(), settings, transport).await;
            let call = || guide.call("guide_request_file", json!({"path": "docs/a"}));
            let (one, two, three) = tokio::join!(call(), call(), call());
            for outcome in [one, two, three] {
                assert_eq!(
                    outcome.error()["error_type"],
                    "system",
                    "{}",
                    outcome.story()
                );
            }
            assert_eq!(guide.cache_figures().await["entries"], 0);
        })
        .await;
    }
}

#[tokio::test]
async fn who_waits_for_a_cancelled_call_asks_itself() {
    testkit::over_both(async |transport| {
        let (asked, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (tell, counted) = (Arc::clone(&asked), Arc::clone(&count));
        let tree = tree();
        let server = Guide::setup(&tree)
            .set("guide.sampling_timeout", 600)
            .sampling_later(move |params| {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let tell = Arc::clone(&tell);
                async move {
                    tell.notify_one();
                    if number == 0 {
                        std::future::pending::<()>().await;
                    }
                    Ok(sampled(&marked(&params, "asked again")))
                }
            })
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let cancelled = CallToolRequestParams::new("guide_request_file");
        let arguments = json!({"path": "docs/a"});
        let cancelled = cancelled.with_arguments(arguments.as_object().expect("one").clone());
        let request = testkit::rmcp::model::CallToolRequest::new(cancelled);
        let first = guide
            .server
            .client()
            .send_cancellable_request(
                testkit::rmcp::model::ClientRequest::CallToolRequest(request),
                testkit::rmcp::service::PeerRequestOptions::default(),
            )
            .await
            .expect("it is sent");
        asked.notified().await;
        let second = guide.server.spawn_call("guide_request_file", arguments);
        while guide.cache_figures().await["misses"] != 2 {}
        first.cancel(None).await.expect("it is sent");
        let outcome = second.await.expect("the call's task ends");
        assert_eq!(data(&outcome)["content"], "asked again");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    })
    .await;
}
