//! An edited text as a list of pieces of the original and of inserted text. The unchanged content is not held.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::text::ReadAt;

/// One change of a text: some bytes are replaced by others.
#[derive(Debug, Clone)]
pub(crate) struct SharedSplice {
    /// The bytes to remove.
    pub(crate) range: Range<u64>,
    /// The bytes to insert. Many places of one edit share them.
    pub(crate) new: Arc<[u8]>,
}

/// Where the bytes of a piece are.
#[derive(Debug, Clone)]
pub(crate) enum PieceSource {
    /// In the text as it was, from here on.
    Kept(u64),
    /// In what an edit put in, from here on.
    New(Arc<[u8]>, usize),
}

/// A run of bytes.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Where it starts in the text as it is now.
    pub(crate) start: u64,
    /// How many bytes it has.
    pub(crate) length: u64,
    /// Where they are.
    pub(crate) source: PieceSource,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    /// The part of it from one place of the text to another.
    fn part(&self, from: u64, to: u64) -> Option<Piece> {
        let (from, to) = (from.max(self.start), to.min(self.end()));
        let length = to.checked_sub(from).filter(|length| *length > 0)?;
        let skipped = from - self.start;
        let source = match &self.source {
            PieceSource::Kept(offset) => PieceSource::Kept(offset + skipped),
            PieceSource::New(text, offset) => {
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                PieceSource::New(Arc::clone(text), offset.saturating_add(skipped))
            }
        };
        Some(Piece {
            start: from,
            length,
            source,
        })
    }

    /// The bytes that an edit put in; nothing for what stayed.
    pub(crate) fn new_bytes(&self) -> Option<&[u8]> {
        match &self.source {
            PieceSource::Kept(_) => None,
            PieceSource::New(text, offset) => {
                let length = usize::try_from(self.length).unwrap_or(usize::MAX);
                text.get(*offset..offset.saturating_add(length))
            }
        }
    }

    /// Reads from a place inside it.
    fn read(&self, base: &mut ReadAt<'_>, at: u64, buffer: &mut [u8]) -> Result<usize> {
        let inside = at - self.start;
        let left = usize::try_from(self.length - inside).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        match &self.source {
            PieceSource::Kept(offset) => base(offset + inside, buffer),
            PieceSource::New(..) => {
                let inside = usize::try_from(inside).unwrap_or(usize::MAX);
                let bytes = self.new_bytes().and_then(|bytes| bytes.get(inside..));
                let bytes = bytes.and_then(|bytes| bytes.get(..wanted));
                let bytes = bytes.unwrap_or_default();
                buffer.copy_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }
}

/// A text as it is after edits.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: Vec<Piece>,
    base_length: u64,
}

impl Pieces {
    /// A text of this length, as it is.
    pub(crate) fn whole(length: u64) -> Pieces {
        let whole = Piece {
            start: 0,
            length,
            source: PieceSource::Kept(0),
        };
        Pieces {
            pieces: if length == 0 { Vec::new() } else { vec![whole] },
            base_length: length,
        }
    }

    /// How many bytes the text has now.
    pub(crate) fn length(&self) -> u64 {
        self.pieces.last().map_or(0, Piece::end)
    }

    /// The pieces, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// Reads the text as it is now; `base` reads it as it was.
    pub(crate) fn read(
        &self,
        base: &mut ReadAt<'_>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let mut filled = 0;
        let first = self.pieces.partition_point(|piece| piece.end() <= offset);
        for piece in self.pieces.get(first..).unwrap_or_default() {
            let room = buffer.get_mut(filled..).unwrap_or_default();
            let at = offset.saturating_add(filled as u64);
            if room.is_empty() || at < piece.start {
                break;
            }
            let count = piece.read(base, at, room)?;
            filled += count;
            if (count as u64) < piece.end() - at && filled < buffer.len() {
                // The file became shorter meanwhile.
                break;
            }
        }
        Ok(filled)
    }

    /// Makes changes; they are in order and do not overlap.
    pub(crate) fn splice(&mut self, splices: &[SharedSplice]) {
        let old = std::mem::take(&mut self.pieces);
        let mut rebuilt = Rebuilt {
            pieces: Vec::with_capacity(old.len() + 2 * splices.len()),
            length: 0,
        };
        let (mut rest, mut done) = (old.as_slice(), 0);
        for splice in splices {
            rest = rebuilt.keep(rest, done, splice.range.start);
            rebuilt.add(&splice.new);
            done = splice.range.end;
        }
        rebuilt.keep(rest, done, u64::MAX);
        self.pieces = rebuilt.pieces;
    }

