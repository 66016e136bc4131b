//! How to start a server: roots, settings, command line, protocol revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::agent::Sampler;
use crate::process::{self, Ended, Line, Log};
use crate::server::Server;
use crate::wire::Wire;

/// How client and server talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Lines on standard input and output.
    Stdio,
    /// Streamable HTTP on a loopback port that the kernel chooses.
    Http,
}

/// Runs a test's body twice: over stdio and over HTTP. The body makes its own tree and server, so
/// that neither run sees what the other did.
pub async fn over_both(body: impl AsyncFn(Transport)) {
    body(Transport::Stdio).await;
    body(Transport::Http).await;
}

/// A server that is not started yet.
#[derive(Clone)]
pub struct Setup {
    program: PathBuf,
    wrapper: Vec<String>,
    config: Config,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
    pub(crate) endpoint: String,
    pub(crate) revision: ProtocolVersion,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) token: Option<String>,
    pub(crate) person: Option<Sampler>,
}

#[derive(Clone)]
enum Config {
    /// None: everything is on the command line.
    None,
    /// Made from settings. JSON is YAML too, so the file needs no writer of its own.
    Made(Value),
    /// Written by the test.
    Text(String),
}

impl Setup {
    /// The program without a config file.
    pub fn new(program: impl Into<PathBuf>) -> Setup {
        Setup {
            program: program.into(),
            wrapper: Vec::new(),
            config: Config::None,
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            endpoint: "/mcp".to_owned(),
            revision: ProtocolVersion::V_2025_11_25,
            sampler: None,
            token: None,
            person: None,
        }
    }

    /// Adds a root to the config file, every tool allowed.
    #[must_use]
    pub fn root(self, name: &str, path: &Path) -> Setup {
        self.root_with(name, path, json!({"allowed_tools": ["*"]}))
    }

    /// Adds a root to the config file that allows these tools.
    #[must_use]
    pub fn root_allowing(self, name: &str, path: &Path, tools: &[&str]) -> Setup {
        self.root_with(name, path, json!({"allowed_tools": tools}))
    }

    /// Adds a root to the config file with these further keys.
    #[must_use]
    pub fn root_with(mut self, name: &str, path: &Path, keys: Value) -> Setup {
        let mut root = json!({"name": name, "path": path});
        if let (Some(root), Value::Object(keys)) = (root.as_object_mut(), keys) {
            root.extend(keys);
        }
        let roots = self.made().entry("roots").or_insert_with(|| json!([]));
        roots.as_array_mut().expect("roots are a list").push(root);
        self
    }

