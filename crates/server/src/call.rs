//! `mcp-filesystem call`: one tool call from the shell, on the same road as a client's.

use std::io::{IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;
use tokio::sync::watch;
use toolset::{Caller, Progress, Service};

use crate::cli::Arguments;
use crate::progress;
use crate::readable::readable;

/// The most bytes of arguments read from standard input.
const MAX_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// Calls a tool and prints its answer: text for people, JSON for pipes. A failed call fails the command.
pub(crate) async fn run(service: &Service, tool: &str, arguments: &Arguments) -> Result<()> {
    let (told, done) = watch::channel(0);
    let caller = Caller {
        client: "shell".to_owned(),
        progress: Some(Progress::Watcher(told)),
        ..Caller::default()
    };
    let work = service.call(tool, parse(arguments)?, &caller);
    let Some(result) = progress::shown(work, done).await else {
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
        _ => text(result),
    };
    writeln!(out, "{}", shown.trim_end_matches('\n'))?;
    Ok(())
}

/// What a person reads: the text for models, or the structured half where the text only repeats it as JSON.
fn text(result: &CallToolResult) -> String {
    let blocks = result.content.iter().filter_map(|block| block.as_text());
    let texts: Vec<&str> = blocks.map(|block| block.text.as_str()).collect();
    let text = texts.join("\n");
    match &result.structured_content {
        Some(structured) if text.is_empty() || repeats(&text, structured) => readable(structured),
        _ => text,
    }
}

fn repeats(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}
