//! Reads the headers of an HTTP request, and checks that they agree with its body.
//!
//! Proxies route by headers: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`. From 2026-07-28 on
//! they are required. In every revision, headers that are present have to agree with the body. Otherwise a request
//! could pass a proxy by its headers and be served by its body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AsHeaderName, HeaderMap, HeaderName};
use rmcp::model::{ErrorCode, ErrorData, JsonObject, ProtocolVersion, RequestId};
use serde_json::Value;
use toolset::{Service, field, shortened};

use crate::connection::Response;
use crate::message::{Message, Params};
use crate::result;
use crate::revision::{self, DISCOVER, Meta, UNSAID};

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Their spelling in messages.
const SHOWN_METHOD: &str = "Mcp-Method";
const SHOWN_NAME: &str = "Mcp-Name";
const PARAM: &str = "Mcp-Param-";
/// Their spelling as header names.
const PARAM_LOWER: &str = "mcp-param-";
/// How a header encodes a value that it cannot hold as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// What the headers say about a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    /// The revision that the headers name, or the one that is meant if they name none.
    pub revision: ProtocolVersion,
    /// Whether it belongs to a client that greets, and so to a session if the endpoint has sessions.
    pub is_legacy: bool,
    /// Whether the request names its revision itself, so that errors have a status of their own.
    names_revision: bool,
    /// Whether it lacks the fields that introduce a client.
    is_incomplete: bool,
}

impl Judged {
    /// The status of a reply. Up to 2025-11-25 every reply is a 200.
    #[must_use]
    pub fn status(&self, reply: &Response) -> u16 {
        match reply.error {
            Some(code) if self.names_revision => match code {
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
                | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
                | ErrorCode::HEADER_MISMATCH => 400,
                ErrorCode::INVALID_PARAMS if self.is_incomplete => 400,
                ErrorCode::METHOD_NOT_FOUND => 404,
                _ => 200,
            },
            _ => 200,
        }
    }
}

/// Why a request is refused by its headers. The status is 400.
#[derive(Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// As plain text.
    Text(String),
    /// As a JSON-RPC error.
    Message {
        /// Its message.
        reason: String,
        /// The whole reply.
        reply: Vec<u8>,
    },
}

impl HeaderFault {
    fn message(id: Option<&RequestId>, error: ErrorData) -> HeaderFault {
        HeaderFault::Message {
            reply: result::error(id, &error),
            reason: error.message.into_owned(),
        }
    }

    fn mismatch(id: Option<&RequestId>, reason: String) -> HeaderFault {
        HeaderFault::message(id, ErrorData::header_mismatch(reason, None))
    }
}

/// Checks a request without a body.
pub fn judge_bodiless(headers: &HeaderMap) -> Result<Judged, HeaderFault> {
    let named = named_revision(headers)?;
    check_known(named)?;
    let revision = named.map_or(UNSAID, revision::named);
    Ok(Judged {
        is_legacy: revision::is_legacy(false, false, &revision),
        revision,
        names_revision: false,
        is_incomplete: false,
    })
}

/// Checks a message against its headers.
pub fn judge(
    headers: &HeaderMap,
    message: &Message,
    service: &Service,
) -> Result<Judged, HeaderFault> {
    let named = named_revision(headers)?;
    let (id, method, params) = match message {
        Message::Request(request) => (
            Some(&request.id),
            Some(request.method.as_str()),
            Some(&request.params),
        ),
        Message::Notification(note) => (None, Some(note.method.as_str()), Some(&note.params)),
        Message::Answer(_) => (None, None, None),
    };
    let is_request = id.is_some();
    let meta = Meta(params.filter(|_| is_request).and_then(Params::meta));
    let greets = is_request && params.is_some_and(|params| revision::greets(method, params));
    if greets {
        check_greeting(named, params, id)?;
    } else if meta.revision().is_none() {
        check_known(named)?;
    }
    if let (Some(method), Some(params)) = (method, params) {
        let is_required = !greets && named.is_some_and(revision::is_newest_name);
        let agreed = check_agreement(headers, method, params, service, is_required);
        agreed.map_err(|reason| HeaderFault::mismatch(id, reason))?;
    }
    if is_request && !greets {
        check_revision(named, method == Some(DISCOVER), meta, id)?;
    }
    let of_headers = named.map_or(UNSAID, revision::named);
    let revision = meta.revision().map(revision::named);
    let revision = revision.as_ref().unwrap_or(&of_headers);
    let is_introduced = is_request && meta.introduces();
    Ok(Judged {
        is_legacy: revision::is_legacy(greets, is_introduced, revision),
        revision: of_headers,
        names_revision: !greets && (meta.revision().is_some() || method == Some(DISCOVER)),
        is_incomplete: !is_introduced,
    })
}

