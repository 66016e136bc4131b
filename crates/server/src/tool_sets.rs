//! The tool sets by name.

use std::sync::Arc;

use toolset::{ToolSet, files, guide, memory, memory_tool, reference, workspace};

use crate::settings::{Settings, Toolset};

/// A set's tools and words; `guide` can only be called with its state.
pub(crate) fn tools_of(
    set: Toolset,
    settings: &Settings,
    guide_state: Option<&Arc<guide::GuideState>>,
) -> ToolSet {
    match set {
        Toolset::Workspace => workspace::toolset(),
        Toolset::Files => files::toolset(),
        Toolset::Memory => memory::toolset(settings.memory_undo),
        Toolset::Guide => guide::toolset(guide_state.cloned()),
        Toolset::Reference => reference::toolset(),
        Toolset::MemoryTool => memory_tool::toolset(),
    }
}
