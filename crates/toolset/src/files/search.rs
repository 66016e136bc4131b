//! `search`: text in files.

use std::time::Duration;

use ops::{
    Case, CompressedFiles, FileMatches, Grep, Grepped, IgnoreRules, Limits, LineMatch, Operation,
    Pattern, SearchFrom, SearchOutput, Syntax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::{place, with_slashes};
use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::made_items::{self, MadeItems};
use crate::match_text::{SearchEnd, add_matches};
use crate::search_bounds::{MAX_RESULTS, is_zero, max_results, with_grace};
use crate::text_form::{TextLines, counted};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};
use crate::unread_note::UnreadNote;

pub(super) struct SearchTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Directory or file to search (relative to server root).
    root_path: String,
    /// Found within lines; plain text unless regex.
    pattern: String,
    /// RE2 syntax.
    #[serde(default)]
    regex: bool,
    /// Searches only such files: *.rs by name at any depth, src/*.rs by path below `root_path`.
    #[serde(default = "every_file")]
    file_pattern: String,
    #[serde(default = "yes")]
    recursive: bool,
    #[serde(default)]
    case_sensitive: bool,
    /// Matching lines.
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: usize,
    /// Larger files are skipped (in bytes).
    #[serde(default = "max_file_size")]
    max_file_size: u64,
    /// Lines before and after each match.
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
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<MatchedFile>")]
    matches: Found,
    /// What could not be read, if any could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<UnreadNote>,
    /// How many files were left out because they are over max_file_size, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    files_too_large: Option<u64>,
    /// How many lines were too long to be matched as a whole, if any were: a match that spans over 4 KiB of one may be missing.
    #[serde(skip_serializing_if = "is_zero")]
    lines_in_parts: u64,
    /// True if more matches follow after those returned: raise max_results or narrow the search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// True if the time for requests was over before everything was searched: matches may be missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
}

/// What the items are made from.
struct Found {
    files: Vec<FileMatches>,
    /// Whether lines around matches were asked for.
    has_context: bool,
}

/// A file with matches.
#[derive(Serialize, JsonSchema)]
struct MatchedFile<'made> {
    /// The file, relative to the root.
    file: &'made str,
    /// Its matching lines.
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<Match>")]
    matches: MatchesOf<'made>,
}

/// What the matches of a file are made from.
struct MatchesOf<'made> {
    lines: &'made [LineMatch],
    has_context: bool,
}

/// One matching line.
#[derive(Serialize, JsonSchema)]
struct Match<'made> {
    /// The line's number, from 1.
    line_number: i64,
    /// Where in the line the first match begins, in characters, from 1.
    column: u64,
    /// The line.
    line: &'made str,
    /// With context_lines: the lines around it and itself, in order.
    context: Vec<ContextLine<'made>>,
    /// True if the line is longer than 2,000 bytes and only a piece with the match is given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_truncated: bool,
    /// True if the line was too long to be matched as a whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_in_parts: bool,
}

/// A line of context.
#[derive(Serialize, JsonSchema)]
struct ContextLine<'made> {
    /// The line's number, from 1.
    line_number: i64,
    /// The line.
    content: &'made str,
}

impl Tool for SearchTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search file contents";
    const DESCRIPTION: &'static str = "Searches the content of files for text, in one file or a directory. Binary files are skipped, symlinks not \
        followed. To find files by name use list.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::home("root_path", PlaceAccess::Read)];

    /// The search stops by itself and answers with what it has, so the call's own deadline is later.
    fn timeout(_: &Arguments, request_timeout: Duration, _: &Limits) -> Duration {
        with_grace(request_timeout)
    }

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let context_lines = arguments.context_lines;
        let grepped = request(arguments, call)?.run(&call.context)?;
        Ok(reply(grepped, context_lines))
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        let files = reply.matches.files.iter();
        files.for_each(|file| add_matches(&mut lines, file));
        SearchEnd {
            found: reply.total_matches,
            files_searched: reply.files_searched,
            unread: reply.unread.as_ref(),
            lines_in_parts: reply.lines_in_parts,
            is_truncated: reply.truncated,
            is_from_end: false,
            is_timed_out: reply.timed_out,
            narrow: "raise max_results or narrow root_path, pattern or file_pattern",
        }
        .add_notes(&mut lines);
        if let Some(files) = reply.files_too_large {
            let files = counted(files, "file", "files");
            lines.note(format!("{files} not searched: larger than max_file_size"));
        }
        Some(lines.finish())
    }

    fn cut_short_at(reply: &Reply) -> Option<&str> {
        let last = reply.matches.files.last().filter(|_| reply.truncated)?;
        Some(&last.path)
    }
}

fn request(arguments: Arguments, call: &Call) -> ops::Result<Grep> {
    Ok(Grep {
        place: place(call, &arguments.root_path)?,
        pattern: Pattern {
            texts: vec![arguments.pattern],
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
        filter: Some(with_slashes(&arguments.file_pattern)).filter(|pattern| pattern != "*"),
        context_lines: arguments.context_lines,
        max_results: arguments.max_results,
        timeout: call.request_timeout,
        max_depth: (!arguments.recursive).then_some(1),
        max_file_size: Some(arguments.max_file_size),
        ignore_rules: IgnoreRules::Disregard,
        output: SearchOutput::Matches,
        from: SearchFrom::Start,
        compressed: CompressedFiles::AsTheyAre,
    })
}

fn reply(grepped: Grepped, context_lines: usize) -> Reply {
    Reply {
        total_matches: grepped.total_matches,
        files_searched: grepped.files_searched,
        files_matched: grepped.files.len(),
        files_too_large: Some(grepped.files_too_large).filter(|&files| files > 0),
        unread: UnreadNote::of(grepped.unread),
        lines_in_parts: grepped.lines_in_parts,
        truncated: grepped.truncated,
        timed_out: grepped.timed_out,
        matches: Found {
            files: grepped.files,
            has_context: context_lines > 0,
        },
    }
}

impl MadeItems for Found {
    type Item<'made> = MatchedFile<'made>;

    fn items(&self) -> impl Iterator<Item = MatchedFile<'_>> {
        self.files.iter().map(|file| MatchedFile {
            file: &file.path,
            matches: MatchesOf {
                lines: &file.matches,
                has_context: self.has_context,
            },
        })
    }
}

impl MadeItems for MatchesOf<'_> {
    type Item<'made>
        = Match<'made>
    where
        Self: 'made;

    fn items(&self) -> impl Iterator<Item = Match<'_>> {
        self.lines.iter().map(|found| Match {
            line_number: found.line_number,
            column: found.column,
            line: &found.line,
            context: match self.has_context {
                true => context(found),
                false => Vec::new(),
            },
            line_truncated: found.line_truncated,
            line_in_parts: found.line_in_parts,
        })
    }
}

fn context(found: &LineMatch) -> Vec<ContextLine<'_>> {
    let before = i64::try_from(found.before().count()).unwrap_or(i64::MAX);
    let first = found.line_number.saturating_sub(before);
    let lines = found.before().chain([&*found.line]).chain(found.after());
    let numbered = lines.zip(first..);
    numbered
        .map(|(content, line_number)| ContextLine {
            line_number,
            content,
        })
        .collect()
}
