//! Matching files, held back until the kernel has confirmed that they are still where they were found.
//!
//! One question for a directory is enough for all of its files that match, so they are held until the next directory.

use super::batch::Candidate;
use super::commit::BatchMatches;
use super::file::Hits;
use crate::unread::{Unread, UnreadReason};

/// How many files are held, each with its descriptor.
const HELD_MAX: usize = 16;

/// What a file gave.
pub(super) struct HeldFile {
    candidate: Candidate,
    hits: Option<Hits>,
    unread: Option<UnreadReason>,
}

/// Files of one directory that are to be told.
#[derive(Default)]
pub(super) struct HeldFiles(Vec<HeldFile>);

impl HeldFile {
    pub(super) fn new(
        candidate: Candidate,
        hits: Option<Hits>,
        unread: Option<UnreadReason>,
    ) -> HeldFile {
        HeldFile {
            candidate,
            hits,
            unread,
        }
    }

    /// Whether the reply names it.
    fn is_named(&self) -> bool {
        let has_matches = self.hits.as_ref().is_some_and(|hits| hits.count > 0);
        has_matches || self.unread.is_some()
    }

    fn tell(self, found: &mut BatchMatches) {
        let named = self.is_named().then(|| self.candidate.with_path());
        if let (Some(reason), Some((opened, _))) = (self.unread, &named) {
            let path = opened.path.clone();
            found.unread.add(Unread { path, reason });
        }
        let Some(hits) = self.hits else {
            found.skipped += 1;
            return;
        };
        found.searched += 1;
        found.lines_in_parts += hits.lines_in_parts;
        if let Some((opened, invalid_utf8)) = named {
            found.add(opened.path, invalid_utf8, hits);
        }
    }
}

impl HeldFiles {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a file that was searched. A file that needs no question is reported at once.
    pub(super) fn add(&mut self, file: HeldFile, found: &mut BatchMatches) {
        if !file.is_named() {
            return file.tell(found);
        }
        let is_next = |first: &HeldFile| !first.candidate.is_beside(&file.candidate);
        if self.0.first().is_some_and(is_next) || self.0.len() >= HELD_MAX {
            self.tell(found);
        }
        if file.candidate.is_asked_for() {
            self.0.push(file);
        } else {
            file.tell(found);
        }
    }

    /// Tells of all of them that are where they were found; whether all are.
    pub(super) fn tell(&mut self, found: &mut BatchMatches) -> bool {
        let is_known = match self.0.as_slice() {
            [first, _, ..] => first.candidate.are_all_there(),
            _ => false,
        };
        let mut are_all_there = true;
        for file in self.0.drain(..) {
            if is_known || !file.candidate.is_moved() {
                file.tell(found);
            } else {
                are_all_there = false;
                found.skipped += 1;
            }
        }
        are_all_there
    }
}