    /// The ranges in which the text differs from the original, in order; an empty range marks a removal.
    pub(crate) fn changes(&self) -> Vec<Range<u64>> {
        let mut changes: Vec<Range<u64>> = Vec::new();
        let mut next_kept = 0;
        for piece in &self.pieces {
            match piece.source {
                PieceSource::Kept(offset) => {
                    if offset != next_kept {
                        note(&mut changes, piece.start..piece.start);
                    }
                    next_kept = offset + piece.length;
                }
                PieceSource::New(..) => note(&mut changes, piece.start..piece.end()),
            }
        }
        if next_kept != self.base_length {
            note(&mut changes, self.length()..self.length());
        }
        changes
    }
}

/// Adds a change, which may continue the last one.
fn note(changes: &mut Vec<Range<u64>>, change: Range<u64>) {
    match changes.last_mut() {
        Some(last) if last.end == change.start => last.end = change.end,
        _ => changes.push(change),
    }
}

struct Rebuilt {
    pieces: Vec<Piece>,
    length: u64,
}

impl Rebuilt {
    /// Takes over the text between two places, and returns the pieces that may contain more.
    fn keep<'p>(&mut self, pieces: &'p [Piece], from: u64, to: u64) -> &'p [Piece] {
        let skipped = pieces.partition_point(|piece| piece.end() <= from);
        let pieces = pieces.get(skipped..).unwrap_or_default();
        let kept = pieces.iter().take_while(|piece| piece.start < to);
        for piece in kept.filter_map(|piece| piece.part(from, to)) {
            self.push(piece);
        }
        pieces
    }

    fn add(&mut self, new: &Arc<[u8]>) {
        if !new.is_empty() {
            self.push(Piece {
                start: 0,
                length: new.len() as u64,
                source: PieceSource::New(Arc::clone(new), 0),
            });
        }
    }

    fn push(&mut self, mut piece: Piece) {
        piece.start = self.length;
        self.length += piece.length;
        self.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;
    use proptest::prelude::*;

    fn text_of(pieces: &Pieces, base: &[u8], step: usize) -> Vec<u8> {
        let (mut text, mut buffer) = (Vec::new(), vec![0; step]);
        loop {
            let mut base = reader(base);
            let count = pieces.read(&mut base, text.len() as u64, &mut buffer);
            match count.unwrap() {
                0 => return text,
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
    }

    #[test]
    fn changes_are_told_where_they_are() {
        let mut pieces = Pieces::whole(10);
        let splice = |range, new: &[u8]| SharedSplice {
            range,
            new: Arc::from(new),
        };
        pieces.splice(&[splice(1..2, b"xyz"), splice(4..6, b"")]);
        assert_eq!(pieces.changes(), [1..4, 6..6]);
        pieces.splice(&[splice(8..10, b"")]);
        assert_eq!(pieces.changes(), [1..4, 6..6, 8..8]);
        assert_eq!(text_of(&pieces, b"0123456789", 3), b"0xyz2367");
    }

    proptest! {
        #[test]
        fn edits_one_after_the_other_agree_with_edits_of_a_vector(
            base in proptest::collection::vec(any::<u8>(), 0..30),
            edits in proptest::collection::vec(
                (any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[a-z]{0,5}"), 0..6),
            step in 1usize..9,
        ) {
            let mut expected = base.clone();
            let mut pieces = Pieces::whole(base.len() as u64);
            for (a, b, new) in edits {
                let (a, b) = (a.index(expected.len() + 1), b.index(expected.len() + 1));
                let range = a.min(b)..a.max(b);
                expected.splice(range.clone(), new.bytes());
                let range = range.start as u64..range.end as u64;
                pieces.splice(&[SharedSplice { range, new: Arc::from(new.as_bytes()) }]);
                prop_assert_eq!(pieces.length(), expected.len() as u64);
                prop_assert_eq!(&text_of(&pieces, &base, step), &expected);
            }
        }
    }
}
