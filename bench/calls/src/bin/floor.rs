//! What `make bench-calls` compares with: a tool built by hand on rmcp that answers `read_file` from memory.
//!
//! `floor http ADDRESS FILE`, `floor stdio FILE`, or `floor escape FILE TIMES` for JSON alone. It does nothing that a server has to do: no arguments are judged, no file
//! is opened, nothing is logged, nobody is refused.
#![expect(
    clippy::disallowed_methods,
    reason = "it reads its one file once, at start-up"
)]

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Stands for the version of the file, which the real server makes from its times and number.
const VERSION: &str = "hFU0up1kr";

/// The prepared reply.
#[derive(Clone)]
struct Floor(Arc<(String, Value)>);

impl Floor {
    /// Takes the reply that the real server gives for a whole text file.
    fn of(path: &str) -> anyhow::Result<Floor> {
        let content = std::fs::read_to_string(path)?;
        let lines = content.lines().count();
        let numbered = content.lines().enumerate();
        let numbered = numbered.map(|(index, line)| format!("{}\t{line}\n", index + 1));
        let text = numbered.chain([format!("[version {VERSION}]")]);
        let reply = json!({
            "root": "bench", "path": "small.txt", "content": content, "encoding": "utf-8", "size": content.len(),
            "lines_total": lines, "start_line": 1, "end_line": lines, "version": VERSION, "truncated": false,
            "binary": false
        });
        Ok(Floor(Arc::new((text.collect(), reply))))
    }
}

impl ServerHandler for Floor {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (text, reply) = &*self.0;
        let mut result = CallToolResult::success(vec![ContentBlock::text(text.clone())]);
        result.structured_content = Some(reply.clone());
        Ok(result.into())
    }
}

async fn http(address: &str, floor: Floor) -> anyhow::Result<()> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service: StreamableHttpService<Floor, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(floor.clone()), Arc::default(), config);
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            // A client that hangs up is how every connection ends.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn stdio(floor: Floor) -> anyhow::Result<()> {
    let (read, write) = stdio_pipes();
    let running = serve_server(floor, AsyncRwTransport::new_server(read, write)).await?;
    running.waiting().await?;
    Ok(())
}

/// Makes JSON of a text again and again, for what that alone costs.
fn escape(text: &str, times: usize) -> anyhow::Result<()> {
    for _ in 0..times {
        std::hint::black_box(serde_json::to_string(std::hint::black_box(text))?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", address, file] => http(address, Floor::of(file)?).await,
        ["stdio", file] => stdio(Floor::of(file)?).await,
        ["escape", file, times] => escape(&std::fs::read_to_string(file)?, times.parse()?),
        _ => anyhow::bail!("floor http ADDRESS FILE | floor stdio FILE | floor escape FILE TIMES"),
    }
}
