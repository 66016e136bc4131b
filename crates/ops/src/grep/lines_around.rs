//! The lines around a match, in one piece of memory: most matches have none, and a search may have a million.

use std::str::SplitTerminator;

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
