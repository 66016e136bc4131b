//! What a search could not read, and why. The count shows how incomplete the search is; the first few show where to
//! look.

use crate::error::Error;

/// How many are named.
const NAMED_MAX: usize = 3;

/// A file or directory that a search could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Its path inside the root, as shown.
    pub path: String,
    /// Why.
    pub reason: UnreadReason,
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadReason {
    /// The process may not.
    Denied,
    /// It was there when its directory was listed.
    Gone,
    /// Its compressed content is damaged; what comes before the damage was searched.
    Damaged,
    /// It has more than so many bytes when decompressed; those were searched.
    Unfolds {
        /// How many.
        most: u64,
    },
    /// Anything else, in the system's words.
    Failed(String),
}

impl UnreadReason {
    /// The reason for a failure.
    pub(crate) fn of(error: &Error) -> UnreadReason {
        match error {
            Error::PermissionDenied { .. } => UnreadReason::Denied,
            Error::NotFound { .. } => UnreadReason::Gone,
            Error::Io { reason, .. } => UnreadReason::Failed(reason.clone()),
            other => UnreadReason::Failed(other.to_string()),
        }
    }
}

/// All that a search could not read: how many, and the first few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadTotal {
    /// How many.
    pub count: u64,
    /// The first few of them.
    pub first: Vec<Unread>,
}

impl UnreadTotal {
    /// Counts one more.
    pub(crate) fn add(&mut self, unread: Unread) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(unread);
        }
    }

    /// Adds those that follow these.
    pub(crate) fn extend(&mut self, later: UnreadTotal) {
        self.count += later.count;
        let room = NAMED_MAX - self.first.len().min(NAMED_MAX);
        self.first.extend(later.first.into_iter().take(room));
    }
}
