//! A part of a file in memory, with access to the lines around it.

use std::ops::Range;

use sandbox::OpenFile;

use super::line_match::LinesAround;
use super::lines::{lines_after, lines_before, shown_lines};
use crate::error::Result;
use crate::read_at;
use crate::text::encoding::BOM;

/// How much of a file is read at first for context that is not in memory, and at most.
const CONTEXT_FIRST: u64 = 64 * 1024;
const CONTEXT_MAX: u64 = 1024 * 1024;

/// Bytes of a file in memory, from `offset` on.
pub(super) struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Where in the file they begin.
    pub offset: u64,
    /// The file.
    pub file: &'a OpenFile,
    /// Where the file ends.
    pub size: u64,
    /// Nothing relevant precedes the bytes.
    pub at_start: bool,
    /// The last line continues beyond the bytes.
    pub cut: bool,
}

impl Window<'_> {
    /// Up to `count` lines on each side of a line, as shown.
    pub(super) fn around(&self, line: &Range<usize>, count: usize) -> Option<Box<LinesAround>> {
        LinesAround::new(&self.before(line, count), &self.after(line, count))
    }

    /// Up to `count` lines before a line, as shown.
    fn before(&self, line: &Range<usize>, count: usize) -> Vec<String> {
        if count == 0 {
            return Vec::new();
        }
        let seen = self.bytes.get(..line.start).unwrap_or_default();
        match lines_before(seen, count) {
            Some(start) => shown_lines(seen.get(start..).unwrap_or_default()),
            None if self.at_start => shown_lines(seen),
            None => self.read_before(self.offset + line.start as u64, count),
        }
    }

    /// Up to `count` lines after a line, as shown.
    fn after(&self, line: &Range<usize>, count: usize) -> Vec<String> {
        if count == 0 {
            return Vec::new();
        }
        if self.cut && line.end == self.bytes.len() {
            // The end of the line is unknown, so nothing after it can be shown.
            return Vec::new();
        }
        let seen = self.bytes.get(line.end..).unwrap_or_default();
        match lines_after(seen, count) {
            Some(end) => shown_lines(seen.get(..end).unwrap_or_default()),
            None if self.offset + self.bytes.len() as u64 >= self.size => shown_lines(seen),
            None => self.read_after(self.offset + line.end as u64, count),
        }
    }

    fn read_before(&self, position: u64, count: usize) -> Vec<String> {
        let mut span = CONTEXT_FIRST;
        loop {
            let start = position.saturating_sub(span);
            let bytes = read_range(self.file, start, position);
            match lines_before(&bytes, count) {
                Some(first) => return shown_lines(bytes.get(first..).unwrap_or_default()),
                None if start == 0 || span >= CONTEXT_MAX => {
                    return shown_lines(without_mark(&bytes));
                }
                None => span *= 4,
            }
        }
    }

    fn read_after(&self, position: u64, count: usize) -> Vec<String> {
        let mut span = CONTEXT_FIRST;
        loop {
            let end = position.saturating_add(span).min(self.size);
            let bytes = read_range(self.file, position, end);
            match lines_after(&bytes, count) {
                Some(last) => return shown_lines(bytes.get(..last).unwrap_or_default()),
                None if end == self.size || span >= CONTEXT_MAX => return shown_lines(&bytes),
                None => span *= 4,
            }
        }
    }
}

/// The bytes of a file's beginning without the mark that some editors put there.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

fn read_range(file: &OpenFile, start: u64, end: u64) -> Vec<u8> {
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let mut bytes = vec![0; length];
    let read = read_at(file, &mut bytes, start).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

/// Fills a buffer from a position, by one call if the file has that much; less at its end.
pub(super) fn read_at(file: &OpenFile, buffer: &mut [u8], position: u64) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read_at::read_at(file, rest, position + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
