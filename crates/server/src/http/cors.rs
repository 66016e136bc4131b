//! Answers browsers on behalf of pages of a listed origin (CORS). The host check has already refused every other
//! origin.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderValue, ORIGIN, VARY,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

/// The headers of MCP requests that a page may send.
const HEADERS: &str = "authorization, content-type, accept, last-event-id, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name, mcp-param-root";
/// The headers of MCP replies that a page may see.
const EXPOSED: &str = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";
/// How long a browser may remember the answer, in seconds.
const REMEMBERED: &str = "3600";

/// The origin of the page that sends the request, if a page does.
pub(super) fn origin(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ORIGIN).cloned()
}

/// Tells whether a request is a browser's preflight.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets the page read the reply.
pub(super) fn open_to<B>(origin: HeaderValue, reply: &mut Response<B>) {
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Answers a preflight.
pub(super) fn preflight<B: Default>() -> Response<B> {
    let mut reply = Response::new(B::default());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let answers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, OPTIONS"),
        (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    for (name, value) in answers {
        reply
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    reply
}
