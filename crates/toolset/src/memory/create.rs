//! `create`: a new file.

use ops::text::encoding::from_base64;
use ops::{Operation, Parents, SyntaxCheck, Write, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::done::Done;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Create;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The new file, relative to the base directory. Missing parent directories are made.
    path: String,
    /// The content: text exactly as it shall stand in the file, or bytes as base64.
    content: String,
    /// How content is written.
    encoding: Encoding,
}

#[derive(Deserialize, Serialize, JsonSchema)]
enum Encoding {
    /// Text.
    #[serde(rename = "utf-8")]
    Utf8,
    /// Bytes, in standard base64 with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Tool for Create {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "create";
    const TITLE: &'static str = "Create a file";
    const DESCRIPTION: &'static str = "Creates a new file and the directories on the way to it. Fails with file_exists where \
        a file or directory has that name, and then changes nothing: change a file with str_replace or insert. encoding is required: \
        \"utf-8\" for text, \"base64\" for bytes. The file appears at once and whole. Returns success and path. \
        Example: {\"path\":\"projects/new.md\",\"content\":\"# New project\\n\",\"encoding\":\"utf-8\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        let write = Write {
            place: call.place(&arguments.path)?.relative()?,
            bytes: match arguments.encoding {
                Encoding::Utf8 => arguments.content.into_bytes(),
                Encoding::Base64 => from_base64(&arguments.content)?,
            },
            mode: WriteMode::CreateOnly,
            parents: Parents::Create,
            syntax: SyntaxCheck::Skip,
        };
        write.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }
}
