//! The reply of nearly every tool: one text, sent in both halves.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json_text::{JsonContent, JsonText};

/// One text.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Content {
    #[schemars(with = "String")]
    content: JsonContent,
}

impl Content {
    /// The text half.
    pub(super) fn text(&self) -> JsonText {
        self.content.text().clone()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content {
            content: text.into(),
        }
    }
}
