//! `mcp-filesystem call`: one tool call from the shell, on the same road as a client's.

use std::io::{IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;
use toolset::{Caller, Service};

use crate::cli::Arguments;

/// The most bytes of arguments read from standard input.
const MAX_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// Calls a tool and prints its answer: text for people, JSON for pipes. A failed call fails the command.
pub(crate) async fn run(service: &Service, tool: &str, arguments: &Arguments) -> Result<()> {
    let caller = Caller {
        client: "shell".to_owned(),
        ..Caller::default()
    };
    let Some(result) = service.call(tool, parse(arguments)?, &caller).await else {
        let names: Vec<&str> = service.described().iter().map(|tool| &*tool.name).collect();
        bail!("unknown tool {tool}; there are {}", names.join(", "));
    };
    print(&result)?;
    match result.is_error {
        Some(true) => bail!("{tool} failed"),
        _ => Ok(()),
    }
}

fn parse(arguments: &Arguments) -> Result<JsonObject> {
    let text = match arguments {
        Arguments::None => return Ok(JsonObject::new()),
        Arguments::Text(text) => text.clone(),
        Arguments::Stdin => read_standard_input()?,
    };
    serde_json::from_str(&text).context("the arguments are not a JSON object")
}

fn read_standard_input() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_ARGUMENTS)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn print(result: &CallToolResult) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let shown = match (&result.structured_content, out.is_terminal()) {
        (Some(structured), false) => serde_json::to_string(structured)?,
        (Some(Value::Object(_)) | None, true) | (None, false) => text(result),
        (Some(structured), true) => serde_json::to_string_pretty(structured)?,
    };
    writeln!(out, "{}", shown.trim_end_matches('\n'))?;
    Ok(())
}

fn text(result: &CallToolResult) -> String {
    let blocks = result.content.iter().filter_map(|block| block.as_text());
    let texts: Vec<String> = blocks.map(|block| readable(&block.text)).collect();
    texts.join("\n")
}

/// JSON on one line is spread over several for people.
fn readable(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => {
            serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned())
        }
        _ => text.to_owned(),
    }
}
