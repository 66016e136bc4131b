//! What `copy` and `move` have in common: two places in, two places out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_form::{shown, shown_directory};

/// From where and to where.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    pub(super) source_root: String,
    pub(super) source_path: String,
    /// The same or another root.
    pub(super) dest_root: String,
    pub(super) dest_path: String,
}

/// One end of a transfer.
#[derive(Serialize, JsonSchema)]
pub(super) struct TransferEnd {
    /// Name of the root.
    pub(super) root: String,
    /// The path, relative to the root.
    pub(super) path: String,
}

/// What happened, in one line: from where and to where. Roots are named if they are two.
pub(super) fn ends(
    done: &str,
    source: &TransferEnd,
    destination: &TransferEnd,
    is_directory: bool,
) -> String {
    let path = |end: &TransferEnd| {
        if is_directory {
            shown_directory(&end.path)
        } else {
            shown(&end.path).into_owned()
        }
    };
    let (from, to) = (path(source), path(destination));
    if source.root == destination.root {
        return format!("{done} {from} to {to}");
    }
    let (one, other) = (shown(&source.root), shown(&destination.root));
    format!("{done} {from} of {one} to {to} of {other}")
}
