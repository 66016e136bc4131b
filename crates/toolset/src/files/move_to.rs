//! `move`: a file or a tree to another path.

use ops::{Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct MoveTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Source path (relative to server root). A symlink is moved itself.
    source: String,
    /// Destination path (relative to server root): its new path, not a directory to put it into.
    destination: String,
    /// Whether to overwrite existing files.
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
    const DESCRIPTION: &'static str = "Moves or renames a file or directory. destination is its new path itself. Where that exists the \
        call fails with already_exists; overwrite: true replaces a file or an empty directory. Missing parent directories are \
        made. Returns success, source and destination. Example: {\"source\":\"old.txt\",\"destination\":\"archive/new.txt\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("source", PlaceAccess::Write),
        RootUse::home("destination", PlaceAccess::Write),
    ];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let move_to = Move {
            source: call.place(&arguments.source)?,
            destination: call.destination(&arguments.destination)?,
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
}

/// What `overwrite` means, for copies too.
pub(super) fn on_existing(overwrite: bool) -> OnExisting {
    if overwrite {
        OnExisting::Replace
    } else {
        OnExisting::Fail
    }
}
