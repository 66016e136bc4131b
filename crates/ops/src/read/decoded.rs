//! Text in other encodings than UTF-8. Where characters are not single bytes, lines cannot be found in the file itself: it is
//! decoded whole, within a bound, and the wanted part is cut out of the text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::reader::Reader;
use super::{Body, Contents, Oversize, ReadRange, TextPolicy};
use crate::error::Result;
use crate::read_at::read_up_to;
use crate::text::{encoding, lines};

/// The largest file that is decoded.
const DECODED_MAX: u64 = 64 * 1024 * 1024;
/// How many bytes are examined to detect an encoding.
pub(super) const MARK: usize = 4;

/// A part of a text.
struct TextPart {
    start: usize,
    end: usize,
    first_line: Option<u64>,
}

impl Reader<'_> {
    /// The encoding in which the file has to be read whole, if it is one.
    pub(super) fn whole_encoding(&self) -> Result<Option<&'static Encoding>> {
        match self.request.text {
            TextPolicy::Encoding(encoding) => Ok(Some(encoding)),
            TextPolicy::DetectLegacy => {
                let mark = read_up_to(&self.open, 0, MARK as u64, &self.context.cancel)?;
                Ok(marked_encoding(&mark))
            }
            TextPolicy::Detect | TextPolicy::Utf8 | TextPolicy::Never => Ok(None),
        }
    }

    /// The whole file: whichever part is requested, all bytes and all of the text are held.
    fn all_bytes(&self) -> Result<Vec<u8>> {
        let most = match (self.request.range, self.request.oversize) {
            (ReadRange::Whole, Oversize::Refuse { over }) => over.min(DECODED_MAX),
            _ => DECODED_MAX,
        };
        self.refuse_over(self.open.metadata.size, true, most)?;
        self.context.take_room(self.open.metadata.size)?;
        let bytes = read_up_to(&self.open, 0, most.saturating_add(1), &self.context.cancel)?;
        // It may have grown while it was read.
        self.refuse_over(bytes.len() as u64, true, most)?;
        Ok(bytes)
    }

    /// Decodes the file and cuts out what was asked for.
    pub(super) fn decoded(self, own: &'static Encoding) -> Result<Contents> {
        let bytes = self.all_bytes()?;
        let (text, _) = own.decode_with_bom_removal(&bytes);
        let part = part_of(&text, self.request.range);
        let room = usize::try_from(self.max_bytes()).unwrap_or(usize::MAX);
        let (end, cut) = cut_at(&text, &part, room);
        let body = text.get(part.start..end).unwrap_or_default().to_owned();
        let mut contents = Contents {
            path: self.open.path,
            binary: false,
            decoded_from: (own != UTF_8).then(|| own.name()),
            body: Body::Text(body),
            size: self.open.metadata.size,
            metadata: self.open.metadata,
            version: None,
            start_byte: part.start as u64,
            end_byte: end as u64,
            lines_total: part.first_line.map(|_| lines::count(text.as_bytes())),
            start_line: None,
            end_line: None,
            truncated: end < text.len(),
            cut,
        };
        if let Some(first) = part.first_line {
            contents.number_lines(first);
        }
        Ok(contents)
    }
}

/// The encoding that the first bytes of a file reveal, if any.
pub(super) fn marked_encoding(beginning: &[u8]) -> Option<&'static Encoding> {
    match beginning {
        // UTF-32 begins like UTF-16.
        [0xff, 0xfe, 0, 0] => None,
        [0xff, 0xfe, ..] => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// The part of a text that a range means. Bytes count in the decoded text.
fn part_of(text: &str, range: ReadRange) -> TextPart {
    match range {
        ReadRange::Whole => TextPart {
            start: 0,
            end: text.len(),
            first_line: Some(1),
        },
        ReadRange::Bytes { offset, limit } => {
            let at = |position: u64| {
                let position = usize::try_from(position).unwrap_or(usize::MAX);
                let mut from = position.min(text.len())..=text.len();
                from.find(|at| text.is_char_boundary(*at))
                    .unwrap_or(text.len())
            };
            TextPart {
                start: at(offset),
                end: at(offset.saturating_add(limit.unwrap_or(u64::MAX))),
                first_line: None,
            }
        }
        ReadRange::Lines { offset, limit } => {
            let skipped = match offset {
                ..0 => lines::count(text.as_bytes()).saturating_sub(offset.unsigned_abs()),
                _ => offset.unsigned_abs().saturating_sub(1),
            };
            let start = after_lines(text, skipped);
            let rest = text.get(start..).unwrap_or_default();
            TextPart {
                start,
                end: start + after_lines(rest, limit.unwrap_or(u64::MAX)),
                first_line: Some(skipped + 1),
            }
        }
    }
}

/// Where the text goes on after so many lines.
fn after_lines(text: &str, lines: u64) -> usize {
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    match lines.checked_sub(1) {
        None => 0,
        Some(before) => {
            let end = usize::try_from(before)
                .ok()
                .and_then(|before| ends.nth(before));
            end.map_or(text.len(), |newline| newline + 1)
        }
    }
}

/// Where a part ends that may have so many bytes: behind a whole line if there is one, else behind a whole character.
fn cut_at(text: &str, part: &TextPart, room: usize) -> (usize, bool) {
    let most = part.start.saturating_add(room);
    if part.end <= most {
        return (part.end, false);
    }
    let most = text.as_bytes().get(..most).unwrap_or_default();
    let end = encoding::trim_end(most).len();
    let piece = text.get(part.start..end).unwrap_or_default();
    let line = memchr::memrchr(b'\n', piece.as_bytes()).map(|newline| part.start + newline + 1);
    (line.unwrap_or(end), true)
}

/// Decodes non-UTF-8 bytes as windows-1252, unless some of them never occur in text.
pub(super) fn legacy(bytes: Vec<u8>) -> (Body, Option<&'static str>) {
    if bytes.is_empty() || bytes.iter().any(|byte| is_no_text(*byte)) {
        return (Body::Bytes(bytes), None);
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
    (Body::Text(text.into_owned()), Some(WINDOWS_1252.name()))
}

/// Whether a byte is a control character other than white space, backspace and escape.
fn is_no_text(byte: u8) -> bool {
    matches!(byte, 0..=7 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}
