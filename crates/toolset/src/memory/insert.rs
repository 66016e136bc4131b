//! `insert`: text before a line of a file.

use ops::{InsertLines, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::done::Done;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, Inline, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct Insert;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// From 1; one more than the file has adds to its end.
    insert_line: i64,
    /// End it with a newline to insert whole lines.
    new_str: String,
}

impl Tool for Insert {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "insert";
    const TITLE: &'static str = "Insert at a line";
    const DESCRIPTION: &'static str = "Inserts text before a line of a file.";
    const CONTENT: &'static [&'static str] = &["new_str"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
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
        let insert = InsertLines {
            place: call.place(&arguments.path)?.relative()?,
            line: arguments.insert_line,
            text: arguments.new_str,
        };
        insert.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }

    fn text(reply: &Done, _replies: ReplyHalves) -> Option<String> {
        Some(format!("inserted into {}", reply.shown()))
    }
}
