//! The `workspace` tool set: named roots, each with its own allowlist. The default.
//!
//! Adding a tool: one file here, and its two lines below.

mod face;
mod list_roots;

use crate::tool::{ToolSet, tool};

/// The set, its tools in the specification's order.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        face: &face::Workspace,
        tools: vec![tool::<list_roots::ListRoots>()],
    }
}
