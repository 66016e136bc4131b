//! A text that is too large to be held: it was read once and found to be text, and can be read again piece by piece.

use std::hash::{BuildHasher, RandomState};

use sandbox::OpenFile;

use super::{Contents, Oversize, Read, ReadRange, StoredForm, TextPolicy};
use crate::context::{Cancel, Context};
use crate::error::{Error, Result, Wanted};
use crate::read_at::read_up_to;
use crate::text::encoding;

/// A text in its open file. Whoever replaces the file leaves this one as it is; a change in place is noticed.
#[derive(Debug)]
pub struct LargeText {
    open: OpenFile,
    pieces: Vec<TextPiece>,
    digests: RandomState,
    turn: Cancel,
}

/// A piece that was read once.
#[derive(Debug, Clone, Copy)]
struct TextPiece {
    start: u64,
    length: u64,
    /// What its bytes were, in short.
    digest: u64,
}

/// What is made of a file that may be large.
#[derive(Debug)]
pub enum ReadOrLeft {
    /// It was read.
    Read(Contents),
    /// It is a large text, and is left in its file.
    Left(LargeText),
}

impl LargeText {
    /// The most bytes of a piece.
    pub const PIECE: usize = 256 * 1024;

    /// The size of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.open.metadata.size
    }

    /// Whose turns it is read in, however long that takes.
    #[must_use]
    pub fn turn(&self) -> &Cancel {
        &self.turn
    }

    /// Its resolved path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.open.path
    }

    /// Whose call it is read for.
    #[must_use]
    pub fn client(&self) -> &str {
        self.turn.client()
    }

    /// Reads a piece again; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or its bytes are not what they were.
    pub fn piece(&self, number: usize) -> Result<Option<String>> {
        let Some(piece) = self.pieces.get(number) else {
            return Ok(None);
        };
        let bytes = read_up_to(&self.open, piece.start, piece.length, &self.turn)?;
        let is_same = self.digests.hash_one(&bytes) == piece.digest;
        let text = String::from_utf8(bytes).ok().filter(|_| is_same);
        text.map(Some).ok_or_else(|| Error::Io {
            operation: "read",
            path: self.open.path.clone(),
            reason: "the file changed while it was read".to_owned(),
        })
    }

    /// Reads a file once and tells each piece; gives the file back if it is not UTF-8 throughout.
    fn checked(
        open: OpenFile,
        cancel: &Cancel,
        mut told: impl FnMut(&str),
    ) -> Result<Result<LargeText, OpenFile>> {
        let (size, digests) = (open.metadata.size, RandomState::new());
        let (mut start, mut pieces) = (0, Vec::new());
        while start < size {
            let wanted = (size - start).min(LargeText::PIECE as u64);
            let mut bytes = read_up_to(&open, start, wanted, cancel)?;
            if start + (bytes.len() as u64) < size {
                // The last character may go on in the next piece.
                bytes.truncate(encoding::trim_end(&bytes).len());
            }
            let Some(text) = encoding::utf8(&bytes).filter(|text| !text.is_empty()) else {
                return Ok(Err(open));
            };
            told(text);
            let length = bytes.len() as u64;
            pieces.push(TextPiece {
                start,
                length,
                digest: digests.hash_one(&bytes),
            });
            start += length;
        }
        Ok(Ok(LargeText {
            open,
            pieces,
            digests,
            turn: cancel.untiring(),
        }))
    }
}

impl Read {
    /// Reads like [`crate::Operation::run`], but leaves a whole UTF-8 text of more than `over` bytes in its file and tells its pieces
    /// once.
    pub fn run_or_leave(
        self,
        over: u64,
        context: &Context,
        told: impl FnMut(&str),
    ) -> Result<ReadOrLeft> {
        let open = self.place.open_file(Wanted::File)?;
        let size = open.metadata.size;
        let is_left = matches!(self.oversize, Oversize::Refuse { over } if size <= over)
            && self.range == ReadRange::Whole
            && self.text == TextPolicy::Utf8
            && self.form == StoredForm::AsStored;
        if size <= over || !is_left {
            return self.read(open, context).map(ReadOrLeft::Read);
        }
        match LargeText::checked(open, &context.cancel, told)? {
            Ok(text) => Ok(ReadOrLeft::Left(text)),
            Err(open) => self.read(open, context).map(ReadOrLeft::Read),
        }
    }
}
