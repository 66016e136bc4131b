//! `write_file`: a file's content, made, replaced or added to.

use ops::{Operation, Parents, Write, WriteEffect, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The file, relative to the root. Missing parent directories are made.
    path: String,
    /// The text to write, exactly as it shall stand in the file.
    content: String,
    /// What to do where the file exists.
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Replaces the content; makes the file where it is missing.
    #[default]
    Overwrite,
    /// Adds to the end; makes the file where it is missing.
    Append,
    /// Makes the file; fails where it exists.
    CreateOnly,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// How many bytes were written.
    size: u64,
    /// The mode that was used.
    mode: Mode,
    /// True where the file is new.
    created: bool,
}

impl Tool for WriteFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Writes text to a file and makes missing parent directories. \
        mode \"overwrite\" (default) replaces the whole content, \"append\" adds to the end, \"create_only\" fails where the \
        file exists. The file changes at once and whole, never in part. To change a part of a file use patch_file. \
        Returns path, size (bytes written), mode, and created (true for a new file). \
        Example: {\"root\":\"workspace\",\"path\":\"config/app.yaml\",\"content\":\"port: 80\\n\",\"mode\":\"create_only\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let write = Write {
            place: call.place(&arguments.path)?,
            bytes: arguments.content.into_bytes(),
            mode: match arguments.mode {
                Mode::Overwrite => WriteMode::Overwrite,
                Mode::Append => WriteMode::Append,
                Mode::CreateOnly => WriteMode::CreateOnly,
            },
            parents: Parents::Create,
        };
        let written = write.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            path: written.path,
            size: written.bytes_written,
            mode: arguments.mode,
            created: written.effect == WriteEffect::Created,
        })
    }
}
