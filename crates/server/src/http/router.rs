//! Routes HTTP requests: `/mcp`, `/mcp/<set>`, `/health`, `/ready` and `/metrics`.
//!
//! Every request is checked here before its body is read: Host and Origin by the [`HostCheck`], then the token.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::{Body, Bytes};
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderValue, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, StatusCode};
use mcp::{HttpClient, Sessions};
use tokio_rustls::TlsAcceptor;
use toolset::guide::GuideState;
use toolset::{Admission, first_chars};

use super::answers::{HttpReply, text};
use super::body::BodyLimits;
use super::connection_limits::{ConnectionLimits, ConnectionSlot};
use super::credentials::CredentialStore;
use super::endpoint::{Admitted, Endpoint, Holder};
use super::host_check::{self, AcceptedHost, HostCheck};
use super::metrics::{ProcessSnapshot, RootFigures};
use super::oauth::{OAuthRefused, Resource};
use super::readiness::Readiness;
use super::refusal::Refusal;
use super::refusal_log::{REASON_MAX, RefusalLog, Sender};
use super::root_looks::RootLooks;
use super::tokens::TokenRefusal;
use super::{cors, forwarded, metrics, server_card};
use crate::in_force::InForce;
use crate::process_usage::ProcessFigures;
use crate::settings::Network;

const METRICS_PATH: &str = "/metrics";
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The operator's settings for HTTP.
pub(crate) struct HttpOptions {
    /// What is open now.
    pub(crate) gauges: Arc<HttpGauges>,
    /// The process's memory and processor time.
    pub(crate) process: Arc<ProcessFigures>,
    /// The allowed hosts and origins.
    pub(crate) host_check: Arc<InForce<HostCheck>>,
    /// The tokens and the certificate.
    pub(crate) credentials: Arc<CredentialStore>,
    /// How busy the process is.
    pub(crate) admission: Arc<InForce<Admission>>,
    /// The shared state of `guide`, if it is served.
    pub(crate) guide_state: Option<Arc<GuideState>>,
    /// The largest request body.
    pub(crate) max_body_size: usize,
    /// The limits of open connections.
    pub(crate) connection_limits: ConnectionLimits,
    /// How long a new connection may take to send a request.
    pub(crate) handshake_timeout: Duration,
    /// How long a client may take to send a request or to take part of a reply.
    pub(crate) client_timeout: Duration,
}

/// What is known about a request besides its content.
#[derive(Debug, Clone)]
pub(super) struct RequestInfo {
    /// The peer, which is the client unless a proxy names another one.
    pub(super) client: HttpClient,
    /// Where its connection comes from.
    pub(super) peer: IpAddr,
    /// Its connection.
    pub(super) slot: Option<Arc<ConnectionSlot>>,
    /// The Host that was accepted on its connection before.
    pub(super) last_host: Arc<AcceptedHost>,
    /// Whether it has both a Content-Length and a Transfer-Encoding.
    pub(super) has_two_lengths: bool,
}

/// Answers requests; it needs no port, so tests can call it directly.
pub(super) struct Router {
    host_check: Arc<InForce<HostCheck>>,
    credentials: Arc<CredentialStore>,
    admission: Arc<InForce<Admission>>,
    guide_state: Option<Arc<GuideState>>,
    body_limits: BodyLimits,
    endpoints: Vec<Arc<Endpoint>>,
    readiness: Readiness,
    proxies: Vec<Network>,
    handshake_timeout: Duration,
    gauges: Arc<HttpGauges>,
    process: Arc<ProcessFigures>,
    /// For the metrics.
    looks: RootLooks,
}

/// What is open now and what was refused, for the metrics and the operator's page.
#[derive(Default)]
pub(crate) struct HttpGauges {
    connections: AtomicU64,
    refusals: RefusalLog,
    sessions: OnceLock<Vec<Arc<Sessions>>>,
}

