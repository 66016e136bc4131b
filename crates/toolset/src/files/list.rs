//! `list`: what is in a directory or in the tree below it.

use std::time::Duration;

use ops::{Detail, FileKind, Hidden, Limits, List, ListEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::{place, with_slashes};
use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::iso_time::iso;
use crate::made_items::{self, MadeItems};
use crate::search_bounds::{is_zero, with_grace};
use crate::text_form::{TextLines, counted, shown, shown_directory};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to list files from (relative to server root).
    path: String,
    /// Glob pattern: *.txt by name, src/*.rs by path below `path`.
    #[serde(default = "everything")]
    pattern: String,
    #[serde(default)]
    recursive: bool,
    /// Whether to include names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Whether to include size, type and modification time.
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
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<Item>")]
    entries: Entries,
    /// True if there are more entries than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// True if the time for requests was over before everything was listed: entries are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Directories below that could not be read; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    /// How many could not be read, if any could not.
    #[serde(skip_serializing_if = "is_zero")]
    unreadable_count: u64,
}

/// What the items are made from.
struct Entries {
    listed: Vec<ListEntry>,
    /// Whether metadata was asked for.
    is_detailed: bool,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Item<'made> {
    /// Its name.
    name: &'made str,
    /// Its path, relative to the root.
    path: &'made str,
    /// file, directory, symlink, or the kind of special file; with metadata.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// Size in bytes; of files, with metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// When the content last changed, ISO 8601; with metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// Whether its name begins with a dot.
    is_hidden: bool,
    /// Said only if it is true: it is a symlink; with metadata.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_symlink: bool,
    /// True if the name's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for ListTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list";
    const TITLE: &'static str = "List files";
    const DESCRIPTION: &'static str = "Lists files and directories at a path, sorted by path; with recursive the whole tree below. Symlinks are \
        listed and not entered. To find text in files use search.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    /// The listing stops by itself and answers with what it has, so the call's own deadline is later.
    fn timeout(_: &Arguments, request_timeout: Duration, _: &Limits) -> Duration {
        with_grace(request_timeout)
    }

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let list = request(&arguments, call)?;
        let listed = list.run_within(call.request_timeout, &call.context)?;
        Ok(Reply {
            entries: Entries {
                listed: listed.entries,
                is_detailed: arguments.metadata,
            },
            truncated: listed.truncated,
            timed_out: listed.timed_out,
            unreadable_count: listed.faults_total,
            unreadable: listed.faults.into_iter().map(|fault| fault.path).collect(),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::of_list(reply.entries.listed.len());
        for entry in &reply.entries.listed {
            add_line(&mut lines, entry, reply.entries.is_detailed);
        }
        if reply.entries.listed.is_empty() {
            lines.note("no entries");
        }
        if reply.truncated {
            lines.note("more follow: give a pattern or list a directory below");
        }
        if reply.timed_out {
            lines.note(
                "the time was over, entries are missing: give a pattern or list a directory below",
            );
        }
        if !reply.unreadable.is_empty() {
            lines.note(reply.unreadable_words());
        }
        Some(lines.finish())
    }
}

impl Reply {
    fn unreadable_words(&self) -> String {
        let number = counted(self.unreadable_count, "directory", "directories");
        let first = self.unreadable.iter().take(3).map(|path| shown(path));
        let first: Vec<_> = first.collect();
        format!("{number} could not be read: {}", first.join(", "))
    }
}

fn add_line(lines: &mut TextLines, entry: &ListEntry, is_detailed: bool) {
    let path = shown(&entry.path);
    match entry.facts.kind {
        _ if !is_detailed => lines.line(path),
        FileKind::Directory => lines.line(shown_directory(&entry.path)),
        FileKind::File if entry.facts.is_described => {
            lines.line(format_args!("{path}\t{}", entry.facts.size))
        }
        kind => lines.line(format_args!("{path}\t{kind}")),
    };
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<List> {
    Ok(List {
        place: place(call, &arguments.path)?,
        max_depth: (!arguments.recursive).then_some(1),
        hidden: match arguments.include_hidden {
            true => Hidden::Include,
            false => Hidden::Skip,
        },
        pattern: Some(with_slashes(&arguments.pattern)),
        detail: match arguments.metadata {
            true => Detail::Metadata,
            false => Detail::Names,
        },
        max_entries: List::MAX_ENTRIES,
    })
}

impl MadeItems for Entries {
    type Item<'made> = Item<'made>;

    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        let listed = self.listed.iter();
        listed.map(|entry| item(entry, self.is_detailed))
    }
}

fn item(entry: &ListEntry, is_detailed: bool) -> Item<'_> {
    let facts = entry.facts;
    let is_file = facts.kind == FileKind::File;
    Item {
        name: entry.name(),
        path: &entry.path,
        kind: is_detailed.then(|| facts.kind.as_str()),
        size: (facts.is_described && is_file).then_some(facts.size),
        modified: facts.is_described.then(|| iso(facts.modified())),
        is_hidden: entry.is_hidden(),
        is_symlink: is_detailed && facts.kind == FileKind::Symlink,
        invalid_utf8: facts.invalid_utf8,
    }
}
