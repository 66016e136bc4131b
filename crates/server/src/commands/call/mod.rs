//! `mcp-filesystem call`: one tool call from the shell, through the same dispatch as a client's.

mod progress_bar;
mod readable;

use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use sandbox::Users;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolset::{Admission, CallOutcome, Caller, Client, EncodedReply, Service};

use self::readable::readable;
use crate::command_line::CallArguments;
use crate::deployment::{Reopening, deployment};
use crate::settings::Settings;
use crate::tool_sets::every_set;
use crate::{guide_project, open_roots};

/// The most bytes of arguments read from standard input.
const MAX_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// Opens the roots, confines the process as the server does, and calls the tool.
pub(crate) fn run(settings: &Settings, tool: &str, arguments: &CallArguments) -> Result<()> {
    let roots = open_roots::open(settings)?;
    let project = guide_project::open(settings)?;
    let users = Users::load();
    sandbox::lock_in(&roots, settings.landlock, &[])?;
    let admission = Admission::new(deployment(settings, &roots, users, Reopening::No));
    let service = every_set(settings, admission, project.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(call_and_print(&service, tool, arguments))
}

/// Calls a tool and prints its answer: text on a terminal, JSON elsewhere. If the call fails, so does the command.
async fn call_and_print(service: &Service, tool: &str, arguments: &CallArguments) -> Result<()> {
    let (told, done) = watch::channel(0);
    let caller = Caller {
        name: "shell".to_owned(),
        program: Some("shell".to_owned()),
        client: Arc::new(Shell {
            told,
            gone: CancellationToken::new(),
        }),
        ..Caller::default()
    };
    let arguments = Value::Object(parse(arguments)?);
    let work = service.call(tool, arguments, &caller);
    // The shell cannot be asked, so the answer is never a question.
    let Some(CallOutcome::Result(result)) = progress_bar::shown(work, done).await else {
        let names: Vec<&str> = service
            .catalogue()
            .described()
            .iter()
            .map(|tool| &*tool.name)
            .collect();
        bail!("unknown tool {tool}; there are {}", names.join(", "));
    };
    print(&result.reply)?;
    if result.is_error {
        bail!("{tool} failed");
    }
    Ok(())
}

/// The shell as a client.
#[derive(Debug)]
struct Shell {
    told: watch::Sender<u64>,
    gone: CancellationToken,
}

impl Client for Shell {
    fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn tell_progress(&self, done: u64) {
        self.told.send_replace(done);
    }
}

fn parse(arguments: &CallArguments) -> Result<Map<String, Value>> {
    let text = match arguments {
        CallArguments::None => return Ok(Map::new()),
        CallArguments::Text(text) => text.clone(),
        CallArguments::Stdin => read_standard_input()?,
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

fn print(reply: &EncodedReply) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let shown = match (reply.structured(), out.is_terminal()) {
        (Some(structured), false) => String::from_utf8_lossy(structured).into_owned(),
        _ => text(reply)?,
    };
    writeln!(out, "{}", shown.trim_end_matches('\n'))?;
    Ok(())
}

/// What a person reads: the text, or the structured content if the text only repeats it as JSON.
fn text(reply: &EncodedReply) -> Result<String> {
    let text = reply.text().unwrap_or_default();
    let Some(structured) = reply.structured() else {
        return Ok(text);
    };
    let structured: Value = serde_json::from_slice(structured)?;
    Ok(if text.is_empty() || repeats(&text, &structured) {
        readable(&structured)
    } else {
        text
    })
}

fn repeats(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}
