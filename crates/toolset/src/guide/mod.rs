//! The `guide` tool set: the agent's files, which agents hand over or are asked for. The server never opens them.
//!
//! Adding a tool: one file here, and its two lines below.

mod answer;
mod arguments;
mod asking;
mod cache_file;
mod cache_stats;
mod desk;
mod face;
mod list_directory;
mod listed;
mod read_file;
mod reply;
mod request_directory;
mod request_file;
mod tool;
mod words;

use std::sync::Arc;

pub use desk::{BadKey, Desk, Options};

use crate::tool::ToolSet;
use tool::guide_tool;

/// The set, its tools in the specification's order. Without a desk its tools can be described but not called.
#[must_use]
pub fn toolset(desk: Option<Arc<Desk>>) -> ToolSet {
    ToolSet {
        face: &face::Guide,
        tools: vec![
            guide_tool::<cache_file::CacheFile>(desk.clone()),
            guide_tool::<list_directory::ListDirectoryTool>(desk.clone()),
            guide_tool::<read_file::ReadFileTool>(desk.clone()),
            guide_tool::<request_file::RequestFile>(desk.clone()),
            guide_tool::<request_directory::RequestDirectory>(desk.clone()),
            guide_tool::<cache_stats::CacheStats>(desk),
        ],
    }
}
