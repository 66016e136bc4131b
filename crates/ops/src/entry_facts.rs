//! What lists tell of an entry, in few bytes: a list is held until both halves of its reply are written, and may have a
//! million entries.

use sandbox::{FileKind, Metadata, Time};

/// The facts of an entry that lists tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    /// Its size in bytes; 0 if it was not looked at.
    pub size: u64,
    // Not a `Time`, whose padding would be an eighth of an entry.
    seconds: i64,
    nanoseconds: u32,
    /// What it is.
    pub kind: FileKind,
    /// Whether the bytes of its name, or of its path if that was asked for, are not UTF-8.
    pub invalid_utf8: bool,
    /// Whether it was looked at: otherwise only its directory told of it.
    pub is_described: bool,
}

impl EntryFacts {
    /// An entry of which only its directory told.
    pub(crate) fn listed(kind: FileKind, invalid_utf8: bool) -> EntryFacts {
        EntryFacts {
            size: 0,
            seconds: 0,
            nanoseconds: 0,
            kind,
            invalid_utf8,
            is_described: false,
        }
    }

    /// An entry that was looked at.
    pub(crate) fn described(metadata: &Metadata, invalid_utf8: bool) -> EntryFacts {
        EntryFacts {
            size: metadata.size,
            seconds: metadata.modified.seconds,
            nanoseconds: metadata.modified.nanoseconds,
            kind: metadata.kind,
            invalid_utf8,
            is_described: true,
        }
    }

    /// When the content last changed; the epoch if the entry was not looked at.
    #[must_use]
    pub fn modified(&self) -> Time {
        Time {
            seconds: self.seconds,
            nanoseconds: self.nanoseconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{GlobEntry, LineMatch, ListEntry};

    #[test]
    fn entries_and_matches_are_small() {
        assert_eq!(size_of::<GlobEntry>(), 40);
        assert_eq!(size_of::<ListEntry>(), 48);
        assert_eq!(size_of::<LineMatch>(), 48);
    }
}
