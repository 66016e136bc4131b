//! Resources that are watched for a client: `resources/subscribe` up to 2025-11-25, `subscriptions/listen` from 2026-07-28 on.
//!
//! A task waits for the changes of each resource and reports them. While the client does not read, the task waits too,
//! and the kernel gathers events in a queue of fixed length.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, JsonObject, RequestId};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use toolset::resources::{ResourceChange, Subscription};
use toolset::{CallOutcome, Service};

use crate::connection::Outbox;
use crate::live_server::{Following, LiveChange};
use crate::message::Params;
use crate::methods::{AgreedRequest, HeldMessage, invalid_params};
use crate::resources;
use crate::result;

const UPDATED: &str = "notifications/resources/updated";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The keys of additional information in a message.
const UNSURE: &str = "io.github.mcp-filesystem/unsure";
const NOTES: &str = "io.github.mcp-filesystem/notes";

/// The last notice about a resource whose client still listens.
const ENDED: &str = "it is watched no longer; subscribe again";

/// The resources that a connection watches, by URI.
#[derive(Debug, Default)]
pub(crate) struct WatchedResources(Mutex<Watching>);

#[derive(Debug, Default)]
struct Watching {
    by_uri: HashMap<String, Telling>,
    begun: u64,
}

/// A task that reports changes. Dropping it ends the task.
#[derive(Debug)]
struct Telling {
    /// Distinguishes it from a later task for the same resource.
    number: u64,
    task: AbortHandle,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl WatchedResources {
    /// Ends all of them.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut self.lock().by_uri);
        drop(all);
    }

    /// Begins to report; `spawn` gets the number of the new task.
    fn begin(&self, uri: String, spawn: impl FnOnce(u64) -> AbortHandle) {
        let mut watching = self.lock();
        watching.begun += 1;
        let number = watching.begun;
        // Under the lock: a task that ends at once finds itself here.
        let task = spawn(number);
        let earlier = watching.by_uri.insert(uri, Telling { number, task });
        drop(earlier);
    }

    fn end(&self, uri: &str) -> bool {
        let ended = self.lock().by_uri.remove(uri);
        ended.is_some()
    }

