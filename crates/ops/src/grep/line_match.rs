//! A matching line, in few bytes: a search may have a million. The lines around it, which most do not have, are in one piece
//! of memory.

use std::str::SplitTerminator;

/// One matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
    /// Its number, from 1; below 0 it is counted from the file's end, -1 being the last line.
    pub line_number: i64,
    /// Where in the line the first match begins, in characters, from 1.
    pub column: u64,
    /// Its text without its end; bytes that are not UTF-8 are replaced.
    pub line: Box<str>,
    /// The text is only a piece of the line: its beginning, or what is around the match.
    pub line_truncated: bool,
    /// The line was too long to be matched as a whole.
    pub line_in_parts: bool,
    /// The lines around it, if there are any.
    pub(super) around: Option<Box<LinesAround>>,
}

impl LineMatch {
    /// The lines before it.
    #[must_use]
    pub fn before(&self) -> SplitTerminator<'_, char> {
        let around = self.around.as_ref();
        around.map_or_else(|| "".split_terminator('\n'), |around| around.before())
    }

    /// The lines after it.
    #[must_use]
    pub fn after(&self) -> SplitTerminator<'_, char> {
        let around = self.around.as_ref();
        around.map_or_else(|| "".split_terminator('\n'), |around| around.after())
    }
}

/// The lines before and after a match, as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinesAround {
    /// All lines, each with a line end.
    text: Box<str>,
    /// How many of its bytes are lines before the match.
    before: usize,
}

impl LinesAround {
    /// These lines; `None` if there are none.
    pub(super) fn new(before: &[String], after: &[String]) -> Option<Box<LinesAround>> {
        let is_empty = before.is_empty() && after.is_empty();
        let lines = before.iter().chain(after);
        let length = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(length(before) + length(after));
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        let around = LinesAround {
            text: text.into_boxed_str(),
            before: length(before),
        };
        (!is_empty).then(|| Box::new(around))
    }

    /// The lines before the match.
    pub(super) fn before(&self) -> SplitTerminator<'_, char> {
        let (before, _) = self.text.split_at(self.before);
        before.split_terminator('\n')
    }

    /// The lines after it.
    pub(super) fn after(&self) -> SplitTerminator<'_, char> {
        let (_, after) = self.text.split_at(self.before);
        after.split_terminator('\n')
    }

    /// How many bytes they have, counted as lists of strings.
    pub(super) fn weight(&self) -> usize {
        let lines = self.text.split_terminator('\n');
        lines.map(|line| line.len() + size_of::<String>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were() {
        for (before, after) in [
            (&["a", ""][..], &["", "c"][..]),
            (&[], &[""]),
            (&["é\r"], &[]),
            (&[""], &[]),
        ] {
            let own = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
            let around = LinesAround::new(&own(before), &own(after)).unwrap();
            assert_eq!(around.before().collect::<Vec<_>>(), before);
            assert_eq!(around.after().collect::<Vec<_>>(), after);
            let bytes: usize = before.iter().chain(after).map(|line| line.len()).sum();
            assert_eq!(around.weight(), bytes + 24 * (before.len() + after.len()));
        }
        assert_eq!(LinesAround::new(&[], &[]), None);
    }
}
