//! A walk through a directory as a source of batches: what `grep` and `glob` have in common before they look.

use sandbox::{Dir, FileKind, WalkItem, WalkOptions, Walker};

use crate::ignore_rules::{IgnoreRules, IgnoreStack};
use crate::ordered;
use crate::place::Place;

/// How many entries the first batch has: a small search should not wait for a large batch.
const FIRST_BATCH: usize = 16;
/// How many more entries are looked at than a batch may hold before it goes out as it is.
const LOOKS_PER_ENTRY: usize = 16;
/// How many directory descriptors the uncommitted batches of one search hold.
const OPEN_DIRECTORIES: usize = 64;

/// Gives the entries below a directory in path order, in batches.
pub(crate) struct Walked {
    walker: Walker,
    ignore: Option<IgnoreStack>,
    batch_size: usize,
    largest: usize,
    most_directories: usize,
}

/// Entries that follow each other in path order.
pub(crate) struct WalkedBatch {
    /// The entries that are wanted.
    pub items: Vec<WalkItem>,
    /// How many directories could not be read.
    pub unreadable: u64,
    /// How many directories the entries keep open.
    directories: usize,
}

impl WalkedBatch {
    fn new(size: usize) -> WalkedBatch {
        WalkedBatch {
            items: Vec::with_capacity(size),
            unreadable: 0,
            directories: 0,
        }
    }

    fn push(&mut self, item: WalkItem) {
        let same = self
            .items
            .last()
            .is_some_and(|last| last.dir.path() == item.dir.path());
        self.directories += usize::from(!same);
        self.items.push(item);
    }
}

/// What a search wants of a walk.
pub(crate) trait Choice {
    /// Tells whether to look below a directory.
    fn enters(&self, directory: &WalkItem) -> bool;
    /// Tells whether an entry is wanted.
    fn wants(&self, item: &WalkItem) -> bool;
}

impl Walked {
    /// Begins at a directory; batches grow to `largest`.
    pub(crate) fn new(
        place: &Place,
        dir: Dir,
        max_depth: Option<usize>,
        rules: IgnoreRules,
        largest: usize,
    ) -> Walked {
        let ignore = (rules == IgnoreRules::Respect).then(|| IgnoreStack::new(&place.root, &dir));
        let walker = Walker::new(dir, WalkOptions { max_depth });
        let most_directories = (OPEN_DIRECTORIES / ordered::window()).max(1);
        Walked {
            walker,
            ignore,
            batch_size: FIRST_BATCH,
            largest,
            most_directories,
        }
    }

    /// The next batch, which may be empty; `None` at the end.
    pub(crate) fn next_batch(&mut self, choice: &impl Choice) -> Option<WalkedBatch> {
        let mut batch = WalkedBatch::new(self.batch_size);
        for looked in 0..self.batch_size * LOOKS_PER_ENTRY {
            let ended = !self.look(choice, &mut batch);
            if ended && looked == 0 {
                return None;
            }
            if ended || self.is_full(&batch) {
                break;
            }
        }
        self.batch_size = (self.batch_size * 2).min(self.largest);
        Some(batch)
    }

    fn is_full(&self, batch: &WalkedBatch) -> bool {
        batch.items.len() >= self.batch_size || batch.directories >= self.most_directories
    }

    /// Looks at one entry; `false` at the end of the walk.
    fn look(&mut self, choice: &impl Choice, batch: &mut WalkedBatch) -> bool {
        let ignore = &mut self.ignore;
        let mut is_ignored = |item: &WalkItem| match ignore {
            Some(stack) => stack.is_ignored(item),
            None => false,
        };
        let mut descend = |item: &WalkItem| choice.enters(item) && !is_ignored(item);
        match self.walker.next(&mut descend) {
            None => return false,
            Some(Err(_)) => batch.unreadable += 1,
            Some(Ok(item)) => {
                if choice.wants(&item) && !is_ignored(&item) {
                    batch.push(item);
                }
            }
        }
        true
    }
}

/// The path of an entry relative to the directory where its walk began.
pub(crate) fn relative_path(item: &WalkItem) -> Vec<u8> {
    let mut path = item.path_bytes();
    let cut = memchr::memrchr_iter(b'/', &path).nth(item.depth.saturating_sub(1));
    path.drain(..cut.map_or(0, |slash| slash + 1));
    path
}

/// Tells whether an entry's path is not UTF-8, so that clients see a stand-in form.
pub(crate) fn is_invalid_utf8(item: &WalkItem) -> bool {
    item.name.is_invalid_utf8() || std::str::from_utf8(item.dir.path_bytes()).is_err()
}

/// Tells whether an entry is a regular file.
pub(crate) fn is_file(item: &WalkItem) -> bool {
    item.kind == FileKind::File
}
