//! One tool set's endpoint: turns an HTTP request into a message, and its reply into an HTTP reply.
//!
//! [`mcp`] decides what a message means; this file handles verbs, content types and session ids.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::{Body, Bytes};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};
use mcp::headers::{self, Judged};
use mcp::{
    AccessChange, Answer, Connection, HttpClient, Incoming, LiveServer, Message, Nowhere, Origin,
    Owner, Refused, Server, Session, SessionLimits, Sessions,
};
use ops::Reserved;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answers::{self, HttpReply};
use super::body::{self, BodyLimits, BodyRoom, HeldBody};
use super::credentials::RevokedTokens;
use super::refusal::Refusal;
use super::sse::{EventBody, Notified};
use super::tokens::TokenHolder;
use crate::in_force::InForce;
use toolset::{ReplyMessage, SMALL_MESSAGE, Service, in_heavy_turn};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// How many notifications wait for a client to read them; further ones are dropped.
const WAITING_NOTIFICATIONS: usize = 16;

/// One tool set's endpoint, `/mcp/<name>`.
pub(crate) struct Endpoint {
    name: String,
    /// For callers that are no named client.
    server: LiveServer,
    /// For each named client that may use the set.
    clients: InForce<HashMap<Arc<str>, LiveServer>>,
    /// The sessions of clients up to 2025-11-25, if they get any.
    sessions: Option<Arc<Sessions>>,
}

/// The sender of an admitted request.
pub(super) struct Admitted {
    /// The sender, without its token.
    pub(super) client: HttpClient,
    /// The holder of the token it carries.
    pub(super) holder: Option<Holder>,
    /// Its part of the endpoint, now and after reloads.
    pub(super) live: LiveServer,
    /// Its part of the endpoint now.
    pub(super) server: Server,
    /// Is cancelled once its connection has to make room for another.
    pub(super) leaving: CancellationToken,
}

/// A tool set under the operator's settings.
pub(crate) struct EndpointParts {
    /// For callers that are no named client.
    pub(crate) own: ServedPart,
    /// For each named client that may use the set.
    pub(crate) clients: Vec<(Arc<str>, ServedPart)>,
}

/// A caller's part of an endpoint.
pub(crate) struct ServedPart {
    pub(crate) service: Service,
    /// Whether it differs from before.
    pub(crate) access: AccessChange,
}

/// The holder of a request's token.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// Its name in log, audit and limits.
    pub(super) name: Arc<str>,
    /// The named client that it is, if it is one.
    pub(super) client: Option<Arc<str>>,
    /// The owner of its sessions.
    pub(super) owner: [u8; 32],
    /// Identifies the subject of an access token.
    pub(super) subject: Option<Arc<str>>,
    /// When its token expires, if ever.
    pub(super) expires: Option<Instant>,
}

impl From<TokenHolder> for Holder {
    fn from(holder: TokenHolder) -> Holder {
        Holder {
            client: holder.is_named.then(|| Arc::clone(&holder.client)),
            name: holder.client,
            owner: holder.digest,
            subject: None,
            expires: None,
        }
    }
}

impl Admitted {
    fn owner(&self) -> Owner {
        self.holder.as_ref().map(|holder| holder.owner)
    }

    /// The time until which it may listen.
    fn expires(&self) -> Option<Instant> {
        self.holder.as_ref().and_then(|holder| holder.expires)
    }

    fn client(&self) -> HttpClient {
        let mut client = self.client.clone();
        if let Some(holder) = &self.holder {
            client.token = Some(Arc::clone(&holder.name));
            client.subject.clone_from(&holder.subject);
        }
        client
    }
}

impl Endpoint {
    /// Builds an endpoint with the parts of named clients, and with at most `max_sessions` sessions if it has any.
    pub(crate) fn new(
        name: String,
        server: Server,
        clients: Vec<(Arc<str>, Service)>,
        max_sessions: Option<usize>,
    ) -> Endpoint {
        let clients = clients.into_iter().map(|(name, service)| {
            let own = server.with_tools(service);
            (name, LiveServer::new(own))
        });
        let clients: HashMap<_, _> = clients.collect();
        let server = LiveServer::new(server);
        let sessions = |most| Sessions::new(server.clone(), SessionLimits::of(most));
        Endpoint {
            name,
            sessions: max_sessions.map(sessions),
            server,
            clients: InForce::new(clients),
        }
    }

