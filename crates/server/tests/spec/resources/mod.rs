//! Files as resources, in both eras of the protocol.

mod card;
mod errors;
mod prompts;
mod read;
pub(crate) mod subscriptions;

use testkit::{Setup, Transport, Value, Wire, json};

use crate::harness::message::{initialize, initialized};

/// Which kind of revision a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25.
    Older,
    /// 2026-07-28.
    Newest,
}

const NEWEST: &str = "2026-07-28";

/// A client that writes its messages by hand.
pub(crate) struct Peer {
    wire: Wire,
    transport: Transport,
    era: Era,
    asked: u64,
}

impl Peer {
    async fn new(setup: Setup, transport: Transport, era: Era) -> Peer {
        let mut wire = setup.wire(transport).await;
        if (transport, era) == (Transport::Stdio, Era::Older) {
            wire.request(&initialize(&json!({}))).await;
            wire.notify(&initialized()).await;
        }
        Peer {
            wire,
            transport,
            era,
            asked: 0,
        }
    }

    /// A request with an id of its own.
    fn message(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        message(self.era, self.asked, method, params)
    }

    /// Asks, and returns the whole message that answers.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = self.message(method, params);
        if self.transport == Transport::Stdio {
            return self.wire.request(&message).await;
        }
        let headers = headers(self.era, &message);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.wire
            .http()
            .post("/mcp", &headers, &message)
            .await
            .json()
    }

    /// The result of a request that has to succeed.
    async fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a request that has to fail.
    async fn fails(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["error"].is_object(), "{method}: {answer}");
        answer["error"].clone()
    }
}

pub(crate) fn message(era: Era, id: u64, method: &str, mut params: Value) -> Value {
    if era == Era::Newest {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = NEWEST.into();
        params["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "by hand", "version": "1"});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn headers(era: Era, message: &Value) -> Vec<(&'static str, String)> {
    if era == Era::Older {
        return vec![("mcp-protocol-version", "2025-11-25".to_owned())];
    }
    let method = message["method"].as_str().unwrap_or_default();
    let mut headers = vec![
        ("mcp-protocol-version", NEWEST.to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    let name = match method {
        "tools/call" | "prompts/get" => &message["params"]["name"],
        "resources/read" => &message["params"]["uri"],
        _ => &Value::Null,
    };
    if let Some(name) = name.as_str() {
        headers.push(("mcp-name", name.to_owned()));
    }
    let root = message["params"]["arguments"]["root"].as_str();
    if let Some(root) = root.filter(|_| method == "tools/call") {
        headers.push(("mcp-param-root", root.to_owned()));
    }
    headers
}

/// Runs a body over both transports and in both eras.
async fn over_all(setup: impl Fn() -> Setup, body: impl AsyncFn(&mut Peer)) {
    for transport in [Transport::Stdio, Transport::Http] {
        for era in [Era::Older, Era::Newest] {
            let mut peer = Peer::new(setup(), transport, era).await;
            body(&mut peer).await;
        }
    }
}
