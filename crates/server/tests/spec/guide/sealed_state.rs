//! The state that clients carry between the two halves of a call.

use std::time::Duration;

use testkit::rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult};
use testkit::{ProtocolVersion, Transport, Tree, Value, json};

use super::set::{Guide, marked, sampled};
use crate::harness::{Harness, ToolSet};

const KEY: &str = "a key that all replicas of this test have";

/// A 2026-07-28 client that drives the rounds itself.
async fn by_hand(key: &str, timeout: u64, transport: Transport) -> Harness<Guide> {
    let tree = Tree::new().dir("docs").file("key", key);
    let server = Guide::setup(&tree)
        .set(
            "guide.state_key_file",
            tree.join("key").to_str().expect("text"),
        )
        .set("guide.sampling_timeout", timeout)
        .revision(ProtocolVersion::V_2026_07_28)
        .sampling(|_| Err("not used".to_owned()))
        .start(transport)
        .await;
    Harness::<Guide>::new(server, vec![tree])
}

fn params(arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().expect("an object").clone();
    CallToolRequestParams::new("guide_request_file").with_arguments(arguments)
}

async fn question(guide: &Harness<Guide>, arguments: Value) -> InputRequiredResult {
    let response = guide
        .server
        .client()
        .call_tool_once(params(arguments))
        .await;
    match response.expect("a response") {
        CallToolResponse::InputRequired(question) => question,
        other => panic!("{other:?}"),
    }
}

/// The reply to a call that brings an answer to this question, and a state.
async fn retry(
    guide: &Harness<Guide>,
    arguments: Value,
    (question, answer): (&InputRequiredResult, Option<&str>),
    state: &str,
) -> CallToolResponse {
    let requests = serde_json::to_value(&question.input_requests).expect("JSON");
    let answer = answer.map(|text| sampled(&marked(&requests["agent_file"]["params"], text)));
    retry_with(guide, arguments, answer, state).await
}

/// The reply to a call that brings an answer of any form and a state.
async fn retry_with(
    guide: &Harness<Guide>,
    arguments: Value,
    answer: Option<Value>,
    state: &str,
) -> CallToolResponse {
    let mut params = params(arguments);
    params.input_responses = answer.map(|answer| [("agent_file".to_owned(), answer)].into());
    params.request_state = Some(state.to_owned());
    let response = guide.server.client().call_tool_once(params).await;
    response.expect("a response")
}

fn reply(response: CallToolResponse) -> Value {
    match response {
        CallToolResponse::Complete(result) => result.structured_content.expect("an object"),
        other => panic!("{other:?}"),
    }
}

fn state(question: &InputRequiredResult) -> String {
    question.request_state.clone().expect("a state")
}

#[tokio::test]
async fn any_replica_with_the_same_key_finishes_the_call() {
    testkit::over_both(async |transport| {
        let (one, other) = (
            by_hand(KEY, 60, transport).await,
            by_hand(KEY, 60, transport).await,
        );
        let arguments = json!({"path": "docs/a"});
        let question = question(&one, arguments.clone()).await;
        let requests = serde_json::to_value(&question.input_requests).expect("JSON");
        assert_eq!(requests["agent_file"]["method"], "sampling/createMessage");
        let answer = (&question, Some("# A"));
        let reply = reply(retry(&other, arguments, answer, &state(&question)).await);
        assert_eq!(reply["data"]["content"], "# A", "{reply}");
        assert_eq!(other.cache_figures().await["entries"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_state_that_is_not_ours_is_refused() {
    testkit::over_both(async |transport| {
        let guide = by_hand(KEY, 60, transport).await;
        let foreign = by_hand("another key, which is also long enough", 60, transport).await;
        let arguments = json!({"path": "docs/a"});
        let asked = question(&guide, arguments.clone()).await;
        let (own, answer) = (state(&asked), (&asked, Some("x")));
        let other = state(&question(&foreign, arguments.clone()).await);
        let mut tampered = own.clone();
        let place = tampered.len() - 2..tampered.len() - 1;
        let another = if &tampered[place.clone()] == "A" {
            "B"
        } else {
            "A"
        };
        tampered.replace_range(place, another);
        for wrong in [other.as_str(), tampered.as_str(), "", "rs1.x.y"] {
            let refused = reply(retry(&guide, arguments.clone(), answer, wrong).await);
            assert_eq!(refused["error_type"], "security", "{wrong}: {refused}");
        }
        // A state of this server is not good for another call either.
        let elsewhere = json!({"path": "docs/b"});
        let refused = reply(retry(&guide, elsewhere, answer, &own).await);
        assert_eq!(refused["error_type"], "security", "{refused}");
        let line = guide
            .server
            .logged(|line| line["violation"] == "forged_state")
            .await;
        assert_eq!(line["level"], "WARN");
        assert_eq!(guide.cache_figures().await["entries"], 0);
        let accepted = reply(retry(&guide, arguments, answer, &own).await);
        assert_eq!(accepted["success"], true, "{accepted}");
    })
    .await;
}

#[tokio::test]
async fn a_state_that_is_too_old_is_refused() {
    testkit::over_both(async |transport| {
        let guide = by_hand(KEY, 1, transport).await;
        let arguments = json!({"path": "docs/a"});
        let asked = question(&guide, arguments.clone()).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let refused = reply(retry(&guide, arguments, (&asked, Some("x")), &state(&asked)).await);
        assert_eq!(refused["error_type"], "timeout", "{refused}");
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn a_call_without_the_answer_is_asked_again() {
    testkit::over_both(async |transport| {
        let guide = by_hand(KEY, 60, transport).await;
        let arguments = json!({"path": "docs/a"});
        let first = question(&guide, arguments.clone()).await;
        let again = retry(&guide, arguments.clone(), (&first, None), &state(&first)).await;
        let CallToolResponse::InputRequired(again) = again else {
            panic!("{again:?}")
        };
        let reply = reply(retry(&guide, arguments, (&again, Some("x")), &state(&again)).await);
        assert_eq!(reply["data"]["content"], "x", "{reply}");
        assert_eq!(guide.cache_figures().await["misses"], 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_sampling_result_is_a_failure_and_never_content() {
    let error = |code: i64, message: &str| json!({"code": code, "message": message});
    let no_model = json!({"role": "assistant", "content": {"type": "text", "text": "x"}});
    let cases = [
        (
            json!({"error": error(-1, "the user said no")}),
            "permission",
        ),
        (error(-1, "the user said no"), "permission"),
        (
            json!({"error": error(-32601, "no sampling")}),
            "unsupported",
        ),
        (error(-32603, "File not found: docs/a"), "not_found"),
        (error(-32603, "the model is asleep"), "system"),
        (json!({"action": "decline"}), "system"),
        (json!({"error": {"message": "without a code"}}), "system"),
        (json!({}), "system"),
        (json!(null), "system"),
        (json!("text"), "system"),
        (no_model, "system"),
    ];
    testkit::over_both(async |transport| {
        let guide = by_hand(KEY, 60, transport).await;
        let arguments = json!({"path": "docs/a"});
        for (answer, kind) in &cases {
            let state = state(&question(&guide, arguments.clone()).await);
            let (arguments, sent) = (arguments.clone(), Some(answer.clone()));
            let failed = reply(retry_with(&guide, arguments, sent, &state).await);
            assert_eq!(failed["error_type"], *kind, "{answer}: {failed}");
        }
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}
