//! `permissions_file`: owner, group and permission bits.

use ops::{Operation, Permissions};
use schemars::JsonSchema;
use serde::Serialize;

use super::path_arguments::PathArguments;
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct PermissionsFile;

/// Who owns it and who may do what.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// Its path, relative to the root.
    path: String,
    /// The owner's name, or its number if it has no name.
    owner: String,
    /// The group's name, or its number if it has no name.
    group: String,
    /// The permission bits in octal, such as 0644.
    mode: String,
    /// The permission bits as ls shows them, such as -rw-r--r--.
    mode_string: String,
}

impl Tool for PermissionsFile {
    type Arguments = PathArguments;
    type Reply = Reply;

    const NAME: &'static str = "permissions_file";
    const TITLE: &'static str = "File permissions";
    const DESCRIPTION: &'static str = "Tells owner, group and permission bits of a file, directory or symlink. No tool changes them.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn run(arguments: PathArguments, call: &Call) -> ops::Result<Reply> {
        let status = Permissions {
            place: call.place(&arguments.path)?,
        }
        .run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            path: status.path,
            owner: status.owner,
            group: status.group,
            mode: status.mode,
            mode_string: status.mode_string,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        lines
            .fact("path", Some(shown(&reply.path)))
            .fact("owner", Some(shown(&reply.owner)))
            .fact("group", Some(shown(&reply.group)))
            .fact(
                "mode",
                Some(format!("{} {}", reply.mode, reply.mode_string)),
            );
        Some(lines.finish())
    }
}
