//! Asking the client for the agent's files: by a request of ours while the call runs (revisions up to 2025-11-25), or by
//! a result that names what is missing (2026-07-28). The call takes the same steps either way.
//!
//! In the second way the client carries our sealed state, and any replica with the same key can continue. The seal binds
//! the state to the client, the tool and its arguments; it expires with the time to answer.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use guide::{
    Agent, AgentQuestion, AskResult, ClientBridge, ContentShape, Error, Mute, Now, PathInfo,
    Resume, StepOutcome, Subject,
};
use ops::text::encoding::from_base64;
use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, InputRequest, InputRequests,
    InputRequiredResult, MetaObject, RequestMetaObject, RequestStateError, SamplingMessage,
    SealOptions,
};

use super::answer::{AgentAnswer, MarkedAnswer};
use super::questions::{Joined, OtherAnswer, Turn, new_marker};
use super::state::GuideState;
use super::tool::{GuideTool, StepContext, open, step};
use super::{listing_json, prompts};
use crate::admission::Admission;
use crate::client::{Answers, AskBy, Caller};
use crate::contract::Failure;
use crate::reply::halves;
use crate::tool::{Call, Ended};

/// The name of our one question in an input-required result.
const QUESTION: &str = "agent_file";
/// The request by which a client is asked to let its model answer.
const SAMPLING: &str = "sampling/createMessage";

/// Where a question stands in its request's `_meta`, for callbacks that are programs.
const META: &str = "io.github.mcp-filesystem/question";
/// How often a client is told that its call still waits. Each time, its own time limit starts anew.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// How long a call waits for the answer that its client carries to another call: less than the answer may take, because
/// the client may have given up that other call.
const CARRIED_WAIT: Duration = Duration::from_secs(10);

/// Hands over the agent's answer, if there is one already.
#[derive(Debug, Default)]
pub(super) struct ReadyAnswer(Option<MarkedAnswer>);

impl Agent for ReadyAnswer {
    fn ask(&mut self, question: &AgentQuestion) -> AskResult {
        let answer = self.0.take();
        answer.map_or(AskResult::Waiting, |answer| answer.about(question))
    }

    fn bytes(&self, answer: &str) -> Result<Vec<u8>, String> {
        from_base64(answer.trim()).map_err(|error| match error {
            ops::Error::InvalidEncoding { reason } => reason,
            other => other.to_string(),
        })
    }

    fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String> {
        listing_json::parse(answer)
    }
}

/// A call that may ask the agent, from its first step to its end.
pub(super) async fn converse<T: GuideTool>(
    arguments: T::Arguments,
    state: Option<Arc<GuideState>>,
    call: Call,
    admission: &Admission,
) -> Result<Ended, Failure> {
    let state = open(state)?;
    let caller = call.caller;
    let bridge = state.bridge_of(&caller);
    let arguments = Arc::new(arguments);
    let binding = binding::<T>(&arguments, &state.sealed_name(&caller));
    let mut talk = Conversation::begin(&state, &caller, &bridge, binding)?;
    loop {
        let (state, own) = (Arc::clone(&state), (Arc::clone(&arguments), caller.clone()));
        let (client_stats, bridge) = (Arc::clone(&call.client_stats), bridge.clone());
        let (resume, answer) = (talk.resume, talk.answer.take());
        let agent = ReadyAnswer(answer.clone());
        let looked = admission.run(&caller.allowance, move || {
            let (arguments, caller) = own;
            let now = Now::read();
            let context = StepContext {
                state: &state,
                bridge: &bridge,
                account: &caller.account,
                room: caller.room.as_deref(),
                client_stats: &client_stats,
                now,
                resume,
                agent,
            };
            (now.wall, step::<T>(&arguments, context, &caller))
        });
        let (looked_at, outcome) = looked.await?;
        // Only now is the content of the answer in the cache for the calls that wait for it.
        talk.settle(answer);
        match outcome? {
            StepOutcome::Done(success) => {
                return halves(&success, |_| None, call.replies).map(Ended::Reply);
            }
            StepOutcome::Waiting(question) => {
                if let Some(ended) = talk.ask(&question, looked_at).await? {
                    return Ok(ended);
                }
            }
        }
    }
}

/// The scope of a state: this client's call of this tool with these arguments.
fn binding<T: GuideTool>(arguments: &T::Arguments, client: &str) -> String {
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    format!("guide/{}/{client:?}/{arguments}", T::NAME)
}

