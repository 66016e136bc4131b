//! One client: greetings, introductions, ids, cancellation, progress.

use std::sync::Arc;
use std::time::Duration;

use mcp::{Connection, Incoming, Nowhere, Origin, Request, message};
use serde_json::{Value, json};
use tokio::sync::mpsc::channel;

use crate::service::{NEWEST, call, cancelled, greeting, introduction, request, server};

async fn reply(connection: &Arc<Connection>, request: Request) -> Value {
    let serving = connection.serve(request, Origin::Stdio, Arc::new(Nowhere));
    let reply = serving.expect("an id of its own").await.expect("a reply");
    serde_json::from_slice(&reply.message.into_whole().expect("a small message")).expect("JSON")
}

#[tokio::test]
async fn a_client_greets_and_gets_the_revision_it_asks_for() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        (NEWEST, "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let connection = Connection::new(server());
        let told = reply(&connection, greeting(asked)).await;
        assert_eq!(told["result"]["protocolVersion"], agreed);
        let told = reply(&connection, call(1, 0)).await;
        assert_eq!(told["result"]["isError"], false);
        assert!(told["result"].get("resultType").is_none(), "{told}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_greet_introduces_itself_in_every_request() {
    let connection = Connection::new(server());
    let bare = reply(&connection, call(1, 0)).await;
    assert_eq!(bare["error"]["code"], -32602);
    let introduced = json!({ "name": "toy", "_meta": introduction() });
    let told = reply(&connection, request(2, "tools/call", &introduced)).await;
    assert_eq!(told["result"]["resultType"], "complete");
    let bare = reply(&connection, call(3, 0)).await;
    assert_eq!(bare["error"]["code"], -32602, "also after an introduction");
    let found = json!({ "_meta": introduction() });
    let found = reply(&connection, request(4, "server/discover", &found)).await;
    assert_eq!(found["result"]["supportedVersions"][4], NEWEST);
    let ping = reply(
        &connection,
        request(5, "ping", &json!({ "_meta": introduction() })),
    )
    .await;
    assert_eq!(
        ping["error"]["code"], -32601,
        "it is gone in the newest revision"
    );
}

#[tokio::test]
async fn greetings_that_lack_something_say_what() {
    let connection = Connection::new(server());
    let told = reply(&connection, request(1, "initialize", &json!({}))).await;
    assert_eq!(told["error"]["code"], -32602);
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("protocolVersion"), "{message}");
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_free_again_when_its_request_has_ended() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    let first = connection
        .serve(call(1, 50), Origin::Stdio, Arc::new(Nowhere))
        .unwrap();
    let second = connection.serve(call(1, 0), Origin::Stdio, Arc::new(Nowhere));
    let refused = second.err().expect("a refusal");
    let told: Value = serde_json::from_slice(&refused.reply()).unwrap();
    assert!(told.get("id").is_none(), "the first one gets its own reply");
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the id 1 is in use")
    );
    let first: Value =
        serde_json::from_slice(&first.await.unwrap().message.into_whole().unwrap()).unwrap();
    assert_eq!(first["result"]["isError"], false);
    reply(&connection, call(1, 0)).await;
}

#[tokio::test]
async fn a_cancelled_request_has_no_reply_and_the_next_of_its_id_begins_when_it_has_ended() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    let mut running = connection
        .serve(call(1, 60_000), Origin::Stdio, Arc::new(Nowhere))
        .unwrap();
    let early = tokio::time::timeout(Duration::from_millis(20), &mut running).await;
    assert!(early.is_err(), "it runs");
    connection.notice(&cancelled(2));
    connection.notice(&cancelled(1));
    let mut next = connection
        .serve(call(1, 0), Origin::Stdio, Arc::new(Nowhere))
        .unwrap();
    let early = tokio::time::timeout(Duration::from_millis(20), &mut next).await;
    assert!(early.is_err(), "it waits");
    let third = connection.serve(call(1, 0), Origin::Stdio, Arc::new(Nowhere));
    assert!(third.is_err(), "the id belongs to the one that waits");
    let (cancelled, next) = tokio::join!(running, next);
    assert!(cancelled.is_none());
    let next: Value = serde_json::from_slice(&next.unwrap().message.into_whole().unwrap()).unwrap();
    assert_eq!(next["id"], json!(1));
    assert_eq!(next["result"]["isError"], json!(false));
    reply(&connection, call(1, 0)).await;
}

