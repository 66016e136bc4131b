//! `rename`: another name or directory for a file or directory.

use ops::{Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::text_form::shown;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Rename;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    old_path: String,
    /// The complete new path, not a directory to move into.
    new_path: String,
}

/// It has its new name.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Always true.
    success: bool,
    /// Where it was, as it was given.
    old_path: String,
    /// Where it is, as it was given.
    new_path: String,
}

impl Tool for Rename {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "rename";
    const TITLE: &'static str = "Rename or move";
    const DESCRIPTION: &'static str = "Renames or moves a file or directory and makes missing parents. Nothing may be at new_path.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("old_path", PlaceAccess::Remove),
        RootUse::home("new_path", PlaceAccess::Write),
    ];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let source = call.place(&arguments.old_path)?.relative()?;
        let destination = call.destination(&arguments.new_path)?.relative()?;
        // A path that leads out is reported and logged, whatever else is wrong.
        source.check_inside()?;
        destination.check_inside()?;
        let move_to = Move {
            source,
            destination,
            on_existing: OnExisting::Fail,
            on_directory: OnDirectory::Onto,
        };
        move_to.run(&call.context)?;
        Ok(Reply {
            success: true,
            old_path: arguments.old_path,
            new_path: arguments.new_path,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let (from, to) = (shown(&reply.old_path), shown(&reply.new_path));
        Some(format!("renamed {from} to {to}"))
    }
}
