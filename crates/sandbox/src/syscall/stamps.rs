//! Checks before anything is remembered about a file or directory: do its times show every change?

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs as sys;

use super::{Errno, SysResult, before, retry};

/// ext4 and Btrfs: every change shows in the times of a file or directory, stores through a mapping included.
const OF_ALL: [sys::FsWord; 2] = [0xEF53, 0x9123_683E];
/// XFS: the same, but two directories that change places within one do not show it themselves.
const OF_CONTENT: [sys::FsWord; 1] = [0x5846_5342];
/// tmpfs: a page that was read through a mapping can be stored into without a trace; directories have no pages.
const OF_DIRECTORIES: [sys::FsWord; 1] = [0x0102_1994];

/// How often an open is tried again that a lease of our own stands against, and how long each pause is: the lease is given
/// back a moment later, but its thread may have to wait for a processor.
const LEASE_TRIES: usize = 1000;
const LEASE_PAUSE: Duration = Duration::from_millis(1);

/// What the times of a file system's entries reveal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamping {
    /// Every change of every file and directory, and that a directory was moved.
    All,
    /// Every change of every file and directory.
    Content,
    /// Every change of a directory's list, and that it was moved.
    Directories,
    /// Nothing to rely on.
    Unknown,
}

impl Stamping {
    /// A file's times show every change of its content.
    pub(crate) fn shows_content(self) -> bool {
        matches!(self, Stamping::All | Stamping::Content)
    }

    /// A directory's times show every change of its list.
    pub(crate) fn shows_lists(self) -> bool {
        !matches!(self, Stamping::Unknown)
    }

    /// A directory's times show that it got another name or another place, whatever took its own.
    pub(crate) fn shows_moves(self) -> bool {
        matches!(self, Stamping::All | Stamping::Directories)
    }
}

/// Tells what the times of the entries of a file system show.
pub(crate) fn stamping_unchecked(fd: BorrowedFd<'_>) -> Stamping {
    before("fstatfs");
    match sys::fstatfs(fd).map(|stat| stat.f_type) {
        Ok(kind) if OF_ALL.contains(&kind) => Stamping::All,
        Ok(kind) if OF_CONTENT.contains(&kind) => Stamping::Content,
        Ok(kind) if OF_DIRECTORIES.contains(&kind) => Stamping::Directories,
        _ => Stamping::Unknown,
    }
}

/// Whether no process has the file open for writing. `file` must be open for reading only.
pub(crate) fn is_unwritten_unchecked(file: BorrowedFd<'_>) -> bool {
    before("lease");
    lease::is_unwritten(file)
}

/// Tries an open again that was disturbed. Ours do not wait, so the kernel refuses one for writing while a lease is held; as
/// long as that may be a lease of our own, it is tried again.
pub(super) fn retry_beside_leases<T>(mut call: impl FnMut() -> SysResult<T>) -> SysResult<T> {
    for _ in 0..LEASE_TRIES {
        let is_held = lease::is_any_held();
        match retry(&mut call) {
            Err(Errno::AGAIN) if is_held || lease::is_any_held() => {
                std::thread::sleep(LEASE_PAUSE);
            }
            result => return result,
        }
    }
    call()
}