    /// Puts new settings in force. Running requests finish under the old ones; clients whose list of tools changed are
    /// told.
    pub(crate) fn replace(&self, parts: EndpointParts) {
        let base = self.server.now();
        let before = self.clients.now();
        let mut clients = HashMap::new();
        for (name, part) in parts.clients {
            let server = base.with_tools(part.service);
            let live = match before.get(&name) {
                Some(live) => {
                    self.put_in_force(live, server, part.access);
                    live.clone()
                }
                None => LiveServer::new(server),
            };
            clients.insert(name, live);
        }
        let gone = before
            .iter()
            .filter(|(name, _)| !clients.contains_key(*name));
        let gone: Vec<LiveServer> = gone.map(|(_, live)| live.clone()).collect();
        self.clients.replace(clients);
        gone.iter().for_each(LiveServer::cut);
        let own = base.with_tools(parts.own.service);
        self.put_in_force(&self.server, own, parts.own.access);
    }

    fn put_in_force(&self, live: &LiveServer, server: Server, access: AccessChange) {
        if let (true, Some(sessions)) = (live.replace(server, access), &self.sessions) {
            sessions.tell_tools_changed(live);
        }
    }

    /// Ends the connections of callers that lost access: clients that are gone, and tokens that were revoked.
    pub(crate) fn end_revoked(&self, revoked: &RevokedTokens) {
        let clients = self.clients.now();
        let cut = clients.iter();
        let cut = cut.filter(|(name, _)| revoked.has_of(Some(name)));
        cut.for_each(|(_, live)| live.cut());
        if revoked.without_token || revoked.has_of(None) {
            self.server.cut();
        }
        if let Some(sessions) = &self.sessions {
            let part_of = |session: &Session| {
                let mut named = clients.iter();
                let named = named.find(|(_, live)| session.has(live));
                let named = named.map(|(name, _)| Some(&**name));
                named.or_else(|| session.has(&self.server).then_some(None))
            };
            sessions.end_unless(|session| {
                let client = part_of(session);
                client.is_some_and(|client| !revoked.owned(session.owner(), client))
            });
        }
    }

    /// The sender's part of the endpoint; `None` if the endpoint does not exist for it.
    pub(super) fn server_for(&self, holder: Option<&Holder>) -> Option<LiveServer> {
        match holder.and_then(|holder| holder.client.as_ref()) {
            // Security: a client that the settings name has its own part or nothing.
            Some(client) => self.clients.now().get(client).cloned(),
            None => Some(self.server.clone()),
        }
    }

    /// The set's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The server behind the endpoint.
    pub(crate) fn server(&self) -> Server {
        self.server.now()
    }

    /// Its sessions, if it has any.
    pub(super) fn sessions(&self) -> Option<&Arc<Sessions>> {
        self.sessions.as_ref()
    }

    /// Ends all sessions, because the process ends.
    pub(super) fn end_sessions(&self) {
        if let Some(sessions) = &self.sessions {
            sessions.end_all();
        }
    }