/// How far a call has come with the agent.
struct Conversation<'call> {
    state: &'call GuideState,
    caller: &'call Caller,
    bridge: &'call ClientBridge,
    binding: String,
    resume: Option<Resume>,
    answer: Option<MarkedAnswer>,
    /// The right to the question whose answer the next step gets.
    turn: Option<Turn<'call>>,
    /// How often the client was told that its call still waits.
    told: AtomicU64,
}

impl<'call> Conversation<'call> {
    /// Begins a call, or continues one if the client sends our state back.
    fn begin(
        state: &'call GuideState,
        caller: &'call Caller,
        bridge: &'call ClientBridge,
        binding: String,
    ) -> guide::Result<Conversation<'call>> {
        let mut talk = Conversation {
            state,
            caller,
            bridge,
            binding,
            resume: None,
            answer: None,
            turn: None,
            told: AtomicU64::new(0),
        };
        if let Some(Answers { state, responses }) = &caller.answers {
            let resume = talk.opened(state)?;
            let answer = responses.get(QUESTION).map(AgentAnswer::read);
            talk.answer = answer.map(|answer| MarkedAnswer {
                answer,
                marker: resume.marker,
            });
            talk.turn = talk.state.questions.resume(bridge.owner(), resume.marker);
            talk.resume = Some(resume);
        }
        Ok(talk)
    }

    /// Gives the answer to the calls that wait for the same content, or lets one of them ask.
    fn settle(&mut self, answer: Option<MarkedAnswer>) {
        if let Some(turn) = self.turn.take()
            && let Some(answer) = answer
        {
            turn.settle(answer);
        }
    }

    fn opened(&self, state: &str) -> guide::Result<Resume> {
        let opened = self
            .state
            .seal
            .open_json_with::<Resume>(state, self.binding.as_bytes());
        match opened {
            Ok(resume) => Ok(resume),
            // The seal is ours, so the message may say that the answer came too late.
            Err(RequestStateError::Expired) => Err(Error::Timeout {
                path: String::new(),
                seconds: self.state.sampling_timeout.as_secs(),
            }),
            Err(_) => Err(Error::Violation {
                path: String::new(),
                violation: guide::PolicyViolation::ForgedState,
                leads_to: None,
                allowed: Vec::new(),
            }),
        }
    }

    /// Asks the client, unless another call of the client has asked the same. The call ends with the question, or
    /// continues with the answer.
    async fn ask(
        &mut self,
        question: &AgentQuestion,
        looked_at: f64,
    ) -> Result<Option<Ended>, Failure> {
        let resume = resumed(question, looked_at, self.resume);
        self.resume = Some(resume);
        let by = self.caller.client.asking();
        if by == AskBy::Never {
            self.answer = Some(answered(resume, AgentAnswer::Mute(self.mute())));
            return Ok(None);
        }
        let (owner, questions) = (self.bridge.owner(), &self.state.questions);
        match questions.join(owner, question, resume.marker)? {
            Joined::Own(turn) if by == AskBy::Result => {
                let ended = self.input_required(question, resume)?;
                turn.carry(self.left(resume.asked_at));
                Ok(Some(ended))
            }
            Joined::Own(turn) => {
                let answer = self.request(question, resume).await?;
                self.answer = answer.map(|answer| answered(resume, answer));
                self.turn = Some(turn);
                Ok(None)
            }
            Joined::Other(other) => {
                self.answer = self.answer_to_other(other, question, resume, by).await;
                Ok(None)
            }
        }
    }

    /// Why the client cannot be asked.
    fn mute(&self) -> Mute {
        if self.caller.client.is_asking_off() {
            Mute::Setting
        } else {
            Mute::Client
        }
    }

    /// Waits for the answer to the same question of another call. Without one the call goes on and may ask itself.
    async fn answer_to_other(
        &self,
        mut other: OtherAnswer,
        question: &AgentQuestion,
        resume: Resume,
        by: AskBy,
    ) -> Option<MarkedAnswer> {
        let left = self.left(resume.asked_at);
        let patience = match by {
            AskBy::Result => left.min(CARRIED_WAIT),
            AskBy::Request | AskBy::Never => left,
        };
        let arrival = self.state.arrival(self.bridge, question, resume.looked_at);
        let waiting = async {
            tokio::select! {
                biased;
                () = arrival => Ok(None),
                answered = other.wait() => Ok(answered),
                () = tokio::time::sleep(patience) => Err(()),
            }
        };
        match self.telling(waiting).await {
            Ok(answered) => answered,
            Err(()) if by == AskBy::Result => {
                let questions = &self.state.questions;
                questions.give_up(self.bridge.owner(), question);
                None
            }
            Err(()) => Some(answered(resume, self.late())),
        }
    }

    /// Waits, and tells the client from time to time that its call still runs.
    async fn telling<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = std::pin::pin!(waiting);
        loop {
            tokio::select! {
                biased;
                done = &mut waiting => return done,
                () = tokio::time::sleep(TELL_EVERY) => {
                    let told = self.told.fetch_add(1, Ordering::Relaxed) + 1;
                    self.caller.client.tell_progress(told * TELL_EVERY.as_secs());
                }
            }
        }
    }

    fn late(&self) -> AgentAnswer {
        AgentAnswer::Late(self.state.sampling_timeout.as_secs())
    }

    /// The result that names what is missing.
    fn input_required(&self, question: &AgentQuestion, resume: Resume) -> Result<Ended, Failure> {
        let options = SealOptions::new()
            .associated_data(self.binding.as_bytes())
            .ttl(self.left(resume.asked_at));
        let sealed = self.state.seal.seal_json_with(&resume, &options);
        let sealed = sealed.map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })?;
        let mut requests = InputRequests::new();
        let params = params(question, resume.marker);
        let request = InputRequest::CreateMessage(CreateMessageRequest::new(params));
        requests.insert(QUESTION.to_owned(), request);
        let result = InputRequiredResult::new(Some(requests), Some(sealed));
        Ok(Ended::Question(Box::new(result)))
    }

    /// Sends a request of ours and waits: for its answer, for what the agent hands over meanwhile, or for time to pass.
    async fn request(
        &self,
        question: &AgentQuestion,
        resume: Resume,
    ) -> Result<Option<AgentAnswer>, Failure> {
        let params = serde_json::to_value(params(question, resume.marker));
        let params = params.map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })?;
        let Some(mut open) = self.caller.client.ask(SAMPLING, params).await else {
            return Ok(Some(AgentAnswer::received(None)));
        };
        let arrival = self.state.arrival(self.bridge, question, resume.looked_at);
        let waiting = async {
            tokio::select! {
                biased;
                () = arrival => {
                    open.withdraw("the content was handed over");
                    None
                }
                answered = open.answer() => Some(AgentAnswer::received(answered)),
                () = tokio::time::sleep(self.left(resume.asked_at)) => {
                    open.withdraw("it took too long");
                    Some(self.late())
                }
            }
        };
        Ok(self.telling(waiting).await)
    }

    fn left(&self, asked_at: f64) -> Duration {
        let passed = Duration::try_from_secs_f64(Now::read().wall - asked_at);
        self.state
            .sampling_timeout
            .saturating_sub(passed.unwrap_or_default())
    }
}

