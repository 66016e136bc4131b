//! `mcp-filesystem call`: one tool call from the shell, here or on a running server.
//!
//! A call made here is handled like a client's.

mod answer;
mod arguments;
mod http_client;
mod progress_bar;
mod readable;
mod remote;
mod unknown_tool;

use std::sync::Arc;

use anyhow::{Result, bail};
use sandbox::Users;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolset::{AccountKind, Admission, CallOutcome, Caller, Client, Service};

use self::answer::ToolAnswer;
pub(crate) use self::remote::run as run_remote;
use crate::command_line::CallRequest;
use crate::deployment::{Reopening, deployment};
use crate::guide_project::GuideProject;
use crate::settings::{Settings, Toolset};
use crate::tool_sets::tools_of;
use crate::{guide_project, open_roots, operator_files};

/// Opens the roots, confines the process as the server does, and calls the tool.
pub(crate) fn run(settings: &Settings, request: &CallRequest) -> Result<()> {
    let roots = open_roots::open(settings)?;
    let project = guide_project::open(settings)?;
    let users = Arc::new(Users::load());
    sandbox::lock_in(&roots, settings.landlock, &[])?;
    let admission = Admission::new(deployment(settings, &roots, users, Reopening::No));
    let service = service_with(&request.tool, settings, &admission, project.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(call_and_print(&service, request))
}

/// Finds the set that has the tool. Sets may have tools of the same name: then the one to call has to be named.
fn service_with(
    tool: &str,
    settings: &Settings,
    admission: &Arc<Admission>,
    project: Option<&GuideProject>,
) -> Result<Service> {
    let mut found: Vec<(Toolset, Service)> = Vec::new();
    let mut names = Vec::new();
    for set in &settings.toolsets {
        let tools = tools_of(*set, settings, project.map(|project| &project.state));
        let service = Service::new(vec![tools], Arc::clone(admission))?;
        let own: Vec<String> = tool_names(&service);
        if own.iter().any(|name| name == tool) {
            found.push((*set, service));
        }
        names.extend(own);
    }
    match found.as_slice() {
        [] => Err(unknown_tool::fault(tool, &names)),
        [(_, service)] => Ok(service.clone()),
        several => {
            let sets: Vec<&str> = several.iter().map(|(set, _)| set.name()).collect();
            let first = sets.first().copied().unwrap_or_default();
            bail!(
                "{tool} is in the tool sets {}: choose one, such as --toolset {first}",
                sets.join(" and ")
            )
        }
    }
}

fn tool_names(service: &Service) -> Vec<String> {
    let tools = service.catalogue().described().iter();
    tools.map(|tool| tool.name.to_string()).collect()
}

/// Calls a tool and prints its answer. If the call fails, so does the command.
async fn call_and_print(service: &Service, request: &CallRequest) -> Result<()> {
    let (told, done) = watch::channel(0);
    let caller = Caller {
        name: "shell".into(),
        program: Some("shell".to_owned()),
        // Every call is a process of its own, but one user makes them.
        account: operator_files::own_user().to_string().into(),
        account_kind: AccountKind::Shell,
        client: Arc::new(Shell {
            told,
            gone: CancellationToken::new(),
        }),
        ..Caller::default()
    };
    let tools = service.catalogue().described().iter();
    let schema = tools
        .filter(|tool| tool.name == request.tool)
        .map(|tool| Value::Object((*tool.input_schema).clone()))
        .next();
    let arguments = arguments::read(&request.arguments, &schema.unwrap_or_default())?;
    let work = service.call(&request.tool, Value::Object(arguments), &caller);
    // The shell cannot be asked, so the answer is never a question.
    let Some(CallOutcome::Result(result)) = progress_bar::shown(work, done).await else {
        bail!("{} did not answer", request.tool);
    };
    let answer = ToolAnswer {
        text: result.reply.text(),
        structured: result
            .reply
            .structured()
            .map(|json| String::from_utf8_lossy(json).into_owned()),
        is_error: result.is_error,
    };
    answer.print(&request.tool)
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
