//! Interprets a client's answer to a question, for both ways of asking. Only what begins with the question's marker is
//! content; everything else is a failure, because models without files answer, too.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; it is the way to ask that clients have"
)]

use guide::{AgentQuestion, AskResult, ContentShape, Error, Mute, Subject, Told};
use rmcp::model::{CreateMessageResult, ErrorCode, ErrorData, SamplingMessageContentBlock};
use serde_json::Value;

use super::prompts;

/// The code of the JSON-RPC error that a client sends when its user declines.
const DECLINED: ErrorCode = ErrorCode(-1);
/// The reason given if an answer is neither a sampling result nor an error.
const NO_RESULT: &str = "its answer is no sampling result";

/// The reason given if the model refused to answer.
const REFUSED: &str = "it refused to answer";
/// The reason given if an answer has pictures, sounds or tool calls instead of text.
const NO_TEXT: &str = "its answer has no text";

/// How many characters of an answer without content a message repeats.
const SAID_MAX: usize = 200;

/// What came back for a question.
#[derive(Debug, Clone)]
pub(super) enum AgentAnswer {
    /// A sampling result.
    Sampled(Box<CreateMessageResult>),
    /// A JSON-RPC error.
    Refused(ErrorData),
    /// Nothing readable, and why.
    Useless(String),
    /// Nothing within so many seconds.
    Late(u64),
    /// Nothing, because there is no way to ask.
    Mute(Mute),
}

/// An answer, with the number of the question that it answers.
#[derive(Debug, Clone)]
pub(super) struct MarkedAnswer {
    pub(super) answer: AgentAnswer,
    pub(super) marker: u32,
}

impl MarkedAnswer {
    /// What it means for the question it answers.
    pub(super) fn about(self, question: &AgentQuestion) -> AskResult {
        self.answer.about(question, self.marker)
    }
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

    fn about(self, question: &AgentQuestion, marker: u32) -> AskResult {
        let path = question.path.to_string();
        match self {
            AgentAnswer::Sampled(result) => sampled(question, marker, *result),
            AgentAnswer::Refused(error) => AskResult::Failed(refusal(question, &error)),
            AgentAnswer::Useless(said) => AskResult::Failed(Error::AgentFailed { path, said }),
            AgentAnswer::Late(seconds) => AskResult::Failed(Error::Timeout { path, seconds }),
            AgentAnswer::Mute(why) => AskResult::Failed(Error::Unsupported { path, why }),
        }
    }
}

/// What an error of the client means. It is never content, so its beginning may be quoted.
fn refusal(question: &AgentQuestion, error: &ErrorData) -> Error {
    let (path, said) = (question.path.to_string(), first_line(&error.message));
    let plain = said.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| plain.starts_with(word));
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => Error::Unsupported {
            path,
            why: Mute::Client,
        },
        DECLINED => Error::PermissionDenied { path, said },
        _ if begins(&["file not found", "directory not found", "enoent"]) => {
            Error::NotFound { path, above: None }
        }
        _ if begins(&["permission denied", "eacces"]) => Error::PermissionDenied { path, said },
        _ => Error::AgentFailed { path, said },
    }
}

/// How an answer ended.
enum AnswerEnding {
    /// Complete.
    Whole,
    /// At the limit of what the model may write.
    Cut,
    /// Without content, because the model refused.
    Refused,
    /// With a tool call instead of an answer.
    Unfinished,
}

