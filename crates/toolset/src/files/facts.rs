//! What `read` and `write` tell of a file.

use ops::Metadata;
use schemars::JsonSchema;
use serde::Serialize;

use crate::iso_time::iso;

/// The file itself.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileFacts {
    /// The file, relative to the root, links resolved.
    pub(super) path: String,
    /// When the content last changed, ISO 8601.
    modified: String,
    /// Size of the whole file in bytes.
    pub(super) size: u64,
}

impl FileFacts {
    pub(super) fn new(path: &str, metadata: &Metadata) -> FileFacts {
        FileFacts {
            path: path.to_owned(),
            modified: iso(metadata.modified),
            size: metadata.size,
        }
    }
}
