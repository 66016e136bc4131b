//! What a tool of this set is: a step that either ends or first needs an answer from the agent.
//!
//! Every operation on the agent's files is logged here.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use guide::{ClientBridge, ErrorType, Now, Resume, StepOutcome};
use ops::{Limits, ReplyRoom};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::asking::{ReadyAnswer, converse};
use super::reply::Success;
use super::state::GuideState;
use crate::arguments::{self, BadArgument, Slips};
use crate::client::Caller;
use crate::client_stats::StatsTable;
use crate::contract::Failure;
use crate::reply::{EncodedReply, halves};
use crate::schema;
use crate::tool::{AnyTool, Call, CallWork, Definition, Example, Prepared, ToolEffect};

/// One tool of the set.
pub(super) trait GuideTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + Serialize + JsonSchema + Send + Sync + 'static;
    /// What a client gets under `data`.
    type Data: Serialize + JsonSchema + Send + 'static;

    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    /// See [`crate::Tool::CONTENT`].
    const CONTENT: &'static [&'static str];
    const EFFECT: ToolEffect;
    const EXAMPLES: &'static [Example];
    /// Whether it may ask the agent.
    const MAY_ASK: MayAsk = MayAsk::No;

    /// Does what it can without an answer. Runs on the blocking pool.
    fn step(
        arguments: &Self::Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Self::Data>>, Failure>;
}

/// Whether a tool may ask the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MayAsk {
    No,
    Yes,
}

/// What a step is given.
pub(super) struct StepContext<'call> {
    pub(super) state: &'call GuideState,
    /// The way to the files of the client whose call it is.
    pub(super) bridge: &'call ClientBridge,
    /// The client that makes the call.
    pub(super) account: &'call str,
    /// The budget in which its bytes are counted.
    pub(super) room: Option<&'call ReplyRoom>,
    /// The statistics of every client.
    pub(super) client_stats: &'call StatsTable,
    pub(super) now: Now,
    /// Where to continue, if the agent was asked before.
    pub(super) resume: Option<Resume>,
    /// The client to ask.
    pub(super) agent: ReadyAnswer,
}

/// Puts a tool into its erased form.
pub(super) fn guide_tool<T: GuideTool>(state: Option<Arc<GuideState>>) -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition: Definition {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            content: T::CONTENT,
            effect: T::EFFECT,
            roots: &[],
            input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<Success<T::Data>>())),
            large_replies: false,
            examples: T::EXAMPLES,
            method_of: None,
            form: crate::tool::ReplyForm::Chosen,
        },
        state,
        tool: PhantomData,
    })
}

struct Erased<T> {
    definition: Definition,
    state: Option<Arc<GuideState>>,
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
        _limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        let arguments: T::Arguments =
            arguments::decode(&self.definition.input, arguments, Slips::Refused)?;
        let state = self.state.clone();
        let patience = state.as_ref().map(|state| state.sampling_timeout);
        Ok(match T::MAY_ASK {
            MayAsk::No => Prepared {
                timeout: request_timeout,
                work: CallWork::Blocking(Box::new(move |call: &Call| {
                    alone::<T>(&arguments, state, call)
                })),
            },
            MayAsk::Yes => Prepared {
                timeout: request_timeout.saturating_add(patience.unwrap_or_default()),
                work: CallWork::Asking(Box::new(move |call, admission| {
                    Box::pin(converse::<T>(arguments, state, call, admission))
                })),
            },
        })
    }
}

/// A call that never asks the client.
fn alone<T: GuideTool>(
    arguments: &T::Arguments,
    state: Option<Arc<GuideState>>,
    call: &Call,
) -> Result<EncodedReply, Failure> {
    let state = open(state)?;
    let bridge = state.bridge_of(&call.caller);
    let context = StepContext {
        state: &state,
        bridge: &bridge,
        account: &call.caller.account,
        room: call.caller.room.as_deref(),
        client_stats: &call.client_stats,
        now: Now::read(),
        resume: None,
        agent: ReadyAnswer::default(),
    };
    match step::<T>(arguments, context, &call.caller)? {
        StepOutcome::Done(success) => halves(&success, |_| None, call.replies),
        StepOutcome::Waiting(question) => Err(Failure::Internal {
            reason: format!("{} may not ask for {}", T::NAME, question.path),
        }),
    }
}

/// Returns the state. It is missing only if tools are listed and not called.
pub(super) fn open(state: Option<Arc<GuideState>>) -> Result<Arc<GuideState>, Failure> {
    state.ok_or_else(|| Failure::Internal {
        reason: "the guide set has no project".to_owned(),
    })
}

/// Takes one step and logs the outcome.
pub(super) fn step<T: GuideTool>(
    arguments: &T::Arguments,
    mut context: StepContext<'_>,
    caller: &Caller,
) -> Result<StepOutcome<Success<T::Data>>, Failure> {
    let (state, bridge) = (context.state, context.bridge);
    let outcome = T::step(arguments, &mut context);
    match &outcome {
        Ok(StepOutcome::Done(success)) => {
            state.announce();
            tell_success::<T>(&success.paths, caller);
        }
        Ok(StepOutcome::Waiting(question)) => {
            tracing::trace!(operation = T::NAME, path = %question.path, client = &*caller.name, "asking the agent");
        }
        Err(failure) => tell_denied::<T>(failure, bridge, caller),
    }
    outcome
}

fn tell_success<T: GuideTool>(paths: &[String], caller: &Caller) {
    for path in paths {
        tracing::trace!(
            operation = T::NAME,
            path,
            result = "ok",
            client = &*caller.name,
            "guide operation"
        );
    }
}

/// Logs that the agent was denied access on its side.
fn tell_denied<T: GuideTool>(failure: &Failure, bridge: &ClientBridge, caller: &Caller) {
    let Failure::Guide(error) = failure else {
        return;
    };
    if error.kind() == ErrorType::Permission {
        let allowed: Vec<&str> = bridge.validator().policy().allowed().collect();
        tracing::warn!(
            operation = T::NAME,
            path = error.path(),
            result = "permission",
            client = &*caller.name,
            allowed = allowed.join(","),
            "the agent was denied access"
        );
    }
}
