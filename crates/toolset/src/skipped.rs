//! What a copy left out, in the words of every set.

use ops::{SkipReason, Skipped};
use schemars::JsonSchema;
use serde::Serialize;

/// Something that was left out.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkippedEntry {
    /// Its path, relative to the source root.
    path: String,
    /// Why.
    reason: String,
}

impl From<&Skipped> for SkippedEntry {
    fn from(skipped: &Skipped) -> SkippedEntry {
        let reason = match skipped.reason {
            SkipReason::LeadsOutside => "symlink leads outside the root".to_owned(),
            SkipReason::Dangling => "symlink leads to nothing".to_owned(),
            SkipReason::Loop => "symlink leads in a circle".to_owned(),
            SkipReason::Untranslatable => "symlink cannot be written at the destination".to_owned(),
            SkipReason::Special(kind) => format!("{kind}: not a regular file"),
        };
        SkippedEntry {
            path: skipped.path.clone(),
            reason,
        }
    }
}
