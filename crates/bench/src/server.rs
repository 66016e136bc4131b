//! A server under measurement: any program that speaks MCP over its standard streams.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::measure::{Cost, Line};

/// The protocol revision all peers know.
const REVISION: &str = "2025-06-18";

/// How long a look is that tells whether a server rests, and how many there are at most.
const SETTLE_LOOK: Duration = Duration::from_millis(100);
const SETTLE_LOOKS: usize = 300;

/// A running server with its pipes.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    clock: ClockId,
    next_id: u64,
    line: Vec<u8>,
    /// From the start of the process to its first reply.
    pub(crate) first_reply: Duration,
}

impl Server {
    /// Starts a program and introduces itself.
    pub(crate) fn start(arguments: &[String], directory: &Path) -> Result<Server> {
        let (program, rest) = arguments.split_first().context("no server to start")?;
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(rest)
            .current_dir(directory)
            // Not where the user's own histories are.
            .env("XDG_STATE_HOME", directory.join("state"))
            .env_remove("STATE_DIRECTORY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(child.id())?))?;
        let mut server = Server {
            child,
            input: input.context("no standard input")?,
            output: BufReader::with_capacity(256 * 1024, output.context("no standard output")?),
            clock,
            next_id: 0,
            line: Vec::new(),
            first_reply: Duration::ZERO,
        };
        server.introduce()?;
        server.first_reply = begun.elapsed();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn introduce(&mut self) -> Result<()> {
        let client = json!({"name": "bench", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        self.request("initialize", params).map(drop)
    }

    /// Waits until what the server does at its start (it looks for files that a crash left) is over.
    pub(crate) fn settle(&self) -> Result<()> {
        for _ in 0..SETTLE_LOOKS {
            let before = self.cpu()?;
            std::thread::sleep(SETTLE_LOOK);
            if self.cpu()?.saturating_sub(before) < SETTLE_LOOK / 20 {
                break;
            }
        }
        Ok(())
    }

    /// Calls a tool and returns what that cost the server; keeps the raw reply.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Cost> {
        self.forget_peak();
        let before = self.cpu()?;
        let begun = Instant::now();
        self.ask(tool, arguments)?;
        let wall = begun.elapsed();
        Ok(Cost {
            wall,
            cpu: self.cpu()?.saturating_sub(before),
            peak: self.status("VmHWM:"),
        })
    }

    /// Calls a tool and keeps the reply.
    pub(crate) fn ask(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The reply of the last call; an error if the tool failed.
    pub(crate) fn reply(&self) -> Result<Value> {
        let message: Value = serde_json::from_slice(&self.line)?;
        let result = message.get("result").context("the call had no result")?;
        if result.get("isError") == Some(&Value::Bool(true)) {
            bail!("the tool failed: {result}");
        }
        let structured = result.get("structuredContent");
        Ok(structured.cloned().unwrap_or(Value::Null))
    }

    /// The size of the last reply on the wire, in bytes.
    pub(crate) fn reply_bytes(&self) -> u64 {
        self.line.len() as u64
    }

    /// The memory that is resident now, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn request(&mut self, method: &str, params: Value) -> Result<()> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            self.line.clear();
            if self.output.read_until(b'\n', &mut self.line)? == 0 {
                bail!("the server hung up");
            }
            // Requests and notifications of the server have a method near their beginning; replies have not.
            let head = self.line.get(..64.min(self.line.len())).unwrap_or_default();
            if !head.windows(8).any(|piece| piece == b"\"method\"") {
                return Ok(());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes())?;
        Ok(())
    }

    fn cpu(&self) -> Result<Duration> {
        Ok(Duration::from(self.clock.now()?))
    }

    /// Makes the peak count from now on; if the system refuses, peaks are those of the whole run.
    fn forget_peak(&self) {
        let _ = fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    fn status(&self, field: &str) -> u64 {
        status(self.child.id(), field)
    }
}

/// A field of a process's status that counts KiB.
pub(crate) fn status(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes configs for our own server and knows how it is started with them.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    pub(crate) program: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) root: PathBuf,
}

/// Whether our server waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Fsync,
    Fast,
}

impl Durability {
    /// The word of the config file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::Fast => "fast",
        }
    }
}

impl Own {
    /// The command line of a server of one tool set; errors only in the log, and no call is cut short.
    pub(crate) fn line(
        &self,
        toolset: &str,
        durability: Durability,
        transport: &str,
    ) -> Result<Vec<String>> {
        let word = durability.word();
        let path = self.base.join(format!("{toolset}-{word}.yaml"));
        let root = self.root.display();
        let config = format!(
            "host: 127.0.0.1\nport: 0\ntoolsets: [{toolset}]\nroots:\n  - name: bench\n    path: {root}\n    \
             allowed_tools: [\"*\"]\nlimits: {{ request_timeout: 600 }}\ndurability: {word}\nlog: {{ level: info }}\n\
             server: {{ max_connections: 2048 }}\n"
        );
        fs::write(&path, config)?;
        let words = [
            self.program.display().to_string(),
            "--config".to_owned(),
            path.display().to_string(),
            "--transport".to_owned(),
            transport.to_owned(),
        ];
        Ok(words.to_vec())
    }

    /// Starts one over stdio that keeps nothing of what is changed.
    pub(crate) fn start_without_history(
        &self,
        toolset: &str,
        durability: Durability,
    ) -> Result<Server> {
        let mut words = self.line(toolset, durability, "stdio")?;
        words.push("--no-history".to_owned());
        let server = Server::start(&words, &self.base)?;
        server.settle()?;
        Ok(server)
    }

    /// Starts one of `workspace` over stdio with more lines in its config, which are whole blocks.
    pub(crate) fn start_configured(&self, word: &str, more: &str) -> Result<Server> {
        self.start_guarded(word, "", more)
    }

    /// The same with more keys of the root, each a line of its own.
    pub(crate) fn start_guarded(&self, word: &str, keys: &str, more: &str) -> Result<Server> {
        let path = self.base.join(format!("workspace-{word}.yaml"));
        let config = format!(
            "toolsets: [workspace]\nroots:\n  - name: bench\n    path: {}\n    allowed_tools: [\"*\"]\n\
             {keys}log: {{ level: error }}\n{more}",
            self.root.display()
        );
        fs::write(&path, config)?;
        let program = self.program.display().to_string();
        let path = path.display().to_string();
        let words = [program.as_str(), "--config", &path, "--transport", "stdio"];
        let server = Server::start(&words.map(str::to_owned), &self.base)?;
        server.settle()?;
        Ok(server)
    }

    /// A command of the same program on the histories of a server that was started with this word.
    pub(crate) fn command(&self, word: &str, arguments: &[&str]) -> Line {
        let state = format!("XDG_STATE_HOME={}", self.base.join("state").display());
        let program = self.program.display().to_string();
        let config = self.base.join(format!("workspace-{word}.yaml"));
        let config = config.display().to_string();
        let mut words = vec!["env", "-u", "STATE_DIRECTORY", &state, &program];
        words.extend(["--config", &config]);
        words.extend(arguments);
        Line::new(&self.base, &words)
    }

    /// Starts one over stdio.
    pub(crate) fn start(&self, toolset: &str, durability: Durability) -> Result<Server> {
        let server = Server::start(&self.line(toolset, durability, "stdio")?, &self.base)?;
        server.settle()?;
        Ok(server)
    }
}