impl AnswerEnding {
    /// Some clients use the protocol's words, others pass on their model's.
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
fn sampled(question: &AgentQuestion, marker: u32, result: CreateMessageResult) -> AskResult {
    let path = question.path.to_string();
    let failed = |said: &str| Error::AgentFailed {
        path: path.clone(),
        said: said.to_owned(),
    };
    match AnswerEnding::of(result.stop_reason.as_deref()) {
        AnswerEnding::Cut => AskResult::Failed(Error::Cut { path }),
        AnswerEnding::Refused => AskResult::Failed(Error::PermissionDenied {
            path,
            said: REFUSED.to_owned(),
        }),
        AnswerEnding::Unfinished => AskResult::Failed(failed(NO_TEXT)),
        AnswerEnding::Whole => match written(result.message.content.into_vec()) {
            Some((text, media)) => meaning(question, marker, &text, media),
            None => AskResult::Failed(failed(NO_TEXT)),
        },
    }
}

/// Returns the text of an answer, and the image or sound in it, which is base64 already. Programs may write the marker as
/// a block of its own.
fn written(blocks: Vec<SamplingMessageContentBlock>) -> Option<(String, Option<String>)> {
    let (mut texts, mut media) = (None::<String>, None);
    for block in blocks {
        match block {
            SamplingMessageContentBlock::Text(text) => match &mut texts {
                None => texts = Some(text.text),
                Some(before) => {
                    if !before.contains('\n') {
                        before.push('\n');
                    }
                    before.push_str(&text.text);
                }
            },
            SamplingMessageContentBlock::Image(image) => media = Some(image.data),
            SamplingMessageContentBlock::Audio(audio) => media = Some(audio.data),
            _ => {}
        }
    }
    texts.map(|text| (text, media))
}

/// What the text of an answer means: content behind the marker, or one of the sentences that the question dictates.
fn meaning(question: &AgentQuestion, marker: u32, text: &str, media: Option<String>) -> AskResult {
    let (path, line) = (question.path.to_string(), text.trim());
    if line == prompts::not_found(question) {
        return AskResult::Failed(Error::NotFound { path, above: None });
    }
    if line == prompts::denied(question) {
        let said = line.to_owned();
        return AskResult::Failed(Error::PermissionDenied { path, said });
    }
    if matches!(question.subject, Subject::File { .. }) && line == prompts::not_text(question) {
        return AskResult::NotText;
    }
    let marker = prompts::marker(question, marker);
    match behind_marker(text.trim_start(), &marker) {
        Some(told) => AskResult::Answered(with_media(question, told, media)),
        None => AskResult::Failed(Error::Unmarked {
            path,
            marker,
            said: first_line(line),
        }),
    }
}

/// Returns what follows the marker, and what the marker's line says about the file.
fn behind_marker(text: &str, marker: &str) -> Option<Told> {
    let rest = text.strip_prefix(marker)?;
    let (line, content) = rest.split_once('\n').unwrap_or((rest, ""));
    let mut told = Told {
        content: content.to_owned(),
        ..Told::default()
    };
    if !line.is_empty() && !line.starts_with([' ', '\r', '\t']) {
        return None;
    }
    for word in line.split_whitespace() {
        match word.split_once('=')? {
            ("mtime", seconds) => told.mtime = Some(seconds.parse().ok().filter(is_time)?),
            ("size", bytes) => told.size = Some(bytes.parse().ok()?),
            _ => return None,
        }
    }
    Some(told)
}

fn is_time(seconds: &f64) -> bool {
    seconds.is_finite() && *seconds >= 0.0
}

/// Accepts an image or a sound as the requested bytes.
fn with_media(question: &AgentQuestion, told: Told, media: Option<String>) -> Told {
    let wants_bytes = matches!(
        question.subject,
        Subject::File {
            shape: ContentShape::Bytes,
            ..
        }
    );
    match media.filter(|_| wants_bytes && told.content.trim().is_empty()) {
        Some(content) => Told { content, ..told },
        None => told,
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(SAID_MAX).collect()
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

    #[test]
    fn content_stands_behind_its_marker() {
        let marker = r#"FILE 0000007f "docs/a""#;
        let told = |answer: &str| behind_marker(answer, marker);
        let content = |answer: &str| told(answer).map(|told| told.content);
        assert_eq!(
            content("FILE 0000007f \"docs/a\"\n# A\n").as_deref(),
            Some("# A\n")
        );
        assert_eq!(
            content("FILE 0000007f \"docs/a\"\r\n\n").as_deref(),
            Some("\n")
        );
        assert_eq!(content("FILE 0000007f \"docs/a\"").as_deref(), Some(""));
        let timed = told("FILE 0000007f \"docs/a\" mtime=17.5 size=3\nabc").unwrap();
        assert_eq!(timed.mtime, Some(17.5));
        assert_eq!(timed.size, Some(3));
        for other in [
            "# A",
            "FILE 0000007e \"docs/a\"\n# A",
            "FILE 0000007f \"docs/b\"\n# A",
            "FILE 0000007f \"docs/a\"x\n# A",
            "FILE 0000007f \"docs/a\" here it is\n# A",
            "FILE 0000007f \"docs/a\" mtime=-1\n# A",
            "FILE 0000007f \"docs/a\" mtime=NaN\n# A",
            "```\nFILE 0000007f \"docs/a\"\n# A\n```",
            "Sure! FILE 0000007f \"docs/a\"\n# A",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
