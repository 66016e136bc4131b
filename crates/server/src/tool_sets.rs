//! The tool sets by name.

use std::sync::Arc;

use anyhow::Result;
use sandbox::Roots;
use toolset::{
    Admission, Service, ToolSet, files, guide, memory, memory_tool, reference, workspace,
};

use crate::deployment::{Reopening, deployment};
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

/// Fails if a configured set could not be served, for example because no root allows any of its tools.
pub(crate) fn check(settings: &Settings, roots: &Roots) -> Result<()> {
    let deployment = deployment(settings, roots, Arc::default(), Reopening::No);
    let admission = Admission::new(deployment);
    for set in &settings.toolsets {
        Service::new(vec![tools_of(*set, settings, None)], Arc::clone(&admission))?;
    }
    Ok(())
}