    /// Answers a request.
    pub(super) async fn answer<B>(
        &self,
        request: Request<B>,
        from: Admitted,
        limits: BodyLimits,
    ) -> Result<HttpReply, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        match (&parts.method, &self.sessions) {
            (&Method::POST, _) => {
                let room = BodyRoom {
                    budget: from.server.service().byte_budget(),
                    client: || from.client().allowance(),
                };
                let body = body::read(body, limits, room).await?;
                check_types(&parts.headers)?;
                self.post(&parts, body, &from).await
            }
            (&Method::GET, Some(sessions)) => listen(sessions, &parts.headers, &from),
            (&Method::DELETE, Some(sessions)) => end_session(sessions, &parts.headers, &from),
            (_, Some(_)) => Err(Refusal::method("GET, POST, DELETE")),
            (_, None) => Err(Refusal::method("POST")),
        }
    }

    async fn post(
        &self,
        parts: &Parts,
        (body, held): HeldBody,
        from: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        // Frees the bytes, because a large body would otherwise stay in memory for the whole call. Its room is kept,
        // because the parsed message is as large.
        let message = match message_of(body, from).await? {
            Incoming::Message(message) => message,
            Incoming::Refused(refused) => return Err(self.refused(refused, parts, from)),
            // An unreadable notification is accepted and ignored.
            Incoming::Nothing => return Ok(answers::empty(StatusCode::ACCEPTED)),
        };
        let judged = headers::judge(&parts.headers, &message, from.server.service())?;
        match &self.sessions {
            Some(sessions) if judged.is_legacy => {
                self.in_session(sessions, (message, held), &parts.headers, from)
                    .await
            }
            _ => {
                let reply = self.alone(message, &judged, from).await;
                drop(held);
                reply
            }
        }
    }

    /// Refuses a body that is not a message. If it was meant as the answer to a question of ours, the question fails.
    fn refused(&self, refused: Refused, parts: &Parts, from: &Admitted) -> Refusal {
        let sessions = self.sessions.as_ref();
        let session = sessions.and_then(|sessions| named(sessions, &parts.headers, from).ok());
        let reason = refused.reason().to_owned();
        let reply = match &session {
            Some(session) => session.refusal(&refused),
            None => refused.reply(),
        };
        if let (Some(session), Some(answer)) = (session, refused.into_answer()) {
            session.answered(answer);
        }
        Refusal::message(reason, reply)
    }

    /// Answers a message outside of any session.
    async fn alone(
        &self,
        message: Message,
        judged: &Judged,
        from: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let request = match message {
            Message::Request(request) => request,
            Message::Notification(_) => return Ok(answers::empty(StatusCode::ACCEPTED)),
            Message::Answer(_) => {
                let reason = "stateless server does not accept JSON-RPC responses";
                return Err(Refusal::message(reason.to_owned(), Answer::unasked(reason)));
            }
        };
        let listens = request.listens();
        let end = StreamEnd {
            time: from.expires().filter(|_| listens),
            leaving: listens.then(|| from.leaving.clone()),
        };
        let connection = Connection::for_one_request(from.live.clone(), judged.revision.clone());
        let origin = Origin::Http(from.client());
        let (serving, notifications) = if request.wants_notifications() {
            let (outbox, notifications) = channel(WAITING_NOTIFICATIONS);
            let serving = connection.serve(request, origin, Arc::new(outbox));
            (serving, Some(notifications))
        } else {
            (connection.serve(request, origin, Arc::new(Nowhere)), None)
        };
        match serving {
            Ok(serving) => Ok(replied(serving, (notifications, end), judged).await),
            Err(refused) => Err(refused.into()),
        }
    }

    async fn in_session(
        &self,
        sessions: &Arc<Sessions>,
        (message, held): (Message, Option<Reserved>),
        headers: &HeaderMap,
        from: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let message = match message {
            Message::Request(greeting) if greeting.greets() && !headers.contains_key(SESSION) => {
                let begun = sessions
                    .begin_with(from.live.clone(), greeting, from.owner(), from.client())
                    .await;
                let (session, reply) = begun.map_err(|_| no_room())?;
                return Ok(begun_session(session, reply.message));
            }
            message => message,
        };
        let session = named(sessions, headers, from)?;
        match message {
            Message::Request(request) => match session.request(request, from.client(), held) {
                Ok(mut stream) => Ok(match stream.take_ended() {
                    Some(events) => answers::ended_events(events),
                    None => answers::events(EventBody::new(stream)),
                }),
                Err(refused) => Err(refused.into()),
            },
            Message::Notification(notification) => {
                session.notice(&notification);
                Ok(answers::empty(StatusCode::ACCEPTED))
            }
            Message::Answer(answer) => {
                session.answered(answer);
                Ok(answers::empty(StatusCode::ACCEPTED))
            }
        }
    }
}

/// Reads a body, a large one in its client's turn.
async fn message_of(body: Bytes, from: &Admitted) -> Result<Incoming, Refusal> {
    let read = |body: &[u8]| match mcp::message::read(body) {
        Incoming::Nothing if body.trim_ascii().is_empty() => None,
        incoming => Some(incoming),
    };
    let incoming = if body.len() <= SMALL_MESSAGE {
        read(&body)
    } else {
        let client = from.client().allowance();
        let read = in_heavy_turn(&client, move || read(&body)).await;
        read.ok_or_else(|| {
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal Server Error: the body could not be read".to_owned(),
            )
        })?
    };
    incoming.ok_or_else(|| Refusal::bad_request("the body has to be one JSON-RPC message"))
}

/// What ends a stream before its request does.
struct StreamEnd {
    time: Option<Instant>,
    leaving: Option<CancellationToken>,
}

/// Waits for the reply: JSON if no notification comes first, else a stream.
async fn replied(
    mut serving: mcp::Serving,
    (notifications, end): (Option<Receiver<Vec<u8>>>, StreamEnd),
    judged: &Judged,
) -> HttpReply {
    let Some(mut notifications) = notifications else {
        return whole(serving.await, judged);
    };
    tokio::select! {
        biased;
        reply = &mut serving => whole(reply, judged),
        Some(first) = notifications.recv() => {
            let events = EventBody::new(Notified::new(first, notifications, serving));
            answers::events(events.until(end.time).unless(end.leaving.unwrap_or_default()))
        }
    }
}

