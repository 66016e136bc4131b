//! Lines of bytes: counting, finding, slicing.
//!
//! A line ends with `\n`; a last line without one counts too, and an empty text has no lines. Lines are
//! counted from 0 here and ranges are half open; what clients call line 1 is line 0.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use crate::error::Result;
use crate::text::ReadAt;

/// How much is read at a time.
pub const BLOCK: usize = 256 * 1024;

/// How lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

impl LineEnd {
    /// The bytes themselves.
    #[must_use]
    pub fn as_bytes(self) -> &'static [u8] {
        match self {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
        }
    }

    /// What the text ends with, if it ends a line.
    #[must_use]
    pub fn closing(text: &[u8]) -> Option<LineEnd> {
        match text {
            [.., b'\r', b'\n'] => Some(LineEnd::CrLf),
            [.., b'\n'] => Some(LineEnd::Lf),
            _ => None,
        }
    }

    /// What the first line of the text ends with.
    #[must_use]
    pub fn first(text: &[u8]) -> Option<LineEnd> {
        let newline = memchr(b'\n', text)?;
        LineEnd::closing(text.get(..=newline)?)
    }
}

/// Counts the lines of a text.
#[must_use]
pub fn count(text: &[u8]) -> u64 {
    let mut counter = LineCounter::default();
    counter.feed(text);
    counter.lines()
}

/// Counts the newlines of a block.
pub(crate) fn newlines(block: &[u8]) -> u64 {
    memchr_iter(b'\n', block).count() as u64
}

/// Counts the lines of a text that comes block by block.
#[derive(Debug, Default, Clone)]
pub struct LineCounter {
    newlines: u64,
    open: bool,
}

impl LineCounter {
    /// Counts the next block.
    pub fn feed(&mut self, block: &[u8]) {
        if let Some(last) = block.last() {
            self.newlines += newlines(block);
            self.open = *last != b'\n';
        }
    }

    /// The lines so far, a last one without a newline included.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.newlines + u64::from(self.open)
    }

    /// Tells whether the text so far ends inside a line.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }
}

/// Finds where a line starts in a text that comes block by block.
#[derive(Debug, Clone)]
pub struct LineSeeker {
    missing: u64,
}

impl LineSeeker {
    /// Looks for the start of this line, counted from 0.
    #[must_use]
    pub fn new(line: u64) -> LineSeeker {
        LineSeeker { missing: line }
    }

    /// Looks at the next block and returns where in it the line starts, which can be just after its end.
    pub fn feed(&mut self, block: &[u8]) -> Option<usize> {
        if self.missing == 0 {
            return Some(0);
        }
        let here = newlines(block);
        if here < self.missing {
            self.missing -= here;
            return None;
        }
        let nth = usize::try_from(self.missing - 1).ok()?;
        memchr_iter(b'\n', block)
            .nth(nth)
            .map(|newline| newline + 1)
    }
}

/// Where a line was looked for and what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// The offset at which the line starts; the text's size for the line after a last newline.
    At(u64),
    /// The text has too few lines.
    Beyond {
        /// Its lines.
        lines: u64,
        /// Its bytes.
        size: u64,
    },
}

/// Finds the offset at which a line starts, counted from 0, reading forward in blocks.
pub fn find_line_start(read: &mut ReadAt<'_>, line: u64) -> Result<Sought> {
    if line == 0 {
        return Ok(Sought::At(0));
    }
    let (mut seeker, mut counter) = (LineSeeker::new(line), LineCounter::default());
    let mut blocks = Blocks::new(read, 0, BLOCK);
    while let Some((offset, block)) = blocks.next()? {
        if let Some(inside) = seeker.feed(block) {
            return Ok(Sought::At(offset + inside as u64));
        }
        counter.feed(block);
    }
    Ok(Sought::Beyond {
        lines: counter.lines(),
        size: blocks.offset,
    })
}

/// Reads a text forward, block by block, into one buffer.
pub(crate) struct Blocks<'read, 'text> {
    read: &'read mut ReadAt<'text>,
    buffer: Vec<u8>,
    offset: u64,
}