/// The revision that a header names.
fn named_revision(headers: &HeaderMap) -> Result<Option<&str>, HeaderFault> {
    let mut values = headers.get_all(REVISION).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        // With two values, a proxy could use either one.
        let fault = "Bad Request: there is more than one MCP-Protocol-Version header";
        return Err(HeaderFault::Text(fault.to_owned()));
    }
    let named = first.map(|value| value.to_str()).transpose();
    named.map_err(|_| {
        HeaderFault::Text("Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned())
    })
}

fn check_known(named: Option<&str>) -> Result<(), HeaderFault> {
    match named {
        Some(named) if !revision::is_known(named) => Err(HeaderFault::Text(format!(
            "Bad Request: Unsupported MCP-Protocol-Version: {named}"
        ))),
        _ => Ok(()),
    }
}

/// `initialize` may omit the header: nothing is agreed on yet.
fn check_greeting(
    named: Option<&str>,
    params: Option<&Params>,
    id: Option<&RequestId>,
) -> Result<(), HeaderFault> {
    let asked = params.and_then(|params| params.text("protocolVersion"));
    match (named, asked) {
        (Some(named), Some(asked)) if named != asked => Err(HeaderFault::message(
            id,
            ErrorData::invalid_request(
                format!(
                    "Invalid Request: MCP-Protocol-Version header ({named}) does not match initialize \
                     params.protocolVersion ({asked})"
                ),
                None,
            ),
        )),
        _ => Ok(()),
    }
}

/// Compares the revision of the headers with that of the body.
fn check_revision(
    named: Option<&str>,
    discovers: bool,
    meta: Meta<'_>,
    id: Option<&RequestId>,
) -> Result<(), HeaderFault> {
    match (named, meta.revision()) {
        (named, None) if discovers || named.is_some_and(revision::is_newest_name) => {
            let introduced = meta.check_introduction();
            introduced.map_err(|fault| {
                let fault = format!("Invalid params: {fault}");
                HeaderFault::message(id, ErrorData::invalid_params(fault, None))
            })
        }
        (_, None) => Ok(()),
        (None, Some(_)) => Err(HeaderFault::mismatch(
            id,
            "request _meta protocolVersion requires MCP-Protocol-Version header".to_owned(),
        )),
        (Some(named), Some(own)) if named != own => Err(HeaderFault::mismatch(
            id,
            format!(
                "MCP-Protocol-Version header ({named}) does not match request _meta protocolVersion ({own})"
            ),
        )),
        (Some(_), Some(_)) => Ok(()),
    }
}

/// Compares the headers that repeat a message with the message.
fn check_agreement(
    headers: &HeaderMap,
    method: &str,
    params: &Params,
    service: &Service,
    is_required: bool,
) -> Result<(), String> {
    match only_value(headers, METHOD, SHOWN_METHOD)? {
        None if is_required => return Err("missing required Mcp-Method header".to_owned()),
        Some(value) if value != method => {
            return Err(format!(
                "Mcp-Method header `{value}` does not match body method `{method}`"
            ));
        }
        _ => {}
    }
    check_name(headers, method, name_of(method, params), is_required)?;
    if !is_required && !has_param(headers) {
        return Ok(());
    }
    if method == "tools/call" {
        let schema = params
            .text("name")
            .and_then(|name| service.catalogue().tool(name));
        let schema = schema.map(|tool| &*tool.input_schema);
        check_params(headers, schema, params.get("arguments"), is_required)?;
    } else {
        check_unmarked(headers, None, |_| false)?;
    }
    Ok(())
}

/// Whether a header repeats an argument.
fn has_param(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|header| header.as_str().starts_with(PARAM_LOWER))
}

/// What a message is about, if its method names something.
fn name_of<'params>(method: &str, params: &'params Params) -> Option<&'params str> {
    params.text(match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    })
}

