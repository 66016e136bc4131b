//! Clients that behave: one connection each, one call after the other, every reply looked at.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::verdict::Counts;

/// How long a reply may take before the client takes it for lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a client looks at a reply before it asks again.
const PAUSE: Duration = Duration::from_millis(20);

/// Which revision a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revision {
    /// 2025-11-25, in a session.
    Old,
    /// 2026-07-28, without any.
    New,
}

struct Client {
    number: usize,
    revision: Revision,
    http: reqwest::Client,
    url: String,
    session: Option<String>,
    calls: u64,
}

/// Calls tools until the time is over; counts what went well and what did not.
pub(crate) async fn behave(
    number: usize,
    address: SocketAddr,
    until: Instant,
    counts: Arc<Counts>,
) {
    let revision = match number % 2 {
        0 => Revision::Old,
        _ => Revision::New,
    };
    let mut client = match Client::connect(number, revision, address, &counts).await {
        Ok(client) => client,
        Err(error) => return counts.failed(&error),
    };
    while Instant::now() < until {
        let start = Instant::now();
        match client.call().await {
            Ok(()) => counts.succeeded(start.elapsed()),
            // What is under way when the server is asked to end may be cut.
            Err(error) if Instant::now() < until => counts.failed(&error),
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    // The connection stays open: the server has to end with everybody connected.
    std::future::pending().await
}

impl Client {
    async fn connect(
        number: usize,
        revision: Revision,
        address: SocketAddr,
        counts: &Counts,
    ) -> Result<Client> {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
        let mut client = Client {
            number,
            revision,
            http: http
                .local_address(crate::host_of(number))
                .pool_max_idle_per_host(1)
                .build()?,
            url: format!("http://{address}/mcp"),
            session: None,
            calls: 0,
        };
        if revision == Revision::Old {
            client.initialise().await?;
        }
        counts.connected();
        Ok(client)
    }

    async fn initialise(&mut self) -> Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "load", "version": "1"}}});
        let reply = self.post(&request, None).await?;
        let session = reply
            .headers()
            .get("mcp-session-id")
            .context("no session")?;
        self.session = Some(session.to_str()?.to_owned());
        answer(reply).await?;
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let reply = self.post(&note, None).await?;
        ensure!(reply.status() == 202, "initialized: {}", reply.status());
        Ok(())
    }

    async fn call(&mut self) -> Result<()> {
        self.calls += 1;
        let (tool, arguments) = self.work();
        let mut params = json!({"name": tool, "arguments": arguments});
        if let (Revision::New, Some(params)) = (self.revision, params.as_object_mut()) {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}});
            params.insert("_meta".to_owned(), meta);
        }
        let id = self.calls;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let answer = answer(self.post(&request, Some(tool)).await?).await?;
        ensure!(
            answer["id"] == id,
            "the answer to another request: {answer}"
        );
        ensure!(answer["result"]["isError"] == false, "{tool}: {answer}");
        self.look_at(tool, &answer["result"]["structuredContent"])
    }

    /// A mixture of what agents do; what is written is the client's own.
    fn work(&self) -> (&'static str, Value) {
        let folder = self.number % 20;
        let file = self.calls % 20;
        let path = format!("folder-{folder}/file-{file}.txt");
        match self.calls % 10 {
            0 => (
                "list_folder",
                json!({"root": "root", "path": format!("folder-{folder}")}),
            ),
            1 => ("stat_file", json!({"root": "root", "path": path})),
            2 => {
                let path = format!("written/{}", self.number);
                let content = self.number.to_string().repeat(100);
                (
                    "write_file",
                    json!({"root": "root", "path": path, "content": content}),
                )
            }
            3 => {
                let path = format!("folder-{folder}");
                (
                    "grep",
                    json!({"root": "root", "path": path, "pattern": "needle 7", "max_results": 10}),
                )
            }
            4 => (
                "glob",
                json!({"root": "root", "pattern": "folder-1*/file-3.txt"}),
            ),
            _ => ("read_file", json!({"root": "root", "path": path})),
        }
    }

    fn look_at(&self, tool: &str, reply: &Value) -> Result<()> {
        let fits = match tool {
            "read_file" => {
                let line = format!("needle {}\n", self.calls % 20);
                reply["content"]
                    .as_str()
                    .is_some_and(|text| text.contains(&line))
            }
            "list_folder" => reply["count"] == 20,
            "grep" => reply["total_matches"] == 10,
            "glob" => reply["matches"]
                .as_array()
                .is_some_and(|found| found.len() == 11),
            _ => true,
        };
        ensure!(fits, "{tool}: another answer than expected: {reply}");
        Ok(())
    }

    async fn post(&self, message: &Value, tool: Option<&str>) -> Result<reqwest::Response> {
        let accepted = "application/json, text/event-stream";
        let mut request = self.http.post(&self.url).header("accept", accepted);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let revision = match self.revision {
            Revision::Old => "2025-11-25",
            Revision::New => "2026-07-28",
        };
        request = request.header("mcp-protocol-version", revision);
        if let (Revision::New, Some(tool)) = (self.revision, tool) {
            let headers = [
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
                ("mcp-param-root", "root"),
            ];
            for (name, value) in headers {
                request = request.header(name, value);
            }
        }
        Ok(request.json(message).send().await?)
    }
}

/// The JSON-RPC message of a reply, sent plainly or as an event.
async fn answer(reply: reqwest::Response) -> Result<Value> {
    let status = reply.status();
    let kind = reply.headers().get("content-type").cloned();
    let body = reply.text().await?;
    ensure!(status == 200, "{status}: {body}");
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let text = if is_stream {
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(str::trim)
            .rfind(|data| !data.is_empty())
            .unwrap_or_default()
    } else {
        &body
    };
    serde_json::from_str(text).with_context(|| body.clone())
}