/// Resumes the call with the answer to a question.
fn resumed(question: &AgentQuestion, looked_at: f64, earlier: Option<Resume>) -> Resume {
    Resume {
        asked_at: earlier.map_or(looked_at, |earlier| earlier.asked_at),
        looked_at,
        shape: match question.subject {
            Subject::File { shape, .. } => shape,
            Subject::Directory { .. } => ContentShape::Text,
        },
        lack: question.lack.or(earlier.and_then(|earlier| earlier.lack)),
        marker: new_marker(),
    }
}

/// The answer to the last question of a call.
fn answered(resume: Resume, answer: AgentAnswer) -> MarkedAnswer {
    MarkedAnswer {
        answer,
        marker: resume.marker,
    }
}

/// The question in words, and for programs.
fn params(question: &AgentQuestion, marker: u32) -> CreateMessageRequestParams {
    let prompt = prompts::prompt(question, marker);
    let messages = vec![SamplingMessage::user_text(prompt)];
    let mut params = CreateMessageRequestParams::new(messages, prompts::max_tokens(question));
    let mut meta = MetaObject::new();
    meta.insert(META.to_owned(), prompts::meta(question, marker));
    params.meta = Some(RequestMetaObject(meta));
    params.with_system_prompt(prompts::SYSTEM_PROMPT)
}
