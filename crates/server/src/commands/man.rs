//! `mcp-filesystem man`: the manual page, written from the definition of the command line.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

/// The sections of the page besides options and commands.
const SECTIONS: &[(&str, &str)] = &[
    (
        "EXIT STATUS",
        "0 after a clean end, 1 if the configuration, a directory or a call failed, 2 for a mistake in a flag.",
    ),
    (
        "SIGNALS",
        "SIGINT and SIGTERM end the server: calls that run finish, or are cut after a few seconds. SIGHUP reads tokens and certificates again \
         and opens the audit file anew.",
    ),
    (
        "SEE ALSO",
        "mcp-filesystem settings prints every key of the config file, mcp-filesystem tools every tool.",
    ),
];

/// Command lines worth copying, and what they do.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "mcp-filesystem ~/projects/app",
        "Serves one directory to the program that starts it.",
    ),
    (
        "mcp-filesystem --config /etc/mcp-filesystem.yaml",
        "Serves the roots of a config file over HTTP.",
    ),
    (
        "mcp-filesystem check --config /etc/mcp-filesystem.yaml",
        "Says what that would serve, to whom, and what is risky.",
    ),
    (
        "mcp-filesystem ~/projects/app call grep '{\"root\": \"app\", \"pattern\": \"TODO\"}'",
        "Makes one call the way a client would.",
    ),
];

/// Writes the manual page, in roff.
pub(crate) fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let out: &mut dyn Write = &mut page;
    let commands = commands(&command);
    let man = Man::new(command);
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    commands.to_writer(out)?;
    for (title, text) in SECTIONS {
        let mut section = Roff::new();
        section.control("SH", [*title]).text([roman(*text)]);
        section.to_writer(out)?;
    }
    examples().to_writer(out)?;
    Ok(page)
}

/// The commands with their own arguments; the options apply to all of them.
fn commands(command: &Command) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["COMMANDS"]);
    let listed = command.get_subcommands();
    for command in listed.filter(|command| command.get_name() != "help") {
        if !command.has_subcommands() {
            add_command(&mut section, command.get_name(), command);
        }
        for inner in command.get_subcommands() {
            let name = format!("{} {}", command.get_name(), inner.get_name());
            add_command(&mut section, &name, inner);
        }
    }
    section
}

fn add_command(section: &mut Roff, name: &str, command: &Command) {
    section.control("TP", []).text(usage(name, command));
    let about = command.get_about().map(ToString::to_string);
    section.text([roman(about.unwrap_or_default())]);
}

fn usage(name: &str, command: &Command) -> Vec<Inline> {
    let mut words = vec![bold(name)];
    for argument in command.get_positionals() {
        let names = argument.get_value_names().unwrap_or_default();
        words.push(roman(" "));
        words.push(italic(names.first().map_or("", |name| name.as_str())));
    }
    words
}

fn examples() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXAMPLES"]);
    for (line, meaning) in EXAMPLES {
        section
            .control("TP", [])
            .text([bold(*line)])
            .text([roman(*meaning)]);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::command;

    #[test]
    fn the_manual_has_every_command() {
        let page = String::from_utf8(page(command()).unwrap()).unwrap();
        for command in command().get_subcommands() {
            let inner = command.get_subcommands().next();
            let inner = inner.map_or(String::new(), |inner| format!(" {}", inner.get_name()));
            let line = format!("\\fB{}{inner}\\fR", command.get_name());
            assert!(page.contains(&line), "{line} in {page}");
        }
        assert!(page.starts_with(".ie"), "{page}");
    }
}
