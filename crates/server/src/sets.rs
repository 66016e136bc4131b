//! The tool sets by name.

use std::sync::Arc;

use toolset::{ToolSet, files, guide, memory, workspace};

use crate::settings::Toolset;

/// A set's tools and words; `guide` can only be called with its desk.
pub(crate) fn tools_of(set: Toolset, desk: Option<&Arc<guide::Desk>>) -> ToolSet {
    match set {
        Toolset::Workspace => workspace::toolset(),
        Toolset::Files => files::toolset(),
        Toolset::Memory => memory::toolset(),
        Toolset::Guide => guide::toolset(desk.cloned()),
    }
}
