//! The search through a compressed file: its content passes through one thread's buffer, a stretch at a time.

use std::io::Read;
use std::ops::ControlFlow;

use memchr::{memchr, memrchr};
use sandbox::OpenFile;

use super::file::{Collected, Collector, FileSearched, HitRoom, Hits, Scratch, space, weight};
use super::lines::{
    LongLine, PartMatch, PartSearched, Searched, end_long_line, lines_before, search,
};
use super::window::{Window, without_mark};
use super::{LineMatch, SearchFrom, SearchOutput};
use crate::decompress::Compression;
use crate::ordered::Halt;
use crate::pattern::{LineMatcher, PartEnd};
use crate::text::encoding::is_binary;
use crate::text::lines::newlines;
use crate::unread::UnreadReason;

/// How much is decompressed at a time, and the most that is kept for lines of context.
const STRETCH: usize = 1024 * 1024;
/// How much of a file's content is searched: a small file can unfold to any size.
const SEARCHED_MAX: u64 = 1024 * 1024 * 1024;

/// Searches the content of a compressed file.
pub(super) fn search_compressed(
    file: &OpenFile,
    compression: Compression,
    wanted: Collected,
    scratch: &mut Scratch,
    room: &mut HitRoom,
    halt: &Halt,
) -> FileSearched {
    let mut stream = Unfolding {
        reader: compression.reader(file),
        buffer: std::mem::take(&mut scratch.buffer),
        filled: 0,
        from: 0,
        lines: 0,
        total: 0,
        end: None,
    };
    let mut search = StreamSearch {
        file,
        matcher: &scratch.matcher,
        wanted,
        room,
        halt,
        hits: Hits::default(),
    };
    let ended = search.run(&mut stream);
    let hits = search.hits;
    scratch.buffer = std::mem::take(&mut stream.buffer);
    FileSearched {
        hits: ended.map(|_| hits),
        ended: ended.unwrap_or(Searched::All),
        read: 0,
        unread: match stream.end {
            Some(DecodedEnd::Damaged) => Some(UnreadReason::Damaged),
            Some(DecodedEnd::TooMuch) => Some(UnreadReason::Unfolds { most: SEARCHED_MAX }),
            Some(DecodedEnd::Complete) | None => None,
        },
    }
}

/// Decompressed content on its way through a buffer.
struct Unfolding<'a> {
    reader: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// How much of the buffer is content.
    filled: usize,
    /// Where in the buffer the lines begin that were not searched; before that is context.
    from: usize,
    /// How many lines were before the buffer.
    lines: u64,
    /// How much was decompressed.
    total: u64,
    end: Option<DecodedEnd>,
}

/// Why there is no more content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecodedEnd {
    Complete,
    Damaged,
    TooMuch,
}

impl Unfolding<'_> {
    /// Reads until a stretch is there that was not searched, or to the end.
    fn fill(&mut self) {
        let wanted = self.from + STRETCH;
        while self.end.is_none() && self.filled < wanted {
            let free = space(&mut self.buffer, wanted).get_mut(self.filled..);
            match self.reader.read(free.unwrap_or_default()) {
                Ok(0) => self.end = Some(DecodedEnd::Complete),
                Err(_) => self.end = Some(DecodedEnd::Damaged),
                Ok(read) => {
                    self.filled += read;
                    self.total += read as u64;
                    if self.total > SEARCHED_MAX {
                        self.end = Some(DecodedEnd::TooMuch);
                    }
                }
            }
        }
    }

    fn content(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// What was not searched yet.
    fn ahead(&self) -> &[u8] {
        self.content().get(self.from..).unwrap_or_default()
    }

    fn is_over(&self) -> bool {
        self.end.is_some() && self.from >= self.filled
    }

    /// The end of the lines that can be searched now, with their context behind them; `None` if no line ends.
    fn searchable(&self, context_lines: usize) -> Option<usize> {
        if self.end.is_some() {
            return Some(self.filled);
        }
        let ahead = self.ahead();
        let whole = memrchr(b'\n', ahead)? + 1;
        let before_context = lines_before(ahead.get(..whole)?, context_lines);
        Some(self.from + before_context.filter(|&to| to > 0).unwrap_or(whole))
    }

    /// Goes on to a position and keeps lines of context before it.
    fn advance(&mut self, to: usize, context_lines: usize) {
        let passed = self.content().get(..to).unwrap_or_default();
        let kept = lines_before(passed, context_lines).unwrap_or(0);
        let kept = if to - kept > STRETCH { to } else { kept };
        self.lines += newlines(passed.get(..kept).unwrap_or_default());
        self.from = to;
        self.drop_front(kept);
    }

    fn drop_front(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        self.from -= bytes;
    }

    /// Passes over the rest of a line. Lines behind it have nothing before them, because it is not kept.
    fn skip_line(&mut self, halt: &Halt) {
        self.lines += newlines(self.content().get(..self.from).unwrap_or_default());
        self.drop_front(self.from);
        while !self.is_over() && !halt.must_stop() {
            match memchr(b'\n', self.content()) {
                Some(newline) => {
                    self.from = newline + 1;
                    self.lines += 1;
                    return self.drop_front(newline + 1);
                }
                None => self.filled = 0,
            }
            self.fill();
        }
    }
}

struct StreamSearch<'a> {
    file: &'a OpenFile,
    matcher: &'a LineMatcher,
    wanted: Collected,
    room: &'a mut HitRoom,
    halt: &'a Halt,
    hits: Hits,
}

