//! `copy`: a file or a tree, also into another root.

use ops::{Copy, OnDirectory, OnExisting, Operation, Recurse};
use schemars::JsonSchema;
use serde::Serialize;

use super::transfer::{Arguments, TransferEnd, ends};
use super::versions::{add_version, told};
use crate::deployment::ReplyHalves;
use crate::skipped::{SkippedEntry, add_skipped};
use crate::text_form::{TextLines, counted};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CopyTool;

/// What was copied.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// What was copied.
    source: TransferEnd,
    /// Where the copy is.
    destination: TransferEnd,
    /// Whether it is a directory.
    is_directory: bool,
    /// Bytes of all files copied.
    size: u64,
    /// The version of a file's copy, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// How many files were copied.
    files_copied: u64,
    /// What was left out of a directory: symlinks that lead outside, special files.
    skipped: Vec<SkippedEntry>,
    /// How many were left out, if not all of them are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_total: Option<u64>,
}

impl Tool for CopyTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "copy";
    const TITLE: &'static str = "Copy";
    const DESCRIPTION: &'static str = "Copies a file or a whole directory, also to another root. An existing file is overwritten; onto an existing \
        directory it goes into it. Missing parents are made.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::named("source_root", "source_path", PlaceAccess::Read),
        RootUse::named("dest_root", "dest_path", PlaceAccess::Write),
    ];
    const REPLACES_CONTENT: bool = true;

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let copy = Copy {
            source: call.place(&arguments.source_path)?,
            destination: call.destination(&arguments.dest_path)?.versioned(None),
            on_existing: OnExisting::Replace,
            on_directory: OnDirectory::Into,
            recurse: Recurse::Yes,
        };
        let copied = copy.run(&call.context)?;
        let listed = copied.skipped.len() as u64;
        Ok(Reply {
            source: TransferEnd {
                root: arguments.source_root,
                path: copied.source,
            },
            destination: TransferEnd {
                root: arguments.dest_root,
                path: copied.destination,
            },
            is_directory: copied.is_directory,
            size: copied.bytes,
            files_copied: copied.files,
            version: told(copied.version.as_ref()),
            skipped: copied.skipped.iter().map(SkippedEntry::from).collect(),
            skipped_total: (copied.skipped_total > listed).then_some(copied.skipped_total),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let bytes = counted(reply.size, "byte", "bytes");
        let files = counted(reply.files_copied, "file", "files");
        let mut lines = TextLines::default();
        let ends = ends(
            "copied",
            &reply.source,
            &reply.destination,
            reply.is_directory,
        );
        if reply.is_directory {
            lines.line(format_args!("{ends}: {files}, {bytes}"));
        } else {
            lines.line(format_args!("{ends}, {bytes}"));
        }
        let total = reply.skipped_total.unwrap_or(reply.skipped.len() as u64);
        add_skipped(&mut lines, &reply.skipped, total);
        add_version(&mut lines, reply.version.as_deref());
        Some(lines.finish())
    }
}
