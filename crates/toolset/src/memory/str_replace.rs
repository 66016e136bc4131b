//! `str_replace`: one string of a file, replaced by another.

use ops::{Operation, ReplaceString};
use schemars::JsonSchema;
use serde::Deserialize;

use super::done::Done;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, Inline, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct StrReplace;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// Include surrounding lines if it would not be unique.
    old_str: String,
    new_str: String,
}

impl Tool for StrReplace {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "str_replace";
    const TITLE: &'static str = "Replace a string";
    const DESCRIPTION: &'static str = "Replaces text in a file. old_str has to occur exactly once, letter for letter; errors show the most similar \
        line, or where it occurs.";
    const CONTENT: &'static [&'static str] = &["old_str", "new_str"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];
    const REPLACES_CONTENT: bool = true;
    const TRY_INLINE: bool = true;

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Done> {
        let weight = Weight::of_edit(call.place(&arguments.path).iter());
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        let replace = ReplaceString {
            place: call.place(&arguments.path)?.relative()?,
            old: arguments.old_str,
            new: arguments.new_str,
        };
        replace.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }

    fn text(reply: &Done, _replies: ReplyHalves) -> Option<String> {
        Some(format!("replaced 1 place in {}", reply.shown()))
    }
}
