//! A server with one tool that does as it is told, and how to talk to it.

use std::time::Duration;

use mcp::{Incoming, Message, Notification, Request, Server, message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolset::{
    Admission, Call, Deployment, RootUse, Service, Tool, ToolEffect, ToolSet, tool, workspace,
};

/// The revision in which every request introduces its client.
pub(crate) const NEWEST: &str = "2026-07-28";

struct Toy;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// How long the work takes, in milliseconds.
    #[serde(default)]
    wait: u64,
    #[serde(default)]
    #[expect(dead_code, reason = "headers repeat it")]
    root: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    done: bool,
}

impl Tool for Toy {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "toy";
    const TITLE: &'static str = "Toy";
    const DESCRIPTION: &'static str = "A toy.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        for _ in 0..arguments.wait {
            call.context.cancel.check()?;
            call.context.cancel.advance(1);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Done { done: true })
    }
}

/// A server with the toy.
pub(crate) fn server() -> Server {
    let set = ToolSet {
        contract: workspace::toolset().contract,
        tools: vec![tool::<Toy>()],
    };
    let admission = Admission::new(Deployment::for_tests());
    Server::new(Service::new(vec![set], admission).expect("a service"))
}

/// A message as a client sends it.
pub(crate) fn sent(message: &Value) -> Message {
    match message::read(message.to_string().as_bytes()) {
        Incoming::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

/// A request.
pub(crate) fn request(id: i64, method: &str, params: &Value) -> Request {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    match sent(&message) {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

/// A call of the toy.
pub(crate) fn call(id: i64, wait: u64) -> Request {
    request(
        id,
        "tools/call",
        &json!({ "name": "toy", "arguments": { "wait": wait } }),
    )
}

/// A greeting.
pub(crate) fn greeting(revision: &str) -> Request {
    let params = json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "n", "version": "1" }
    });
    request(0, "initialize", &params)
}

/// A cancellation.
pub(crate) fn cancelled(id: i64) -> Notification {
    let message = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id }
    });
    match sent(&message) {
        Message::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

/// What introduces a client.
pub(crate) fn introduction() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": { "name": "n", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    })
}
