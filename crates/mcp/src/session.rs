//! HTTP sessions of clients up to 2025-11-25: the state that outlives a request.
//!
//! A session belongs to the client that began it. Each request is answered by a stream of its own. If the stream
//! breaks, the request continues, and the client can come back for the events it missed. They are kept within a limit
//! of bytes and time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ops::Reserved;
use tokio::runtime::Handle;

use crate::connection::{Connection, Nowhere, Response};
use crate::live_server::LiveServer;
use crate::message::{Answer, Notification, Refused, Request};
use crate::origin::{HttpClient, Origin};
use crate::sse::{EventId, EventStream, KeptBytes, Stream, UnhurriedStream};

/// How long a new session may stay unused while others wait for its place.
const USED_WITHIN: Duration = Duration::from_secs(20);
/// How long a session may be idle.
const IDLE: Duration = Duration::from_secs(300);
/// How often idle sessions are ended.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// How long the events of a request that has ended are kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The most streams that a session has open beside those of its requests.
const MOST_LISTENING: usize = 32;

/// Who a session belongs to: the digest of a token, if there are tokens.
pub type Owner = Option<[u8; 32]>;

/// How many sessions there may be, and how long they last.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// The most at once.
    pub most: usize,
    /// How long one may be idle.
    pub idle: Duration,
}

impl SessionLimits {
    /// The usual idle time for this many sessions.
    #[must_use]
    pub fn of(most: usize) -> SessionLimits {
        SessionLimits { most, idle: IDLE }
    }
}

/// There are too many sessions.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRoom;

/// The sessions of one endpoint.
#[derive(Debug)]
pub struct Sessions {
    server: LiveServer,
    limits: SessionLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    /// How many sessions each client has.
    of_client: HashMap<Arc<str>, usize>,
    is_swept: bool,
}

impl Table {
    /// Whether there may be one more, and one more of this client: a quarter of all places is kept for others.
    fn has_room(&self, client: &str, limits: SessionLimits) -> bool {
        let own = self.of_client.get(client).copied().unwrap_or_default();
        self.sessions.len() < limits.most && own < limits.most - limits.most / 4
    }

    fn insert(&mut self, session: &Arc<Session>) {
        *self
            .of_client
            .entry(Arc::clone(&session.client))
            .or_default() += 1;
        self.sessions
            .insert(Arc::clone(&session.id), Arc::clone(session));
    }

