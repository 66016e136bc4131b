//! `list`: what is in a directory or in the tree below it.

use ops::{Detail, FileKind, Hidden, List, ListEntry, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::yes;
use crate::iso_time::iso;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to list files from (relative to server root); "." or "" is the root itself.
    path: String,
    /// Glob pattern to filter entries: without / by name (*.txt), else by path below `path` (src/*.rs), which
    /// needs recursive.
    #[serde(default = "everything")]
    pattern: String,
    /// Whether to list files recursively.
    #[serde(default)]
    recursive: bool,
    /// Whether to include hidden files (starting with .); with recursive also what is in hidden directories.
    #[serde(default)]
    include_hidden: bool,
    /// Whether to include file metadata (size, type, modification time).
    #[serde(default = "yes")]
    metadata: bool,
}

fn everything() -> String {
    "*".to_owned()
}

/// What was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The entries, in byte order of their paths.
    entries: Vec<Item>,
    /// True where there are more entries than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Directories below that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Item {
    /// Its name.
    name: String,
    /// Its path, relative to the root.
    path: String,
    /// file, directory, symlink, or the kind of special file; with metadata.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Size in bytes; of files, with metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// When the content last changed, ISO 8601; with metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// Whether its name begins with a dot.
    is_hidden: bool,
    /// True where the name's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for ListTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list";
    const TITLE: &'static str = "List files";
    const DESCRIPTION: &'static str = "Lists files and directories at a path, sorted by path. recursive: true lists the whole tree \
        below; symlinks are listed and not entered. Hidden entries (names that begin with a dot) only come with \
        include_hidden: true. pattern filters by glob, e.g. *.txt. Use search to find text in files, info for one path. \
        Returns entries with name, path (relative to the root: give it to the other tools), type, size, modified and \
        is_hidden; metadata: false leaves out type, size and modified. \
        Example: {\"path\":\"src\",\"pattern\":\"*.rs\",\"recursive\":true}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let list = List {
            place: call.place(&arguments.path)?,
            max_depth: (!arguments.recursive).then_some(1),
            hidden: if arguments.include_hidden {
                Hidden::Include
            } else {
                Hidden::Skip
            },
            pattern: Some(arguments.pattern),
            detail: if arguments.metadata {
                Detail::Metadata
            } else {
                Detail::Names
            },
            max_entries: List::MAX_ENTRIES,
        };
        let listed = list.run(&call.context)?;
        let entries = listed.entries.iter();
        Ok(Reply {
            entries: entries
                .map(|entry| item(entry, arguments.metadata))
                .collect(),
            truncated: listed.truncated,
            unreadable: listed.faults.into_iter().map(|fault| fault.path).collect(),
        })
    }
}

fn item(entry: &ListEntry, detailed: bool) -> Item {
    let of_file = entry
        .metadata
        .filter(|metadata| metadata.kind == FileKind::File);
    Item {
        name: entry.name().to_owned(),
        path: entry.path.clone(),
        kind: detailed.then(|| entry.kind.to_string()),
        size: of_file.map(|metadata| metadata.size),
        modified: entry.metadata.map(|metadata| iso(metadata.modified)),
        is_hidden: entry.hidden,
        invalid_utf8: entry.invalid_utf8,
    }
}
