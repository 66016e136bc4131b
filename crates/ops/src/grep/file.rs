//! The search through one file, whole or a piece of it, with one thread's buffer.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use memchr::memchr;
use sandbox::OpenFile;

use super::lines::{
    FoundLine, LineSink, LongLine, PartMatch, PartSearched, Searched, end_long_line, last_line,
    search, shown_match,
};
use super::window::{Window, read_at, without_mark};
use super::{LineMatch, SearchFrom, SearchOutput};
use crate::error::Result;
use crate::ordered::Halt;
use crate::pattern::{LineMatcher, PartEnd};
use crate::search_memory::{LargeLesson, SketchTable};
use crate::text::encoding::{HEAD, characters, is_binary};
use crate::text::lines::newlines;
use crate::unread::UnreadReason;

/// How much of a larger file one unit searches.
pub(super) const PIECE: u64 = 512 * 1024;
/// The longest line that is matched as a whole; longer lines are matched part by part.
const LINE_MAX: usize = 1024 * 1024;
/// How much is read at a time to find a line's end.
const TAIL: usize = 64 * 1024;
/// The memory that a match takes besides its text.
const MATCH_OVERHEAD: usize = 96;

/// What a search collects for each file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collected {
    pub output: SearchOutput,
    pub context_lines: usize,
    pub from: SearchFrom,
}

/// Buffers that one thread reuses.
pub(super) struct Scratch {
    pub matcher: LineMatcher,
    pub buffer: Vec<u8>,
    pub table: SketchTable,
}

/// How much more a unit may collect.
#[derive(Debug)]
pub(super) struct HitRoom {
    pub matches: usize,
    pub text: usize,
}

/// What was found in a file or a piece of it. Line numbers count from the piece's first line; in a search from the end the
/// last match comes first.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub count: u64,
    pub matches: Vec<LineMatch>,
    /// How many lines were matched part by part.
    pub lines_in_parts: u64,
}

/// The result for one file.
pub(super) struct FileSearched {
    /// `None` if the file is binary or cannot be read at all.
    pub hits: Option<Hits>,
    pub ended: Searched,
    /// Why it could not be read completely.
    pub unread: Option<UnreadReason>,
    /// How much of it is in the buffer.
    pub read: usize,
}

impl FileSearched {
    pub(super) fn binary() -> FileSearched {
        FileSearched {
            hits: None,
            ended: Searched::All,
            unread: None,
            read: 0,
        }
    }

    pub(super) fn unreadable(reason: UnreadReason) -> FileSearched {
        FileSearched {
            unread: Some(reason),
            ..FileSearched::binary()
        }
    }
}

/// A file too large for one unit, from a position on.
#[derive(Debug, Clone)]
pub(super) struct LargeFile {
    pub opened: Arc<OpenFile>,
    pub invalid_utf8: bool,
    pub start: u64,
    pub end: u64,
    /// Its pieces may be remembered.
    pub lesson: Option<LargeLesson>,
}

impl LargeFile {
    /// The number of a piece that is cut off from the start, and how many there are.
    pub(super) fn numbered(&self) -> Option<(usize, usize)> {
        let at = usize::try_from(self.start / PIECE).ok()?;
        let of = usize::try_from(self.opened.metadata.size.div_ceil(PIECE)).ok()?;
        Some((at, of))
    }
}

/// The result for a piece of a large file.
pub(super) struct PieceMatches {
    pub hits: Hits,
    /// How many lines begin in it.
    pub lines: u64,
    pub searched: Searched,
    /// Why it could not be read.
    pub unreadable: Option<UnreadReason>,
    /// Where in the buffer its lines are, if all of them are whole.
    pub whole_lines: Option<Range<usize>>,
}

impl Default for PieceMatches {
    fn default() -> PieceMatches {
        PieceMatches {
            hits: Hits::default(),
            lines: 0,
            searched: Searched::All,
            unreadable: None,
            whole_lines: None,
        }
    }
}

