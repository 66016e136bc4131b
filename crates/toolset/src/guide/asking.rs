//! Asking the client for the agent's files: by a request of ours while the call runs (revisions up to 2025-11-25), or by
//! a result that names what is missing (2026-07-28). The call takes the same steps either way.
//!
//! In the second way the server keeps nothing: the client carries our sealed state, and any replica with the same key
//! can continue. The seal binds the state to the tool and its arguments; it expires with the time to answer.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use std::sync::Arc;
use std::time::Duration;

use guide::{
    Agent, AgentQuestion, AskResult, ContentShape, Error, Now, PathInfo, Resume, StepOutcome,
    Subject,
};
use ops::text::encoding::from_base64;
use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, InputRequest, InputRequests,
    InputRequiredResult, RequestStateError, SamplingMessage, SealOptions,
};

use super::answer::AgentAnswer;
use super::state::{GuideState, QUESTIONS_MAX};
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

/// Hands over the agent's answer, if there already is one.
#[derive(Debug, Default)]
pub(super) struct ReadyAnswer(Option<AgentAnswer>);

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
    let arguments = Arc::new(arguments);
    let mut talk = Conversation::begin(&state, &caller, binding::<T>(&arguments))?;
    loop {
        let (state, own) = (Arc::clone(&state), (Arc::clone(&arguments), caller.clone()));
        let client_stats = Arc::clone(&call.client_stats);
        let (resume, agent) = (talk.resume, ReadyAnswer(talk.answer.take()));
        let looked = admission.run(&caller.allowance, move || {
            let (arguments, caller) = own;
            let now = Now::read();
            let context = StepContext {
                state: &state,
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

/// What a state is valid for: this tool with these arguments.
fn binding<T: GuideTool>(arguments: &T::Arguments) -> String {
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    format!("guide/{}/{arguments}", T::NAME)
}

/// How far a call has come with the agent.
struct Conversation<'call> {
    state: &'call GuideState,
    caller: &'call Caller,
    binding: String,
    resume: Option<Resume>,
    answer: Option<AgentAnswer>,
}

impl<'call> Conversation<'call> {
    /// Begins a call, or continues one if the client sends our state back.
    fn begin(
        state: &'call GuideState,
        caller: &'call Caller,
        binding: String,
    ) -> guide::Result<Conversation<'call>> {
        let mut talk = Conversation {
            state,
            caller,
            binding,
            resume: None,
            answer: None,
        };
        if let Some(Answers { state, responses }) = &caller.answers {
            talk.resume = Some(talk.opened(state)?);
            talk.answer = responses.get(QUESTION).map(AgentAnswer::read);
        }
        Ok(talk)
    }

    fn opened(&self, state: &str) -> guide::Result<Resume> {
        let opened = self
            .state
            .seal
            .open_json_with::<Resume>(state, self.binding.as_bytes());
        match opened {
            Ok(resume) => Ok(resume),
            // The seal is ours, so the message may say that the answer is only late.
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

    /// Asks the client. The call ends with the question, or continues with the answer.
    async fn ask(
        &mut self,
        question: &AgentQuestion,
        looked_at: f64,
    ) -> Result<Option<Ended>, Failure> {
        let resume = resumed(question, looked_at, self.resume);
        self.resume = Some(resume);
        match self.caller.client.asking() {
            AskBy::Never => Err(Error::Unsupported {
                path: question.path.to_string(),
            }
            .into()),
            AskBy::Result => self.input_required(question, resume).map(Some),
            AskBy::Request => {
                self.answer = self.request(question, resume).await?;
                Ok(None)
            }
        }
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
        let request = InputRequest::CreateMessage(CreateMessageRequest::new(params(question)));
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
        let slot = self.state.questions.try_acquire();
        let _turn = slot.map_err(|_| Error::Busy {
            limit: QUESTIONS_MAX,
        })?;
        let params = serde_json::to_value(params(question)).map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })?;
        let Some(mut open) = self.caller.client.ask(SAMPLING, params).await else {
            return Ok(Some(AgentAnswer::received(None)));
        };
        tokio::select! {
            biased;
            () = self.state.arrival(question, resume.looked_at) => {
                open.withdraw("the content was handed over");
                Ok(None)
            }
            answered = open.answer() => Ok(Some(AgentAnswer::received(answered))),
            () = tokio::time::sleep(self.left(resume.asked_at)) => {
                open.withdraw("it took too long");
                Ok(Some(AgentAnswer::Late(self.state.sampling_timeout.as_secs())))
            }
        }
    }

    fn left(&self, asked_at: f64) -> Duration {
        let passed = Duration::try_from_secs_f64(Now::read().wall - asked_at);
        self.state
            .sampling_timeout
            .saturating_sub(passed.unwrap_or_default())
    }
}

/// Where the call continues with the answer to a question.
fn resumed(question: &AgentQuestion, looked_at: f64, earlier: Option<Resume>) -> Resume {
    Resume {
        asked_at: earlier.map_or(looked_at, |earlier| earlier.asked_at),
        looked_at,
        shape: match question.subject {
            Subject::File { shape, .. } => shape,
            Subject::Directory { .. } => ContentShape::Text,
        },
        lack: question.lack.or(earlier.and_then(|earlier| earlier.lack)),
    }
}

/// The question in words.
fn params(question: &AgentQuestion) -> CreateMessageRequestParams {
    let prompt = prompts::prompt(question);
    let params = CreateMessageRequestParams::new(
        vec![SamplingMessage::user_text(prompt)],
        prompts::MAX_TOKENS,
    );
    params.with_system_prompt(prompts::SYSTEM_PROMPT)
}
