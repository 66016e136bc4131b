//! The Streamable HTTP transport: `/mcp`, `/mcp/<set>` and `/health` on hyper, MCP by rmcp.
//!
//! Host and Origin are checked here, for every endpoint, before a body is read; rmcp's own checks are off.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolset::{Client, Service};

use crate::door::{Door, Refusal};
use crate::shutdown::FINISHING;

/// How long connections may take to notice that they were cut.
const CUTTING: Duration = Duration::from_millis(500);
/// How long a client may take to send a request's headers, and a connection may be idle between requests.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait before accepting again when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

type Reply = Response<BoxBody<Bytes, Infallible>>;

/// What the operator decided about HTTP.
pub(crate) struct Options {
    /// Whom to let in.
    pub(crate) door: Door,
    /// The largest request body.
    pub(crate) max_body_size: usize,
    /// The most connections at once; further ones wait to be accepted.
    pub(crate) max_connections: usize,
}

/// One tool set's endpoint, `/mcp/<name>`.
pub(crate) struct Endpoint {
    /// The set's name.
    pub(crate) name: String,
    /// Its tools.
    pub(crate) service: Service,
    /// Whether clients up to 2025-11-25 get a session.
    pub(crate) sessions: bool,
}

/// Serves until the process is asked to stop; running calls then finish or are cut.
pub(crate) async fn serve(
    listener: TcpListener,
    options: Options,
    endpoints: Vec<Endpoint>,
    shutdown: CancellationToken,
) {
    let cut = CancellationToken::new();
    let slots = Arc::new(Semaphore::new(
        options.max_connections.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let services: Vec<Service> = endpoints.iter().map(|e| e.service.clone()).collect();
    let site = Arc::new(Site::new(options, endpoints, &cut));
    let mut connections = JoinSet::new();
    while let Some((stream, address, slot)) = accept(&listener, &slots, &shutdown).await {
        connections.spawn(connection(
            stream,
            address,
            Arc::clone(&site),
            shutdown.clone(),
            slot,
        ));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    // First their calls are cut, which answers them; then whatever still holds a connection, such as a stream.
    let cuts: [(Duration, &dyn Fn()); 2] = [
        (FINISHING, &|| services.iter().for_each(Service::cut_calls)),
        (CUTTING, &|| cut.cancel()),
    ];
    for (patience, cut) in cuts {
        if tokio::time::timeout(patience, all(&mut connections))
            .await
            .is_ok()
        {
            return;
        }
        cut();
    }
    // Whoever is left after that is dropped with the set.
    let _ = tokio::time::timeout(CUTTING, all(&mut connections)).await;
}

async fn all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// The next connection and its slot; `None` when the process is asked to stop.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let next = async {
        let slot = Arc::clone(slots).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, address)) => return Some((stream, address, slot)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => None,
        accepted = next => accepted,
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    site: Arc<Site>,
    shutdown: CancellationToken,
    _slot: OwnedSemaphorePermit,
) {
    // Small replies must not wait for an acknowledgement; without it they are only slower.
    let _ = stream.set_nodelay(true);
    let client = Client {
        address: address.to_string().into(),
        known_as: None,
    };
    let service = service_fn(move |mut request: Request<Incoming>| {
        let site = Arc::clone(&site);
        request.extensions_mut().insert(client.clone());
        async move { Ok::<_, Infallible>(site.handle(request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %address, "a connection broke");
    }
}

/// Everything that can be asked for, without a port.
pub(crate) struct Site {
    door: Door,
    endpoints: Vec<(String, StreamableHttpService<Service, LocalSessionManager>)>,
}

impl Site {
    /// Puts the endpoints behind the door; `cut` ends their sessions and running calls.
    pub(crate) fn new(options: Options, endpoints: Vec<Endpoint>, cut: &CancellationToken) -> Site {
        let max_body_size = options.max_body_size;
        let endpoints = endpoints.into_iter().map(|endpoint| {
            let config = config(endpoint.sessions, max_body_size, cut);
            let service = endpoint.service;
            let factory = move || Ok(service.clone());
            (
                endpoint.name,
                StreamableHttpService::new(factory, Arc::default(), config),
            )
        });
        Site {
            door: options.door,
            endpoints: endpoints.collect(),
        }
    }

    /// Answers one request.
    pub(crate) async fn handle<B>(&self, request: Request<B>) -> Reply
    where
        B: Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        if request.uri().path() == "/health" {
            return health(request.method());
        }
        if let Err(Refusal { status, message }) = self.door.check(request.headers()) {
            tracing::warn!(
                status = status.as_u16(),
                reason = message,
                "request refused"
            );
            return text(status, message);
        }
        match self.endpoint(request.uri().path()) {
            Some(endpoint) => endpoint.handle(request).await,
            None => self.not_found(),
        }
    }

    fn endpoint(&self, path: &str) -> Option<&StreamableHttpService<Service, LocalSessionManager>> {
        let found = match path.strip_prefix("/mcp")? {
            "" | "/" => self.endpoints.first(),
            rest => {
                let name = rest.strip_prefix('/')?.trim_end_matches('/');
                self.endpoints.iter().find(|(own, _)| own == name)
            }
        };
        found.map(|(_, endpoint)| endpoint)
    }

    fn not_found(&self) -> Reply {
        let names = self
            .endpoints
            .iter()
            .map(|(name, _)| format!(", /mcp/{name}"));
        let message = format!(
            "Not Found: there are /mcp{} and /health",
            names.collect::<String>()
        );
        text(StatusCode::NOT_FOUND, message)
    }
}

fn config(
    sessions: bool,
    max_body_size: usize,
    cut: &CancellationToken,
) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(sessions)
        .with_json_response(true)
        .with_max_request_body_bytes(max_body_size)
        .with_cancellation_token(cut.child_token())
}

fn health(method: &Method) -> Reply {
    if method == Method::GET || method == Method::HEAD {
        return text(StatusCode::OK, "ok".to_owned());
    }
    let mut reply = text(
        StatusCode::METHOD_NOT_ALLOWED,
        "Method Not Allowed".to_owned(),
    );
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    reply
}

fn text(status: StatusCode, message: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(message)).boxed());
    *reply.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, plain);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use toolset::{Deployment, Gate, RootGrant, workspace};

    const MODERN: &str = "2026-07-28";

    fn site() -> Site {
        let root = Arc::new(sandbox::Root::open(&std::env::temp_dir()).expect("a directory"));
        let roots = vec![RootGrant::new("temp", root)];
        let gate = Gate::new(Deployment {
            roots,
            ..Deployment::default()
        });
        let service = Service::new(vec![workspace::toolset()], gate).expect("a service");
        let door = Door::new("127.0.0.1", &[], &[]);
        let options = Options {
            door,
            max_body_size: 4096,
            max_connections: 1,
        };
        let endpoint = Endpoint {
            name: "workspace".to_owned(),
            service,
            sessions: false,
        };
        Site::new(options, vec![endpoint], &CancellationToken::new())
    }

    fn request(path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Full<Bytes>> {
        let mut request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request")
    }

    async fn answer(request: Request<Full<Bytes>>) -> (u16, String, Value) {
        let reply = site().handle(request).await;
        let status = reply.status().as_u16();
        let kind = reply
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = reply
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        (
            status,
            kind,
            serde_json::from_slice(&body).unwrap_or(Value::Null),
        )
    }

    fn call(arguments: &Value, meta: &Value) -> Value {
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "hash_file", "arguments": arguments, "_meta": meta }
        })
    }

    fn modern_meta() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {}
        })
    }

    #[tokio::test]
    async fn health_is_ok_for_everybody() {
        let site = site();
        let reply = site.handle(
            Request::get("/health")
                .body(Full::new(Bytes::new()))
                .expect("it"),
        );
        let reply = reply.await;
        assert_eq!(reply.status(), 200);
        let body = reply
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        assert_eq!(&body[..], b"ok");
    }

    #[tokio::test]
    async fn old_revisions_need_no_session_and_get_json() {
        let arguments = json!({ "root": "nonexistent" });
        for path in ["/mcp", "/mcp/", "/mcp/workspace"] {
            let headers = [("mcp-protocol-version", "2025-06-18")];
            let (status, kind, body) =
                answer(request(path, &headers, &call(&arguments, &json!({})))).await;
            assert_eq!((status, kind.as_str()), (200, "application/json"), "{path}");
            assert_eq!(
                body["result"]["content"][0]["text"],
                "unknown root: nonexistent"
            );
        }
    }

    #[tokio::test]
    async fn the_newest_revision_checks_its_headers_against_the_body() {
        let arguments = json!({ "root": "temp", "path": "." , "algorithm": "md5" });
        let body = call(&arguments, &modern_meta());
        let headers = |root| {
            [
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", "hash_file"),
                ("mcp-param-root", root),
            ]
        };
        let (status, _, reply) = answer(request("/mcp", &headers("temp"), &body)).await;
        assert_eq!(status, 200);
        assert_eq!(
            reply["result"]["structuredContent"]["error"]["code"],
            "is_a_directory"
        );
        let (status, _, reply) = answer(request("/mcp", &headers("other"), &body)).await;
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32020)));
    }

    #[tokio::test]
    async fn an_unknown_tool_is_a_protocol_error() {
        let mut body = call(&json!({}), &json!({}));
        body["params"]["name"] = json!("hash_files");
        let (_, _, reply) = answer(request("/mcp", &[], &body)).await;
        assert_eq!(reply["error"]["code"], -32602);
        assert_eq!(
            reply["error"]["message"],
            "Unknown tool: hash_files; did you mean hash_file?"
        );
    }

    #[tokio::test]
    async fn large_bodies_and_other_paths_are_refused() {
        let large = call(&json!({ "root": "x".repeat(5000) }), &json!({}));
        assert_eq!(answer(request("/mcp", &[], &large)).await.0, 413);
        for path in ["/", "/mcpx", "/mcp/files", "/mcp/workspace/x"] {
            assert_eq!(
                answer(request(path, &[], &json!({}))).await.0,
                404,
                "{path}"
            );
        }
    }

    /// A body that must not be asked for.
    struct Untouched;

    impl Body for Untouched {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
            panic!("the body was read")
        }
    }

    #[tokio::test]
    async fn strangers_are_refused_before_their_body_is_read() {
        let strange = [
            ("host", "evil.com", "x", "x"),
            ("host", "localhost", "origin", "http://evil.com"),
        ];
        for (host, name, origin, value) in strange {
            let request = Request::post("/mcp")
                .header(host, name)
                .header(origin, value);
            let reply = site()
                .handle(request.body(Untouched).expect("a request"))
                .await;
            assert_eq!(reply.status(), 403);
        }
    }
}
