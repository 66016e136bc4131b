//! The `memory_tool` set: every text of Anthropic's memory tool, letter for letter.

mod commands;
mod set;
mod stores;
mod view;

pub(crate) use set::MemoryTool;
