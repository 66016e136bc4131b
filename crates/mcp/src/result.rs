//! The one encoder: every reply, notification and question of ours as the bytes of one message.
//!
//! As a tree of values a large reply would take many times its size as text, so it never becomes one: a tool's reply is
//! already JSON, and is copied into its message.

use rmcp::model::{ErrorData, RequestId};
use serde::Serialize;
use toolset::{Media, MediaKind, ReplyMessage, ResourceLink, ToolResult, escape};

/// The bytes around the text and the structured content of a reply, also as an event of a stream.
const ROOM_BESIDES: usize = 256;

/// How results are worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Up to 2025-11-25.
    Older,
    /// From 2026-07-28 on, a result says that it is a result, because it could be a question.
    Newest,
}

/// How long a result may be kept, and by whom.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lifetime {
    result_type: &'static str,
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl Lifetime {
    /// Not at all: it may differ the next time, and for the next client.
    pub(crate) const PRIVATE: Lifetime = Lifetime {
        result_type: "complete",
        ttl_ms: 0,
        cache_scope: "private",
    };

    /// For this long, by anyone.
    pub(crate) fn public(ttl_ms: u64) -> Lifetime {
        Lifetime {
            ttl_ms,
            cache_scope: "public",
            ..Lifetime::PRIVATE
        }
    }
}

/// A message of ours.
#[derive(Serialize)]
struct Envelope<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(flatten)]
    rest: T,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<T> {
    Result(T),
    Error(T),
}

#[derive(Serialize)]
struct MethodCall<T> {
    method: &'static str,
    params: T,
}

/// The reply to a request that succeeded.
pub(crate) fn result(id: &RequestId, result: &impl Serialize) -> Vec<u8> {
    encoded(Some(id), Outcome::Result(result))
}

/// The reply to a request that is refused; without an id if none is known or if it belongs to another request.
pub(crate) fn error(id: Option<&RequestId>, error: &ErrorData) -> Vec<u8> {
    encoded(id, Outcome::Error(error))
}

/// A notification of ours.
pub(crate) fn notification(method: &'static str, params: &impl Serialize) -> Vec<u8> {
    encoded(None, MethodCall { method, params })
}

/// A request of ours.
pub(crate) fn question(id: &RequestId, method: &'static str, params: &impl Serialize) -> Vec<u8> {
    encoded(Some(id), MethodCall { method, params })
}

fn encoded(id: Option<&RequestId>, rest: impl Serialize) -> Vec<u8> {
    let message = Envelope {
        jsonrpc: "2.0",
        id,
        rest,
    };
    // Everything we send can be written as JSON.
    serde_json::to_vec(&message).unwrap_or_default()
}

/// Whether replies may have links to resources, which revisions know from 2025-06-18 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The client's revision has such blocks.
    Known,
    /// It would not know what the block is.
    Unknown,
}

/// The reply to a call of a tool. What is large in it is moved into the message.
pub(crate) fn tool_result(
    id: &RequestId,
    result: &mut ToolResult,
    wording: Wording,
    links: Links,
) -> ReplyMessage {
    let reply = &mut result.reply;
    let mut message = reply.begin_message(ROOM_BESIDES);
    message.push(br#"{"jsonrpc":"2.0","id":"#);
    push_id(id, message.open());
    message.push(match wording {
        Wording::Older => br#","result":{"content":["#.as_slice(),
        Wording::Newest => br#","result":{"resultType":"complete","content":["#,
    });
    if reply.has_text() {
        message.push(br#"{"type":"text","text":""#);
        reply.move_text(&mut message);
        message.push(br#""}"#);
    }
    if let Some(media) = reply.media() {
        push_media(media, reply.has_text(), message.open());
    }
    if let Some(link) = reply.link().filter(|_| links == Links::Known) {
        push_link(link, message.open());
    }
    message.push(b"]");
    if reply.structured().is_some() {
        message.push(br#","structuredContent":"#);
        reply.move_structured(&mut message);
    }
    let failed = br#","isError":true}}"#.as_slice();
    let whole = match result.is_error {
        true => failed,
        false => br#","isError":false}}"#,
    };
    message.finish(whole, failed)
}

/// The reply to a method that is no tool: its result is the object itself, as JSON.
pub(crate) fn method_result(
    id: &RequestId,
    result: &mut ToolResult,
    wording: Wording,
    lifetime: Option<Lifetime>,
) -> ReplyMessage {
    let reply = &mut result.reply;
    let mut message = reply.begin_message(ROOM_BESIDES);
    message.push(br#"{"jsonrpc":"2.0","id":"#);
    push_id(id, message.open());
    message.push(br#","result":"#);
    match wording {
        Wording::Older if reply.structured().is_none() => message.push(b"{}"),
        Wording::Older => reply.move_structured(&mut message),
        Wording::Newest => {
            message.push(b"{");
            push_kind(lifetime, message.open());
            if reply.structured().is_some_and(|object| object != b"{}") {
                message.push(b",");
            }
            reply.move_fields(&mut message);
        }
    }
    message.finish(b"}", b"}")
}

/// Adds what a result says of itself.
fn push_kind(lifetime: Option<Lifetime>, message: &mut Vec<u8>) {
    let Some(lifetime) = lifetime else {
        return message.extend_from_slice(br#""resultType":"complete""#);
    };
    let Lifetime {
        result_type,
        ttl_ms,
        cache_scope,
    } = lifetime;
    let kind =
        format!(r#""resultType":"{result_type}","ttlMs":{ttl_ms},"cacheScope":"{cache_scope}""#);
    message.extend_from_slice(kind.as_bytes());
}

/// Adds an image or sound block. Base64 and MIME types need no escapes.
fn push_media(media: &Media, is_second: bool, message: &mut Vec<u8>) {
    if is_second {
        message.push(b',');
    }
    if let Some(uri) = &media.uri {
        return push_resource(media, uri, message);
    }
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
    };
    let parts = [
        r#"{"type":""#,
        kind,
        r#"","mimeType":""#,
        media.mime_type,
        r#"","data":""#,
        &media.data,
        r#""}"#,
    ];
    for part in parts {
        message.extend_from_slice(part.as_bytes());
    }
}

/// Adds a link to a resource behind the text.
fn push_link(link: &ResourceLink, message: &mut Vec<u8>) {
    message.extend_from_slice(br#",{"type":"resource_link","uri":""#);
    escape(&link.uri, message);
    message.extend_from_slice(br#"","name":""#);
    escape(&link.name, message);
    message.extend_from_slice(br#""}"#);
}

/// Adds a block that is an embedded resource.
fn push_resource(media: &Media, uri: &str, message: &mut Vec<u8>) {
    message.extend_from_slice(br#"{"type":"resource","resource":{"uri":""#);
    escape(uri, message);
    let parts = [
        r#"","mimeType":""#,
        media.mime_type,
        r#"","blob":""#,
        &media.data,
        r#""}}"#,
    ];
    for part in parts {
        message.extend_from_slice(part.as_bytes());
    }
}

fn push_id(id: &RequestId, message: &mut Vec<u8>) {
    match id {
        RequestId::Number(number) => message.extend_from_slice(number.to_string().as_bytes()),
        RequestId::String(text) => {
            message.push(b'"');
            escape(text, message);
            message.push(b'"');
        }
    }
}
