//! `mkdir`: a directory, with those on the way if that is wanted.

use ops::{MakeDirectory, OnExistingDirectory, Operation, Parents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::place;
use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::text_form::shown_directory;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Mkdir;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    #[serde(default = "yes")]
    recursive: bool,
}

/// What was made.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Always true: the directory is there now.
    success: bool,
    /// The directory, relative to the root.
    path: String,
}

impl Tool for Mkdir {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "mkdir";
    const TITLE: &'static str = "Make a directory";
    const DESCRIPTION: &'static str = "Creates a directory. With recursive missing parents are made and an existing directory is fine.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let (parents, on_existing) = if arguments.recursive {
            (Parents::Create, OnExistingDirectory::Succeed)
        } else {
            (Parents::Require, OnExistingDirectory::Fail)
        };
        let make = MakeDirectory {
            place: place(call, &arguments.path)?,
            parents,
            on_existing,
        };
        Ok(Reply {
            success: true,
            path: make.run(&call.context)?.path,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        Some(format!("{} is there", shown_directory(&reply.path)))
    }
}
