//! Reads a file or a part of it, by bytes or by lines.
//!
//! Memory follows what is returned, which [`crate::Limits::max_file_size`] bounds; the rest of a file is only
//! counted, a block at a time.

use std::ops::Range;

use sandbox::{Metadata, OpenFile};

use crate::content::{read_up_to, reader};
use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::text::encoding;
use crate::text::lines::{self, Blocks, LineCounter, LineSeeker, Sought};

/// The most bytes of a character after its first.
const CONTINUATION: u64 = 3;

/// Which part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRange {
    /// All of it.
    Whole,
    /// `limit` bytes from `offset` on, or what is left.
    ///
    /// In text a character belongs to the range that has its first byte, so that ranges side by side are text and
    /// together make the file.
    Bytes {
        /// The first byte, from 0.
        offset: u64,
        /// How many; `None` = to the end.
        limit: Option<u64>,
    },
    /// `limit` lines from line `offset` on, or what is left.
    Lines {
        /// The first line, from 1; negative ones count from the end, -1 being the last line.
        offset: i64,
        /// How many; `None` = to the end.
        limit: Option<u64>,
    },
}

/// What becomes of a file that is too large to be returned whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oversize {
    /// A whole read of more than `over` bytes is an error.
    Refuse {
        /// The largest size that is read whole.
        over: u64,
    },
    /// Its beginning is returned.
    Cut,
}

/// What counts as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPolicy {
    /// UTF-8 in a file without a NUL byte in its first 8 KiB.
    Detect,
    /// UTF-8, with NUL bytes or not.
    Utf8,
    /// Nothing: bytes are wanted as they are.
    Never,
}

/// Whether the lines of a file are counted where only some are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Totals {
    /// Yes, which reads all of it, a block at a time.
    Count,
    /// No: reading ends with what is returned, and lines counted from the end have no numbers.
    Skip,
}

/// Reads a file or a part of it.
#[derive(Debug)]
pub struct Read {
    /// The file; links are followed.
    pub place: Place,
    /// Which part.
    pub range: ReadRange,
    /// The most bytes to return; the process's limit holds beside it.
    pub max_bytes: Option<u64>,
    /// What becomes of a file that is too large to be returned whole.
    pub oversize: Oversize,
    /// What counts as text.
    pub text: TextPolicy,
    /// Whether a line range counts the file's lines.
    pub totals: Totals,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Valid UTF-8.
    Text(String),
    /// Anything else, or what was wanted as bytes.
    Bytes(Vec<u8>),
}

impl Body {
    /// The bytes, text or not.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Body::Text(text) => text.as_bytes(),
            Body::Bytes(bytes) => bytes,
        }
    }

    /// How many lines it has; a last one without a newline counts.
    #[must_use]
    pub fn line_count(&self) -> u64 {
        lines::count(self.as_bytes())
    }
}

/// A file's content or a part of it.
#[derive(Debug)]
pub struct Contents {
    /// The resolved path.
    pub path: String,
    /// What was read.
    pub body: Body,
    /// Whether the file is not text.
    pub binary: bool,
    /// The file as it was when it was opened; its size is that of the whole file.
    pub metadata: Metadata,
    /// Where what was read begins in the file.
    pub start_byte: u64,
    /// How many lines the file has; for whole texts and counted line ranges.
    pub lines_total: Option<u64>,
    /// The number of the first line returned, from 1; for whole texts and line ranges.
    pub start_line: Option<u64>,
    /// The number of the last line returned, whole or cut.
    pub end_line: Option<u64>,
    /// Whether more follows after what was returned.
    pub truncated: bool,
    /// Whether the greatest size of a reply, not the range, ended it.
    pub cut: bool,
}

impl Operation for Read {
    type Outcome = Contents;

    fn run(self, context: &Context) -> Result<Contents> {
        let (located, _) = self.place.existing_file(Wanted::File)?;
        let reader = Reader {
            open: located.open_file()?,
            request: &self,
            context,
        };
        match self.range {
            ReadRange::Whole => reader.whole(),
            ReadRange::Bytes { offset, limit } => reader.bytes(offset, limit),
            ReadRange::Lines { offset, limit } => reader.lines(offset, limit),
        }
    }
}

struct Reader<'a> {
    open: OpenFile,
    request: &'a Read,
    context: &'a Context,
}

/// Bytes on their way to the reply.
struct Piece {
    /// What was read, between bytes that are there only to tell where characters begin and end.
    bytes: Vec<u8>,
    /// The part of it that was asked for.
    asked: Range<usize>,
    /// Where that begins in the file.
    start: u64,
    /// Whether the greatest size of a reply ended it.
    cut: bool,
}

/// Where a line range begins.
struct LineStart {
    /// The position of its first byte, or the end of the file.
    position: u64,
    /// How many lines come before it, where that is known.
    before: Option<u64>,
}

