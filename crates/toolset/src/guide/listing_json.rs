//! Entries of a directory, as agents write them and as clients get them.

use std::sync::LazyLock;

use guide::{EntryKind, LEVELS_MAX, PathInfo};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{self, Slips};
use crate::schema;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Entry")]
pub(super) struct ListedEntry {
    /// Its name in the directory: one name, without slashes.
    name: String,
    /// What it is.
    #[serde(rename = "type")]
    kind: ListedKind,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    mtime: Option<f64>,
    /// Entries of a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    children: Option<Vec<ListedEntry>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListedKind {
    File,
    Directory,
    Symlink,
}

impl From<ListedEntry> for PathInfo {
    fn from(entry: ListedEntry) -> PathInfo {
        PathInfo {
            name: entry.name.into(),
            kind: match entry.kind {
                ListedKind::File => EntryKind::File,
                ListedKind::Directory => EntryKind::Directory,
                ListedKind::Symlink => EntryKind::Symlink,
            },
            size: entry.size,
            mtime: entry.mtime,
            children: entry.children.map(infos),
        }
    }
}

impl From<PathInfo> for ListedEntry {
    fn from(info: PathInfo) -> ListedEntry {
        ListedEntry {
            name: info.name.into(),
            kind: match info.kind {
                EntryKind::File => ListedKind::File,
                EntryKind::Directory => ListedKind::Directory,
                EntryKind::Symlink => ListedKind::Symlink,
            },
            size: info.size,
            mtime: info.mtime,
            children: info.children.map(entries),
        }
    }
}

/// What the bridge takes.
pub(super) fn infos(entries: Vec<ListedEntry>) -> Vec<PathInfo> {
    entries.into_iter().map(PathInfo::from).collect()
}

/// What clients get.
pub(super) fn entries(infos: Vec<PathInfo>) -> Vec<ListedEntry> {
    infos.into_iter().map(ListedEntry::from).collect()
}

/// Reads an agent's answer: a JSON array of entries, perhaps between code fences.
pub(super) fn parse(answer: &str) -> Result<Vec<PathInfo>, String> {
    let entries: Value = serde_json::from_str(unfenced(answer)).map_err(|error| misread(&error))?;
    if !entries.is_array() {
        return Err(NO_LISTING.to_owned());
    }
    let mut listed = JsonObject::new();
    listed.insert("entries".to_owned(), entries);
    let listed: ListingJson = arguments::decode(&LISTED, listed, Slips::Refused)
        .map_err(|bad| format!("the agent's answer is no listing: {bad}"))?;
    Ok(infos(listed.entries))
}

/// An answer, which is checked like the arguments of a tool.
#[derive(Deserialize, JsonSchema)]
struct ListingJson {
    entries: Vec<ListedEntry>,
}

static LISTED: LazyLock<JsonObject> = LazyLock::new(schema::input::<ListingJson>);
/// The message for an answer that is not a listing at all.
const NO_LISTING: &str = "the agent's answer is no JSON array of entries with name and type";

/// Words a parse error for a caller who has not seen the answer and does not know serde's terms.
fn misread(error: &serde_json::Error) -> String {
    if error.to_string().starts_with("recursion limit exceeded") {
        return format!("it is more than {LEVELS_MAX} levels deep");
    }
    NO_LISTING.to_owned()
}

fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer
        .strip_prefix("```json")
        .or_else(|| answer.strip_prefix("```"));
    let inner = inner.and_then(|inner| inner.strip_suffix("```"));
    inner.unwrap_or(answer).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_array_of_entries() {
        let plain = r#"[{"name":"a.md","type":"file","size":3,"mtime":1.5}]"#;
        let parsed = parse(plain).unwrap();
        assert_eq!(&*parsed[0].name, "a.md");
        assert_eq!(parsed[0].size, Some(3));
        assert_eq!(parse(&format!("```json\n{plain}\n```")), Ok(parsed));
        for wrong in ["", "docs/a.md", "{}", r#"[{"name":"a"}]"#, "[1]"] {
            let reason = parse(wrong).unwrap_err();
            assert!(reason.starts_with("the agent's answer is no"), "{reason}");
        }
        let before_the_epoch = r#"[{"name":"a","type":"file","mtime":-1}]"#;
        let reason = parse(before_the_epoch).unwrap_err();
        assert!(reason.contains("mtime must be at least 0"), "{reason}");
    }

    #[test]
    fn deep_answers_do_not_overflow() {
        let open = r#"[{"name":"a","type":"directory","children":"#;
        let deep = open.repeat(5000);
        assert!(parse(&deep).is_err());
    }
}
