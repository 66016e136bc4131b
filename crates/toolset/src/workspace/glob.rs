//! `glob`: files by name, in a whole tree.

use std::time::Duration;

use ops::{
    Error, FileKind, Glob, GlobEntry, GlobOrder, Kinds, Limits, Operation, PathPattern, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grep::ignore_rules;
use crate::deployment::ReplyHalves;
use crate::iso_time::{self, iso};
use crate::made_items::{self, MadeItems};
use crate::search_bounds::{
    MAX_RESULTS, TIMEOUT_SECONDS, call_timeout, here, max_results, search_timeout, timed_out,
    timeout_seconds,
};
use crate::text_form::{TextLines, counted, shown, shown_directory, to_the_second};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};
use crate::unread_note::UnreadNote;

pub(super) struct GlobTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    /// Relative to `path`: *.go is in it, **/*.go at any depth. Also ?, `[abc]`, {a,b}.
    pattern: Option<String>,
    /// Found anywhere in the path below `path`.
    regex: Option<String>,
    #[serde(default = "here")]
    path: String,
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: usize,
    /// What was found by then is returned; the operator's limit holds too.
    #[serde(default = "timeout_seconds")]
    #[schemars(range(min = 1, max = TIMEOUT_SECONDS))]
    timeout_seconds: u64,
    /// 1 is the directory itself.
    #[schemars(range(min = 1))]
    max_depth: Option<usize>,
    #[serde(default)]
    type_filter: TypeFilter,
    /// Leaves out .git and what ignore files name.
    #[serde(default)]
    respect_gitignore: bool,
    /// The largest or latest of all come first.
    #[serde(default)]
    sort: Sort,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Path,
    Size,
    Modified,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum TypeFilter {
    #[default]
    All,
    File,
    Directory,
    Symlink,
}

/// What was found, in path order.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The entries, in the order that was asked for.
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<Match>")]
    matches: Vec<GlobEntry>,
    /// How many entries are returned.
    total_matches: usize,
    /// True if more follow after those returned: raise max_results or narrow the pattern.
    truncated: bool,
    /// Whether there is more than was returned.
    more: bool,
    /// True if the time was over before everything was searched.
    timed_out: bool,
    /// The directories that could not be read, if any could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<UnreadNote>,
    #[serde(skip)]
    sort: Sort,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Match<'made> {
    /// Its path, relative to the root.
    path: &'made str,
    /// file, directory, symlink, or the kind of special file.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Size in bytes.
    size: u64,
    /// When the content last changed, ISO 8601.
    #[serde(serialize_with = "iso_time::serialize")]
    #[schemars(with = "String")]
    modified_at: Time,
    /// True if the path's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for GlobTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "glob";
    const TITLE: &'static str = "Find files by name";
    const DESCRIPTION: &'static str = "Finds files and directories by name. Give pattern or regex. Hidden ones are included, symlinks not followed. \
        To search content use grep.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn timeout(arguments: &Arguments, _: Duration, limits: &Limits) -> Duration {
        call_timeout(arguments.timeout_seconds, limits)
    }

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let globbed = request(&arguments, call)?.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            total_matches: globbed.entries.len(),
            truncated: globbed.truncated,
            more: globbed.truncated || globbed.timed_out,
            sort: arguments.sort,
            timed_out: globbed.timed_out,
            unread: UnreadNote::of(globbed.unread),
            matches: globbed.entries,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::of_list(reply.matches.len());
        for found in &reply.matches {
            add_line(&mut lines, found, reply.sort);
        }
        if reply.matches.is_empty() {
            lines.note("no match");
        }
        if let Some(unread) = &reply.unread {
            unread.add_to(&mut lines);
        }
        let narrow = "raise max_results or narrow path or pattern";
        if reply.truncated {
            let found = counted(reply.total_matches as u64, "entry", "entries");
            lines.note(format!("{found}; more follow: {narrow}"));
        }
        if reply.timed_out {
            lines.note(timed_out(narrow));
        }
        Some(lines.finish())
    }
}

fn add_line(lines: &mut TextLines, found: &GlobEntry, sort: Sort) {
    let facts = found.facts;
    let time = match sort {
        Sort::Modified => to_the_second(&iso(facts.modified())) + "\t",
        Sort::Path | Sort::Size => String::new(),
    };
    let path = shown(&found.path);
    match facts.kind {
        FileKind::File => lines.line(format_args!("{time}{}\t{path}", facts.size)),
        FileKind::Directory => {
            lines.line(format_args!("{time}-\t{}", shown_directory(&found.path)))
        }
        kind => lines.line(format_args!("{time}{kind}\t{path}")),
    };
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<Glob> {
    Ok(Glob {
        place: call.place(&arguments.path)?,
        pattern: pattern(arguments)?,
        kinds: arguments.type_filter.into(),
        max_results: arguments.max_results,
        timeout: search_timeout(arguments.timeout_seconds, &call.context.limits),
        max_depth: arguments.max_depth,
        ignore_rules: ignore_rules(arguments.respect_gitignore),
        exclude: Vec::new(),
        order: arguments.sort.into(),
    })
}

impl From<TypeFilter> for Kinds {
    fn from(filter: TypeFilter) -> Kinds {
        match filter {
            TypeFilter::All => Kinds::All,
            TypeFilter::File => Kinds::Files,
            TypeFilter::Directory => Kinds::Directories,
            TypeFilter::Symlink => Kinds::Symlinks,
        }
    }
}

impl From<Sort> for GlobOrder {
    fn from(sort: Sort) -> GlobOrder {
        match sort {
            Sort::Path => GlobOrder::Path,
            Sort::Size => GlobOrder::Size,
            Sort::Modified => GlobOrder::Modified,
        }
    }
}

fn pattern(arguments: &Arguments) -> ops::Result<PathPattern> {
    match (&arguments.pattern, &arguments.regex) {
        (Some(glob), None) => Ok(PathPattern::Glob(glob.clone())),
        (None, Some(regex)) => Ok(PathPattern::Regex(regex.clone())),
        (given, _) => Err(Error::InvalidArgument {
            argument: "arguments",
            reason: format!(
                "exactly one of pattern or regex must be provided, got {}",
                if given.is_some() { "both" } else { "neither" }
            ),
        }),
    }
}

impl MadeItems for Vec<GlobEntry> {
    type Item<'made> = Match<'made>;

    fn items(&self) -> impl Iterator<Item = Match<'_>> {
        self.iter().map(|entry| Match {
            path: &entry.path,
            kind: entry.facts.kind.as_str(),
            size: entry.facts.size,
            modified_at: entry.facts.modified(),
            invalid_utf8: entry.facts.invalid_utf8,
        })
    }
}
