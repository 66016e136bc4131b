//! Prompts that a person invokes by name. They are about the changes of a root that keeps a history.
//!
//! A prompt is made by a [`Tool`] that is not listed as one, so it is handled like every call.

use ops::{ChangeFilter, Diff, PartKind, Place, ToldChange, change_diff, change_id, changes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::account_of;
use crate::iso_time::iso;
use crate::reply::ResourceLink;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

/// Makes a prompt.
pub const GET: &str = "prompts/get";
/// The tool that, if allowed, gives access to prompts.
pub(crate) const CHANGES: &str = "changes";
/// The tool that a prompt needs.
const UNDO: &str = "undo";
/// How many changes a prompt lists.
const CHANGES_MAX: usize = 20;
/// How many changes are searched for those of the client.
const LOOKED_AT: usize = 1000;
/// How many files a prompt links to.
const LINKS_MAX: usize = 20;
/// How many bytes of diffs a prompt has.
const DIFFS_MAX: usize = 32 * 1024;

/// A prompt as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptInfo {
    /// What clients call it.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The tool that the model needs to do as it is told.
    pub(crate) needs: Option<&'static str>,
}

/// Every prompt, in the order of lists.
pub(crate) const PROMPTS: [PromptInfo; 3] = [
    PromptInfo {
        name: "undo",
        title: "Undo",
        description: "Takes back the last change, or the last one of a path",
        needs: Some(UNDO),
    },
    PromptInfo {
        name: "changes",
        title: "Changes",
        description: "What was changed lately, and by whom",
        needs: None,
    },
    PromptInfo {
        name: "review",
        title: "Review",
        description: "A review of what was changed in this client",
        needs: None,
    },
];

/// The arguments of every prompt, each with its meaning.
pub const PROMPT_ARGUMENTS: [(&str, &str); 2] = [
    ("root", "Name of the root"),
    ("path", "Only changes of this file or directory"),
];

pub(crate) struct GetPrompt;

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum PromptName {
    Undo,
    Changes,
    Review,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    root: String,
    name: PromptName,
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Reply {
    description: String,
    messages: Vec<PromptMessage>,
}

#[derive(Serialize, JsonSchema)]
struct PromptMessage {
    role: &'static str,
    content: Content,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    Text { text: String },
    ResourceLink { uri: String, name: String },
}

impl PromptMessage {
    fn text(text: String) -> PromptMessage {
        PromptMessage {
            role: "user",
            content: Content::Text { text },
        }
    }

    fn link(link: ResourceLink) -> PromptMessage {
        let name = link.name.rsplit('/').next().unwrap_or_default().to_owned();
        let content = Content::ResourceLink {
            uri: link.uri,
            name,
        };
        PromptMessage {
            role: "user",
            content,
        }
    }
}

impl Tool for GetPrompt {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = GET;
    const TITLE: &'static str = "Get a prompt";
    const DESCRIPTION: &'static str = "Words a request about changes.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let place = call.place(arguments.path.as_deref().unwrap_or("."))?;
        let path = arguments.path.as_deref().map(recorded).transpose()?;
        let filter = ChangeFilter {
            path: path.filter(|path| !path.is_empty()),
            limit: LOOKED_AT,
            ..ChangeFilter::default()
        };
        let mut told = changes(&place.root, &filter);
        if arguments.name != PromptName::Changes {
            told.retain(|change| is_own(change, call));
        }
        told.truncate(CHANGES_MAX);
        let mut reply = worded(&arguments, &told, call);
        if arguments.name == PromptName::Review {
            reply.add_diffs(&diffs(&place, &told, call)?);
            reply.messages.extend(links(&told, call));
        }
        Ok(reply)
    }
}

/// A path as changes are recorded under it. What it named may be gone, so it is not looked up.
fn recorded(path: &str) -> ops::Result<String> {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<&str> = names.collect();
    if names.contains(&"..") {
        return Err(ops::Error::InvalidArgument {
            argument: "path",
            reason: "it names a file or directory inside the root, without ..".to_owned(),
        });
    }
    Ok(names.join("/"))
}

/// Whether the client made a change itself.
fn is_own(change: &ToldChange, call: &Call) -> bool {
    change.record.author.account == account_of(&call.caller)
}

impl Reply {
    /// Adds text to the first message.
    fn add_diffs(&mut self, diffs: &str) {
        if let Some(Content::Text { text }) =
            self.messages.first_mut().map(|first| &mut first.content)
        {
            text.push_str("\n\nTheir diffs, newest first:\n");
            text.push_str(diffs);
        }
    }
}

/// Whether the client may read the files of the root. If not, it gets no lines and no links.
fn may_read(call: &Call) -> bool {
    call.resource_link("").is_some()
}