/// Tells whether a large file is binary, or cannot be read.
pub(super) fn is_binary_file(file: &OpenFile) -> bool {
    let mut first = [0; HEAD];
    let read = read_at(file, &mut first, 0);
    read.is_ok_and(|read| first.get(..read).is_some_and(is_binary))
}

/// Searches a whole file.
pub(super) fn search_whole(
    opened: &OpenFile,
    wanted: Collected,
    scratch: &mut Scratch,
    room: &mut HitRoom,
    halt: &Halt,
) -> FileSearched {
    let size = usize::try_from(opened.metadata.size).unwrap_or(usize::MAX);
    let read = match read_at(opened, space(&mut scratch.buffer, size), 0) {
        Ok(read) => read,
        Err(error) => return FileSearched::unreadable(UnreadReason::of(&error)),
    };
    let all = scratch.buffer.get(..read).unwrap_or_default();
    if is_binary(all) {
        return FileSearched {
            read,
            ..FileSearched::binary()
        };
    }
    let bytes = without_mark(all);
    let window = Window {
        bytes,
        offset: (all.len() - bytes.len()) as u64,
        file: opened,
        size: read as u64,
        at_start: true,
        cut: false,
    };
    let mut collector = Collector::new(&window, &scratch.matcher, wanted, room);
    let searched = search(&scratch.matcher, bytes, 0, halt, &mut collector);
    let ended = collector.finish(searched);
    FileSearched {
        hits: Some(collector.hits),
        ended,
        unread: None,
        read,
    }
}

/// The first bytes of a buffer, which only ever grows.
pub(super) fn space(buffer: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    buffer.get_mut(..size).unwrap_or_default()
}

/// Searches the lines that begin in a piece. A file that shrinks meanwhile simply ends earlier.
pub(super) fn search_piece(
    large: &LargeFile,
    wanted: Collected,
    scratch: &mut Scratch,
    room: &mut HitRoom,
    halt: &Halt,
) -> PieceMatches {
    let file = &*large.opened;
    let loaded = match load(large, &mut scratch.buffer) {
        Ok(loaded) => loaded,
        Err(error) => {
            return PieceMatches {
                unreadable: Some(UnreadReason::of(&error)),
                ..PieceMatches::default()
            };
        }
    };
    let bytes = loaded
        .as_ref()
        .and_then(|loaded| scratch.buffer.get(loaded.lines.clone()));
    let (Some(loaded), Some(bytes)) = (loaded, bytes) else {
        return PieceMatches {
            whole_lines: Some(0..0),
            ..PieceMatches::default()
        };
    };
    let window = Window {
        bytes,
        offset: loaded.offset,
        file,
        size: loaded.size,
        at_start: large.start == 0,
        cut: loaded.cut,
    };
    let matcher = &scratch.matcher;
    let mut collector = Collector::new(&window, matcher, wanted, room);
    let last = last_line(bytes);
    // A cut line has no end here, so it must not be matched as if it had one.
    let whole = if loaded.cut { last } else { bytes.len() };
    let whole = bytes.get(..whole).unwrap_or_default();
    let mut searched = search(matcher, whole, 0, halt, &mut collector);
    if loaded.cut && searched == Searched::All {
        let found = search_long_line(file, matcher, loaded.offset + last as u64, halt);
        searched = end_long_line(last..bytes.len(), found, &mut collector);
    }
    let searched = collector.finish(searched);
    collector.count_to(last);
    PieceMatches {
        lines: collector.counted + 1,
        hits: collector.hits,
        searched,
        unreadable: None,
        whole_lines: (!loaded.cut).then_some(loaded.lines),
    }
}

/// What is in the buffer.
struct LoadedLines {
    /// The lines that begin in the piece.
    lines: Range<usize>,
    /// Where in the file they begin.
    offset: u64,
    /// The last line was too long and is cut.
    cut: bool,
    /// Where the file ends, as far as is known.
    size: u64,
}

