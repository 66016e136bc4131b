//! Finds the places of a string in a text of any size, in one pass and in windows.
//!
//! If `\n` has to fit `\r\n` too, a line end is found whole or not at all.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};

use crate::error::{Error, Result};
use crate::text::ReadAt;
use crate::text::line_index::Mark;
use crate::text::lines::{self, Blocks, LineEnd};

/// How many places of a string that is not unique are named.
pub const PLACES: usize = 20;
/// How much is searched at a time.
pub(super) const WINDOW: usize = 1024 * 1024;

/// Where a string occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How often it occurs.
    pub count: u64,
    /// The first of them, as many as were wanted.
    pub places: Vec<Occurrence>,
}

/// One place where a string occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Its bytes in the text.
    pub range: Range<u64>,
    /// The bytes of the part that is to change.
    pub changed: Range<u64>,
    /// The line ends inside that part.
    pub line_ends: Vec<LineEnd>,
}

/// Which line ends of the text a `\n` of the string fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEndMatch {
    /// Bytes are compared.
    Exact,
    /// Both kinds; the string has no `\r\n`.
    Either,
}

/// Whether places that overlap are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// The next place starts behind the one before.
    Never,
    /// The first place may overlap the second, so that a count of 1 means that there is no other way to read it.
    First,
}

/// A string to look for.
#[derive(Debug, Clone)]
pub(super) struct WantedString<'w> {
    pub(super) text: &'w str,
    /// The part of it that will change, as a byte range.
    pub(super) changed: Range<usize>,
    pub(super) line_ends: LineEndMatch,
    pub(super) overlap: Overlap,
    /// How many places are kept.
    pub(super) most: usize,
}

/// Finds all places of a string in one pass, places that overlap counted once; an empty string is refused.
///
/// A string with `\n` and without `\r` fits both line ends.
pub fn occurrences(read: &mut ReadAt<'_>, wanted: &str) -> Result<Occurrences> {
    let bytes = wanted.as_bytes();
    let multiline = memchr(b'\n', bytes).is_some() && memchr(b'\r', bytes).is_none();
    let line_ends = if multiline {
        LineEndMatch::Either
    } else {
        LineEndMatch::Exact
    };
    find(
        read,
        &WantedString {
            text: wanted,
            changed: 0..wanted.len(),
            line_ends,
            overlap: Overlap::Never,
            most: PLACES,
        },
    )
}

/// Finds all places of a string in one pass; an empty string is refused.
pub(super) fn find(read: &mut ReadAt<'_>, wanted: &WantedString<'_>) -> Result<Occurrences> {
    if wanted.text.is_empty() {
        return Err(Error::EmptySearchString);
    }
    let mut search = StringSearch::new(wanted);
    while search.fill(read)? > 0 {
        search.scan(search.settled());
        search.carry();
    }
    search.scan(search.filled);
    Ok(search.found)
}

/// A window that moves over the text.
///
/// If `\n` has to match `\r\n` too, the window holds the text without the `\r` of its line ends
/// (which keeps the search linear whatever the text), and remembers where they were.
struct StringSearch<'w> {
    wanted: &'w WantedString<'w>,
    finder: Finder<'w>,
    /// Where in the changed part of the string its line ends are.
    newlines: Vec<usize>,
    window: Vec<u8>,
    filled: usize,
    /// Positions in the window of each `\n` that lost its `\r`, in order.
    shortened: Vec<usize>,
    /// Where in the text the window starts, and where the next read goes.
    base: u64,
    next: u64,
    /// Up to here in the window all places are found.
    scanned: usize,
    found: Occurrences,
}