impl StreamSearch<'_> {
    /// Searches all of it; `None` if it is binary or nothing can be read.
    fn run(&mut self, stream: &mut Unfolding<'_>) -> Option<Searched> {
        stream.fill();
        let is_unreadable = stream.filled == 0 && stream.end == Some(DecodedEnd::Damaged);
        if is_unreadable || is_binary(stream.content()) {
            return None;
        }
        stream.from = stream.filled - without_mark(stream.content()).len();
        stream.drop_front(stream.from);
        let mut ended = Searched::All;
        while ended == Searched::All && !stream.is_over() {
            self.halt.give_way();
            if self.halt.must_stop() {
                ended = Searched::Halted;
                break;
            }
            stream.fill();
            ended = match stream.searchable(self.wanted.context_lines) {
                Some(to) => self.stretch(stream, to),
                None => self.long_line(stream),
            };
        }
        Some(self.settle(ended))
    }

    fn stretch(&mut self, stream: &mut Unfolding<'_>, to: usize) -> Searched {
        let (from, halt, matcher) = (stream.from, self.halt, self.matcher);
        let bytes = stream.buffer.get(..to).unwrap_or_default();
        let ended = self.collect(stream, false, |collector| {
            search(matcher, bytes, from, halt, collector)
        });
        stream.advance(to, self.wanted.context_lines);
        ended
    }

    /// Matches a line that is longer than a stretch part by part.
    fn long_line(&mut self, stream: &mut Unfolding<'_>) -> Searched {
        let found = self.long_line_match(stream);
        let line = stream.from..stream.filled;
        let ended = self.collect(stream, true, |collector| {
            end_long_line(line, found, collector)
        });
        stream.skip_line(self.halt);
        ended
    }

    fn long_line_match(&self, stream: &mut Unfolding<'_>) -> ControlFlow<(), Option<PartMatch>> {
        let mut long = LongLine::new(self.matcher);
        loop {
            self.halt.give_way();
            if self.halt.must_stop() {
                return ControlFlow::Break(());
            }
            stream.fill();
            let ahead = stream.ahead();
            let line_end = memchr(b'\n', ahead).unwrap_or(ahead.len());
            let part = ahead.get(..self.matcher.reach().line.min(line_end));
            let part = part.unwrap_or_default();
            let is_end = part.len() == line_end && (line_end < ahead.len() || stream.end.is_some());
            let end = if is_end { PartEnd::Line } else { PartEnd::Cut };
            match long.search(part, end) {
                PartSearched::Found(found) => return ControlFlow::Continue(Some(found)),
                PartSearched::End => return ControlFlow::Continue(None),
                PartSearched::Next(step) => {
                    let (from, filled) = (stream.from, stream.filled);
                    stream.buffer.copy_within(from + step..filled, from);
                    stream.filled -= step;
                }
            }
        }
    }

    /// Lets a collector take matches of what is in the buffer, and adds them to those of the file.
    fn collect(
        &mut self,
        stream: &Unfolding<'_>,
        cut: bool,
        search: impl FnOnce(&mut Collector<'_>) -> Searched,
    ) -> Searched {
        let window = Window {
            bytes: stream.content(),
            offset: 0,
            file: self.file,
            size: stream.filled as u64,
            at_start: true,
            cut,
        };
        let mut own = HitRoom { ..*self.room };
        let room = match self.wanted.from {
            SearchFrom::Start => &mut *self.room,
            // Matches of this stretch can take the place of earlier ones.
            SearchFrom::End => &mut own,
        };
        let mut collector = Collector::new(&window, self.matcher, self.wanted, room);
        collector.counted = stream.lines;
        let ended = search(&mut collector);
        let ended = collector.finish(ended);
        let hits = collector.hits;
        self.hits.count += hits.count;
        self.hits.lines_in_parts += hits.lines_in_parts;
        if self.wanted.from == SearchFrom::Start {
            self.hits.matches.extend(hits.matches);
            return ended;
        }
        self.put_first(hits.matches);
        match ended {
            // There may be later ones.
            Searched::Enough if self.wanted.output == SearchOutput::Matches => Searched::All,
            ended => ended,
        }
    }

    /// Puts later matches before those of the file so far, and forgets the earliest if there are too many.
    fn put_first(&mut self, later: Vec<LineMatch>) {
        let earlier = std::mem::replace(&mut self.hits.matches, later);
        self.hits.matches.extend(earlier);
        self.hits.matches.truncate(self.room.matches);
        let mut text = 0;
        let fits = |found: &&LineMatch| {
            let has_room = text < self.room.text;
            text += weight(found);
            has_room
        };
        let kept = self.hits.matches.iter().take_while(fits).count();
        self.hits.matches.truncate(kept);
    }

    /// Counts what a search from the end kept, which is known only now.
    fn settle(&mut self, ended: Searched) -> Searched {
        if self.wanted.from == SearchFrom::Start || ended == Searched::Halted {
            return ended;
        }
        let text: usize = self.hits.matches.iter().map(weight).sum();
        self.room.matches = self.room.matches.saturating_sub(self.hits.matches.len());
        self.room.text = self.room.text.saturating_sub(text);
        if self.room.matches == 0 || self.room.text == 0 {
            Searched::Enough
        } else {
            ended
        }
    }
}
