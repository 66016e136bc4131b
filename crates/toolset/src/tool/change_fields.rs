//! Fields about the change that every changing tool's reply has besides its own.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Tool, ToolEffect};
use crate::json_text::JsonText;
use crate::schema;

/// Adds the fields to the schema of a tool's replies.
pub(super) fn add_schema<T: Tool>(output: &mut JsonObject) {
    if T::EFFECT != ToolEffect::Read {
        schema::add_optional::<ChangeFields>(output);
    }
    if T::REPLACES_CONTENT {
        schema::add_optional::<NotAtomic>(output);
    }
}

/// The remark in the text about a file that was rewritten in place.
const IN_PLACE: &str = "Not atomic: the file is a mount point and was rewritten in place.";

/// A reply with what was learned about its change on the way.
#[derive(Serialize)]
pub(super) struct Changed<'reply, Reply> {
    #[serde(flatten)]
    pub(super) reply: &'reply Reply,
    #[serde(flatten)]
    pub(super) notes: NotedChange,
}

/// The additional fields of such a reply.
#[derive(Serialize)]
pub(super) struct NotedChange {
    #[serde(flatten)]
    not_atomic: Option<NotAtomic>,
    #[serde(flatten)]
    change: ChangeFields,
}

/// What a reply says of a file that was rewritten in place.
#[derive(Serialize, JsonSchema)]
struct NotAtomic {
    /// True if the file is a mount point: it was rewritten in place, so a reader or a crash may have seen a part of it.
    not_atomic: bool,
}

/// What a reply says of a change that is kept.
#[derive(Serialize, JsonSchema)]
struct ChangeFields {
    /// Names the change, if the root keeps a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// True if it cannot be undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_kept: bool,
}

impl<'reply, Reply> Changed<'reply, Reply> {
    pub(super) fn new(
        reply: &'reply Reply,
        in_place: bool,
        change: Option<String>,
        not_kept: bool,
    ) -> Changed<'reply, Reply> {
        let not_atomic = in_place.then_some(NotAtomic { not_atomic: true });
        let change = ChangeFields { change, not_kept };
        let notes = NotedChange { not_atomic, change };
        Changed { reply, notes }
    }
}

impl NotedChange {
    /// Adds the remarks about the change to the text of a reply.
    pub(super) fn add_to(&self, text: &mut JsonText) {
        if self.not_atomic.is_some() {
            text.push("\n");
            text.push(IN_PLACE);
        }
        match &self.change {
            ChangeFields { not_kept: true, .. } => text.add_note("cannot be undone"),
            ChangeFields { change: None, .. } => {}
            ChangeFields {
                change: Some(change),
                ..
            } => text.add_note(&format!("undo: {change}")),
        }
    }
}