impl<'read, 'text> Blocks<'read, 'text> {
    pub(crate) fn new(read: &'read mut ReadAt<'text>, offset: u64, size: usize) -> Self {
        Blocks {
            read,
            buffer: vec![0; size],
            offset,
        }
    }

    /// The next block and its offset; `None` after the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        let at = self.offset;
        let count = (self.read)(at, &mut self.buffer)?;
        self.offset += count as u64;
        Ok(self
            .buffer
            .get(..count)
            .filter(|block| !block.is_empty())
            .map(|block| (at, block)))
    }
}

/// Where the last lines of a text start, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLines {
    /// The offset of the first of them.
    pub offset: u64,
    /// As many as asked for, or all the text has.
    pub lines: u64,
}

/// Finds the start of the last lines of a text of `size` bytes, reading backwards from its end.
pub fn find_last_lines(read: &mut ReadAt<'_>, size: u64, lines: u64) -> Result<LastLines> {
    let mut missing = lines;
    let mut found = u64::from(size > 0);
    let mut buffer = vec![0; BLOCK];
    let mut end = size;
    while missing > 0 && end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        let block = read_exactly(read, start..end, &mut buffer)?;
        // The newline at the very end closes the last line, it does not open another.
        let inner = if end == size {
            block.strip_suffix(b"\n").unwrap_or(block)
        } else {
            block
        };
        let here = newlines(inner);
        if here >= missing {
            let offset = start + last_lines_of(inner, missing) as u64;
            return Ok(LastLines { offset, lines });
        }
        missing -= here;
        found += here;
        end = start;
    }
    let (offset, lines) = if missing == 0 { (size, 0) } else { (0, found) };
    Ok(LastLines { offset, lines })
}

/// Where the last lines of a block start; it has at least that many newlines.
fn last_lines_of(block: &[u8], lines: u64) -> usize {
    let nth = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    let newline = memrchr_iter(b'\n', block).nth(nth);
    newline.map_or(0, |newline| newline + 1)
}

/// Reads a range. If the text shrank meanwhile, the missing part is left out.
fn read_exactly<'b>(
    read: &mut ReadAt<'_>,
    range: Range<u64>,
    buffer: &'b mut [u8],
) -> Result<&'b [u8]> {
    let wanted = usize::try_from(range.end - range.start)
        .unwrap_or(usize::MAX)
        .min(buffer.len());
    let target = buffer.get_mut(..wanted).unwrap_or(&mut []);
    let count = read(range.start, target)?;
    Ok(target.get(..count).unwrap_or(target))
}

/// How the line before an offset ends, or else the first line after it.
pub fn line_end_near(read: &mut ReadAt<'_>, offset: u64) -> Result<Option<LineEnd>> {
    match line_end_before(read, offset)? {
        Some(found) => Ok(Some(found)),
        None => line_end_after(read, offset),
    }
}

/// Blocks for a look around are small: the next line end is rarely far.
const GLANCE: usize = 4 * 1024;

fn line_end_before(read: &mut ReadAt<'_>, offset: u64) -> Result<Option<LineEnd>> {
    let mut buffer = vec![0; GLANCE];
    let mut end = offset;
    while end > 0 {
        let start = end.saturating_sub(GLANCE as u64);
        let block = read_exactly(read, start..end, &mut buffer)?;
        match memrchr(b'\n', block) {
            // A `\r` may stand just before this block.
            Some(0) if start > 0 => end = start + 1,
            Some(newline) => return Ok(block.get(..=newline).and_then(LineEnd::closing)),
            None => end = start,
        }
    }
    Ok(None)
}

