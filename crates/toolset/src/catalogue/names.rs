//! The names of the tools of every set, and which sets cannot share an endpoint.

use std::sync::LazyLock;

use crate::tool::{Definition, ToolSet};
use crate::{files, guide, memory, memory_tool, reference, workspace};

/// The names of a set's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetNames {
    /// The set.
    pub set: &'static str,
    /// All its tools, in the specification's order.
    pub tools: Vec<&'static str>,
    /// The tools that an allowlist can name. In a set with roots, a tool that uses no root is always available.
    pub restricted: Vec<&'static str>,
}

impl SetNames {
    pub(super) fn of(set: &ToolSet) -> SetNames {
        let definitions = || set.tools.iter().map(|tool| tool.definition());
        let uses_roots = |tool: &&Definition| !tool.roots.is_empty();
        let has_roots = definitions().any(|tool| uses_roots(&tool));
        let restricted = definitions().filter(|tool| uses_roots(tool) || !has_roots);
        SetNames {
            set: set.contract.name(),
            tools: definitions().map(|tool| tool.name).collect(),
            restricted: restricted.map(|tool| tool.name).collect(),
        }
    }
}

/// Every tool set of this program, in the order of its documents.
#[must_use]
pub fn every_set() -> &'static [SetNames] {
    static SETS: LazyLock<Vec<SetNames>> = LazyLock::new(|| {
        let memory = SetNames {
            // An allowlist may name this optional tool even if the operator has not enabled it.
            restricted: SetNames::of(&memory::toolset(true)).restricted,
            ..SetNames::of(&memory::toolset(false))
        };
        let [workspace, files, guide, reference, memory_tool] = [
            workspace::toolset(),
            files::toolset(),
            guide::toolset(None),
            reference::toolset(),
            memory_tool::toolset(),
        ]
        .map(|set| SetNames::of(&set));
        vec![workspace, files, memory, guide, reference, memory_tool]
    });
    &SETS
}

/// Two sets that cannot share an endpoint, because names mean two things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetCollision {
    /// One set.
    pub first: &'static str,
    /// The other set.
    pub second: &'static str,
    /// The names that both have.
    pub tools: Vec<&'static str>,
}

/// Finds the first two sets that have tools of the same name.
#[must_use]
pub fn first_collision(sets: &[&SetNames]) -> Option<SetCollision> {
    let pairs = sets.iter().enumerate().flat_map(|(index, first)| {
        let later = sets.iter().skip(index + 1);
        later.map(move |second| (first, second))
    });
    let mut collisions = pairs.map(|(first, second)| {
        let shared = first
            .tools
            .iter()
            .filter(|tool| second.tools.contains(tool));
        SetCollision {
            first: first.set,
            second: second.set,
            tools: shared.copied().collect(),
        }
    });
    collisions.find(|collision| !collision.tools.is_empty())
}
