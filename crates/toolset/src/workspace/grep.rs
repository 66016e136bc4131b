//! `grep`: lines that match, in a file or a whole tree.

use std::str::SplitTerminator;
use std::time::Duration;

use ops::{
    Case, CompressedFiles, Error, FileMatches, Grep, Grepped, IgnoreRules, Limits, LineMatch,
    Operation, Pattern, SearchFrom, SearchOutput, Syntax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::made_items::{self, MadeItems};
use crate::match_text::{SearchEnd, add_matches};
use crate::search_bounds::{
    MAX_RESULTS, TIMEOUT_SECONDS, call_timeout, here, is_zero, max_results, search_timeout,
    timeout_seconds,
};
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};
use crate::unread_note::UnreadNote;

pub(super) struct GrepTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    /// Matched within lines.
    pattern: Option<String>,
    /// Any of them, instead of pattern.
    #[schemars(length(min = 1, max = 50))]
    patterns: Option<Vec<String>>,
    /// Plain text, no expression.
    #[serde(default)]
    literal: bool,
    /// A directory or file.
    #[serde(default = "here")]
    path: String,
    /// Searches only such files: *.go by name at any depth, src/**/*.go by path below `path`.
    glob_filter: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    /// Lines before and after each match.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    context_lines: usize,
    /// Matches, or files with output files or count.
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
    /// Leaves out .git and what ignore files name.
    #[serde(default)]
    respect_gitignore: bool,
    /// Lines, files, or matching lines of each file.
    #[serde(default)]
    output: GrepOutput,
    /// The last results, not the first.
    #[serde(default)]
    from_end: bool,
    /// In .gz and .zst too.
    #[serde(default)]
    search_compressed: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum GrepOutput {
    #[default]
    Matches,
    Files,
    Count,
}

/// What was found, in path order.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The matches; empty with output files or count.
    #[serde(serialize_with = "made_items::serialize")]
    #[schemars(with = "Vec<Match>")]
    matches: Vec<FileMatches>,
    /// With output files or count: the files that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<GrepFile>>,
    /// How many matches are returned or counted; with output files, how many files.
    total_matches: u64,
    /// How many files were searched.
    files_searched: u64,
    /// How many files were left out: binary or unreadable.
    files_skipped: u64,
    /// What could not be read, if any could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<UnreadNote>,
    /// How many lines were too long to be matched as a whole, if any were: a match that spans over 4 KiB of one may be missing.
    #[serde(skip_serializing_if = "is_zero")]
    lines_in_parts: u64,
    /// True if more matches follow after those returned: raise max_results or narrow the search.
    truncated: bool,
    /// Whether there is more than was returned.
    more: bool,
    /// True if the time was over before everything was searched.
    timed_out: bool,
    #[serde(skip)]
    from_end: bool,
}

/// One matching line.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Match<'made> {
    /// The file, relative to the root.
    file: &'made str,
    /// The line's number, from 1. With from_end those of large files count from the end: -1 is the last line.
    line_number: i64,
    /// Where in the line the first match begins, in characters, from 1.
    column: u64,
    /// The line.
    line_content: &'made str,
    /// The lines before it.
    #[serde(serialize_with = "made_items::serialize_lines")]
    #[schemars(with = "Vec<String>")]
    context_before: SplitTerminator<'made, char>,
    /// The lines after it.
    #[serde(serialize_with = "made_items::serialize_lines")]
    #[schemars(with = "Vec<String>")]
    context_after: SplitTerminator<'made, char>,
    /// True if the line is longer than 2,000 bytes and only a piece with the match is given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_truncated: bool,
    /// True if the line was too long to be matched as a whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_in_parts: bool,
    /// True if the path's bytes are not UTF-8; the path shown here still opens it.
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
    /// True if the path's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