impl Reader<'_> {
    fn whole(self) -> Result<Contents> {
        let (max, refuse) = match self.request.oversize {
            Oversize::Refuse { over } => (over, true),
            Oversize::Cut => (self.max_bytes(), false),
        };
        self.refuse_over(self.open.metadata.size, refuse, max)?;
        let bytes = read_up_to(&self.open, 0, max.saturating_add(1), &self.context.cancel)?;
        // It may have grown while it was read.
        self.refuse_over(bytes.len() as u64, refuse, max)?;
        let cut = bytes.len() as u64 > max;
        let asked = 0..bytes.len().min(size_of(max));
        let mut contents = self.contents(Piece {
            bytes,
            asked,
            start: 0,
            cut,
        })?;
        contents.truncated = cut;
        if let Body::Text(text) = &contents.body {
            let lines = lines::count(text.as_bytes());
            contents.number_lines(1);
            contents.lines_total = (!cut).then_some(lines);
        }
        Ok(contents)
    }

    fn refuse_over(&self, size: u64, refuse: bool, limit: u64) -> Result<()> {
        if refuse && size > limit {
            return Err(Error::TooLarge {
                path: self.open.path.clone(),
                size,
                limit,
            });
        }
        Ok(())
    }

    fn bytes(self, offset: u64, limit: Option<u64>) -> Result<Contents> {
        let max = self.max_bytes();
        let wanted = limit.unwrap_or(u64::MAX);
        let length = wanted.min(max);
        let before = offset.min(CONTINUATION);
        let span = length.saturating_add(before + CONTINUATION);
        let bytes = read_up_to(&self.open, offset - before, span, &self.context.cancel)?;
        let start = bytes.len().min(before as usize);
        let end = bytes.len().min(start.saturating_add(size_of(length)));
        let cut = wanted > max && end < bytes.len();
        let mut contents = self.contents(Piece {
            bytes,
            asked: start..end,
            start: offset,
            cut,
        })?;
        let end = contents
            .start_byte
            .saturating_add(contents.body.as_bytes().len() as u64);
        contents.truncated = end < contents.metadata.size;
        Ok(contents)
    }

    fn lines(self, offset: i64, limit: Option<u64>) -> Result<Contents> {
        let start = self.first_line(offset)?;
        let piece = self.collect_lines(start.position, limit.unwrap_or(u64::MAX))?;
        let (cut, end) = (piece.cut, start.position + piece.bytes.len() as u64);
        let total = match (self.request.totals, start.before) {
            (Totals::Count, Some(before)) => Some(before + self.count_from(&piece)?),
            _ => None,
        };
        let mut contents = self.contents(piece)?;
        contents.truncated = cut || end < contents.metadata.size;
        contents.lines_total = total;
        if let Some(before) = start.before {
            contents.number_lines(before + 1);
        }
        Ok(contents)
    }

    fn first_line(&self, offset: i64) -> Result<LineStart> {
        let mut read = reader(&self.open, &self.context.cancel);
        if offset < 0 {
            return self.first_of_last(offset.unsigned_abs());
        }
        let before = offset.unsigned_abs().saturating_sub(1);
        Ok(match lines::find_line_start(&mut read, before)? {
            Sought::At(position) => LineStart {
                position,
                before: Some(before),
            },
            Sought::Beyond { lines, size } => LineStart {
                position: size,
                before: Some(lines),
            },
        })
    }

    fn first_of_last(&self, wanted: u64) -> Result<LineStart> {
        let mut read = reader(&self.open, &self.context.cancel);
        let size = self.open.metadata.size;
        let position = lines::find_last_lines(&mut read, size, wanted)?.offset;
        let before = match self.request.totals {
            Totals::Skip => None,
            Totals::Count => {
                let mut counter = LineCounter::default();
                self.count_range(0..position, &mut counter)?;
                Some(counter.lines())
            }
        };
        Ok(LineStart { position, before })
    }

    fn collect_lines(&self, start: u64, limit: u64) -> Result<Piece> {
        let max = size_of(self.max_bytes());
        let mut read = reader(&self.open, &self.context.cancel);
        let mut blocks = Blocks::new(&mut read, start, self.block_size(start));
        let mut seeker = LineSeeker::new(limit);
        let mut bytes = Vec::new();
        let mut ended = limit == 0;
        while !ended && bytes.len() <= max {
            let Some((_, block)) = blocks.next()? else {
                break;
            };
            let end = seeker.feed(block);
            ended = end.is_some();
            bytes.extend_from_slice(block.get(..end.unwrap_or(block.len())).unwrap_or_default());
        }
        let cut = bytes.len() > max;
        bytes.truncate(max);
        Ok(Piece {
            asked: 0..bytes.len(),
            bytes,
            start,
            cut,
        })
    }

    /// Counts the lines from the beginning of a piece to the end of the file.
    fn count_from(&self, piece: &Piece) -> Result<u64> {
        let mut counter = LineCounter::default();
        counter.feed(&piece.bytes);
        let end = piece.start + piece.bytes.len() as u64;
        self.count_range(end..u64::MAX, &mut counter)?;
        Ok(counter.lines())
    }

    fn count_range(&self, range: Range<u64>, counter: &mut LineCounter) -> Result<()> {
        let mut read = reader(&self.open, &self.context.cancel);
        let mut blocks = Blocks::new(&mut read, range.start, self.block_size(range.start));
        while let Some((position, block)) = blocks.next()? {
            let left = size_of(range.end.saturating_sub(position));
            counter.feed(block.get(..left).unwrap_or(block));
            if left <= block.len() {
                break;
            }
        }
        Ok(())
    }

    /// Large enough for speed, no larger than what is left of the file.
    fn block_size(&self, start: u64) -> usize {
        let left = self
            .open
            .metadata
            .size
            .saturating_sub(start)
            .saturating_add(1);
        size_of(left).min(lines::BLOCK)
    }

    /// The most bytes this reply may have.
    fn max_bytes(&self) -> u64 {
        let own = self.request.max_bytes.unwrap_or(u64::MAX);
        own.min(self.context.limits.max_file_size)
    }

    /// Decides whether a piece is text and makes the reply of it.
    fn contents(self, piece: Piece) -> Result<Contents> {
        let binary = self.request.text == TextPolicy::Detect && self.has_nul_in_head()?;
        let Piece {
            bytes,
            asked,
            start,
            cut,
        } = piece;
        let as_text = self.request.text != TextPolicy::Never && !binary;
        let fitted = if as_text {
            fit_characters(&bytes, &asked, cut)
        } else {
            None
        };
        let is_text = |range: &Range<usize>| {
            bytes
                .get(range.clone())
                .is_some_and(|part| encoding::utf8(part).is_some())
        };
        let (body, start_byte) = match fitted.filter(is_text) {
            Some(range) => {
                let moved = range.start.saturating_sub(asked.start) as u64;
                (text_or_bytes(part(bytes, range)), start + moved)
            }
            None => (Body::Bytes(part(bytes, asked)), start),
        };
        Ok(Contents {
            path: self.open.path,
            binary: binary || (as_text && matches!(body, Body::Bytes(_))),
            body,
            metadata: self.open.metadata,
            start_byte,
            lines_total: None,
            start_line: None,
            end_line: None,
            truncated: false,
            cut,
        })
    }

    fn has_nul_in_head(&self) -> Result<bool> {
        let head = read_up_to(&self.open, 0, encoding::HEAD as u64, &self.context.cancel)?;
        Ok(encoding::is_binary(&head))
    }
}

