//! Reads a file or a part of it, by bytes or by lines.
//!
//! Memory follows what is returned, which [`crate::Limits::max_file_size`] bounds; the rest of a file is only
//! counted, a block at a time.

use std::ops::Range;

use sandbox::{Metadata, OpenFile};

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::line_search::LineSearch;
use crate::operation::Operation;
use crate::place::Place;
use crate::read_at::{read_up_to, reader};
use crate::text::encoding;
use crate::text::line_index::STRIDE;
use crate::text::lines::{self, Blocks, LineSeeker, Sought};

/// The largest file that is read inline: longer work belongs to other threads.
const INLINE_MAX: usize = 32 * 1024;
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
    /// How many lines the file has; for whole texts, and for counted line ranges where counting did not take too long.
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
        self.read(self.place.open_file(Wanted::File)?, context)
    }
}

impl Read {
    /// Reads a small file that lies in memory, without waiting for anything; `None` where it does not.
    #[must_use]
    pub fn try_inline(self, context: &Context) -> Option<Result<Contents>> {
        let mut open = self.place.try_open_inline()?;
        let loaded = open.try_load_inline(INLINE_MAX);
        loaded.then(|| self.read(open, context))
    }

    fn read(&self, open: OpenFile, context: &Context) -> Result<Contents> {
        let reader = Reader {
            open,
            request: self,
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

impl Piece {
    /// The beginning of the file, where it was read.
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
        if matches!(contents.body, Body::Text(_)) {
            let lines = contents.number_lines(1);
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
        if cut && let Some(end) = memchr::memrchr(b'\n', &bytes) {
            // Whole lines, so that reading goes on with the next number. Only one that is too long by itself is cut.
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

    /// The most bytes this reply may have.
    fn max_bytes(&self) -> u64 {
        let own = self.request.max_bytes.unwrap_or(u64::MAX);
        own.min(self.context.limits.max_file_size)
    }

    /// Decides whether a piece is text and makes the reply of it.
    fn contents(self, piece: Piece) -> Result<Contents> {
        let binary = self.request.text == TextPolicy::Detect && self.has_nul_in_head(&piece)?;
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

    fn has_nul_in_head(&self, piece: &Piece) -> Result<bool> {
        if let Some(head) = piece.head(self.open.metadata.size) {
            return Ok(encoding::is_binary(head));
        }
        let head = read_up_to(&self.open, 0, encoding::HEAD as u64, &self.context.cancel)?;
        Ok(encoding::is_binary(&head))
    }
}

impl Contents {
    /// Numbers the returned lines, the first being `first`, and says how many they are; nothing returned has no numbers.
    fn number_lines(&mut self, first: u64) -> u64 {
        let lines = self.body.line_count();
        if lines > 0 {
            self.start_line = Some(first);
            self.end_line = Some(first + lines - 1);
        }
        lines
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

/// Moves both ends of `asked` to where characters begin, so that text stays text. `None` where an end lies inside
/// something that is no character.
///
/// An end that a limit cut moves back, because the limit holds; any other moves on.
fn fit_characters(bytes: &[u8], asked: &Range<usize>, cut: bool) -> Option<Range<usize>> {
    let start = character_end(bytes, asked.start)?;
    let end = match cut {
        true => encoding::trim_end(bytes.get(..asked.end)?).len(),
        false => character_end(bytes, asked.end)?,
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

/// Makes text of a range of bytes, or gives the bytes back. ASCII is taken as it is; for anything else a check with vector
/// instructions and a copy cost less than the standard library's check.
fn text_of(bytes: Vec<u8>, range: Range<usize>) -> Result<String, Vec<u8>> {
    let wanted = bytes.get(range.clone()).unwrap_or_default();
    if wanted.is_ascii() {
        return String::from_utf8(part(bytes, range))
            .map_err(std::string::FromUtf8Error::into_bytes);
    }
    match encoding::utf8(wanted) {
        Some(text) => Ok(text.to_owned()),
        None => Err(bytes),
    }
}

fn size_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context, with_limits};
    use crate::{Durability, Limits};
    use proptest::prelude::*;

    fn request(tree: &Tree, path: &str, range: ReadRange) -> Read {
        Read {
            place: tree.place(path),
            range,
            max_bytes: None,
            oversize: Oversize::Refuse { over: 1024 * 1024 },
            text: TextPolicy::Detect,
            totals: Totals::Count,
        }
    }

    fn read(tree: &Tree, path: &str, range: ReadRange) -> Contents {
        request(tree, path, range).run(&context()).unwrap()
    }

    fn lines(offset: i64, limit: u64) -> ReadRange {
        ReadRange::Lines {
            offset,
            limit: Some(limit),
        }
    }

    fn bytes(offset: u64, limit: u64) -> ReadRange {
        ReadRange::Bytes {
            offset,
            limit: Some(limit),
        }
    }

    fn text(contents: &Contents) -> &str {
        match &contents.body {
            Body::Text(text) => text,
            Body::Bytes(bytes) => panic!("not text: {bytes:?}"),
        }
    }

    fn numbers(contents: &Contents) -> (Option<u64>, Option<u64>, Option<u64>) {
        (contents.start_line, contents.end_line, contents.lines_total)
    }

    #[test]
    fn whole_texts_have_numbers() {
        let tree = Tree::new();
        tree.file("dir/file", "one\r\ntwo")
            .link("link", "dir/file")
            .file("empty", "");
        let contents = read(&tree, "link", ReadRange::Whole);
        assert_eq!(
            (text(&contents), contents.path.as_str()),
            ("one\r\ntwo", "dir/file")
        );
        assert_eq!(numbers(&contents), (Some(1), Some(2), Some(2)));
        assert!(!contents.binary && !contents.truncated && contents.metadata.size == 8);
        let empty = read(&tree, "empty", ReadRange::Whole);
        assert_eq!((text(&empty), numbers(&empty)), ("", (None, None, Some(0))));
    }

    #[test]
    fn lines_are_found_from_both_ends() {
        let tree = Tree::new();
        let content: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        tree.file("lines", &content)
            .file("open", "a\nb\nc")
            .file("empty", "");
        let contents = read(&tree, "lines", lines(50, 2));
        assert_eq!(text(&contents), "line 50\nline 51\n");
        assert_eq!(numbers(&contents), (Some(50), Some(51), Some(100)));
        assert!(contents.truncated && !contents.cut);
        for (path, range, expected, first, last, total, more) in [
            ("lines", lines(100, 10), "line 100\n", 100, 100, 100, false),
            ("lines", lines(-2, 1), "line 99\n", 99, 99, 100, true),
            (
                "lines",
                lines(-2, 10),
                "line 99\nline 100\n",
                99,
                100,
                100,
                false,
            ),
            ("open", lines(0, 1), "a\n", 1, 1, 3, true),
            ("open", lines(-1, 9), "c", 3, 3, 3, false),
            ("open", lines(i64::MIN, 1), "a\n", 1, 1, 3, true),
            ("open", lines(2, u64::MAX), "b\nc", 2, 3, 3, false),
            (
                "open",
                ReadRange::Lines {
                    offset: 3,
                    limit: None,
                },
                "c",
                3,
                3,
                3,
                false,
            ),
        ] {
            let contents = read(&tree, path, range);
            assert_eq!(text(&contents), expected, "{range:?}");
            assert_eq!(
                numbers(&contents),
                (Some(first), Some(last), Some(total)),
                "{range:?}"
            );
            assert_eq!(contents.truncated, more, "{range:?}");
        }
        for (path, range, total) in [
            ("open", lines(4, 10), 3),
            ("open", lines(i64::MAX, u64::MAX), 3),
            ("lines", lines(101, 10), 100),
            ("lines", lines(7, 0), 100),
            ("empty", lines(1, 10), 0),
            ("empty", lines(-1, 10), 0),
        ] {
            let contents = read(&tree, path, range);
            assert_eq!(
                (text(&contents), numbers(&contents)),
                ("", (None, None, Some(total))),
                "{range:?}"
            );
        }
    }

    #[test]
    fn uncounted_lines_have_no_total() {
        let tree = Tree::new();
        tree.file("file", "a\nb\nc\n");
        let mut request = request(&tree, "file", lines(2, 1));
        request.totals = Totals::Skip;
        assert_eq!(
            numbers(&request.run(&context()).unwrap()),
            (Some(2), Some(2), None)
        );
        let mut request = super::tests::request(&tree, "file", lines(-1, 1));
        request.totals = Totals::Skip;
        let contents = request.run(&context()).unwrap();
        assert_eq!(
            (text(&contents), numbers(&contents)),
            ("c\n", (None, None, None))
        );
    }

    #[test]
    fn large_files_are_read_across_blocks() {
        let tree = Tree::new();
        let content: String = (1..=200_000).map(|n| format!("{n:09}\n")).collect();
        tree.file("large", &content);
        let contents = read(&tree, "large", lines(150_000, 2));
        assert_eq!(text(&contents), "000150000\n000150001\n");
        assert_eq!(contents.lines_total, Some(200_000));
        let contents = read(&tree, "large", lines(-100_000, 1));
        assert_eq!(
            (text(&contents), contents.start_line),
            ("000100001\n", Some(100_001))
        );
        let contents = read(&tree, "large", bytes(1_000_000, 10));
        assert_eq!(text(&contents), "000100001\n");
    }

    #[test]
    fn whole_reads_over_the_threshold_are_refused_with_facts() {
        let tree = Tree::new();
        tree.file("large", vec![b'a'; 500]);
        let mut request = request(&tree, "large", ReadRange::Whole);
        request.oversize = Oversize::Refuse { over: 100 };
        let failure = request.run(&context()).unwrap_err();
        assert!(
            matches!(
                failure,
                Error::TooLarge {
                    size: 500,
                    limit: 100,
                    ..
                }
            ),
            "{failure:?}"
        );
    }

    #[test]
    fn replies_are_cut_between_characters() {
        let tree = Tree::new();
        tree.file("file", "aé\nb");
        let cut = |range, max| {
            let mut request = request(&tree, "file", range);
            (request.max_bytes, request.oversize) = (Some(max), Oversize::Cut);
            request.run(&context()).unwrap()
        };
        let contents = cut(ReadRange::Whole, 2);
        assert_eq!(
            (text(&contents), contents.cut, contents.truncated),
            ("a", true, true)
        );
        assert_eq!(contents.lines_total, None);
        assert_eq!(text(&cut(ReadRange::Whole, 3)), "aé");
        let contents = cut(lines(1, 5), 2);
        assert_eq!((text(&contents), contents.cut), ("a", true));
        assert_eq!(numbers(&contents), (Some(1), Some(1), Some(2)));
        let contents = cut(ReadRange::Whole, 5);
        assert!(!contents.cut && !contents.truncated);
        let limits = Limits {
            max_file_size: 2,
            durability: Durability::Fast,
            ..Limits::default()
        };
        let mut request = request(&tree, "file", bytes(0, u64::MAX));
        request.max_bytes = Some(u64::MAX);
        let contents = request.run(&with_limits(limits)).unwrap();
        assert!(contents.cut && contents.truncated);
        assert_eq!(text(&contents), "a");
    }

    #[test]
    fn bytes_are_exact() {
        let tree = Tree::new();
        let all: Vec<u8> = (0..=255).collect();
        tree.file("data", &all);
        let contents = read(&tree, "data", bytes(10, 20));
        assert_eq!(contents.body, Body::Bytes((10..30).collect()));
        assert!(contents.binary && contents.truncated && contents.lines_total.is_none());
        assert_eq!(read(&tree, "data", bytes(250, 20)).body.as_bytes().len(), 6);
        for range in [bytes(256, 1), bytes(u64::MAX, u64::MAX), bytes(3, 0)] {
            assert!(
                read(&tree, "data", range).body.as_bytes().is_empty(),
                "{range:?}"
            );
        }
    }

    #[test]
    fn what_is_text_is_the_callers_choice() {
        let tree = Tree::new();
        tree.file("nul", "a\0b")
            .file("latin", b"caf\xe9")
            .file("late", "a".repeat(8192) + "\0");
        let with = |path, policy| {
            let mut request = request(&tree, path, ReadRange::Whole);
            request.text = policy;
            request.run(&context()).unwrap()
        };
        assert!(with("nul", TextPolicy::Detect).binary);
        assert_eq!(text(&with("nul", TextPolicy::Utf8)), "a\0b");
        assert!(with("latin", TextPolicy::Utf8).binary);
        assert!(!with("late", TextPolicy::Detect).binary);
        assert_eq!(with("late", TextPolicy::Never).body.as_bytes().len(), 8193);
        assert!(matches!(
            with("late", TextPolicy::Never).body,
            Body::Bytes(_)
        ));
        // One byte of what is no character is a byte, not half a character.
        assert_eq!(
            read(&tree, "latin", bytes(3, 1)).body,
            Body::Bytes(vec![0xe9])
        );
    }

    #[test]
    fn only_files_are_read() {
        let tree = Tree::new();
        tree.directory("dir")
            .fifo("pipe")
            .file("file", "")
            .link("out", "../outside/secret");
        tree.link("loop", "loop");
        for (path, kind) in [
            ("dir", ErrorKind::IsADirectory),
            ("", ErrorKind::IsADirectory),
            ("pipe", ErrorKind::NotAFile),
            ("none", ErrorKind::NotFound),
            ("file/x", ErrorKind::NotADirectory),
            ("out", ErrorKind::Outside),
            ("loop", ErrorKind::Loop),
        ] {
            let failure = request(&tree, path, ReadRange::Whole)
                .run(&context())
                .unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}");
        }
        let failure = request(&tree, "file", ReadRange::Whole)
            .run(&cancelled())
            .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn ranges_side_by_side_make_the_text(content in "[aéあ😀\n]{0,30}", step in 1_u64..7) {
            let tree = Tree::new();
            tree.file("file", &content);
            let mut joined = String::new();
            for offset in (0..content.len() as u64).step_by(step as usize) {
                joined.push_str(text(&read(&tree, "file", bytes(offset, step))));
            }
            prop_assert_eq!(joined, content);
        }

        #[test]
        fn line_ranges_agree_with_splitting(content in "[ab\n]{0,40}", offset in -12_i64..12, limit in 0_u64..12) {
            let tree = Tree::new();
            tree.file("file", &content);
            let all: Vec<&str> = content.split_inclusive('\n').collect();
            let first = match offset {
                ..0 => all.len().saturating_sub(offset.unsigned_abs() as usize),
                _ => (offset.unsigned_abs() as usize).saturating_sub(1).min(all.len()),
            };
            let expected: String = all[first..].iter().take(limit as usize).copied().collect();
            let contents = read(&tree, "file", lines(offset, limit));
            prop_assert_eq!(text(&contents), expected);
            prop_assert_eq!(contents.lines_total, Some(all.len() as u64));
        }
    }
}
