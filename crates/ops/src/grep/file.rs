//! The search through one file, whole or a piece of it, with one thread's buffer.

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use memchr::memchr;
use sandbox::OpenFile;

use super::lines::{Searched, last_line, newlines, search, shown_line};
use super::window::{Window, read_at, without_mark};
use super::{LineMatch, Output};
use crate::ordered::Halt;
use crate::pattern::LineMatcher;

/// Files up to this size are read whole, by one call.
pub(super) const WHOLE_MAX: u64 = 1024 * 1024;
/// How much of a larger file one unit searches.
pub(super) const PIECE: u64 = 512 * 1024;
/// The longest line that is matched as a whole; what is behind it is matched part by part.
const LINE_MAX: usize = 1024 * 1024;
/// How much a part of an over-long line repeats of the one before it.
const OVERLAP: usize = 4096;
/// How much is read at a time to find a line's end.
const TAIL: usize = 64 * 1024;
/// A file with a NUL in this many first bytes is binary.
const BINARY_PREFIX: usize = 8192;
/// What a match takes besides its text.
const MATCH_OVERHEAD: usize = 96;

/// What a search collects of each file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub output: Output,
    pub context_lines: usize,
}

/// What one thread needs again and again.
pub(super) struct Scratch {
    pub matcher: LineMatcher,
    pub buffer: Vec<u8>,
}

/// How much more a unit may collect.
#[derive(Debug)]
pub(super) struct Room {
    pub matches: usize,
    pub text: usize,
}

/// What was found in a file or a piece of it. Line numbers count from the piece's first line.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub count: u64,
    pub matches: Vec<LineMatch>,
}

/// A file too large for one unit, from a position on.
#[derive(Debug, Clone)]
pub(super) struct LargeFile {
    pub opened: Arc<OpenFile>,
    pub invalid_utf8: bool,
    pub start: u64,
    pub end: u64,
}

/// What a piece of a large file gave.
pub(super) struct Piece {
    pub hits: Hits,
    /// How many lines begin in it.
    pub lines: u64,
    pub searched: Searched,
}

/// Tells whether a file's first bytes hold a NUL.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    memchr(0, bytes.get(..BINARY_PREFIX).unwrap_or(bytes)).is_some()
}

/// Tells whether a large file is binary, or cannot be read.
pub(super) fn is_binary_file(file: &File) -> bool {
    let mut first = [0; BINARY_PREFIX];
    let read = read_at(file, &mut first, 0);
    read.is_ok_and(|read| first.get(..read).is_some_and(is_binary))
}

/// Searches a whole file; `None` when it is binary or cannot be read.
pub(super) fn search_whole(
    opened: &OpenFile,
    wanted: Wanted,
    scratch: &mut Scratch,
    room: &mut Room,
    halt: &Halt,
) -> Option<(Hits, Searched)> {
    let size = usize::try_from(opened.metadata.size).ok()?;
    let read = read_at(&opened.file, space(&mut scratch.buffer, size), 0).ok()?;
    let all = scratch.buffer.get(..read)?;
    if is_binary(all) {
        return None;
    }
    let bytes = without_mark(all);
    let window = Window {
        bytes,
        offset: (all.len() - bytes.len()) as u64,
        file: &opened.file,
        size: read as u64,
        at_start: true,
    };
    let mut collector = Collector::new(&window, wanted, room, 0);
    let searched =
        search(&scratch.matcher, bytes, 0, halt, &mut |line| collector.matched(&line));
    Some((collector.hits, searched))
}

/// The first bytes of a buffer, which only ever grows.
fn space(buffer: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    buffer.get_mut(..size).unwrap_or_default()
}

/// Searches the lines that begin in a piece. Files that shrink meanwhile end where they end.
pub(super) fn search_piece(
    large: &LargeFile,
    wanted: Wanted,
    scratch: &mut Scratch,
    room: &mut Room,
    halt: &Halt,
) -> Piece {
    let mut piece = Piece { hits: Hits::default(), lines: 0, searched: Searched::All };
    let file = &large.opened.file;
    // The byte before the piece tells whether a line begins with it.
    let offset = large.start.saturating_sub(1);
    let Some(loaded) = load(file, &mut scratch.buffer, offset..large.end) else { return piece };
    let Some(bytes) = scratch.buffer.get(..loaded.end) else { return piece };
    let Some(first) = first_line(bytes, large.start, loaded.own) else { return piece };
    let window = Window {
        bytes,
        offset,
        file,
        size: if loaded.at_end { offset + bytes.len() as u64 } else { large.opened.metadata.size },
        at_start: large.start == 0,
    };
    let mut collector = Collector::new(&window, wanted, room, first);
    let matcher = &scratch.matcher;
    piece.searched = search(matcher, bytes, first, halt, &mut |line| collector.matched(&line));
    let last = first + last_line(bytes.get(first..).unwrap_or_default());
    if loaded.cut && piece.searched == Searched::All && collector.last_matched != last {
        let from = offset + bytes.len() as u64;
        piece.searched = match search_rest_of_line(file, matcher, from, halt) {
            Some(true) if collector.matched(&(last..bytes.len())).is_break() => Searched::Enough,
            Some(_) => Searched::All,
            None => Searched::Halted,
        };
    }
    piece.hits = collector.hits;
    piece.lines = newlines(bytes.get(first..last).unwrap_or_default()) + 1;
    piece
}

