//! Builds HTTP replies: plain text, JSON, streams of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use mcp::MessageStream;
use ops::Reserved;
use toolset::ReplyMessage;

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
pub(super) fn message(
    status: StatusCode,
    message: ReplyMessage,
    held: Option<Reserved>,
) -> HttpReply {
    match message.into_whole() {
        Ok(bytes) => whole(status, mcp::held_bytes(bytes, held), JSON),
        Err(large) => {
            let body = MessageBody(MessageStream::new(large, held));
            let mut reply = Response::new(body.boxed_unsync());
            *reply.status_mut() = status;
            reply.headers_mut().insert(CONTENT_TYPE, JSON);
            reply
        }
    }
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> HttpReply {
    let mut reply = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *reply.status_mut() = status;
    reply
}

/// One event that is already complete.
pub(super) fn ended_event(event: ReplyMessage) -> HttpReply {
    let mut reply = message(StatusCode::OK, event, None);
    reply.headers_mut().insert(CONTENT_TYPE, EVENTS);
    unbuffered(reply)
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

fn whole(status: StatusCode, body: Bytes, kind: HeaderValue) -> HttpReply {
    let mut reply = Response::new(Full::new(body).boxed_unsync());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// A message as a body. Its length is given only if it is certain; otherwise it is sent in chunks.
struct MessageBody(MessageStream);

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.0.poll_next(context);
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .length()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
