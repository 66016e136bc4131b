//! Servers on a machine that misbehaves: small file systems, other users, and what is left on the host.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at host directories from outside the sandbox"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::task::JoinHandle;

use testkit::{Outcome, Server, Setup, Transport, Tree, Value};

use super::ToolSet;
use crate::workspace::Workspace;

/// Says on standard error why a test was left out.
pub(crate) fn left_out(reason: &str) {
    said(&format!("left out: {reason}"));
}

/// Tells whether this process may mount in a namespace of its own; prints a note if it may not.
pub(crate) fn may_mount() -> bool {
    let probe = "mount -t tmpfs tmpfs /mnt 2>/dev/null";
    let may = succeeds(Command::new("unshare").args(["-m", "sh", "-c", probe]));
    if !may {
        left_out("mounting is not allowed here");
    }
    may
}

/// Runs a command and tells whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A server whose root is a small file system in memory that only it sees.
pub(crate) struct Small {
    pub(crate) server: Server,
    tree: Tree,
}

impl Small {
    /// Mounts a file system of this size on an empty root and starts the server; more roots may be added.
    pub(crate) async fn start(
        size: &str,
        transport: Transport,
        more: impl FnOnce(Setup) -> Setup,
    ) -> Small {
        let mount = |root: &Path| {
            let root = root.display();
            format!("mount -t tmpfs -o size={size},mode=755 tmpfs '{root}'")
        };
        Small::mounted(mount, transport, more).await
    }

    /// The same with a file system that a command mounts on the root.
    pub(crate) async fn mounted(
        mount: impl FnOnce(&Path) -> String,
        transport: Transport,
        more: impl FnOnce(Setup) -> Setup,
    ) -> Small {
        let tree = Tree::new();
        let mount = format!("{} && exec \"$0\" \"$@\"", mount(tree.path()));
        let setup = more(Workspace::setup(&tree));
        let setup = setup.wrapped_in(["unshare", "-m", "sh", "-c", &mount]);
        let server = setup.start(transport).await;
        Small { server, tree }
    }

    /// The host path of something in the root, through the server's eyes.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        let pid = self.server.pid();
        PathBuf::from(format!(
            "/proc/{pid}/root{}",
            self.tree.join(path).display()
        ))
    }

    /// Runs a command in the server's mount namespace, with the root's path as its last word.
    pub(crate) fn run(&self, words: &[&str]) -> bool {
        let pid = self.server.pid().to_string();
        let mut command = Command::new("nsenter");
        command.args(["-t", &pid, "-m"]).args(words);
        succeeds(command.arg(self.tree.path()))
    }
}

/// Calls a tool of `workspace`.
pub(crate) async fn call(server: &Server, tool: &str, arguments: Value) -> Outcome {
    server
        .call(tool, Workspace::complete(tool, arguments))
        .await
}

/// The reply of a call that has to succeed.
pub(crate) async fn ok(server: &Server, tool: &str, arguments: Value) -> Value {
    call(server, tool, arguments).await.ok().clone()
}

/// The error of a call that has to fail with this code.
pub(crate) async fn fails(server: &Server, code: &str, tool: &str, arguments: Value) -> Value {
    let outcome = call(server, tool, arguments).await;
    let error = outcome.error()["error"].clone();
    assert_eq!(error["code"], code, "{}", outcome.story());
    error
}

/// Every file below a directory with its content, and every other entry with an empty one. Histories are left out.
pub(crate) fn contents(path: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)
            .expect("a directory")
            .flatten()
        {
            if entry.file_name() == ".mcp-filesystem" {
                continue;
            }
            let kind = entry.file_type().expect("a kind");
            let name = entry.path();
            let content = if kind.is_file() {
                std::fs::read(&name).unwrap_or_default()
            } else {
                Vec::new()
            };
            let shown = name
                .strip_prefix(path)
                .expect("below")
                .display()
                .to_string();
            found.insert(shown, content);
            if kind.is_dir() {
                directories.push(name);
            }
        }
    }
    found
}

/// How often something is tried that could go wrong once in a thousand times: all of it with `SANDBOX_EXHAUSTIVE` set, a
/// fiftieth otherwise.
pub(crate) fn share(all: usize) -> usize {
    if std::env::var_os("SANDBOX_EXHAUSTIVE").is_some() {
        all
    } else {
        all.div_ceil(50)
    }
}

/// Numbers that look like chance and are the same in each run.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Calls a tool and tells whether it was confirmed; a broken connection is no confirmation.
pub(crate) async fn confirmed(client: &Client, tool: &'static str, arguments: Value) -> bool {
    answered(client, tool, arguments).await.is_some()
}

/// Calls a tool and returns what it answers; `None` if it fails or the connection breaks.
pub(crate) async fn answered(
    client: &Client,
    tool: &'static str,
    arguments: Value,
) -> Option<Value> {
    let Value::Object(arguments) = Workspace::complete(tool, arguments) else {
        unreachable!("arguments are an object")
    };
    let params = testkit::rmcp::model::CallToolRequestParams::new(tool).with_arguments(arguments);
    let reply = client.call_tool(params).await.ok()?;
    let is_confirmed = reply.is_error != Some(true);
    is_confirmed.then(|| reply.structured_content.unwrap_or_default())
}

/// How long a call may take whose server was killed.
const BROKEN: Duration = Duration::from_secs(30);

/// What happened to the calls during which the server was killed.
#[derive(Debug, Default)]
pub(crate) struct Killed {
    confirmed: usize,
    whole: usize,
    reverted: usize,
}

impl Killed {
    /// Waits for the end of a call whose server was killed; what it answered, if it was confirmed.
    pub(crate) async fn ended(call: JoinHandle<Option<Value>>) -> Option<Value> {
        let ended = tokio::time::timeout(BROKEN, call).await;
        ended
            .expect("the connection is broken")
            .expect("the call ends")
    }

    /// Counts a call. What was confirmed has to be there after the next start.
    pub(crate) fn count(&mut self, answer: Option<&Value>, is_whole: bool) {
        if let Some(answer) = answer {
            assert!(is_whole, "confirmed and reverted: {answer}");
            self.confirmed += 1;
        }
        match is_whole {
            true => self.whole += 1,
            false => self.reverted += 1,
        }
    }

    /// Prints the counts.
    pub(crate) fn tell(&self, what: &str) {
        let Killed {
            confirmed,
            whole,
            reverted,
        } = self;
        said(&format!(
            "{what}: {whole} whole, {confirmed} of them confirmed, {reverted} reverted"
        ));
    }
}

/// What calls go through; clones share the connection.
pub(crate) type Client = testkit::rmcp::Peer<testkit::rmcp::RoleClient>;

/// The temporary names below a directory, which others may remove meanwhile.
pub(crate) fn temporary_names(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".mcp-filesystem-") {
                found.push(name);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
    found
}

/// Prints a figure.
pub(crate) fn said(figure: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{figure}");
}
