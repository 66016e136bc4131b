//! `completion/complete`: the names that can follow in a path that is being typed.

use ops::{Detail, Error, FileKind, Hidden, List, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::uri;
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

/// The most values that the protocol lets a completion have.
const VALUES_MAX: usize = 100;

pub(super) struct CompletePath;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(rename = "root")]
    _root: String,
    /// What is typed so far.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    completion: Completion,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Completion {
    values: Vec<String>,
    total: usize,
    has_more: bool,
}

impl Tool for CompletePath {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = super::COMPLETE;
    const TITLE: &'static str = "Complete a path";
    const DESCRIPTION: &'static str = "Completes a path that is being typed.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let (directory, begun) = match arguments.path.rsplit_once('/') {
            Some((directory, begun)) => (Some(directory), begun),
            None => (None, arguments.path.as_str()),
        };
        let list = List {
            place: call.place(directory.filter(|path| !path.is_empty()).unwrap_or("."))?,
            max_depth: Some(1),
            hidden: Hidden::Include,
            pattern: None,
            detail: Detail::Names,
            max_entries: List::MAX_ENTRIES,
        };
        let names = match list.run(&call.context) {
            Ok(listed) => listed.entries,
            // The user may be typing a path that does not exist yet.
            Err(Error::NotFound { .. } | Error::NotADirectory { .. } | Error::Dangling { .. }) => {
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let names: Vec<(&str, bool)> = names
            .iter()
            .map(|entry| (entry.name(), entry.facts.kind == FileKind::Directory))
            .collect();
        Ok(reply(directory, begun, &names))
    }
}

fn reply(directory: Option<&str>, begun: &str, names: &[(&str, bool)]) -> Reply {
    let mut fitting = fitting(names, |name| name.starts_with(begun));
    if fitting.is_empty() {
        let begun = begun.to_lowercase();
        fitting = self::fitting(names, |name| name.to_lowercase().starts_with(&begun));
    }
    // Hidden names are seldom meant unless the dot is typed.
    fitting.sort_by_key(|(name, _)| !begun.starts_with('.') && name.starts_with('.'));
    let value = |(name, is_directory): &(&str, bool)| {
        let end = if *is_directory { "/" } else { "" };
        match directory {
            Some(directory) => uri::as_argument(&format!("{directory}/{name}{end}")),
            None => uri::as_argument(&format!("{name}{end}")),
        }
    };
    Reply {
        completion: Completion {
            values: fitting.iter().take(VALUES_MAX).map(value).collect(),
            total: fitting.len(),
            has_more: fitting.len() > VALUES_MAX,
        },
    }
}

fn fitting<'names>(
    names: &[(&'names str, bool)],
    fits: impl Fn(&str) -> bool,
) -> Vec<(&'names str, bool)> {
    let fitting = names.iter().filter(|(name, _)| fits(name));
    fitting.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(&str, bool)] = &[
        (".git", true),
        ("Makefile", false),
        ("main.rs", false),
        ("src", true),
        ("what?", false),
    ];

    fn values(directory: Option<&str>, begun: &str) -> Vec<String> {
        reply(directory, begun, NAMES).completion.values
    }

    #[test]
    fn what_is_typed_goes_on_with_names_of_its_directory() {
        assert_eq!(values(None, "ma"), ["main.rs"]);
        assert_eq!(values(None, "MAIN"), ["main.rs"]);
        assert_eq!(values(Some("a/b"), "s"), ["a/b/src/"]);
        assert_eq!(values(Some(""), "s"), ["/src/"]);
        assert_eq!(values(None, "w"), ["what%3F"]);
        assert_eq!(values(None, "x"), [""; 0]);
        assert_eq!(values(None, ".g"), [".git/"]);
        assert_eq!(values(None, "").last().map(String::as_str), Some(".git/"));
    }

    #[test]
    fn a_hundred_values_are_the_most() {
        let names: Vec<String> = (0..150).map(|number| format!("f{number}")).collect();
        let names: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), false)).collect();
        let completion = reply(None, "f", &names).completion;
        assert_eq!((completion.values.len(), completion.total), (100, 150));
        assert!(completion.has_more);
    }
}
