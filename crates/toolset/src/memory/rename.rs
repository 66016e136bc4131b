//! `rename`: another name or directory for a file or directory.

use ops::{Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Rename;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The file or directory, relative to the base directory.
    old_path: String,
    /// Its new path, relative to the base directory. Nothing may be there; missing parent directories are made.
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
    const DESCRIPTION: &'static str = "Renames or moves a file or a whole directory in one step and makes missing parent \
        directories. new_path is the complete new path, not a directory to move into; where anything is there already it fails \
        with file_exists and changes nothing. A symlink is moved itself. Returns success, old_path and new_path. \
        Example: {\"old_path\":\"drafts/note.md\",\"new_path\":\"archive/2025/note.md\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("old_path", PlaceAccess::Write),
        RootUse::home("new_path", PlaceAccess::Write),
    ];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let move_to = Move {
            source: call.place(&arguments.old_path)?.relative()?,
            destination: call.destination(&arguments.new_path)?.relative()?,
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
}
