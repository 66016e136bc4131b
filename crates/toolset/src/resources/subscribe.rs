//! `resources/subscribe`: begins to watch a file, or a directory with all below it, for as long as the client listens.
//!
//! A subscription holds no slot and no thread while nothing happens. Meanwhile the kernel gathers events in a queue of
//! fixed length. If that overflows, the client is told that anything may have changed.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ops::{Cancel, Context, Limits, Operation, Place, TreeChanges, Watch, Watched};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::uri;
use crate::admission::Admission;
use crate::arguments::{self, BadArgument, Slips};
use crate::contract::Failure;
use crate::reply::halves;
use crate::schema;
use crate::tool::{
    AnyTool, Call, CallWork, Definition, Ended, Prepared, ReplyForm, RootUse, ToolEffect,
};
use crate::watch::{DIRECTORIES_MAX, WaitingWatch, WatchCounts};

/// How many resources one client watches at once, and how many all clients do. Many systems allow a user 128 watches,
/// and the tool `watch` needs some of them.
const PER_CLIENT: usize = 16;
const PER_PROCESS: usize = 48;
/// How often a subscription asks whether something happened. Asking waits for nothing and costs a microsecond.
const STEP: Duration = Duration::from_millis(100);
/// How long to keep gathering after the first change, so that related changes are reported together.
const GATHER: Duration = Duration::from_millis(100);
/// How long one look at what happened may take.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// How long a subscription waits for its turn to look while the server is too busy.
const BUSY: Duration = Duration::from_secs(1);
/// How many changed paths are reported one by one.
const TOLD_MAX: usize = 32;

/// The key under which a reply carries extra information.
const NOTES: &str = "io.github.mcp-filesystem/notes";

/// The subscriptions of all clients.
#[derive(Debug)]
pub(crate) struct SubscriptionCounts(Arc<WatchCounts>);

impl Default for SubscriptionCounts {
    fn default() -> SubscriptionCounts {
        SubscriptionCounts(WatchCounts::new(PER_CLIENT, PER_PROCESS))
    }
}

impl SubscriptionCounts {
    fn enter(&self, client: &str) -> Result<WaitingWatch, Failure> {
        let counted = self.0.enter(client);
        counted.ok_or_else(|| {
            let reason = format!(
                "too many resources are watched already, {PER_CLIENT} for one client and {PER_PROCESS} in all; end a \
                 subscription, or subscribe to a directory above them"
            );
            let argument = "uri";
            ops::Error::InvalidArgument { argument, reason }.into()
        })
    }
}

/// A resource that is watched for a client. Dropping it ends the watch.
#[derive(Debug)]
pub struct Subscription {
    /// `None` while it is looked at, and once nothing more can be seen.
    watched: Option<Watched>,
    uri: String,
    root: String,
    client: Arc<str>,
    notes: Vec<&'static str>,
    _counted: WaitingWatch,
}

/// What changed in a resource that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceChange {
    /// The resources below it that changed, if all of them are known.
    pub below: Vec<String>,
    /// Why more may have changed than is reported, if so.
    pub unsure: Option<&'static str>,
}

impl Subscription {
    /// The URI as the client wrote it.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// What the client should know about changes that cannot be seen.
    #[must_use]
    pub fn notes(&self) -> &[&'static str] {
        &self.notes
    }

    /// Waits for the next change; `None` once nothing more can be seen.
    pub(crate) async fn next(&mut self, admission: &Admission) -> Option<ResourceChange> {
        loop {
            while !self.watched.as_ref()?.has_news() {
                sleep(STEP).await;
            }
            sleep(GATHER).await;
            // A client that is kept out gets no news either.
            if admission.is_suspended(&self.client) {
                return None;
            }
            let watched = self.watched.take()?;
            let (watched, looked) = look(watched, &self.client, admission).await?;
            // Nothing is seen from now on.
            looked.ok()?;
            let watched = self.watched.insert(watched);
            if watched.has_changes() {
                let seen = watched.report();
                watched.reset();
                return Some(told(&self.root, &self.uri, &seen));
            }
        }
    }
}

/// Takes in what happened, on a thread that may wait: a new directory is listed. `None` if that crashed.
async fn look(
    mut watched: Watched,
    client: &Arc<str>,
    admission: &Admission,
) -> Option<(Watched, ops::Result<()>)> {
    let turn = crate::fair_queue::Turn::new(client, [0; 2]);
    let slot = loop {
        match admission.enter(&turn, crate::tool::Weight::Small).await {
            Ok(slot) => break slot,
            Err(_) => sleep(BUSY).await,
        }
    };
    let cancel = Cancel::after(LOOK_MAX).of_client(Arc::clone(client));
    let work = move || {
        let looked = watched.look_within(&cancel);
        (watched, looked)
    };
    crate::admission::run_with(slot, work).await.ok()
}

