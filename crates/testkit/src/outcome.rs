//! The outcome of a tool call.

use rmcp::model::CallToolResult;
use serde_json::Value;

/// A tool's reply. It also holds the call, for messages of failed tests.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `structuredContent`, or null if there is none.
    pub structured: Value,
    /// The text of all text blocks, one after the other.
    pub text: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The whole result as it came.
    pub whole: Value,
    call: String,
}

impl Outcome {
    pub(crate) fn new(call: String, result: &CallToolResult) -> Outcome {
        let whole = serde_json::to_value(result).expect("a result is JSON");
        let blocks = result.content.iter().filter_map(|block| block.as_text());
        Outcome {
            structured: result.structured_content.clone().unwrap_or(Value::Null),
            text: blocks.map(|block| block.text.as_str()).collect(),
            is_error: result.is_error.unwrap_or(false),
            whole,
            call,
        }
    }

    /// The reply's object; panics if the tool failed.
    #[track_caller]
    pub fn ok(&self) -> &Value {
        assert!(
            !self.is_error,
            "the call should have succeeded\n{}",
            self.story()
        );
        assert!(
            self.structured.is_object(),
            "a reply is an object\n{}",
            self.story()
        );
        &self.structured
    }

    /// The error's object; panics if the tool succeeded.
    #[track_caller]
    pub fn error(&self) -> &Value {
        assert!(
            self.is_error,
            "the call should have failed\n{}",
            self.story()
        );
        assert!(
            self.structured.is_object(),
            "an error is an object\n{}",
            self.story()
        );
        &self.structured
    }

    /// The call and the whole reply, for messages.
    pub fn story(&self) -> String {
        format!("{}\n=> {:#}", self.call, self.whole)
    }
}
