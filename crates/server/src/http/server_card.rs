//! The server card: what this server is and where it is reached, for clients and registries that have not connected yet.
//!
//! It reveals nothing about roots, tools or settings.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use mcp::Server;
use serde_json::{Value, json};

use super::answers::{self, HttpReply};
use super::refusal::Refusal;

/// What the address of an endpoint ends with to get its card.
pub(super) const SUFFIX: &str = "/server-card";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
const NAME: &str = "io.github.mcp-filesystem/mcp-filesystem";
const DESCRIPTION: &str =
    "Lets AI agents work on files without ever leaving the directories they were given.";
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/mcp-server-card+json");
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// Answers a request for the card of an endpoint that is reached at this address, if the address is known.
pub(super) fn answer(
    method: &Method,
    server: &Server,
    url: Option<String>,
) -> Result<HttpReply, Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::method("GET"));
    }
    let card = card(server, url).to_string();
    let mut reply = answers::json(StatusCode::OK, card.into_bytes());
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(CACHE_CONTROL, KEPT);
    Ok(reply)
}

fn card(server: &Server, url: Option<String>) -> Value {
    let info = &server.service().catalogue().info().server_info;
    let mut card = json!({
        "$schema": SCHEMA,
        "name": NAME,
        "version": info.version,
        "title": info.title,
        "description": DESCRIPTION,
        "icons": info.icons,
    });
    if let Some(url) = url {
        card["remotes"] = json!([{
            "type": "streamable-http",
            "url": url,
            "supportedProtocolVersions": mcp::known_revisions(),
        }]);
    }
    card
}
