//! A client: its requests with their ids, its cancellations, its progress, and our questions to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use rmcp::model::{
    ErrorCode, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolset::resources::Subscription;
use toolset::{AskBy, Client, HostDirectories, PendingQuestion, ReplyMessage, Service};

use crate::client_roots::ClientRoots;
use crate::finish_on_drop::FinishOnDrop;
use crate::live_server::LiveServer;
use crate::message::{Answer, Notification, Refused, Request, id_in_use};
use crate::methods;
use crate::origin::Origin;
use crate::questions::Questions;
use crate::revision::{Greeting, Lifecycle};
use crate::server::Server;
use crate::subscriptions::{self, WatchedResources};

/// Where our notifications and questions go; replies are returned instead.
pub trait Outbox: fmt::Debug + Send + Sync {
    /// Sends a message if that needs no waiting; returns whether it did.
    fn try_send(&self, message: Vec<u8>) -> bool;

    /// Sends a message; returns whether there is still a reader.
    fn send(&self, message: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;

    /// How many bytes a reply that is sent next has around it on the wire.
    fn frame(&self) -> usize {
        0
    }
}

/// For requests that get nothing but their reply.
#[derive(Debug)]
pub struct Nowhere;

impl Outbox for Nowhere {
    fn try_send(&self, _: Vec<u8>) -> bool {
        false
    }

    fn send(&self, _: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(std::future::ready(false))
    }
}

impl Outbox for mpsc::Sender<Vec<u8>> {
    fn try_send(&self, message: Vec<u8>) -> bool {
        mpsc::Sender::try_send(self, message).is_ok()
    }

    fn send(&self, message: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move { mpsc::Sender::send(self, message).await.is_ok() })
    }
}

/// The reply to a request.
#[derive(Debug)]
pub struct Response {
    /// The whole message.
    pub message: ReplyMessage,
    /// The code if it is an error of the protocol.
    pub error: Option<ErrorCode>,
    /// The room of a large message in the byte budget, kept until it is written.
    pub held: Option<ops::Reserved>,
}

/// A request that is being served. It ends without a reply if the client cancels it. Dropping it cancels the request,
/// which still runs to its end to be logged and counted.
pub type Serving = FinishOnDrop<Option<Response>>;

/// A client.
#[derive(Debug)]
pub struct Connection {
    server: LiveServer,
    /// Whether answers to our questions can come back on it.
    hears_answers: bool,
    /// Cancelled once nobody reads replies any more; later requests are cancelled from the start.
    closed: CancellationToken,
    lifecycle: Mutex<Lifecycle>,
    /// The requests that are being served; `None` for a connection of one request, because nothing can refer to its id.
    running: Option<Mutex<RunningRequests>>,
    questions: Arc<Questions>,
    /// The way for messages that belong to no request, if the connection lasts.
    common: Option<Arc<dyn Outbox>>,
    watched: WatchedResources,
    roots: ClientRoots,
}

impl Connection {
    /// A client about which nothing is known yet.
    #[must_use]
    pub fn new(server: impl Into<LiveServer>) -> Arc<Connection> {
        Connection::with(server.into(), Lifecycle::default(), None)
    }

    /// A client about which nothing is known yet, and that can receive messages that belong to no request.
    #[must_use]
    pub fn lasting(server: impl Into<LiveServer>, common: Arc<dyn Outbox>) -> Arc<Connection> {
        Connection::with(server.into(), Lifecycle::default(), Some(common))
    }

    /// A client that makes one HTTP request outside of a session, in the revision that a header names.
    #[must_use]
    pub fn for_one_request(
        server: impl Into<LiveServer>,
        revision: ProtocolVersion,
    ) -> Arc<Connection> {
        let lifecycle = Lifecycle {
            greeting: Some(Greeting::unsaid(revision)),
            introduces_itself: false,
        };
        Arc::new(Connection {
            hears_answers: false,
            running: None,
            ..Connection::unshared(server.into(), lifecycle, None)
        })
    }

    fn with(
        server: LiveServer,
        lifecycle: Lifecycle,
        common: Option<Arc<dyn Outbox>>,
    ) -> Arc<Connection> {
        Arc::new(Connection::unshared(server, lifecycle, common))
    }

    fn unshared(
        server: LiveServer,
        lifecycle: Lifecycle,
        common: Option<Arc<dyn Outbox>>,
    ) -> Connection {
        Connection {
            server,
            hears_answers: true,
            closed: CancellationToken::new(),
            lifecycle: Mutex::new(lifecycle),
            running: Some(Mutex::default()),
            questions: Arc::default(),
            common,
            watched: WatchedResources::default(),
            roots: ClientRoots::default(),
        }
    }

