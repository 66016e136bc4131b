//! A running server without a client: messages written by hand.

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::http::Http;
use crate::process::{self, Ended, Log, PATIENCE};
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
    _files: TempDir,
}

struct Pipes {
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
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
            output: BufReader::new(child.stdout.take().expect("piped")).lines(),
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
            _files: files,
        }
    }

    /// Plain HTTP to the server; panics over stdio.
    pub fn http(&self) -> &Http {
        self.http.as_ref().expect("this server talks over stdio")
    }

    /// Sends a request and gives back the whole message that answers it.
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
        let input = self.pipes().input.as_mut().expect("standard input is open");
        // A server that hung up is seen by whoever reads next.
        let _ = input.write_all(format!("{text}\n").as_bytes()).await;
        let _ = input.flush().await;
    }

    /// The next line on standard output; none when the server closed it.
    pub async fn next(&mut self) -> Option<String> {
        let next = timeout(PATIENCE, self.pipes().output.next_line()).await;
        next.expect("no line in time").expect("a line")
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
