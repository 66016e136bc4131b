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

use anyhow::{Context, Result, anyhow};

pub(crate) use self::check::root_risks;
use crate::command_line::{Cli, SettingsFormat, Task, command};
use crate::operator_files;
use crate::settings::{self, LoadedSettings, RootsNeed, Settings, SettingsError};

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> Result<()> {
    let out = || std::io::stdout().lock();
    let settings = |need| -> Result<Settings> { Ok(load(&cli, need)?.settings) };
    match cli.task() {
        Task::Serve => serve(cli),
        Task::Check => check::run(&load(&cli, RootsNeed::Needed)?, &mut out()),
        Task::Tools(format) => tools::run(&settings(RootsNeed::NotNeeded)?, format, &mut out()),
        Task::Settings(format) => Ok(out().write_all(settings_page(format).as_bytes())?),
        Task::Health(url) => health::run(url.as_deref(), &settings(RootsNeed::NotNeeded)?),
        Task::Token(name) => token::run(&name, &mut out()),
        Task::VerifyAudit { files, head } => audit::run(&files, head.as_deref()),
        Task::History(request) => history::run(&settings(RootsNeed::Needed)?, &request, &mut out()),
        Task::Completions(shell) => Ok(completions::print(shell, command(), &mut out())?),
        Task::Man => Ok(out().write_all(&man::page(command())?)?),
        Task::Call { request, remote } => match remote {
            Some(remote) => call::run_remote(&remote, cli.first_toolset(), &request),
            None => call::run(&settings(RootsNeed::Needed)?, &request),
        },
    }
}

fn settings_page(format: SettingsFormat) -> String {
    match format {
        SettingsFormat::Markdown => settings::reference(),
        SettingsFormat::Yaml => settings::sample(),
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
    let current = current()?;
    settings::load(cli, &current, need).map_err(|fault| {
        let misplaced = cli
            .first_word()
            .filter(|(_, word)| operator_files::is_directory(&current.join(word)));
        match (fault, misplaced) {
            (SettingsError::NoRoots, Some((command, word))) => anyhow!(
                "no directory to serve: the directory comes before the command: mcp-filesystem {word} {command}"
            ),
            (fault, _) => fault.into(),
        }
    })
}

fn current() -> Result<PathBuf> {
    std::env::current_dir().context("cannot determine the current directory")
}
