//! Lines on standard input that are not messages, or odd ones: each gets an answer, and the next line is served.

use testkit::{Transport, Tree, Value, Wire, json};

use crate::harness::ToolSet;
use crate::harness::message::{cancelled, hash_endless, initialize, initialized, tool_call};
use crate::workspace::Workspace;

async fn begun(tree: &Tree) -> Wire {
    let setup = Workspace::setup(tree);
    let mut wire = setup
        .set("server.max_body_size", 1_000_000)
        .set("limits.request_timeout", 300)
        .wire(Transport::Stdio)
        .await;
    greet(&mut wire).await;
    wire
}

async fn greet(wire: &mut Wire) {
    let request = initialize(&json!({}));
    assert_eq!(
        wire.request(&request).await["result"]["serverInfo"]["name"],
        "mcp-filesystem"
    );
    wire.notify(&initialized()).await;
}

async fn next(wire: &mut Wire) -> Value {
    serde_json::from_str(&wire.next().await.expect("a line")).expect("JSON")
}

async fn still_serves(wire: &mut Wire) {
    let answer = wire.request(&super::http_access::list_roots()).await;
    assert_eq!(
        answer["result"]["structuredContent"]["roots"][0]["name"],
        "workspace"
    );
}

#[tokio::test]
async fn frames_are_not_read_while_replies_wait_to_be_read() {
    let tree = Tree::new();
    let mut wire = begun(&tree).await;
    let idle = wire.memory().peak;
    let requests = 3000;
    let mut lines = String::new();
    for id in 0..requests {
        lines += &json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string();
        lines.push('\n');
    }
    // They fit into the pipe, so this ends although the server stops reading.
    wire.send_bytes(lines.as_bytes()).await;
    let before = std::sync::atomic::AtomicU64::new(0);
    let settled = crate::harness::becomes(async || {
        let now = wire.memory().resident;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        before.swap(now, std::sync::atomic::Ordering::Relaxed) == now
    });
    assert!(settled.await, "its memory keeps growing");
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..requests {
        ids.insert(next(&mut wire).await["id"].as_u64().unwrap());
    }
    assert_eq!(ids.len(), requests, "every request is answered");
    let peak = wire.memory().peak;
    assert!(peak < idle + (32 << 20), "{idle} -> {peak}");
    still_serves(&mut wire).await;
}

#[tokio::test]
async fn frames_that_are_no_message_are_answered() {
    let tree = Tree::new();
    let mut wire = begun(&tree).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{}1"#,
        "[".repeat(100_000)
    );
    let cases: [(&[u8], Value, i64); 8] = [
        (b"garbage", Value::Null, -32700),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"\ud800"}"#,
            json!(5),
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"six\",\"method\":\"\xff\"}",
            json!("six"),
            -32700,
        ),
        (deep.as_bytes(), json!(9), -32700),
        (
            br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            Value::Null,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            Value::Null,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Value::Null,
            -32600,
        ),
        (br#"{"id":8,"method":"ping"}"#, json!(8), -32600),
    ];
    for (line, id, code) in cases {
        wire.send_bytes(line).await;
        wire.send_bytes(b"\n").await;
        let answer = next(&mut wire).await;
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
        assert_eq!(answer["id"], id, "{shown}: {answer}");
        assert_eq!(answer["error"]["code"], json!(code), "{shown}: {answer}");
    }
    still_serves(&mut wire).await;
}

#[tokio::test]
async fn frames_too_long_are_answered_with_their_id_in_bounded_memory() {
    let tree = Tree::new();
    let mut wire = begun(&tree).await;
    wire.send_bytes(br#"{"jsonrpc":"2.0","method":"ping","params":{"x":""#)
        .await;
    let piece = vec![b'x'; 1_000_000];
    for _ in 0..100 {
        wire.send_bytes(&piece).await;
    }
    wire.send_bytes(b"\"},\"id\":77}\n").await;
    let answer = next(&mut wire).await;
    assert_eq!(answer["id"], 77, "{answer}");
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("server.max_body_size")
    );
    still_serves(&mut wire).await;
    assert!(wire.memory().peak < 64 << 20, "{:?}", wire.memory());
}

