//! Greets a person who starts the server in a terminal, where no client is connected.
//!
//! The text goes to standard error; standard output belongs to the protocol.

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use serde_json::json;

use crate::settings::Settings;

/// Which of the standard streams are terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Terminals {
    /// Standard input is a terminal, so no client is connected to it.
    input: bool,
    /// Standard error is a terminal, so somebody reads it.
    error: bool,
}

impl Terminals {
    /// Checks the streams of this process.
    fn of_this_process() -> Terminals {
        Terminals {
            input: std::io::stdin().is_terminal(),
            error: std::io::stderr().is_terminal(),
        }
    }
}

/// Explains what the server waits for, if a person is there to read it. `address` is where HTTP listens, `arguments`
/// start the same server from any directory.
pub(crate) fn greet(settings: &Settings, address: Option<SocketAddr>, arguments: &[String]) {
    let program = std::env::current_exe();
    let program = program.as_deref().unwrap_or(Path::new("mcp-filesystem"));
    let text = match (address, Terminals::of_this_process()) {
        (None, Terminals { input: true, .. }) => on_stdio(program, arguments),
        (Some(address), Terminals { error: true, .. }) => on_http(settings, address),
        _ => return,
    };
    // If standard error is closed, nobody is left to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn on_stdio(program: &Path, arguments: &[String]) -> String {
    let program = program.display().to_string();
    let entry = json!({ "mcpServers": { "files": { "command": program, "args": arguments } } });
    let words: Vec<String> = std::iter::once(&program)
        .chain(arguments)
        .map(|word| in_shell(word))
        .collect();
    let line = words.join(" ");
    format!(
        "mcp-filesystem waits for an MCP client on standard input, and a terminal is not one.\n\
         Clients start it themselves. To paste into the configuration of one (Claude Desktop, Cursor and others):\n\n\
         {entry:#}\n\n\
         Claude Code:  claude mcp add files -- {line}\n\
         From here:    {line} call list_roots\n\
         Ctrl-D ends it.\n\n"
    )
}

fn on_http(settings: &Settings, address: SocketAddr) -> String {
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    let mut here = address;
    // A server on every address also listens on loopback.
    if here.ip().is_unspecified() {
        here.set_ip(match here {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!(
        "mcp-filesystem serves MCP clients at {scheme}://{here}/mcp; Ctrl-C ends it. What follows is the log.\n\n"
    )
}

/// Quotes a word for the shell.
fn in_shell(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-=,+@:".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Partial;

    #[test]
    fn a_person_gets_a_configuration_to_paste() {
        let arguments = ["/home/me/my files".to_owned()];
        let text = on_stdio(Path::new("/usr/bin/mcp-filesystem"), &arguments);
        let (start, end) = (text.find('{').unwrap(), text.rfind('}').unwrap());
        let entry: serde_json::Value = serde_json::from_str(&text[start..=end]).unwrap();
        let files = &entry["mcpServers"]["files"];
        assert_eq!(files["command"], "/usr/bin/mcp-filesystem");
        assert_eq!(files["args"], json!(["/home/me/my files"]));
        let line = "claude mcp add files -- /usr/bin/mcp-filesystem '/home/me/my files'\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_person_gets_the_address_of_http() {
        let settings = Partial::default().complete();
        let text = |address: &str| on_http(&settings, address.parse().unwrap());
        assert!(text("0.0.0.0:8091").contains(" http://127.0.0.1:8091/mcp;"));
        assert!(text("[::]:8091").contains(" http://[::1]:8091/mcp;"));
        assert!(text("192.0.2.1:1").contains(" http://192.0.2.1:1/mcp;"));
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(in_shell("a'b"), r"'a'\''b'");
        assert_eq!(in_shell(""), "''");
        assert_eq!(in_shell("--a=/b.c"), "--a=/b.c");
    }
}
