//! `list_directory`: the names in a directory.

use ops::{Detail, FileKind, Hidden, List, Listed, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::text_form::in_one_line;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

impl Tool for ListDirectory {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List Directory";
    const DESCRIPTION: &'static str = "Get a detailed listing of all files and directories in a specified path. Results clearly distinguish between \
        files and directories with [FILE] and [DIR] prefixes. This tool is essential for understanding directory structure and finding specific \
        files within a directory. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let listed = listed(&arguments.path, Detail::Names, call)?;
        let entries = listed.entries.iter();
        let lines = entries
            .map(|entry| format!("{} {}", prefix(entry.facts.kind), in_one_line(entry.name())));
        Ok(joined(lines.chain(left_out(&listed))).into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// Lines as one text, with line ends between them: written one by one, because all of them together take far more memory.
pub(super) fn joined(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for (number, line) in lines.enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}

/// The line that says that a directory holds more than is listed, if so.
pub(super) fn left_out(listed: &Listed) -> Option<String> {
    let most = List::MAX_ENTRIES;
    listed
        .truncated
        .then(|| format!("[cut after {most} entries: the directory holds more]"))
}

/// The entries of a directory, up to a sensible number.
pub(super) fn listed(path: &str, detail: Detail, call: &Call) -> ops::Result<Listed> {
    let list = List {
        place: place(call, path)?,
        max_depth: Some(1),
        hidden: Hidden::Include,
        pattern: None,
        detail,
        max_entries: List::MAX_ENTRIES,
    };
    list.run(&call.context)
}

/// What a line begins with. A link does not count as a directory, wherever it leads.
pub(super) fn prefix(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Directory => "[DIR]",
        _ => "[FILE]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said() {
        let listed = |truncated| Listed {
            path: ".".to_owned(),
            entries: Vec::new(),
            truncated,
            timed_out: false,
            faults: Vec::new(),
            faults_total: 0,
        };
        assert_eq!(left_out(&listed(false)), None);
        let said = left_out(&listed(true)).unwrap();
        assert!(said.contains("cut after 1000000 entries"), "{said}");
    }
}
