//! The `guide` tool set: the agent's files, which agents hand over or are asked for. The server never opens them.
//!
//! Adding a tool: one file here, and its two lines below.

mod answer;
mod arguments;
mod asking;
mod cache_file;
mod cache_stats;
mod errors;
mod list_directory;
mod listing_json;
mod owner;
mod prompts;
mod questions;
mod read_file;
mod reply;
mod request_directory;
mod request_file;
mod state;
mod tool;

use std::sync::Arc;

pub use owner::CacheSharing;
pub use state::{BadKey, GuideOptions, GuideState};

use crate::tool::ToolSet;
use tool::guide_tool;

/// The set, its tools in the specification's order. Without a state its tools can be described but not called.
#[must_use]
pub fn toolset(state: Option<Arc<GuideState>>) -> ToolSet {
    ToolSet {
        contract: &errors::Guide,
        tools: vec![
            guide_tool::<cache_file::CacheFile>(state.clone()),
            guide_tool::<list_directory::HandOverListing>(state.clone()),
            guide_tool::<read_file::HandOverFile>(state.clone()),
            guide_tool::<request_file::RequestFile>(state.clone()),
            guide_tool::<request_directory::RequestDirectory>(state.clone()),
            guide_tool::<cache_stats::CacheStats>(state),
        ],
    }
}
