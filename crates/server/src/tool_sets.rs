//! The tool sets by name.

use std::sync::Arc;

use anyhow::Result;
use toolset::{
    Admission, Service, ToolSet, files, guide, memory, memory_tool, reference, workspace,
};

use crate::guide_project::GuideProject;
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

/// Builds one service with all configured sets.
pub(crate) fn every_set(
    settings: &Settings,
    admission: Arc<Admission>,
    project: Option<&GuideProject>,
) -> Result<Service> {
    let guide_state = project.map(|project| &project.state);
    let sets = settings
        .toolsets
        .iter()
        .map(|set| tools_of(*set, settings, guide_state));
    Ok(Service::new(sets.collect(), admission)?)
}
