//! Any headers beside any message: taken or refused, never a panic. What is taken agrees with the body.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use mcp::headers::{judge, judge_bodiless};
use mcp::{Incoming, Message, message};
use toolset::{Admission, Deployment, Service, workspace};

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    Service::new(
        vec![workspace::toolset()],
        Admission::new(Deployment::for_tests()),
    )
    .expect("a service")
});

#[derive(Arbitrary, Debug)]
enum Name {
    Revision,
    Method,
    Name,
    Root,
    Path,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    headers: Vec<(Name, &'a [u8])>,
    body: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut headers = HeaderMap::new();
    for (name, value) in &input.headers {
        let name = match name {
            Name::Revision => "mcp-protocol-version",
            Name::Method => "mcp-method",
            Name::Name => "mcp-name",
            Name::Root => "mcp-param-root",
            Name::Path => "mcp-param-path",
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    let _ = judge_bodiless(&headers);
    let Incoming::Message(message) = message::read(input.body) else {
        return;
    };
    if judge(&headers, &message, &SERVICE).is_ok() {
        let method = match &message {
            Message::Request(request) => &request.method,
            Message::Notification(notification) => &notification.method,
            Message::Answer(_) => return,
        };
        let named = headers.get("mcp-method");
        assert!(named.is_none_or(|named| named.as_bytes() == method.as_bytes()));
    }
});
