//! Aligns a range of bytes to whole characters, and converts it to text.

use std::ops::Range;

use crate::text::encoding;

/// The most bytes of a character after its first.
pub(super) const CONTINUATION: u64 = 3;

/// Moves both ends of `asked` to the beginning of a character, so that text stays text. `None` if an end is inside
/// something that is not a character.
///
/// An end that was cut by a limit moves back, because the limit holds; any other end moves forward.
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

/// Cuts a part out of a buffer, without a copy if it begins at the buffer's start.
pub(super) fn part(mut bytes: Vec<u8>, range: Range<usize>) -> Vec<u8> {
    bytes.truncate(range.end);
    bytes.drain(..range.start.min(bytes.len()));
    bytes
}

/// The largest text that is copied although it is ASCII.
const COPIED_MAX: usize = 64 * 1024;

/// Turns bytes into text, or returns the bytes. A check with vector instructions and a copy cost less than the standard
/// library's check; only large ASCII is taken as it is, to save the memory.
pub(super) fn text_of(bytes: Vec<u8>, range: Range<usize>) -> Result<String, Vec<u8>> {
    let wanted = bytes.get(range.clone()).unwrap_or_default();
    if wanted.len() > COPIED_MAX && wanted.is_ascii() {
        return String::from_utf8(part(bytes, range))
            .map_err(std::string::FromUtf8Error::into_bytes);
    }
    match encoding::utf8(wanted) {
        Some(text) => Ok(text.to_owned()),
        None => Err(bytes),
    }
}
