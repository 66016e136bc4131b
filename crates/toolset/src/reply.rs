//! The reply of a call, which is JSON from the start.
//!
//! As a tree of values a large reply would take many times its size as text, so it never becomes one: it is written
//! once, and sent once for each half that the operator wants.

use std::sync::Arc;

use ops::ErrorKind;
use rmcp::model::InputRequiredResult;
use serde::Serialize;

use crate::admission::LATER_MS;
use crate::contract::{Failure, FailureText, Worded};
use crate::deployment::ReplyHalves;
use crate::json;
use crate::json_text::JsonText;
use crate::media::Media;
use crate::reply_message::MessageBuilder;
use crate::streamed_content::StreamedContent;

/// The content of a reply, in the halves that the operator wants sent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EncodedReply {
    /// The whole reply object, as JSON.
    structured: Option<Vec<u8>>,
    text: Option<Text>,
    media: Option<Media>,
    link: Option<ResourceLink>,
    /// The text that takes the place of a mark in a half.
    streamed: Option<Arc<StreamedContent>>,
}

/// A resource that a reply names without showing all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLink {
    /// Its URI, for `resources/read`.
    pub uri: String,
    /// Its path, as the reply names it.
    pub name: String,
}

/// The text block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// In words of its own.
    Own(JsonText),
    /// The JSON of the structured half.
    Same,
}

impl EncodedReply {
    /// A reply whose text has words of its own.
    pub(crate) fn new(structured: Option<Vec<u8>>, text: String) -> EncodedReply {
        EncodedReply {
            structured,
            text: Some(Text::Own(text.into())),
            ..EncodedReply::default()
        }
    }

    /// The content of a failure. It keeps its text in every mode: it is short, and some clients show the model nothing
    /// else.
    pub(crate) fn of_failure(worded: &Worded, text: FailureText, structured: bool) -> EncodedReply {
        let object = worded.object.to_string();
        let text = match text {
            FailureText::Message | FailureText::Alone => worded.message.clone(),
            FailureText::Object => object.clone(),
        };
        EncodedReply::new(structured.then(|| object.into_bytes()), text)
    }

    /// The reply with a block that is seen or heard.
    pub(crate) fn with_media(mut self, media: Option<Media>) -> EncodedReply {
        self.media = media;
        self
    }

    /// The reply with a block that takes the place of the text, if there is one.
    pub(crate) fn with_media_alone(mut self, media: Option<Media>) -> EncodedReply {
        if media.is_some() {
            self.text = None;
        }
        self.with_media(media)
    }

    /// The reply with content that is still in its file.
    pub(crate) fn with_streamed(mut self, content: Option<StreamedContent>) -> EncodedReply {
        self.streamed = content.map(Arc::new);
        self
    }

    /// The reply with a link to a resource, for clients that read texts.
    pub(crate) fn with_link(mut self, link: Option<ResourceLink>) -> EncodedReply {
        self.link = link.filter(|_| self.has_text());
        self
    }

    /// The link to a resource, if there is one.
    #[must_use]
    pub fn link(&self) -> Option<&ResourceLink> {
        self.link.as_ref()
    }

    /// The block that is seen or heard, if there is one.
    #[must_use]
    pub fn media(&self) -> Option<&Media> {
        self.media.as_ref()
    }

    /// The text block, if one is sent.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self.text.as_ref()? {
            Text::Own(text) => Some(text.decoded()),
            Text::Same => self
                .structured()
                .map(|json| String::from_utf8_lossy(json).into_owned()),
        }
    }

    /// Whether a text block is sent.
    #[must_use]
    pub fn has_text(&self) -> bool {
        self.text.is_some()
    }

    /// Begins its message, which has about so many bytes besides.
    #[must_use]
    pub fn begin_message(&self, besides: usize) -> MessageBuilder {
        MessageBuilder::new(self.bytes() + besides, self.streamed.clone())
    }

    /// Adds the text block to its message, as the inside of a JSON string. A large one is taken away.
    pub fn move_text(&mut self, message: &mut MessageBuilder) {
        match &mut self.text {
            None => {}
            Some(Text::Own(text)) => message.push_json(text.json_mut()),
            Some(Text::Same) => {
                let json = self.structured.as_deref().unwrap_or_default();
                json::escape_bytes(json, message.open(), |_, _| {});
            }
        }
    }

    /// Adds the whole reply object to its message. A large one is taken away.
    pub fn move_structured(&mut self, message: &mut MessageBuilder) {
        if let Some(json) = &mut self.structured {
            message.push_json(json);
        }
    }

    /// Adds the fields of the reply object to its message, with the brace behind them.
    pub fn move_fields(&mut self, message: &mut MessageBuilder) {
        if let Some(json) = self.structured.as_mut().filter(|json| !json.is_empty()) {
            json.remove(0);
        }
        match self.structured.as_mut() {
            Some(json) => message.push_json(json),
            None => message.push(b"}"),
        }
    }

    /// The whole reply object as JSON, if it is sent.
    #[must_use]
    pub fn structured(&self) -> Option<&[u8]> {
        self.structured.as_deref()
    }

    /// About how many bytes its message has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let halves = self.text_bytes().unwrap_or(0) + self.structured().map_or(0, <[u8]>::len);
        let streamed = self.streamed.as_ref().map_or(0, |_| StreamedContent::ROOM);
        halves + self.media_bytes() + streamed
    }

    /// The bytes of the half a client is most likely to read: the text, or the structured half if there is no text.
    pub(crate) fn size(&self) -> usize {
        let structured = self.structured().map_or(0, <[u8]>::len);
        self.text_bytes().unwrap_or(structured) + self.media_bytes()
    }

    /// About how many bytes the text block takes in a message, if one is sent.
    fn text_bytes(&self) -> Option<usize> {
        match self.text.as_ref()? {
            Text::Own(text) => Some(text.as_json().len()),
            Text::Same => self
                .structured
                .as_deref()
                .map(|json| json.len() + json.len() / 4),
        }
    }

    fn media_bytes(&self) -> usize {
        self.media.as_ref().map_or(0, |media| media.data.len())
    }
}