impl HttpGauges {
    /// The open connections.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// The requests that were refused before they became calls.
    pub(crate) fn refusals(&self) -> &RefusalLog {
        &self.refusals
    }

    /// Logs and counts a refused request.
    fn refused(&self, sender: &Sender, path: &str, refusal: &Refusal) {
        let status = refusal.status.as_u16();
        let client = sender.client.as_deref();
        let violation = refusal.is_violation.then_some("endpoint");
        let (address, reason) = (sender.address, first_chars(&refusal.reason, REASON_MAX));
        match refusal.status {
            // Clients ask for a stream of messages with GET to find out whether there is one.
            StatusCode::METHOD_NOT_ALLOWED => {
                tracing::info!(status, %address, client, reason, "request refused");
            }
            _ => tracing::warn!(status, %address, client, violation, reason, "request refused"),
        }
        self.refusals.count(sender, path, refusal);
    }

    /// The open sessions of all endpoints.
    pub(crate) fn sessions(&self) -> usize {
        let all = self.sessions.get().into_iter().flatten();
        all.map(|sessions| sessions.count()).sum()
    }
}

/// An open connection; dropping it counts it as closed.
pub(super) struct OpenConnection(Arc<HttpGauges>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Router {
    /// Builds a router over the endpoints.
    pub(super) fn new(options: HttpOptions, endpoints: Vec<Arc<Endpoint>>) -> Router {
        let sessions = endpoints.iter().filter_map(|one| one.sessions());
        // A router is created only once.
        let _ = options.gauges.sessions.set(sessions.cloned().collect());
        Router {
            readiness: Readiness::new(Arc::clone(&options.admission)),
            endpoints,
            host_check: options.host_check,
            credentials: options.credentials,
            admission: options.admission,
            guide_state: options.guide_state,
            body_limits: BodyLimits {
                bytes: options.max_body_size,
                time: options.client_timeout,
            },
            proxies: options.connection_limits.proxies,
            handshake_timeout: options.handshake_timeout,
            gauges: options.gauges,
            process: options.process,
            looks: RootLooks::default(),
        }
    }

    /// How long a client may take to send a request or to take part of a reply.
    pub(super) fn client_timeout(&self) -> Duration {
        self.body_limits.time
    }

    /// How long a new connection may take for its handshake and the headers of its first request.
    pub(super) fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout.min(self.body_limits.time)
    }

    /// The acceptor for new connections, if HTTPS is configured.
    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.credentials.current().tls
    }

    /// Counts a connection until the returned value is dropped.
    pub(super) fn connected(&self) -> OpenConnection {
        self.gauges.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.gauges))
    }

    /// Notes that the process was asked to stop: from now on every reply ends its connection.
    pub(super) fn drain(&self) {
        self.readiness.drain();
    }

    /// How many connections are open.
    pub(super) fn open_connections(&self) -> u64 {
        self.gauges.connections()
    }

    /// Answers one request.
    pub(super) async fn handle<B>(&self, request: Request<B>, info: RequestInfo) -> HttpReply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let public = match request.uri().path() {
            "/health" => Some(health(request.method())),
            "/ready" => Some(self.readiness.answer(request.method()).await),
            _ => self.check(&request, &info).err().map(Err),
        };
        if let Some(answer) = public {
            return self.unless_refused(answer, &request, &info);
        }
        let origin = cors::origin(request.headers());
        // Close after a chunked body: a proxy in front of us may disagree about where it ends (request smuggling).
        let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let public = match cors::is_preflight(&request) {
            true => Some(Ok(cors::preflight())),
            false => self
                .server_card(&request, &info)
                .or_else(|| self.resource_metadata(&request)),
        };
        let mut reply = match public {
            Some(answer) => self.unless_refused(answer, &request, &info),
            None => self.admit(request, info).await,
        };
        if let Some(origin) = origin {
            cors::open_to(origin, &mut reply);
        }
        // The server is about to stop: this call is still answered, and the client's next one goes elsewhere.
        if is_chunked || self.readiness.is_draining() {
            let close = HeaderValue::from_static("close");
            reply.headers_mut().insert(CONNECTION, close);
        }
        reply
    }

    /// The answer to a request of whoever sends it.
    fn unless_refused<B>(
        &self,
        answer: Result<HttpReply, Refusal>,
        request: &Request<B>,
        info: &RequestInfo,
    ) -> HttpReply {
        answer.unwrap_or_else(|refusal| {
            let sender = Sender {
                address: self.forwarded(request, info).unwrap_or(info.peer),
                client: None,
            };
            self.refused(&sender, request.uri().path(), refusal)
        })
    }

    fn check<B>(&self, request: &Request<B>, info: &RequestInfo) -> Result<(), Refusal> {
        if info.has_two_lengths {
            return Err(host_check::two_lengths());
        }
        let host_check = self.host_check.now();
        host_check.check_next(request.uri(), request.headers(), &info.last_host)
    }

    /// Answers a request that passed the host check, if it carries a token or needs none.
    async fn admit<B>(&self, request: Request<B>, info: RequestInfo) -> HttpReply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if self.may_only_read_metrics(&request) {
            info.slot.iter().for_each(|slot| slot.let_in());
            let metrics = self.metrics(request.method()).await;
            return self.unless_refused(metrics, &request, &info);
        }
        let forwarded = self.forwarded(&request, &info);
        let mut sender = Sender {
            address: forwarded.unwrap_or(info.peer),
            client: None,
        };
        let holder = match self.holder(&request, &sender).await {
            Ok(holder) => holder,
            Err(refused) => return *refused,
        };
        sender.client = holder.as_ref().map(|holder| Arc::clone(&holder.name));
        info.slot.iter().for_each(|slot| slot.let_in());
        let path = request.uri().path();
        // Security: the metrics name every root, so a client that may only see some roots gets none.
        if path == METRICS_PATH && !is_named(holder.as_ref()) {
            let metrics = self.metrics(request.method()).await;
            return metrics.unwrap_or_else(|refusal| self.refused(&sender, path, refusal));
        }
        let endpoint = self.endpoint(path);
        let leaving = info.slot.as_ref().map(|slot| slot.leaving());
        let served =
            endpoint.and_then(|endpoint| Some((endpoint, endpoint.server_for(holder.as_ref())?)));
        match served {
            Some((endpoint, live)) => {
                let from = Admitted {
                    server: live.now(),
                    live,
                    client: forwarded.map_or(info.client, HttpClient::behind_proxy),
                    holder,
                    leaving: leaving.unwrap_or_default(),
                };
                let answered = endpoint.answer(request, from, self.body_limits).await;
                answered.unwrap_or_else(|refusal| {
                    self.refused(&sender, &format!("/mcp/{}", endpoint.name()), refusal)
                })
            }
            None => {
                let refusal = self.not_found(holder.as_ref());
                let is_there = endpoint.is_some() || path == METRICS_PATH;
                self.refused(&sender, path, refusal.with_violation(is_there))
            }
        }
    }

    /// The client that a trusted proxy names.
    fn forwarded<B>(&self, request: &Request<B>, info: &RequestInfo) -> Option<IpAddr> {
        forwarded::client(info.peer, request.headers(), &self.proxies)
    }

    /// The card of an endpoint, which needs no token: it is for those who do not know the server yet.
    fn server_card<B>(
        &self,
        request: &Request<B>,
        info: &RequestInfo,
    ) -> Option<Result<HttpReply, Refusal>> {
        let path = request.uri().path().strip_suffix(server_card::SUFFIX)?;
        let endpoint = self.endpoint(path)?;
        let is_proxied = self.forwarded(request, info).is_some();
        let host = request
            .headers()
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        let host = request.uri().authority().map(|own| own.as_str()).or(host);
        let scheme = if self.tls().is_some() {
            "https"
        } else {
            "http"
        };
        // Behind a proxy, only the proxy knows the address that clients use.
        let url = host.filter(|_| !is_proxied);
        let url = url.map(|host| format!("{scheme}://{host}{path}"));
        Some(server_card::answer(
            request.method(),
            &endpoint.server(),
            url,
        ))
    }

    fn endpoint(&self, path: &str) -> Option<&Endpoint> {
        match path.strip_prefix("/mcp")? {
            "" | "/" => self.endpoints.first().map(|first| &**first),
            rest => {
                let name = rest.strip_prefix('/')?.trim_end_matches('/');
                let mut endpoints = self.endpoints.iter();
                endpoints.find(|one| one.name() == name).map(|one| &**one)
            }
        }
    }

    /// Ends what clients of every endpoint listen to, because the process ends.
    pub(super) fn end_subscriptions(&self) {
        for endpoint in &self.endpoints {
            endpoint.server().end_subscriptions();
        }
    }

    /// Ends all sessions, because the process ends.
    pub(super) fn end_sessions(&self) {
        self.endpoints.iter().for_each(|one| one.end_sessions());
    }

    /// Refuses a request, for the log, the metrics and the operator's page.
    fn refused(&self, sender: &Sender, path: &str, refusal: Refusal) -> HttpReply {
        self.gauges.refused(sender, path, &refusal);
        refusal.into_reply()
    }

    /// Counts a request that hyper refused, because it is none.
    pub(super) fn refused_unread(&self, address: IpAddr, refusal: &Refusal) {
        let sender = Sender {
            address,
            client: None,
        };
        self.gauges.refused(&sender, "", refusal);
    }

    /// Finds out who sends a request: the holder of a token of the operator's, or of an access token.
    async fn holder<B>(
        &self,
        request: &Request<B>,
        sender: &Sender,
    ) -> Result<Option<Holder>, Box<HttpReply>> {
        let path = request.uri().path();
        let tokens = self.credentials.current().tokens;
        let known = tokens
            .as_ref()
            .map(|tokens| tokens.holder(request.headers()));
        match (known, self.credentials.oauth()) {
            (Some(Ok(holder)), _) => Ok(Some(holder.into())),
            (None, None) => Ok(None),
            (Some(Err(reason)), None) => {
                let sources = tokens.as_ref().map_or("", |tokens| tokens.sources());
                Err(Box::new(self.unauthorized((sender, path), reason, sources)))
            }
            (_, Some(oauth)) => {
                let resource = self.resource(path);
                let holder = oauth.holder(request.headers(), &resource).await;
                let holder =
                    holder.map_err(|refused| Box::new(self.challenged(sender, path, refused)));
                holder.map(Some)
            }
        }
    }

    /// The resource that a path belongs to.
    fn resource(&self, path: &str) -> Resource {
        let endpoint = self.endpoint(path);
        let own = endpoint.map(|endpoint| format!("/mcp/{}", endpoint.name()));
        let first = self.endpoints.first().map(|first| first.name());
        let is_first = endpoint.is_some_and(|endpoint| Some(endpoint.name()) == first);
        Resource {
            path: match endpoint {
                Some(_) => path.trim_end_matches('/').to_owned(),
                None => String::new(),
            },
            paths: own
                .into_iter()
                .chain(is_first.then(|| "/mcp".to_owned()))
                .collect(),
        }
    }

    /// The metadata of a resource, which needs no token: it tells where to get one.
    fn resource_metadata<B>(&self, request: &Request<B>) -> Option<Result<HttpReply, Refusal>> {
        let oauth = self.credentials.oauth()?;
        let path = oauth.metadata_path(request.uri().path())?;
        if path.is_empty() || self.endpoint(path).is_some() {
            return Some(oauth.metadata(request.method(), path.trim_end_matches('/')));
        }
        Some(Err(self.not_found(None)))
    }

    /// Refuses a request and tells where to get an access token.
    fn challenged(&self, sender: &Sender, path: &str, refused: OAuthRefused) -> HttpReply {
        let mut reply = self.refused(sender, path, refused.refusal);
        if let Some(challenge) = refused.challenge {
            reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        reply
    }

    fn unauthorized(
        &self,
        (sender, path): (&Sender, &str),
        reason: TokenRefusal,
        sources: &str,
    ) -> HttpReply {
        let (what, challenge) = match reason {
            TokenRefusal::Missing => ("a token is needed", r#"Bearer realm="mcp-filesystem""#),
            TokenRefusal::Wrong => (
                "the token is not known here",
                r#"Bearer realm="mcp-filesystem", error="invalid_token""#,
            ),
        };
        let reason = format!(
            "Unauthorized: {what}; send \"Authorization: Bearer TOKEN\" with a token of {sources}"
        );
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, reason);
        let mut reply = self.refused(sender, path, refusal);
        let challenge = HeaderValue::from_static(challenge);
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        reply
    }

    /// Tells the sender of a request which endpoints it has.
    fn not_found(&self, holder: Option<&Holder>) -> Refusal {
        let is_own = |endpoint: &Endpoint| endpoint.server_for(holder).is_some();
        let first = self.endpoints.first().filter(|first| is_own(first));
        let first = first.map(|_| "/mcp".to_owned());
        let own = self.endpoints.iter().filter(|endpoint| is_own(endpoint));
        let own = own.map(|endpoint| format!("/mcp/{}", endpoint.name()));
        let metrics = (!is_named(holder)).then(|| METRICS_PATH.to_owned());
        let all: Vec<String> = first
            .into_iter()
            .chain(own)
            .chain(metrics)
            .chain(["/health".to_owned()])
            .collect();
        let reason = format!("Not Found: there are {} and /ready", all.join(", "));
        Refusal::new(StatusCode::NOT_FOUND, reason)
    }

    /// Whether a request for the metrics carries a metrics-only token.
    fn may_only_read_metrics<B>(&self, request: &Request<B>) -> bool {
        let is_asked = request.uri().path() == METRICS_PATH;
        let tokens = is_asked.then(|| self.credentials.current().metrics_tokens);
        let tokens = tokens.flatten();
        tokens.is_some_and(|tokens| tokens.holder(request.headers()).is_ok())
    }

    async fn metrics(&self, method: &Method) -> Result<HttpReply, Refusal> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Refusal::method("GET, HEAD"));
        }
        let admission = self.admission.now();
        // Quotas and histories are read from disk, and in a cluster from the file server.
        let roots = RootFigures::of_all(&self.looks, &admission).await;
        let (running, waiting) = admission.busy();
        let page = metrics::page(&metrics::Snapshot {
            tools: self
                .endpoints
                .iter()
                .flat_map(|endpoint| {
                    let server = endpoint.server();
                    let metrics = server.service().catalogue().metrics();
                    metrics.collect::<Vec<_>>()
                })
                .collect(),
            refusals: self.gauges.refusals.by_status(),
            connections: self.gauges.connections(),
            sessions: self.gauges.sessions(),
            running,
            waiting,
            roots,
            process: ProcessSnapshot::of(&self.process),
            held_bytes: admission.byte_budget().bytes_held(),
            search_memory: admission.search_memory().usage(),
            cache: self
                .guide_state
                .as_ref()
                .map(|guide_state| guide_state.cache_figures()),
        });
        let mut reply = text(StatusCode::OK, page);
        reply.headers_mut().insert(CONTENT_TYPE, METRICS);
        Ok(reply)
    }
}

