//! `copy`: a file or a tree.

use ops::{Copy, OnDirectory, Operation, Recurse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::move_to::on_existing;
use super::paths::{destination, place};
use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::skipped::{SkippedEntry, add_skipped};
use crate::text_form::{TextLines, counted, shown};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CopyTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    source: String,
    /// The copy's own path, not a directory to put it into.
    destination: String,
    /// Otherwise an existing destination is an error. Directories are merged.
    #[serde(default)]
    overwrite: bool,
    /// Otherwise a directory is an error.
    #[serde(default = "yes")]
    recursive: bool,
}

/// What was copied.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Always true.
    success: bool,
    /// What was copied, relative to the root.
    source: String,
    /// Where the copy is, relative to the root.
    destination: String,
    /// Bytes of all files copied.
    bytes_copied: u64,
    /// What was left out of a directory: symlinks that lead outside, special files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<SkippedEntry>,
}

impl Tool for CopyTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "copy";
    const TITLE: &'static str = "Copy";
    const DESCRIPTION: &'static str =
        "Copies a file or a whole directory. Missing parents are made.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("source", PlaceAccess::Read),
        RootUse::home("destination", PlaceAccess::Write),
    ];
    const REPLACES_CONTENT: bool = true;

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let copy = Copy {
            source: place(call, &arguments.source)?,
            destination: destination(call, &arguments.destination)?,
            on_existing: on_existing(arguments.overwrite),
            on_directory: OnDirectory::Onto,
            recurse: if arguments.recursive {
                Recurse::Yes
            } else {
                Recurse::No
            },
        };
        let copied = copy.run(&call.context)?;
        Ok(Reply {
            success: true,
            source: copied.source,
            destination: copied.destination,
            bytes_copied: copied.bytes,
            skipped: copied.skipped.iter().map(SkippedEntry::from).collect(),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let (from, to) = (shown(&reply.source), shown(&reply.destination));
        let bytes = counted(reply.bytes_copied, "byte", "bytes");
        let mut lines = TextLines::default();
        lines.line(format_args!("copied {from} to {to}, {bytes}"));
        add_skipped(&mut lines, &reply.skipped, reply.skipped.len() as u64);
        Some(lines.finish())
    }
}
