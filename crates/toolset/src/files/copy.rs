//! `copy`: a file or a tree.

use ops::{Copy, OnDirectory, Operation, Recurse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::move_to::on_existing;
use crate::defaults::yes;
use crate::skipped::SkippedEntry;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CopyTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Source path (relative to server root).
    source: String,
    /// Destination path (relative to server root): the copy's own path, not a directory to put it into.
    destination: String,
    /// Whether to overwrite existing files.
    #[serde(default)]
    overwrite: bool,
    /// Whether to copy directories recursively; otherwise a directory is an error.
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
    const DESCRIPTION: &'static str = "Copies a file, or a directory with all it holds. destination is the path of the copy itself. \
        Where it exists the call fails with already_exists; overwrite: true replaces a file and merges into a directory. \
        Missing parent directories are made. Returns success, source, destination and bytes_copied, and skipped where symlinks \
        that lead outside or special files were left out. \
        Example: {\"source\":\"data/report.csv\",\"destination\":\"backup/report.csv\",\"overwrite\":true}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::home("source", PlaceAccess::Read),
        RootUse::home("destination", PlaceAccess::Write),
    ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let copy = Copy {
            source: call.place(&arguments.source)?,
            destination: call.destination(&arguments.destination)?,
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
}
