//! `grep`: lines that match, in a file or a whole tree.

use std::time::Duration;

use ops::{Case, Grep, Grepped, IgnoreRules, Limits, Operation, Pattern, SearchOutput, Syntax};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search_bounds::{
    MAX_RESULTS, TIMEOUT_SECONDS, call_timeout, here, max_results, search_timeout, timeout_seconds,
};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct GrepTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// A regular expression (RE2 syntax, as Go's and Rust's: no look-around, no back references), matched within lines.
    pattern: String,
    /// The directory or file to search, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// Searches only files that match this glob: without / by name at any depth (*.go), else by path below `path`. Where
    /// `path` is a file, that file is searched in any case.
    glob_filter: Option<String>,
    /// Whether upper and lower case count as equal.
    #[serde(default)]
    case_insensitive: bool,
    /// How many lines before and after each match to return.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    context_lines: usize,
    /// The most matches to return (files, with output files or count).
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: usize,
    /// How long the search may take, in seconds, within the operator's limit (300 unless configured); what was found by
    /// then is returned.
    #[serde(default = "timeout_seconds")]
    #[schemars(range(min = 1, max = TIMEOUT_SECONDS))]
    timeout_seconds: u64,
    /// How deep to go: 1 is the directory's own files.
    #[schemars(range(min = 1))]
    max_depth: Option<usize>,
    /// Leaves out what .gitignore, .ignore and .git/info/exclude in the root name, and .git itself.
    #[serde(default)]
    respect_gitignore: bool,
    /// What to return.
    #[serde(default)]
    output: GrepOutput,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum GrepOutput {
    /// Every matching line with its context.
    #[default]
    Matches,
    /// Only the files that have a match.
    Files,
    /// How many matching lines each file has.
    Count,
}

/// What was found, in path order.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The matches; empty with output files or count.
    matches: Vec<Match>,
    /// With output files or count: the files that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<GrepFile>>,
    /// How many matches are returned or counted; with output files, how many files.
    total_matches: u64,
    /// How many files were searched.
    files_searched: u64,
    /// How many files were left out: binary or unreadable.
    files_skipped: u64,
    /// True where more matches follow after those returned: raise max_results or narrow the search.
    truncated: bool,
    /// True where the time was over before everything was searched.
    timed_out: bool,
}

/// One matching line.
#[derive(Serialize, JsonSchema)]
struct Match {
    /// The file, relative to the root.
    file: String,
    /// The line's number, from 1.
    line_number: u64,
    /// The line.
    line_content: String,
    /// The lines before it.
    context_before: Vec<String>,
    /// The lines after it.
    context_after: Vec<String>,
    /// True where the line is longer than 2,000 bytes and cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_truncated: bool,
    /// True where the path's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

/// A file with matches.
#[derive(Serialize, JsonSchema)]
struct GrepFile {
    /// The file, relative to the root.
    file: String,
    /// With output count: how many lines match.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// True where the path's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for GrepTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "grep";
    const TITLE: &'static str = "Search file contents";
    const DESCRIPTION: &'static str = "Searches the content of files for a regular expression, in a directory with all below it or \
        in one file. Binary files are skipped, symlinks are not followed. Use glob to find files by name instead. \
        Returns matches in path order, each with file, line_number, line_content, context_before and context_after; \
        total_matches, truncated (more follow: raise max_results or narrow glob_filter or path) and timed_out. No match is no \
        error. output \"files\" or \"count\" gives only files or counts per file. \
        Example: {\"root\":\"workspace\",\"pattern\":\"TODO|FIXME\",\"glob_filter\":\"*.go\",\"context_lines\":2}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn timeout(arguments: &Arguments, _: Duration, limits: &Limits) -> Duration {
        call_timeout(arguments.timeout_seconds, limits)
    }

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let root = arguments.root.clone();
        let output = arguments.output;
        let grepped = request(arguments, call)?.run(&call.context)?;
        Ok(reply(root, output, grepped))
    }
}

fn request(arguments: Arguments, call: &Call) -> ops::Result<Grep> {
    Ok(Grep {
        place: call.place(&arguments.path)?,
        pattern: Pattern {
            text: arguments.pattern,
            syntax: Syntax::Regex,
            case: if arguments.case_insensitive {
                Case::Insensitive
            } else {
                Case::Sensitive
            },
        },
        filter: arguments.glob_filter,
        context_lines: arguments.context_lines,
        max_results: arguments.max_results,
        timeout: search_timeout(arguments.timeout_seconds, &call.context.limits),
        max_depth: arguments.max_depth,
        max_file_size: None,
        ignore_rules: ignore_rules(arguments.respect_gitignore),
        output: match arguments.output {
            GrepOutput::Matches => SearchOutput::Matches,
            GrepOutput::Files => SearchOutput::Files,
            GrepOutput::Count => SearchOutput::Count,
        },
    })
}

pub(super) fn ignore_rules(respect: bool) -> IgnoreRules {
    if respect {
        IgnoreRules::Respect
    } else {
        IgnoreRules::Disregard
    }
}

fn reply(root: String, output: GrepOutput, grepped: Grepped) -> Reply {
    let files = match output {
        GrepOutput::Matches => None,
        GrepOutput::Files => Some(files(&grepped, false)),
        GrepOutput::Count => Some(files(&grepped, true)),
    };
    Reply {
        root,
        total_matches: grepped.total_matches,
        files_searched: grepped.files_searched,
        files_skipped: grepped.files_skipped,
        truncated: grepped.truncated,
        timed_out: grepped.timed_out,
        files,
        matches: matches(grepped),
    }
}

fn files(grepped: &Grepped, counted: bool) -> Vec<GrepFile> {
    let files = grepped.files.iter();
    files
        .map(|file| GrepFile {
            file: file.path.clone(),
            count: counted.then_some(file.count),
            invalid_utf8: file.invalid_utf8,
        })
        .collect()
}

fn matches(grepped: Grepped) -> Vec<Match> {
    let mut all = Vec::new();
    for file in grepped.files {
        all.extend(file.matches.into_iter().map(|line| Match {
            file: file.path.clone(),
            line_number: line.line_number,
            line_content: line.line,
            context_before: line.before,
            context_after: line.after,
            line_truncated: line.line_truncated,
            invalid_utf8: file.invalid_utf8,
        }));
    }
    all
}