#[tokio::test]
async fn a_message_that_cannot_be_read_does_not_answer_the_request_whose_id_it_has() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    let refusal = || {
        let Incoming::Refused(refused) = message::read(br#"{"jsonrpc":"2.0","id":1,"method":5}"#)
        else {
            panic!("it is no message")
        };
        let told = connection.refusal(&refused);
        serde_json::from_slice::<Value>(&told).unwrap()
    };
    assert_eq!(refusal()["id"], 1);
    let running = connection
        .serve(call(1, 60_000), Origin::Stdio, Arc::new(Nowhere))
        .unwrap();
    let told = refusal();
    assert!(told.get("id").is_none(), "{told}");
    assert_eq!(told["error"]["code"], -32600);
    let words = told["error"]["message"].as_str().unwrap();
    assert!(words.contains("method has to be a string") && words.contains("the id 1 is in use"));
    connection.notice(&cancelled(1));
    assert_eq!(refusal()["id"], 1, "a cancelled request gets no reply");
    assert!(running.await.is_none());
}

#[tokio::test]
async fn progress_goes_where_it_is_wanted() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    let (outbox, mut notes) = channel(16);
    let params = json!({
        "name": "toy", "arguments": { "wait": 700 }, "_meta": { "progressToken": "p" }
    });
    let asked = request(1, "tools/call", &params);
    assert!(asked.wants_notifications());
    let serving = connection
        .serve(asked, Origin::Stdio, Arc::new(outbox))
        .unwrap();
    assert!(serving.await.is_some());
    let note: Value = serde_json::from_slice(&notes.recv().await.unwrap()).unwrap();
    assert_eq!(note["method"], "notifications/progress");
    assert_eq!(note["params"]["progressToken"], "p");
    assert!(note["params"]["progress"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn what_is_not_there_is_refused_by_name() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    for method in ["resources/list", "prompts/get", "logging/setLevel", "x"] {
        let told = reply(&connection, request(1, method, &json!({}))).await;
        assert_eq!(told["error"]["code"], -32601);
        assert_eq!(
            told["error"]["message"],
            format!("unknown method: {method}")
        );
    }
    let told = reply(
        &connection,
        request(1, "tools/call", &json!({ "name": "toys" })),
    )
    .await;
    assert_eq!(
        told["error"]["message"],
        "Unknown tool: toys; did you mean toy?"
    );
    let told = reply(&connection, request(1, "tools/call", &json!({ "name": 3 }))).await;
    assert_eq!(told["error"]["code"], -32602);
    let list = json!({ "name": "toy", "arguments": [1] });
    let told = reply(&connection, request(1, "tools/call", &list)).await;
    assert_eq!(
        told["result"]["isError"], true,
        "arguments are the tool's to refuse"
    );
    for odd in [json!({ "cursor": "x" }), json!({ "cursor": 3 })] {
        let told = reply(&connection, request(1, "tools/list", &odd)).await;
        assert_eq!(told["error"]["code"], -32602, "{odd}");
    }
}

#[tokio::test]
async fn the_newest_revision_has_no_greeting() {
    let connection = Connection::new(server());
    let introduced = json!({ "_meta": introduction() });
    let told = reply(&connection, request(1, "initialize", &introduced)).await;
    assert_eq!(told["error"]["code"], -32601, "{told}");
    let told = reply(&connection, greeting("2025-11-25")).await;
    assert_eq!(told["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn what_a_client_brings_back_has_the_right_types() {
    let connection = Connection::new(server());
    let mut meta = introduction();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "sampling": {} });
    for (name, value) in [
        ("requestState", json!(5)),
        ("inputResponses", json!([{ "role": "assistant" }])),
    ] {
        let params = json!({ "name": "toy", "_meta": meta, name: value });
        let told = reply(&connection, request(1, "tools/call", &params)).await;
        assert_eq!(told["error"]["code"], -32602, "{told}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(name), "{message}");
    }
}

#[tokio::test]
async fn a_request_that_comes_after_the_end_is_cancelled_from_the_start() {
    let connection = Connection::new(server());
    reply(&connection, greeting("2025-11-25")).await;
    connection.hang_up();
    let late = connection.serve(call(1, 60_000), Origin::Stdio, Arc::new(Nowhere));
    let late = tokio::time::timeout(Duration::from_secs(20), late.expect("a free id"));
    assert!(late.await.expect("it does not run on").is_none());
}