fn line_end_after(read: &mut ReadAt<'_>, offset: u64) -> Result<Option<LineEnd>> {
    let mut blocks = Blocks::new(read, offset, GLANCE);
    let mut carriage = false;
    while let Some((_, block)) = blocks.next()? {
        match memchr(b'\n', block) {
            Some(0) => return Ok(Some(if carriage { LineEnd::CrLf } else { LineEnd::Lf })),
            Some(newline) => return Ok(block.get(..=newline).and_then(LineEnd::closing)),
            None => carriage = block.last() == Some(&b'\r'),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;
    use proptest::prelude::*;

    #[test]
    fn a_last_line_without_newline_counts() {
        for (text, lines) in [
            ("", 0),
            ("a", 1),
            ("a\n", 1),
            ("\n", 1),
            ("a\nb", 2),
            ("\n\n", 2),
        ] {
            assert_eq!(count(text.as_bytes()), lines, "{text:?}");
        }
    }

    #[test]
    fn line_starts_are_found_across_blocks() {
        let text = "x\n".repeat(BLOCK);
        let mut read = reader(text.as_bytes());
        let lines = BLOCK as u64;
        for line in [0, 1, lines / 2, lines / 2 + 1, lines - 1, lines] {
            assert_eq!(
                find_line_start(&mut read, line).unwrap(),
                Sought::At(line * 2)
            );
        }
        let beyond = Sought::Beyond {
            lines,
            size: lines * 2,
        };
        assert_eq!(find_line_start(&mut read, lines + 1).unwrap(), beyond);
        assert_eq!(find_line_start(&mut read, u64::MAX).unwrap(), beyond);
    }

    #[test]
    fn last_lines_are_found_across_blocks() {
        let text = "x\n".repeat(BLOCK);
        let mut read = reader(text.as_bytes());
        let size = text.len() as u64;
        for lines in [0, 1, 50, size / 4, size / 4 + 1, size / 2 - 1, size / 2] {
            let found = find_last_lines(&mut read, size, lines).unwrap();
            assert_eq!(
                found,
                LastLines {
                    offset: size - 2 * lines,
                    lines
                }
            );
        }
        let all = find_last_lines(&mut read, size, u64::MAX).unwrap();
        assert_eq!(
            all,
            LastLines {
                offset: 0,
                lines: size / 2
            }
        );
    }

    #[test]
    fn the_line_end_nearby_is_found_over_block_edges() {
        for length in [
            0,
            1,
            GLANCE - 2,
            GLANCE - 1,
            GLANCE,
            GLANCE + 1,
            2 * GLANCE - 1,
        ] {
            let filler = "x".repeat(length);
            for (end, kind) in [("\n", LineEnd::Lf), ("\r\n", LineEnd::CrLf)] {
                for pad in ["", "y", "yy"] {
                    let before = format!("{pad}{end}{filler}");
                    let found = line_end_near(&mut reader(before.as_bytes()), before.len() as u64);
                    assert_eq!(
                        found.unwrap(),
                        Some(kind),
                        "before, {length} {end:?} {pad:?}"
                    );
                    let after = format!("{pad}{filler}{end}");
                    let found = line_end_near(&mut reader(after.as_bytes()), 0);
                    assert_eq!(found.unwrap(), Some(kind), "after, {length} {end:?}");
                }
            }
            assert_eq!(
                line_end_near(&mut reader(filler.as_bytes()), length as u64).unwrap(),
                None
            );
        }
    }

    proptest! {
        #[test]
        fn all_ways_to_find_lines_agree(text in "[a\\n\\r]{0,30}", a in 0u64..12) {
            let bytes = text.as_bytes();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            prop_assert_eq!(count(bytes), lines.len() as u64);
            let clamp = |n: u64| (n as usize).min(lines.len());
            match find_line_start(&mut reader(bytes), a).unwrap() {
                Sought::At(offset) => {
                    prop_assert_eq!(offset as usize, lines[..clamp(a)].concat().len());
                }
                Sought::Beyond { lines: all, size } => {
                    prop_assert_eq!(all, lines.len() as u64);
                    prop_assert_eq!(size, bytes.len() as u64);
                    prop_assert!(a >= all);
                }
            }

            let last = find_last_lines(&mut reader(bytes), bytes.len() as u64, a).unwrap();
            let taken = clamp(a);
            prop_assert_eq!(last.lines, taken as u64);
            let tail = lines[lines.len() - taken..].concat();
            prop_assert_eq!(&bytes[last.offset as usize..], tail.as_bytes());
        }

        #[test]
        fn counting_in_blocks_agrees(text in "[a\\n]{0,40}", block in 1usize..9) {
            let mut counter = LineCounter::default();
            text.as_bytes().chunks(block).for_each(|piece| counter.feed(piece));
            prop_assert_eq!(counter.lines(), count(text.as_bytes()));
        }
    }
}
