//! The changed lines of a text, with one line before and one after.

use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use crate::error::Result;
use crate::text::line_index::Mark;
use crate::text::string_search::line_numbers_from;
use crate::text::{ReadAt, excerpt};

/// How many lines of a change are shown.
const LINES_SHOWN: usize = 10;
/// How much of a line is shown.
const LINE_SHOWN: usize = 300;
/// How much is read before a change, and from there on. Longer lines are shown from their middle on.
const BEFORE: u64 = 4 * 1024;
const WINDOW: usize = 16 * 1024;

/// Lines of a text around a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLines {
    /// The number of the first of them, from 1.
    pub first: u64,
    /// The lines.
    pub lines: Vec<String>,
}

/// The lines around changes, which are in order. A change that is shown with the one before is not shown again.
pub(crate) fn changed_lines(
    read: &mut ReadAt<'_>,
    changes: &[Range<u64>],
) -> Result<Vec<ChangedLines>> {
    changed_lines_from(read, Mark::default(), changes)
}

/// The lines around changes, counted from a place before the first change.
pub(crate) fn changed_lines_from(
    read: &mut ReadAt<'_>,
    start: Mark,
    changes: &[Range<u64>],
) -> Result<Vec<ChangedLines>> {
    let numbers = line_numbers_from(read, start, changes.iter().map(|change| change.start))?;
    let mut shown: Vec<ChangedLines> = Vec::new();
    for (change, number) in changes.iter().zip(numbers) {
        let known = shown
            .last()
            .map_or(0, |last| last.first + last.lines.len() as u64);
        if number >= known {
            shown.push(around(read, change, number)?);
        }
    }
    Ok(shown)
}

fn around(read: &mut ReadAt<'_>, change: &Range<u64>, number: u64) -> Result<ChangedLines> {
    let from = change.start.saturating_sub(BEFORE);
    let mut window = vec![0; WINDOW];
    let count = read(from, &mut window)?;
    let window = window.get(..count).unwrap_or_default();
    let inside = |offset: u64| usize::try_from(offset - from).unwrap_or(count).min(count);
    let (start, end) = (inside(change.start), inside(change.end));
    let (before, rest) = window.split_at_checked(start).unwrap_or_default();
    let own_line = last_line_start(before);
    let above = own_line.checked_sub(1).and_then(|end| before.get(..end));
    let line_above = above.map(last_line_start);
    let text = window
        .get(line_above.unwrap_or(own_line)..)
        .unwrap_or_default();
    let changed = changed_count(
        own_line == start,
        rest.get(..end - start).unwrap_or_default(),
    );
    let wanted = usize::from(line_above.is_some()) + changed + 1;
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let shown = |line: &[u8]| excerpt(line.trim_ascii_end(), LINE_SHOWN);
    Ok(ChangedLines {
        first: number - u64::from(line_above.is_some()),
        lines: lines.take(wanted.min(LINES_SHOWN)).map(shown).collect(),
    })
}

fn last_line_start(text: &[u8]) -> usize {
    memrchr(b'\n', text).map_or(0, |newline| newline + 1)
}

/// How many lines a change affects; none if whole lines are gone.
fn changed_count(at_line_start: bool, changed: &[u8]) -> usize {
    let newlines = memchr_iter(b'\n', changed).count();
    let whole = match changed.last() {
        Some(last) => *last == b'\n',
        None => at_line_start,
    };
    newlines + usize::from(!whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;

    fn shown(text: &str, changes: &[(u64, u64)]) -> Vec<(u64, String)> {
        let changes: Vec<Range<u64>> = changes.iter().map(|(from, to)| *from..*to).collect();
        let lines = changed_lines(&mut reader(text.as_bytes()), &changes).unwrap();
        let shown = lines
            .into_iter()
            .map(|found| (found.first, found.lines.join("|")));
        shown.collect()
    }

    #[test]
    fn a_change_is_shown_with_its_neighbours() {
        let text = "1\n2\n3\r\n4\n5\n6\n";
        assert_eq!(shown(text, &[(4, 5)]), [(2, "2|3|4".to_owned())]);
        assert_eq!(shown(text, &[(0, 1)]), [(1, "1|2".to_owned())]);
        assert_eq!(shown(text, &[(4, 7)]), [(2, "2|3|4".to_owned())]);
        // Whole lines are gone before line 4.
        assert_eq!(shown(text, &[(7, 7)]), [(3, "3|4".to_owned())]);
        assert_eq!(shown(text, &[(13, 13)]), [(6, "6".to_owned())]);
        assert_eq!(shown("", &[(0, 0)]), [(1, String::new())]);
        let two = [(1, "1|2|3".to_owned()), (4, "4|5|6".to_owned())];
        assert_eq!(shown(text, &[(2, 3), (4, 5), (9, 10)]), two);
    }

    #[test]
    fn long_changes_and_long_lines_are_cut() {
        let text = "x\n".repeat(100);
        let found = shown(&text, &[(20, 60)]);
        assert_eq!(found, [(10, ["x"; 10].join("|"))]);
        let long = "y".repeat(100_000);
        let found = shown(&long, &[(50_000, 50_001)]);
        assert_eq!(found.len(), 1);
        assert!(
            found
                .iter()
                .all(|(line, text)| *line == 1 && text.len() < 400)
        );
    }
}
