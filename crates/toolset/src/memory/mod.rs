//! The `memory` tool set: one storage directory, six operations on the files in it.
//!
//! Adding a tool: one file here, and its two lines below.

mod create;
mod delete;
mod done;
mod errors;
mod insert;
mod rename;
mod str_replace;
mod view;

use crate::tool::{ToolSet, tool};

/// The set, its tools in the specification's order.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        contract: &errors::Memory,
        tools: vec![
            tool::<view::View>(),
            tool::<create::Create>(),
            tool::<str_replace::StrReplace>(),
            tool::<insert::Insert>(),
            tool::<delete::Delete>(),
            tool::<rename::Rename>(),
        ],
    }
}
