//! Greets a person who starts the server in a terminal, without a client.
//!
//! The text goes to standard error; standard output belongs to the protocol.

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use serde_json::json;

use crate::commands::check::asks_for_tokens;
use crate::settings::{Settings, Toolset};

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
        (None, Terminals { input: true, .. }) => on_stdio(settings, program, arguments),
        (Some(address), Terminals { error: true, .. }) => on_http(settings, program, address),
        _ => return,
    };
    // If standard error is closed, there is no one to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn on_stdio(settings: &Settings, program: &Path, arguments: &[String]) -> String {
    let program = program.display().to_string();
    let (name, first_call) = for_first_set(settings);
    let entry = json!({ "mcpServers": { name: { "command": program, "args": arguments } } });
    let words: Vec<String> = std::iter::once(&program)
        .chain(arguments)
        .map(|word| in_shell(word))
        .collect();
    let line = words.join(" ");
    format!(
        "mcp-filesystem waits for an MCP client on standard input, and a terminal is not one.\n\
         Clients start it themselves. To paste into the configuration of one (Claude Desktop, Cursor and others):\n\n\
         {entry:#}\n\n\
         Claude Code:  claude mcp add {name} -- {line}\n\
         From here:    {line} call {first_call}\n\
         Ctrl-D ends it.\n\n"
    )
}

fn on_http(settings: &Settings, program: &Path, address: SocketAddr) -> String {
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
    let url = format!("{scheme}://{here}/mcp");
    let (name, first_call) = for_first_set(settings);
    let program = in_shell(&program.display().to_string());
    let mut entry = json!({ "type": "http", "url": url });
    let (mut header, mut token) = ("", "");
    if asks_for_tokens(settings) {
        entry["headers"] = json!({ "Authorization": "Bearer TOKEN" });
        header = " --header \"Authorization: Bearer TOKEN\"";
        token = " --token-file FILE";
    }
    let entry = json!({ "mcpServers": { name: entry } });
    let sets = addresses_of_sets(settings, &url);
    format!(
        "mcp-filesystem serves MCP clients at {url}\n{sets}\
         To paste into the configuration of one (Claude Code, Cursor and others; in VS Code the key is \"servers\"):\n\n\
         {entry:#}\n\n\
         Claude Code:       claude mcp add --transport http {name} {url}{header}\n\
         Another terminal:  {program} call --url {url}{token} {first_call}\n\
         Ctrl-C ends it. What follows is the log.\n\n"
    )
}

/// The address of each set, if there are several.
fn addresses_of_sets(settings: &Settings, url: &str) -> String {
    let sets = settings.toolsets.iter();
    let lines: Vec<String> = sets
        .map(|set| format!("  {:<12} {url}/{}\n", set.name(), set.name()))
        .collect();
    match lines.as_slice() {
        [] | [_] => String::new(),
        lines => format!(
            "That is the first of its tool sets, each of which is an entry of its own:\n{}",
            lines.concat()
        ),
    }
}

