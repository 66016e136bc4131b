//! What can be asked over HTTP: `/mcp`, `/mcp/<set>`, `/health` and `/metrics`; MCP by rmcp, but for plain calls.
//!
//! Who asks is judged here, for every endpoint, before a body is read: Host and Origin by the [`Door`], then the
//! token. rmcp's own checks are off, and its answers to what it cannot read are put into our words.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT, ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use toolset::guide::Desk;
use toolset::{Client, Delivery, Gate, Revision, Service, Slot};

use super::outgoing::Outgoing;
use super::sessions::{self, Sessions};
use super::{body, cors, direct, metrics};
use crate::door::{self, Door, Refusal};
use crate::frame::{self, Frame};
use crate::keys::KeyRing;
use crate::tokens::{Holder, NoHolder};

pub(super) type Reply = Response<BoxBody<Bytes, Infallible>>;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What a client has to accept, as [`normalise`] spells it.
pub(super) const BOTH: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the operator decided about HTTP.
pub(crate) struct Options {
    /// Whom to let in by name.
    pub(crate) door: Door,
    /// Whom to let in by token, and how it is encrypted.
    pub(crate) keys: Arc<KeyRing>,
    /// How busy the process is.
    pub(crate) gate: Arc<Gate>,
    /// What the calls of `guide` share, where it is served.
    pub(crate) desk: Option<Arc<Desk>>,
    /// The largest request body.
    pub(crate) max_body_size: usize,
    /// The most connections at once; further ones wait to be accepted.
    pub(crate) max_connections: usize,
    /// The most sessions of an endpoint at once.
    pub(crate) max_sessions: usize,
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

/// What is known of a request besides what it says.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// Where it comes from.
    pub(super) address: Arc<str>,
    /// Its body was given two lengths.
    pub(super) has_two_lengths: bool,
}

/// Everything that can be asked for, without a port.
pub(super) struct Site {
    door: Door,
    keys: Arc<KeyRing>,
    gate: Arc<Gate>,
    desk: Option<Arc<Desk>>,
    max_body_size: usize,
    places: Vec<Place>,
    outgoing: Outgoing,
    connections: Arc<AtomicU64>,
    refusals: Mutex<BTreeMap<u16, u64>>,
}

/// An endpoint with its protocol in front.
struct Place {
    name: String,
    service: Service,
    protocol: StreamableHttpService<Service, LocalSessionManager>,
    /// Where it has sessions.
    sessions: Option<Sessions>,
}

