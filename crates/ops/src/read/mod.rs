//! Reads a file or a part of it, by bytes or by lines.
//!
//! Memory use is proportional to what is returned, which [`crate::Limits::max_file_size`] bounds. The rest of a file is
//! only counted, a block at a time.

mod characters;
mod decoded;
mod large_text;
mod reader;
#[cfg(test)]
mod tests;

use encoding_rs::Encoding;
use sandbox::{Metadata, OpenFile};

use crate::context::Context;
use crate::decompress::decompressed;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::text::lines;
use crate::version::Version;
use decoded::{MARK, marked_encoding};
pub use large_text::{LargeText, ReadOrLeft};
use reader::Reader;

/// The largest file that is read inline: longer work belongs to other threads.
const INLINE_MAX: usize = 32 * 1024;

/// From how many bytes on a read is large.
pub(crate) const LARGE: u64 = 256 * 1024;

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

/// What happens to a file that is too large to be returned whole.
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
    /// As [`TextPolicy::Detect`]; then UTF-16 if the file begins with its mark, then windows-1252 if the file has no
    /// NUL byte and no other byte that text does not have.
    DetectLegacy,
    /// In this encoding, whatever the bytes are; those that are none of its characters are replaced.
    Encoding(&'static Encoding),
    /// UTF-8, with NUL bytes or not.
    Utf8,
    /// Nothing: the bytes are returned as they are.
    Never,
}

/// Whether all lines of a file are counted if only some are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Totals {
    /// Yes, which reads all of it, a block at a time.
    Count,
    /// No: reading ends with what is returned, and lines counted from the end have no numbers.
    Skip,
}

/// What is read of a compressed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredForm {
    /// Its bytes.
    #[default]
    AsStored,
    /// The decompressed content of gzip and zstd; other files as they are.
    Decompressed,
}

/// Reads a file or a part of it.
#[derive(Debug)]
pub struct Read {
    /// The file; links are followed.
    pub place: Place,
    /// Which part.
    pub range: ReadRange,
    /// The most bytes to return; the process's own limit holds as well.
    pub max_bytes: Option<u64>,
    /// What happens to a file that is too large to be returned whole.
    pub oversize: Oversize,
    /// What counts as text.
    pub text: TextPolicy,
    /// Whether a line range counts the file's lines.
    pub totals: Totals,
    /// What is read of a compressed file.
    pub form: StoredForm,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Valid UTF-8.
    Text(String),
    /// Anything else, or content that was requested as bytes.
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
    /// The file's own encoding, if the text was decoded from another than UTF-8.
    pub decoded_from: Option<&'static str>,
    /// The file as it was when it was opened; its size is that of the whole file.
    pub metadata: Metadata,
    /// How many bytes the whole content has: as many as the file, unless it was decompressed.
    pub size: u64,
    /// The file's version, if the caller wants it. It is never newer than what was read.
    pub version: Option<Version>,
    /// Where what was read begins in the file, or in the decoded text.
    pub start_byte: u64,
    /// Where it ends.
    pub end_byte: u64,
    /// How many lines the file has; for whole texts, and for counted line ranges if counting did not take too long.
    pub lines_total: Option<u64>,
    /// The number of the first line returned, from 1; for whole texts and line ranges.
    pub start_line: Option<u64>,
    /// The number of the last line returned, whole or cut.
    pub end_line: Option<u64>,
    /// Whether more follows after what was returned.
    pub truncated: bool,
    /// Whether it was cut by the largest size of a reply and not by the range.
    pub cut: bool,
}

impl Operation for Read {
    type Outcome = Contents;

    fn run(self, context: &Context) -> Result<Contents> {
        self.read(self.place.open_file(Wanted::File)?, context)
    }
}

/// The outcome of a try to read without waiting.
#[derive(Debug)]
pub enum InlineRead {
    /// It is done.
    Done(Result<Contents>),
    /// The rest has to run on a thread that may wait.
    Later(OpenedRead),
}

/// A read that was begun inline. It keeps the open file, so that nothing is looked up twice.
#[derive(Debug)]
pub struct OpenedRead {
    request: Read,
    /// `None` if looking the file up would have had to wait.
    open: Option<OpenFile>,
}

impl OpenedRead {
    /// Tells whether the read is so long that other calls should get turns in between.
    #[must_use]
    pub fn is_large(&self) -> bool {
        let size = self.open.as_ref().map_or(0, |open| open.metadata.size);
        let reads = match self.request.range {
            _ if self.is_read_whole() => size,
            ReadRange::Whole | ReadRange::Lines { .. } => size,
            ReadRange::Bytes { offset, limit } => {
                limit.unwrap_or(u64::MAX).min(size.saturating_sub(offset))
            }
        };
        reads > LARGE || self.request.form == StoredForm::Decompressed
    }

    /// Whether the file is decoded whole to find the part. If it is not known without waiting, it might be.
    fn is_read_whole(&self) -> bool {
        match (self.request.text, &self.open) {
            (TextPolicy::Encoding(_), _) => true,
            (TextPolicy::DetectLegacy, Some(open)) if open.metadata.size > LARGE => {
                let mark = open.try_beginning_inline(MARK);
                mark.is_none_or(|mark| marked_encoding(&mark).is_some())
            }
            _ => false,
        }
    }
}

impl Operation for OpenedRead {
    type Outcome = Contents;

    fn run(self, context: &Context) -> Result<Contents> {
        match self.open {
            Some(open) => self.request.read(open, context),
            None => self.request.run(context),
        }
    }
}

impl Read {
    /// Reads a small file that is in memory, without waiting for anything.
    #[must_use]
    pub fn try_inline(self, context: &Context) -> InlineRead {
        if self.form == StoredForm::Decompressed {
            // A small file may unfold to a large one.
            return InlineRead::Later(OpenedRead {
                request: self,
                open: None,
            });
        }
        let mut open = self.place.try_open_inline();
        match open.take_if(|open| open.try_load_inline(INLINE_MAX)) {
            Some(loaded) => InlineRead::Done(self.read(loaded, context)),
            None => InlineRead::Later(OpenedRead {
                request: self,
                open,
            }),
        }
    }

    pub(crate) fn read(&self, open: OpenFile, context: &Context) -> Result<Contents> {
        let stored = open.metadata.size;
        let version = self.place.version_of(&open, &context.cancel)?;
        let mut contents = match self.form {
            StoredForm::AsStored => self.read_content(open, context)?,
            StoredForm::Decompressed => {
                let open = decompressed(open, context)?;
                self.read_content(open, context)?
            }
        };
        contents.metadata.size = stored;
        contents.version = version;
        Ok(contents)
    }

    fn read_content(&self, open: OpenFile, context: &Context) -> Result<Contents> {
        let reader = Reader {
            open,
            request: self,
            context,
        };
        match (reader.whole_encoding()?, self.range) {
            (Some(encoding), _) => reader.decoded(encoding),
            (None, ReadRange::Whole) => reader.whole(),
            (None, ReadRange::Bytes { offset, limit }) => reader.bytes(offset, limit),
            (None, ReadRange::Lines { offset, limit }) => reader.lines(offset, limit),
        }
    }
}

impl Contents {
    /// Numbers the returned lines from `first` on, and sets how many the file has. Without lines, no numbers are set.
    fn number_lines(&mut self, first: u64) -> u64 {
        let lines = self.body.line_count();
        if lines > 0 {
            self.start_line = Some(first);
            self.end_line = Some(first + lines - 1);
        }
        lines
    }
}
