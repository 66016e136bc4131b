//! `remove_file`: one file.

use ops::{OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct RemoveFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The file, relative to the root. A symlink is removed itself, not what it leads to.
    path: String,
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
    const DESCRIPTION: &'static str = "Removes one file for good; there is no undo. For a directory use remove_folder. \
        A symlink is removed itself, its target stays. Fails where the file does not exist. \
        Returns path and removed: true. Example: {\"root\":\"workspace\",\"path\":\"tmp/old.txt\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let remove = Remove {
            place: call.place(&arguments.path)?,
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
}