impl Contents {
    /// Numbers the returned lines, the first being `first`; nothing returned has no numbers.
    fn number_lines(&mut self, first: u64) {
        let lines = self.body.line_count();
        if lines > 0 {
            self.start_line = Some(first);
            self.end_line = Some(first + lines - 1);
        }
    }
}

/// Moves both ends of `asked` to where characters begin, so that text stays text. `None` where an end lies inside
/// something that is no character.
///
/// An end that a limit cut moves back, because the limit holds; any other moves on.
fn fit_characters(bytes: &[u8], asked: &Range<usize>, cut: bool) -> Option<Range<usize>> {
    let start = character_end(bytes, asked.start)?;
    let end = match (character_end(bytes, asked.end), cut) {
        (Some(end), false) => end,
        (Some(end), true) if end == asked.end => end,
        (_, true) => encoding::trim_end(bytes.get(..asked.end)?).len(),
        (None, false) => return None,
    };
    Some(start..end.max(start))
}

/// The first position from `position` on that is not inside a character.
fn character_end(bytes: &[u8], position: usize) -> Option<usize> {
    if !bytes
        .get(position)
        .is_some_and(|&byte| is_continuation(byte))
    {
        return Some(position);
    }
    let first = (position.saturating_sub(CONTINUATION as usize)..position)
        .rev()
        .find(|&before| {
            bytes
                .get(before)
                .is_some_and(|&byte| !is_continuation(byte))
        })?;
    let character = bytes
        .get(first..)?
        .utf8_chunks()
        .next()?
        .valid()
        .chars()
        .next()?;
    Some(first + character.len_utf8()).filter(|&end| end > position)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Cuts a part out of a buffer without copying where it begins at the buffer's start.
fn part(mut bytes: Vec<u8>, range: Range<usize>) -> Vec<u8> {
    bytes.truncate(range.end);
    bytes.drain(..range.start.min(bytes.len()));
    bytes
}

fn text_or_bytes(bytes: Vec<u8>) -> Body {
    String::from_utf8(bytes).map_or_else(|error| Body::Bytes(error.into_bytes()), Body::Text)
}

fn size_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