    /// Forgets a task that has ended.
    fn ended(&self, uri: &str, number: u64) {
        let mut watching = self.lock();
        let own = watching.by_uri.get(uri);
        if own.is_some_and(|telling| telling.number == number) {
            watching.by_uri.remove(uri);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watching> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgreedRequest<'_> {
    /// Whether a greeted client can receive changes here.
    pub(crate) fn can_subscribe(&self) -> bool {
        self.agreed.is_legacy && self.context.connection.common().is_some() && self.watches()
    }

    /// Whether a client that introduces itself can receive changes.
    pub(crate) fn can_listen(&self) -> bool {
        !self.agreed.is_legacy
    }

    fn watches(&self) -> bool {
        let info = self.context.server.service().catalogue().info();
        let resources = info.capabilities.resources.as_ref();
        resources.is_some_and(|resources| resources.subscribe == Some(true))
    }

    /// Follows reloads, starting from the version in force now, so that nothing in between is missed.
    fn follow(&mut self) -> Following {
        let live = self.context.connection.server();
        let following = live.follow();
        self.context.server = live.now();
        following
    }

    /// `resources/subscribe`: changes are reported on the connection until it ends.
    pub(crate) async fn subscribe(mut self, params: Params) -> Result<HeldMessage, ErrorData> {
        let following = self.follow();
        let (uri, _) = resources::place_of(&params, "resources/subscribe")?;
        let (id, wording) = (self.id, self.agreed.wording());
        let connection = Arc::clone(&self.context.connection);
        let service = self.context.server.service().clone();
        let (caller, begun) = self.watching_caller(params)?;
        let outcome = resources::subscribe(&service, &uri, &caller, wording).await?;
        for subscription in begun.take() {
            let Some(outbox) = connection.common().cloned() else {
                continue;
            };
            let telling =
                tell_until_changed(following.clone(), service.clone(), subscription, outbox);
            let (own, of) = (Arc::downgrade(&connection), uri.clone());
            let told = |number| async move {
                telling.await;
                if let Some(connection) = own.upgrade() {
                    connection.watched().ended(&of, number);
                }
            };
            let spawn = |number| tokio::spawn(told(number)).abort_handle();
            connection.watched().begin(uri.clone(), spawn);
        }
        let CallOutcome::Result(mut done) = outcome else {
            return Ok((result::result(id, &json!({})).into(), None));
        };
        Ok((result::method_result(id, &mut done, wording, None), None))
    }

    /// `resources/unsubscribe`.
    pub(crate) fn unsubscribe(self, params: &Params) -> Result<Vec<u8>, ErrorData> {
        let (uri, _) = resources::place_of(params, "resources/unsubscribe")?;
        if self.context.connection.watched().end(&uri) {
            Ok(result::result(self.id, &json!({})))
        } else {
            let fault = format!("not subscribed to {}", toolset::shortened(&uri));
            Err(invalid_params(fault))
        }
    }

    /// `subscriptions/listen`: lasts until the client cancels it, the server ends, or what it may reach is changed.
    pub(crate) async fn listen(mut self, params: Params) -> Result<HeldMessage, ErrorData> {
        let mut following = self.follow();
        let wanted = wanted(&params)?;
        let (id, wording) = (self.id, self.agreed.wording());
        let may_watch = self.watches();
        let server = self.context.server.clone();
        let outbox = Arc::clone(&self.context.outbox);
        let gone = self.context.gone.clone();
        let (caller, begun) = self.watching_caller(params)?;
        let service = server.service().clone();
        for uri in wanted.resources.iter().filter(|_| may_watch) {
            resources::subscribe(&service, uri, &caller, wording).await?;
        }
        let subscriptions = begun.take();
        let hears_of_tools = wanted.tools && server.may_change();
        let acknowledged = acknowledged(id, &subscriptions, hears_of_tools);
        outbox
            .send(result::notification(ACKNOWLEDGED, &acknowledged))
            .await;
        let mut telling = JoinSet::new();
        for subscription in subscriptions {
            let (service, outbox) = (service.clone(), Arc::clone(&outbox));
            telling.spawn(tell_all(service, subscription, outbox, Some(id.clone())));
        }
        let lists = hears_of_tools.then_some((&outbox, id));
        let is_watching = !telling.is_empty();
        tokio::select! {
            () = gone.cancelled() => {}
            () = server.subscriptions_end() => {}
            () = tell_of_tools(&mut following, lists, is_watching) => {}
            // Nothing more can be seen.
            () = all_ended(&mut telling) => {}
        }
        // The client is told about the end last.
        telling.shutdown().await;
        let ended = json!({ "resultType": "complete", "_meta": meta(Some(id), []) });
        Ok((result::result(id, &ended).into(), None))
    }
}

/// Reports new lists of tools, if the client asked for that, until it has to subscribe again.
async fn tell_of_tools(
    following: &mut Following,
    wanted_by: Option<(&Arc<dyn Outbox>, &RequestId)>,
    is_watching: bool,
) {
    loop {
        match (following.next().await, wanted_by) {
            (LiveChange::Tools, Some((outbox, id))) => {
                outbox.send(tools_changed(Some(id))).await;
            }
            (LiveChange::Tools, None) => {}
            // Listeners may still hear about the list of tools.
            (LiveChange::Access, _) if !is_watching => {}
            (LiveChange::Access | LiveChange::Cut, _) => return,
        }
    }
}

/// Reports the changes of a resource until a reload changes what the client may reach. Then a last notice follows.
async fn tell_until_changed(
    mut following: Following,
    service: Service,
    subscription: Subscription,
    outbox: Arc<dyn Outbox>,
) {
    let uri = subscription.uri().to_owned();
    tokio::select! {
        () = tell_all(service, subscription, Arc::clone(&outbox), None) => {}
        () = following.access_changed() => {
            outbox.send(updated(&uri, None, Some(ENDED))).await;
        }
    }
}

/// The message that the list of tools is another one.
pub(crate) fn tools_changed(id: Option<&RequestId>) -> Vec<u8> {
    let params = match id {
        Some(id) => json!({ "_meta": meta(Some(id), []) }),
        None => json!({}),
    };
    result::notification(TOOLS_CHANGED, &params)
}

/// Waits until every task has ended; for ever, if there is none.
async fn all_ended(telling: &mut JoinSet<()>) {
    if telling.is_empty() {
        std::future::pending::<()>().await;
    }
    while telling.join_next().await.is_some() {}
}

/// What a client wants to be told about. Our other lists do not change, so other wishes are not granted.
struct WatchWishes {
    resources: Vec<String>,
    tools: bool,
}

fn wanted(params: &Params) -> Result<WatchWishes, ErrorData> {
    let Some(Value::Object(filter)) = params.get("notifications") else {
        return Err(invalid_params(
            "subscriptions/listen takes params with notifications (object)",
        ));
    };
    Ok(WatchWishes {
        resources: wanted_resources(filter.get("resourceSubscriptions"))?,
        tools: filter.get("toolsListChanged") == Some(&Value::Bool(true)),
    })
}

fn wanted_resources(uris: Option<&Value>) -> Result<Vec<String>, ErrorData> {
    let uris = match uris {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(uris)) => uris,
        Some(_) => return Err(not_uris()),
    };
    let mut wanted: Vec<String> = Vec::with_capacity(uris.len());
    for uri in uris {
        let uri = uri.as_str().ok_or_else(not_uris)?;
        if !wanted.iter().any(|known| known == uri) {
            wanted.push(uri.to_owned());
        }
    }
    Ok(wanted)
}

fn not_uris() -> ErrorData {
    invalid_params("resourceSubscriptions has to be a list of URIs (strings)")
}

/// The first message to a client: which of its wishes are granted.
fn acknowledged(id: &RequestId, subscriptions: &[Subscription], hears_of_tools: bool) -> Value {
    let uris: Vec<&str> = subscriptions.iter().map(Subscription::uri).collect();
    let mut notes: Vec<String> = Vec::new();
    for subscription in subscriptions {
        let uri = subscription.uri();
        notes.extend(
            subscription
                .notes()
                .iter()
                .map(|note| format!("{uri}: {note}")),
        );
    }
    let notes = (!notes.is_empty()).then(|| (NOTES, Value::from(notes)));
    let mut granted = json!({});
    if !uris.is_empty() {
        granted["resourceSubscriptions"] = json!(uris);
    }
    if hears_of_tools {
        granted["toolsListChanged"] = json!(true);
    }
    json!({ "_meta": meta(Some(id), notes), "notifications": granted })
}

/// Reports the changes of a resource until nobody reads them or nothing more can be seen; the latter is reported last.
async fn tell_all(
    service: Service,
    mut subscription: Subscription,
    outbox: Arc<dyn Outbox>,
    id: Option<RequestId>,
) {
    while let Some(change) = service.next_change(&mut subscription).await {
        if !tell(&change, subscription.uri(), &outbox, id.as_ref()).await {
            return;
        }
    }
    let last = updated(subscription.uri(), id.as_ref(), Some(ENDED));
    outbox.send(last).await;
}

/// Reports one change: first what changed below, then the resource itself. Returns whether there is still a reader.
async fn tell(
    change: &ResourceChange,
    uri: &str,
    outbox: &Arc<dyn Outbox>,
    id: Option<&RequestId>,
) -> bool {
    for below in &change.below {
        if !outbox.send(updated(below, id, None)).await {
            return false;
        }
    }
    outbox.send(updated(uri, id, change.unsure)).await
}

#[derive(Serialize)]
struct Updated<'a> {
    uri: &'a str,
    #[serde(rename = "_meta", skip_serializing_if = "JsonObject::is_empty")]
    meta: JsonObject,
}

fn updated(uri: &str, id: Option<&RequestId>, unsure: Option<&'static str>) -> Vec<u8> {
    let meta = meta(id, unsure.map(|unsure| (UNSURE, Value::from(unsure))));
    result::notification(UPDATED, &Updated { uri, meta })
}

fn meta(
    id: Option<&RequestId>,
    besides: impl IntoIterator<Item = (&'static str, Value)>,
) -> JsonObject {
    let id = id.map(|id| (SUBSCRIPTION_ID, id.clone().into_json_value()));
    let all = id.into_iter().chain(besides);
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}
