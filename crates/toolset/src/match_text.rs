//! Matching lines as text, the way ripgrep prints them with headings.

use ops::FileMatches;

use crate::search_bounds::timed_out;
use crate::text_form::{TextLines, counted, shown};
use crate::unread_note::UnreadNote;

/// A matching line and the lines around it.
struct MatchedLine<'reply> {
    /// Its number, from 1; below 0 it is counted from the file's end.
    number: i64,
    /// Where in the line the first match begins, in characters, from 1.
    column: u64,
    /// The line.
    line: &'reply str,
    /// Whether only a piece of it is given.
    is_cut: bool,
    /// The lines right before it.
    before: Vec<&'reply str>,
    /// The lines right after it.
    after: Vec<&'reply str>,
}

/// Adds the matches of one file, if it has any.
pub(crate) fn add_matches(lines: &mut TextLines, file: &FileMatches) {
    let found = file.matches.iter().map(|found| MatchedLine {
        number: found.line_number,
        column: found.column,
        line: &found.line,
        is_cut: found.line_truncated,
        before: found.before().collect(),
        after: found.after().collect(),
    });
    let found: Vec<MatchedLine<'_>> = found.collect();
    if !found.is_empty() {
        add_file(lines, &file.path, &found);
    }
}

/// Adds the matches of one file: its path, then `12:line` for each match and `11-line` for each line around one. No line
/// comes twice; `--` is where lines are left out between.
fn add_file(lines: &mut TextLines, path: &str, matches: &[MatchedLine<'_>]) {
    if !lines.is_empty() {
        lines.line("");
    }
    lines.line(shown(path));
    let has_context = |found: &MatchedLine<'_>| !found.before.is_empty() || !found.after.is_empty();
    let has_context = matches.iter().any(has_context);
    let mut last = i64::MIN;
    let next_numbers = matches.iter().skip(1).map(|next| next.number);
    for (found, next) in matches.iter().zip(next_numbers.chain([i64::MAX])) {
        if has_context && last != i64::MIN && found.first_number() > last + 1 {
            lines.line("--");
        }
        last = found.add_to(lines, last, next);
    }
}

impl MatchedLine<'_> {
    /// The number of the first line around it.
    fn first_number(&self) -> i64 {
        let before = i64::try_from(self.before.len()).unwrap_or(i64::MAX);
        self.number.saturating_sub(before)
    }

    /// Adds it with the lines around it that come after line `last` and before line `next`; returns the number of the
    /// last.
    fn add_to(&self, lines: &mut TextLines, last: i64, next: i64) -> i64 {
        let before = (self.first_number()..).zip(&self.before);
        for (number, line) in before.filter(|(number, _)| *number > last) {
            lines.line(format_args!("{number}-{line}"));
        }
        let line = format!("{}:{}", self.number, self.line);
        if self.is_cut {
            lines.line(format_args!("{line}… (match at column {})", self.column));
        } else {
            lines.line(line);
        }
        let mut last = self.number;
        let after = (self.number + 1..).zip(&self.after);
        for (number, line) in after.take_while(|(number, _)| *number < next) {
            lines.line(format_args!("{number}-{line}"));
            last = number;
        }
        last
    }
}

/// How a search ended.
pub(crate) struct SearchEnd<'reply> {
    /// How many matches are told.
    pub(crate) found: u64,
    /// How many files were searched.
    pub(crate) files_searched: u64,
    /// What could not be read.
    pub(crate) unread: Option<&'reply UnreadNote>,
    /// How many lines were too long to be matched as a whole.
    pub(crate) lines_in_parts: u64,
    /// Whether there are more matches.
    pub(crate) is_truncated: bool,
    /// Whether these are the last ones.
    pub(crate) is_from_end: bool,
    /// Whether the time was over before everything was searched.
    pub(crate) is_timed_out: bool,
    /// How to get the rest.
    pub(crate) narrow: &'static str,
}

impl SearchEnd<'_> {
    /// Says what is unusual about it: nothing was found, or not everything is shown.
    pub(crate) fn add_notes(&self, lines: &mut TextLines) {
        if self.found == 0 {
            let files = counted(self.files_searched, "file", "files");
            lines.note(format!("no match in {files}"));
        }
        if let Some(unread) = self.unread {
            unread.add_to(lines);
        }
        if self.lines_in_parts > 0 {
            let long = counted(self.lines_in_parts, "line is", "lines are");
            lines.note(format!(
                "{long} too long to be matched as a whole: a match of more than 4 KiB may be missing"
            ));
        }
        self.add_missing(lines);
    }

    /// Says why matches are missing, and how to get them.
    fn add_missing(&self, lines: &mut TextLines) {
        let narrow = self.narrow;
        if self.is_truncated {
            let matches = counted(self.found, "match", "matches");
            let more = match self.is_from_end {
                true => "more come before",
                false => "more follow",
            };
            lines.note(format!("{matches}; {more}: {narrow}"));
        }
        if self.is_timed_out {
            lines.note(timed_out(narrow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(number: i64, before: &[&'a str], after: &[&'a str]) -> MatchedLine<'a> {
        MatchedLine {
            number,
            column: 1,
            line: "hit",
            is_cut: false,
            before: before.to_vec(),
            after: after.to_vec(),
        }
    }

    #[test]
    fn lines_between_matches_come_once() {
        let mut lines = TextLines::default();
        let close = [
            found(2, &["a"], &["b"]),
            found(3, &["hit"], &["c"]),
            found(5, &["c"], &["d"]),
            found(9, &["e"], &[]),
        ];
        add_file(&mut lines, "x", &close);
        add_file(&mut lines, "y", &[found(1, &[], &[]), found(7, &[], &[])]);
        assert_eq!(
            lines.finish(),
            "x\n1-a\n2:hit\n3:hit\n4-c\n5:hit\n6-d\n--\n8-e\n9:hit\n\ny\n1:hit\n7:hit"
        );
    }

    #[test]
    fn lines_counted_from_the_end_come_in_order_too() {
        let mut lines = TextLines::default();
        let last = [found(-9, &["a"], &["b"]), found(-2, &[], &["c"])];
        add_file(&mut lines, "x", &last);
        assert_eq!(lines.finish(), "x\n-10-a\n-9:hit\n-8-b\n--\n-2:hit\n-1-c");
    }
}
