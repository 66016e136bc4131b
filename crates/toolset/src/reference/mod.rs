//! The `reference` tool set: the tools of the reference server for files, `@modelcontextprotocol/server-filesystem`.
//!
//! Names, arguments, texts and hints are that server's (release 2026.8.31), so that whoever has it in a client's
//! configuration changes the command and nothing else. What is different on purpose is in `docs/reference-set.md`.
//!
//! Paths are those of the host: absolute, from `~`, or relative to the first directory.

mod content;
mod create_directory;
mod directory_tree;
mod edit_file;
mod errors;
mod get_file_info;
mod list_allowed_directories;
mod list_directory;
mod list_directory_with_sizes;
mod media_type;
mod minimatch;
mod move_file;
mod paths;
mod read_media_file;
mod read_multiple_files;
mod read_text_file;
mod search_files;
mod write_file;

use crate::deployment::ReplyHalves;
use crate::tool::{Tool, ToolSet, given_tool};

/// The set, its tools in the reference server's order.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        contract: &errors::Reference,
        tools: vec![
            tool::<read_text_file::ReadFile>(),
            tool::<read_text_file::ReadTextFile>(),
            tool::<read_media_file::ReadMediaFile>(),
            tool::<read_multiple_files::ReadMultipleFiles>(),
            tool::<write_file::WriteFile>(),
            tool::<edit_file::EditFile>(),
            tool::<create_directory::CreateDirectory>(),
            tool::<list_directory::ListDirectory>(),
            tool::<list_directory_with_sizes::ListDirectoryWithSizes>(),
            tool::<directory_tree::DirectoryTree>(),
            tool::<move_file::MoveFile>(),
            tool::<search_files::SearchFiles>(),
            tool::<get_file_info::GetFileInfo>(),
            tool::<list_allowed_directories::ListAllowedDirectories>(),
        ],
    }
}

fn tool<T: Tool>() -> Box<dyn crate::AnyTool> {
    given_tool::<T>(ReplyHalves::Both)
}
