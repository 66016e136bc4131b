//! The reply of tools that only do something.

use schemars::JsonSchema;
use serde::Serialize;

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
}
