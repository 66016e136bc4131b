//! What a tool of this set is: a step that ends, or that needs an answer of the agent first.
//!
//! Every operation on the agent's files is told in the log here.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use guide::{ErrorKind, Now, Resume, StepOutcome};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::asking::{Courier, converse};
use super::desk::Desk;
use super::reply::Success;
use crate::arguments::{self, BadArgument};
use crate::client::Caller;
use crate::face::Failure;
use crate::reply::{Reply, halves};
use crate::schema;
use crate::tally::Tallies;
use crate::tool::{AnyTool, Call, Definition, Effect, Example, Prepared, Work};

/// One tool of the set.
pub(super) trait GuideTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + Serialize + JsonSchema + Send + Sync + 'static;
    /// What a client gets under `data`.
    type Data: Serialize + JsonSchema + Send + 'static;

    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;
    const EXAMPLES: &'static [Example];
    /// Whether it may ask the agent.
    const MANNER: Manner = Manner::Alone;

    /// Goes as far as it can without an answer. Runs on the blocking pool.
    fn step(
        arguments: &Self::Arguments,
        visit: &mut Visit<'_>,
    ) -> Result<StepOutcome<Success<Self::Data>>, Failure>;
}

/// Whether a tool may ask the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Alone,
    Asking,
}

/// What a step is given.
pub(super) struct Visit<'call> {
    pub(super) desk: &'call Desk,
    /// Whose call it is.
    pub(super) account: &'call str,
    /// What every client did so far.
    pub(super) tallies: &'call Tallies,
    pub(super) now: Now,
    /// Where to go on, where the agent was asked before.
    pub(super) resume: Option<Resume>,
    /// Whom to ask.
    pub(super) agent: Courier,
}

/// Puts a tool into its erased form.
pub(super) fn guide_tool<T: GuideTool>(desk: Option<Arc<Desk>>) -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition: Definition {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            effect: T::EFFECT,
            roots: &[],
            input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<Success<T::Data>>())),
            examples: T::EXAMPLES,
        },
        desk,
        tool: PhantomData,
    })
}

struct Erased<T> {
    definition: Definition,
    desk: Option<Arc<Desk>>,
    tool: PhantomData<fn() -> T>,
}

impl<T: GuideTool> AnyTool for Erased<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
    ) -> Result<Prepared, BadArgument> {
        let arguments: T::Arguments = arguments::decode(&self.definition.input, arguments)?;
        let desk = self.desk.clone();
        let patience = desk.as_ref().map(|desk| desk.sampling_timeout);
        Ok(match T::MANNER {
            Manner::Alone => Prepared {
                timeout: request_timeout,
                work: Work::Blocking(Box::new(move |call: &Call| {
                    alone::<T>(&arguments, desk, call)
                })),
            },
            Manner::Asking => Prepared {
                timeout: request_timeout.saturating_add(patience.unwrap_or_default()),
                work: Work::Asking(Box::new(move |call, gate| {
                    Box::pin(converse::<T>(arguments, desk, call, gate))
                })),
            },
        })
    }
}

/// A call that needs nobody else.
fn alone<T: GuideTool>(
    arguments: &T::Arguments,
    desk: Option<Arc<Desk>>,
    call: &Call,
) -> Result<Reply, Failure> {
    let desk = open(desk)?;
    let visit = Visit {
        desk: &desk,
        account: &call.caller.account,
        tallies: &call.tallies,
        now: Now::read(),
        resume: None,
        agent: Courier::default(),
    };
    match step::<T>(arguments, visit, &call.caller)? {
        StepOutcome::Done(success) => halves(&success, |_| None, call.replies),
        StepOutcome::Waiting(question) => Err(Failure::Internal {
            reason: format!("{} may not ask for {}", T::NAME, question.path),
        }),
    }
}

/// The desk, which is only missing where nobody calls.
pub(super) fn open(desk: Option<Arc<Desk>>) -> Result<Arc<Desk>, Failure> {
    desk.ok_or_else(|| Failure::Internal {
        reason: "the guide set has no project".to_owned(),
    })
}

/// Goes one step and tells the log what came of it.
pub(super) fn step<T: GuideTool>(
    arguments: &T::Arguments,
    mut visit: Visit<'_>,
    caller: &Caller,
) -> Result<StepOutcome<Success<T::Data>>, Failure> {
    let desk = visit.desk;
    let outcome = T::step(arguments, &mut visit);
    match &outcome {
        Ok(StepOutcome::Done(success)) => {
            desk.announce();
            tell_success::<T>(&success.paths, caller);
        }
        Ok(StepOutcome::Waiting(question)) => {
            tracing::trace!(operation = T::NAME, path = %question.path, client = caller.name, "asking the agent");
        }
        Err(failure) => tell_denied::<T>(failure, desk, caller),
    }
    outcome
}

fn tell_success<T: GuideTool>(paths: &[String], caller: &Caller) {
    for path in paths {
        tracing::trace!(
            operation = T::NAME,
            path,
            result = "ok",
            client = caller.name,
            "guide operation"
        );
    }
}

/// Tells of access that was denied over there.
fn tell_denied<T: GuideTool>(failure: &Failure, desk: &Desk, caller: &Caller) {
    let Failure::Guide(error) = failure else {
        return;
    };
    if error.kind() == ErrorKind::Permission {
        let allowed: Vec<&str> = desk.bridge.validator().policy().allowed().collect();
        tracing::warn!(
            operation = T::NAME,
            path = error.path(),
            result = "permission",
            client = caller.name,
            allowed = allowed.join(","),
            "the agent was denied access"
        );
    }
}
