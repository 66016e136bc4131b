//! Reads the requested part of an open file and decides whether it is text.

use std::ops::Range;

use sandbox::OpenFile;

use super::characters::{CONTINUATION, fit_characters, part, text_of};
use super::decoded::legacy;
use super::{Body, Contents, Oversize, Read, TextPolicy, Totals};
use crate::byte_budget::SMALL_BYTES;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::line_search::LineSearch;
use crate::read_at::{read_up_to, reader};
use crate::text::encoding;
use crate::text::line_index::STRIDE;
use crate::text::lines::{self, Blocks, LineSeeker, Sought};

/// The expected maximum size of a line, to reserve room for lines before they are read.
const LONG_LINE: u64 = 1024;

/// A read in progress.
pub(super) struct Reader<'a> {
    pub(super) open: OpenFile,
    pub(super) request: &'a Read,
    pub(super) context: &'a Context,
}

/// Bytes on their way to the reply.
struct Piece {
    /// What was read, with a few bytes around it that only show where characters begin and end.
    bytes: Vec<u8>,
    /// The part of it that was asked for.
    asked: Range<usize>,
    /// Where that begins in the file.
    start: u64,
    /// Whether it was cut by the largest size of a reply.
    cut: bool,
}

impl Piece {
    /// The beginning of the file, if it was read.
    fn head(&self, file_size: u64) -> Option<&[u8]> {
        let length = self.bytes.len();
        let from_start = self.start == self.asked.start as u64;
        let enough = length >= encoding::HEAD || length as u64 >= file_size;
        let head = self.bytes.get(..length.min(encoding::HEAD));
        head.filter(|_| from_start && enough)
    }
}

/// Where a line range begins.
struct LineStart {
    /// The position of its first byte, or the end of the file.
    position: u64,
    /// How many lines come before it, if that is known.
    before: Option<u64>,
}

