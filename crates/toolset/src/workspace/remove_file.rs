//! `remove_file`: one file.

use ops::{OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::versions::versioned;
use crate::deployment::ReplyHalves;
use crate::text_form::shown;
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct RemoveFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: String,
    /// Version from an earlier reply.
    if_version: Option<String>,
}

/// What was removed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// What was removed, relative to the root.
    path: String,
    /// Always true.
    removed: bool,
}

impl Tool for RemoveFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "remove_file";
    const TITLE: &'static str = "Remove a file";
    const DESCRIPTION: &'static str = "Removes one file; a symlink itself, not what it leads to. For a directory use remove_folder.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::REMOVE];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let remove = Remove {
            place: versioned(
                call.place(&arguments.path)?,
                arguments.if_version.as_deref(),
            )?,
            target: RemoveTarget::File,
            recurse: Recurse::No,
            on_missing: OnMissing::Fail,
            on_fault: OnFault::Stop,
        };
        let removed = remove.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            path: removed.path,
            removed: true,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        Some(format!("removed {}", shown(&reply.path)))
    }
}
