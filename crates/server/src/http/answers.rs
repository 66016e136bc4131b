//! Builds HTTP replies: plain text, JSON, streams of events.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use ops::Reserved;

pub(super) type HttpReply = Response<UnsyncBoxBody<Bytes, Infallible>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Plain text, for people and logs.
pub(super) fn text(status: StatusCode, message: impl Into<Bytes>) -> HttpReply {
    whole(status, message.into(), PLAIN)
}

/// A JSON-RPC message.
pub(super) fn json(status: StatusCode, message: Vec<u8>) -> HttpReply {
    whole(status, message.into(), JSON)
}

/// A JSON-RPC message that keeps its room in the budget of bytes until it is written.
pub(super) fn held_json(status: StatusCode, message: Vec<u8>, held: Option<Reserved>) -> HttpReply {
    whole(status, mcp::held_bytes(message, held), JSON)
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> HttpReply {
    let mut reply = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *reply.status_mut() = status;
    reply
}

/// Events that are already complete.
pub(super) fn ended_events(events: Bytes) -> HttpReply {
    unbuffered(whole(StatusCode::OK, events, EVENTS))
}

/// Events sent as they happen.
pub(super) fn events<B>(body: B) -> HttpReply
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let mut reply = Response::new(body.boxed_unsync());
    reply.headers_mut().insert(CONTENT_TYPE, EVENTS);
    unbuffered(reply)
}

/// Tells proxies not to buffer the events.
fn unbuffered(mut reply: HttpReply) -> HttpReply {
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    reply
}

/// Refuses a method and lists those that are allowed.
pub(super) fn method_not_allowed(allowed: &'static str) -> HttpReply {
    let message = format!("Method Not Allowed: use {allowed}");
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, message);
    let allowed = HeaderValue::from_static(allowed);
    reply.headers_mut().insert(ALLOW, allowed);
    reply
}

fn whole(status: StatusCode, body: Bytes, kind: HeaderValue) -> HttpReply {
    let mut reply = Response::new(Full::new(body).boxed_unsync());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
