//! `directory_tree`: everything below a directory, as JSON.

use std::collections::BTreeMap;

use ops::{FileKind, Globbed, PathPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::minimatch;
use super::paths::place;
use super::search_files::found;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct DirectoryTree;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    exclude_patterns: Vec<String>,
}

/// An entry with what is below it.
#[derive(Serialize)]
struct TreeEntry<'t> {
    name: &'t str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<TreeEntry<'t>>>,
}

impl Tool for DirectoryTree {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "directory_tree";
    const TITLE: &'static str = "Directory Tree";
    const DESCRIPTION: &'static str = "Get a recursive tree view of files and directories as a JSON structure. Each entry includes 'name', 'type' \
        (file/directory), and 'children' for directories. Files have no children array, while directories always have a children array (which may \
        be empty). The output is formatted with 2-space indentation for readability. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let place = place(call, &arguments.path)?;
        let top = place.resolved()?;
        let exclude = arguments
            .exclude_patterns
            .iter()
            .flat_map(|text| wider(text));
        let exclude = exclude.map(|text| minimatch::pattern(&text));
        let everything = PathPattern::Regex(".".to_owned());
        let found = found(
            &place,
            everything,
            exclude.collect::<ops::Result<_>>()?,
            call,
        )?;
        if let Some(unread) = found.unread.first.first() {
            return Err(ops::Error::PermissionDenied {
                path: unread.path.clone(),
            });
        }
        let entries = tree(&found, &top);
        serde_json::to_string_pretty(&entries)
            .map(Content::from)
            .map_err(|error| ops::Error::InvalidArgument {
                argument: "path",
                reason: error.to_string(),
            })
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// A pattern without a star is about names at any depth, and about what is below them.
fn wider(text: &str) -> Vec<String> {
    let mut patterns = vec![text.to_owned()];
    if !text.contains('*') {
        patterns.push(format!("**/{text}"));
        patterns.push(format!("**/{text}/**"));
    }
    patterns
}

fn tree<'t>(found: &'t Globbed, top: &'t str) -> Vec<TreeEntry<'t>> {
    let mut children: BTreeMap<&str, Vec<(&str, &str, FileKind)>> = BTreeMap::new();
    for entry in &found.entries {
        let (parent, name) = entry.path.rsplit_once('/').unwrap_or((".", &entry.path));
        let own = (&*entry.path, name, entry.facts.kind);
        children.entry(parent).or_default().push(own);
    }
    below(top, &children)
}

fn below<'t>(
    parent: &str,
    children: &BTreeMap<&'t str, Vec<(&'t str, &'t str, FileKind)>>,
) -> Vec<TreeEntry<'t>> {
    let own = children.get(parent).into_iter().flatten();
    own.map(|(path, name, kind)| match kind {
        FileKind::Directory => TreeEntry {
            name,
            kind: "directory",
            children: Some(below(path, children)),
        },
        _ => TreeEntry {
            name,
            kind: "file",
            children: None,
        },
    })
    .collect()
}
