//! `write`: a file's content, made, replaced or added to.

use ops::text::encoding::from_base64;
use ops::{Operation, Parents, SyntaxCheck, Write, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::FileFacts;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct WriteTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to the file to write (relative to server root).
    path: String,
    /// Content to write to the file.
    content: String,
    /// Content encoding.
    #[serde(default)]
    encoding: Encoding,
    /// Write mode.
    #[serde(default)]
    mode: Mode,
    /// Create parent directories if they don't exist.
    #[serde(default)]
    make_dirs: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    /// The text as it is.
    #[default]
    Utf8,
    /// Bytes in base64.
    Base64,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Makes the file; fails where it exists.
    Create,
    /// Replaces the content; makes the file where it is missing.
    #[default]
    Overwrite,
    /// Adds to the end; makes the file where it is missing.
    Append,
    /// The same as create.
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
    const DESCRIPTION: &'static str = "Creates or updates a file. mode \"overwrite\" (default) replaces the whole content, \"append\" \
        adds to the end, \"create\" and \"create_new\" fail with already_exists where the file exists. The file changes at once \
        and whole, never in part. encoding \"base64\" takes bytes that are not text. Missing parent directories are only made \
        with make_dirs: true. Returns success, path, bytes_written and metadata (path, modified, size). \
        Example: {\"path\":\"config/app.yaml\",\"content\":\"port: 80\\n\",\"mode\":\"create\",\"make_dirs\":true}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        // Appending twice is not appending once.
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let write = Write {
            place: call.place(&arguments.path)?,
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
}