/// A name for the entry that clients do not reserve, and a call to try the first set.
fn for_first_set(settings: &Settings) -> (&'static str, &'static str) {
    match settings.toolsets.first() {
        None | Some(Toolset::Workspace) => ("fs", "list_roots"),
        Some(Toolset::Files) => ("fs", "list path=."),
        Some(Toolset::Reference) => ("fs", "list_allowed_directories"),
        Some(Toolset::Memory) => ("fs-memory", "view path=."),
        Some(Toolset::MemoryTool) => ("fs-memory", "memory command=view path=/memories"),
        Some(Toolset::Guide) => ("fs-guide", "guide_cache_stats"),
    }
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
    use crate::settings::{Partial, WordValue};

    fn serving(set: Toolset) -> Settings {
        Partial {
            toolsets: Some(vec![set]),
            ..Partial::default()
        }
        .complete()
    }

    fn entry_in(text: &str) -> serde_json::Value {
        let (start, end) = (text.find('{').unwrap(), text.rfind('}').unwrap());
        serde_json::from_str(&text[start..=end]).unwrap()
    }

    #[test]
    fn a_person_gets_a_configuration_to_paste() {
        let arguments = ["/home/me/my files".to_owned()];
        let settings = serving(Toolset::Workspace);
        let text = on_stdio(&settings, Path::new("/usr/bin/mcp-filesystem"), &arguments);
        let entry = &entry_in(&text)["mcpServers"]["fs"];
        assert_eq!(entry["command"], "/usr/bin/mcp-filesystem");
        assert_eq!(entry["args"], json!(["/home/me/my files"]));
        let line = "claude mcp add fs -- /usr/bin/mcp-filesystem '/home/me/my files'\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_person_gets_the_address_of_http_and_what_to_do_with_it() {
        let settings = Partial::default().complete();
        let text = |address: &str| on_http(&settings, Path::new("/m"), address.parse().unwrap());
        assert!(text("0.0.0.0:8091").contains(" http://127.0.0.1:8091/mcp\n"));
        assert!(text("[::]:8091").contains(" http://[::1]:8091/mcp\n"));
        let text = text("192.0.2.1:1");
        let entry = &entry_in(&text)["mcpServers"]["fs"];
        assert_eq!(entry["url"], "http://192.0.2.1:1/mcp");
        assert!(text.contains("  /m call --url http://192.0.2.1:1/mcp list_roots\n"));
    }

    #[test]
    fn a_person_is_told_the_address_of_each_set() {
        let address = "127.0.0.1:1".parse().unwrap();
        let mut settings = serving(Toolset::Workspace);
        assert!(!on_http(&settings, Path::new("/m"), address).contains("/mcp/"));
        settings.toolsets.push(Toolset::Memory);
        let text = on_http(&settings, Path::new("/m"), address);
        for set in ["workspace", "memory"] {
            let line = format!("  {set:<12} http://127.0.0.1:1/mcp/{set}\n");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn a_person_is_told_the_key_that_vs_code_has() {
        let address = "127.0.0.1:1".parse().unwrap();
        let text = on_http(&serving(Toolset::Workspace), Path::new("/m"), address);
        assert!(text.contains("in VS Code the key is \"servers\""), "{text}");
    }

    /// Without the header, the pasted entry would get 401.
    #[test]
    fn the_entry_has_a_token_wherever_one_is_asked_for() {
        let entry = |yaml: &str| {
            let parsed = crate::settings::config_file::parse(yaml, Path::new("/etc")).unwrap();
            let address = "127.0.0.1:1".parse().unwrap();
            let text = on_http(&parsed.complete(), Path::new("/m"), address);
            assert_eq!(text.contains("--header "), text.contains("--token-file "));
            entry_in(&text)["mcpServers"]["fs"]["headers"]["Authorization"].clone()
        };
        for asking in [
            "server: {bearer_tokens_file: t}",
            &format!(
                "clients: [{{name: ci, tokens: ['sha256:{}'], roots: {{}}}}]",
                "0".repeat(64)
            ),
            "auth: {oauth: {issuer: 'https://a.example', public_url: 'https://b.example', jwks_uri: 'https://a.example/keys'}}",
        ] {
            assert_eq!(entry(asking), "Bearer TOKEN", "{asking}");
        }
        assert_eq!(entry("port: 1"), json!(null));
    }

    #[test]
    fn the_first_call_is_one_that_the_set_has() {
        for (name, set, _) in Toolset::WORDS {
            let (_, call) = for_first_set(&serving(*set));
            let tool = call.split(' ').next().unwrap();
            let sets = toolset::every_set().iter();
            let mut own = sets.filter(|one| one.set == *name);
            assert!(own.any(|one| one.tools.contains(&tool)), "{name}: {tool}");
        }
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(in_shell("a'b"), r"'a'\''b'");
        assert_eq!(in_shell(""), "''");
        assert_eq!(in_shell("--a=/b.c"), "--a=/b.c");
    }
}
