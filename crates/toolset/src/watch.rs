//! `watch`, as every set that has it: waits until something changes below a path, or its time is over.
//!
//! A waiting call holds no slot and no thread. Only starting the watch and reading its events run on the blocking pool,
//! each with a slot of its own.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ops::{
    Context, DiffWish, Limits, ListChanges, Moment, Operation, PartKind, Place, SeenChange,
    ToldChange, TreeChanges, Watch, Watched,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until};

use crate::admission::Admission;
use crate::arguments::{self, BadArgument, Slips};
use crate::contract::Failure;
use crate::deployment::TextForm;
use crate::history::moment;
use crate::json_text::JsonText;
use crate::reply::halves;
use crate::schema;
use crate::search_bounds::search_timeout;
use crate::text_form::{TextLines, shown};
use crate::tool::{AnyTool, Call, CallWork, Definition, Ended, Prepared, RootUse, ToolEffect};

/// The longest wait, in seconds. Many clients give up after a minute.
pub(crate) const TIMEOUT_SECONDS: u64 = 300;
/// How many directories one call watches.
pub(crate) const DIRECTORIES_MAX: usize = 8192;
/// How many watches of one client wait at once. Many systems allow a user 128 of them.
const PER_CLIENT: usize = 8;
/// How many watches wait at once in the whole process.
const PER_PROCESS: usize = 64;
/// How often a waiting call asks whether something happened. Asking waits for nothing and costs a microsecond.
const STEP: Duration = Duration::from_millis(50);
/// How long to keep gathering after the first change, so that related changes are reported together.
const GATHER: Duration = Duration::from_millis(50);
/// How much longer than its wait a call may take.
const GRACE: Duration = Duration::from_secs(10);
/// How many recorded changes a reply lists.
const CHANGES_MAX: usize = 1000;
/// How long a client that has too many watches should wait.
const LATER_MS: u64 = 1000;

/// The default wait, in seconds.
pub(crate) fn timeout_seconds() -> u64 {
    30
}

/// What the `watch` of a set takes.
pub(crate) trait WatchTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    const DESCRIPTION: &'static str;
    const ROOTS: &'static [RootUse];

    /// The root as the client named it, if the set has named roots.
    fn root(arguments: &Self::Arguments) -> Option<String>;
    /// What to watch.
    fn place(arguments: &Self::Arguments, call: &Call) -> ops::Result<Place>;
    /// How long to wait.
    fn seconds(arguments: &Self::Arguments) -> u64;
    /// Since when changes count, if not from now on.
    fn since(arguments: &Self::Arguments) -> Option<&str>;
}

/// What changed.
#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Name of the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// True if nothing changed in time.
    timed_out: bool,
    /// What changed, the first thousand paths.
    changes: Vec<WatchedChange>,
    /// True if more paths changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// True if so much changed at once that the system dropped some of it: look at everything again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overflow: bool,
    /// True if there are too many directories, and changes in some of them are not seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
    /// True if the file system tells only of changes made through this machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_local: bool,
}

#[derive(Serialize, JsonSchema)]
struct WatchedChange {
    /// The path, relative to the root.
    path: String,
    /// created, changed or removed.
    kind: &'static str,
    /// The change, if it was made through this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
}

impl Reply {
    fn new(root: Option<String>, seen: TreeChanges, known: &[ToldChange]) -> Reply {
        let changes = seen.changes.into_iter();
        let changes = changes.map(|(path, change)| WatchedChange::new(path, change, known));
        let changes: Vec<WatchedChange> = changes.collect();
        Reply {
            root,
            timed_out: changes.is_empty() && !seen.overflowed,
            changes,
            truncated: seen.truncated,
            overflow: seen.overflowed,
            incomplete: seen.incomplete,
            only_local: seen.partly_blind,
        }
    }

    fn text(&self) -> String {
        let mut text = TextLines::default();
        for change in &self.changes {
            text.line(change.text());
        }
        if self.timed_out {
            text.line("nothing changed in time");
        }
        for note in self.notes() {
            text.note(note);
        }
        text.finish()
    }

    fn ended(&self, call: &Call) -> Result<Ended, Failure> {
        let own_text = |reply: &Reply| match call.text_form {
            TextForm::Compact => Some(JsonText::from(reply.text())),
            TextForm::Json => None,
        };
        halves(self, own_text, call.replies).map(Ended::Reply)
    }

