//! What a client answers to a question, in either way of asking, and what it means. An answer that is not a sampling
//! result is a failure, never content.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use guide::{AgentQuestion, AskResult, ContentShape, Error, Subject};
use rmcp::model::{CreateMessageResult, ErrorCode, ErrorData, SamplingMessageContentBlock};
use serde_json::Value;

/// The code of the JSON-RPC error that a client sends when its user declines.
const DECLINED: ErrorCode = ErrorCode(-1);
/// The reason given if an answer is neither a sampling result nor an error.
const NO_RESULT: &str = "its answer is no sampling result";

/// The reason given if the model refused to answer.
const REFUSED: &str = "it refused to answer";
/// The reason given if an answer has pictures, sounds or tool calls instead of text.
const NO_TEXT: &str = "its answer has no text";

/// What came back for a question.
#[derive(Debug)]
pub(super) enum AgentAnswer {
    /// A sampling result.
    Sampled(Box<CreateMessageResult>),
    /// A JSON-RPC error.
    Refused(ErrorData),
    /// Nothing that could be read, and why.
    Useless(String),
    /// Nothing within so many seconds.
    Late(u64),
}

impl AgentAnswer {
    /// Reads what a client puts into a call: a result, or an error with or without its envelope.
    pub(super) fn read(value: &Value) -> AgentAnswer {
        if let Ok(result) = serde_json::from_value(value.clone()) {
            return AgentAnswer::Sampled(Box::new(result));
        }
        let error = value.get("error").unwrap_or(value);
        match serde_json::from_value(error.clone()) {
            Ok(error) => AgentAnswer::Refused(error),
            Err(_) => AgentAnswer::Useless(NO_RESULT.to_owned()),
        }
    }

    /// Reads the reply to a request of ours; `None` if the connection is closed.
    pub(super) fn received(answered: Option<Result<Value, ErrorData>>) -> AgentAnswer {
        match answered {
            Some(Ok(result)) => match serde_json::from_value(result) {
                Ok(result) => AgentAnswer::Sampled(Box::new(result)),
                Err(_) => AgentAnswer::Useless(NO_RESULT.to_owned()),
            },
            Some(Err(error)) => AgentAnswer::Refused(error),
            None => AgentAnswer::Useless("the connection was closed".to_owned()),
        }
    }

    /// What it means for the question it answers.
    pub(super) fn about(self, question: &AgentQuestion) -> AskResult {
        match self {
            AgentAnswer::Sampled(result) => sampled(question, *result),
            AgentAnswer::Refused(error) => AskResult::Failed(refusal(question, &error)),
            AgentAnswer::Useless(reason) => AskResult::Failed(question.failed(&reason)),
            AgentAnswer::Late(seconds) => AskResult::Failed(Error::Timeout {
                path: question.path.to_string(),
                seconds,
            }),
        }
    }
}

/// What an error of the client means.
fn refusal(question: &AgentQuestion, error: &ErrorData) -> Error {
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

/// How an answer ended.
enum AnswerEnding {
    /// Complete.
    Whole,
    /// At the limit of what the model may write.
    Cut,
    /// Before it began, because the model refused.
    Refused,
    /// With a tool call instead of an answer.
    Unfinished,
}

impl AnswerEnding {
    /// Some clients write the protocol's words, others pass on those of their model.
    fn of(stop_reason: Option<&str>) -> AnswerEnding {
        let plain = stop_reason.unwrap_or_default().replace('_', "");
        match plain.to_ascii_lowercase().as_str() {
            "maxtokens"
            | "length"
            | "maxoutputtokens"
            | "modelcontextwindowexceeded"
            | "pauseturn"
            | "incomplete"
            | "error"
            | "cancelled" => AnswerEnding::Cut,
            "refusal" | "contentfilter" | "safety" | "recitation" => AnswerEnding::Refused,
            // The model wants to call a tool first; what it wrote is not the answer yet.
            "tooluse" | "toolcalls" | "functioncall" => AnswerEnding::Unfinished,
            _ => AnswerEnding::Whole,
        }
    }
}

/// What a sampling result says.
fn sampled(question: &AgentQuestion, result: CreateMessageResult) -> AskResult {
    let path = question.path.to_string();
    match AnswerEnding::of(result.stop_reason.as_deref()) {
        AnswerEnding::Cut => AskResult::Failed(Error::Cut { path }),
        AnswerEnding::Refused => AskResult::Failed(Error::PermissionDenied {
            path,
            said: REFUSED.to_owned(),
        }),
        AnswerEnding::Unfinished => AskResult::Failed(question.failed(NO_TEXT)),
        AnswerEnding::Whole => match written(question, result.message.content.into_vec()) {
            Some(text) => AskResult::Answered(text),
            None => AskResult::Failed(question.failed(NO_TEXT)),
        },
    }
}

/// Returns the text of an answer. If bytes were asked for, an image or a sound will do: it is base64 already.
fn written(question: &AgentQuestion, blocks: Vec<SamplingMessageContentBlock>) -> Option<String> {
    let (mut texts, mut media) = (None::<String>, None);
    for block in blocks {
        match block {
            SamplingMessageContentBlock::Text(text) => {
                texts.get_or_insert_default().push_str(&text.text);
            }
            SamplingMessageContentBlock::Image(image) => media = Some(image.data),
            SamplingMessageContentBlock::Audio(audio) => media = Some(audio.data),
            _ => {}
        }
    }
    match question.subject {
        Subject::File {
            shape: ContentShape::Bytes,
            ..
        } => media.or(texts),
        Subject::File { .. } | Subject::Directory { .. } => texts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_known_in_the_words_of_several_models() {
        for cut in [
            "maxTokens",
            "max_tokens",
            "length",
            "pause_turn",
            "incomplete",
        ] {
            assert!(
                matches!(AnswerEnding::of(Some(cut)), AnswerEnding::Cut),
                "{cut}"
            );
        }
        for unfinished in ["toolUse", "tool_calls"] {
            assert!(matches!(
                AnswerEnding::of(Some(unfinished)),
                AnswerEnding::Unfinished
            ));
        }
        for refused in ["refusal", "content_filter", "SAFETY"] {
            assert!(matches!(
                AnswerEnding::of(Some(refused)),
                AnswerEnding::Refused
            ));
        }
        for whole in [None, Some("endTurn"), Some("stopSequence"), Some("other")] {
            assert!(
                matches!(AnswerEnding::of(whole), AnswerEnding::Whole),
                "{whole:?}"
            );
        }
    }
}