/// How many times longer than the text the structured half of a list is at most, about.
const TIMES_LARGER: usize = 6;
/// The most room that is made for it at once; a larger buffer grows where it is.
const EXPECTED_MAX: usize = 64 * 1024 * 1024;

/// Only what will be sent is made.
pub(crate) fn halves<R: Serialize>(
    reply: &R,
    own_text: impl FnOnce(&R) -> Option<JsonText>,
    replies: ReplyHalves,
) -> Result<EncodedReply, Failure> {
    let encoded = |expected: usize| {
        json::to_vec(reply, expected).map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })
    };
    // First, because what it is made of is freed before the larger half is there.
    let own = replies.text().then(|| own_text(reply));
    let expected = match &own {
        Some(Some(text)) => (TIMES_LARGER * text.as_json().len()).min(EXPECTED_MAX),
        _ => 0,
    };
    let encoded_object = || encoded(expected);
    let structured = replies.structured().then(encoded_object).transpose()?;
    let text = match (own, &structured) {
        (None, _) => None,
        (Some(Some(own)), _) => Some(Text::Own(own)),
        (Some(None), Some(_)) => Some(Text::Same),
        (Some(None), None) => Some(Text::Own(JsonText::of_json(&encoded(0)?))),
    };
    Ok(EncodedReply {
        structured,
        text,
        ..EncodedReply::default()
    })
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// A success or a failure.
    Result(ToolResult),
    /// A question; the client calls again with the answer.
    Question(Box<InputRequiredResult>),
    /// A failure of a method that is no tool: an error of the protocol.
    Refused(MethodFailure),
}

/// Why a method of the protocol other than a tool call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodFailure {
    /// What kind of failure it is.
    pub kind: RefusalKind,
    /// The set's code for it.
    pub code: &'static str,
    /// What went wrong and what to do next, in the set's words.
    pub message: String,
}

/// The kind of a method's failure, as far as the protocol distinguishes kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The resource does not exist.
    NotFound,
    /// The request cannot be served as it is.
    Invalid,
    /// There are too many requests; this one may be sent again later.
    TooMany {
        /// How long to wait, if that is known.
        retry_after_ms: Option<u64>,
    },
    /// It failed for reasons within the server.
    Internal,
}

impl RefusalKind {
    /// The kind of a failure.
    pub(crate) fn of(failure: &Failure) -> RefusalKind {
        match failure {
            Failure::Operation(error) => match error.kind() {
                ErrorKind::NotFound => RefusalKind::NotFound,
                ErrorKind::NoRoom => RefusalKind::TooMany {
                    retry_after_ms: Some(LATER_MS),
                },
                ErrorKind::Io | ErrorKind::Timeout | ErrorKind::DiskFull => RefusalKind::Internal,
                _ => RefusalKind::Invalid,
            },
            Failure::UnknownRoot { .. } => RefusalKind::NotFound,
            Failure::RateLimited { retry_after_ms } => RefusalKind::TooMany {
                retry_after_ms: Some(*retry_after_ms),
            },
            Failure::Suspended => RefusalKind::TooMany {
                retry_after_ms: None,
            },
            Failure::ToolNotAllowed { .. }
            | Failure::NotConfirmed { .. }
            | Failure::ReadOnly { .. }
            | Failure::BadArguments(_) => RefusalKind::Invalid,
            Failure::LeftRunning(_)
            | Failure::RootGone { .. }
            | Failure::Unrecordable
            | Failure::Guide(_)
            | Failure::Internal { .. } => RefusalKind::Internal,
        }
    }
}

impl CallOutcome {
    /// The bytes of what it says, without the message around it.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            CallOutcome::Result(result) => result.reply.size(),
            CallOutcome::Question(_) => 0,
            CallOutcome::Refused(failure) => failure.message.len(),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Its content.
    pub reply: EncodedReply,
    /// Whether the call failed.
    pub is_error: bool,
}
