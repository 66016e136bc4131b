//! A change as read from the record files.

use super::record::{Author, End, Line, Part};

/// A change as read from the record files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// Its number.
    pub number: u64,
    /// Who made it.
    pub author: Author,
    /// What happened, in order.
    pub parts: Vec<Part>,
    /// The parts that were recorded but did not happen.
    pub(crate) failed: Vec<u32>,
    /// Whether all parts were recorded.
    pub(crate) is_whole: bool,
    pub(crate) end: Option<End>,
}

impl ChangeRecord {
    /// The parts that happened, each with its index.
    pub(crate) fn made_parts(&self) -> impl DoubleEndedIterator<Item = (u32, &Part)> {
        let numbered = self.parts.iter().enumerate();
        numbered
            .map(|(index, part)| (index as u32, part))
            .filter(|(index, _)| !self.failed.contains(index))
    }

    /// The parts that happened.
    pub fn made(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.made_parts().map(|(_, part)| part)
    }

    /// The part that moved something to or from another root, if one did.
    #[must_use]
    pub fn crossing_part(&self) -> Option<&Part> {
        self.made().find(|part| part.crossing.is_some())
    }

    /// Forgets the parts that did not happen, and those that `keeps` does not let through.
    pub fn keep_made(&mut self, keeps: impl Fn(&Part) -> bool) {
        let made = self.made().filter(|part| keeps(part));
        self.parts = made.cloned().collect();
        self.failed.clear();
    }

    /// A change without any line yet.
    pub(super) fn empty(number: u64) -> ChangeRecord {
        ChangeRecord {
            number,
            author: Author::default(),
            parts: Vec::new(),
            failed: Vec::new(),
            is_whole: false,
            end: None,
        }
    }

    /// Adds its next line.
    pub(super) fn take(&mut self, line: Line) {
        if let Some(author) = line.by {
            self.author = author;
        }
        // Without it, what was to be the last part is not all.
        self.is_whole &= line.failed.is_empty();
        self.failed.extend(line.failed);
        if !line.parts.is_empty() {
            self.parts.extend(line.parts);
            self.is_whole = line.last;
        }
    }

    /// Tells whether what was kept of it is gone, though older changes are kept.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.end == Some(End::Pruned)
    }

    /// Tells whether it took place, as far as is known.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.end != Some(End::Void) && self.made_parts().next().is_some()
    }
}