/// Reads the lines that begin in a piece; `None` when there are none.
fn load(large: &LargeFile, buffer: &mut Vec<u8>) -> Result<Option<LoadedLines>> {
    // The byte before the piece tells whether a line begins with it.
    let start = large.start.saturating_sub(1);
    let wanted = usize::try_from(large.end.saturating_sub(start)).unwrap_or(0);
    let own = read_at(&large.opened, space(buffer, wanted), start)?;
    let first = first_line(buffer.get(..own).unwrap_or_default(), large.start);
    let Some(first) = first else {
        return Ok(None);
    };
    let mut loaded = LoadedLines {
        lines: first..own,
        offset: start + first as u64,
        cut: false,
        size: large.opened.metadata.size,
    };
    if own < wanted {
        loaded.size = start + own as u64;
    } else {
        load_last_line(large, buffer, start, &mut loaded)?;
    }
    Ok(Some(loaded))
}

/// Reads on to the end of the last line.
fn load_last_line(
    large: &LargeFile,
    buffer: &mut Vec<u8>,
    start: u64,
    loaded: &mut LoadedLines,
) -> Result<()> {
    let end = &mut loaded.lines.end;
    let most = *end + LINE_MAX;
    while buffer.get(end.saturating_sub(1)) != Some(&b'\n') {
        if *end >= most {
            loaded.cut = true;
            break;
        }
        let next = space(buffer, *end + TAIL)
            .get_mut(*end..)
            .unwrap_or_default();
        let read = read_at(&large.opened, next, start + *end as u64)?;
        let line_end = memchr(b'\n', next.get(..read).unwrap_or_default());
        *end += line_end.map_or(read, |newline| newline + 1);
        if read < TAIL && line_end.is_none() {
            loaded.size = start + *end as u64;
            break;
        }
    }
    Ok(())
}

/// Where the first line begins that belongs to a piece; `None` when none does. A line that begins at the
/// piece's end belongs to the next one.
fn first_line(bytes: &[u8], start: u64) -> Option<usize> {
    let first = match start {
        0 => bytes.len() - without_mark(bytes).len(),
        _ => memchr(b'\n', bytes)? + 1,
    };
    (first < bytes.len()).then_some(first)
}

/// Matches a line that is not in memory part by part, from where it begins; breaks when it has to stop.
fn search_long_line(
    file: &OpenFile,
    matcher: &LineMatcher,
    mut from: u64,
    halt: &Halt,
) -> ControlFlow<(), Option<PartMatch>> {
    let mut long = LongLine::new(matcher);
    let mut part = vec![0; matcher.reach().line];
    loop {
        halt.give_way();
        if halt.must_stop() {
            return ControlFlow::Break(());
        }
        let read = read_at(file, &mut part, from).unwrap_or(0);
        let bytes = part.get(..read).unwrap_or_default();
        let line_end = memchr(b'\n', bytes);
        let end = if line_end.is_some() || read < part.len() {
            PartEnd::Line
        } else {
            PartEnd::Cut
        };
        let bytes = bytes.get(..line_end.unwrap_or(read)).unwrap_or_default();
        match long.search(bytes, end) {
            PartSearched::Found(found) => return ControlFlow::Continue(Some(found)),
            PartSearched::End => return ControlFlow::Continue(None),
            PartSearched::Next(step) => from += step as u64,
        }
    }
}

