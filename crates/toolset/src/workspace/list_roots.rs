//! `list_roots`: which roots there are and what may be done in each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct ListRoots;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {}

/// All configured roots.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The roots, in the operator's order.
    roots: Vec<RootEntry>,
}

/// A root.
#[derive(Serialize, JsonSchema)]
struct RootEntry {
    /// The name to give as `root` in other calls.
    name: String,
    /// The tools that may be used on it. On a read-only root those that only read it.
    allowed_tools: Vec<&'static str>,
    /// Whether it refuses every change.
    read_only: bool,
}

impl Tool for ListRoots {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list_roots";
    const TITLE: &'static str = "List roots";
    const DESCRIPTION: &'static str = "Lists the roots: the named directories that all other tools work in. \
        Call it first when you do not know which roots exist; every other tool needs a root name \
        (`root`, or `source_root` and `dest_root`) and a path relative to that root. \
        Returns for each root its name, the tools allowed on it and whether it is read-only; never host paths. \
        Takes no arguments. Example: {} → \
        {\"roots\":[{\"name\":\"workspace\",\"allowed_tools\":[\"read_file\",\"grep\"],\"read_only\":false}]}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[];

    fn run(_arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let infos = call.root_infos().iter();
        let roots = infos.map(|info| RootEntry {
            name: info.name.clone(),
            allowed_tools: info.allowed_tools.clone(),
            read_only: info.read_only,
        });
        Ok(Reply {
            roots: roots.collect(),
        })
    }
}
