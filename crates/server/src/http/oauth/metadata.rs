//! Tells clients which issuer to ask for a token: the metadata of a protected resource (RFC 9728), and the challenges that
//! lead there (RFC 6750).

use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::http::answers::{self, HttpReply};
use crate::http::refusal::Refusal;
use crate::settings::OAuthSettings;

/// Where the metadata of a resource is; the resource's own path follows.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The reason in a challenge, besides the address for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Challenge<'words> {
    /// There was no token.
    Missing,
    /// The token is invalid.
    Invalid(&'words str),
    /// The token is valid but does not let its holder in.
    Insufficient,
}

/// The path of the resource that a request for metadata is about: empty for the server as a whole. `None` if the
/// request is about something else.
pub(super) fn resource_of<'path>(path: &'path str, prefix: &str) -> Option<&'path str> {
    let rest = path.strip_prefix(WELL_KNOWN)?;
    // Clients put the path of the public address in between; a proxy may have taken it off.
    let rest = match rest.strip_prefix(prefix) {
        Some(inside) if inside.is_empty() || inside.starts_with('/') => inside,
        _ => rest,
    };
    match rest {
        "" | "/" => Some(""),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}

/// The metadata of the resource at a path.
pub(super) fn answer(
    method: &Method,
    settings: &OAuthSettings,
    scopes: &[String],
    path: &str,
) -> Result<HttpReply, Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::method("GET, HEAD"));
    }
    let document = json!({
        "resource": settings.public_url.at(path),
        "resource_name": "mcp-filesystem",
        "authorization_servers": [settings.issuer],
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
    });
    let mut reply = answers::json(StatusCode::OK, document.to_string().into_bytes());
    let kept = HeaderValue::from_static("public, max-age=300");
    reply.headers_mut().insert(CACHE_CONTROL, kept);
    Ok(reply)
}

/// The value of `WWW-Authenticate` for the resource at a path.
pub(super) fn challenge(
    settings: &OAuthSettings,
    scopes: &[String],
    path: &str,
    challenge: Challenge<'_>,
) -> HeaderValue {
    let error = match challenge {
        Challenge::Missing => String::new(),
        Challenge::Invalid(words) => {
            format!(r#"error="invalid_token", error_description="{words}", "#)
        }
        Challenge::Insufficient => r#"error="insufficient_scope", "#.to_owned(),
    };
    let metadata = settings.public_url.well_known(WELL_KNOWN, path);
    let scope = match scopes.is_empty() {
        true => String::new(),
        false => format!(r#", scope="{}""#, scopes.join(" ")),
    };
    let value = format!(r#"Bearer {error}resource_metadata="{metadata}"{scope}"#);
    // Settings hold no character that a header may not have.
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("Bearer"))
}
