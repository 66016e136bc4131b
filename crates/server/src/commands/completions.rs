//! `mcp-filesystem completions`: a completion script for a shell, generated from the definition of the command line.

use std::io::{self, Write};

use clap::Command;
use clap_complete::Shell;

/// The program's name, as people type it.
const NAME: &str = "mcp-filesystem";

/// Prints the completions of a shell.
pub(crate) fn print(shell: Shell, mut command: Command, out: &mut dyn Write) -> io::Result<()> {
    // Into memory first: the generator panics if its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, NAME, &mut script);
    out.write_all(&script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::command;
    use clap::ValueEnum;

    #[test]
    fn every_shell_completes_every_command_and_flag() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            print(*shell, command(), &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for word in ["completions", "health", "toolset", "base-path"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