/// A connection while it lasts.
pub(super) struct Here(Arc<AtomicU64>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Site {
    /// Puts the endpoints behind the door; `cut` ends their sessions and running calls.
    pub(super) fn new(options: Options, endpoints: Vec<Endpoint>, cut: &CancellationToken) -> Site {
        let place = |endpoint| Place::new(endpoint, &options, cut);
        let places = endpoints.into_iter().map(place).collect();
        Site {
            places,
            door: options.door,
            keys: options.keys,
            gate: options.gate,
            desk: options.desk,
            max_body_size: options.max_body_size,
            outgoing: Outgoing::new(),
            connections: Arc::default(),
            refusals: Mutex::default(),
        }
    }

    /// What encrypts new connections.
    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.keys.keys().tls
    }

    /// Counts a connection until what comes back is dropped.
    pub(super) fn connected(&self) -> Here {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Here(Arc::clone(&self.connections))
    }

    /// Answers one request.
    pub(super) async fn handle<B>(&self, request: Request<B>, visit: Visit) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if request.uri().path() == "/health" {
            return health(request.method());
        }
        if let Err(refusal) = self.check(&request, &visit) {
            return self.refused(&refusal);
        }
        let origin = cors::origin(request.headers());
        // Only the sender knows where a body without a length ends, and he may lie to a proxy before us about it.
        let ends = request.headers().contains_key(TRANSFER_ENCODING);
        let mut reply = match cors::is_preflight(&request) {
            true => cors::preflight(),
            false => self.admit(request, visit).await,
        };
        if let Some(origin) = origin {
            cors::open_to(origin, &mut reply);
        }
        if ends {
            let close = HeaderValue::from_static("close");
            reply.headers_mut().insert(CONNECTION, close);
        }
        reply
    }

    fn check<B>(&self, request: &Request<B>, visit: &Visit) -> Result<(), Refusal> {
        if visit.has_two_lengths {
            return Err(door::two_lengths());
        }
        self.door.check(request.uri(), request.headers())
    }

    /// Answers whoever came through the door, if he has a token where one is asked for.
    async fn admit<B>(&self, request: Request<B>, visit: Visit) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let tokens = self.keys.keys().tokens;
        let holder = tokens.map(|tokens| tokens.holder(request.headers()));
        let holder = match holder.transpose() {
            Ok(holder) => holder,
            Err(reason) => return self.unauthorized(reason),
        };
        let path = request.uri().path();
        if path == "/metrics" {
            return self.metrics(request.method()).await;
        }
        match self.place(path) {
            Some(place) => {
                let answered = place
                    .answer(request, visit, holder, self.max_body_size)
                    .await;
                let held = match answered {
                    Ok(reply) => self.outgoing.hold(reply).await,
                    Err(refusal) => Err(refusal),
                };
                held.unwrap_or_else(|refusal| self.refused(&refusal))
            }
            None => self.not_found(),
        }
    }

    fn place(&self, path: &str) -> Option<&Place> {
        match path.strip_prefix("/mcp")? {
            "" | "/" => self.places.first(),
            rest => {
                let name = rest.strip_prefix('/')?.trim_end_matches('/');
                self.places.iter().find(|place| place.name == name)
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Reply {
        let status = refusal.status.as_u16();
        tracing::warn!(status, reason = refusal.message, "request refused");
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(status).or_default() += 1;
        drop(refusals);
        let mut reply = text(refusal.status, refusal.message.clone());
        if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("5");
            reply.headers_mut().insert(RETRY_AFTER, soon);
        }
        reply
    }

    fn unauthorized(&self, reason: NoHolder) -> Reply {
        let (what, challenge) = match reason {
            NoHolder::Missing => ("a token is needed", r#"Bearer realm="mcp-filesystem""#),
            NoHolder::Wrong => (
                "the token is not known here",
                r#"Bearer realm="mcp-filesystem", error="invalid_token""#,
            ),
        };
        let mut reply = self.refused(&Refusal {
            status: StatusCode::UNAUTHORIZED,
            message: format!(
                "Unauthorized: {what}; send \"Authorization: Bearer TOKEN\" with a token of server.bearer_tokens_file"
            ),
        });
        let challenge = HeaderValue::from_static(challenge);
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        reply
    }

    fn not_found(&self) -> Reply {
        let names = self
            .places
            .iter()
            .map(|place| format!(", /mcp/{}", place.name));
        let message = format!(
            "Not Found: there are /mcp{}, /metrics and /health",
            names.collect::<String>()
        );
        text(StatusCode::NOT_FOUND, message)
    }

    async fn metrics(&self, method: &Method) -> Reply {
        if method != Method::GET && method != Method::HEAD {
            return method_not_allowed("GET, HEAD");
        }
        let mut sessions = 0;
        for own in self
            .places
            .iter()
            .filter_map(|place| place.sessions.as_ref())
        {
            sessions += own.count().await;
        }
        let (running, waiting) = self.gate.busy();
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let page = metrics::page(&metrics::Snapshot {
            tools: self
                .places
                .iter()
                .flat_map(|place| place.service.figures())
                .collect(),
            refusals: refusals.clone(),
            connections: self.connections.load(Ordering::Relaxed),
            sessions,
            running,
            waiting,
            cache: self.desk.as_ref().map(|desk| desk.cache_figures()),
        });
        drop(refusals);
        let mut reply = text(StatusCode::OK, page);
        reply.headers_mut().insert(CONTENT_TYPE, METRICS);
        reply
    }
}

impl Place {
    fn new(endpoint: Endpoint, options: &Options, cut: &CancellationToken) -> Place {
        let sessions = endpoint
            .sessions
            .then(|| Sessions::new(options.max_sessions));
        let manager = sessions.as_ref().map(Sessions::manager).unwrap_or_default();
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(endpoint.sessions)
            .with_json_response(true)
            // Streams cannot be resumed here, and older clients stumble over the empty event that would offer it.
            .with_sse_retry(None)
            .with_max_request_body_bytes(options.max_body_size)
            .with_cancellation_token(cut.child_token());
        let service = endpoint.service.clone();
        let factory = move || Ok(service.clone());
        Place {
            name: endpoint.name,
            service: endpoint.service,
            protocol: StreamableHttpService::new(factory, manager, config),
            sessions,
        }
    }

    /// Reads the body, lets rmcp answer, and says in our words what rmcp could not read.
    async fn answer<B>(
        &self,
        request: Request<B>,
        visit: Visit,
        holder: Option<Holder>,
        max_body_size: usize,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        check_revision(&parts.headers)?;
        let session = self.session(&parts.headers, holder.as_ref())?;
        let body = body::read(body, max_body_size).await?;
        self.check_room(session.as_deref(), &body).await?;
        if parts.method == Method::POST {
            normalise(&mut parts.headers);
        }
        if let Some(frame) = frame::overfull(&body) {
            return Ok(self.refuse(frame, &body, Some(parts)).await);
        }
        let client = Client {
            address: visit.address,
            token: holder
                .as_ref()
                .map(|holder| format!("token {}", holder.number).into()),
            // Only believed where there are sessions: elsewhere its name is anyone's to choose.
            session: session
                .as_ref()
                .map(|session| format!("session {session}").into()),
        };
        if let Some(reply) = self.answer_directly(&parts, &body, &client).await {
            return Ok(reply);
        }
        let is_json = parts.headers.get(CONTENT_TYPE) == Some(&JSON);
        parts.extensions.insert(client);
        let slot = Slot::default();
        if self.sessions.is_none() {
            // In a session rmcp keeps what it sent, to send it again.
            parts.extensions.insert(Delivery::Slot(slot.clone()));
        }
        // Only in a session is there a question that an answer could spoil.
        let again = session.is_some().then(|| parts.clone());
        let request = Request::from_parts(parts, Full::new(body.clone()));
        let reply = completed(self.protocol.handle(request).await, slot).await;
        if let (Some(sessions), None) = (&self.sessions, session) {
            let holder = holder.map(|holder| holder.digest);
            sessions.begun(reply.headers(), holder).await;
        }
        match reply.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => {
                Ok(self.refuse(frame::read(&body), &body, again).await)
            }
            _ => Ok(reply),
        }
    }

    /// The answer to a body that is not for rmcp. A question of ours that it spoils the answer of is told so.
    async fn refuse(&self, frame: Frame, body: &[u8], parts: Option<Parts>) -> Reply {
        match frame {
            Frame::Mistake(reply) => mistake(&reply),
            Frame::Spoiled(answer) => {
                if let (Some(mut parts), Ok(instead)) =
                    (parts, serde_json::to_vec(&answer.instead()))
                {
                    parts.headers.remove(CONTENT_LENGTH);
                    let request = Request::from_parts(parts, Full::new(Bytes::from(instead)));
                    self.protocol.handle(request).await;
                }
                mistake(&answer.reply())
            }
            // A notification that nobody knows, or what rmcp could read after all.
            Frame::Nothing if !body.trim_ascii().is_empty() => {
                text(StatusCode::ACCEPTED, String::new())
            }
            Frame::Nothing | Frame::Message(_) => {
                let message = "Bad Request: the body has to be one JSON-RPC message".to_owned();
                text(StatusCode::BAD_REQUEST, message)
            }
        }
    }

    /// The answer to a plain call; `None` where the request is rmcp's to answer.
    async fn answer_directly(&self, parts: &Parts, body: &[u8], client: &Client) -> Option<Reply> {
        let call = direct::read(parts, body, &self.service)?;
        // Older revisions would have to be in a session first; the newest knows none.
        if self.sessions.is_some() && call.revision() == Revision::Older {
            return None;
        }
        let body = direct::answer(call, &self.service, client).await?;
        let mut reply = Response::new(Full::new(body).boxed());
        reply.headers_mut().insert(CONTENT_TYPE, JSON);
        Some(reply)
    }

    /// The session a request belongs to. One that another began does not exist for its sender.
    fn session(
        &self,
        headers: &HeaderMap,
        holder: Option<&Holder>,
    ) -> Result<Option<Arc<str>>, Refusal> {
        let Some(sessions) = &self.sessions else {
            return Ok(None);
        };
        let session = sessions::named(headers);
        if let Some(session) = &session
            && !sessions.is_used_by_its_own(session, holder)
        {
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                message: "Not Found: Session not found".to_owned(),
            });
        }
        Ok(session)
    }

    async fn check_room(&self, session: Option<&str>, body: &[u8]) -> Result<(), Refusal> {
        match &self.sessions {
            Some(sessions) if session.is_none() && sessions.is_full_for(body).await => {
                Err(Refusal {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    message: "Service Unavailable: too many sessions are open; close some, wait for idle ones to \
                              expire, or raise server.max_sessions"
                        .to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// A reply with the result that waits for it; in a stream it comes later.
async fn completed(reply: Reply, slot: Slot) -> Reply {
    let (parts, body) = reply.into_parts();
    if parts.headers.get(CONTENT_TYPE) == Some(&EVENTS) {
        let fill = move |bytes: Bytes| filled(bytes, &slot);
        let body = body.map_frame(move |frame| frame.map_data(&fill)).boxed();
        return Response::from_parts(parts, body);
    }
    let Ok(body) = body.collect().await;
    let body = Full::new(filled(body.to_bytes(), &slot));
    Response::from_parts(parts, body.boxed())
}

fn filled(bytes: Bytes, slot: &Slot) -> Bytes {
    match slot.fill(&bytes) {
        Some(filled) => filled.into(),
        None => bytes,
    }
}

/// Two revisions could be read as either.
fn check_revision(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get_all(direct::REVISION).iter().count() {
        0 | 1 => Ok(()),
        _ => Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            message: "Bad Request: there is more than one MCP-Protocol-Version header".to_owned(),
        }),
    }
}

/// Spells a content type the way rmcp expects it, and names what `*/*` accepts.
fn normalise(headers: &mut HeaderMap) {
    let essence = |name: HeaderName, headers: &HeaderMap| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_ascii_lowercase)
    };
    let kind = essence(CONTENT_TYPE, headers);
    let kind = kind.as_deref().and_then(|kind| kind.split(';').next());
    if kind.map(str::trim) == Some("application/json") {
        headers.insert(CONTENT_TYPE, JSON);
    }
    // A list may be spread over several headers.
    let accepts: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok().map(str::to_ascii_lowercase))
        .collect();
    let named = |kind: &str| {
        let mut all = accepts.iter().flat_map(|list| list.split([',', ';']));
        all.any(|one| one.trim() == kind)
    };
    if named("*/*") || (named("application/json") && named("text/event-stream")) {
        headers.insert(ACCEPT, BOTH);
    }
}

