//! `delete`: a file or an empty directory.

use ops::{OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::Deserialize;

use super::done::Done;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct Delete;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

impl Tool for Delete {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "delete";
    const TITLE: &'static str = "Delete a file or empty directory";
    const DESCRIPTION: &'static str = "Deletes a file or an empty directory.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Remove)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        let remove = Remove {
            place: call.place(&arguments.path)?.relative()?,
            target: RemoveTarget::Any,
            recurse: Recurse::No,
            on_missing: OnMissing::Fail,
            on_fault: OnFault::Stop,
        };
        remove.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }

    fn text(reply: &Done, _replies: ReplyHalves) -> Option<String> {
        Some(format!("deleted {}", reply.shown()))
    }
}