    fn remove(&mut self, id: &str) {
        let Some(session) = self.sessions.remove(id) else {
            return;
        };
        if let Some(count) = self.of_client.get_mut(&session.client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&session.client);
            }
        }
    }
}

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub fn new(server: impl Into<LiveServer>, limits: SessionLimits) -> Arc<Sessions> {
        Arc::new(Sessions {
            server: server.into(),
            limits,
            table: Mutex::default(),
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table().sessions.len()
    }

    /// Begins a session by answering `initialize`. An error begins none.
    pub async fn begin(
        self: &Arc<Sessions>,
        greeting: Request,
        owner: Owner,
        client: HttpClient,
    ) -> Result<(Option<Arc<Session>>, Response), NoRoom> {
        self.begin_with(self.server.clone(), greeting, owner, client)
            .await
    }

    /// Begins a session like [`Sessions::begin`], with the client's part of the endpoint.
    pub async fn begin_with(
        self: &Arc<Sessions>,
        server: LiveServer,
        greeting: Request,
        owner: Owner,
        client: HttpClient,
    ) -> Result<(Option<Arc<Session>>, Response), NoRoom> {
        self.make_room(&client.allowance())?;
        let id = random_id().ok_or(NoRoom)?;
        let session = Session::new(id.into(), server, owner, &client);
        let origin = session.origin(client);
        // Nothing is sent before the answer to `initialize`.
        let serving = session
            .connection
            .serve(greeting, origin, Arc::new(Nowhere));
        let reply = match serving {
            Ok(serving) => serving.await,
            Err(_) => None,
        };
        let Some(reply) = reply else {
            return Err(NoRoom);
        };
        if reply.error.is_some() {
            return Ok((None, reply));
        }
        self.insert(&session)?;
        Ok((Some(session), reply))
    }

    /// Finds a session of this owner. Sessions of others do not exist for it.
    #[must_use]
    pub fn find(&self, id: &str, owner: Owner) -> Option<Arc<Session>> {
        let session = self.table().sessions.get(id).cloned()?;
        (session.owner == owner).then(|| {
            session.touch();
            session
        })
    }

    /// Ends a session and everything that runs in it.
    pub fn end(&self, session: &Session) {
        self.table().remove(&session.id);
        session.close();
    }

    /// Ends sessions whose owners lost their right to them.
    pub fn end_unless(&self, keep: impl Fn(&Session) -> bool) {
        self.end_where(|session, _| !keep(session));
    }

    /// Tells the clients with this part of the endpoint that the list of tools changed.
    pub fn tell_tools_changed(&self, server: &LiveServer) {
        let table = self.table();
        let sessions = table.sessions.values();
        let own = sessions.filter(|session| session.has(server));
        own.for_each(|session| session.connection.tell_tools_changed());
    }

    /// Ends all of them: the process ends.
    pub fn end_all(&self) {
        let all = std::mem::take(&mut *self.table());
        all.sessions.values().for_each(|session| session.close());
    }

    fn make_room(&self, client: &str) -> Result<(), NoRoom> {
        if self.table().has_room(client, self.limits) {
            return Ok(());
        }
        self.end_where(|session, now| session.is_unused(now));
        if self.table().has_room(client, self.limits) {
            Ok(())
        } else {
            Err(NoRoom)
        }
    }

    fn insert(self: &Arc<Sessions>, session: &Arc<Session>) -> Result<(), NoRoom> {
        let mut table = self.table();
        if !table.has_room(&session.client, self.limits) {
            return Err(NoRoom);
        }
        table.insert(session);
        if !std::mem::replace(&mut table.is_swept, true) {
            Sessions::sweep(Arc::downgrade(self));
        }
        Ok(())
    }

    /// Ends idle sessions until there are none.
    fn sweep(sessions: Weak<Sessions>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                let Some(sessions) = sessions.upgrade() else {
                    return;
                };
                if sessions.sweep_once() {
                    return;
                }
            }
        });
    }

    /// Ends idle sessions; returns whether none is left.
    fn sweep_once(&self) -> bool {
        let idle = self.limits.idle;
        self.end_where(|session, now| session.is_idle(now, idle));
        let mut table = self.table();
        table.sessions.values().for_each(|session| {
            session.forget_old();
            // A client over its share loses what its idle sessions keep for streams that may be resumed.
            session.keep_within_budget();
        });
        table.is_swept = !table.sessions.is_empty();
        !table.is_swept
    }

    fn end_where(&self, is_over: impl Fn(&Session, Instant) -> bool) {
        let now = Instant::now();
        let mut table = self.table();
        let over = table.sessions.values();
        let over: Vec<_> = over
            .filter(|session| is_over(session, now))
            .cloned()
            .collect();
        over.iter().for_each(|session| table.remove(&session.id));
        drop(table);
        over.iter().for_each(|session| session.close());
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    id: Arc<str>,
    owner: Owner,
    /// The account whose share of sessions and bytes it uses.
    client: Arc<str>,
    connection: Arc<Connection>,
    state: Mutex<SessionState>,
}

#[derive(Debug)]
struct SessionState {
    used_at: Instant,
    /// Whether it got any request since it was begun.
    is_used: bool,
    next: u64,
    requests: BTreeMap<u64, Stream>,
    /// The bytes that the streams of requests keep in total.
    kept: KeptBytes,
    /// The stream for messages that belong to no request.
    common: Stream,
    /// Further streams that a client listens to. They stay open and silent. If each took over from the one before, a
    /// client that wants two would reopen them for ever.
    silent: VecDeque<Stream>,
    is_closed: bool,
}