    /// Serves a request; refuses one whose id is still in use. If the earlier request was cancelled, it gets no reply,
    /// and this one begins when it has ended.
    pub fn serve(
        self: &Arc<Connection>,
        request: Request,
        origin: Origin,
        outbox: Arc<dyn Outbox>,
    ) -> Result<Serving, Refused> {
        let Begun {
            gone,
            in_use,
            earlier,
        } = self.begin(&request.id)?;
        let cancelled = gone.clone();
        let connection = Arc::clone(self);
        let serving = async move {
            if let Some(earlier) = earlier {
                earlier.ended.notified().await;
            }
            let context = RequestContext {
                server: connection.server.now(),
                connection,
                origin,
                outbox,
                gone: gone.clone(),
            };
            let reply = methods::answer(request, context).await;
            drop(in_use);
            (!gone.is_cancelled()).then_some(reply)
        };
        Ok(FinishOnDrop::new(serving, cancelled))
    }

    /// Handles a notification.
    pub fn notice(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled" {
            let id = notification.params.get("requestId");
            let id = id.and_then(|id| RequestId::deserialize(id).ok());
            if let Some(running) = id.and_then(|id| self.running()?.get(&id).cloned()) {
                running.gone.cancel();
            }
        }
    }

    /// Asks the client which directories it works in, when it says that it knows or that they changed. Only needed if
    /// clients use host paths.
    pub fn follow_roots(
        self: &Arc<Connection>,
        notification: &Notification,
        outbox: &Arc<dyn Outbox>,
    ) {
        let tells = [
            "notifications/initialized",
            "notifications/roots/list_changed",
        ];
        let has_roots = || {
            let lifecycle = self.lifecycle();
            lifecycle.greeting.as_ref().is_some_and(|own| own.has_roots)
        };
        if !tells.contains(&notification.method.as_str())
            || !self.server.now().service().catalogue().tells_host_paths()
            || !has_roots()
        {
            return;
        }
        self.roots.begin();
        let (connection, outbox) = (Arc::clone(self), Arc::clone(outbox));
        tokio::spawn(async move {
            let questions = &connection.questions;
            let server = connection.server.now();
            let service = server.service();
            connection.roots.ask(questions, &outbox, service).await;
        });
    }

    /// The directories that the client works in, once it has said so; `None` for all that are served.
    pub(crate) async fn narrowed(&self, service: &Service) -> Option<Arc<HostDirectories>> {
        self.roots.narrowed(service).await
    }

    /// Tells a greeted client that the list of tools changed, if it can receive messages that belong to no request.
    pub fn tell_tools_changed(&self) {
        let is_greeted = self.lifecycle().greeting.is_some();
        let Some(common) = self.common.as_ref().filter(|_| is_greeted) else {
            return;
        };
        if !common.try_send(subscriptions::tools_changed(None)) {
            tracing::debug!("a client was not told that its tools changed");
        }
    }

    /// The reply to a refused message.
    #[must_use]
    pub fn refusal(&self, refused: &Refused) -> Vec<u8> {
        match refused.id() {
            Some(id) if self.is_running(id) => refused.reply_beside(id),
            _ => refused.reply(),
        }
    }

    /// Passes an answer on to the call that asked the question.
    pub fn answered(&self, answer: Answer) {
        self.questions.answered(answer);
    }

    /// Cancels all running requests, because nobody reads the replies any more.
    pub fn hang_up(&self) {
        self.watched.end_all();
        self.questions.close();
        self.closed.cancel();
    }

    /// Ends all questions, because no answer can arrive any more. Requests keep running.
    pub fn end_questions(&self) {
        self.questions.close();
    }

    /// Stops reporting changes, because the connection ends. Requests keep running.
    pub fn end_subscriptions(&self) {
        self.watched.end_all();
    }

    /// The way for messages that belong to no request.
    pub(crate) fn common(&self) -> Option<&Arc<dyn Outbox>> {
        self.common.as_ref()
    }

    /// The resources that are watched for it.
    pub(crate) fn watched(&self) -> &WatchedResources {
        &self.watched
    }

    /// Whether a request is being served.
    pub(crate) fn is_busy(&self) -> bool {
        self.running().is_some_and(|running| !running.is_empty())
    }

    /// Its part of the endpoint, now and after reloads.
    pub(crate) fn server(&self) -> &LiveServer {
        &self.server
    }

    pub(crate) fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        self.lifecycle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How a client that accepts questions can be asked on this connection.
    pub(crate) fn asks_by(&self, is_newest: bool) -> AskBy {
        if is_newest {
            AskBy::Result
        } else if self.hears_answers {
            AskBy::Request
        } else {
            AskBy::Never
        }
    }

    /// Whether only a session would let the client answer, and the settings give it none.
    pub(crate) fn is_asking_off(&self, is_newest: bool) -> bool {
        !is_newest && !self.hears_answers
    }

    fn is_running(&self, id: &RequestId) -> bool {
        let running = self.running();
        let own = running.as_ref().and_then(|running| running.get(id));
        own.is_some_and(|own| !own.gone.is_cancelled())
    }

    /// Takes an id, where another request can have it too.
    fn begin(self: &Arc<Connection>, id: &RequestId) -> Result<Begun, Refused> {
        let Some(mut running) = self.running() else {
            return Ok(Begun {
                gone: self.closed.clone(),
                in_use: None,
                earlier: None,
            });
        };
        let gone = self.closed.child_token();
        let request = Arc::new(RunningRequest {
            gone: gone.clone(),
            ended: Notify::new(),
        });
        let earlier = match running.entry(id.clone()) {
            Entry::Occupied(other) if !other.get().gone.is_cancelled() => {
                return Err(id_in_use(id));
            }
            Entry::Occupied(mut cancelled) => Some(cancelled.insert(Arc::clone(&request))),
            Entry::Vacant(free) => {
                free.insert(Arc::clone(&request));
                None
            }
        };
        let in_use = InUse {
            id: id.clone(),
            connection: Arc::clone(self),
            request,
        };
        Ok(Begun {
            gone,
            in_use: Some(in_use),
            earlier,
        })
    }

    fn running(&self) -> Option<MutexGuard<'_, RunningRequests>> {
        let running = self.running.as_ref()?;
        Some(running.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type RunningRequests = HashMap<RequestId, Arc<RunningRequest>>;

/// A request that may be served.
struct Begun {
    /// Cancelled once its client no longer wants the reply.
    gone: CancellationToken,
    /// Its hold on its id, if there is anything that can refer to it.
    in_use: Option<InUse>,
    /// The cancelled request that still has its id, to be waited for.
    earlier: Option<Arc<RunningRequest>>,
}

/// A request that is being served.
#[derive(Debug)]
struct RunningRequest {
    /// Cancelled once its client no longer wants the reply.
    gone: CancellationToken,
    /// Notified when it has ended; the request that took over its id waits for that.
    ended: Notify,
}

/// Keeps an id in use until its request has ended. A cancelled request gets no reply, but its last notifications must not
/// be taken for those of another request with the same id.
struct InUse {
    id: RequestId,
    connection: Arc<Connection>,
    request: Arc<RunningRequest>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        // A request that took over the id keeps it.
        if let Some(mut running) = self.connection.running()
            && let Entry::Occupied(holder) = running.entry(self.id.clone())
            && Arc::ptr_eq(holder.get(), &self.request)
        {
            holder.remove();
        }
        self.request.ended.notify_one();
    }
}