impl Reader<'_> {
    pub(super) fn whole(self) -> Result<Contents> {
        let (max, refuse) = match self.request.oversize {
            Oversize::Refuse { over } => (over, true),
            Oversize::Cut => (self.max_bytes(), false),
        };
        self.refuse_over(self.open.metadata.size, refuse, max)?;
        self.context.take_room(self.open.metadata.size.min(max))?;
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
        if matches!(contents.body, Body::Text(_)) {
            let lines = contents.number_lines(1);
            contents.lines_total = (!cut).then_some(lines);
        }
        Ok(contents)
    }

    pub(super) fn refuse_over(&self, size: u64, refuse: bool, limit: u64) -> Result<()> {
        if refuse && size > limit {
            return Err(Error::TooLarge {
                path: self.open.path.clone(),
                size,
                limit,
            });
        }
        Ok(())
    }

    pub(super) fn bytes(self, offset: u64, limit: Option<u64>) -> Result<Contents> {
        let max = self.max_bytes();
        let wanted = limit.unwrap_or(u64::MAX);
        let length = wanted.min(max);
        let before = offset.min(CONTINUATION);
        let span = length.saturating_add(before + CONTINUATION);
        self.take_room_for(offset, span)?;
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
        contents.truncated = contents.end_byte < contents.metadata.size;
        Ok(contents)
    }

    pub(super) fn lines(self, offset: i64, limit: Option<u64>) -> Result<Contents> {
        let mut search = LineSearch::new(&self.open, self.context);
        let found = self.find_lines(&mut search, offset, limit);
        search.keep();
        let (start, piece, total) = found?;
        let (cut, end) = (piece.cut, start.position + piece.bytes.len() as u64);
        let mut contents = self.contents(piece)?;
        contents.truncated = cut || end < contents.metadata.size;
        contents.lines_total = total;
        if let Some(before) = start.before {
            contents.number_lines(before + 1);
        }
        Ok(contents)
    }

    fn find_lines(
        &self,
        search: &mut LineSearch<'_>,
        offset: i64,
        limit: Option<u64>,
    ) -> Result<(LineStart, Piece, Option<u64>)> {
        if offset > 1 && self.request.totals == Totals::Count {
            search.count_ahead()?;
        }
        let start = match offset {
            ..0 => self.first_of_last(search, offset.unsigned_abs())?,
            _ => first_line(search, offset.unsigned_abs())?,
        };
        let piece = self.collect_lines(start.position, limit.unwrap_or(u64::MAX))?;
        let total = match self.request.totals {
            Totals::Count => search.total()?,
            Totals::Skip => None,
        };
        Ok((start, piece, total))
    }

    fn first_of_last(&self, search: &mut LineSearch<'_>, wanted: u64) -> Result<LineStart> {
        let mut read = reader(&self.open, &self.context.cancel);
        let size = self.open.metadata.size;
        let position = lines::find_last_lines(&mut read, size, wanted)?.offset;
        let before = match self.request.totals {
            Totals::Skip => None,
            Totals::Count => search.lines_before(position)?,
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
        // Only reading shows how long the lines are, so this is a safe estimate.
        let left = self.open.metadata.size.saturating_sub(start);
        let expected = limit.saturating_mul(LONG_LINE).min(left).min(max as u64);
        self.context.take_room(expected)?;
        let mut room = size_of(expected);
        while !ended && bytes.len() <= max {
            let Some((_, block)) = blocks.next()? else {
                break;
            };
            let end = seeker.feed(block);
            ended = end.is_some();
            let taken = block.get(..end.unwrap_or(block.len())).unwrap_or_default();
            let more = (bytes.len() + taken.len()).saturating_sub(room) as u64;
            if more > SMALL_BYTES {
                self.context.take_room(more)?;
                room = bytes.len() + taken.len();
            }
            bytes.extend_from_slice(taken);
        }
        let cut = bytes.len() > max;
        bytes.truncate(max);
        if cut && let Some(end) = memchr::memrchr(b'\n', &bytes) {
            // Whole lines, so that a client can continue with the next number. Only a line that is too long by itself is cut.
            bytes.truncate(end + 1);
        }
        Ok(Piece {
            asked: 0..bytes.len(),
            bytes,
            start,
            cut,
        })
    }

    /// Large enough for speed, no larger than what is left of the file.
    fn block_size(&self, start: u64) -> usize {
        let left = self
            .open
            .metadata
            .size
            .saturating_sub(start)
            .saturating_add(1);
        size_of(left).min(STRIDE)
    }

    /// Takes room for at most `most` bytes from a position on.
    fn take_room_for(&self, position: u64, most: u64) -> Result<()> {
        let left = self.open.metadata.size.saturating_sub(position);
        self.context.take_room(left.min(most))
    }

    /// The most bytes this reply may have.
    pub(super) fn max_bytes(&self) -> u64 {
        let own = self.request.max_bytes.unwrap_or(u64::MAX);
        own.min(self.context.limits.max_file_size)
    }

    /// Decides whether a piece is text and turns it into the reply.
    fn contents(self, piece: Piece) -> Result<Contents> {
        let detects = matches!(
            self.request.text,
            TextPolicy::Detect | TextPolicy::DetectLegacy
        );
        let binary = detects && self.has_nul_in_head(&piece)?;
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
        let moved = |range: &Range<usize>| range.start.saturating_sub(asked.start) as u64;
        let text = match fitted {
            Some(range) => text_of(bytes, range.clone()).map(|text| (text, moved(&range))),
            None => Err(bytes),
        };
        let (body, start_byte) = match text {
            Ok((text, moved)) => (Body::Text(text), start + moved),
            Err(bytes) => (Body::Bytes(part(bytes, asked)), start),
        };
        let end_byte = start_byte.saturating_add(body.as_bytes().len() as u64);
        let is_legacy = as_text && self.request.text == TextPolicy::DetectLegacy;
        let (body, decoded_from) = match body {
            Body::Bytes(bytes) if is_legacy => legacy(bytes),
            body => (body, None),
        };
        Ok(Contents {
            path: self.open.path,
            decoded_from,
            end_byte,
            binary: binary || (as_text && matches!(body, Body::Bytes(_))),
            body,
            size: self.open.metadata.size,
            metadata: self.open.metadata,
            version: None,
            start_byte,
            lines_total: None,
            start_line: None,
            end_line: None,
            truncated: false,
            cut,
        })
    }

    fn has_nul_in_head(&self, piece: &Piece) -> Result<bool> {
        if let Some(head) = piece.head(self.open.metadata.size) {
            return Ok(encoding::is_binary(head));
        }
        let head = read_up_to(&self.open, 0, encoding::HEAD as u64, &self.context.cancel)?;
        Ok(encoding::is_binary(&head))
    }
}

/// Finds a line, counted from 1.
fn first_line(search: &mut LineSearch<'_>, line: u64) -> Result<LineStart> {
    let before = line.saturating_sub(1);
    Ok(match search.seek(before)? {
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

fn size_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
