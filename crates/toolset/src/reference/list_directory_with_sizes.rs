//! `list_directory_with_sizes`: the names in a directory, their sizes, and totals.

use std::cmp::Ordering;

use ops::{Detail, FileKind, LinkTarget, ListEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::list_directory::{joined, left_out, listed, prefix};
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::text_form::{in_one_line, in_units};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListDirectoryWithSizes;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// Sort entries by name or size
    #[serde(default, rename = "sortBy")]
    sort_by: SortBy,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum SortBy {
    #[default]
    Name,
    Size,
}

impl Tool for ListDirectoryWithSizes {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "list_directory_with_sizes";
    const TITLE: &'static str = "List Directory with Sizes";
    const DESCRIPTION: &'static str = "Get a detailed listing of all files and directories in a specified path, including sizes. Results clearly \
        distinguish between files and directories with [FILE] and [DIR] prefixes. This tool is useful for understanding directory structure and \
        finding specific files within a directory. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let listed = listed(&arguments.path, Detail::Metadata, call)?;
        let mut entries: Vec<&ListEntry> = listed.entries.iter().collect();
        entries.sort_by(|one, other| by_name(one.name(), other.name()));
        if arguments.sort_by == SortBy::Size {
            entries.sort_by_key(|entry| std::cmp::Reverse(size(entry)));
        }
        let mut page = page(&entries);
        if let Some(line) = left_out(&listed) {
            page.push('\n');
            page.push_str(&line);
        }
        Ok(page.into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

fn page(entries: &[&ListEntry]) -> String {
    let is_directory = |entry: &&&ListEntry| entry.facts.kind == FileKind::Directory;
    let directories = entries.iter().filter(is_directory).count();
    let files = entries.iter().filter(|entry| !is_directory(entry));
    let total: u64 = files.map(|entry| size(entry)).sum();
    let files = entries.len() - directories;
    let totals = [
        String::new(),
        format!("Total: {files} files, {directories} directories"),
        format!("Combined size: {}", readable_size(total)),
    ];
    joined(entries.iter().map(|entry| line(entry)).chain(totals))
}

fn line(entry: &ListEntry) -> String {
    let name = in_one_line(entry.name());
    // Programs in JavaScript count characters beyond the first plane twice.
    let padding = " ".repeat(30_usize.saturating_sub(name.encode_utf16().count()));
    let size = match entry.facts.kind {
        FileKind::Directory => String::new(),
        _ => readable_size(size(entry)),
    };
    let size = match entry.facts.kind {
        FileKind::Directory => size,
        _ => format!("{size:>10}"),
    };
    format!("{} {name}{padding} {size}", prefix(entry.facts.kind))
}

/// The size of an entry; for a link that of its target, if the target is accessible.
fn size(entry: &ListEntry) -> u64 {
    match (entry.facts.kind, entry.target.as_deref()) {
        (FileKind::Symlink, Some(LinkTarget::Inside { metadata, .. })) => metadata.size,
        (FileKind::Symlink, _) => 0,
        _ => entry.facts.size,
    }
}

fn readable_size(bytes: u64) -> String {
    match in_units(bytes, ["KB", "MB", "GB", "TB"]) {
        Some((size, unit)) => format!("{size:.2} {unit}"),
        None => format!("{bytes} B"),
    }
}

/// Compares names as people sort them: marks before digits before letters, upper and lower case together.
fn by_name(one: &str, other: &str) -> Ordering {
    let ranks = |name: &str| name.chars().map(rank).collect::<Vec<_>>();
    let cases = |name: &str| {
        let upper = name.chars().map(char::is_uppercase);
        upper.collect::<Vec<_>>()
    };
    ranks(one)
        .cmp(&ranks(other))
        .then_with(|| cases(one).cmp(&cases(other)))
        .then_with(|| one.cmp(other))
}

/// The place of a character in the order of names.
fn rank(character: char) -> (u8, u32) {
    const MARKS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let lower = character.to_lowercase().next().unwrap_or(character);
    match MARKS.find(character) {
        Some(place) => (0, u32::try_from(place).unwrap_or(0)),
        None if character.is_numeric() => (1, u32::from(character)),
        None => (2, u32::from(lower)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_decimals() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (1_572_864, "1.50 MB"),
            (1 << 50, "1024.00 TB"),
        ] {
            assert_eq!(readable_size(bytes), text);
        }
    }

    #[test]
    fn names_are_in_the_order_of_people() {
        let mut names = vec!["b", "A", "_x", "a", ".x", "B", "10", "-y", "a.b", "a1"];
        names.sort_by(|one, other| by_name(one, other));
        assert_eq!(
            names,
            ["_x", "-y", ".x", "10", "a", "A", "a.b", "a1", "b", "B"]
        );
    }
}
