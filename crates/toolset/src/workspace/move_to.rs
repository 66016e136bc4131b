//! `move`: a file or a tree to another name, directory or root.

use ops::{FileKind, Move, OnDirectory, OnExisting, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::transfer::{TransferEnd, ends};
use super::versions::{add_version, told, versioned};
use crate::deployment::ReplyHalves;
use crate::skipped::SkippedEntry;
use crate::text_form::TextLines;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct MoveTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    source_root: String,
    source_path: String,
    /// The same or another root.
    dest_root: String,
    dest_path: String,
    /// Of the source file.
    if_version: Option<String>,
}

/// What was moved.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Where it was.
    source: TransferEnd,
    /// Where it is.
    destination: TransferEnd,
    /// Whether it is a directory.
    is_directory: bool,
    /// Its size in bytes; of a directory only if it had to be copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The version of a moved file, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// How many files had to be copied; 0 if it was renamed.
    files_copied: u64,
    /// Always empty: a move that cannot take everything along fails and changes nothing.
    skipped: Vec<SkippedEntry>,
}

impl Tool for MoveTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "move";
    const TITLE: &'static str = "Move or rename";
    const DESCRIPTION: &'static str = "Moves or renames a file or directory, also to another root. An existing file is overwritten; onto an \
        existing directory it goes into it. Missing parents are made.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::named("source_root", "source_path", PlaceAccess::Remove),
        RootUse::named("dest_root", "dest_path", PlaceAccess::Write),
    ];

    fn weight(arguments: &Arguments) -> Weight {
        // Inside one root it is a rename.
        if arguments.source_root == arguments.dest_root {
            Weight::Small
        } else {
            Weight::Heavy
        }
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let move_to = Move {
            source: versioned(
                call.place(&arguments.source_path)?,
                arguments.if_version.as_deref(),
            )?,
            destination: call.destination(&arguments.dest_path)?.versioned(None),
            on_existing: OnExisting::Replace,
            on_directory: OnDirectory::Into,
        };
        let moved = move_to.run(&call.context)?;
        let copied = moved.method == ops::Method::Copied;
        Ok(Reply {
            source: TransferEnd {
                root: arguments.source_root,
                path: moved.source,
            },
            destination: TransferEnd {
                root: arguments.dest_root,
                path: moved.destination,
            },
            is_directory: moved.kind == FileKind::Directory,
            size: moved.bytes,
            version: told(moved.version.as_ref()),
            files_copied: moved.files.filter(|_| copied).unwrap_or(0),
            skipped: Vec::new(),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        text.line(ends(
            "moved",
            &reply.source,
            &reply.destination,
            reply.is_directory,
        ));
        add_version(&mut text, reply.version.as_deref());
        Some(text.finish())
    }
}