/// Collects matching lines as they are found.
pub(super) struct Collector<'a> {
    window: &'a Window<'a>,
    matcher: &'a LineMatcher,
    wanted: Collected,
    room: &'a mut HitRoom,
    pub(super) hits: Hits,
    /// In a search from the end: the last lines that match so far.
    last: Vec<(Range<usize>, FoundLine)>,
    /// The newlines before `counted_to`.
    pub(super) counted: u64,
    counted_to: usize,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        window: &'a Window<'a>,
        matcher: &'a LineMatcher,
        wanted: Collected,
        room: &'a mut HitRoom,
    ) -> Self {
        let hits = Hits::default();
        Collector {
            window,
            matcher,
            wanted,
            room,
            hits,
            last: Vec::new(),
            counted: 0,
            counted_to: 0,
        }
    }

    /// Ends a search. A search from the end selects the last lines only now, because only now are they known.
    pub(super) fn finish(&mut self, searched: Searched) -> Searched {
        let last = std::mem::take(&mut self.last);
        if searched == Searched::Halted && self.wanted.from == SearchFrom::End {
            // There may be more after these.
            return searched;
        }
        let surplus = last.len().saturating_sub(self.room.matches);
        let last: Vec<_> = last.into_iter().skip(surplus).collect();
        let numbers: Vec<u64> = last.iter().map(|(line, _)| self.number(line)).collect();
        for ((line, found), number) in last.into_iter().zip(numbers).rev() {
            if self.keep(&line, found, number).is_break() {
                return Searched::Enough;
            }
        }
        searched
    }

    /// Keeps a line for the end, and from time to time drops those that are too far from it.
    fn remember(&mut self, line: Range<usize>, found: FoundLine) {
        self.last.push((line, found));
        let most = self.room.matches;
        if self.last.len() >= most.saturating_mul(2) {
            self.last.drain(..self.last.len() - most);
        }
    }

    /// A line's number; lines have to come in order.
    fn number(&mut self, line: &Range<usize>) -> u64 {
        self.count_to(line.start);
        self.counted + 1
    }

    /// Counts lines up to a position, if the output has line numbers.
    pub(super) fn count_to(&mut self, position: usize) {
        if self.wanted.output == SearchOutput::Matches {
            let between = self
                .window
                .bytes
                .get(self.counted_to..position)
                .unwrap_or_default();
            self.counted += newlines(between);
            self.counted_to = position;
        }
    }

    fn keep(&mut self, line: &Range<usize>, found: FoundLine, number: u64) -> ControlFlow<()> {
        let line_in_parts = matches!(found, FoundLine::InPart(_));
        let (text, line_truncated, column) = match found {
            FoundLine::InLine => self.show(line),
            FoundLine::InPart(part) => (part.shown, true, part.column),
        };
        let found = LineMatch {
            line_number: i64::try_from(number).unwrap_or(i64::MAX),
            column,
            line: text.into_boxed_str(),
            line_truncated,
            line_in_parts,
            around: self.window.around(line, self.wanted.context_lines),
        };
        self.room.matches = self.room.matches.saturating_sub(1);
        self.room.text = self.room.text.saturating_sub(weight(&found));
        self.hits.matches.push(found);
        if self.room.matches == 0 || self.room.text == 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// A line with the match in it, whether it was cut, and the match's column.
    fn show(&self, line: &Range<usize>) -> (String, bool, u64) {
        let bytes = self.window.bytes.get(line.clone()).unwrap_or_default();
        let found = self.matcher.find(bytes).unwrap_or(0..0);
        let (text, is_cut) = shown_match(bytes, &found);
        let before = bytes.get(..found.start).unwrap_or_default();
        (text, is_cut, characters(before) + 1)
    }
}

impl LineSink for Collector<'_> {
    fn matched(&mut self, line: Range<usize>, found: FoundLine) -> ControlFlow<()> {
        self.hits.count += 1;
        match self.wanted.output {
            SearchOutput::Matches if self.wanted.from == SearchFrom::End => {
                self.remember(line, found);
                ControlFlow::Continue(())
            }
            SearchOutput::Matches => {
                let number = self.number(&line);
                self.keep(&line, found, number)
            }
            SearchOutput::Files => ControlFlow::Break(()),
            SearchOutput::Count => ControlFlow::Continue(()),
        }
    }

    fn searched_in_parts(&mut self) {
        self.hits.lines_in_parts += 1;
    }
}

/// About how much memory a match takes.
pub(super) fn weight(found: &LineMatch) -> usize {
    let around = found.around.as_ref().map_or(0, |around| around.weight());
    found.line.len() + around + MATCH_OVERHEAD
}
