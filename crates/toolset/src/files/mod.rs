//! The `files` tool set: one root, paths relative to it, for clients that want a plain file system.
//!
//! Adding a tool: one file here, and its two lines below.

mod compare;
mod copy;
mod delete;
mod errors;
mod facts;
mod hash;
mod info;
mod list;
mod mkdir;
mod move_to;
mod paths;
mod read;
mod search;
mod undo;
mod watch;
mod write;

#[cfg(test)]
pub(crate) use undo::UndoWork;

use crate::history::UndoChanges;
use crate::tool::{ToolSet, tool};
use crate::watch::watch_tool;

/// The set: its tools in the specification's order, then those that the specification lists as possible extensions.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        contract: &errors::Files,
        tools: vec![
            tool::<list::ListTool>(),
            tool::<read::ReadTool>(),
            tool::<write::WriteTool>(),
            tool::<mkdir::Mkdir>(),
            tool::<delete::Delete>(),
            tool::<copy::CopyTool>(),
            tool::<move_to::MoveTool>(),
            tool::<info::Info>(),
            tool::<search::SearchTool>(),
            tool::<compare::CompareTool>(),
            tool::<hash::HashTool>(),
            watch_tool::<watch::WatchFiles>(),
            tool::<UndoChanges<undo::UndoWork>>(),
        ],
    }
}
