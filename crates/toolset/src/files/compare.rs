//! `compare`: how two directories or two files differ.

use ops::Operation;
use schemars::JsonSchema;
use serde::Deserialize;

use super::paths::{destination, place};
use crate::comparison::Comparison;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CompareTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// Another directory or file.
    other: String,
}

impl Tool for CompareTool {
    type Arguments = Arguments;
    type Reply = Comparison;

    const NAME: &'static str = "compare";
    const TITLE: &'static str = "Compare";
    const DESCRIPTION: &'static str =
        "Compares two directories by content, or two files (a unified diff).";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("path", PlaceAccess::Read),
        RootUse::home("other", PlaceAccess::Read),
    ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Comparison> {
        let compare = ops::Compare {
            place: place(call, &arguments.path)?,
            other: destination(call, &arguments.other)?,
        };
        let compared = compare.run(&call.context)?;
        Ok(Comparison::new(arguments.path, arguments.other, compared))
    }

    fn text(reply: &Comparison, _replies: ReplyHalves) -> Option<String> {
        Some(reply.text())
    }
}
