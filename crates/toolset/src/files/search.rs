//! `search`: text in files.

use std::time::Duration;

use ops::{
    Case, Error, FileMatches, Grep, Grepped, IgnoreRules, LineMatch, Operation, Pattern,
    SearchOutput, Syntax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::yes;
use crate::search_bounds::{MAX_RESULTS, max_results};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct SearchTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Root directory to start the search from (relative to server root), or one file.
    root_path: String,
    /// Text pattern to search for in files, matched within lines.
    pattern: String,
    /// Whether to treat pattern as regex (RE2 syntax: no look-around, no back references).
    #[serde(default)]
    regex: bool,
    /// Glob pattern to filter which files to search: without / by name at any depth, else by path below `root_path`.
    #[serde(default = "every_file")]
    file_pattern: String,
    /// Whether to search directories recursively.
    #[serde(default = "yes")]
    recursive: bool,
    /// Whether the search should be case-sensitive.
    #[serde(default)]
    case_sensitive: bool,
    /// Maximum number of results (matching lines) to return.
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: usize,
    /// Maximum file size to search (in bytes); larger files are skipped.
    #[serde(default = "max_file_size")]
    max_file_size: u64,
    /// Number of context lines to include before and after matches.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    context_lines: usize,
}

fn every_file() -> String {
    "*".to_owned()
}

fn max_file_size() -> u64 {
    10_485_760
}

/// What was found, in path order.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// How many matching lines are returned.
    total_matches: u64,
    /// How many files were searched.
    files_searched: u64,
    /// How many files have matches.
    files_matched: usize,
    /// The files with matches.
    matches: Vec<MatchedFile>,
    /// How many files were left out because they are over max_file_size, where some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    files_too_large: Option<u64>,
    /// True where more matches follow after those returned: raise max_results or narrow the search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// A file with matches.
#[derive(Serialize, JsonSchema)]
struct MatchedFile {
    /// The file, relative to the root.
    file: String,
    /// Its matching lines.
    matches: Vec<Match>,
}

/// One matching line.
#[derive(Serialize, JsonSchema)]
struct Match {
    /// The line's number, from 1.
    line_number: u64,
    /// The line.
    line: String,
    /// With context_lines: the lines around it and itself, in order.
    context: Vec<ContextLine>,
    /// True where the line is longer than 2,000 bytes and cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_truncated: bool,
}

/// A line of context.
#[derive(Serialize, JsonSchema)]
struct ContextLine {
    /// The line's number, from 1.
    line_number: u64,
    /// The line.
    content: String,
}

impl Tool for SearchTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search file contents";
    const DESCRIPTION: &'static str = "Searches the content of files for text, in a directory with all below it or in one file. The \
        pattern is plain text and upper and lower case are equal, unless regex or case_sensitive say otherwise. Binary files and \
        files over max_file_size are skipped, symlinks are not followed. Use list to find files by name. Returns matches by \
        file, each with line_number (from 1), line and context; total_matches, files_searched and files_matched; files_too_large \
        where files were left out for their size; and truncated where there are more than max_results. No match is no error. \
        Example: {\"root_path\":\"src\",\"pattern\":\"todo\",\"file_pattern\":\"*.rs\",\"context_lines\":2}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::home("root_path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let context_lines = arguments.context_lines;
        let grepped = request(arguments, call)?.run(&call.context)?;
        // A part of the result would look like all of it.
        if grepped.timed_out {
            return Err(Error::Timeout);
        }
        Ok(reply(grepped, context_lines))
    }
}

fn request(arguments: Arguments, call: &Call) -> ops::Result<Grep> {
    Ok(Grep {
        place: call.place(&arguments.root_path)?,
        pattern: Pattern {
            text: arguments.pattern,
            syntax: if arguments.regex {
                Syntax::Regex
            } else {
                Syntax::Literal
            },
            case: if arguments.case_sensitive {
                Case::Sensitive
            } else {
                Case::Insensitive
            },
        },
        filter: Some(arguments.file_pattern).filter(|pattern| pattern != "*"),
        context_lines: arguments.context_lines,
        max_results: arguments.max_results,
        // The call's own deadline holds.
        timeout: Duration::MAX,
        max_depth: (!arguments.recursive).then_some(1),
        max_file_size: Some(arguments.max_file_size),
        ignore_rules: IgnoreRules::Disregard,
        output: SearchOutput::Matches,
    })
}

fn reply(grepped: Grepped, context_lines: usize) -> Reply {
    Reply {
        total_matches: grepped.total_matches,
        files_searched: grepped.files_searched,
        files_matched: grepped.files.len(),
        files_too_large: Some(grepped.files_too_large).filter(|&files| files > 0),
        truncated: grepped.truncated,
        matches: grepped
            .files
            .into_iter()
            .map(|file| of_file(file, context_lines))
            .collect(),
    }
}

fn of_file(file: FileMatches, context_lines: usize) -> MatchedFile {
    let matches = file.matches.into_iter();
    MatchedFile {
        file: file.path,
        matches: matches.map(|line| of_line(line, context_lines)).collect(),
    }
}

fn of_line(found: LineMatch, context_lines: usize) -> Match {
    let context = match context_lines {
        0 => Vec::new(),
        _ => context(&found),
    };
    Match {
        line_number: found.line_number,
        line: found.line,
        context,
        line_truncated: found.line_truncated,
    }
}

fn context(found: &LineMatch) -> Vec<ContextLine> {
    let first = found.line_number.saturating_sub(found.before.len() as u64);
    let lines = found.before.iter().chain([&found.line]).chain(&found.after);
    let numbered = lines.zip(first..);
    numbered
        .map(|(content, line_number)| ContextLine {
            line_number,
            content: content.clone(),
        })
        .collect()
}
