//! What the server tells a person on a terminal works as it stands: the entry for a client, and the call to try.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::time::Duration;

use serde_json::Value;

use super::{BINARY, document, on_a_terminal, sets, terminal};

/// The command behind a label of the text, such as `From here:`.
fn line_after(shown: &str, label: &str) -> String {
    let line = shown
        .lines()
        .find_map(|line| line.trim().strip_prefix(label));
    line.unwrap_or_else(|| panic!("{label} in {shown}"))
        .trim()
        .to_owned()
}

/// Types a line into a shell and returns what it says; it has to succeed.
fn typed(directory: &Path, line: &str) -> String {
    let output = testkit::quiet_command("sh")
        .args(["-c", line])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The first object in a text.
fn entry_in(shown: &str) -> Value {
    let start = shown.find("{\n").unwrap();
    let mut values = serde_json::Deserializer::from_str(&shown[start..]).into_iter();
    values.next().unwrap().unwrap()
}

#[test]
fn shell_every_set_has_a_first_call_that_works() {
    for set in sets() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("app")).unwrap();
        let command = match set {
            "guide" => "mcp-filesystem --toolset guide --project-root app".to_owned(),
            set => format!("mcp-filesystem --toolset {set} app"),
        };
        // Ctrl-D is the end of the input.
        let Some(shown) = on_a_terminal(place.path(), &command, "\u{4}") else {
            return;
        };
        let call = line_after(&shown, "From here:");
        assert!(call.starts_with(BINARY), "{call}");
        typed(place.path(), &call);
        let servers = &entry_in(&shown)["mcpServers"];
        let servers = servers.as_object().unwrap();
        let server = servers.values().next().unwrap();
        assert_eq!(server["command"], BINARY, "{set}");
    }
}

/// A server on a terminal that is ended with the value.
struct OnATerminal {
    child: Child,
    shown: String,
    /// What it shows later; closing this would end the terminal.
    _rest: Lines<BufReader<ChildStdout>>,
}

impl OnATerminal {
    /// Starts a command and reads what it shows up to a line with these words.
    fn start(directory: &Path, command: &str, last: &str) -> Option<OnATerminal> {
        let mut child = terminal(directory, command)?;
        let mut rest = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut shown = String::new();
        while let Some(Ok(line)) = rest.next() {
            let is_last = line.contains(last);
            shown += &(line.replace('\r', "") + "\n");
            if is_last {
                return Some(OnATerminal {
                    child,
                    shown,
                    _rest: rest,
                });
            }
        }
        let _ = child.wait();
        panic!("{command} has ended: {shown}");
    }
}

impl Drop for OnATerminal {
    fn drop(&mut self) {
        // Ctrl-C, as a person ends it.
        if let Some(input) = &mut self.child.stdin {
            let _ = input.write_all(b"\x03");
        }
        for _ in 0..200 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The config of `make run`, at any free port.
#[test]
fn the_entry_and_the_call_of_make_run_work() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("workspace")).unwrap();
    std::fs::create_dir_all(place.path().join("config")).unwrap();
    let config = "config/mcp-filesystem.yaml";
    std::fs::copy(document(config), place.path().join(config)).unwrap();
    let command = format!("{BINARY} --config {config} --port 0");
    let Some(server) = OnATerminal::start(place.path(), &command, "server started") else {
        return;
    };
    let url = line_after(&server.shown, "mcp-filesystem serves MCP clients at");
    assert!(!url.contains(":0/") && !url.contains(":8091/"), "{url}");
    let entry = entry_in(&server.shown)["mcpServers"]["fs"].clone();
    assert_eq!(entry["url"], url.as_str(), "{entry}");
    let call = line_after(&server.shown, "Another terminal:");
    assert!(call.contains(&url), "{call}");
    let told = typed(place.path(), &call);
    assert!(told.contains("workspace"), "{told}");
}
