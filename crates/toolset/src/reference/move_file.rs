//! `move_file`: another name or directory for a file or directory; nothing is overwritten.

use ops::{Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct MoveFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    source: String,
    destination: String,
}

impl Tool for MoveFile {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "move_file";
    const TITLE: &'static str = "Move File";
    const DESCRIPTION: &'static str = "Move or rename files and directories. Can move files between directories and rename them in a single \
        operation. If the destination exists, the operation will fail. Works across different directories and can be used for simple renaming \
        within the same directory. Both source and destination must be within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::host("source", PlaceAccess::Remove),
        RootUse::host("destination", PlaceAccess::Write),
    ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let destination = place(call, &arguments.destination)?;
        destination.require_parent()?;
        let move_to = Move {
            source: place(call, &arguments.source)?,
            destination,
            on_existing: OnExisting::Fail,
            on_directory: OnDirectory::Onto,
        };
        move_to.run(&call.context)?;
        let (source, destination) = (&arguments.source, &arguments.destination);
        Ok(format!("Successfully moved {source} to {destination}").into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}
