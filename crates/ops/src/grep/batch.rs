//! The work of one unit of a search: files in order, and how the next one is taken.

use sandbox::{OpenFile, WalkItem};

use super::file::{LargeFile, PIECE};
use super::{GrepSearch, SearchFrom};
use crate::decompress::Compression;
use crate::search_memory::{Excluded, Tally};
use crate::shared_walk::{SharedStep, SharedWalk, is_invalid_utf8};
use crate::unread::{Unread, UnreadReason};

/// Files to search in order: the large one under way first, then the one that was named, then a walk's.
#[derive(Default)]
pub(super) struct GrepBatch {
    pub(super) large: Option<LargeFile>,
    pub(super) opened: Option<Candidate>,
    pub(super) walked: Option<SharedWalk>,
}

/// A file to search.
pub(super) struct Candidate {
    pub(super) opened: OpenFile,
    pub(super) named: Named,
}

/// How a file gets its path: most are never named.
pub(super) enum Named {
    /// The path itself, which may not be UTF-8.
    Already { invalid_utf8: bool },
    /// From its position in the walk.
    By(WalkItem),
}

impl Candidate {
    /// How it is compressed, by its name.
    pub(super) fn compression(&self) -> Option<Compression> {
        match &self.named {
            Named::Already { .. } => Compression::by_name(self.opened.path.as_bytes()),
            Named::By(item) => Compression::by_name(item.name.as_bytes()),
        }
    }

    /// Whether the file has moved since it was found; then its matches must not be reported.
    ///
    /// Checked only for files that are reported, because it costs as much as a small read if parts of the root are
    /// hidden.
    pub(super) fn is_moved(&self) -> bool {
        match &self.named {
            Named::Already { .. } => false,
            Named::By(item) => item.dir.confirm_file(&self.opened, &item.name).is_err(),
        }
    }

    /// Whether [`Candidate::is_moved`] asks the kernel.
    pub(super) fn is_asked_for(&self) -> bool {
        matches!(&self.named, Named::By(item) if item.dir.is_asked_for())
    }

    /// Whether both were met in the same directory.
    pub(super) fn is_beside(&self, other: &Candidate) -> bool {
        match (&self.named, &other.named) {
            (Named::By(item), Named::By(other)) => item.dir.is(&other.dir),
            _ => false,
        }
    }

    /// Whether no file has moved that was opened in this one's directory: one question for all of them.
    pub(super) fn are_all_there(&self) -> bool {
        matches!(&self.named, Named::By(item) if item.dir.has_all_opened())
    }

    /// The file with its path, and whether that is not UTF-8.
    pub(super) fn with_path(self) -> (OpenFile, bool) {
        match self.named {
            Named::Already { invalid_utf8 } => (self.opened, invalid_utf8),
            Named::By(item) => {
                let mut opened = self.opened;
                opened.path = item.dir.join(&item.name);
                (opened, is_invalid_utf8(&item))
            }
        }
    }
}

/// What comes next in a batch.
pub(super) enum Upcoming {
    /// A file.
    File(Candidate),
    /// A file that was not opened because the result of searching it is known; with its size.
    Known(Excluded, u64),
    /// A file that cannot be opened, or is no regular file any more; or a directory that cannot be read.
    Unreadable(Unread),
    Directory,
}

fn opened(item: WalkItem) -> Upcoming {
    match item.dir.open_file_unnamed(&item.name) {
        Ok(opened) => Upcoming::File(Candidate {
            opened,
            named: Named::By(item),
        }),
        Err(error) => Upcoming::Unreadable(Unread {
            path: item.path(),
            reason: UnreadReason::of(&error.into()),
        }),
    }
}

impl GrepBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.large.is_none() && self.opened.is_none() && self.walked.is_none()
    }

    /// Goes on to the next file or directory; `None` at the end.
    pub(super) fn next(&mut self, search: &GrepSearch, tally: &mut Tally) -> Option<Upcoming> {
        if let Some(opened) = self.opened.take() {
            return Some(Upcoming::File(opened));
        }
        Some(match self.walked.as_mut()?.step(search)? {
            SharedStep::Item(item) => match search.known(&item, tally) {
                Some((excluded, size)) => Upcoming::Known(excluded, size),
                None => opened(item),
            },
            SharedStep::Unreadable(unread) => Upcoming::Unreadable(unread),
            SharedStep::Passed => Upcoming::Directory,
        })
    }

    /// Keeps the next piece of the large file under way and gives back all behind it.
    pub(super) fn split_large(&mut self, mut large: LargeFile, from: SearchFrom) -> GrepBatch {
        let mut piece = large.clone();
        match from {
            SearchFrom::Start => {
                piece.end = large.start.saturating_add(PIECE).min(large.end);
                large.start = piece.end;
            }
            SearchFrom::End => {
                piece.start = large.end.saturating_sub(PIECE);
                large.end = piece.start;
            }
        }
        let large = (large.start < large.end).then_some(large);
        let later = std::mem::take(self);
        self.large = Some(piece);
        GrepBatch { large, ..later }
    }
}
