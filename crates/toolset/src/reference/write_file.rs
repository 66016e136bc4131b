//! `write_file`: a whole file, new or in the place of another.

use ops::{Operation, Parents, SyntaxCheck, Write, WriteMode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write File";
    const DESCRIPTION: &'static str = "Create a new file or completely overwrite an existing file with new content. Use with caution as it will \
        overwrite existing files without warning. Handles text content with proper encoding. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &["content"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let write = Write {
            place: place(call, &arguments.path)?,
            bytes: arguments.content.into_bytes(),
            mode: WriteMode::Overwrite,
            parents: Parents::Require,
            syntax: SyntaxCheck::Skip,
        };
        write.run(&call.context)?;
        Ok(format!("Successfully wrote to {}", arguments.path).into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}