fn told(root: &str, own: &str, seen: &TreeChanges) -> ResourceChange {
    let unsure = unsure(seen);
    let below = seen.changes.iter().filter(|_| unsure.is_none());
    let below = below.map(|(path, _)| uri::of(root, path));
    ResourceChange {
        below: below.filter(|below| below != own).collect(),
        unsure,
    }
}

/// Why more may have changed than can be reported, if so.
fn unsure(seen: &TreeChanges) -> Option<&'static str> {
    if seen.overflowed {
        return Some(
            "so much changed at once that the system dropped some of it; look at everything again",
        );
    }
    if seen.incomplete {
        return Some("there are too many directories below it to watch them all");
    }
    let is_too_much = seen.truncated || seen.changes.len() > TOLD_MAX;
    is_too_much.then_some("too much changed to tell it one by one; look at everything again")
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    root: String,
    path: String,
    uri: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<JsonObject>,
}

struct Subscribe {
    definition: Definition,
}

pub(super) fn method(method_of: &'static str, roots: &'static [RootUse]) -> Box<dyn AnyTool> {
    Box::new(Subscribe {
        definition: Definition {
            name: super::SUBSCRIBE,
            title: "Watch a resource",
            description: "Tells of changes of a file or directory.",
            content: &[],
            effect: ToolEffect::Read,
            roots,
            input: LazyLock::new(|| Arc::new(schema::input::<Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<Reply>())),
            large_replies: false,
            examples: &[],
            form: ReplyForm::Chosen,
            method_of: Some(method_of),
        },
    })
}

impl AnyTool for Subscribe {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        _limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        let arguments: Arguments =
            arguments::decode(&self.definition.input, arguments, Slips::Forgiven)?;
        Ok(Prepared {
            timeout: request_timeout,
            work: CallWork::Asking(Box::new(move |call, admission| {
                Box::pin(subscribe(arguments, call, admission))
            })),
        })
    }
}

async fn subscribe(
    arguments: Arguments,
    call: Call,
    admission: &Admission,
) -> Result<Ended, Failure> {
    let client = Arc::clone(&call.caller.allowance);
    let counted = admission.subscriptions().enter(&client)?;
    let watched = begin(call.place(&arguments.path)?, &call, admission).await?;
    let notes = notes(&watched.report());
    let reply = Reply { meta: meta(&notes) };
    let reply = halves(&reply, |_| None, call.replies)?;
    call.caller.client.subscribed(Subscription {
        watched: Some(watched),
        uri: arguments.uri,
        root: arguments.root,
        client,
        notes,
        _counted: counted,
    });
    Ok(Ended::Reply(reply))
}

async fn begin(place: Place, call: &Call, admission: &Admission) -> Result<Watched, Failure> {
    let watch = Watch {
        place,
        most: DIRECTORIES_MAX,
    };
    // It outlives the call, so it must not use the call's room for a reply.
    let context = Context {
        room: None,
        ..call.context.clone()
    };
    let begun = admission.run(&call.caller.allowance, move || watch.run(&context));
    Ok(begun.await??)
}

fn notes(seen: &TreeChanges) -> Vec<&'static str> {
    let notes = [
        (
            seen.incomplete,
            "too many directories: changes in some are not seen; subscribe to one further down",
        ),
        (
            seen.partly_blind,
            "changes made on other machines are not seen here",
        ),
    ];
    let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
    notes.map(|(_, note)| note).collect()
}

fn meta(notes: &[&'static str]) -> Option<JsonObject> {
    (!notes.is_empty()).then(|| JsonObject::from_iter([(NOTES.to_owned(), notes.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::SeenChange;

    fn seen(paths: usize) -> TreeChanges {
        let path = |number| (format!("d/{number}"), SeenChange::Changed);
        TreeChanges {
            changes: (0..paths).map(path).collect(),
            truncated: false,
            overflowed: false,
            incomplete: false,
            partly_blind: false,
        }
    }

    #[test]
    fn few_changes_are_named_and_many_are_said_to_be_many() {
        let few = told("r", "fs://r/d", &seen(2));
        assert_eq!(few.below, ["fs://r/d/0", "fs://r/d/1"]);
        assert_eq!(few.unsure, None);
        for many in [
            seen(TOLD_MAX + 1),
            TreeChanges {
                overflowed: true,
                ..seen(0)
            },
            TreeChanges {
                truncated: true,
                ..seen(5)
            },
        ] {
            let many = told("r", "fs://r/d", &many);
            assert!(many.below.is_empty() && many.unsure.is_some(), "{many:?}");
        }
    }

    #[test]
    fn a_file_is_not_named_twice() {
        assert_eq!(told("r", "fs://r/d/0", &seen(1)).below, [""; 0]);
    }
}
