//! Reads pieces of open files by position. No function here keeps more in memory than it returns.

use std::io;

use sandbox::OpenFile;

use crate::context::Cancel;
use crate::error::{Error, Result};

/// The most that is read between two checks of the deadline.
const PIECE: usize = 1024 * 1024;

/// Reads once at `offset`; 0 is the end of the file. No file reaches an offset that the system cannot count.
pub(crate) fn read_at(open: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize> {
    if i64::try_from(offset).is_err() {
        return Ok(0);
    }
    loop {
        match open.read_at(buffer, offset) {
            Ok(length) => return Ok(length),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let (path, reason) = (open.path.clone(), error.to_string());
                return Err(Error::Io {
                    operation: "read",
                    path,
                    reason,
                });
            }
        }
    }
}

/// Reads at `offset` until the buffer is full or the file ends.
fn fill_at(open: &OpenFile, buffer: &mut [u8], offset: u64, cancel: &Cancel) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        cancel.check_and_give_way()?;
        let end = rest.len().min(PIECE);
        let room = rest.get_mut(..end).unwrap_or_default();
        let length = read_at(open, room, offset.saturating_add(filled as u64))?;
        filled += length;
        // If a read stops short at the known end of the file, no further read is needed to find the end.
        let known_end = offset.saturating_add(filled as u64) >= open.metadata.size;
        if length == 0 || (length < end && known_end) {
            break;
        }
    }
    Ok(filled)
}

/// The file as a source for the functions of [`crate::text`].
pub(crate) fn reader<'a>(
    open: &'a OpenFile,
    cancel: &'a Cancel,
) -> impl FnMut(u64, &mut [u8]) -> Result<usize> + 'a {
    move |offset, buffer| fill_at(open, buffer, offset, cancel)
}

/// Reads from `offset` up to `limit` bytes or the end of the file, whichever comes first. Memory use is proportional to
/// what is there, not to what is requested.
pub(crate) fn read_up_to(
    open: &OpenFile,
    offset: u64,
    limit: u64,
    cancel: &Cancel,
) -> Result<Vec<u8>> {
    // One byte more than the file should have: if it stays empty, the read has found the end.
    let expected = open
        .metadata
        .size
        .saturating_sub(offset)
        .saturating_add(1)
        .min(limit);
    let mut bytes = vec![0; usize::try_from(expected).unwrap_or(usize::MAX)];
    let mut filled = fill_at(open, &mut bytes, offset, cancel)?;
    // A file that grew since it was opened.
    while filled == bytes.len() && (filled as u64) < limit {
        let more = limit.saturating_sub(filled as u64).min(PIECE as u64);
        bytes.resize(filled + more as usize, 0);
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        filled += fill_at(open, rest, offset.saturating_add(filled as u64), cancel)?;
    }
    bytes.truncate(filled);
    Ok(bytes)
}
