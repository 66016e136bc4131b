//! What a client sends back for a question, in either way of asking, and what it means. What is no sampling result is
//! a failure, never content.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use guide::{Asked, Error, Question};
use rmcp::ServiceError;
use rmcp::model::{
    ClientResult, CreateMessageResult, ErrorCode, ErrorData, SamplingMessageContentBlock,
};
use serde_json::Value;

/// What the JSON-RPC error of a user who declines has for a code.
const DECLINED: ErrorCode = ErrorCode(-1);
/// What is said of an answer in another form than that of a sampling result or an error.
const NO_RESULT: &str = "its answer is no sampling result";

/// What came back for a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// A sampling result.
    Sampled(Box<CreateMessageResult>),
    /// A JSON-RPC error.
    Refused(ErrorData),
    /// Nothing that could be read, and why.
    Useless(String),
    /// Nothing within so many seconds.
    Late(u64),
}

impl Answer {
    /// Reads what a client puts into a call: a result, or an error with or without its envelope.
    pub(super) fn read(value: &Value) -> Answer {
        if let Ok(result) = serde_json::from_value(value.clone()) {
            return Answer::Sampled(Box::new(result));
        }
        let error = value.get("error").unwrap_or(value);
        match serde_json::from_value(error.clone()) {
            Ok(error) => Answer::Refused(error),
            Err(_) => Answer::Useless(NO_RESULT.to_owned()),
        }
    }

    /// What became of a request of ours.
    pub(super) fn received(answered: Result<ClientResult, ServiceError>) -> Answer {
        match answered {
            Ok(ClientResult::CreateMessageResult(result)) => Answer::Sampled(result),
            Ok(_) => Answer::Useless(NO_RESULT.to_owned()),
            Err(ServiceError::McpError(error)) => Answer::Refused(error),
            Err(other) => Answer::Useless(other.to_string()),
        }
    }

    /// What it means for the question it answers.
    pub(super) fn about(self, question: &Question) -> Asked {
        match self {
            Answer::Sampled(result) => Asked::Answered(text(*result)),
            Answer::Refused(error) => Asked::Failed(refusal(question, &error)),
            Answer::Useless(reason) => Asked::Failed(question.failed(&reason)),
            Answer::Late(seconds) => Asked::Failed(Error::Timeout {
                path: question.path.to_string(),
                seconds,
            }),
        }
    }
}

/// What an error of the client means.
fn refusal(question: &Question, error: &ErrorData) -> Error {
    let path = question.path.to_string();
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => Error::Unsupported { path },
        DECLINED => Error::PermissionDenied {
            path,
            said: error.message.to_string(),
        },
        _ => question.failed(&error.message),
    }
}

/// The text of an answer; of an image or a sound its bytes, which are base64 already.
fn text(result: CreateMessageResult) -> String {
    let blocks = result.message.content.into_vec().into_iter();
    let texts = blocks.map(|block| match block {
        SamplingMessageContentBlock::Text(text) => text.text,
        SamplingMessageContentBlock::Image(image) => image.data,
        SamplingMessageContentBlock::Audio(audio) => audio.data,
        _ => String::new(),
    });
    texts.collect()
}
