//! The commands of the program, one file or folder each.

mod audit;
mod call;
mod check;
mod completions;
mod health;
mod history;
mod man;
mod serve;
mod server_url;
mod token;
mod tools;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

pub(crate) use self::check::root_risks;
use crate::command_line::{Cli, SettingsFormat, Task, command};
use crate::settings::{self, LoadedSettings, RootsNeed};

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> Result<()> {
    let out = || std::io::stdout().lock();
    match cli.task() {
        Task::Serve => serve(cli),
        Task::Check => check::run(&load(&cli, RootsNeed::Needed)?, &mut out()),
        Task::Tools(format) => {
            let settings = load(&cli, RootsNeed::NotNeeded)?.settings;
            tools::run(&settings, format, &mut out())
        }
        Task::Settings(format) => {
            let page = match format {
                SettingsFormat::Markdown => settings::reference(),
                SettingsFormat::Yaml => settings::sample(),
            };
            Ok(out().write_all(page.as_bytes())?)
        }
        Task::Health(url) => {
            let settings = load(&cli, RootsNeed::NotNeeded)?.settings;
            health::run(url.as_deref(), &settings)
        }
        Task::Token(name) => token::run(&name, &mut out()),
        Task::VerifyAudit { files, head } => audit::run(&files, head.as_deref()),
        Task::History(request) => {
            let settings = load(&cli, RootsNeed::Needed)?.settings;
            history::run(&settings, &request, &mut out())
        }
        Task::Completions(shell) => Ok(completions::print(shell, command(), &mut out())?),
        Task::Man => Ok(out().write_all(&man::page(command())?)?),
        Task::Call {
            request,
            remote: Some(remote),
        } => call::run_remote(&remote, cli.first_toolset(), &request),
        Task::Call {
            request,
            remote: None,
        } => call::run(&load(&cli, RootsNeed::Needed)?.settings, &request),
    }
}

/// Serves, and reads the settings again when the operator asks for it.
fn serve(cli: Cli) -> Result<()> {
    let settings = load(&cli, RootsNeed::Needed)?.settings;
    let portable = cli.portable(&settings, &current()?);
    let read_again = move || Ok(load(&cli, RootsNeed::Needed)?.settings);
    serve::run(&settings, &portable, Box::new(read_again))
}

fn load(cli: &Cli, need: RootsNeed) -> Result<LoadedSettings> {
    Ok(settings::load(cli, &current()?, need)?)
}

fn current() -> Result<PathBuf> {
    std::env::current_dir().context("cannot determine the current directory")
}
