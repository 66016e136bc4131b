//! The `memory_tool` set: Anthropic's memory tool (`memory_20250818`).
//!
//! An application passes the input of a `tool_use` on as the arguments of the one tool here, and returns what it gets. So
//! every text is that tool's, letter for letter, and nothing but one block is sent.

mod commands;
mod errors;
mod memory;
mod paths;
mod view;

use crate::deployment::ReplyHalves;
use crate::tool::{ToolSet, given_tool};

/// The set.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        contract: &errors::MemoryTool,
        tools: vec![given_tool::<memory::Memory>(ReplyHalves::Text)],
    }
}
