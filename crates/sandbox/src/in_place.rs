//! Rewrites a file in place: the only way to change one that is a mount point, because no rename replaces it.
//!
//! This is not atomic. A reader can see a part of it, and a crash can leave one. Callers say so in their reply.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crate::change::EntryRef;
use crate::metadata::{FileKind, Metadata};
use crate::syscall::{self, Errno, Purpose, SysResult};

/// How much is written at a time.
const BLOCK: usize = 256 * 1024;

/// Puts all of `content` into the file that is mounted at an entry, and returns that file.
///
/// `old` is the file that the caller looked at, if it did; another one is not touched.
pub(crate) fn rewrite(
    content: &File,
    entry: EntryRef<'_>,
    old: Option<&Metadata>,
) -> SysResult<File> {
    let (dir, name) = entry;
    if !syscall::is_mount_point_unchecked(dir, name)? {
        return Err(Errno::BUSY);
    }
    // Security: opening a device can act, so the kind is known before anything is opened.
    let looked_at = syscall::stat_at_unchecked(dir, name)?;
    let opened = match looked_at.kind {
        FileKind::File => syscall::open_content_unchecked(dir, name, Purpose::Write)?,
        _ => return Err(Errno::BUSY),
    };
    let before = syscall::stat_unchecked(opened.as_fd())?;
    let expected = old.unwrap_or(&looked_at);
    if before.kind != FileKind::File || !before.same_file(expected) {
        return Err(Errno::BUSY);
    }
    let target = File::from(opened);
    let size = syscall::stat_content_unchecked(content.as_fd())?.size;
    // Space first, so that a full disk is found before a byte is changed.
    syscall::reserve_unchecked(target.as_fd(), 0, size)?;
    copy(content, &target).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Security: the new content must not run with the rights of the old one.
    if before.mode & 0o6000 != 0 {
        syscall::set_mode_unchecked(target.as_fd(), before.mode & 0o777)?;
    }
    Ok(target)
}

/// Writes over what is there and cuts off what is behind it, so that the file is never empty in between.
fn copy(from: &File, to: &File) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut position = 0;
    loop {
        let length = from.read_at(&mut block, position)?;
        let Some(read) = block.get(..length).filter(|read| !read.is_empty()) else {
            return to.set_len(position);
        };
        to.write_all_at(read, position)?;
        position += length as u64;
    }
}
