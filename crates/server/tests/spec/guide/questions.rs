//! Questions on the wire: taken back, and answered with what cannot be read.

use std::time::Duration;

use testkit::{Setup, Transport, Value, Wire, json};

use super::set::{Guide, sampled, text_in, tree};
use crate::harness::ToolSet;
use crate::harness::message::{cancelled, initialize, initialized, tool_call};

#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let tree = tree();
    let (mut wire, question) = asking_by_hand(Guide::setup(&tree)).await;
    wire.notify(&cancelled(2)).await;
    let taken_back = until(&mut wire, "notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
}

/// A hand-written client over stdio that requests a file as request 2, and the question it gets.
async fn asking_by_hand(setup: Setup) -> (Wire, Value) {
    let mut wire = setup.wire(Transport::Stdio).await;
    let hello = initialize(&json!({"sampling": {}}));
    wire.request(&hello).await;
    wire.notify(&initialized()).await;
    let call = tool_call(2, "guide_request_file", &json!({"path": "docs/a"}));
    wire.send(&call.to_string()).await;
    let question = until(&mut wire, "sampling/createMessage").await;
    (wire, question)
}

async fn next(wire: &mut Wire) -> Value {
    let line = wire.next().await.expect("the server hung up");
    serde_json::from_str(&line).expect("JSON")
}

/// The next message with this method.
async fn until(wire: &mut Wire, method: &str) -> Value {
    loop {
        let message = next(wire).await;
        if message["method"] == method {
            return message;
        }
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_question() {
    let id = "QUESTION";
    let large = sampled(&"x".repeat(20_000));
    for (answer, said) in [
        (
            json!({"jsonrpc": "2.0", "id": id, "error": "no"}),
            "code and message",
        ),
        (
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1}}),
            "code and message",
        ),
        (
            json!({"jsonrpc": "2.0", "id": id, "result": large}),
            "larger than 10000 bytes",
        ),
    ] {
        let tree = tree();
        let setup = Guide::setup(&tree)
            .set("guide.sampling_timeout", 600)
            .set("server.max_body_size", 10_000);
        let (mut wire, question) = asking_by_hand(setup).await;
        let answer = answer.to_string();
        wire.send(&answer.replace("\"QUESTION\"", &question["id"].to_string()))
            .await;
        // The refusal and the reply to the call arrive in any order.
        let (one, other) = (next(&mut wire).await, next(&mut wire).await);
        let (refused, reply) = if one["error"].is_object() {
            (one, other)
        } else {
            (other, one)
        };
        assert!(refused["id"].is_null(), "{refused}");
        let error = &reply["result"]["structuredContent"];
        assert_eq!(reply["id"], 2);
        assert_eq!(error["error_type"], "system");
        assert!(text_in(error, "error").contains(said), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_question_over_http_too() {
    let tree = tree();
    let wire = Guide::setup(&tree)
        .set("guide.sampling_timeout", 600)
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let accept = ("accept", "application/json, text/event-stream");
    let hello = initialize(&json!({"sampling": {}}));
    let begun = http.post("/mcp/guide", &[accept], &hello).await;
    let session = begun.header("mcp-session-id").expect("a session");
    let headers = [accept, ("mcp-session-id", session)];
    let ready = initialized();
    http.post("/mcp/guide", &headers, &ready).await;
    let call = tool_call(2, "guide_request_file", &json!({"path": "docs/a"}));
    let spoil = async {
        // The first question of a session has the number 0.
        let answer = json!({"jsonrpc": "2.0", "id": 0, "error": "no"});
        for _ in 0..200 {
            let refused = http.post("/mcp/guide", &headers, &answer).await;
            assert_eq!(refused.status, 400, "{refused:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the question still waits")
    };
    let reply = tokio::select! {
        reply = http.post("/mcp/guide", &headers, &call) => reply,
        () = spoil => unreachable!("it never ends well"),
    };
    assert!(
        reply.body.contains("an error with code and message"),
        "{reply:?}"
    );
}
