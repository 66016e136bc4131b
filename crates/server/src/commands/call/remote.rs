//! `call --url`: calls a tool of a running server, by the protocol's newest revision.

use anyhow::{Context, Error, Result, anyhow, bail};
use serde_json::{Value, json};

use super::answer::ToolAnswer;
use super::arguments;
use super::http_client::{EndpointClient, EndpointReply};
use super::unknown_tool;
use crate::command_line::{CallArguments, CallRequest, RemoteServer};
use crate::commands::server_url::ServerUrl;
use crate::operator_files::{self, reason};
use crate::settings::Toolset;

/// The revision that the request speaks: it needs no session.
const REVISION: &str = "2026-07-28";
/// The endpoint of the first tool set.
const ENDPOINT: &str = "/mcp";
/// The environment variable of the token.
const TOKEN: &str = "MCP_FILESYSTEM_TOKEN";

/// Calls the tool of a running server and prints its answer.
pub(crate) fn run(
    server: &RemoteServer,
    set: Option<Toolset>,
    request: &CallRequest,
) -> Result<()> {
    let endpoint = match set {
        Some(set) => format!("{ENDPOINT}/{}", set.name()),
        None => ENDPOINT.to_owned(),
    };
    let url = ServerUrl::parse(&server.url, &endpoint)?;
    let shown = url.shown();
    let certificates = server.ca_file.clone();
    let client = EndpointClient::new(url, token(server)?, certificates);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answer = runtime.block_on(call(&client, request));
    answer.context(shown)?.print(&request.tool)
}

/// The token of the file, or else of the environment.
fn token(server: &RemoteServer) -> Result<Option<String>> {
    let Some(path) = &server.token_file else {
        return Ok(std::env::var(TOKEN).ok().filter(|token| !token.is_empty()));
    };
    let read = operator_files::read(path);
    let (text, _) = read.map_err(|error| anyhow!("--token-file: {path:?}: {}", reason(&error)))?;
    let mut lines = text.lines().map(str::trim);
    let token = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let token =
        token.with_context(|| format!("--token-file: {path:?}: there is no token in it"))?;
    Ok(Some(token.to_owned()))
}

async fn call(client: &EndpointClient, request: &CallRequest) -> Result<ToolAnswer> {
    let tool = request.tool.as_str();
    // Only NAME=VALUE pairs need the tool's schema.
    let schema = match &request.arguments {
        CallArguments::Pairs(_) => schema_of(client, tool).await?,
        _ => Value::Null,
    };
    let arguments = arguments::read(&request.arguments, &schema)?;
    let params = json!({ "name": tool, "arguments": arguments });
    let result = ask(client, "tools/call", Some(tool), params).await;
    let result = result.map_err(|error| with_hint(error, tool))?;
    answer_of(&result)
}

/// Adds which set has a tool that the server does not know at this address.
fn with_hint(error: Error, tool: &str) -> Error {
    let is_unknown = error.to_string().starts_with("Unknown tool");
    match is_unknown && unknown_tool::other_set(tool).is_some() {
        true => unknown_tool::fault(tool, &[]),
        false => error,
    }
}

/// The input schema of a tool, from the server's list.
async fn schema_of(client: &EndpointClient, tool: &str) -> Result<Value> {
    let result = ask(client, "tools/list", None, json!({})).await?;
    let tools = result.get("tools").and_then(Value::as_array);
    let tools = tools.context("the server does not list its tools")?;
    let name_of = |one: &Value| one.get("name").and_then(Value::as_str).map(str::to_owned);
    let found = tools
        .iter()
        .find(|one| name_of(one).as_deref() == Some(tool));
    let Some(found) = found else {
        let names: Vec<String> = tools.iter().filter_map(name_of).collect();
        return Err(unknown_tool::fault(tool, &names));
    };
    Ok(found.get("inputSchema").cloned().unwrap_or_default())
}

/// Makes one request and returns its result.
async fn ask(
    client: &EndpointClient,
    method: &str,
    name: Option<&str>,
    mut params: Value,
) -> Result<Value> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo":
            { "name": "mcp-filesystem call", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers = vec![("mcp-protocol-version", REVISION), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    let reply = client.post(&headers, message.to_string()).await?;
    result_of(&reply)
}

fn result_of(reply: &EndpointReply) -> Result<Value> {
    let Some(message) = message_of(reply) else {
        bail!("the server answers {}: {}", reply.status, refusal(reply));
    };
    if let Some(error) = message.get("error") {
        let text = error.get("message").and_then(Value::as_str);
        bail!("{}", text.unwrap_or("the server refuses the request"));
    }
    let result = message.get("result").cloned();
    result.with_context(|| format!("the server answers {}", reply.status))
}

/// The answer in a body: the body itself, or the last event of a stream.
fn message_of(reply: &EndpointReply) -> Option<Value> {
    let body = reply.body.as_str();
    let is_answer = |message: &Value| message.get("result").or(message.get("error")).is_some();
    let parsed = |text: &str| serde_json::from_str(text).ok().filter(is_answer);
    if !reply.is_stream {
        return parsed(body);
    }
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    events.filter_map(|event| parsed(event.trim())).next_back()
}

/// Why a request was refused before any tool saw it, with what to do.
fn refusal(reply: &EndpointReply) -> String {
    let said = reply.body.trim();
    let said = if said.is_empty() {
        "no reason is given"
    } else {
        said
    };
    match reply.status {
        401 => format!("{said}; give a token with --token-file or ${TOKEN}"),
        _ => said.to_owned(),
    }
}

fn answer_of(result: &Value) -> Result<ToolAnswer> {
    if result.get("inputRequests").is_some() {
        bail!("the tool asks its client something, and a shell cannot answer");
    }
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts = texts.filter_map(|block| block.get("text").and_then(Value::as_str));
    let text = texts.collect::<Vec<_>>().join("\n");
    Ok(ToolAnswer {
        text: (!text.is_empty()).then_some(text),
        structured: result.get("structuredContent").map(Value::to_string),
        is_error: result.get("isError") == Some(&Value::Bool(true)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(is_stream: bool, body: &str) -> EndpointReply {
        EndpointReply {
            status: 200,
            is_stream,
            body: body.to_owned(),
        }
    }

    #[test]
    fn an_answer_may_come_in_a_stream() {
        let stream = "data: {\"method\":\"notifications/progress\"}\n\n\
                      id: 2\ndata: {\"id\":1,\"result\":{\"isError\":true}}\n\n";
        let result = result_of(&reply(true, stream)).unwrap();
        assert!(answer_of(&result).unwrap().is_error);
        let plain = reply(false, r#"{"id":1,"error":{"message":"no such tool"}}"#);
        assert_eq!(result_of(&plain).unwrap_err().to_string(), "no such tool");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let refused = EndpointReply {
            status: 401,
            is_stream: false,
            body: String::new(),
        };
        let message = result_of(&refused).unwrap_err().to_string();
        assert!(message.contains("--token-file"), "{message}");
    }
}
