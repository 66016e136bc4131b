//! The lines of record files, a part of a file at a time: no history is held in memory whole.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::journal::open_record;
use super::store::{Store, errno_of};
use crate::name::Name;
use crate::syscall::{Errno, SysResult};

/// How much of a file is read at a time.
const READ_AT_ONCE: usize = 256 * 1024;
/// No line of ours is nearly as long; what has no end for longer is no record file.
const LINE_MAX: usize = 16 * 1024 * 1024;
/// The parts of files that are kept for the next look, and their size.
const BLOCKS_HELD: usize = 8;
const BLOCK: u64 = 64 * 1024;

/// Visits the whole lines of a file from a position on, each with where it begins; returns where the last of them ends.
///
/// A line without its end is being written, or its process died there.
pub(super) fn each_line(
    file: &File,
    from: u64,
    visit: &mut dyn FnMut(u64, &[u8]),
) -> SysResult<u64> {
    let mut buffer = vec![0; READ_AT_ONCE];
    let (mut start, mut held) = (from, 0);
    loop {
        if held == buffer.len() {
            if held >= LINE_MAX {
                return Err(Errno::FBIG);
            }
            buffer.resize(held * 2, 0);
        }
        let free = buffer.get_mut(held..).unwrap_or_default();
        let read = match file.read_at(free, start + held as u64) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| errno_of(&error))?,
        };
        if read == 0 {
            return Ok(start);
        }
        held += read;
        let mut done = 0;
        let text = buffer.get(..held).unwrap_or_default();
        for end in memchr::memchr_iter(b'\n', text) {
            visit(start + done as u64, text.get(done..end).unwrap_or_default());
            done = end + 1;
        }
        buffer.copy_within(done..held, 0);
        start += done as u64;
        held -= done;
    }
}

/// A part of a record file.
#[derive(Debug)]
struct LineBlock {
    file: usize,
    start: u64,
    bytes: Vec<u8>,
}

/// Reads single lines where they are known to be. Lines near one another cost one read.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    /// The one that was used last is the last.
    held: RefCell<Vec<LineBlock>>,
}

impl LineReader {
    /// Lets `look` see the line that begins at a position of a file; `None` if it is not there any more.
    pub(super) fn line<T>(
        &self,
        store: &Store,
        (file, name): (usize, &Name),
        at: u64,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let start = at - at % BLOCK;
        let mut held = self.held.borrow_mut();
        let is_it = |block: &LineBlock| block.file == file && block.start == start;
        let block = match held.iter().position(is_it) {
            Some(index) => held.remove(index),
            None => {
                if held.len() >= BLOCKS_HELD {
                    held.remove(0);
                }
                let bytes = read_block(store, name, start)?;
                LineBlock { file, start, bytes }
            }
        };
        let rest = block.bytes.get(usize::try_from(at - start).ok()?..)?;
        let seen = match memchr::memchr(b'\n', rest) {
            Some(end) => Some(look(rest.get(..end)?)),
            None => read_line(store, name, at).map(|line| look(&line)),
        };
        held.push(block);
        seen
    }
}

fn read_block(store: &Store, name: &Name, start: u64) -> Option<Vec<u8>> {
    let (file, _) = open_record(store, name).ok()??;
    let mut bytes = vec![0; BLOCK as usize];
    let mut length = 0;
    while let Some(free) = bytes.get_mut(length..).filter(|free| !free.is_empty()) {
        match file.read_at(free, start + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    bytes.truncate(length);
    Some(bytes)
}

/// Reads a line that continues beyond its block.
fn read_line(store: &Store, name: &Name, at: u64) -> Option<Vec<u8>> {
    let (file, _) = open_record(store, name).ok()??;
    let mut line = Vec::new();
    let mut piece = vec![0; BLOCK as usize];
    while line.len() < LINE_MAX {
        let read = file.read_at(&mut piece, at + line.len() as u64).ok()?;
        let read = piece.get(..read).filter(|read| !read.is_empty())?;
        match memchr::memchr(b'\n', read) {
            Some(end) => {
                line.extend_from_slice(read.get(..end)?);
                return Some(line);
            }
            None => line.extend_from_slice(read),
        }
    }
    None
}
