//! `list_folder`: what is in one directory.

use ops::{Detail, FileKind, Hidden, LinkTarget, List, ListEntry, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::iso_time::iso;
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListFolder;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The directory, relative to the root; "." or "" is the root itself.
    path: String,
}

/// A directory's entries.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The directory, relative to the root.
    path: String,
    /// The entries, sorted by name.
    entries: Vec<Item>,
    /// How many entries are listed.
    count: usize,
    /// True where the directory has more entries than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Item {
    /// Its name in the directory.
    name: String,
    /// file, directory, symlink, or the kind of special file.
    #[serde(rename = "type")]
    kind: String,
    /// Size in bytes.
    size: u64,
    /// When the content last changed, ISO 8601.
    modified_at: String,
    /// For a symlink what it leads to: file, directory, external (outside the root), missing or loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_type: Option<String>,
    /// True where the name's bytes are not UTF-8; the name shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for ListFolder {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list_folder";
    const TITLE: &'static str = "List a folder";
    const DESCRIPTION: &'static str = "Lists the immediate entries of one directory, hidden ones included, sorted by name. \
        Use it to look around; use glob to find files by name in a whole tree, and stat_file for one entry. \
        Returns entries with name, type (file, directory or symlink), size in bytes and modified_at; a symlink also has \
        target_type (file, directory, or external when it leads outside the root). \
        Example: {\"root\":\"workspace\",\"path\":\"src\"}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let list = List {
            place: call.place(&arguments.path)?,
            max_depth: Some(1),
            hidden: Hidden::Include,
            pattern: None,
            detail: Detail::Metadata,
            max_entries: List::MAX_ENTRIES,
        };
        let listed = list.run(&call.context)?;
        let entries: Vec<Item> = listed.entries.iter().filter_map(item).collect();
        Ok(Reply {
            root: arguments.root,
            path: listed.path,
            count: entries.len(),
            entries,
            truncated: listed.truncated,
        })
    }
}

fn item(entry: &ListEntry) -> Option<Item> {
    let metadata = entry.metadata?;
    Some(Item {
        name: entry.name().to_owned(),
        kind: entry.kind.to_string(),
        size: metadata.size,
        modified_at: iso(metadata.modified),
        target_type: entry.target.as_deref().map(target_type),
        invalid_utf8: entry.invalid_utf8,
    })
}

fn target_type(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Inside { metadata, .. } => match metadata.kind {
            FileKind::Directory => "directory".to_owned(),
            kind => kind.to_string(),
        },
        LinkTarget::Outside => "external".to_owned(),
        LinkTarget::Dangling => "missing".to_owned(),
        LinkTarget::Loop => "loop".to_owned(),
    }
}
