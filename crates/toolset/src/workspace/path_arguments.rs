//! The arguments of tools that are about one path and nothing else.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PathArguments {
    /// A name from list_roots.
    pub(super) root: String,
    pub(super) path: String,
}
