//! The calls for processes that work on the same files: locks that others respect, and look-ups that bypass caches.

use std::os::fd::BorrowedFd;

use rustix::fs::{self as sys, AtFlags, FlockOperation};

use super::{Errno, SysResult, before};
use crate::name::Name;

/// How a file is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HowLocked {
    /// Together with others who lock it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// Tries to lock an open file or directory. Returns whether it succeeded; also true if the file
/// system has no such locks.
pub(crate) fn hold_unchecked(file: BorrowedFd<'_>, how: HowLocked) -> SysResult<bool> {
    match hold_surely_unchecked(file, how) {
        // NFS locks neither directories nor, alone, what is open for reading only.
        Err(Errno::BADF | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NOLCK) => {
            Ok(true)
        }
        held => held,
    }
}

/// Locks a file that others rely on: it is an error if the file system has no such locks.
pub(crate) fn hold_surely_unchecked(file: BorrowedFd<'_>, how: HowLocked) -> SysResult<bool> {
    before("flock");
    let operation = match how {
        HowLocked::Shared => FlockOperation::NonBlockingLockShared,
        HowLocked::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    match sys::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// What kind of file system something is on, as far as locks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Its files are this machine's own, or a program of this machine shows them.
    Own,
    /// A file server's: what is known of it may be old, and directories may not be locked.
    Remote,
}

/// The types of file systems that the kernel fetches from elsewhere: NFS, SMB, CIFS, SMB2, Ceph, 9P, AFS, OCFS2, GFS2, Lustre.
const REMOTE: [sys::FsWord; 10] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x00C3_6400,
    0x0102_1997,
    0x5346_414F,
    0x7461_636F,
    0x0116_1970,
    0x0BD0_0BD0,
];

/// Tells what kind of file system a directory is on.
pub(crate) fn file_system_unchecked(dir: BorrowedFd<'_>) -> FileSystem {
    before("fstatfs");
    match sys::fstatfs(dir) {
        Ok(stat) if REMOTE.contains(&stat.f_type) => FileSystem::Remote,
        _ => FileSystem::Own,
    }
}

/// The number of the mount that a directory is on; `None` on kernels before 5.8.
pub(crate) fn mount_number_unchecked(dir: BorrowedFd<'_>) -> Option<u64> {
    before("statx");
    let told = sys::statx(dir, c"", AtFlags::EMPTY_PATH, sys::StatxFlags::MNT_ID).ok()?;
    let is_told = told.stx_mask & sys::StatxFlags::MNT_ID.bits() != 0;
    is_told.then_some(told.stx_mnt_id)
}

/// Asks the file server itself about a directory, so that the next look-up in it finds what is there now.
pub(crate) fn sync_attributes_unchecked(dir: BorrowedFd<'_>) -> SysResult<()> {
    before("statx");
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    sys::statx(dir, c"", flags, sys::StatxFlags::BASIC_STATS).map(drop)
}

/// Asks the file server itself about an entry, so that what is known of it next is what it is now.
pub(crate) fn sync_entry_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<()> {
    before("statx");
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_FORCE_SYNC;
    sys::statx(dir, name.as_c_str(), flags, sys::StatxFlags::BASIC_STATS).map(drop)
}

/// Fails if the process may not change the entries of the directory of a descriptor.
pub(crate) fn check_writable_dir_unchecked(dir: BorrowedFd<'_>) -> SysResult<()> {
    before("faccessat");
    let access = sys::Access::WRITE_OK | sys::Access::EXEC_OK;
    sys::accessat(dir, c".", access, AtFlags::EACCESS)
}
