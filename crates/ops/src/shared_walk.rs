//! The walk that `grep` and `glob` share: several threads go through one directory together.

use sandbox::{
    Choice, Cut, Dir, FileKind, ListingVisit, Seen, WalkEvent, WalkFault, WalkItem, WalkOptions,
    Walker,
};

use crate::ignore_rules::{IgnoreRules, IgnoreStack};
use crate::place::Place;
use crate::unread::{Unread, UnreadReason};

/// How many directories, with everything below them, one unit of a walk gets. It hands back what it cannot do.
const DIRECTORIES_PER_CUT: usize = 8;

/// Gives the entries below a directory in path order.
#[derive(Debug)]
pub(crate) struct SharedWalk {
    walker: Walker,
    ignore: Option<IgnoreStack>,
}

/// What a search needs from a walk.
pub(crate) trait WalkFilter {
    /// Tells whether an entry is wanted.
    fn wants(&self, seen: &Seen<'_>) -> bool;
    /// Tells whether to look below a directory.
    fn enters(&self, directory: &Seen<'_>) -> bool;
}

/// The result of one step of a walk.
pub(crate) enum SharedStep {
    /// An entry that is wanted.
    Item(WalkItem),
    /// A directory was entered or left out.
    Passed,
    /// A directory could not be read.
    Unreadable(Unread),
}

impl SharedWalk {
    /// Begins at a directory.
    pub(crate) fn new(
        place: &Place,
        dir: Dir,
        options: WalkOptions,
        rules: IgnoreRules,
        remembered: Option<ListingVisit>,
    ) -> SharedWalk {
        let ignore = (rules == IgnoreRules::Respect).then(|| IgnoreStack::new(&place.root, &dir));
        let walker = Walker::new(dir, options).remembering(remembered);
        SharedWalk { walker, ignore }
    }

    /// Advances by one entry or one directory; `None` at the end.
    pub(crate) fn step(&mut self, wanted: &impl WalkFilter) -> Option<SharedStep> {
        let mut choice = Chosen {
            wanted,
            ignore: self.ignore.as_mut(),
        };
        loop {
            return Some(match self.walker.step(&mut choice)? {
                WalkEvent::Item(item) => SharedStep::Item(item),
                WalkEvent::Entered(..) | WalkEvent::Passed => SharedStep::Passed,
                WalkEvent::Unreadable(item, error) => {
                    SharedStep::Unreadable(unread(WalkFault::new(&item, error)))
                }
                WalkEvent::Fault(fault) => SharedStep::Unreadable(unread(fault)),
                WalkEvent::Left(_) => continue,
            });
        }
    }

    /// Keeps the first part of what is left, and returns the rest for other threads.
    pub(crate) fn split(&mut self, entries: usize) -> Option<SharedWalk> {
        let walker = self.walker.split(Cut {
            entries,
            directories: DIRECTORIES_PER_CUT,
        })?;
        Some(SharedWalk {
            walker,
            ignore: self.ignore.clone(),
        })
    }
}

fn unread(fault: WalkFault) -> Unread {
    Unread {
        path: fault.path,
        reason: UnreadReason::of(&fault.error.into()),
    }
}

/// Selects what is wanted and not ignored.
struct Chosen<'a, W> {
    wanted: &'a W,
    ignore: Option<&'a mut IgnoreStack>,
}

impl<W> Chosen<'_, W> {
    fn is_ignored(&mut self, item: &WalkItem) -> bool {
        match &mut self.ignore {
            Some(stack) => stack.is_ignored(item),
            None => false,
        }
    }
}

impl<W: WalkFilter> Choice for Chosen<'_, W> {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        self.wanted.wants(seen)
    }

    fn enters(&self, seen: &Seen<'_>) -> bool {
        self.wanted.enters(seen)
    }

    fn emits(&mut self, item: &WalkItem) -> bool {
        !self.is_ignored(item)
    }

    fn descends(&mut self, item: &WalkItem) -> bool {
        !self.is_ignored(item)
    }
}

/// Tells whether an entry's path is not UTF-8, so that clients see a stand-in form.
pub(crate) fn is_invalid_utf8(item: &WalkItem) -> bool {
    item.name.is_invalid_utf8() || std::str::from_utf8(item.dir.path_bytes()).is_err()
}

/// Tells whether an entry is a regular file.
pub(crate) fn is_file(seen: &Seen<'_>) -> bool {
    seen.kind == FileKind::File
}
