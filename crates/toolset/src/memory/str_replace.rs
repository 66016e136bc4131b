//! `str_replace`: one string of a file, replaced by another.

use ops::{Operation, ReplaceString};
use schemars::JsonSchema;
use serde::Deserialize;

use super::done::Done;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct StrReplace;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The file, relative to the base directory.
    path: String,
    /// The text to find, exactly; case counts. It must occur exactly once: take in lines around it until it does.
    old_str: String,
    /// The text to put in its place; empty removes old_str.
    new_str: String,
}

impl Tool for StrReplace {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "str_replace";
    const TITLE: &'static str = "Replace a string";
    const DESCRIPTION: &'static str = "Replaces text in a file. old_str must occur exactly once, letter for letter; a string \
        with \\n line ends also fits a file with CRLF, and new_str then gets CRLF. Where it is missing, the error's hint shows \
        the line most like it; where it is not unique, the error's lines tell where it occurs. Everything else in the file \
        stays byte for byte. Only text files up to 100 MB. Returns success and path. \
        Example: {\"path\":\"projects/current.md\",\"old_str\":\"Status: Planning\",\"new_str\":\"Status: In Progress\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        let replace = ReplaceString {
            place: call.place(&arguments.path)?.relative()?,
            old: arguments.old_str,
            new: arguments.new_str,
        };
        replace.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }
}
