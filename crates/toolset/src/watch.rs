//! `watch`, as every set that has it: waits until something changes below a path, or its time is over.
//!
//! A waiting call holds no slot and no thread: only beginning to watch and taking in what happened run on the blocking
//! pool, each with a slot of its own.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ops::{Limits, Operation, Place, SeenChange, TreeChanges, Watch, Watched};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until};

use crate::admission::Admission;
use crate::arguments::{self, BadArgument, Slips};
use crate::contract::Failure;
use crate::deployment::TextForm;
use crate::json_text::JsonText;
use crate::reply::halves;
use crate::schema;
use crate::search_bounds::search_timeout;
use crate::text_form::{TextLines, shown};
use crate::tool::{AnyTool, Call, CallWork, Definition, Ended, Prepared, RootUse, ToolEffect};

/// The longest wait, in seconds. Many clients give up after a minute.
pub(crate) const TIMEOUT_SECONDS: u64 = 300;
/// How many directories one call watches.
const DIRECTORIES_MAX: usize = 8192;
/// How many watches of one client wait at once. A user has 128 of them on many systems.
const PER_CLIENT: usize = 8;
/// How many watches wait at once in the whole process.
const PER_PROCESS: usize = 64;
/// How often a waiting call asks whether something happened. Asking waits for nothing and costs a microsecond.
const STEP: Duration = Duration::from_millis(50);
/// How long more is gathered after the first change: what belongs together comes together.
const GATHER: Duration = Duration::from_millis(50);
/// How much longer than its wait a call may take.
const GRACE: Duration = Duration::from_secs(10);
/// How long a client that has too many watches should wait.
const LATER_MS: u64 = 1000;

/// The default wait, in seconds.
pub(crate) fn timeout_seconds() -> u64 {
    30
}

/// What a set's `watch` takes.
pub(crate) trait WatchTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    const DESCRIPTION: &'static str;
    const ROOTS: &'static [RootUse];

    /// The root as the client named it, where the set has named roots.
    fn root(arguments: &Self::Arguments) -> Option<String>;
    /// What to watch.
    fn place(arguments: &Self::Arguments, call: &Call) -> ops::Result<Place>;
    /// How long to wait.
    fn seconds(arguments: &Self::Arguments) -> u64;
}

/// What changed.
#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Name of the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// True where nothing changed in time.
    timed_out: bool,
    /// What changed, the first thousand paths.
    changes: Vec<ChangeReply>,
    /// True where more paths changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// True where so much changed at once that the system dropped some of it: look at everything again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overflow: bool,
    /// True where there are too many directories, and changes in some of them are not seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
    /// True where the file system tells only of changes made through this machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_local: bool,
}

#[derive(Serialize, JsonSchema)]
struct ChangeReply {
    /// The path, relative to the root.
    path: String,
    /// created, changed or removed.
    kind: &'static str,
}

impl Reply {
    fn new(root: Option<String>, seen: TreeChanges) -> Reply {
        let changes = seen.changes.into_iter();
        let changes = changes.map(|(path, change)| ChangeReply {
            path,
            kind: match change {
                SeenChange::Created => "created",
                SeenChange::Changed => "changed",
                SeenChange::Removed => "removed",
            },
        });
        let changes: Vec<ChangeReply> = changes.collect();
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
            text.line(format_args!("{} {}", change.kind, shown(&change.path)));
        }
        if self.timed_out {
            text.line("nothing changed in time");
        }
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
        for (_, note) in notes.into_iter().filter(|(is_so, _)| *is_so) {
            text.note(note);
        }
        text.finish()
    }
}

/// Puts a set's `watch` into its erased form.
pub(crate) fn watch_tool<T: WatchTool>() -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition: Definition {
            name: "watch",
            title: "Wait for changes",
            description: T::DESCRIPTION,
            effect: ToolEffect::Read,
            roots: T::ROOTS,
            inner_paths: |_| Vec::new(),
            input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<Reply>())),
            large_replies: false,
            examples: &[],
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
    let client = call.caller.allowance.clone();
    let _waiting = admission.watches().enter(&client)?;
    let watch = Watch {
        place: T::place(&arguments, &call)?,
        most: DIRECTORIES_MAX,
    };
    let context = call.context.clone();
    let watched = admission
        .run(&client, move || watch.run(&context))
        .await??;
    let seen = until_changed(watched, end, &client, admission).await?;
    let reply = Reply::new(T::root(&arguments), seen);
    let own_text = |reply: &Reply| match call.text_form {
        TextForm::Compact => Some(JsonText::from(reply.text())),
        TextForm::Json => None,
    };
    halves(&reply, own_text, call.replies).map(Ended::Reply)
}

/// Waits for the first change, and a moment longer.
async fn until_changed(
    mut watched: Watched,
    end: Instant,
    client: &Arc<str>,
    admission: &Admission,
) -> Result<TreeChanges, Failure> {
    loop {
        while !watched.has_news() {
            if Instant::now() >= end {
                return Ok(watched.report());
            }
            sleep_until(end.min(Instant::now() + STEP)).await;
        }
        watched = look(watched, client, admission).await?;
        if !watched.has_changes() {
            continue;
        }
        sleep(GATHER).await;
        watched = look(watched, client, admission).await?;
        // What was made and removed again is nothing to tell.
        if watched.has_changes() {
            return Ok(watched.report());
        }
    }
}

/// Takes in what happened, on a thread that may wait: a new directory is listed.
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
#[derive(Debug, Default)]
pub(crate) struct WatchCounts {
    waiting: Mutex<HashMap<String, usize>>,
}

impl WatchCounts {
    /// Counts a watch of a client, or refuses it.
    pub(crate) fn enter<'counts>(
        &'counts self,
        client: &str,
    ) -> Result<WaitingWatch<'counts>, Failure> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = waiting.values().sum();
        let own = waiting.entry(client.to_owned()).or_default();
        if *own >= PER_CLIENT || all >= PER_PROCESS {
            if *own == 0 {
                waiting.remove(client);
            }
            return Err(Failure::RateLimited {
                retry_after_ms: LATER_MS,
            });
        }
        *own += 1;
        Ok(WaitingWatch {
            counts: self,
            client: client.to_owned(),
        })
    }
}

/// A watch that is counted until it is dropped.
pub(crate) struct WaitingWatch<'counts> {
    counts: &'counts WatchCounts,
    client: String,
}

impl Drop for WaitingWatch<'_> {
    fn drop(&mut self) {
        let mut waiting = self
            .counts
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = waiting
            .get(&self.client)
            .map_or(0, |own| own.saturating_sub(1));
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
        let counts = WatchCounts::default();
        let held: Vec<_> = (0..PER_CLIENT)
            .map(|_| counts.enter("a").unwrap())
            .collect();
        assert!(counts.enter("a").is_err());
        assert!(counts.enter("b").is_ok());
        drop(held);
        assert!(counts.enter("a").is_ok());
        assert!(counts.waiting.lock().unwrap().is_empty());
    }
}
