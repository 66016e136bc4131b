//! A running server without a client: messages written by hand.

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::http::Http;
use crate::process::{self, Ended, Log, Memory, PATIENCE};
use crate::report::Report;
use crate::server::{Started, launch};
use crate::setup::{Setup, Transport};

/// The real program with nothing between the test and its wire. Dropping it kills the process.
pub struct Wire {
    line: Option<Pipes>,
    http: Option<Http>,
    endpoint: String,
    child: Child,
    log: Log,
    report: Report,
    files: TempDir,
}

struct Pipes {
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
}

impl Wire {
    pub(crate) async fn start(setup: &Setup, transport: Transport) -> Wire {
        let Started {
            mut child,
            http,
            report,
            files,
        } = launch(setup, transport).await;
        let line = (transport == Transport::Stdio).then(|| Pipes {
            input: child.stdin.take(),
            output: child
                .stdout
                .take()
                .map(|output| BufReader::new(output).lines()),
        });
        let log = report.log.clone();
        let endpoint = setup.endpoint.clone();
        Wire {
            line,
            http,
            endpoint,
            child,
            log,
            report,
            files,
        }
    }

    /// Plain HTTP to the server; panics over stdio.
    pub fn http(&self) -> &Http {
        self.http.as_ref().expect("this server talks over stdio")
    }

    /// Sends a request and returns the whole message that answers it.
    pub async fn request(&mut self, message: &Value) -> Value {
        let answer = match &self.http {
            Some(http) => http.post(&self.endpoint, &[], message).await.json(),
            None => self.ask(message).await,
        };
        self.report.add(&format!("{message}\n=> {answer:#}"));
        answer
    }

    /// Sends a message that needs no answer.
    pub async fn notify(&mut self, message: &Value) {
        match &self.http {
            Some(http) => drop(http.post(&self.endpoint, &[], message).await),
            None => self.send(&message.to_string()).await,
        }
    }

    /// Writes one line on standard input; panics over HTTP.
    pub async fn send(&mut self, text: &str) {
        self.send_bytes(format!("{text}\n").as_bytes()).await;
    }

    /// Writes bytes on standard input; panics over HTTP.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.pipes().input.as_mut().expect("standard input is open");
        // The next read notices a server that hung up.
        let _ = input.write_all(bytes).await;
        let _ = input.flush().await;
    }

    /// The next line on standard output; none when the server closed it.
    pub async fn next(&mut self) -> Option<String> {
        let output = self.pipes().output.as_mut();
        let output = output.expect("standard output is read");
        let next = timeout(PATIENCE, output.next_line()).await;
        next.expect("no line in time").expect("a line")
    }

    /// Stops reading standard output; panics over HTTP.
    pub fn stop_reading(&mut self) {
        self.pipes().output = None;
    }

    /// Sends SIGHUP, so that the server reads the operator's files again.
    pub fn reload(&self) {
        process::signal(&self.child, Signal::HUP);
    }

    /// Writes the config file of another setup, sends SIGHUP, and waits until the server says what came of it. Returns the
    /// lines that it logged since.
    pub async fn reconfigure(&self, setup: &Setup) -> Vec<Value> {
        let seen = self.log.lines().len();
        let config = self.files.path().join("config.yaml");
        std::fs::write(config, setup.config()).expect("write the config");
        self.reload();
        let is_told = |line: &Value| {
            let message = line["message"].as_str().unwrap_or_default();
            message.contains("read again")
        };
        let lines = self.log.since(seen, is_told).await;
        lines.expect("the server does not say what came of a reload")
    }

    /// How much memory the process has.
    pub fn memory(&self) -> Memory {
        Memory::of(self.child.id().expect("it has not been waited for"))
    }

    /// Waits for the process to end by itself.
    pub async fn ended(&mut self) -> Ended {
        process::wait(&mut self.child, &self.log).await
    }

    /// Waits for a log line; panics when there is none in time.
    pub async fn logged(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.log.find(wanted).await.expect("no such log line")
    }

    /// Closes standard input (stdio) or asks the process to stop (HTTP), and waits for its end.
    pub async fn stop(mut self) -> Ended {
        match &mut self.line {
            Some(pipes) => drop(pipes.input.take()),
            None => process::ask_to_stop(&self.child),
        }
        process::wait(&mut self.child, &self.log).await
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(&message.to_string()).await;
        loop {
            let line = self.next().await.expect("the server hung up");
            let answer: Value = serde_json::from_str(&line).expect("a line is JSON");
            if answer["id"] == message["id"] && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    fn pipes(&mut self) -> &mut Pipes {
        self.line.as_mut().expect("this server talks over HTTP")
    }
}
