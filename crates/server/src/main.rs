//! The process: command line, settings, sockets and pipes, logs. `commands` runs the command that was typed.

mod admin;
mod change_words;
mod command_line;
mod commands;
mod deployment;
mod guide_project;
mod histories;
mod http;
mod in_force;
mod log;
mod open_roots;
mod operator_files;
mod process_usage;
mod recovery;
mod root_watch;
mod service_manager;
mod settings;
mod shared_directory;
mod signals;
mod stdio;
mod tool_sets;

use std::io::Write;
use std::process::ExitCode;

use crate::command_line::Cli;

fn main() -> ExitCode {
    match commands::run(Cli::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Reports in one line why the process ends.
fn fail(error: &anyhow::Error) -> ExitCode {
    // If standard error is closed, nobody is left to tell.
    let _ = writeln!(std::io::stderr(), "mcp-filesystem: {error:#}");
    ExitCode::FAILURE
}
