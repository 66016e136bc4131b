//! A running server with a client in front of it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::agent::Agent;
use crate::http::Http;
use crate::outcome::Outcome;
use crate::process::{self, Ended, Log, Memory, PATIENCE};
use crate::report::Report;
use crate::setup::{Setup, Transport};

/// How long one call may take before the test gives up.
const CALL: Duration = Duration::from_secs(120);

/// A process that is ready, and what belongs to it.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) http: Option<Http>,
    pub(crate) report: Report,
    pub(crate) files: TempDir,
}

/// Starts the process; over HTTP, waits until it listens.
pub(crate) async fn launch(setup: &Setup, transport: Transport) -> Started {
    let prepared = setup.prepare_for(transport);
    let input = match transport {
        Transport::Stdio => Stdio::piped(),
        Transport::Http => Stdio::null(),
    };
    let mut child = prepared.line.spawn(input);
    let log = Log::collect(child.stderr.take().expect("standard error is piped"));
    let report = Report {
        command: prepared.line.shown(),
        config: prepared.config,
        log: log.clone(),
        exchanges: Mutex::default(),
    };
    let http = match transport {
        Transport::Stdio => None,
        Transport::Http => Some(ready(&log).await),
    };
    Started {
        child,
        http,
        report,
        files: prepared.files,
    }
}

/// Takes the address from the start-up line. The port is open by then.
async fn ready(log: &Log) -> Http {
    let started = log.find(|line| address(line).is_some()).await;
    let address = started
        .as_ref()
        .and_then(address)
        .expect("no start-up line with an address");
    Http::new(address)
}

fn address(line: &Value) -> Option<SocketAddr> {
    line["address"].as_str()?.parse().ok()
}

/// The real program, started for one test, and the official SDK's client connected to it. Dropping
/// it kills the process.
pub struct Server {
    transport: Transport,
    client: RunningService<RoleClient, Agent>,
    progress: Arc<Mutex<Vec<Value>>>,
    child: Child,
    pid: u32,
    http: Option<Http>,
    log: Log,
    report: Report,
    _files: TempDir,
}

impl Server {
    pub(crate) async fn start(setup: &Setup, transport: Transport) -> Server {
        let mut started = launch(setup, transport).await;
        let pid = started.child.id().expect("it has just been started");
        let progress = Arc::default();
        let agent = Agent {
            revision: setup.revision.clone(),
            sampler: setup.sampler.clone(),
            person: setup.person.clone(),
            progress: Arc::clone(&progress),
        };
        let connecting = connect(agent, setup, &mut started);
        let client = match timeout(PATIENCE, connecting)
            .await
            .expect("connecting takes too long")
        {
            Ok(client) => client,
            Err(error) => panic!("cannot connect over {transport:?}: {error}"),
        };
        let log = started.report.log.clone();
        let Started {
            child,
            http,
            report,
            files,
        } = started;
        Server {
            transport,
            client,
            progress,
            child,
            pid,
            http,
            log,
            report,
            _files: files,
        }
    }

    /// Connects another client to this server, which talks over HTTP. Only what the setup says of the client counts.
    pub async fn another_client(&self, setup: &Setup) -> AnotherClient {
        let agent = Agent {
            revision: setup.revision.clone(),
            sampler: setup.sampler.clone(),
            person: setup.person.clone(),
            progress: Arc::default(),
        };
        let connecting = connect_http(agent, setup, self.http());
        let client = timeout(PATIENCE, connecting).await;
        let client = client.expect("connecting takes too long");
        AnotherClient {
            client: client.expect("a connection"),
        }
    }

    /// How client and server talk.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How much memory the process has.
    pub fn memory(&self) -> Memory {
        Memory::of(self.pid)
    }

