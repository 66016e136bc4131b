//! Fits a range of bytes to whole characters, and makes text of it.

use std::ops::Range;

use crate::text::encoding;

/// The most bytes of a character after its first.
pub(super) const CONTINUATION: u64 = 3;

/// Moves both ends of `asked` to where characters begin, so that text stays text. `None` where an end lies inside
/// something that is no character.
///
/// An end that a limit cut moves back, because the limit holds; any other moves on.
pub(super) fn fit_characters(
    bytes: &[u8],
    asked: &Range<usize>,
    cut: bool,
) -> Option<Range<usize>> {
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
pub(super) fn part(mut bytes: Vec<u8>, range: Range<usize>) -> Vec<u8> {
    bytes.truncate(range.end);
    bytes.drain(..range.start.min(bytes.len()));
    bytes
}

/// Makes text of a range of bytes, or gives the bytes back. ASCII is taken as it is; for anything else a check with vector
/// instructions and a copy cost less than the standard library's check.
pub(super) fn text_of(bytes: Vec<u8>, range: Range<usize>) -> Result<String, Vec<u8>> {
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
