//! `glob`: files by name, in a whole tree.

use std::time::Duration;

use ops::{Error, Glob, GlobEntry, Kinds, Limits, Operation, PathPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grep::ignore_rules;
use crate::iso_time::iso;
use crate::search_bounds::{
    MAX_RESULTS, TIMEOUT_SECONDS, call_timeout, here, max_results, search_timeout, timeout_seconds,
};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct GlobTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// A glob relative to `path`: * within a name, ** across directories, ?, `[abc]`, {a,b}. Without / it matches only in
    /// `path` itself, which a leading / means too; **/*.go matches at any depth; .. is refused. Give either pattern or regex.
    pattern: Option<String>,
    /// A regular expression, found anywhere in the path relative to `path`. Give either pattern or regex.
    regex: Option<String>,
    /// The directory to search, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// The most entries to return.
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: usize,
    /// How long the search may take, in seconds, within the operator's limit (300 unless configured); what was found by
    /// then is returned.
    #[serde(default = "timeout_seconds")]
    #[schemars(range(min = 1, max = TIMEOUT_SECONDS))]
    timeout_seconds: u64,
    /// How deep to go: 1 is the directory's own entries.
    #[schemars(range(min = 1))]
    max_depth: Option<usize>,
    /// Which entries to return.
    #[serde(default)]
    type_filter: TypeFilter,
    /// Leaves out what .gitignore, .ignore and .git/info/exclude in the root name, and .git itself.
    #[serde(default)]
    respect_gitignore: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum TypeFilter {
    /// All of them.
    #[default]
    All,
    /// Regular files.
    File,
    /// Directories.
    Directory,
    /// Symlinks.
    Symlink,
}

/// What was found, in path order.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The entries, sorted by path.
    matches: Vec<Match>,
    /// How many entries are returned.
    total_matches: usize,
    /// True where more follow after those returned: raise max_results or narrow the pattern.
    truncated: bool,
    /// True where the time was over before everything was searched.
    timed_out: bool,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Match {
    /// Its path, relative to the root.
    path: String,
    /// file, directory, symlink, or the kind of special file.
    #[serde(rename = "type")]
    kind: String,
    /// Size in bytes.
    size: u64,
    /// When the content last changed, ISO 8601.
    modified_at: String,
    /// True where the path's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for GlobTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "glob";
    const TITLE: &'static str = "Find files by name";
    const DESCRIPTION: &'static str = "Finds files and directories by name in a directory and, with **, all below it. \
        Give exactly one of pattern (a glob such as **/*.go) or regex (matched against the relative path). Hidden files are \
        included, symlinks are not followed. Use grep to search what is in files instead. \
        Returns matches sorted by path, each with path, type, size and modified_at; total_matches, truncated (more follow) and \
        timed_out. No match is no error. Example: {\"root\":\"workspace\",\"pattern\":\"src/**/*.rs\",\"type_filter\":\"file\"}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn timeout(arguments: &Arguments, _: Duration, limits: &Limits) -> Duration {
        call_timeout(arguments.timeout_seconds, limits)
    }

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let glob = Glob {
            place: call.place(&arguments.path)?,
            pattern: pattern(arguments.pattern, arguments.regex)?,
            kinds: match arguments.type_filter {
                TypeFilter::All => Kinds::All,
                TypeFilter::File => Kinds::Files,
                TypeFilter::Directory => Kinds::Directories,
                TypeFilter::Symlink => Kinds::Symlinks,
            },
            max_results: arguments.max_results,
            timeout: search_timeout(arguments.timeout_seconds, &call.context.limits),
            max_depth: arguments.max_depth,
            ignore_rules: ignore_rules(arguments.respect_gitignore),
        };
        let globbed = glob.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            total_matches: globbed.entries.len(),
            matches: globbed.entries.into_iter().map(found).collect(),
            truncated: globbed.truncated,
            timed_out: globbed.timed_out,
        })
    }
}

fn pattern(glob: Option<String>, regex: Option<String>) -> ops::Result<PathPattern> {
    match (glob, regex) {
        (Some(glob), None) => Ok(PathPattern::Glob(glob)),
        (None, Some(regex)) => Ok(PathPattern::Regex(regex)),
        (given, _) => Err(Error::InvalidArgument {
            argument: "arguments",
            reason: format!(
                "exactly one of pattern or regex must be provided, got {}",
                if given.is_some() { "both" } else { "neither" }
            ),
        }),
    }
}

fn found(entry: GlobEntry) -> Match {
    Match {
        path: entry.path,
        kind: entry.metadata.kind.to_string(),
        size: entry.metadata.size,
        modified_at: iso(entry.metadata.modified),
        invalid_utf8: entry.invalid_utf8,
    }
}
