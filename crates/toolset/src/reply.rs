//! What a call answers with, as JSON from the beginning.
//!
//! A large reply would be many times larger as a tree of values than it is as text, so it is never one: it is written
//! once, and sent once for each half that the operator wants.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use rmcp::model::{
    CallToolResult, ContentBlock, InputRequiredResult, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde::Serialize;
use serde_json::Value;

use crate::deployment::Replies;
use crate::escape::escape;
use crate::face::Failure;

/// What a call says, in the halves that the operator wants sent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The whole reply object, as JSON.
    structured: Option<String>,
    text: Option<Text>,
}

/// The text block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// In words of its own.
    Own(String),
    /// The JSON of the structured half.
    Same,
}

impl Reply {
    /// A reply whose text has words of its own.
    pub(crate) fn new(structured: Option<String>, text: String) -> Reply {
        Reply {
            structured,
            text: Some(Text::Own(text)),
        }
    }

    fn text(&self) -> Option<&str> {
        match self.text.as_ref()? {
            Text::Own(text) => Some(text),
            Text::Same => self.structured.as_deref(),
        }
    }

    /// The bytes of the half a client is most likely to read: the text, or the structured half where there is none.
    pub(crate) fn size(&self) -> usize {
        let half = self.text().or(self.structured.as_deref());
        half.map_or(0, str::len)
    }
}

/// Only what will be sent is made.
pub(crate) fn halves<R: Serialize>(
    reply: &R,
    own_text: impl FnOnce(&R) -> Option<String>,
    replies: Replies,
) -> Result<Reply, Failure> {
    let json = || {
        serde_json::to_string(reply).map_err(|error| Failure::Internal {
            reason: error.to_string(),
        })
    };
    let structured = replies.structured().then(json).transpose()?;
    let text = match (replies.text().then(|| own_text(reply)), &structured) {
        (None, _) => None,
        (Some(Some(own)), _) => Some(Text::Own(own)),
        (Some(None), Some(_)) => Some(Text::Same),
        (Some(None), None) => Some(Text::Own(json()?)),
    };
    Ok(Reply { structured, text })
}

/// What a call came to.
#[derive(Debug)]
pub enum Answer {
    /// A success or a failure.
    Result(ToolResult),
    /// A question; the client calls again with the answer.
    Question(Box<InputRequiredResult>),
}

/// The result of a call, which is not yet put into a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub(crate) reply: Reply,
    pub(crate) is_error: bool,
}

/// Which revisions of the protocol a message is worded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// Up to 2025-11-25.
    Older,
    /// 2026-07-28: a result says that it is one, because it could be a question.
    Newest,
}

impl Answer {
    /// The whole answer to a request, as rmcp words it.
    #[must_use]
    pub fn message(self, id: &RequestId, revision: Revision) -> Vec<u8> {
        match self {
            Answer::Result(result) => result.message(id, revision),
            Answer::Question(question) => {
                let result = ServerResult::InputRequiredResult(*question);
                let message = ServerJsonRpcMessage::response(result, id.clone());
                serde_json::to_vec(&message).unwrap_or_default()
            }
        }
    }
}

impl ToolResult {
    /// As rmcp has it.
    #[must_use]
    pub fn into_rmcp(self) -> CallToolResult {
        let mut result = self.frame();
        let text = self.reply.text().map(ContentBlock::text);
        result.content = text.into_iter().collect();
        result.structured_content = self.structured();
        result
    }

    fn structured(&self) -> Option<Value> {
        // It is JSON that was written here.
        let json = self.reply.structured.as_deref()?;
        serde_json::from_str(json).ok()
    }

    /// Everything but what it says: the content is empty.
    pub(crate) fn frame(&self) -> CallToolResult {
        match self.is_error {
            true => CallToolResult::error(Vec::new()),
            false => CallToolResult::success(Vec::new()),
        }
    }

