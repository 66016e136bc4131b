//! What a call answers with, as JSON from the beginning.
//!
//! A large reply would be many times larger as a tree of values than it is as text, so it is never one: it is written
//! once, and sent once for each half that the operator wants.

use rmcp::model::InputRequiredResult;
use serde::Serialize;

use crate::contract::Failure;
use crate::deployment::ReplyHalves;
use crate::json;
use crate::media::Media;

/// What a call says, in the halves that the operator wants sent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EncodedReply {
    /// The whole reply object, as JSON.
    structured: Option<String>,
    text: Option<Text>,
    media: Option<Media>,
}

/// The text block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// In words of its own.
    Own(String),
    /// The JSON of the structured half.
    Same,
}

impl EncodedReply {
    /// A reply whose text has words of its own.
    pub(crate) fn new(structured: Option<String>, text: String) -> EncodedReply {
        EncodedReply {
            structured,
            text: Some(Text::Own(text)),
            media: None,
        }
    }

    /// The reply with a block that is seen or heard.
    pub(crate) fn with_media(mut self, media: Option<Media>) -> EncodedReply {
        self.media = media;
        self
    }

    /// The block that is seen or heard, where there is one.
    #[must_use]
    pub fn media(&self) -> Option<&Media> {
        self.media.as_ref()
    }

    /// The text block, if one is sent.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.text.as_ref()? {
            Text::Own(text) => Some(text),
            Text::Same => self.structured.as_deref(),
        }
    }

    /// The whole reply object as JSON, where it is sent.
    #[must_use]
    pub fn structured(&self) -> Option<&str> {
        self.structured.as_deref()
    }

    /// About how many bytes its message has.
    pub(crate) fn bytes(&self) -> u64 {
        let halves = [self.text(), self.structured()];
        halves
            .into_iter()
            .flatten()
            .map(|half| half.len() as u64)
            .sum()
    }

    /// The bytes of the half a client is most likely to read: the text, or the structured half if there is no text.
    pub(crate) fn size(&self) -> usize {
        let half = self.text().or(self.structured.as_deref());
        let media = self.media.as_ref().map_or(0, |media| media.data.len());
        half.map_or(0, str::len) + media
    }
}

/// Only what will be sent is made.
pub(crate) fn halves<R: Serialize>(
    reply: &R,
    own_text: impl FnOnce(&R) -> Option<String>,
    replies: ReplyHalves,
) -> Result<EncodedReply, Failure> {
    let encoded = || {
        json::to_string(reply).map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })
    };
    let structured = replies.structured().then(encoded).transpose()?;
    let text = match (replies.text().then(|| own_text(reply)), &structured) {
        (None, _) => None,
        (Some(Some(own)), _) => Some(Text::Own(own)),
        (Some(None), Some(_)) => Some(Text::Same),
        (Some(None), None) => Some(Text::Own(encoded()?)),
    };
    Ok(EncodedReply {
        structured,
        text,
        media: None,
    })
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// A success or a failure.
    Result(ToolResult),
    /// A question; the client calls again with the answer.
    Question(Box<InputRequiredResult>),
}

impl CallOutcome {
    /// The bytes of what it says, without the message around it.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            CallOutcome::Result(result) => result.reply.size(),
            CallOutcome::Question(_) => 0,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// What it says.
    pub reply: EncodedReply,
    /// Whether the call failed.
    pub is_error: bool,
}