/// Whether the settings name the sender of a request.
fn is_named(holder: Option<&Holder>) -> bool {
    holder.is_some_and(|holder| holder.client.is_some())
}

fn health(method: &Method) -> Result<HttpReply, Refusal> {
    if method == Method::GET || method == Method::HEAD {
        return Ok(text(StatusCode::OK, "ok"));
    }
    Err(Refusal::method("GET, HEAD"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};
    use hyper::header::ACCEPT;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use toolset::{Admission, Deployment, RootGrant, Service, workspace};

    const MODERN: &str = "2026-07-28";

    fn router() -> Router {
        let root = Arc::new(sandbox::Root::open(&std::env::temp_dir()).expect("a directory"));
        let roots = vec![RootGrant::new("temp", root)];
        let admission = Admission::new(Deployment {
            roots,
            ..Deployment::for_tests()
        });
        let service =
            Service::new(vec![workspace::toolset()], Arc::clone(&admission)).expect("a service");
        let host_check = HostCheck::new("127.0.0.1", &[], &[]);
        let settings = crate::settings::Partial::default().complete();
        let options = HttpOptions {
            gauges: Arc::default(),
            process: Arc::new(ProcessFigures::open()),
            host_check: Arc::new(InForce::new(host_check)),
            credentials: Arc::new(CredentialStore::load(&settings).expect("no credentials")),
            admission: Arc::new(InForce::new(admission)),
            guide_state: None,
            max_body_size: 4096,
            connection_limits: ConnectionLimits {
                most: 1,
                most_of_one: 1,
                proxies: Vec::new(),
            },
            handshake_timeout: settings.handshake_timeout,
            client_timeout: settings.client_timeout,
        };
        let server = mcp::Server::new(service);
        let endpoint = Endpoint::new("workspace".to_owned(), server, Vec::new(), None);
        Router::new(options, vec![Arc::new(endpoint)])
    }

    fn info() -> RequestInfo {
        RequestInfo {
            client: HttpClient::at(([127, 0, 0, 1], 1).into()),
            peer: [127, 0, 0, 1].into(),
            slot: None,
            last_host: Arc::default(),
            has_two_lengths: false,
        }
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

    async fn body_of(reply: HttpReply) -> Bytes {
        let body = reply.into_body().collect().await;
        body.expect("a body").to_bytes()
    }

    async fn answer(request: Request<Full<Bytes>>) -> (u16, String, Value) {
        let reply = router().handle(request, info()).await;
        let status = reply.status().as_u16();
        let kind = reply
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = body_of(reply).await;
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
        let router = router();
        let reply = router.handle(
            Request::get("/health")
                .body(Full::new(Bytes::new()))
                .expect("it"),
            info(),
        );
        let reply = reply.await;
        assert_eq!(reply.status(), 200);
        let body = body_of(reply).await;
        assert_eq!(&body[..], b"ok");
    }

    #[tokio::test]
    async fn old_revisions_need_no_session_and_get_json() {
        let arguments = json!({ "root": "nonexistent" });
        for path in ["/mcp", "/mcp/", "/mcp/workspace"] {
            let headers = [("mcp-protocol-version", "2025-06-18")];
            let (status, kind, body) =
                answer(request(path, &headers, &call(&arguments, &json!({})))).await;
            assert_eq!(status, 200, "{path}");
            assert_eq!(kind.as_str(), "application/json", "{path}");
            assert_eq!(
                body["result"]["content"][0]["text"],
                "unknown root: nonexistent; roots: temp"
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
        assert_eq!(status, 400);
        assert_eq!(&reply["error"]["code"], &json!(-32020));
    }

    #[tokio::test]
    async fn two_revisions_are_refused() {
        let headers = [
            ("mcp-protocol-version", MODERN),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let body = call(&json!({}), &json!({}));
        assert_eq!(answer(request("/mcp", &headers, &body)).await.0, 400);
    }

    #[tokio::test]
    async fn lists_of_what_is_accepted_may_be_spread_and_written_anyhow() {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let mut request = request("/mcp", &[], &call);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("Application/JSON;q=0.9"));
        headers.append(ACCEPT, HeaderValue::from_static("text/event-stream"));
        assert_eq!(answer(request).await.0, 200);
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
            let reply = router()
                .handle(request.body(Untouched).expect("a request"), info())
                .await;
            assert_eq!(reply.status(), 403);
        }
    }
}
