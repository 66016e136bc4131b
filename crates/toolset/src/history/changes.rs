//! Changes as replies show them.

use jiff::Timestamp;
use ops::{Author, Part, PartKind, ToldChange, ToldChanges, change_id};
use schemars::JsonSchema;
use serde::Serialize;

use super::some_told;
use crate::iso_time::iso_of_ms;
use crate::text_form::{TextLines, shown};

/// Changes, the newest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangesReply {
    /// Name of the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Newest first.
    changes: Vec<ChangeReply>,
    /// True if older ones fit too.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct ChangeReply {
    /// Names it.
    change: String,
    /// When, in UTC.
    time: String,
    /// The tool that made it.
    tool: String,
    /// Who made it.
    client: String,
    /// What it did.
    parts: Vec<PartReply>,
    /// How many lines came, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<u64>,
    /// How many lines went.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
    /// The changes that it took back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undoes: Vec<String>,
    /// The change that took it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_by: Option<String>,
    /// With diff: true, unified diffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// True if the diff is not complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct PartReply {
    /// create, replace, append, cut, remove, move, make_dir or remove_dir.
    kind: &'static str,
    /// The path, relative to the root.
    path: String,
    /// Where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// True if it cannot be undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_kept: bool,
}

impl ChangesReply {
    pub(crate) fn new(root: Option<String>, told: ToldChanges, with_diffs: bool) -> ChangesReply {
        let changes = told.changes.into_iter();
        ChangesReply {
            root,
            changes: changes.map(|one| change_reply(one, with_diffs)).collect(),
            more: told.more,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = TextLines::default();
        for change in &self.changes {
            text.line(change.line());
            if let Some(diff) = &change.diff {
                text.line(diff.trim_end_matches('\n'));
            }
        }
        if self.changes.is_empty() {
            text.line("no changes");
        }
        if self.more {
            text.note("older ones follow; raise limit, or name a path or client");
        }
        if self
            .changes
            .iter()
            .any(|change| change.truncated && change.diff.is_some())
        {
            text.note("diffs are cut; use read_file and compare with at");
        }
        text.finish()
    }
}

impl ChangeReply {
    fn line(&self) -> String {
        let lines = self.added.zip(self.removed);
        let lines = lines.map_or(String::new(), |(came, went)| format!(" (+{came} -{went})"));
        let undoes = match self.undoes.as_slice() {
            [] => String::new(),
            undoes => format!(" {} of", undoes.join(" ")),
        };
        let undone = self.undone_by.as_ref();
        let undone = undone.map_or(String::new(), |by| format!(", undone by {by}"));
        format!(
            "{} {} {}{undoes} {}{lines} by {}{undone}",
            self.change,
            short_time(&self.time),
            self.tool,
            self.parts_told(),
            shown(&self.client)
        )
    }

    fn parts_told(&self) -> String {
        let only_dirs = self.parts.iter().all(|part| part.kind == "make_dir");
        let told = self.parts.iter();
        let told: Vec<String> = told
            .filter(|part| only_dirs || part.kind != "make_dir")
            .map(PartReply::told)
            .collect();
        some_told(&told)
    }
}

impl PartReply {
    fn told(&self) -> String {
        let path = shown(&self.path);
        let lost = if self.not_kept { " (not kept)" } else { "" };
        match &self.to {
            Some(to) => format!("{path} -> {}{lost}", shown(to)),
            None => format!("{path}{lost}"),
        }
    }
}

/// A time of today without its date.
fn short_time(iso: &str) -> &str {
    let now = Timestamp::now().to_string();
    match iso.split_once('T') {
        Some((day, time)) if now.starts_with(day) => time,
        _ => iso,
    }
}

fn change_reply(told: ToldChange, with_diffs: bool) -> ChangeReply {
    let Author {
        time,
        client,
        tool,
        undoes,
        ..
    } = &told.record.author;
    let diff = told.diff.as_ref();
    ChangeReply {
        change: told.id(),
        time: iso_of_ms(*time),
        tool: tool.clone(),
        client: client.clone(),
        parts: told.parts().map(part_reply).collect(),
        added: diff.map(|diff| diff.added),
        removed: diff.map(|diff| diff.removed),
        undoes: undoes.iter().map(|number| change_id(*number)).collect(),
        undone_by: told.undone_by.map(change_id),
        diff: diff.filter(|_| with_diffs).map(|diff| diff.text.clone()),
        truncated: with_diffs && diff.is_some_and(|diff| diff.truncated),
    }
}

fn part_reply(part: &Part) -> PartReply {
    PartReply {
        kind: kind_word(part.kind),
        path: part.path.clone(),
        to: part.to.clone(),
        not_kept: part.lost,
    }
}

fn kind_word(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Create => "create",
        PartKind::Replace => "replace",
        PartKind::Append => "append",
        PartKind::Cut => "cut",
        PartKind::Remove => "remove",
        PartKind::Move => "move",
        PartKind::MakeDir => "make_dir",
        PartKind::RemoveDir => "remove_dir",
    }
}