fn check_name(
    headers: &HeaderMap,
    method: &str,
    name: Option<&str>,
    is_required: bool,
) -> Result<(), String> {
    match (only_value(headers, NAME, SHOWN_NAME)?, name) {
        (None, Some(_)) if is_required => {
            Err(format!("missing required Mcp-Name header for `{method}`"))
        }
        (None, _) => Ok(()),
        (Some(value), Some(name)) => check_value(SHOWN_NAME, value, name),
        // A proxy could route by it.
        (Some(_), None) => {
            let method = shortened(method);
            Err(format!(
                "unexpected Mcp-Name header: `{method}` has no name in its body to compare it with; leave it out"
            ))
        }
    }
}

/// Compares arguments with the headers that repeat them. A tool's schema marks the arguments that must be repeated;
/// others may be.
fn check_params(
    headers: &HeaderMap,
    schema: Option<&JsonObject>,
    arguments: Option<&Value>,
    is_required: bool,
) -> Result<(), String> {
    let marked: Vec<(&str, &str)> = schema.map(marked).unwrap_or_default();
    for (argument, header) in &marked {
        let header = format!("{PARAM}{header}");
        let value = only_value(headers, &*header, &header)?;
        let own = arguments.and_then(|own| own.get(*argument)).and_then(plain);
        match (value, own) {
            (None, None) => {}
            (None, Some(_)) if !is_required => {}
            (None, Some(_)) => return Err(format!("missing {header} header for `{argument}`")),
            (Some(_), None) => {
                return Err(format!(
                    "unexpected {header} header for absent or null `{argument}`"
                ));
            }
            (Some(value), Some(own)) => check_value(&header, value, &own)?,
        }
    }
    // A tool that does not exist is refused by its name.
    if schema.is_none() {
        return Ok(());
    }
    let is_marked = |name: &str| {
        marked
            .iter()
            .any(|(_, header)| header.eq_ignore_ascii_case(name))
    };
    check_unmarked(headers, arguments.and_then(Value::as_object), is_marked)
}

/// Compares the headers that no schema asks for. One that repeats no argument is refused: a proxy could route by it.
fn check_unmarked(
    headers: &HeaderMap,
    arguments: Option<&JsonObject>,
    is_marked: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let names = headers.keys().map(|header| header.as_str());
    let names = names.filter_map(|header| header.strip_prefix(PARAM_LOWER));
    for name in names.filter(|name| !is_marked(name)) {
        let header = format!("{PARAM}{name}");
        let same = |(key, _): &(&String, &Value)| key.eq_ignore_ascii_case(name);
        let own = arguments.and_then(|arguments| arguments.iter().find(same));
        let Some(own) = own.and_then(|(_, own)| plain(own)) else {
            return Err(format!(
                "unexpected {header} header: there is no such argument to compare it with"
            ));
        };
        if let Some(value) = only_value(headers, &*header, &header)? {
            check_value(&header, value, &own)?;
        }
    }
    Ok(())
}

/// The arguments that a schema wants repeated, with the names of their headers.
fn marked(schema: &JsonObject) -> Vec<(&str, &str)> {
    let properties = field(schema, "properties").and_then(Value::as_object);
    let each = properties.into_iter().flatten();
    let marked = each.filter_map(|(name, property)| {
        let header = field(property.as_object()?, "x-mcp-header")?.as_str()?;
        Some((name.as_str(), header))
    });
    marked.collect()
}

/// A plain value as it appears in a header.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn check_value(header: &str, value: &str, own: &str) -> Result<(), String> {
    let decoded = decoded(value).ok_or_else(|| format!("{header} header is not valid Base64"))?;
    if decoded == own {
        return Ok(());
    }
    let (said, own) = (shortened(&decoded), shortened(own));
    Err(format!(
        "{header} header `{said}` does not match body value `{own}`"
    ))
}

fn decoded(value: &str) -> Option<String> {
    let (start, end) = ENCODED;
    let inner = value
        .strip_prefix(start)
        .and_then(|value| value.strip_suffix(end));
    match inner {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The one value of a header. A proxy could use a second one.
fn only_value<'headers>(
    headers: &'headers HeaderMap,
    header: impl AsHeaderName,
    name: &str,
) -> Result<Option<&'headers str>, String> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("duplicate {name} header"));
    }
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| format!("{name} header is not plain text"))
}
