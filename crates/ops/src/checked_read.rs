//! The check that a file is text, made while it is read for something else: a large file is not read twice.

use sandbox::OpenFile;

use crate::edit::Edited;
use crate::error::Result;
use crate::text::encoding::Utf8Check;
use crate::text::line_index::Mark;
use crate::text::lines::newlines;

/// Checks on the way of the first pass that a file is text.
pub(crate) struct CheckedRead<'c, 'a> {
    edited: &'c Edited<'a>,
    open: &'c OpenFile,
    check: Utf8Check,
    next: u64,
    newlines: u64,
    /// How many lines end before each piece that was read.
    pub(crate) marks: Vec<Mark>,
}

impl<'c, 'a> CheckedRead<'c, 'a> {
    pub(crate) fn new(edited: &'c Edited<'a>, open: &'c OpenFile) -> CheckedRead<'c, 'a> {
        CheckedRead {
            edited,
            open,
            check: Utf8Check::default(),
            next: 0,
            newlines: 0,
            marks: Vec::new(),
        }
    }

    /// Examines what was read, and passes on how much it is.
    pub(crate) fn pass(&mut self, offset: u64, count: usize, buffer: &[u8]) -> Result<usize> {
        if offset == self.next {
            let read = buffer.get(..count).unwrap_or_default();
            self.check.feed(read);
            self.marks.push(Mark {
                offset,
                newlines: self.newlines,
            });
            self.newlines += newlines(read);
            self.next += count as u64;
            if self.check.is_broken() {
                return Err(self.edited.not_text(self.open));
            }
        }
        Ok(count)
    }

    pub(crate) fn finish(&self) -> Result<()> {
        if self.check.is_valid() {
            Ok(())
        } else {
            Err(self.edited.not_text(self.open))
        }
    }
}