impl Session {
    fn new(id: Arc<str>, server: LiveServer, owner: Owner, client: &HttpClient) -> Arc<Session> {
        let client = client.allowance();
        let budget = Arc::clone(server.now().service().byte_budget());
        let kept = || KeptBytes::within(&budget, &client);
        let (of_requests, of_none) = (kept(), kept());
        let common = Stream::new(None, &of_none);
        let outbox = Arc::new(UnhurriedStream(common.clone()));
        Arc::new(Session {
            id,
            owner,
            client,
            connection: Connection::lasting(server, outbox),
            state: Mutex::new(SessionState {
                used_at: Instant::now(),
                is_used: false,
                next: 0,
                requests: BTreeMap::new(),
                kept: of_requests,
                common,
                silent: VecDeque::new(),
                is_closed: false,
            }),
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Who it belongs to.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether this is its part of the endpoint.
    #[must_use]
    pub fn has(&self, server: &LiveServer) -> bool {
        self.connection.server().is_same(server)
    }

    /// Serves a request. Its stream ends with the reply, or without one if the client cancels it. The room of its body
    /// is kept while it is served.
    pub fn request(
        self: &Arc<Session>,
        request: Request,
        client: HttpClient,
        body: Option<Reserved>,
    ) -> Result<EventStream, Refused> {
        let stream = self.open_stream();
        let outbox = Arc::new(stream.clone());
        let serving = self.connection.serve(request, self.origin(client), outbox);
        let serving = serving.inspect_err(|_| stream.end())?;
        stream.invite_back();
        let reader = stream.read_after(None);
        let session = Arc::clone(self);
        let work = async move {
            let reply = serving.await;
            drop(body);
            if let Some(reply) = reply {
                stream.push(reply.message, reply.held);
            }
            stream.end();
            session.touch();
            session.keep_within_budget();
        };
        crate::connection::start(work);
        Ok(reader)
    }

    /// Handles a notification.
    pub fn notice(&self, notification: &Notification) {
        self.connection.notice(notification);
    }

    /// What the client is told of a message that is refused.
    #[must_use]
    pub fn refusal(&self, refused: &Refused) -> Vec<u8> {
        self.connection.refusal(refused)
    }

    /// Passes an answer on to the call that asked the question.
    pub fn answered(&self, answer: Answer) {
        self.connection.answered(answer);
    }

    /// Opens a stream for messages that belong to no request.
    #[must_use]
    pub fn listen(&self) -> EventStream {
        let mut state = self.state();
        if !state.common.has_reader() {
            return state.common.read_after(None);
        }
        let silent = Stream::new(None, &KeptBytes::default());
        if state.is_closed {
            silent.end();
        }
        state.silent.retain(Stream::has_reader);
        if state.silent.len() >= MOST_LISTENING
            && let Some(oldest) = state.silent.pop_front()
        {
            oldest.end();
        }
        let reader = silent.read_after(None);
        state.silent.push_back(silent);
        reader
    }

    /// Resumes after an event. The stream is empty if the event is unknown: an error would make clients ask again and
    /// again.
    #[must_use]
    pub fn resume(&self, last_event: &str) -> EventStream {
        let Some(last) = EventId::parse(last_event) else {
            return EventStream::empty();
        };
        let Some(request) = last.stream else {
            let common = self.state().common.clone();
            return if common.has_reader() {
                self.listen()
            } else {
                common.read_after(Some(last.number))
            };
        };
        let stream = self.state().requests.get(&request).cloned();
        stream.map_or_else(EventStream::empty, |stream| {
            stream.read_after(Some(last.number))
        })
    }

    /// Where its requests come from.
    fn origin(&self, mut client: HttpClient) -> Origin {
        client.session = Some(format!("session {}", self.id).into());
        Origin::Http(client)
    }

    fn open_stream(&self) -> Stream {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let stream = Stream::new(Some(number), &state.kept);
        if state.is_closed {
            stream.end();
        }
        state.requests.insert(number, stream.clone());
        stream
    }

    /// Drops the streams that ended long ago and that nobody reads.
    fn forget_old(&self) {
        let now = Instant::now();
        let is_old = |stream: &Stream| {
            let ended = stream.ended_at();
            ended.is_some_and(|ended| now.saturating_duration_since(ended) > KEPT_FOR)
        };
        self.state()
            .requests
            .retain(|_, stream| stream.has_reader() || !is_old(stream));
    }

    /// Drops events while they take too much room, the oldest first. This runs after every request, so it looks at no more
    /// streams than it has to.
    fn keep_within_budget(&self) {
        let mut state = self.state();
        let mut empty = Vec::new();
        for (number, stream) in &state.requests {
            if !state.kept.is_over() {
                break;
            }
            stream.forget_read();
            if stream.is_spent() {
                empty.push(*number);
            }
        }
        for number in empty {
            state.requests.remove(&number);
        }
    }

    fn touch(&self) {
        let mut state = self.state();
        state.used_at = Instant::now();
        state.is_used = true;
    }

    fn is_unused(&self, now: Instant) -> bool {
        let state = self.state();
        !state.is_used && now.saturating_duration_since(state.used_at) > USED_WITHIN
    }

    fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let state = self.state();
        let is_heard = state.common.has_reader() || state.silent.iter().any(Stream::has_reader);
        !is_heard
            && !self.connection.is_busy()
            && now.saturating_duration_since(state.used_at) > idle
    }

    fn close(&self) {
        self.connection.hang_up();
        let mut state = self.state();
        state.is_closed = true;
        state.common.end();
        state.silent.iter().for_each(Stream::end);
        state.requests.values().for_each(Stream::end);
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that nobody can guess, in the form of a random UUID; `None` if the system has no random bytes.
fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut number = u128::from_be_bytes(bytes);
    number = number & !(0xf << 76) | 4 << 76;
    number = number & !(0x3 << 62) | 2 << 62;
    let digits = format!("{number:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part));
    let parts: Option<Vec<&str>> = parts.into_iter().collect();
    Some(parts?.join("-"))
}
