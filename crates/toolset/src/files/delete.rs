//! `delete`: a file, a link, an empty directory or a whole tree.

use ops::{Error, OnFault, OnMissing, Operation, Recurse, Remove, RemoveTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct Delete;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// Otherwise only empty directories are deleted.
    #[serde(default)]
    recursive: bool,
    /// A missing path is no error; what cannot be deleted is reported and kept.
    #[serde(default)]
    force: bool,
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// True if nothing of it is left.
    success: bool,
    /// What was deleted, relative to the root.
    path: String,
    /// file, directory, symlink, or the kind of special file; left out if nothing was there.
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
    const DESCRIPTION: &'static str =
        "Deletes a file or directory. A symlink is deleted itself, its target stays.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Remove)];

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
            place: place(call, &arguments.path)?,
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

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let path = shown(&reply.path);
        let mut lines = TextLines::default();
        match (&reply.kind, reply.errors.is_empty()) {
            (None, _) => lines.line(format_args!("nothing was at {path}")),
            (Some(kind), true) => lines.line(format_args!("deleted {kind} {path}")),
            (Some(kind), false) => lines.line(format_args!("deleted {kind} {path} in part")),
        };
        for left in reply.errors.iter().take(3) {
            lines.line(format_args!(
                "stayed: {}: {}",
                shown(&left.path),
                left.message
            ));
        }
        if reply.errors.len() > 3 {
            lines.note(format!("{} could not be deleted", reply.errors.len()));
        }
        Some(lines.finish())
    }
}

fn left(fault: &Error) -> Left {
    Left {
        path: fault.path().unwrap_or_default().to_owned(),
        code: errors::operation_code(fault.kind()),
        message: errors::operation_message(fault, Delete::NAME),
    }
}