    /// The whole answer to a request, as rmcp words it.
    #[must_use]
    pub fn message(&self, id: &RequestId, revision: Revision) -> Vec<u8> {
        let id = serde_json::to_string(id).unwrap_or_default();
        let kind = match revision {
            Revision::Older => "",
            Revision::Newest => r#""resultType":"complete","#,
        };
        let is_error = self.is_error;
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}"content":[],"isError":{is_error}}}}}"#
        );
        self.fill(frame.as_bytes()).unwrap_or_default()
    }

    /// Puts what it says into the message that rmcp made of its frame; `None` where that is another message.
    fn fill(&self, message: &[u8]) -> Option<Vec<u8>> {
        splice(message, &self.fragment())
    }

    /// What it says, as it stands in a message.
    fn fragment(&self) -> String {
        let (text, structured) = (self.reply.text(), self.reply.structured.as_deref());
        let room = text.map_or(0, |text| text.len() + text.len() / 4)
            + structured.map_or(0, str::len)
            + ROOM_BESIDES;
        let mut fragment = String::with_capacity(room);
        fragment.push_str(r#""content":["#);
        if let Some(text) = text {
            fragment.push_str(r#"{"type":"text","text":""#);
            escape(text, &mut fragment);
            fragment.push_str(r#""}"#);
        }
        fragment.push(']');
        if let Some(structured) = structured {
            fragment.push_str(r#","structuredContent":"#);
            fragment.push_str(structured);
        }
        fragment
    }

    /// For a transport that gets messages before they are written: a result that carries what it says as it stands in a
    /// message.
    pub(crate) fn carrying(&self) -> CallToolResult {
        let mut result = self.frame();
        result.content = vec![ContentBlock::text(self.fragment())];
        result
    }
}

/// Takes out of a result what it carries, and leaves its frame.
pub fn unload(result: &mut CallToolResult) -> Option<String> {
    match result.content.pop()? {
        ContentBlock::Text(block) => Some(block.text),
        _ => None,
    }
}

/// Puts what a result carried into the message of its frame; `None` where that is another message.
#[must_use]
pub fn splice(message: &[u8], fragment: &str) -> Option<Vec<u8>> {
    let (before, rest) = message.split_at_checked(memmem::find(message, EMPTY)?)?;
    Some([before, fragment.as_bytes(), rest.strip_prefix(EMPTY)?].concat())
}

/// How an empty content looks in a message. It cannot be part of a JSON string, in which its quotes would be escaped.
const EMPTY: &[u8] = b"\"content\":[]";
/// What surrounds the halves in a message.
const ROOM_BESIDES: usize = 64;

/// How a transport wants results, put into a request's extensions. Without it they go the whole way through rmcp.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// It writes rmcp's messages itself, and finds in them what [`splice`] puts in.
    Carried,
    /// It changes what rmcp wrote, and finds the result of the request here.
    Slot(Slot),
}

/// Where the result of a request waits for the message that rmcp writes.
#[derive(Debug, Clone, Default)]
pub struct Slot(Arc<Mutex<Option<ToolResult>>>);

impl Slot {
    /// Puts the result into the message that rmcp made for it; `None` where there is none, or it is another message.
    #[must_use]
    pub fn fill(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.lock().as_ref()?.fill(message)
    }

    pub(crate) fn put(&self, result: ToolResult) {
        *self.lock() = Some(result);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ToolResult>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    fn message(result: CallToolResult, id: &str) -> Vec<u8> {
        let id = NumberOrString::String(id.into());
        let message = ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id);
        serde_json::to_vec(&message).unwrap()
    }

    fn result(structured: Option<&str>, text: Option<Text>, is_error: bool) -> ToolResult {
        ToolResult {
            reply: Reply {
                structured: structured.map(str::to_owned),
                text,
            },
            is_error,
        }
    }

    #[test]
    fn a_filled_message_is_the_one_that_rmcp_would_have_made() {
        let own = || Some(Text::Own("é \"quoted\" \u{1}\n".to_owned()));
        let json = Some(r#"{"a":[1,"\"content\":[]"]}"#);
        for result in [
            result(json, Some(Text::Same), false),
            result(json, own(), true),
            result(json, None, false),
            result(None, own(), false),
        ] {
            // The id tries to pass for the place to fill.
            let id = r#""content":[]"#;
            let filled = result.fill(&message(result.frame(), id)).unwrap();
            let mut carrying = result.carrying();
            let fragment = unload(&mut carrying).unwrap();
            assert_eq!(splice(&message(carrying, id), &fragment).unwrap(), filled);
            let expected = message(result.into_rmcp(), id);
            assert_eq!(
                String::from_utf8(filled).unwrap(),
                String::from_utf8(expected).unwrap()
            );
        }
    }

    #[test]
    fn another_message_is_left_alone() {
        assert_eq!(result(None, None, false).fill(b"{\"error\":{}}"), None);
    }

    #[test]
    fn a_slot_without_a_result_fills_nothing() {
        let slot = Slot::default();
        assert_eq!(slot.fill(EMPTY), None);
        slot.put(result(None, None, true));
        assert!(slot.fill(EMPTY).is_some());
    }
}