/// The context of one request: where it came from and the way back to its client.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) connection: Arc<Connection>,
    /// What was in force when the request began.
    pub(crate) server: Server,
    pub(crate) origin: Origin,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) gone: CancellationToken,
}

/// A client while one of its requests is served.
#[derive(Debug)]
pub(crate) struct RequestClient {
    pub(crate) context: RequestContext,
    pub(crate) progress: Option<ProgressToken>,
    pub(crate) asking: AskBy,
    pub(crate) is_asking_off: bool,
    pub(crate) asking_person: AskBy,
    /// The resources that it begins to watch, if it is a request that can.
    pub(crate) begun: Option<BegunSubscriptions>,
}

/// The resources that a request began to watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct BegunSubscriptions(Arc<Mutex<Vec<Subscription>>>);

impl BegunSubscriptions {
    /// Takes them over.
    pub(crate) fn take(&self) -> Vec<Subscription> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, subscription: Subscription) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.push(subscription);
    }
}

impl Client for RequestClient {
    fn gone(&self) -> &CancellationToken {
        &self.context.gone
    }

    fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    fn tell_progress(&self, done: u64) {
        let Some(token) = &self.progress else { return };
        let params = ProgressNotificationParam::new(token.clone(), done as f64);
        let message = crate::result::notification("notifications/progress", &params);
        if !self.context.outbox.try_send(message) {
            tracing::debug!("progress was not delivered");
        }
    }

    fn asking(&self) -> AskBy {
        self.asking
    }

    fn is_asking_off(&self) -> bool {
        self.is_asking_off
    }

    fn asking_person(&self) -> AskBy {
        self.asking_person
    }

    fn ask(&self, method: &'static str, params: Value) -> PendingQuestion<'_> {
        let questions = &self.context.connection.questions;
        Box::pin(questions.ask(method, params, &self.context.outbox))
    }

    fn subscribed(&self, subscription: Subscription) {
        if let Some(begun) = &self.begun {
            begun.add(subscription);
        }
    }
}

/// Polls work once, and spawns a task for the rest if it has to wait.
pub fn start(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    if work.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(work);
    }
}
