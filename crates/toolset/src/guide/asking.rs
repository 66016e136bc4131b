//! Asking the client for the agent's files: by a request of ours while the call runs (revisions up to 2025-11-25), or by
//! a result that names what is missing (2026-07-28). The call goes the same steps either way.
//!
//! In the second way nothing is remembered here: the client carries our state, sealed, and any replica with the same
//! key goes on. The seal binds it to the tool and its arguments, and it expires with the time the agent has to answer.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use std::sync::Arc;
use std::time::Duration;

use guide::{
    Agent, AgentQuestion, AskResult, ContentShape, Error, Lack, Now, PathInfo, Resume, StepOutcome,
    Subject,
};
use ops::text::encoding::from_base64;
use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, InputRequest, InputRequests,
    InputRequiredResult, RequestStateError, SamplingMessage, SealOptions,
};
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::desk::{Desk, QUESTIONS_MAX};
use super::tool::{GuideTool, Visit, open, step};
use super::{listed, words};
use crate::admit::Gate;
use crate::client::{Answers, AskBy, Caller};
use crate::face::Failure;
use crate::reply::halves;
use crate::tool::{Call, Ended};

/// The name of our one question in an input-required result.
const QUESTION: &str = "agent_file";
/// The request by which a client is asked to let its model answer.
const SAMPLING: &str = "sampling/createMessage";

/// Brings the agent's answer, where it is there already.
#[derive(Debug, Default)]
pub(super) struct Courier(Option<Answer>);

impl Agent for Courier {
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
        listed::parse(answer)
    }
}

/// What the client carries for us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct State {
    asked_at: f64,
    looked_at: f64,
    shape: Asking,
    lack: Option<Lacking>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asking {
    Text,
    Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Lacking {
    Children,
    Files,
    Changes,
    Bytes,
}

impl From<Resume> for State {
    fn from(resume: Resume) -> State {
        State {
            asked_at: resume.asked_at,
            looked_at: resume.looked_at,
            shape: match resume.shape {
                ContentShape::Text => Asking::Text,
                ContentShape::Bytes => Asking::Bytes,
            },
            lack: resume.lack.map(|lack| match lack {
                Lack::Children => Lacking::Children,
                Lack::Files => Lacking::Files,
                Lack::Changes => Lacking::Changes,
                Lack::Bytes => Lacking::Bytes,
            }),
        }
    }
}

impl From<State> for Resume {
    fn from(state: State) -> Resume {
        Resume {
            asked_at: state.asked_at,
            looked_at: state.looked_at,
            shape: match state.shape {
                Asking::Text => ContentShape::Text,
                Asking::Bytes => ContentShape::Bytes,
            },
            lack: state.lack.map(|lack| match lack {
                Lacking::Children => Lack::Children,
                Lacking::Files => Lack::Files,
                Lacking::Changes => Lack::Changes,
                Lacking::Bytes => Lack::Bytes,
            }),
        }
    }
}

/// A call that may ask the agent, from its first step to its end.
pub(super) async fn converse<T: GuideTool>(
    arguments: T::Arguments,
    desk: Option<Arc<Desk>>,
    call: Call,
    gate: &Gate,
) -> Result<Ended, Failure> {
    let desk = open(desk)?;
    let caller = call.caller;
    let arguments = Arc::new(arguments);
    let mut talk = Conversation::begin(&desk, &caller, binding::<T>(&arguments))?;
    loop {
        let (desk, own) = (Arc::clone(&desk), (Arc::clone(&arguments), caller.clone()));
        let tallies = Arc::clone(&call.tallies);
        let (resume, agent) = (talk.resume, Courier(talk.answer.take()));
        let looked = gate.run(&caller.account, move || {
            let (arguments, caller) = own;
            let now = Now::read();
            let visit = Visit {
                desk: &desk,
                account: &caller.account,
                tallies: &tallies,
                now,
                resume,
                agent,
            };
            (now.wall, step::<T>(&arguments, visit, &caller))
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

/// What a state is good for: this tool with these arguments.
fn binding<T: GuideTool>(arguments: &T::Arguments) -> String {
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    format!("guide/{}/{arguments}", T::NAME)
}

/// Where a call stands with the agent.
struct Conversation<'call> {
    desk: &'call Desk,
    caller: &'call Caller,
    binding: String,
    resume: Option<Resume>,
    answer: Option<Answer>,
}

impl<'call> Conversation<'call> {
    /// Begins, or goes on where the client brings our state back.
    fn begin(
        desk: &'call Desk,
        caller: &'call Caller,
        binding: String,
    ) -> guide::Result<Conversation<'call>> {
        let mut talk = Conversation {
            desk,
            caller,
            binding,
            resume: None,
            answer: None,
        };
        if let Some(Answers { state, responses }) = &caller.answers {
            talk.resume = Some(talk.opened(state)?);
            talk.answer = responses.get(QUESTION).map(Answer::read);
        }
        Ok(talk)
    }

    fn opened(&self, state: &str) -> guide::Result<Resume> {
        let opened = self
            .desk
            .seal
            .open_json_with::<State>(state, self.binding.as_bytes());
        match opened {
            Ok(state) => Ok(Resume::from(state)),
            // The seal is ours, so it may be said that it is only late.
            Err(RequestStateError::Expired) => Err(Error::Timeout {
                path: String::new(),
                seconds: self.desk.sampling_timeout.as_secs(),
            }),
            Err(_) => Err(Error::Violation {
                path: String::new(),
                violation: guide::PolicyViolation::ForgedState,
                leads_to: None,
                allowed: Vec::new(),
            }),
        }
    }

    /// Asks: the call ends with the question, or goes on with whatever came.
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
        let sealed = self
            .desk
            .seal
            .seal_json_with(&State::from(resume), &options);
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
    ) -> Result<Option<Answer>, Failure> {
        let turn = self.desk.questions.try_acquire();
        let _turn = turn.map_err(|_| Error::Busy {
            limit: QUESTIONS_MAX,
        })?;
        let params = serde_json::to_value(params(question)).map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })?;
        let Some(mut open) = self.caller.client.ask(SAMPLING, params).await else {
            return Ok(Some(Answer::received(None)));
        };
        tokio::select! {
            biased;
            () = self.desk.arrival(question, resume.looked_at) => {
                open.withdraw("the content was handed over");
                Ok(None)
            }
            answered = open.answer() => Ok(Some(Answer::received(answered))),
            () = tokio::time::sleep(self.left(resume.asked_at)) => {
                open.withdraw("it took too long");
                Ok(Some(Answer::Late(self.desk.sampling_timeout.as_secs())))
            }
        }
    }

    fn left(&self, asked_at: f64) -> Duration {
        let passed = Duration::try_from_secs_f64(Now::read().wall - asked_at);
        self.desk
            .sampling_timeout
            .saturating_sub(passed.unwrap_or_default())
    }
}

/// Where to go on with the answer to a question that was asked after a look into the cache.
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
    let prompt = words::prompt(question);
    let params = CreateMessageRequestParams::new(
        vec![SamplingMessage::user_text(prompt)],
        words::MAX_TOKENS,
    );
    params.with_system_prompt(words::SYSTEM_PROMPT)
}