    /// What the client should know about changes that were not seen.
    fn notes(&self) -> impl Iterator<Item = &'static str> {
        let notes = [
            (self.truncated, "more paths changed than are listed"),
            (
                self.overflow,
                "so much changed at once that some of it was dropped; look at everything again",
            ),
            (
                self.incomplete,
                "too many directories: changes in some are not seen; watch one further down",
            ),
            (
                self.only_local,
                "changes made on other machines are not seen here",
            ),
        ];
        let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
        notes.map(|(_, note)| note)
    }
}

impl WatchedChange {
    /// An observed change, with its author if it matches a recorded change.
    fn new(path: String, change: SeenChange, known: &[ToldChange]) -> WatchedChange {
        let known = known.iter().find(|told| {
            let mut parts = told.parts();
            parts.any(|part| part.path == path || part.to.as_ref() == Some(&path))
        });
        WatchedChange {
            path,
            kind: match change {
                SeenChange::Created => "created",
                SeenChange::Changed => "changed",
                SeenChange::Removed => "removed",
            },
            change: known.map(ToldChange::id),
            client: known.map(|told| told.record.author.client.clone()),
        }
    }

    fn text(&self) -> String {
        let by = self.change.as_ref().zip(self.client.as_ref());
        let by = by.map_or_else(String::new, |(change, client)| {
            format!(" ({change} by {})", shown(client))
        });
        format!("{} {}{by}", self.kind, shown(&self.path))
    }
}

/// Puts a set's `watch` into its erased form.
pub(crate) fn watch_tool<T: WatchTool>() -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition: Definition {
            name: "watch",
            title: "Wait for changes",
            description: T::DESCRIPTION,
            content: &[],
            effect: ToolEffect::Read,
            roots: T::ROOTS,
            input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<Reply>())),
            large_replies: false,
            examples: &[],
            method_of: None,
            form: crate::tool::ReplyForm::Chosen,
        },
        tool: PhantomData,
    })
}

struct Erased<T> {
    definition: Definition,
    tool: PhantomData<fn() -> T>,
}

impl<T: WatchTool> AnyTool for Erased<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        _request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        let arguments: T::Arguments =
            arguments::decode(&self.definition.input, arguments, Slips::Forgiven)?;
        let patience = search_timeout(T::seconds(&arguments), limits);
        Ok(Prepared {
            timeout: patience.saturating_add(GRACE),
            work: CallWork::Asking(Box::new(move |call, admission| {
                Box::pin(run::<T>(arguments, patience, call, admission))
            })),
        })
    }
}

async fn run<T: WatchTool>(
    arguments: T::Arguments,
    patience: Duration,
    call: Call,
    admission: &Admission,
) -> Result<Ended, Failure> {
    let end = Instant::now() + patience;
    let client = &call.caller.allowance;
    let _waiting = counted(client, admission)?;
    let (place, since) = (T::place(&arguments, &call)?, T::since(&arguments));
    let (watched, before, last) = begin(place.clone(), since, &call, admission).await?;
    let (seen, known) = if before.is_empty() {
        let seen = until_changed(watched, end, client, admission).await?;
        (seen, known_since(last, place, &call, admission).await?)
    } else {
        (seen_in(&before), before)
    };
    Reply::new(T::root(&arguments), seen, &known).ended(&call)
}

/// Counts a watch until it is dropped, unless too many wait already.
fn counted(client: &str, admission: &Admission) -> Result<WaitingWatch, Failure> {
    let counted = admission.watches().enter(client);
    counted.ok_or(Failure::RateLimited {
        retry_after_ms: LATER_MS,
    })
}

/// Begins to watch a place. Also returns what this server has changed there since that moment, and the number of the
/// last change.
async fn begin(
    place: Place,
    since: Option<&str>,
    call: &Call,
    admission: &Admission,
) -> Result<(Watched, Vec<ToldChange>, u64), Failure> {
    let since = since.map(|since| moment("since", since)).transpose()?;
    let watch = Watch {
        place: place.clone(),
        most: DIRECTORIES_MAX,
    };
    let context = call.context.clone();
    let begun = move || {
        let last = place.root.history().map_or(0, |kept| kept.last_number());
        // Watching begins first, so that nothing in between is missed.
        let watched = watch.run(&context)?;
        let before = since.map(|since| made_since(place, since, &context));
        Ok::<_, ops::Error>((watched, before.transpose()?.unwrap_or_default(), last))
    };
    Ok(admission.run(&call.caller.allowance, begun).await??)
}

/// The changes that this server made at a place after the change with this number, if a history records them.
async fn known_since(
    last: u64,
    place: Place,
    call: &Call,
    admission: &Admission,
) -> Result<Vec<ToldChange>, Failure> {
    let context = call.context.clone();
    let known = move || match place.root.history() {
        Some(_) => made_since(place, Moment::Change(last), &context).unwrap_or_default(),
        None => Vec::new(),
    };
    admission.run(&call.caller.allowance, known).await
}

