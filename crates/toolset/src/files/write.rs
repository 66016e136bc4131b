//! `write`: a file's content, made, replaced or added to.

use ops::text::encoding::from_base64;
use ops::{Operation, Parents, SyntaxCheck, Write, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::FileFacts;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::text_form::{counted, shown};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct WriteTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    /// create and create_new fail if the file exists.
    #[serde(default)]
    mode: Mode,
    /// Create parent directories if they don't exist.
    #[serde(default)]
    make_dirs: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    #[default]
    Utf8,
    Base64,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Create,
    #[default]
    Overwrite,
    Append,
    CreateNew,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Always true.
    success: bool,
    /// The file, relative to the root.
    path: String,
    /// How many bytes were written.
    bytes_written: u64,
    /// The file as it is now.
    metadata: FileFacts,
}

impl Tool for WriteTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "write";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Creates or updates a file; readers never see a part of it.";
    const CONTENT: &'static [&'static str] = &["content"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        // Appending twice is not appending once.
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];
    const REPLACES_CONTENT: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let write = Write {
            place: place(call, &arguments.path)?,
            bytes: match arguments.encoding {
                Encoding::Utf8 => arguments.content.into_bytes(),
                Encoding::Base64 => from_base64(&arguments.content)?,
            },
            mode: match arguments.mode {
                Mode::Overwrite => WriteMode::Overwrite,
                Mode::Append => WriteMode::Append,
                Mode::Create | Mode::CreateNew => WriteMode::CreateOnly,
            },
            parents: if arguments.make_dirs {
                Parents::Create
            } else {
                Parents::Require
            },
            syntax: SyntaxCheck::Skip,
        };
        let written = write.run(&call.context)?;
        Ok(Reply {
            success: true,
            bytes_written: written.bytes_written,
            metadata: FileFacts::new(&written.path, &written.metadata),
            path: written.path,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let bytes = counted(reply.bytes_written, "byte", "bytes");
        let (path, size) = (shown(&reply.path), reply.metadata.size);
        Some(format!("wrote {bytes} to {path}, which has {size} now"))
    }
}
