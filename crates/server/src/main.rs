//! The wire: command line, config, logs, and the two ways in.
//!
//! The order of things at start-up matters: settings, then the roots are opened, then the process
//! locks itself in, and only then the first thread (the log's) and the runtime begin.

mod check;
mod cli;
mod config;
mod known;
mod log;
mod roots;
mod settings;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cli::{Cli, Task};
use crate::known::KNOWN_TOOLS;
use crate::settings::{Loaded, RootsNeed, Settings};

fn main() -> ExitCode {
    let cli = Cli::read();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn run(cli: &Cli) -> Result<()> {
    match cli.task() {
        Task::Serve => serve(&load(cli, RootsNeed::Needed)?.settings),
        Task::Check => check::run(
            &load(cli, RootsNeed::Needed)?,
            &mut std::io::stdout().lock(),
        ),
        Task::Tools(format) => {
            let settings = load(cli, RootsNeed::NotNeeded)?.settings;
            anyhow::bail!("tools {format:?} {:?}: not built yet", settings.toolsets)
        }
        Task::Call { tool, arguments } => {
            let settings = load(cli, RootsNeed::Needed)?.settings;
            roots::find(&settings)?;
            anyhow::bail!("call {tool} {arguments:?}: not built yet")
        }
    }
}

fn load(cli: &Cli, need: RootsNeed) -> Result<Loaded> {
    let current = std::env::current_dir().context("cannot tell the current directory")?;
    Ok(settings::load(cli, &current, KNOWN_TOOLS, need)?)
}

fn serve(settings: &Settings) -> Result<()> {
    roots::find(settings)?;
    // Here: open the roots, lock the process in, start the runtime, serve.
    let _flush = log::start(settings)?;
    log::started(settings, "none", check::protections(settings).as_str());
    anyhow::bail!("serving is not built yet")
}

/// Says in one line why the process ends.
fn fail(error: &anyhow::Error) -> ExitCode {
    // There is nobody left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "mcp-filesystem: {error:#}");
    ExitCode::FAILURE
}
