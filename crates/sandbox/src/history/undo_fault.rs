//! Why changes cannot be taken back.

use crate::error::Error;
use crate::quota::QuotaLimit;
use crate::rights::Right;
use crate::syscall::Errno;

/// Why a change cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoFault {
    /// Something is not as the change left it.
    Conflict {
        /// The path.
        path: String,
        /// What is there by now.
        found: InPlace,
    },
    /// The old content is no longer kept, or never was.
    Gone {
        /// The path.
        path: String,
    },
    /// The caller may not do that here.
    NotGranted {
        /// The path.
        path: String,
        /// The right that is missing.
        right: Right,
    },
    /// A directory holds something that is hidden from the caller.
    Denied {
        /// The directory.
        path: String,
    },
    /// The root has no room for what would come back.
    OverQuota {
        /// The path.
        path: String,
        /// The limit that would be exceeded.
        limit: QuotaLimit,
        /// The limit's value.
        most: u64,
        /// What is used of it.
        used: u64,
        /// How much more was needed.
        needed: u64,
    },
    /// The disk has no room.
    Full {
        /// The path.
        path: String,
    },
    /// It was done, but is not on disk.
    Unsynced {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The system refused a step.
    Failed {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// What is now in the place of what a change left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlace {
    /// Something else, or the same with another content.
    Changed,
    /// Nothing.
    Missing,
    /// The name should be free but is taken.
    Occupied,
    /// A directory that is not empty.
    NotEmpty,
}

/// Why something may not come back.
pub(super) fn refused(path: &str, error: Error) -> UndoFault {
    let path = path.to_owned();
    match error {
        Error::OverQuota {
            limit,
            most,
            used,
            needed,
            ..
        } => UndoFault::OverQuota {
            path,
            limit,
            most,
            used,
            needed,
        },
        Error::NotGranted { right, .. } => UndoFault::NotGranted { path, right },
        Error::PermissionDenied { .. } => UndoFault::Denied { path },
        Error::AlreadyExists { .. } => conflict(&path, InPlace::Occupied),
        Error::NotFound { .. } => missing(&path),
        Error::DiskFull { .. } => UndoFault::Full { path },
        Error::Unsynced { source, .. } => UndoFault::Unsynced {
            path,
            reason: source.to_string(),
        },
        error => UndoFault::Failed {
            path,
            reason: error.to_string(),
        },
    }
}

pub(super) fn gone(path: &str) -> UndoFault {
    UndoFault::Gone {
        path: path.to_owned(),
    }
}

pub(super) fn denied(path: &str) -> UndoFault {
    UndoFault::Denied {
        path: path.to_owned(),
    }
}

pub(super) fn missing(path: &str) -> UndoFault {
    conflict(path, InPlace::Missing)
}

pub(super) fn conflict(path: &str, found: InPlace) -> UndoFault {
    UndoFault::Conflict {
        path: path.to_owned(),
        found,
    }
}

pub(super) fn failed(path: &str, errno: Errno) -> UndoFault {
    let path = path.to_owned();
    match errno {
        Errno::NOSPC | Errno::DQUOT => UndoFault::Full { path },
        errno => UndoFault::Failed {
            path,
            reason: std::io::Error::from(errno).to_string(),
        },
    }
}
