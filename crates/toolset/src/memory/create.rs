//! `create`: a new file.

use ops::text::encoding::from_base64;
use ops::{Operation, Parents, SyntaxCheck, Write, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::done::Done;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Create;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    content: String,
    encoding: Encoding,
}

#[derive(Deserialize, Serialize, JsonSchema)]
enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl Tool for Create {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "create";
    const TITLE: &'static str = "Create a file";
    const DESCRIPTION: &'static str = "Creates a new file and missing directories. If the path exists it fails with file_exists; then use str_replace or insert.";
    const CONTENT: &'static [&'static str] = &["content"];
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

    fn text(reply: &Done, _replies: ReplyHalves) -> Option<String> {
        Some(format!("created {}", reply.shown()))
    }
}
