//! Pure functions on text: lines, encodings, edits, patches, near names.
//!
//! Nothing here touches the file system. Functions for texts larger than memory take a [`ReadAt`], so that its caller
//! decides where bytes come from, checks its own deadline there, and sees every byte of a forward pass exactly once and
//! in order (enough to validate on the way).

pub mod edit;
pub mod encoding;
pub(crate) mod excerpts;
pub(crate) mod folded;
pub mod line_diff;
pub(crate) mod line_index;
pub mod lines;
pub(crate) mod near_lines;
pub mod near_names;
pub mod patch;
pub(crate) mod pieces;
pub(crate) mod replace;
pub mod string_search;
pub(crate) mod trimmed;

use crate::error::Result;

/// Reads bytes at an offset into the buffer and says how many.
///
/// Fewer than asked for means that the text ends there; 0 means that the offset is at or after its end.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize> + 'a;

/// Makes a [`ReadAt`] of a text in memory.
pub fn reader(text: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<usize> + '_ {
    move |offset, buffer| {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|from| text.get(from..))
            .unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

/// Cuts a text for a message: at most `limit` bytes, never inside a character, with `…` where it was cut.
#[must_use]
pub fn excerpt(text: &[u8], limit: usize) -> String {
    let head = text.get(..limit).unwrap_or(text);
    let shown = String::from_utf8_lossy(encoding::trim_end(head));
    if head.len() < text.len() {
        format!("{shown}…")
    } else {
        shown.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{excerpt, reader};

    #[test]
    fn reader_ends_where_the_text_ends() {
        let mut read = reader(b"hello");
        let mut buffer = [0; 3];
        assert_eq!(read(0, &mut buffer).unwrap(), 3);
        assert_eq!(&buffer, b"hel");
        assert_eq!(read(3, &mut buffer).unwrap(), 2);
        assert_eq!(read(5, &mut buffer).unwrap(), 0);
        assert_eq!(read(u64::MAX, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn excerpts_are_cut_between_characters() {
        assert_eq!(excerpt("añb".as_bytes(), 2), "a…");
        assert_eq!(excerpt("añb".as_bytes(), 3), "añ…");
        assert_eq!(excerpt("añb".as_bytes(), 4), "añb");
    }
}
