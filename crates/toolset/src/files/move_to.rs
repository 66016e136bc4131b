//! `move`: a file or a tree to another path.

use ops::{Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::{destination, place};
use crate::deployment::ReplyHalves;
use crate::text_form::shown;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct MoveTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    source: String,
    /// Its new path itself, not a directory to put it into.
    destination: String,
    /// Replaces a file or an empty directory; otherwise that is an error.
    #[serde(default)]
    overwrite: bool,
}

/// What was moved.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Always true.
    success: bool,
    /// Where it was, relative to the root.
    source: String,
    /// Where it is, relative to the root.
    destination: String,
}

impl Tool for MoveTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "move";
    const TITLE: &'static str = "Move or rename";
    const DESCRIPTION: &'static str =
        "Moves or renames a file or directory. Missing parents are made.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("source", PlaceAccess::Remove),
        RootUse::home("destination", PlaceAccess::Write),
    ];
    const REPLACES_CONTENT: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let move_to = Move {
            source: place(call, &arguments.source)?,
            destination: destination(call, &arguments.destination)?,
            on_existing: on_existing(arguments.overwrite),
            on_directory: OnDirectory::Onto,
        };
        let moved = move_to.run(&call.context)?;
        Ok(Reply {
            success: true,
            source: moved.source,
            destination: moved.destination,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let (from, to) = (shown(&reply.source), shown(&reply.destination));
        Some(format!("moved {from} to {to}"))
    }
}

/// What `overwrite` means, for copies too.
pub(super) fn on_existing(overwrite: bool) -> OnExisting {
    if overwrite {
        OnExisting::Replace
    } else {
        OnExisting::Fail
    }
}
