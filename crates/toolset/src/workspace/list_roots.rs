//! `list_roots`: which roots there are and what may be done in each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, shown};
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
    /// The tools that may be used on it. On a read-only root, only tools that read.
    allowed_tools: Vec<&'static str>,
    /// Whether it refuses every change.
    read_only: bool,
}

impl Tool for ListRoots {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list_roots";
    const TITLE: &'static str = "List roots";
    const DESCRIPTION: &'static str = "Lists the roots, the directories that all other tools work in, with the tools allowed in each.";
    const CONTENT: &'static [&'static str] = &[];
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

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        for root in &reply.roots {
            let read_only = if root.read_only { " (read-only)" } else { "" };
            let tools = root.allowed_tools.join(", ");
            lines.line(format_args!("{}{read_only}: {tools}", shown(&root.name)));
        }
        Some(lines.finish())
    }
}
