//! `create_directory`: a directory and what is missing above it.

use ops::{MakeDirectory, OnExistingDirectory, Operation, Parents};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct CreateDirectory;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

impl Tool for CreateDirectory {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "create_directory";
    const TITLE: &'static str = "Create Directory";
    const DESCRIPTION: &'static str = "Create a new directory or ensure a directory exists. Can create multiple nested directories in one operation. \
        If the directory already exists, this operation will succeed silently. Perfect for setting up directory structures for projects or \
        ensuring required paths exist. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let make = MakeDirectory {
            place: place(call, &arguments.path)?,
            parents: Parents::Create,
            on_existing: OnExistingDirectory::Succeed,
        };
        make.run(&call.context)?;
        Ok(format!("Successfully created directory {}", arguments.path).into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}
