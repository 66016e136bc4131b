//! `remove_folder`: a directory with all it holds.

use ops::{OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::Serialize;

use super::path_arguments::PathArguments;
use crate::deployment::ReplyHalves;
use crate::text_form::{counted, shown_directory};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct RemoveFolder;

/// What was removed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// What was removed, relative to the root.
    path: String,
    /// Always true.
    removed: bool,
    /// How many files and links were removed with it; left out if the tree is kept to be undone, so that it is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    /// How many directories were removed, itself included.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories: Option<u64>,
}

impl Tool for RemoveFolder {
    type Arguments = PathArguments;
    type Reply = Reply;

    const NAME: &'static str = "remove_folder";
    const TITLE: &'static str = "Remove a folder";
    const DESCRIPTION: &'static str =
        "Removes a directory and everything in it. Symlinks inside are removed, never followed.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::REMOVE];

    fn weight(_arguments: &PathArguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: PathArguments, call: &Call) -> ops::Result<Reply> {
        let remove = Remove {
            place: call.place(&arguments.path)?,
            target: RemoveTarget::Directory,
            recurse: Recurse::Yes,
            on_missing: OnMissing::Fail,
            on_fault: OnFault::Stop,
        };
        let removed = remove.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            path: removed.path,
            removed: true,
            files: (!removed.uncounted).then_some(removed.files),
            directories: (!removed.uncounted).then_some(removed.directories),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let path = shown_directory(&reply.path);
        let Some((files, directories)) = reply.files.zip(reply.directories) else {
            return Some(format!("removed {path}"));
        };
        let files = counted(files, "file", "files");
        let directories = counted(directories, "directory", "directories");
        Some(format!("removed {path}: {files}, {directories}"))
    }
}