impl<'w> StringSearch<'w> {
    fn new(wanted: &'w WantedString<'w>) -> StringSearch<'w> {
        let bytes = wanted.text.as_bytes();
        let inside = |at: &usize| wanted.changed.contains(at);
        StringSearch {
            wanted,
            finder: Finder::new(bytes),
            newlines: memchr_iter(b'\n', bytes).filter(inside).collect(),
            window: vec![0; bytes.len().saturating_mul(2).max(WINDOW)],
            filled: 0,
            shortened: Vec::new(),
            base: 0,
            next: 0,
            scanned: 0,
            found: Occurrences::default(),
        }
    }

    fn fill(&mut self, read: &mut ReadAt<'_>) -> Result<usize> {
        let room = self.window.get_mut(self.filled..).unwrap_or(&mut []);
        let count = read(self.next, room)?;
        self.next += count as u64;
        let from = self.filled;
        self.filled += count;
        if self.wanted.line_ends == LineEndMatch::Either {
            self.shorten(from.saturating_sub(1));
        }
        Ok(count)
    }

    /// Drops the `\r` of each `\r\n` from here on; the byte before the new ones may be such a `\r`.
    fn shorten(&mut self, from: usize) {
        let Some(fresh) = self.window.get_mut(from..self.filled) else {
            return;
        };
        let pairs = memchr_iter(b'\r', fresh).filter(|at| fresh.get(at + 1) == Some(&b'\n'));
        let pairs: Vec<usize> = pairs.collect();
        let (mut to, mut copied) = (pairs.first().copied().unwrap_or(fresh.len()), 0);
        for (index, pair) in pairs.iter().enumerate() {
            let end = pairs.get(index + 1).copied().unwrap_or(fresh.len());
            self.shortened.push(from + to);
            fresh.copy_within(pair + 1..end, to);
            to += end - pair - 1;
            copied += 1;
        }
        self.filled -= copied;
    }

    /// Where in the text a position of the window is; before the `\r` for a line end that lost it.
    fn offset(&self, position: usize) -> u64 {
        let lost = self.shortened.partition_point(|at| *at < position);
        self.base + (position + lost) as u64
    }

    /// How much of the window is final: a `\r` at its end may turn out to be half of a line end.
    fn settled(&self) -> usize {
        let last = self.window.get(..self.filled).and_then(<[u8]>::last);
        let open = self.wanted.line_ends == LineEndMatch::Either && last == Some(&b'\r');
        self.filled - usize::from(open)
    }

    fn scan(&mut self, end: usize) {
        let length = self.wanted.text.len();
        while let Some(start) = self.next_place(end) {
            self.found.count += 1;
            let overlaps = self.wanted.overlap == Overlap::First && self.found.count == 1;
            self.scanned = start + if overlaps { 1 } else { length };
            if self.found.places.len() < self.wanted.most {
                let place = self.place(start);
                self.found.places.push(place);
            }
        }
    }

    fn next_place(&self, end: usize) -> Option<usize> {
        let window = self.window.get(self.scanned..end)?;
        Some(self.scanned + self.finder.find(window)?)
    }

    fn place(&self, start: usize) -> Occurrence {
        let end = start + self.wanted.text.len();
        let changed = &self.wanted.changed;
        let line_end = |at: &usize| match self.shortened.binary_search(&(start + at)) {
            Ok(_) => LineEnd::CrLf,
            Err(_) => LineEnd::Lf,
        };
        Occurrence {
            range: self.offset(start)..self.offset(end),
            changed: self.offset(start + changed.start)..self.offset(start + changed.end),
            line_ends: self.newlines.iter().map(line_end).collect(),
        }
    }

    /// Keeps only the end of the window, where a place or a line end may have begun.
    fn carry(&mut self) {
        // One byte more than a place can have begun with: a `\r` at the end may still be dropped.
        let kept = self.wanted.text.len();
        let from = self.filled.saturating_sub(kept).max(self.scanned);
        self.base = self.offset(from);
        let gone = self.shortened.partition_point(|at| *at < from);
        self.shortened.drain(..gone);
        self.shortened.iter_mut().for_each(|at| *at -= from);
        self.window.copy_within(from..self.filled, 0);
        self.filled -= from;
        self.scanned = 0;
    }
}

/// The line numbers, from 1, of offsets in order.
pub(super) fn line_numbers(
    read: &mut ReadAt<'_>,
    offsets: impl Iterator<Item = u64>,
) -> Result<Vec<u64>> {
    line_numbers_from(read, Mark::default(), offsets)
}

/// The line numbers, from 1, of offsets in order, counted from a place before all of them.
pub(super) fn line_numbers_from(
    read: &mut ReadAt<'_>,
    start: Mark,
    offsets: impl Iterator<Item = u64>,
) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut offsets = offsets.peekable();
    let mut blocks = Blocks::new(read, start.offset, lines::BLOCK);
    let mut line = start.newlines + 1;
    while offsets.peek().is_some() {
        let Some((mut offset, mut block)) = blocks.next()? else {
            // What is left is the end of the text.
            numbers.extend(offsets.map(|_| line));
            break;
        };
        let end = offset + block.len() as u64;
        while let Some(place) = offsets.next_if(|place| *place < end) {
            let inside = usize::try_from(place - offset).unwrap_or(0);
            let (before, after) = block.split_at_checked(inside).unwrap_or((block, &[]));
            line += lines::newlines(before);
            numbers.push(line);
            (offset, block) = (place, after);
        }
        line += lines::newlines(block);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;
    use proptest::prelude::*;

    #[test]
    fn places_across_windows_are_found() {
        for gap in [WINDOW - 3, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1] {
            let text = format!(
                "{}a\r\nb{}a\r\nb",
                "x".repeat(gap),
                "\r\n".repeat(WINDOW / 2)
            );
            let found = occurrences(&mut reader(text.as_bytes()), "a\nb").unwrap();
            let at = |start: usize| Occurrence {
                range: start as u64..start as u64 + 4,
                changed: start as u64..start as u64 + 4,
                line_ends: vec![LineEnd::CrLf],
            };
            assert_eq!(found.places, [at(gap), at(text.len() - 4)], "{gap}");
        }
    }

    /// Reads at most a few bytes at a time, as a text in small windows would.
    fn trickle(text: &[u8], step: usize) -> impl FnMut(u64, &mut [u8]) -> Result<usize> + '_ {
        let mut read = reader(text);
        move |offset, buffer| {
            let room = buffer.len().min(step);
            read(offset, &mut buffer[..room])
        }
    }

    proptest! {
        #[test]
        fn counting_agrees_with_the_standard_library(
            text in "[ab\\n\\r]{0,40}", old in "[ab\\n]{1,4}", step in 1usize..7,
        ) {
            let found = occurrences(&mut trickle(text.as_bytes(), step), &old).unwrap();
            let plain = if old.contains('\n') { text.replace("\r\n", "\n") } else { text.clone() };
            prop_assert_eq!(found.count, plain.matches(&old).count() as u64);
            for place in &found.places {
                let piece = &text[place.range.start as usize..place.range.end as usize];
                let same = piece == old || piece.replace("\r\n", "\n") == old;
                prop_assert!(same, "{:?}", piece);
            }
            let lines = line_numbers(
                &mut trickle(text.as_bytes(), step),
                found.places.iter().map(|place| place.range.start),
            ).unwrap();
            for (place, line) in found.places.iter().zip(lines) {
                let before = &text[..place.range.start as usize];
                prop_assert_eq!(line, before.matches('\n').count() as u64 + 1);
            }
        }
    }
}
