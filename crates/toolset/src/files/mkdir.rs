//! `mkdir`: a directory, with those on the way where that is wanted.

use ops::{MakeDirectory, OnExistingDirectory, Operation, Parents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::yes;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Mkdir;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to the directory to create (relative to server root).
    path: String,
    /// Create parent directories if they don't exist; then a directory that is there already is fine too.
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
    const DESCRIPTION: &'static str = "Creates a directory. recursive (default true) also makes missing parents and succeeds where \
        the directory exists; with recursive: false the parent must exist and the directory must not. Fails where a file has \
        that path. Returns success and path. Example: {\"path\":\"a/b/c\"}";
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
            place: call.place(&arguments.path)?,
            parents,
            on_existing,
        };
        Ok(Reply {
            success: true,
            path: make.run(&call.context)?.path,
        })
    }
}