#[tokio::test]
async fn frames_of_strangers_do_not_end_the_server() {
    let tree = Tree::new();
    let mut wire = Workspace::setup(&tree).wire(Transport::Stdio).await;
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    wire.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    wire.send("").await;
    wire.send("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}")
        .await;
    assert_eq!(next(&mut wire).await["id"], 2);
    greet(&mut wire).await;
    still_serves(&mut wire).await;
}

#[tokio::test]
async fn frames_with_an_id_in_use_leave_the_first_request_alone() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let mut wire = begun(&tree).await;
    let hash = hash_endless(3);
    wire.send(&hash.to_string()).await;
    wire.send(&hash.to_string()).await;
    let refused = next(&mut wire).await;
    assert!(refused["id"].is_null(), "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the id 3 is in use")
    );
    let cancel = cancelled(3);
    wire.notify(&cancel).await;
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let reply = wire.request(&ping).await;
    assert!(reply["id"] == 3 && reply["result"].is_object(), "{reply}");
    wire.logged(|line| line["error_code"] == "cancelled").await;
}

#[tokio::test]
async fn frames_that_are_no_message_do_not_answer_the_request_whose_id_they_have() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let mut wire = begun(&tree).await;
    wire.send(&hash_endless(3).to_string()).await;
    let mut refusal = async |line: &str| {
        wire.send(line).await;
        next(&mut wire).await
    };
    for line in [
        r#"{"jsonrpc":"2.0","id":3,"method":7}"#,
        r#"{"id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"\ud800"}"#,
    ] {
        let refused = refusal(line).await;
        assert!(refused["id"].is_null(), "{refused}");
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains("the id 3 is in use"), "{words}");
    }
    let other = refusal(r#"{"jsonrpc":"2.0","id":4,"method":7}"#).await;
    assert_eq!(other["id"], 4, "{other}");
    wire.notify(&cancelled(3)).await;
    wire.logged(|line| line["error_code"] == "cancelled").await;
}

