//! `delete`: a file, a link, an empty directory or a whole tree.

use ops::{Error, OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct Delete;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to delete (relative to server root). A symlink is deleted itself, not what it leads to.
    path: String,
    /// Whether to recursively delete directories; otherwise only empty ones go.
    #[serde(default)]
    recursive: bool,
    /// Force deletion even if errors occur: a missing path is fine, and what cannot go is told in errors.
    #[serde(default)]
    force: bool,
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// True where nothing of it is left.
    success: bool,
    /// What was deleted, relative to the root.
    path: String,
    /// file, directory, symlink, or the kind of special file; left out where nothing was there.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// With force: what could not be deleted; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Left>,
}

/// Something that could not be deleted.
#[derive(Serialize, JsonSchema)]
struct Left {
    /// Its path, relative to the root.
    path: String,
    /// The code of the error.
    code: &'static str,
    /// Why.
    message: String,
}

impl Tool for Delete {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "delete";
    const TITLE: &'static str = "Delete";
    const DESCRIPTION: &'static str = "Deletes a file or directory for good; there is no undo. A directory that is not empty needs \
        recursive: true. A symlink is deleted itself, its target stays. The root itself cannot be deleted. force: true \
        succeeds where nothing is there, and goes on past what cannot be deleted: success is then false and errors lists what \
        stayed. Returns success, path and type. Example: {\"path\":\"tmp/build\",\"recursive\":true}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn weight(arguments: &Arguments) -> Weight {
        if arguments.recursive {
            Weight::Heavy
        } else {
            Weight::Small
        }
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let (on_missing, on_fault) = if arguments.force {
            (OnMissing::Succeed, OnFault::Collect)
        } else {
            (OnMissing::Fail, OnFault::Stop)
        };
        let remove = Remove {
            place: call.place(&arguments.path)?,
            target: RemoveTarget::Any,
            recurse: if arguments.recursive {
                Recurse::Yes
            } else {
                Recurse::No
            },
            on_missing,
            on_fault,
        };
        let removed = remove.run(&call.context)?;
        Ok(Reply {
            success: removed.faults.is_empty(),
            path: removed.path,
            kind: removed.kind.map(|kind| kind.to_string()),
            errors: removed.faults.iter().map(left).collect(),
        })
    }
}

fn left(fault: &Error) -> Left {
    Left {
        path: fault.path().unwrap_or_default().to_owned(),
        code: errors::operation_code(fault.kind()),
        message: errors::operation_message(fault, Delete::NAME),
    }
}
