//! The files of the page. They are part of the program; nothing is loaded from anywhere else.

use hyper::body::Bytes;
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::{Method, StatusCode};

use super::{AdminReply, reply, text};

const HTML: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Security: only the page's own files run, it talks to this server alone, and nobody can put it into a frame.
pub(super) const PROTECTION: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
];

/// A file of the page by its path.
pub(super) fn file(path: &str, method: &Method) -> AdminReply {
    if method != Method::GET && method != Method::HEAD {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method Not Allowed: use GET",
        );
    }
    let (content, kind) = match path {
        "/" => (HTML, "text/html; charset=utf-8"),
        "/page.js" => (SCRIPT, "text/javascript; charset=utf-8"),
        "/page.css" => (STYLE, "text/css; charset=utf-8"),
        _ => {
            let message = "Not Found: the operator's page is /";
            return text(StatusCode::NOT_FOUND, message);
        }
    };
    let content = Bytes::from_static(content.as_bytes());
    reply(StatusCode::OK, content, HeaderValue::from_static(kind))
}