/// The changes of a place that this server made since then.
fn made_since(place: Place, since: Moment, context: &Context) -> ops::Result<Vec<ToldChange>> {
    let list = ListChanges {
        place,
        since: Some(since),
        client: None,
        limit: CHANGES_MAX,
        diffs: DiffWish::None,
    };
    list.run(context).map(|told| told.changes)
}

/// Recorded changes in the form of observed ones.
fn seen_in(told: &[ToldChange]) -> TreeChanges {
    let mut changes = BTreeMap::new();
    for part in told.iter().rev().flat_map(ToldChange::parts) {
        let change = match part.kind {
            PartKind::Create | PartKind::MakeDir => SeenChange::Created,
            PartKind::Remove | PartKind::RemoveDir | PartKind::Move => SeenChange::Removed,
            PartKind::Replace | PartKind::Append | PartKind::Cut => SeenChange::Changed,
        };
        changes.insert(part.path.clone(), change);
        if let Some(to) = &part.to {
            changes.insert(to.clone(), SeenChange::Created);
        }
    }
    TreeChanges {
        changes: changes.into_iter().collect(),
        ..TreeChanges::default()
    }
}

/// Waits for the first change, and a moment longer.
async fn until_changed(
    mut watched: Watched,
    end: Instant,
    client: &Arc<str>,
    admission: &Admission,
) -> Result<TreeChanges, Failure> {
    while has_news_before(end, &watched).await {
        watched = look(watched, client, admission).await?;
        if !watched.has_changes() {
            continue;
        }
        sleep(GATHER).await;
        watched = look(watched, client, admission).await?;
        // Something that was made and removed again is not reported.
        if watched.has_changes() {
            break;
        }
    }
    Ok(watched.report())
}

/// Waits for news; `false` if there is none in time.
async fn has_news_before(end: Instant, watched: &Watched) -> bool {
    while !watched.has_news() {
        if Instant::now() >= end {
            return false;
        }
        sleep_until(end.min(Instant::now() + STEP)).await;
    }
    true
}

/// Processes events on a thread that may block, because a new directory has to be listed.
async fn look(
    mut watched: Watched,
    client: &Arc<str>,
    admission: &Admission,
) -> Result<Watched, Failure> {
    let work = move || {
        watched.look()?;
        Ok::<_, ops::Error>(watched)
    };
    Ok(admission.run(client, work).await??)
}

/// The watches that wait, by client.
#[derive(Debug)]
pub(crate) struct WatchCounts {
    per_client: usize,
    per_process: usize,
    waiting: Mutex<HashMap<String, usize>>,
}

impl WatchCounts {
    /// Counts so many watches of one client and of all.
    pub(crate) fn new(per_client: usize, per_process: usize) -> Arc<WatchCounts> {
        Arc::new(WatchCounts {
            per_client,
            per_process,
            waiting: Mutex::default(),
        })
    }

    /// The counts of the tool.
    pub(crate) fn of_tool() -> Arc<WatchCounts> {
        WatchCounts::new(PER_CLIENT, PER_PROCESS)
    }

    /// Counts a watch of a client; `None` if there are too many.
    pub(crate) fn enter(self: &Arc<WatchCounts>, client: &str) -> Option<WaitingWatch> {
        let mut waiting = self.waiting();
        let all: usize = waiting.values().sum();
        let own = waiting.get(client).copied().unwrap_or(0);
        if own >= self.per_client || all >= self.per_process {
            return None;
        }
        waiting.insert(client.to_owned(), own + 1);
        Some(WaitingWatch {
            counts: Arc::clone(self),
            client: client.to_owned(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch that is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitingWatch {
    counts: Arc<WatchCounts>,
    client: String,
}

impl Drop for WaitingWatch {
    fn drop(&mut self) {
        let mut waiting = self.counts.waiting();
        let own = waiting.get(&self.client);
        let left = own.map_or(0, |own| own.saturating_sub(1));
        if left == 0 {
            waiting.remove(&self.client);
        } else {
            waiting.insert(self.client.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_a_share_of_the_watches() {
        let counts = WatchCounts::of_tool();
        let held: Vec<_> = (0..PER_CLIENT)
            .map(|_| counts.enter("a").unwrap())
            .collect();
        assert!(counts.enter("a").is_none());
        assert!(counts.enter("b").is_some());
        drop(held);
        assert!(counts.enter("a").is_some());
        assert!(counts.waiting.lock().unwrap().is_empty());
    }
}
