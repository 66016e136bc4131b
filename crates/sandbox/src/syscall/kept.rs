//! The calls that only the history needs: locks on its own files, and two names that change places.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{self as sys, FlockOperation, Mode, OFlags, RenameFlags};

use super::{Errno, SysResult, before};
use crate::name::Name;
use crate::planted_fault::{self, PlantedFault};

/// Lets two names change places. What another program put at one of them in between is moved too, never lost.
pub(crate) fn exchange_unchecked(
    one: (BorrowedFd<'_>, &Name),
    other: (BorrowedFd<'_>, &Name),
) -> SysResult<()> {
    before("renameat2");
    let flags = match () {
        () if planted_fault::planted(PlantedFault::NoRenameFlags) => return Err(Errno::INVAL),
        () if planted_fault::planted(PlantedFault::IgnoredFlags) => RenameFlags::empty(),
        () => RenameFlags::EXCHANGE,
    };
    sys::renameat_with(one.0, one.1.as_c_str(), other.0, other.1.as_c_str(), flags)
}

/// Opens one of the server's own files for reading and writing, without following links. Creates it if it is missing.
pub(crate) fn open_own_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<OwnedFd> {
    before("openat");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::openat(dir, name.as_c_str(), flags, Mode::from_raw_mode(0o600))
}

/// Waits for the lock on an open file.
pub(crate) fn lock_unchecked(file: BorrowedFd<'_>) -> SysResult<()> {
    wait_for_lock(file, FlockOperation::LockExclusive)
}

/// Waits for a lock on an open file that others may share.
pub(crate) fn lock_shared_unchecked(file: BorrowedFd<'_>) -> SysResult<()> {
    wait_for_lock(file, FlockOperation::LockShared)
}

fn wait_for_lock(file: BorrowedFd<'_>, operation: FlockOperation) -> SysResult<()> {
    before("flock");
    loop {
        match sys::flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Takes the lock on an open file if nobody has it.
pub(crate) fn try_lock_unchecked(file: BorrowedFd<'_>) -> SysResult<bool> {
    before("flock");
    match sys::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Gives the lock on an open file back.
pub(crate) fn unlock_unchecked(file: BorrowedFd<'_>) -> SysResult<()> {
    before("flock");
    sys::flock(file, FlockOperation::Unlock)
}

/// Writes a file's content to disk, without what else is known of it but its size.
pub(crate) fn sync_data_unchecked(file: BorrowedFd<'_>) -> SysResult<()> {
    before("fdatasync");
    sys::fdatasync(file)
}
