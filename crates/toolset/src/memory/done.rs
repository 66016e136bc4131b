//! The reply of tools that return nothing else.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::text_form::shown;

/// It is done.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    success: bool,
    /// The path as it was given.
    path: String,
}

impl Done {
    /// Done, to this path.
    pub(super) fn to(path: String) -> Done {
        Done {
            success: true,
            path,
        }
    }

    /// The path as a line shows it.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        shown(&self.path)
    }
}