/// A JSON-RPC error about the whole request.
fn mistake(message: &ServerJsonRpcMessage) -> Reply {
    let message = serde_json::to_string(message).unwrap_or_default();
    let mut reply = text(StatusCode::BAD_REQUEST, message);
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}

fn health(method: &Method) -> Reply {
    if method == Method::GET || method == Method::HEAD {
        return text(StatusCode::OK, "ok".to_owned());
    }
    method_not_allowed("GET, HEAD")
}

fn method_not_allowed(allowed: &'static str) -> Reply {
    let mut reply = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("Method Not Allowed: use {allowed}"),
    );
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn text(status: StatusCode, message: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(message)).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, PLAIN);
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
        let service =
            Service::new(vec![workspace::toolset()], Arc::clone(&gate)).expect("a service");
        let door = Door::new("127.0.0.1", &[], &[]);
        let settings = crate::settings::Partial::default().complete();
        let options = Options {
            door,
            keys: Arc::new(KeyRing::load(&settings).expect("no keys")),
            gate,
            desk: None,
            max_body_size: 4096,
            max_connections: 1,
            max_sessions: 1,
        };
        let endpoint = Endpoint {
            name: "workspace".to_owned(),
            service,
            sessions: false,
        };
        Site::new(options, vec![endpoint], &CancellationToken::new())
    }

    fn visit() -> Visit {
        Visit {
            address: "127.0.0.1:1".into(),
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

    async fn answer(request: Request<Full<Bytes>>) -> (u16, String, Value) {
        let reply = site().handle(request, visit()).await;
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
            visit(),
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
    async fn two_revisions_are_refused() {
        let headers = [
            ("mcp-protocol-version", MODERN),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let body = call(&json!({}), &json!({}));
        assert_eq!(answer(request("/mcp", &headers, &body)).await.0, 400);
    }

    #[tokio::test]
    async fn a_plain_call_is_answered_as_rmcp_would() {
        let site = site();
        let calls = [
            ("list_roots", json!({})),
            (
                "stat_file",
                json!({ "root": "temp", "path": "no/such/file" }),
            ),
            ("stat_file", json!({ "root": "nonexistent", "path": "é" })),
            ("stat_file", json!({ "path": 1 })),
            ("stat_files", json!({})),
        ];
        for (name, arguments) in calls {
            for id in [json!(7), json!("a \"b\"")] {
                let body = |meta: Option<Value>| {
                    let mut params = json!({ "name": name, "arguments": arguments });
                    if let Some(meta) = meta {
                        params["_meta"] = meta;
                    }
                    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
                };
                // Other metadata is rmcp's to read, also where it is empty.
                let older = [body(None), body(Some(json!({})))];
                is_the_same(&site, &[], &older).await;
                let mut headers = vec![
                    ("mcp-protocol-version", MODERN),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", name),
                ];
                headers.extend(
                    arguments["root"]
                        .as_str()
                        .map(|root| ("mcp-param-root", root)),
                );
                let mut other = modern_meta();
                other["com.example/other"] = json!(1);
                let newest = [body(Some(modern_meta())), body(Some(other))];
                is_the_same(&site, &headers, &newest).await;
            }
        }
    }

    /// Fails where a plain call and one that is left to rmcp do not get the same reply.
    async fn is_the_same(site: &Site, headers: &[(&str, &str)], bodies: &[Value; 2]) {
        let mut replies = Vec::new();
        for body in bodies {
            let request = request("/mcp", headers, body);
            let mut reply = site.handle(request, visit()).await;
            let headers = std::mem::take(reply.headers_mut());
            let status = reply.status();
            let body = reply.into_body().collect().await.expect("a body");
            replies.push((status, headers, body.to_bytes()));
        }
        assert_eq!(replies[0], replies[1], "{bodies:?}");
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
            let reply = site()
                .handle(request.body(Untouched).expect("a request"), visit())
                .await;
            assert_eq!(reply.status(), 403);
        }
    }
}