/// The diffs of the changes that were not undone, as far as there is room.
fn diffs(place: &Place, told: &[ToldChange], call: &Call) -> ops::Result<String> {
    let mut lines = TextLines::default();
    let mut room = DIFFS_MAX;
    let holding = told.iter().filter(|change| change.undone_by.is_none());
    for change in holding.filter(|_| may_read(call)) {
        call.context.cancel.check()?;
        let number = change.record.number;
        // A change that is no longer kept has no diff.
        let diff = change_diff(&place.root, number, &call.context);
        let diff = diff.ok().and_then(std::result::Result::ok);
        let Some(diff) = diff.filter(|diff| !diff.text.is_empty()) else {
            continue;
        };
        if diff.text.len() > room {
            lines.note("older diffs are left out here; read the files");
            break;
        }
        room -= diff.text.len();
        lines.line(format_args!("{}", one_diff(change, &diff)));
    }
    if lines.is_empty() {
        lines.note("none can be told; read the files");
    }
    Ok(lines.finish())
}

fn one_diff(change: &ToldChange, diff: &Diff) -> String {
    let number = change_id(change.record.number);
    let (added, removed) = (diff.added, diff.removed);
    let cut = if diff.truncated { ", cut" } else { "" };
    let text = diff.text.trim_end_matches('\n');
    format!("change {number} (+{added} -{removed}{cut}):\n{text}")
}

/// Links to what was changed, as far as it is still there.
fn links(told: &[ToldChange], call: &Call) -> Vec<PromptMessage> {
    let is_there = |path: &&str| call.place(path).is_ok_and(|place| place.is_there());
    let there = paths(told).into_iter().filter(is_there).take(LINKS_MAX);
    let links = there.filter_map(|path| call.resource_link(path));
    links.map(PromptMessage::link).collect()
}

fn worded(arguments: &Arguments, told: &[ToldChange], call: &Call) -> Reply {
    let root = shown(&arguments.root);
    let of = match &arguments.path {
        Some(path) => format!("{} in root {root}", shown(path)),
        None => format!("root {root}"),
    };
    let (description, request) = match arguments.name {
        PromptName::Undo => (
            format!("Undo the last change of {of}"),
            undo_request(arguments, &of, told, call),
        ),
        PromptName::Changes => (
            format!("Changes of {of}"),
            format!("Tell me in a few sentences what was changed in {of}, when and by whom."),
        ),
        PromptName::Review => (
            format!("Review of my changes of {of}"),
            format!(
                "Review what I changed in {of}, by the diffs below, and by the files where those leave something out. Tell me of \
                 mistakes, of what was left half done, and of what should be taken back. Change nothing."
            ),
        ),
    };
    let list = lines(told);
    let text = format!("{request}\n\nThe changes, newest first:\n{list}");
    Reply {
        description,
        messages: vec![PromptMessage::text(text)],
    }
}

fn undo_request(arguments: &Arguments, of: &str, told: &[ToldChange], call: &Call) -> String {
    // The tools of a set with one root do not take its name.
    let root = match call.resource_tools {
        Some(tools) if tools.one_root => String::new(),
        _ => format!("root {} and ", shown(&arguments.root)),
    };
    let mut holding = told.iter().filter(|change| change.undone_by.is_none());
    match holding.find(|change| change.record.author.undoes.is_empty()) {
        Some(last) => format!(
            "Take back my last change of {of}, {}: call the tool undo with {root}change {}, first with dry_run: true. Say in one \
             line what it took back.",
            summary(last),
            change_id(last.record.number)
        ),
        None => format!("Tell me that there is nothing of mine to take back in {of}."),
    }
}

/// One line a change.
fn lines(told: &[ToldChange]) -> String {
    let mut lines = TextLines::default();
    for change in told {
        let record = &change.record;
        let time = ops::Time {
            seconds: i64::try_from(record.author.time / 1000).unwrap_or(i64::MAX),
            nanoseconds: 0,
        };
        let undone = change.undone_by.map_or_else(String::new, |by| {
            format!(" (taken back by {})", change_id(by))
        });
        lines.line(format_args!(
            "{} {} {} by {}{undone}",
            change_id(record.number),
            iso(time),
            summary(change),
            shown(&record.author.client)
        ));
    }
    if told.is_empty() {
        lines.note("none");
    }
    lines.finish()
}

fn summary(change: &ToldChange) -> String {
    let record = &change.record;
    let paths = paths(std::slice::from_ref(change));
    let first: Vec<_> = paths.iter().take(3).map(|path| shown(path)).collect();
    let more = paths.len().saturating_sub(first.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{} {}{more}", record.author.tool, first.join(", "))
}

/// The files that changes are about, each once.
fn paths(told: &[ToldChange]) -> Vec<&str> {
    let parts = told.iter().flat_map(|change| &change.record.parts);
    let parts = parts.filter(|part| part.kind != PartKind::MakeDir);
    let mut paths: Vec<&str> = Vec::new();
    for part in parts {
        let path = part.to.as_deref().unwrap_or(&part.path);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_recorded_without_its_detours() {
        for (path, expected) in [("a/b", "a/b"), ("./a//b/", "a/b"), ("/a", "a"), (".", "")] {
            assert_eq!(recorded(path).unwrap(), expected, "{path}");
        }
        assert!(recorded("a/../b").is_err());
    }
}