#[tokio::test]
async fn frames_with_a_key_twice_are_refused_by_its_name() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("a", "a").file("b", "b");
        let mut wire = Workspace::setup(&tree).wire(transport).await;
        if transport == Transport::Stdio {
            greet(&mut wire).await;
        }
        let call = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{{{params}}}}}"#)
        };
        let name = r#""name":"read_file""#;
        let cases = [
            (
                "path",
                format!(r#"{name},"arguments":{{"root":"workspace","path":"a","path":"b"}}"#),
            ),
            (
                "x",
                format!(r#"{name},"arguments":{{"root":"workspace","path":[{{"x":1,"x":1}}]}}"#),
            ),
            (
                "progressToken",
                format!(r#"{name},"_meta":{{"progressToken":1,"progressToken":2}}"#),
            ),
            ("name", format!(r#"{name},{name}"#)),
        ];
        for (key, params) in cases {
            let reply = answer(&mut wire, transport, &call(&params)).await;
            assert_eq!(reply["id"], json!(6));
            assert_eq!(reply["error"]["code"], json!(-32600));
            let words = reply["error"]["message"].as_str().unwrap();
            assert!(
                words.contains(&format!("the key \"{key}\" stands twice")),
                "{words}"
            );
        }
        let apart = format!(
            r#"{name},"arguments":{{"root":"workspace","path":"a"}},"_meta":{{"path":"b"}}"#
        );
        let reply = answer(&mut wire, transport, &call(&apart)).await;
        assert_eq!(
            reply["result"]["structuredContent"]["content"], "a",
            "{reply}"
        );
    })
    .await;
}

async fn answer(wire: &mut Wire, transport: Transport, message: &str) -> Value {
    if transport == Transport::Stdio {
        wire.send(message).await;
        return next(wire).await;
    }
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let reply = wire.http().post_text("/mcp", &headers, message);
    reply.await.json()
}

#[tokio::test]
async fn frames_of_a_cancelled_call_do_not_answer_the_next_of_its_id() {
    let tree = Tree::new().sparse("endless", 1 << 42).file("f", "x");
    let mut wire = begun(&tree).await;
    let hash = |path: &str| {
        tool_call(
            3,
            "hash_file",
            &json!({"root": "workspace", "path": path, "algorithm": "md5"}),
        )
    };
    let cancel = cancelled(3);
    for _ in 0..5 {
        let (long, short) = (hash("endless"), hash("f"));
        wire.send(&format!("{long}\n{cancel}\n{short}")).await;
        let reply = next(&mut wire).await.to_string();
        assert!(!reply.contains("cancelled"), "{reply}");
        wire.logged(|line| line["error_code"] == "cancelled").await;
    }
}

#[tokio::test]
async fn frames_end_with_or_without_a_line_end() {
    let tree = Tree::new();
    let mut wire = begun(&tree).await;
    wire.send_bytes(super::http_access::list_roots().to_string().as_bytes())
        .await;
    let ended = wire.stop().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.log().iter().any(|line| line["tool"] == "list_roots"),
        "{ended:?}"
    );
    let mut wire = begun(&tree).await;
    wire.send_bytes(br#"{"jsonrpc":"2.0","id":4,"meth"#).await;
    assert_eq!(wire.stop().await.code, Some(0));
}

#[tokio::test]
async fn frames_whose_call_outlasts_the_input_are_cut_and_logged() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let mut wire = begun(&tree).await;
    let hash = hash_endless(3);
    wire.send(&hash.to_string()).await;
    let ended = wire.stop().await;
    let log = ended.log();
    let line = log.iter().find(|line| line["tool"] == "hash_file");
    assert_eq!(
        line.map(|line| &line["error_code"]),
        Some(&json!("cancelled")),
        "{ended:?}"
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn frames_that_nobody_reads_end_the_server() {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let mut wire = begun(&tree).await;
    let hash = hash_endless(3);
    wire.send(&hash.to_string()).await;
    wire.stop_reading();
    wire.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#)
        .await;
    let ended = wire.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn frames_whose_arguments_are_no_object_are_refused_by_the_tool() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let mut wire = Workspace::setup(&tree).wire(transport).await;
        if transport == Transport::Stdio {
            greet(&mut wire).await;
        }
        for arguments in [json!([1]), json!("x"), json!(3), json!(true)] {
            let call = tool_call(1, "read_file", &arguments);
            let answer = wire.request(&call).await;
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{answer}");
            assert_eq!(
                result["structuredContent"]["error"]["code"], "invalid_arguments",
                "{answer}"
            );
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("arguments must be an object"), "{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_gets_its_whole_answer_or_none_also_where_its_id_comes_again() {
    let tree = Tree::new().file("file", "text");
    let mut wire = begun(&tree).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "stat_file", "arguments": {"root": "workspace", "path": "file"}, "_meta": {}}});
    let cancel = cancelled(1);
    let mut lines = String::new();
    for _ in 0..500 {
        lines += &format!("{call}\n{cancel}\n");
    }
    let last = json!({"jsonrpc": "2.0", "id": "last", "method": "ping"});
    wire.send(&format!("{lines}{last}\n")).await;
    loop {
        let answer = next(&mut wire).await;
        if answer["id"] == "last" {
            break;
        }
        if let Some(result) = answer.get("result") {
            let reply = &result["structuredContent"];
            let is_whole = reply["size"] == 4 || reply["error"]["code"] == "cancelled";
            assert!(is_whole, "{answer}");
        }
    }
}
