//! The wire: command line, config, logs, and the two ways in.
//!
//! The order of things at start-up matters: settings, then the roots are opened, then the process
//! locks itself in, and only then the first thread (the log's) and the runtime begin.

mod check;
mod cli;
mod config;
mod known;
mod listen;
mod log;
mod roots;
mod settings;

use std::io::Write;
use std::net::TcpListener;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cli::{Cli, Task};
use crate::known::KNOWN_TOOLS;
use crate::settings::{Loaded, RootsNeed, Settings, Transport};

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
            roots::open(&settings)?;
            anyhow::bail!("call {tool} {arguments:?}: not built yet")
        }
    }
}

fn load(cli: &Cli, need: RootsNeed) -> Result<Loaded> {
    let current = std::env::current_dir().context("cannot tell the current directory")?;
    Ok(settings::load(cli, &current, KNOWN_TOOLS, need)?)
}

/// Prepares everything that needs more than the roots, locks the process in, and serves.
fn serve(settings: &Settings) -> Result<()> {
    let roots = roots::open(settings)?;
    let listener = match settings.transport {
        Transport::Stdio => None,
        Transport::Http => Some(listen::bind(settings)?),
    };
    let protection = sandbox::lock_in(&roots, settings.landlock.into(), &[])?;
    let _flush = log::start(settings)?;
    log::started(settings, &place(listener.as_ref()), &protection.to_string());
    anyhow::bail!("serving is not built yet")
}

/// Where clients find us, for the log.
fn place(listener: Option<&TcpListener>) -> String {
    let address = listener.map(|listener| listener.local_addr().map(|address| address.to_string()));
    address
        .and_then(std::io::Result::ok)
        .unwrap_or_else(|| "stdio".to_owned())
}

/// Says in one line why the process ends.
fn fail(error: &anyhow::Error) -> ExitCode {
    // There is nobody left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "mcp-filesystem: {error:#}");
    ExitCode::FAILURE
}