    /// Sets a key of the config file; `limits.request_timeout` is a key in a section.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Setup {
        let mut section = self.made();
        let mut words = key.split('.').peekable();
        while let Some(word) = words.next() {
            if words.peek().is_none() {
                section.insert(word.to_owned(), value.into());
                break;
            }
            let inner = section.entry(word).or_insert_with(|| json!({}));
            section = inner.as_object_mut().expect("a section");
        }
        self
    }

    /// Uses this text as the config file.
    #[must_use]
    pub fn config_text(mut self, text: impl Into<String>) -> Setup {
        self.config = Config::Text(text.into());
        self
    }

    /// Adds words to the command line.
    #[must_use]
    pub fn arguments<Word: Into<String>>(mut self, words: impl IntoIterator<Item = Word>) -> Setup {
        self.arguments.extend(words.into_iter().map(Into::into));
        self
    }

    /// Starts the program through another one: these words, then the program and its own words.
    #[must_use]
    pub fn wrapped_in<Word: Into<String>>(
        mut self,
        words: impl IntoIterator<Item = Word>,
    ) -> Setup {
        self.wrapper = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Setup {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the program in this directory; the default is an empty one.
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Setup {
        self.directory = Some(path.into());
        self
    }

    /// Chooses the HTTP endpoint; the default is `/mcp`.
    #[must_use]
    pub fn endpoint(mut self, path: &str) -> Setup {
        path.clone_into(&mut self.endpoint);
        self
    }

    /// Chooses the protocol revision; the default is 2025-11-25.
    #[must_use]
    pub fn revision(mut self, revision: ProtocolVersion) -> Setup {
        self.revision = revision;
        self
    }

    /// Gives the client a bearer token.
    #[must_use]
    pub fn token(mut self, token: &str) -> Setup {
        self.token = Some(token.to_owned());
        self
    }

    /// Answers sampling requests: parameters in, result or error message out.
    #[must_use]
    pub fn sampling<Answer>(self, answer: Answer) -> Setup
    where
        Answer: Fn(Value) -> Result<Value, String> + Send + Sync + 'static,
    {
        self.sampling_later(move |params| std::future::ready(answer(params)))
    }

    /// Answers sampling requests after a while, or never.
    #[must_use]
    pub fn sampling_later<Answer, Later>(mut self, answer: Answer) -> Setup
    where
        Answer: Fn(Value) -> Later + Send + Sync + 'static,
        Later: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.sampler = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Answers questions to the person in front of the client: parameters in, result or error message out.
    #[must_use]
    pub fn person<Answer>(mut self, answer: Answer) -> Setup
    where
        Answer: Fn(Value) -> Result<Value, String> + Send + Sync + 'static,
    {
        self.person = Some(Arc::new(move |params| {
            Box::pin(std::future::ready(answer(params)))
        }));
        self
    }

    /// Starts the server and connects a client.
    pub async fn start(self, transport: Transport) -> Server {
        Server::start(&self, transport).await
    }

    /// Starts the server without a client, for messages written by hand.
    pub async fn wire(self, transport: Transport) -> Wire {
        Wire::start(&self, transport).await
    }

    /// Runs the program with nothing on standard input until it ends: for subcommands and for
    /// configs that must not start.
    pub async fn run(self) -> Ended {
        self.run_with_words(Vec::new()).await
    }

    /// Runs a server that should refuse to start. One that starts fails the test, because it does not end.
    pub async fn refuse(self, transport: Transport) -> Ended {
        self.run_with_words(words(transport)).await
    }

    async fn run_with_words(self, words: Vec<String>) -> Ended {
        let prepared = self.prepare(words);
        let mut child = prepared.line.spawn(Stdio::null());
        let log = Log::collect(child.stderr.take().expect("standard error is piped"));
        process::wait(&mut child, &log).await
    }

    /// The text of the config file.
    pub(crate) fn config(&self) -> String {
        match &self.config {
            Config::None => String::new(),
            Config::Made(value) => format!("{value:#}"),
            Config::Text(text) => text.clone(),
        }
    }

    /// Writes the config file and makes the command line.
    pub(crate) fn prepare_for(&self, transport: Transport) -> Prepared {
        self.prepare(words(transport))
    }

    fn prepare(&self, more: Vec<String>) -> Prepared {
        let files = tempfile::Builder::new()
            .prefix("server-")
            .tempdir()
            .expect("a temp dir");
        let config = self.config();
        let mut arguments = Vec::new();
        if !matches!(self.config, Config::None) {
            let path = files.path().join("config.yaml");
            fs::write(&path, &config).expect("write the config");
            arguments.extend(["--config".to_owned(), path.display().to_string()]);
        }
        arguments.extend(more);
        arguments.extend(self.arguments.iter().cloned());
        let (program, arguments) = self.wrapped(arguments);
        let line = Line {
            program,
            arguments,
            environment: self.environment.clone(),
            directory: self
                .directory
                .clone()
                .unwrap_or_else(|| files.path().to_owned()),
        };
        Prepared {
            line,
            config,
            files,
        }
    }

    /// The program to start and its words.
    fn wrapped(&self, arguments: Vec<String>) -> (PathBuf, Vec<String>) {
        let Some((first, words)) = self.wrapper.split_first() else {
            return (self.program.clone(), arguments);
        };
        let own = self.program.display().to_string();
        let words = words.iter().cloned().chain([own]).chain(arguments);
        (PathBuf::from(first), words.collect())
    }

    fn made(&mut self) -> &mut Map<String, Value> {
        if !matches!(self.config, Config::Made(_)) {
            self.config = Config::Made(json!({}));
        }
        match &mut self.config {
            Config::Made(Value::Object(keys)) => keys,
            _ => unreachable!("made above"),
        }
    }
}

fn words(transport: Transport) -> Vec<String> {
    let words: &[&str] = match transport {
        Transport::Stdio => &["--transport", "stdio"],
        Transport::Http => &["--transport", "http", "--host", "127.0.0.1", "--port", "0"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A command line and its config file, which is removed on drop.
pub(crate) struct Prepared {
    pub(crate) line: Line,
    pub(crate) config: String,
    pub(crate) files: TempDir,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_config_are_nested_by_dots() {
        let setup = Setup::new("x").set("limits.rate.burst", 3).set("port", 1);
        let prepared = setup
            .root("a", Path::new("/a"))
            .prepare_for(Transport::Stdio);
        let config: Value = serde_json::from_str(&prepared.config).unwrap();
        assert_eq!(config["limits"]["rate"]["burst"], 3);
        assert_eq!(config["port"], 1);
        assert_eq!(config["roots"][0]["name"], "a");
        assert_eq!(
            fs::read_to_string(&prepared.line.arguments[1]).unwrap(),
            prepared.config
        );
    }

    #[test]
    fn a_wrapper_comes_before_the_program() {
        let setup = Setup::new("x").arguments(["y"]).wrapped_in(["nice", "-n1"]);
        let line = setup.prepare_for(Transport::Stdio).line;
        assert_eq!(line.program, Path::new("nice"));
        assert_eq!(line.arguments, ["-n1", "x", "--transport", "stdio", "y"]);
    }

    #[tokio::test]
    async fn a_program_is_run_to_its_end() {
        let script = "echo out; echo '{\"n\": 1}' >&2; exit 3";
        let ended = Setup::new("/bin/sh").arguments(["-c", script]).run().await;
        assert_eq!(ended.code, Some(3));
        assert_eq!(ended.stdout, "out\n");
        assert_eq!(ended.log()[0]["n"], 1);
    }
}
