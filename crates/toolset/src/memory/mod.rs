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
mod undo;
mod view;

#[cfg(test)]
pub(crate) use undo::UndoWork;

use crate::history::UndoChanges;
use crate::tool::{ToolSet, tool};

/// The set, its tools in the specification's order; `undo` is a seventh if the operator wants it.
#[must_use]
pub fn toolset(with_undo: bool) -> ToolSet {
    let undo = with_undo.then(tool::<UndoChanges<undo::UndoWork>>);
    ToolSet {
        contract: &errors::Memory,
        tools: [
            tool::<view::ViewTool>(),
            tool::<create::Create>(),
            tool::<str_replace::StrReplace>(),
            tool::<insert::Insert>(),
            tool::<delete::Delete>(),
            tool::<rename::Rename>(),
        ]
        .into_iter()
        .chain(undo)
        .collect(),
    }
}
