//! The wire: command line, config, logs, and the two ways in.
//!
//! Parse, load the settings, do what was asked: nothing else happens here.

mod call;
mod check;
mod cli;
mod config;
mod door;
mod health;
mod http;
mod keys;
mod known;
mod listen;
mod log;
mod operator;
mod pages;
mod progress;
mod project;
mod readable;
mod reload;
mod roots;
mod serve;
mod sets;
mod settings;
mod shutdown;
mod stdio;
mod tokens;
mod tools;
mod welcome;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, Task};
use crate::known::KNOWN_TOOLS;
use crate::settings::{Loaded, RootsNeed};

fn main() -> ExitCode {
    let cli = Cli::read();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn run(cli: &Cli) -> Result<()> {
    match cli.task() {
        Task::Serve => {
            let settings = load(cli, RootsNeed::Needed)?.settings;
            serve::run(&settings, &cli.portable(&settings, &current()?))
        }
        Task::Check => check::run(
            &load(cli, RootsNeed::Needed)?,
            &mut std::io::stdout().lock(),
        ),
        Task::Tools(format) => {
            let settings = load(cli, RootsNeed::NotNeeded)?.settings;
            tools::run(&settings, format, &mut std::io::stdout().lock())
        }
        Task::Settings => print(settings::reference().as_bytes()),
        Task::Health(url) => {
            let settings = load(cli, RootsNeed::NotNeeded)?.settings;
            health::run(url.as_deref(), &settings)
        }
        Task::Completions(shell) => {
            let mut out = std::io::stdout().lock();
            Ok(pages::completions(shell, Cli::command(), &mut out)?)
        }
        Task::Man => {
            let mut page = Vec::new();
            pages::manual(Cli::command(), &mut page)?;
            print(&page)
        }
        Task::Call { tool, arguments } => {
            let settings = load(cli, RootsNeed::Needed)?.settings;
            serve::call_once(&settings, &tool, &arguments)
        }
    }
}

fn load(cli: &Cli, need: RootsNeed) -> Result<Loaded> {
    Ok(settings::load(cli, &current()?, KNOWN_TOOLS, need)?)
}

fn current() -> Result<PathBuf> {
    std::env::current_dir().context("cannot tell the current directory")
}

fn print(page: &[u8]) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(page)?)
}

/// Says in one line why the process ends.
fn fail(error: &anyhow::Error) -> ExitCode {
    // There is nobody left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "mcp-filesystem: {error:#}");
    ExitCode::FAILURE
}