/// What is in the buffer.
struct Loaded {
    /// Where the bytes of the piece itself end.
    own: usize,
    /// Where the last line of the piece ends, or where it was cut.
    end: usize,
    /// The last line was too long.
    cut: bool,
    /// The file ends here.
    at_end: bool,
}

/// Reads a range of a file, and on to the end of its last line.
fn load(file: &File, buffer: &mut Vec<u8>, range: Range<u64>) -> Option<Loaded> {
    let size = usize::try_from(range.end - range.start).ok()?;
    let own = read_at(file, space(buffer, size), range.start).ok()?;
    let mut loaded = Loaded { own, end: own, cut: false, at_end: own < size };
    while !loaded.at_end && buffer.get(loaded.end.checked_sub(1)?) != Some(&b'\n') {
        if loaded.end - own >= LINE_MAX {
            loaded.cut = true;
            break;
        }
        let next = space(buffer, loaded.end + TAIL).get_mut(loaded.end..)?;
        let read = read_at(file, next, range.start + loaded.end as u64).ok()?;
        let line_end = memchr(b'\n', next.get(..read)?);
        loaded.at_end = read < TAIL && line_end.is_none();
        loaded.end += line_end.map_or(read, |newline| newline + 1);
    }
    Some(loaded)
}

/// Where the first line begins that belongs to a piece; `None` when none does.
fn first_line(bytes: &[u8], start: u64, own: usize) -> Option<usize> {
    if start == 0 {
        return Some(bytes.len() - without_mark(bytes).len()).filter(|_| !bytes.is_empty());
    }
    let newline = memchr(b'\n', bytes.get(..own)?)?;
    // A line that begins at the piece's end belongs to the next one.
    Some(newline + 1).filter(|first| *first < own)
}

/// Looks for a match in what was cut off an over-long line; `None` when it has to stop.
fn search_rest_of_line(
    file: &File,
    matcher: &LineMatcher,
    mut from: u64,
    halt: &Halt,
) -> Option<bool> {
    let mut part = vec![0; LINE_MAX];
    loop {
        if halt.must_stop() {
            return None;
        }
        from = from.saturating_sub(OVERLAP as u64);
        let read = read_at(file, &mut part, from).unwrap_or(0);
        let line_end = part.get(OVERLAP..read).and_then(|new| memchr(b'\n', new));
        let end = line_end.map_or(read, |newline| OVERLAP + newline);
        if part.get(..end).is_some_and(|part| matcher.is_match_within(part)) {
            return Some(true);
        }
        if line_end.is_some() || read < part.len() {
            return Some(false);
        }
        from += read as u64;
    }
}

/// Takes matching lines as they are found.
struct Collector<'a> {
    window: &'a Window<'a>,
    wanted: Wanted,
    room: &'a mut Room,
    hits: Hits,
    /// Newlines before `counted_to`, from the piece's first line.
    counted: u64,
    counted_to: usize,
    last_matched: usize,
}

impl<'a> Collector<'a> {
    fn new(window: &'a Window<'a>, wanted: Wanted, room: &'a mut Room, first: usize) -> Self {
        let hits = Hits::default();
        Collector { window, wanted, room, hits, counted: 0, counted_to: first, last_matched: usize::MAX }
    }

    fn matched(&mut self, line: &Range<usize>) -> ControlFlow<()> {
        self.hits.count += 1;
        self.last_matched = line.start;
        match self.wanted.output {
            Output::Matches => self.keep(line),
            Output::Files => ControlFlow::Break(()),
            Output::Count => ControlFlow::Continue(()),
        }
    }

    fn keep(&mut self, line: &Range<usize>) -> ControlFlow<()> {
        let between = self.window.bytes.get(self.counted_to..line.start).unwrap_or_default();
        self.counted += newlines(between);
        self.counted_to = line.start;
        let bytes = self.window.bytes.get(line.clone()).unwrap_or_default();
        let (text, line_truncated) = shown_line(bytes);
        let found = LineMatch {
            line_number: self.counted + 1,
            line: text,
            line_truncated,
            before: self.window.before(line, self.wanted.context_lines),
            after: self.window.after(line, self.wanted.context_lines),
        };
        self.room.matches = self.room.matches.saturating_sub(1);
        self.room.text = self.room.text.saturating_sub(weight(&found));
        self.hits.matches.push(found);
        if self.room.matches == 0 || self.room.text == 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// What a match takes in memory, about.
pub(super) fn weight(found: &LineMatch) -> usize {
    let context = found.before.iter().chain(&found.after);
    let context: usize = context.map(|line| line.len() + size_of::<String>()).sum();
    found.line.len() + context + MATCH_OVERHEAD
}
