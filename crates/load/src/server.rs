//! The server under load: started on a tree of its own, watched through the kernel.
#![expect(
    clippy::disallowed_methods,
    reason = "the tree is prepared and the process looked at from outside"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long the server may take to end at all.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Server {
    child: Child,
    pid: u32,
    pub(crate) address: SocketAddr,
    _files: TempDir,
}

/// What the kernel says of the process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) resident: u64,
    pub(crate) descriptors: usize,
}

/// How the process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) took: Duration,
    pub(crate) code: Option<i32>,
}

impl Server {
    /// Starts the program on a small tree, with sessions for old clients and statelessness for new ones.
    pub(crate) async fn start(program: &Path) -> Result<Server> {
        let files = tempfile::tempdir()?;
        prepare(files.path())?;
        let program = std::path::absolute(program)?;
        let mut child = Command::new(&program)
            .args(["--config", "config.yaml", "--transport", "http"])
            .args(["--host", "127.0.0.1", "--port", "0"])
            .current_dir(files.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().context("piped")?).lines();
        let first = lines.next_line().await?.context("it ended at once")?;
        let started: Value = serde_json::from_str(&first).context(first)?;
        let address = started["address"].as_str().context("no address")?.parse()?;
        // Its log is read to the end, so that it never has to wait, and not kept.
        tokio::spawn(async move {
            let mut rest = lines.into_inner();
            let mut piece = vec![0; 1 << 16];
            while rest.read(&mut piece).await.is_ok_and(|count| count > 0) {}
        });
        let pid = child.id().context("it has ended")?;
        Ok(Server {
            child,
            pid,
            address,
            _files: files,
        })
    }

    /// Looks at the process.
    pub(crate) fn sample(&self) -> Result<Sample> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|rest| rest.split_whitespace().next());
        let resident: u64 = resident.context("no VmRSS")?.parse()?;
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.pid))?.count();
        Ok(Sample {
            resident: resident * 1024,
            descriptors,
        })
    }

    /// Asks the process to end, and waits for it.
    pub(crate) async fn stop(mut self) -> Result<Ending> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let start = Instant::now();
        kill_process(pid.context("a process id")?, Signal::TERM)?;
        let Ok(status) = tokio::time::timeout(ENDS_WITHIN, self.child.wait()).await else {
            bail!("the server did not end within {ENDS_WITHIN:?}");
        };
        Ok(Ending {
            took: start.elapsed(),
            code: status?.code(),
        })
    }
}

fn prepare(directory: &Path) -> Result<()> {
    let root = directory.join("root");
    for folder in 0..20 {
        let folder = root.join(format!("folder-{folder}"));
        std::fs::create_dir_all(&folder)?;
        for file in 0..20 {
            let text = format!("line one\nneedle {file}\nline three\n").repeat(20);
            std::fs::write(folder.join(format!("file-{file}.txt")), text)?;
        }
    }
    std::fs::create_dir(root.join("written"))?;
    let endless = std::fs::File::create(root.join("endless"))?;
    endless.set_len(1 << 40)?;
    let config = json!({
        "roots": [{"name": "root", "path": "root", "allowed_tools": ["*"]}],
        "server": {"sessions": "on", "max_connections": 4096},
        "durability": "fast",
    });
    std::fs::write(directory.join("config.yaml"), config.to_string())?;
    Ok(())
}

/// Lets this process have as many connections as the system allows it.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where it cannot be raised, fewer clients connect, and that is told.
    let _ = setrlimit(Resource::Nofile, raised);
}
