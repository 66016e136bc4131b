//! The `workspace` tool set: named roots, each with its own allowlist. The default.
//!
//! Adding a tool: one file here, and its two lines below.

mod changes;
mod compare;
mod copy;
mod create_folder;
mod edit_file;
mod edit_words;
mod errors;
mod facts;
mod glob;
mod grep;
mod hash_file;
mod list_folder;
mod list_roots;
mod move_to;
mod patch_file;
mod path_arguments;
mod permissions_file;
mod read_file;
mod remove_file;
mod remove_folder;
mod stat_file;
mod transfer;
mod undo;
mod versions;
mod watch;
mod write_file;

#[cfg(test)]
pub(crate) use undo::UndoWork;

use crate::history::UndoChanges;
use crate::tool::{ToolSet, tool};
use crate::watch::watch_tool;

/// The set, its tools in the specification's order.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        contract: &errors::Workspace,
        tools: vec![
            tool::<list_roots::ListRoots>(),
            tool::<list_folder::ListFolder>(),
            tool::<read_file::ReadFileTool>(),
            tool::<write_file::WriteFile>(),
            tool::<remove_file::RemoveFile>(),
            tool::<edit_file::EditFile>(),
            tool::<patch_file::PatchFile>(),
            tool::<create_folder::CreateFolder>(),
            tool::<remove_folder::RemoveFolder>(),
            tool::<stat_file::StatFile>(),
            tool::<hash_file::HashFile>(),
            tool::<permissions_file::PermissionsFile>(),
            tool::<copy::CopyTool>(),
            tool::<move_to::MoveTool>(),
            tool::<compare::CompareTool>(),
            tool::<grep::GrepTool>(),
            tool::<glob::GlobTool>(),
            watch_tool::<watch::WatchFiles>(),
            tool::<changes::Changes>(),
            tool::<UndoChanges<undo::UndoWork>>(),
        ],
    }
}
