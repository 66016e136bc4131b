//! Shared parts of the replies of tools that edit files, and the messages for edits that do not fit.

use std::fmt::Write as _;

use ops::{CHANGES_SHOWN, ChangedLines, EditFault, NearDifference, NearRegion, SyntaxFault};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::shortened;
use crate::text_form::{TextLines, shown};

/// The lines of a change as the file has them now.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangedPart {
    /// The file, relative to the root.
    path: String,
    /// The number of the first line.
    line: u64,
    /// One line before the change, its lines, one line after; ten at most.
    lines: Vec<String>,
}

impl ChangedPart {
    /// The first changes of files.
    pub(super) fn of<'c>(
        files: impl Iterator<Item = (&'c str, &'c [ChangedLines])>,
    ) -> Vec<ChangedPart> {
        let changes = files.flat_map(|(path, changes)| {
            changes.iter().map(move |change| ChangedPart {
                path: path.to_owned(),
                line: change.first,
                lines: change.lines.clone(),
            })
        });
        changes.take(CHANGES_SHOWN).collect()
    }
}

/// Adds changed lines to a text, numbered; with the path before those of each file if there are several.
pub(super) fn add_changes(text: &mut TextLines, changes: &[ChangedPart], several: bool) {
    let mut path = None;
    for (index, change) in changes.iter().enumerate() {
        if several && path != Some(&change.path) {
            path = Some(&change.path);
            text.line(format_args!("==> {} <==", shown(&change.path)));
        } else if index > 0 {
            text.line("--");
        }
        for (number, line) in (change.line..).zip(&change.lines) {
            text.line(format_args!("{number}\t{line}"));
        }
    }
}

/// Says which files no longer parse.
pub(super) fn syntax_warnings<'f>(
    files: impl Iterator<Item = (&'f str, Option<&'f SyntaxFault>)>,
) -> Vec<String> {
    let broken = files.filter_map(|(path, fault)| Some((path, fault?)));
    broken
        .map(|(path, fault)| syntax_warning(path, fault))
        .collect()
}

fn syntax_warning(path: &str, fault: &SyntaxFault) -> String {
    let path = shown(path);
    let SyntaxFault {
        language, reason, ..
    } = fault;
    match fault.line {
        Some(line) => format!("{path} is no valid {language} now: line {line}: {reason}"),
        None => format!("{path} is no valid {language} now: {reason}"),
    }
}

/// Why an edit was refused and what to do, in one line; lines of the file may follow.
pub(super) fn refusal(path: &str, (edit, edits): (usize, usize), fault: &EditFault) -> String {
    let path = shortened(path);
    let reason = match fault {
        EditFault::Missing { nearest } => not_found(nearest.as_ref()),
        EditFault::AlreadyThere { lines } => {
            let lines = named_lines(lines);
            format!("old not found, but new is already there, {lines}")
        }
        EditFault::Escaped { lines } => escaped(lines),
        EditFault::Repeated { count, lines } => repeated(*count, lines),
        EditFault::TooMany { count, most } => format!(
            "old occurs {count} times, and one call changes {most} places at most; nothing was changed"
        ),
        EditFault::TooLong { most } => format!(
            "that makes the file, or all that the call puts in, longer than {most} bytes; nothing was changed"
        ),
        EditFault::Idle => IDLE.to_owned(),
        EditFault::Exists => EXISTS.to_owned(),
    };
    format!("edit {edit} of {edits}, {path}: {reason}")
}

const IDLE: &str = "old and new are the same (line ends of the file are kept); nothing was changed";

const EXISTS: &str = "the file exists, and an empty old makes a new one; give the text to replace, or use write_file; \
     nothing was changed";

const NOTHING_LIKE_IT: &str =
    "old not found, nor any line like it; copy it from the file (read_file); nothing was changed";

fn escaped(lines: &[u64]) -> String {
    format!(
        "old not found, but it is there with line ends for its \\n, {}: write line ends, not \\n; nothing was changed",
        named_lines(lines)
    )
}

fn repeated(count: u64, lines: &[u64]) -> String {
    format!(
        "old occurs {count} times, in {}; add lines around it or set all: true; nothing was changed",
        some_lines(lines, count)
    )
}

fn not_found(nearest: Option<&NearRegion>) -> String {
    let Some(region) = nearest else {
        return NOTHING_LIKE_IT.to_owned();
    };
    let place = if region.first == region.last {
        format!("line {}", region.first)
    } else {
        format!("lines {}-{}", region.first, region.last)
    };
    let differs = region.difference.map_or("", in_words);
    let mut text = format!("old not found; nearest is {place}{differs}:");
    for (number, line) in &region.lines {
        let _ = write!(text, "\n{number}\t{line}");
    }
    text
}

fn in_words(difference: NearDifference) -> &'static str {
    match difference {
        NearDifference::Indentation => " (differs in indentation)",
        NearDifference::Blanks => " (differs in blanks)",
        NearDifference::Case => " (differs in upper and lower case)",
        NearDifference::UnicodeForm => " (differs in Unicode form: copy it from the file)",
        NearDifference::LastLineEnd => " (differs in a line end before or after)",
    }
}

/// `line 13`, or `lines 13, 20`.
fn named_lines(lines: &[u64]) -> String {
    let word = if lines.len() == 1 { "line" } else { "lines" };
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    format!("{word} {}", numbers.join(", "))
}

/// `line 13`, or `lines 13, 20 …` if there are more than these.
pub(super) fn some_lines(lines: &[u64], count: u64) -> String {
    let more = if count > lines.len() as u64 {
        " …"
    } else {
        ""
    };
    format!("{}{more}", named_lines(lines))
}

/// The numbers for programs.
pub(super) fn facts(edit: usize, fault: &EditFault) -> Value {
    let mut facts = json!({ "edit": edit });
    let more = match fault {
        EditFault::Repeated { count, lines } => json!({ "count": count, "lines": lines }),
        EditFault::TooMany { count, most } => json!({ "count": count, "limit": most }),
        EditFault::TooLong { most } => json!({ "limit": most }),
        EditFault::AlreadyThere { lines } | EditFault::Escaped { lines } => {
            json!({ "lines": lines })
        }
        EditFault::Missing {
            nearest: Some(region),
        } => json!({ "nearest": [region.first, region.last] }),
        EditFault::Missing { nearest: None } | EditFault::Idle | EditFault::Exists => json!({}),
    };
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
        facts.extend(more);
    }
    facts
}
