//! What headers say has to agree with what the body says.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp::headers::{HeaderFault, Judged, judge, judge_bodiless};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use crate::service::{NEWEST, introduction, sent, server};

type Header<'a> = (&'a str, &'a str);

fn headers(list: &[Header<'_>]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn judged(list: &[Header<'_>], message: &Value) -> Result<Judged, String> {
    let server = server();
    judge(&headers(list), &sent(message), server.service()).map_err(|fault| match fault {
        HeaderFault::Text(text) => text,
        HeaderFault::Message { reply: message, .. } => {
            let message: Value = serde_json::from_slice(&message).unwrap();
            message["error"]["message"].as_str().unwrap().to_owned()
        }
    })
}

fn call(meta: Option<Value>) -> Value {
    let mut params = json!({ "name": "toy", "arguments": { "root": "r" } });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

const WANTED: [Header<'_>; 3] = [
    ("mcp-protocol-version", NEWEST),
    ("mcp-method", "tools/call"),
    ("mcp-name", "toy"),
];

#[test]
fn the_newest_revision_wants_its_headers() {
    let newest = call(Some(introduction()));
    assert!(!judged(&WANTED, &newest).unwrap().is_legacy);
    for index in 0..WANTED.len() {
        let mut other = WANTED.to_vec();
        other[index].1 = "other";
        assert!(judged(&other, &newest).is_err(), "{other:?}");
        let mut twice = WANTED.to_vec();
        twice.push(WANTED[index]);
        assert!(judged(&twice, &newest).is_err(), "{twice:?}");
        let mut less = WANTED.to_vec();
        less.remove(index);
        assert!(judged(&less, &newest).is_err(), "{less:?}");
    }
    assert!(judged(&WANTED, &call(None)).is_err(), "no introduction");
}

#[test]
fn in_older_revisions_headers_may_be_missing_and_have_to_agree_where_they_are_there() {
    let older = call(None);
    for revision in [None, Some("2025-03-26"), Some("2025-11-25")] {
        let revision: Vec<Header<'_>> = revision
            .into_iter()
            .map(|revision| ("mcp-protocol-version", revision))
            .collect();
        let with = |header: Header<'static>| {
            let mut headers = revision.clone();
            headers.push(header);
            judged(&headers, &older)
        };
        assert!(judged(&revision, &older).unwrap().is_legacy);
        assert!(with(("mcp-method", "tools/call")).is_ok());
        assert!(with(("mcp-name", "=?base64?dG95?=")).is_ok());
        assert!(with(("mcp-param-root", "r")).is_ok());
        for (header, fault) in [
            (
                ("mcp-method", "tools/list"),
                "Mcp-Method header `tools/list` does not match",
            ),
            (
                ("mcp-name", "other"),
                "Mcp-Name header `other` does not match",
            ),
            (("mcp-name", "=?base64?%?="), "not valid Base64"),
            (
                ("mcp-param-root", "s"),
                "Mcp-Param-root header `s` does not match",
            ),
            (
                ("mcp-param-other", "x"),
                "unexpected Mcp-Param-other header: there is no such argument",
            ),
        ] {
            let told = with(header).unwrap_err();
            assert!(told.contains(fault), "{told}");
        }
    }
}

#[test]
fn a_header_that_has_nothing_to_be_compared_with_is_refused() {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let nameless = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {} });
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for message in [&list, &nameless, &note] {
        assert!(judged(&[], message).is_ok());
        let told = judged(&[("mcp-name", "toy")], message).unwrap_err();
        assert!(told.contains("unexpected Mcp-Name header"), "{told}");
    }
    for message in [&list, &note] {
        let told = judged(&[("mcp-param-root", "r")], message).unwrap_err();
        assert!(told.contains("unexpected Mcp-Param-root header"), "{told}");
    }
}

#[test]
fn revisions_have_to_be_known_and_to_agree() {
    let refused = |list: &[Header<'_>], message: &Value| judged(list, message).unwrap_err();
    let unknown = refused(&[("mcp-protocol-version", "1.0")], &call(None));
    assert_eq!(
        unknown,
        "Bad Request: Unsupported MCP-Protocol-Version: 1.0"
    );
    let twice = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert!(refused(&twice, &call(None)).contains("more than one"));
    let missing = refused(&[], &call(Some(introduction())));
    assert!(
        missing.contains("requires MCP-Protocol-Version header"),
        "{missing}"
    );
    let greeting = |revision: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": revision } });
    let own = [("mcp-protocol-version", "2025-06-18")];
    assert!(judged(&own, &greeting("2025-06-18")).unwrap().is_legacy);
    assert!(refused(&own, &greeting("2025-11-25")).contains("does not match initialize"));
    assert!(judged(&[], &greeting(NEWEST)).unwrap().is_legacy);
}

#[test]
fn a_request_without_a_body_is_judged_by_its_revision_alone() {
    let at = |revision| judge_bodiless(&headers(&[("mcp-protocol-version", revision)]));
    assert!(judge_bodiless(&HeaderMap::new()).unwrap().is_legacy);
    assert!(at("2025-06-18").unwrap().is_legacy);
    assert!(!at(NEWEST).unwrap().is_legacy);
    assert!(at("x").is_err());
}

#[test]
fn a_greeting_that_introduces_itself_is_no_greeting() {
    let params = json!({ "_meta": introduction() });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let named = [
        ("mcp-protocol-version", NEWEST),
        ("mcp-method", "initialize"),
    ];
    let judged = judged(&named, &message).unwrap();
    assert!(!judged.is_legacy);
    let missing = mcp::Response {
        message: Vec::new().into(),
        error: Some(ErrorCode::METHOD_NOT_FOUND),
        held: None,
    };
    assert_eq!(judged.status(&missing), 404);
}
