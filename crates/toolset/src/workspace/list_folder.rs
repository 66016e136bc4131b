//! `list_folder`: what is in one directory.

use ops::{Detail, FileKind, Hidden, LinkTarget, List, ListEntry, Operation, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::iso_time;
use crate::made_items::{self, MadeItems};
use crate::search_bounds::here;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListFolder;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    #[serde(default = "here")]
    path: String,
    /// Levels of a tree.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    depth: usize,
}

fn one() -> usize {
    1
}

/// A directory's entries.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The directory, relative to the root.
    path: String,
    /// The entries, sorted by name.
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<Item>")]
    entries: Entries,
    /// How many entries are listed.
    count: usize,
    /// True if the directory has more entries than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// What the items are made from.
struct Entries {
    listed: Vec<ListEntry>,
    /// Whether they are those of a tree.
    is_tree: bool,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Item<'made> {
    /// Its name in the directory.
    name: &'made str,
    /// With depth over 1: its path, relative to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'made str>,
    /// file, directory, symlink, or the kind of special file.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Size in bytes.
    size: u64,
    /// When the content last changed, ISO 8601.
    #[serde(serialize_with = "iso_time::serialize")]
    #[schemars(with = "String")]
    modified_at: Time,
    /// For a symlink what it leads to: file, directory, external (outside the root), missing or loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_type: Option<&'static str>,
    /// True if the name's bytes are not UTF-8; the name shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for ListFolder {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "list_folder";
    const TITLE: &'static str = "List a folder";
    const DESCRIPTION: &'static str = "Lists a directory, hidden entries included, sorted by name. To find files by name in a whole tree use glob.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let listed = request(&arguments, call)?.run(&call.context)?;
        let is_tree = arguments.depth > 1;
        let mut entries = listed.entries;
        entries.retain(|entry| entry.facts.is_described);
        if is_tree {
            // The content of a directory follows it directly.
            entries.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
        }
        Ok(Reply {
            root: arguments.root,
            path: listed.path,
            count: entries.len(),
            entries: Entries {
                listed: entries,
                is_tree,
            },
            truncated: listed.truncated,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::of_list(reply.entries.listed.len());
        let base = depth(&reply.path);
        for entry in &reply.entries.listed {
            let level = entry.path.split('/').count().saturating_sub(base + 1);
            add_line(&mut lines, entry, level);
        }
        if reply.entries.listed.is_empty() {
            lines.note("the directory is empty");
        }
        if reply.truncated {
            lines.note("the directory has more entries; find some by name with glob");
        }
        Some(lines.finish())
    }
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<List> {
    Ok(List {
        place: call.place(&arguments.path)?,
        max_depth: Some(arguments.depth),
        hidden: Hidden::Include,
        pattern: None,
        detail: Detail::Metadata,
        max_entries: List::MAX_ENTRIES,
    })
}

/// How many directories down a path is.
fn depth(path: &str) -> usize {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    names.count()
}

fn add_line(lines: &mut TextLines, entry: &ListEntry, level: usize) {
    let (indent, name) = (2 * level, shown(entry.name()));
    let name = format_args!("{:indent$}{name}", "");
    match (entry.facts.kind, entry.target.as_deref().map(target_type)) {
        (FileKind::Directory, _) => lines.line(format_args!("{name}/")),
        (FileKind::File, _) => lines.line(format_args!("{name}\t{}", entry.facts.size)),
        (_, Some(leads @ ("external" | "missing" | "loop"))) => {
            lines.line(format_args!("{name} -> {leads}"))
        }
        (_, Some(_)) => lines.line(format_args!("{name} -> inside")),
        (kind, None) => lines.line(format_args!("{name}\t{kind}")),
    };
}

impl MadeItems for Entries {
    type Item<'made> = Item<'made>;

    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.listed.iter().map(|entry| Item {
            name: entry.name(),
            path: self.is_tree.then_some(&entry.path),
            kind: entry.facts.kind.as_str(),
            size: entry.facts.size,
            modified_at: entry.facts.modified(),
            target_type: entry.target.as_deref().map(target_type),
            invalid_utf8: entry.facts.invalid_utf8,
        })
    }
}

fn target_type(target: &LinkTarget) -> &'static str {
    match target {
        LinkTarget::Inside { metadata, .. } => metadata.kind.as_str(),
        LinkTarget::Outside => "external",
        LinkTarget::Dangling => "missing",
        LinkTarget::Loop => "loop",
    }
}