impl Tool for GrepTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "grep";
    const TITLE: &'static str = "Search file contents";
    const DESCRIPTION: &'static str = "Searches the content of files for a regular expression (RE2), in one file or a directory with all below it. \
        Binary files are skipped, symlinks not followed. To find files by name use glob.";
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
        let root = arguments.root.clone();
        let (output, from_end) = (arguments.output, arguments.from_end);
        let grepped = request(arguments, call)?.run(&call.context)?;
        Ok(Reply {
            from_end,
            ..reply(root, output, grepped)
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        match &reply.files {
            Some(files) => files.iter().for_each(|file| file.add_to(&mut lines)),
            None => {
                let files = reply.matches.iter();
                files.for_each(|file| add_matches(&mut lines, file));
            }
        }
        let is_backwards =
            |file: &FileMatches| file.matches.iter().any(|found| found.line_number < 0);
        if reply.matches.iter().any(is_backwards) {
            lines.note("lines are counted from the file's end, as offset_lines of read_file is");
        }
        reply.end().add_notes(&mut lines);
        Some(lines.finish())
    }

    fn cut_short_at(reply: &Reply) -> Option<&str> {
        let mut matches = reply.matches.iter().filter(|file| !file.matches.is_empty());
        let cut = if reply.from_end {
            matches.next()
        } else {
            matches.next_back()
        };
        cut.filter(|_| reply.truncated)
            .map(|file| file.path.as_str())
    }
}

/// The expression to search for.
fn pattern(arguments: &mut Arguments) -> ops::Result<Pattern> {
    let texts = match (arguments.pattern.take(), arguments.patterns.take()) {
        (Some(pattern), None) => vec![pattern],
        (None, Some(patterns)) => patterns,
        (given, _) => {
            let got = if given.is_some() { "both" } else { "neither" };
            return Err(Error::InvalidArgument {
                argument: "arguments",
                reason: format!("give pattern or patterns, got {got}"),
            });
        }
    };
    Ok(Pattern {
        texts,
        syntax: if arguments.literal {
            Syntax::Literal
        } else {
            Syntax::Regex
        },
        case: if arguments.case_insensitive {
            Case::Insensitive
        } else {
            Case::Sensitive
        },
    })
}

fn request(mut arguments: Arguments, call: &Call) -> ops::Result<Grep> {
    Ok(Grep {
        place: call.place(&arguments.path)?,
        pattern: pattern(&mut arguments)?,
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
        from: if arguments.from_end {
            SearchFrom::End
        } else {
            SearchFrom::Start
        },
        compressed: if arguments.search_compressed {
            CompressedFiles::Decompressed
        } else {
            CompressedFiles::AsTheyAre
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

fn reply(root: String, output: GrepOutput, mut grepped: Grepped) -> Reply {
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
        unread: UnreadNote::of(std::mem::take(&mut grepped.unread)),
        lines_in_parts: grepped.lines_in_parts,
        truncated: grepped.truncated,
        more: grepped.truncated || grepped.timed_out,
        timed_out: grepped.timed_out,
        from_end: false,
        files,
        matches: match output {
            GrepOutput::Matches => grepped.files,
            GrepOutput::Files | GrepOutput::Count => Vec::new(),
        },
    }
}

impl GrepFile {
    fn add_to(&self, lines: &mut TextLines) {
        match self.count {
            Some(count) => lines.line(format_args!("{count}\t{}", shown(&self.file))),
            None => lines.line(shown(&self.file)),
        };
    }
}

impl Reply {
    /// How the search ended.
    fn end(&self) -> SearchEnd<'_> {
        SearchEnd {
            found: self.total_matches,
            files_searched: self.files_searched,
            unread: self.unread.as_ref(),
            lines_in_parts: self.lines_in_parts,
            is_truncated: self.truncated,
            is_from_end: self.from_end,
            is_timed_out: self.timed_out,
            narrow: "raise max_results or narrow path, pattern or glob_filter",
        }
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

impl MadeItems for Vec<FileMatches> {
    type Item<'made> = Match<'made>;

    fn items(&self) -> impl Iterator<Item = Match<'_>> {
        self.iter().flat_map(|file| {
            let lines = file.matches.iter();
            lines.map(|line| matched(file, line))
        })
    }
}

fn matched<'made>(file: &'made FileMatches, line: &'made LineMatch) -> Match<'made> {
    Match {
        file: &file.path,
        line_number: line.line_number,
        column: line.column,
        line_content: &line.line,
        context_before: line.before(),
        context_after: line.after(),
        line_truncated: line.line_truncated,
        line_in_parts: line.line_in_parts,
        invalid_utf8: file.invalid_utf8,
    }
}