    /// Tells whether the process has a file open.
    pub fn has_open(&self, path: &Path) -> bool {
        let directory = format!("/proc/{}/fd", self.pid);
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|open| open == path)
    }

    /// The SDK's client, for requests without a method here.
    pub fn client(&self) -> &rmcp::Peer<RoleClient> {
        self.client.peer()
    }

    /// What the server said about itself when we connected.
    pub fn info(&self) -> Value {
        let info = self.client.peer().peer_info().expect("we are connected");
        let name = serde_json::to_value(&info.server_info).expect("JSON");
        serde_json::json!({
            "protocolVersion": info.protocol_version.as_str(),
            "serverInfo": name,
            "instructions": info.instructions,
        })
    }

    /// Plain HTTP to the same server; panics over stdio.
    pub fn http(&self) -> &Http {
        self.http.as_ref().expect("this server talks over stdio")
    }

    /// Calls a tool; a JSON-RPC error fails the test.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        match self.try_call(tool, arguments).await {
            Ok(outcome) => outcome,
            Err(error) => panic!("{tool} got no result: {error}"),
        }
    }

    /// Calls a tool; a JSON-RPC error or a broken connection is the other half of the result.
    pub async fn try_call(&self, tool: &str, arguments: Value) -> Result<Outcome, ServiceError> {
        let call = format!("[{:?}] {tool} {arguments}", self.transport);
        let params = params(tool, arguments);
        let Ok(result) = timeout(CALL, self.client.call_tool(params)).await else {
            panic!("no answer within {CALL:?}: {call}");
        };
        match result {
            Ok(result) => {
                let outcome = Outcome::new(call, &result);
                self.report.add(&outcome.story());
                Ok(outcome)
            }
            Err(error) => {
                self.report.add(&format!("{call}\n=> {error:?}"));
                Err(error)
            }
        }
    }

    /// Calls a tool many times at once and returns the outcomes in the order of the arguments.
    pub async fn call_all(&self, tool: &str, arguments: Vec<Value>) -> Vec<Outcome> {
        let calls = arguments
            .into_iter()
            .map(|arguments| self.spawn_call(tool, arguments));
        let calls: Vec<_> = calls.collect();
        let mut outcomes = Vec::with_capacity(calls.len());
        for call in calls {
            outcomes.push(call.await.expect("the call's task ends"));
        }
        outcomes
    }

    /// Calls a tool without waiting for the outcome.
    pub fn spawn_call(&self, tool: &str, arguments: Value) -> JoinHandle<Outcome> {
        let call = format!("[{:?}] {tool} {arguments}", self.transport);
        let client = self.client.peer().clone();
        let params = params(tool, arguments);
        tokio::spawn(async move {
            let result = timeout(CALL, client.call_tool(params))
                .await
                .expect("an answer in time");
            Outcome::new(call, &result.expect("a result"))
        })
    }

    /// All tools as they are offered.
    pub async fn list_tools(&self) -> Vec<Value> {
        let tools = self.client.list_all_tools().await.expect("a tool list");
        tools
            .iter()
            .map(|tool| serde_json::to_value(tool).expect("JSON"))
            .collect()
    }

    /// The progress notifications received so far.
    pub fn progress(&self) -> Vec<Value> {
        self.progress.lock().expect("no panic while held").clone()
    }

    /// Waits for a log line; panics when there is none in time.
    pub async fn logged(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.log.find(wanted).await.expect("no such log line")
    }

    /// Everything on standard error so far.
    pub fn stderr(&self) -> Vec<String> {
        self.log.lines()
    }

    /// Ends the server as its users do, by hanging up (stdio) or by SIGTERM (HTTP), and waits.
    pub async fn stop(mut self) -> Ended {
        if self.transport == Transport::Http {
            process::ask_to_stop(&self.child);
        }
        // The connection is gone either way.
        let _ = timeout(PATIENCE, self.client.cancel()).await;
        process::wait(&mut self.child, &self.log).await
    }

    /// Ends the process as a crash does, with SIGKILL, and waits until it is gone.
    pub async fn kill(mut self) {
        // The process may have ended by itself.
        let _ = self.child.start_kill();
        let _ = timeout(PATIENCE, self.child.wait()).await;
    }

    /// Tells whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends SIGHUP, so that the server reads the operator's files again.
    pub fn reload(&self) {
        process::signal(&self.child, Signal::HUP);
    }

    /// Lets the process run for a twenty-fifth of the time only, for so many tenths of a second: a machine on which everything
    /// takes long.
    pub async fn slowed(&self, rounds: u32) {
        for _ in 0..rounds {
            process::signal(&self.child, Signal::STOP);
            tokio::time::sleep(Duration::from_millis(96)).await;
            process::signal(&self.child, Signal::CONT);
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
    }

    /// Asks the process to stop with SIGTERM and does not wait.
    pub fn terminate(&self) {
        process::ask_to_stop(&self.child);
    }
}

fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let params = CallToolRequestParams::new(tool.to_owned());
    match arguments {
        Value::Object(arguments) => params.with_arguments(arguments),
        _ => params,
    }
}

async fn connect(
    agent: Agent,
    setup: &Setup,
    started: &mut Started,
) -> Result<RunningService<RoleClient, Agent>, ClientInitializeError> {
    let lifecycle = lifecycle(&setup.revision);
    match &started.http {
        Some(http) => connect_http(agent, setup, http).await,
        None => {
            let output = started
                .child
                .stdout
                .take()
                .expect("standard output is piped");
            let input = started.child.stdin.take().expect("standard input is piped");
            agent.serve_with_lifecycle((output, input), lifecycle).await
        }
    }
}

async fn connect_http(
    agent: Agent,
    setup: &Setup,
    http: &Http,
) -> Result<RunningService<RoleClient, Agent>, ClientInitializeError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url(&setup.endpoint))
        .max_concurrent_requests(64);
    if let Some(token) = &setup.token {
        config = config.auth_header(token.clone());
    }
    let transport = StreamableHttpClientTransport::with_client(http.client(), config);
    let lifecycle = lifecycle(&setup.revision);
    agent.serve_with_lifecycle(transport, lifecycle).await
}

/// One more client of a server over HTTP.
pub struct AnotherClient {
    client: RunningService<RoleClient, Agent>,
}

impl AnotherClient {
    /// The SDK's client, for requests without a method here.
    pub fn client(&self) -> &rmcp::Peer<RoleClient> {
        self.client.peer()
    }

    /// Calls a tool; a JSON-RPC error fails the test.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = format!("[another client] {tool} {arguments}");
        let called = self.client.call_tool(params(tool, arguments));
        let Ok(result) = timeout(CALL, called).await else {
            panic!("no answer within {CALL:?}: {call}");
        };
        Outcome::new(call, &result.expect("a result"))
    }
}

fn lifecycle(revision: &ProtocolVersion) -> ClientLifecycleMode {
    if revision.has_initialize() {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Discover {
        preferred_versions: vec![revision.clone()],
    }
}