fn whole(reply: Option<mcp::Response>, judged: &Judged) -> HttpReply {
    // Outside of a session, only a hang-up cancels a request.
    let Some(reply) = reply else {
        return answers::empty(StatusCode::ACCEPTED);
    };
    let status = StatusCode::from_u16(judged.status(&reply)).unwrap_or_default();
    answers::message(status, reply.message, reply.held)
}

fn begun_session(session: Option<Arc<Session>>, message: ReplyMessage) -> HttpReply {
    let mut reply = answers::ended_event(mcp::as_event(message));
    // A session id has only characters that a header may have.
    if let Some(name) = session.and_then(|session| HeaderValue::from_str(session.id()).ok()) {
        reply.headers_mut().insert(SESSION, name);
    }
    reply
}

/// Opens the stream of messages that belong to no request, or resumes a broken one.
fn listen(sessions: &Sessions, headers: &HeaderMap, from: &Admitted) -> Result<HttpReply, Refusal> {
    if !accepts(headers, "text/event-stream") {
        return Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "Not Acceptable: Client must accept text/event-stream".to_owned(),
        ));
    }
    if !headers::judge_bodiless(headers)?.is_legacy {
        return Err(Refusal::method("POST"));
    }
    let session = named(sessions, headers, from)?;
    let last_event = only_one(headers, &LAST_EVENT, "Last-Event-ID")?;
    let stream = match last_event {
        Some(last_event) => session.resume(last_event),
        None => session.listen(),
    };
    let events = EventBody::new(stream).until(from.expires());
    Ok(answers::events(events.unless(from.leaving.clone())))
}

fn end_session(
    sessions: &Sessions,
    headers: &HeaderMap,
    from: &Admitted,
) -> Result<HttpReply, Refusal> {
    if !headers::judge_bodiless(headers)?.is_legacy {
        return Err(Refusal::method("POST"));
    }
    sessions.end(&*named(sessions, headers, from)?);
    Ok(answers::empty(StatusCode::NO_CONTENT))
}

/// Finds the session that a request names. Security: a session of another owner counts as unknown.
fn named(
    sessions: &Sessions,
    headers: &HeaderMap,
    from: &Admitted,
) -> Result<Arc<Session>, Refusal> {
    let name = only_one(headers, &SESSION, "Mcp-Session-Id")?;
    let name = name.ok_or_else(|| Refusal::bad_request("Session ID is required"))?;
    // Security: a caller that is another client now has to start a new session.
    let session = sessions.find(name, from.owner());
    let session = session.filter(|session| session.has(&from.live));
    session.ok_or_else(|| {
        Refusal::new(
            StatusCode::NOT_FOUND,
            "Not Found: Session not found".to_owned(),
        )
    })
}

/// The only value of a header, if it is text. If there were two, a proxy could use either.
fn only_one<'headers>(
    headers: &'headers HeaderMap,
    header: &HeaderName,
    shown: &str,
) -> Result<Option<&'headers str>, Refusal> {
    let mut values = headers.get_all(header).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        let fault = format!("there is more than one {shown} header; send one");
        return Err(Refusal::bad_request(&fault));
    }
    Ok(first.and_then(|value| value.to_str().ok()))
}

/// Checks that the client sends JSON and accepts both forms of a reply, because the server chooses the form.
fn check_types(headers: &HeaderMap) -> Result<(), Refusal> {
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        return Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "Not Acceptable: Client must accept both application/json and text/event-stream"
                .to_owned(),
        ));
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    if kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Unsupported Media Type: Content-Type must be application/json".to_owned(),
    ))
}

/// Tells whether the client accepts a content type. The list may be spread over several headers.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let lists = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|list| list.to_str().ok());
    // As bytes: a list with other characters than ASCII was left out above.
    let kinds = lists.flat_map(|list| list.as_bytes().split(|byte| matches!(byte, b',' | b';')));
    let mut kinds = kinds.map(<[u8]>::trim_ascii);
    kinds.any(|own| own.eq_ignore_ascii_case(kind.as_bytes()) || own == b"*/*")
}

fn no_room() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable: too many sessions are open; close some, wait for idle ones to expire, or raise \
                  server.max_sessions"
            .to_owned())
}
