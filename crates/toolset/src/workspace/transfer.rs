//! What `copy` and `move` have in common: two places in, two places out.

use ops::{SkipReason, Skipped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From where and to where.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root that holds the source, as list_roots tells it.
    pub(super) source_root: String,
    /// The file or directory, relative to source_root.
    pub(super) source_path: String,
    /// Name of the root to put it into; may be the same.
    pub(super) dest_root: String,
    /// Where to put it, relative to dest_root. Missing parent directories are made.
    pub(super) dest_path: String,
}

/// One end of a transfer.
#[derive(Serialize, JsonSchema)]
pub(super) struct End {
    /// Name of the root.
    pub(super) root: String,
    /// The path, relative to the root.
    pub(super) path: String,
}

/// Something that was left out.
#[derive(Serialize, JsonSchema)]
pub(super) struct LeftOut {
    /// Its path, relative to the source root.
    path: String,
    /// Why.
    reason: String,
}

impl From<&Skipped> for LeftOut {
    fn from(skipped: &Skipped) -> LeftOut {
        let reason = match skipped.reason {
            SkipReason::LeadsOutside => "symlink leads outside the root".to_owned(),
            SkipReason::Dangling => "symlink leads to nothing".to_owned(),
            SkipReason::Loop => "symlink leads in a circle".to_owned(),
            SkipReason::Untranslatable => "symlink cannot be written at the destination".to_owned(),
            SkipReason::Special(kind) => format!("{kind}: not a regular file"),
        };
        LeftOut {
            path: skipped.path.clone(),
            reason,
        }
    }
}
