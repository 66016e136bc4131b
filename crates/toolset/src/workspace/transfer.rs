//! What `copy` and `move` have in common: two places in, two places out.

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
