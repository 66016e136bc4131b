//! The server's process: its log, its memory, its end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the server may take to start, to log what it did, or to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Variables that would change what the server does.
const VARIABLES: [&str; 9] = [
    "STATE_DIRECTORY",
    "MCP_FILESYSTEM_CONFIG",
    "FS_SERVER_ROOT",
    "FS_MAX_FILE_SIZE",
    "FS_REQUEST_TIMEOUT",
    "FS_LOG_LEVEL",
    "BASE_PATH",
    "RUST_LOG",
    "RUST_BACKTRACE",
];

/// Where servers under test keep histories: never where the user's own are, and beside the trees of tests. It is the same for
/// all tests, so that a server that is started again finds its history; what is old goes by itself.
pub fn state_home() -> PathBuf {
    std::env::temp_dir().join("mcp-filesystem-tests-state")
}

/// A command that has none of the variables which would change what the server does.
pub fn quiet_command(program: impl AsRef<OsStr>) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env("XDG_STATE_HOME", state_home());
    command
}

/// How to start the server.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

impl Line {
    /// Starts the process. Dropping the handle kills it.
    pub(crate) fn spawn(&self, input: Stdio) -> Child {
        let mut command = Command::from(quiet_command(&self.program));
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", self.shown()))
    }

    pub(crate) fn shown(&self) -> String {
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value} "));
        let environment: String = environment.collect();
        format!(
            "{environment}{} {}",
            self.program.display(),
            self.arguments.join(" ")
        )
    }
}

/// What the server wrote on standard error so far, and whether it closed it.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) lines: Vec<String>,
    pub(crate) ended: bool,
}

/// The server's log as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Log(watch::Receiver<Written>);

impl Log {
    /// Collects lines until the other side closes.
    pub(crate) fn collect(from: impl AsyncRead + Unpin + Send + 'static) -> Log {
        let (sender, receiver) = watch::channel(Written::default());
        tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|written| written.lines.push(line));
            }
            sender.send_modify(|written| written.ended = true);
        });
        Log(receiver)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().lines.clone()
    }

    /// Waits for a line; `None` if the log ends or the time is up first.
    pub(crate) async fn find(&self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let pick = |written: &Written| parsed(&written.lines).find(&wanted);
        let mut receiver = self.0.clone();
        let seen = receiver.wait_for(|written| written.ended || pick(written).is_some());
        let written = timeout(PATIENCE, seen).await.ok()?.ok()?;
        pick(&written)
    }

    /// Waits for a line after so many, and returns all lines up to it.
    pub(crate) async fn since(
        &self,
        seen: usize,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<Vec<Value>> {
        let new = |written: &Written| -> Vec<Value> {
            let lines = written.lines.get(seen..).unwrap_or_default();
            parsed(lines).collect()
        };
        let mut receiver = self.0.clone();
        let told = receiver.wait_for(|written| new(written).iter().any(&wanted));
        let written = timeout(PATIENCE, told).await.ok()?.ok()?;
        Some(new(&written))
    }

    /// Waits until the other side closed.
    pub(crate) async fn ended(&self) {
        let mut receiver = self.0.clone();
        let _ = timeout(PATIENCE, receiver.wait_for(|written| written.ended)).await;
    }
}

/// The lines that are JSON objects.
pub(crate) fn parsed(lines: &[String]) -> impl Iterator<Item = Value> {
    let values = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter(Value::is_object)
}

/// How a server ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output, unless a client read it.
    pub stdout: String,
    /// Every line of standard error.
    pub stderr: Vec<String>,
}

impl Ended {
    /// The log lines that are JSON objects.
    pub fn log(&self) -> Vec<Value> {
        parsed(&self.stderr).collect()
    }
}

/// Asks a process of ours to stop.
pub(crate) fn ask_to_stop(child: &Child) {
    signal(child, Signal::TERM);
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // The process may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Waits for the end; a process that does not end in time fails the test.
pub(crate) async fn wait(child: &mut Child, log: &Log) -> Ended {
    let stdout = child.stdout.take();
    let reading = async {
        let mut text = Vec::new();
        if let Some(mut stdout) = stdout {
            let _ = stdout.read_to_end(&mut text).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let ending = async { tokio::join!(reading, child.wait()) };
    let Ok((stdout, status)) = timeout(PATIENCE, ending).await else {
        panic!("the server did not end within {PATIENCE:?}");
    };
    log.ended().await;
    let code = status.expect("an exit status").code();
    Ended {
        code,
        stdout,
        stderr: log.lines(),
    }
}

/// How much memory a process has, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// What is resident now.
    pub resident: u64,
    /// The most that was ever resident.
    pub peak: u64,
}

impl Memory {
    /// Reads what the kernel knows about a process.
    pub(crate) fn of(pid: u32) -> Memory {
        let path = format!("/proc/{pid}/status");
        let status = std::fs::read_to_string(Path::new(&path)).expect("the process's status");
        Memory {
            resident: field(&status, "VmRSS:"),
            peak: field(&status, "VmHWM:"),
        }
    }
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next());
    let kilobytes = kilobytes.and_then(|number| number.parse::<u64>().ok());
    kilobytes.unwrap_or_else(|| panic!("no {name} in {status}")) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_memory_of_a_process() {
        let memory = Memory::of(std::process::id());
        assert!(
            memory.resident > 100_000 && memory.peak >= memory.resident,
            "{memory:?}"
        );
    }

    #[tokio::test]
    async fn a_log_is_searched_as_it_grows() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let log = Log::collect(reader);
        let text = b"plain words\n{\"n\": 1}\n{\"n\": 2}\n";
        tokio::io::AsyncWriteExt::write_all(&mut writer, text)
            .await
            .unwrap();
        assert!(log.find(|line| line["n"] == 2).await.is_some());
        drop(writer);
        assert!(log.find(|line| line["n"] == 3).await.is_none());
        assert_eq!(log.lines().len(), 3);
    }
}
