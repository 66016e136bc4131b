//! Plain calls outside of sessions, answered without rmcp (see [`PlainCall`]).

use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use serde_json::Value;
use toolset::{Client, Revision, Service};

use super::site::{BOTH, JSON};
use crate::plain_call::{NEWEST, PlainCall};

/// The revisions in which nothing besides the call itself says how it is to be answered.
const OLDER: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
pub(super) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// What the newest revision repeats of a call.
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const ROOT: HeaderName = HeaderName::from_static("mcp-param-root");

/// Reads a request; `None` where it is no plain call, or anything about it is unusual.
pub(super) fn read(parts: &Parts, body: &[u8], service: &Service) -> Option<PlainCall> {
    let headers = &parts.headers;
    let is_usual = parts.method == Method::POST
        && headers.get(CONTENT_TYPE) == Some(&JSON)
        && headers.get(ACCEPT) == Some(&BOTH)
        && has_only(headers, SESSION, None);
    let revision = revision(headers).filter(|_| is_usual)?;
    let call = PlainCall::read(body).filter(|call| call.revision() == revision)?;
    let is_meant = match revision {
        Revision::Older => has_only(headers, METHOD, None),
        Revision::Newest => is_repeated(&call, headers, service.marks_root()),
    };
    is_meant.then_some(call)
}

/// The answer's body; `None`, with nothing done, where no tool has this name.
pub(super) async fn answer(call: PlainCall, service: &Service, client: &Client) -> Option<Bytes> {
    let revision = call.revision();
    let introduction = call.introduction.as_ref();
    let answer = service.call_of(&call.name, call.arguments, client, introduction);
    Some(answer.await?.message(&call.id, revision).into())
}

fn revision(headers: &HeaderMap) -> Option<Revision> {
    let says = |revision| has_only(headers, REVISION, revision);
    if says(None) || OLDER.into_iter().any(|older| says(Some(older))) {
        return Some(Revision::Older);
    }
    says(Some(NEWEST)).then_some(Revision::Newest)
}

/// Tells whether the headers say of a call what it says itself.
fn is_repeated(call: &PlainCall, headers: &HeaderMap, marks_root: bool) -> bool {
    let root = match call.arguments.get("root") {
        Some(Value::String(root)) if marks_root => Some(&**root),
        Some(_) if marks_root => return false,
        _ => None,
    };
    has_only(headers, METHOD, Some("tools/call"))
        && has_only(headers, NAME, Some(&call.name))
        && has_only(headers, ROOT, root)
}

/// Tells whether a header has this value and no other, or is not there where it has none.
fn has_only(headers: &HeaderMap, name: HeaderName, value: Option<&str>) -> bool {
    let values = headers.get_all(name);
    // What a header cannot hold is written otherwise in it, and rmcp reads it.
    let is_text = value.is_none_or(|value| value.is_ascii() && !value.starts_with("=?base64?"));
    is_text
        && values
            .iter()
            .map(HeaderValue::as_bytes)
            .eq(value.map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use serde_json::json;
    use toolset::{Deployment, Gate, workspace};

    use super::*;

    const NEWEST_HEADERS: [(&str, &str); 4] = [
        ("mcp-protocol-version", NEWEST),
        ("mcp-method", "tools/call"),
        ("mcp-name", "stat_file"),
        ("mcp-param-root", "r"),
    ];

    fn service(root_header: bool) -> Service {
        let gate = Gate::new(Deployment {
            root_header,
            ..Deployment::default()
        });
        Service::new(vec![workspace::toolset()], gate).expect("a service")
    }

    fn body(meta: bool) -> Vec<u8> {
        let mut params = json!({ "name": "stat_file", "arguments": { "root": "r" } });
        if meta {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": NEWEST,
                "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {}
            });
        }
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
            .to_string()
            .into_bytes()
    }

    fn is_taken(headers: &[(&str, &str)], body: &[u8], service: &Service) -> bool {
        let mut request = Request::post("/mcp")
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, BOTH);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        read(&parts, body, service).is_some()
    }

    #[test]
    fn calls_of_older_revisions_are_taken_without_a_word_about_them() {
        let service = service(true);
        let taken = |headers: &[(&str, &str)]| is_taken(headers, &body(false), &service);
        assert!(taken(&[]));
        assert!(taken(&[("mcp-protocol-version", "2025-06-18")]));
        for unusual in [
            ("mcp-protocol-version", "2024-11-05"),
            ("mcp-protocol-version", NEWEST),
            ("mcp-session-id", "1"),
            ("mcp-method", "tools/call"),
        ] {
            assert!(!taken(&[unusual]), "{unusual:?}");
        }
    }

    #[test]
    fn calls_of_the_newest_revision_are_taken_if_their_headers_say_the_same() {
        let newest = body(true);
        let marked = service(true);
        assert!(is_taken(&NEWEST_HEADERS, &newest, &marked));
        assert!(!is_taken(&NEWEST_HEADERS, &body(false), &marked));
        for index in 0..NEWEST_HEADERS.len() {
            let mut headers = NEWEST_HEADERS.to_vec();
            headers[index].1 = "other";
            assert!(!is_taken(&headers, &newest, &marked), "{headers:?}");
            headers.push(NEWEST_HEADERS[index]);
            assert!(!is_taken(&headers, &newest, &marked), "{headers:?}");
            headers = NEWEST_HEADERS.to_vec();
            headers.remove(index);
            assert!(!is_taken(&headers, &newest, &marked), "{headers:?}");
        }
        let unmarked = service(false);
        assert!(is_taken(&NEWEST_HEADERS[..3], &newest, &unmarked));
    }
}
