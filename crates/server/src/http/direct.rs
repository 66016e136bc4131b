//! The request that clients send most, answered without a detour: a plain `tools/call` outside of sessions.
//!
//! rmcp reads each message as one of dozens of kinds and begins a service with tasks and channels of its own for each
//! request; for a small file that costs more than all the rest. So a call that needs nothing of it is answered here, with
//! the very bytes that rmcp would have sent. Whatever is unusual (newer revisions, progress, unknown tools,
//! anything that has to be refused) is left to rmcp.

use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use rmcp::model::{JsonObject, RequestId};
use serde::Deserialize;
use toolset::{Answer, Client, Service};

use super::site::JSON;

/// The revisions in which nothing besides the call itself says how it is to be answered.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Headers that mean something to rmcp beyond a plain call.
const OTHERS: [HeaderName; 2] = [
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-method"),
];

/// A call of a tool, with nothing beside it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainCall {
    #[expect(dead_code, reason = "it is only there to be right")]
    jsonrpc: Version,
    id: RequestId,
    #[expect(dead_code, reason = "it is only there to be right")]
    method: Called,
    params: Params,
}

#[derive(Debug, Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Debug, Deserialize)]
enum Called {
    #[serde(rename = "tools/call")]
    Tool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

impl PlainCall {
    /// Reads a request; `None` where it is anything else, or anything about it is unusual.
    pub(super) fn read(parts: &Parts, body: &[u8]) -> Option<PlainCall> {
        let usual = parts.method == Method::POST
            && parts.headers.get(CONTENT_TYPE) == Some(&JSON)
            && accepts_both(&parts.headers)
            && is_plain(&parts.headers);
        match usual {
            true => serde_json::from_slice(body).ok(),
            false => None,
        }
    }

    /// The answer's body; `None`, with nothing done, where no tool has this name.
    pub(super) async fn answer(self, service: &Service, client: &Client) -> Option<Bytes> {
        let Params { name, arguments } = self.params;
        match service.call_of(&name, arguments, client).await? {
            Answer::Result(result) => Some(result.message(&self.id).into()),
            // Nobody can be asked outside of a session, so no tool does.
            Answer::Question(_) => None,
        }
    }
}

fn accepts_both(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| {
        accepts.contains("application/json") && accepts.contains("text/event-stream")
    })
}

fn is_plain(headers: &HeaderMap) -> bool {
    let known = |revision: &[u8]| REVISIONS.iter().any(|known| known.as_bytes() == revision);
    let revision = headers.get(REVISION).map(|value| known(value.as_bytes()));
    revision.unwrap_or(true) && !OTHERS.iter().any(|name| headers.contains_key(name))
}
