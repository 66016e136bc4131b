//! `resources/directory/read`: what is in one directory, page by page, without any content.

use ops::{Detail, Hidden, List, ListEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::{mime_type, size};
use super::uri;
use crate::iso_time::iso;
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

/// How many entries a page has.
const PAGE: usize = 1000;
/// What a cursor begins with, before the last name of the page it follows.
const CURSOR: &str = "after:";

pub(super) struct ReadDirectory;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    root: String,
    path: String,
    /// Where the page before ended.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    resources: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Item {
    uri: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    last_modified: String,
}

impl Tool for ReadDirectory {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = super::DIRECTORY_READ;
    const TITLE: &'static str = "List a directory";
    const DESCRIPTION: &'static str = "Lists what is in a directory.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let after = arguments.cursor.as_deref().map(name_after).transpose()?;
        let list = List {
            place: call.place(&arguments.path)?,
            max_depth: Some(1),
            hidden: Hidden::Include,
            pattern: None,
            detail: Detail::Metadata,
            max_entries: PAGE,
        };
        let listed = list.run_after(after.as_deref(), &call.context)?;
        let last = listed.entries.last().filter(|_| listed.truncated);
        let next_cursor = last.map(|last| format!("{CURSOR}{}", uri::as_argument(last.name())));
        let items = listed.entries.iter();
        Ok(Reply {
            resources: items.map(|entry| item(&arguments.root, entry)).collect(),
            next_cursor,
        })
    }
}

/// The name that a cursor stands for.
fn name_after(cursor: &str) -> ops::Result<String> {
    let name = cursor.strip_prefix(CURSOR);
    let name = name.and_then(|name| uri::from_argument(name).ok());
    name.filter(|name| !name.is_empty() && !name.contains('/'))
        .ok_or_else(|| ops::Error::InvalidArgument {
            argument: "cursor",
            reason: "it is none that was given out; begin again without one".to_owned(),
        })
}

fn item(root: &str, entry: &ListEntry) -> Item {
    let modified = entry
        .facts
        .is_described
        .then(|| iso(entry.facts.modified()));
    Item {
        uri: uri::of(root, &entry.path),
        name: entry.name().to_owned(),
        mime_type: mime_type(entry),
        size: size(entry),
        annotations: modified.map(|last_modified| Annotations { last_modified }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_was_not_given_out_is_refused() {
        assert_eq!(name_after("after:a%3Fb").unwrap(), "a?b");
        for cursor in ["", "x", "after:", "after:%", "after:a/b", "after:%2F"] {
            assert!(name_after(cursor).is_err(), "{cursor}");
        }
    }
}
