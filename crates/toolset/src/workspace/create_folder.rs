//! `create_folder`: a directory and the missing ones on the way.

use ops::{MakeDirectory, OnExistingDirectory, Operation, Parents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct CreateFolder;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The directory, relative to the root.
    path: String,
}

/// What was made.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The directory, relative to the root.
    path: String,
    /// Always true: the directory is there now.
    created: bool,
    /// True where it was there before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    existed: bool,
}

impl Tool for CreateFolder {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "create_folder";
    const TITLE: &'static str = "Create a folder";
    const DESCRIPTION: &'static str = "Makes a directory and all missing parent directories. Succeeds where it exists already \
        (existed: true); fails where a file has that path. Not needed before write_file, copy or move, which make parents \
        themselves. Returns path and created: true. Example: {\"root\":\"workspace\",\"path\":\"a/b/c\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let make = MakeDirectory {
            place: call.place(&arguments.path)?,
            parents: Parents::Create,
            on_existing: OnExistingDirectory::Succeed,
        };
        let made = make.run(&call.context)?;
        let existed = made.created == 0;
        Ok(Reply {
            root: arguments.root,
            path: made.path,
            created: true,
            existed,
        })
    }
}
