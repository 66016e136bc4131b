//! The tool sets by name.

use anyhow::{Result, bail};
use toolset::{ToolSet, files, memory, workspace};

use crate::settings::Toolset;

/// A set's tools and words.
pub(crate) fn tools_of(set: Toolset) -> Result<ToolSet> {
    match set {
        Toolset::Workspace => Ok(workspace::toolset()),
        Toolset::Files => Ok(files::toolset()),
        Toolset::Memory => Ok(memory::toolset()),
        // Settings refuse it before we come here.
        Toolset::Guide => bail!("no tool set {}", set.name()),
    }
}
