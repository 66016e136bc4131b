//! Plain calls outside of sessions, answered without rmcp (see [`PlainCall`]).

use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use toolset::{Answer, Client, Service};

use super::site::{BOTH, JSON};
use crate::plain_call::{Params, PlainCall};

/// The revisions in which nothing besides the call itself says how it is to be answered.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Headers that mean something to rmcp beyond a plain call.
const OTHERS: [HeaderName; 2] = [
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-method"),
];

/// Reads a request; `None` where it is no plain call, or anything about it is unusual.
pub(super) fn read(parts: &Parts, body: &[u8]) -> Option<PlainCall> {
    let usual = parts.method == Method::POST
        && parts.headers.get(CONTENT_TYPE) == Some(&JSON)
        && parts.headers.get(ACCEPT) == Some(&BOTH)
        && is_plain(&parts.headers);
    match usual {
        true => PlainCall::read(body),
        false => None,
    }
}

/// The answer's body; `None`, with nothing done, where no tool has this name.
pub(super) async fn answer(call: PlainCall, service: &Service, client: &Client) -> Option<Bytes> {
    let Params { name, arguments } = call.params;
    match service.call_of(&name, arguments, client).await? {
        Answer::Result(result) => Some(result.message(&call.id).into()),
        // Nobody can be asked outside of a session, so no tool does.
        Answer::Question(_) => None,
    }
}

fn is_plain(headers: &HeaderMap) -> bool {
    let known = |revision: &[u8]| REVISIONS.iter().any(|known| known.as_bytes() == revision);
    let revision = headers.get(REVISION).map(|value| known(value.as_bytes()));
    revision.unwrap_or(true) && !OTHERS.iter().any(|name| headers.contains_key(name))
}
