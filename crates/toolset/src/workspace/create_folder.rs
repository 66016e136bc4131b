//! `create_folder`: a directory and the missing ones on the way.

use ops::{MakeDirectory, OnExistingDirectory, Operation, Parents};
use schemars::JsonSchema;
use serde::Serialize;

use super::path_arguments::PathArguments;
use crate::deployment::ReplyHalves;
use crate::text_form::shown_directory;
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct CreateFolder;

/// What was made.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The directory, relative to the root.
    path: String,
    /// Always true: the directory is there now.
    created: bool,
    /// True if it was there before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    existed: bool,
}

impl Tool for CreateFolder {
    type Arguments = PathArguments;
    type Reply = Reply;

    const NAME: &'static str = "create_folder";
    const TITLE: &'static str = "Create a folder";
    const DESCRIPTION: &'static str = "Makes a directory and missing parents; one that exists is fine. write_file, copy and move make parents \
        themselves.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];

    fn run(arguments: PathArguments, call: &Call) -> ops::Result<Reply> {
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

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let path = shown_directory(&reply.path);
        Some(if reply.existed {
            format!("{path} was there already")
        } else {
            format!("created {path}")
        })
    }
}
