//! What is known of files, within a bound.
//!
//! Files are found by device and inode, in many short sorted lists: a table of hashes would take half as much again. At the
//! bound first what many searches did not meet goes; then all sketches are folded to half their size; then nothing more is
//! taken. Nothing goes because it was used least recently: a walk over more files than fit would drop each before its turn.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use sandbox::{Metadata, Time};

use super::sketch::{self, Sketch};

/// How many lists there are.
const LISTS: usize = 1024;
/// How many searches have to pass without meeting a file until it is forgotten for want of room.
const UNMET_MAX: u32 = 16;
/// How often all sketches are folded at most.
const FOLDS_MAX: u32 = 2;
/// What the allocator adds to a sketch.
const SKETCH_OVERHEAD: usize = 16;

/// A state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    key: Key,
    size: u64,
    modified: i64,
    changed: i64,
}

/// A file: its inode and device.
type Key = (u64, u64);

impl Stamp {
    /// The state; `None` if its times are centuries away, and so cannot be written down here.
    pub(super) fn of(metadata: &Metadata) -> Option<Stamp> {
        Some(Stamp {
            key: (metadata.inode, metadata.device),
            size: metadata.size,
            modified: nanoseconds(metadata.modified)?,
            changed: nanoseconds(metadata.changed)?,
        })
    }
}

fn nanoseconds(time: Time) -> Option<i64> {
    let seconds = time.seconds.checked_mul(1_000_000_000)?;
    seconds.checked_add(i64::from(time.nanoseconds))
}

/// What is known of a file's content besides its sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileFacts {
    /// It is skipped by searches.
    pub(super) is_binary: bool,
    /// It has a letter that is another form of `s` or `k`.
    pub(super) has_odd_letters: bool,
    /// The longest line with its end, in bytes.
    pub(super) longest_line: u32,
}

#[derive(Debug)]
struct KnownFile {
    stamp: Stamp,
    facts: FileFacts,
    /// The search that last met it.
    met: u32,
    sketch: Sketch,
}

impl KnownFile {
    fn sketch_bytes(&self) -> usize {
        self.sketch.len() + SKETCH_OVERHEAD
    }
}

/// The files that are known.
#[derive(Debug)]
pub(super) struct Remembered {
    lists: Box<[Mutex<Vec<KnownFile>>]>,
    limit: usize,
    /// The bytes that are held or reserved.
    used: AtomicUsize,
    count: AtomicUsize,
    folds: AtomicU32,
    /// The search that last looked for files to forget.
    swept: Mutex<Option<u32>>,
}

/// Room that is taken for one file.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    remembered: &'a Remembered,
    bytes: usize,
}

impl Remembered {
    /// Knows nothing yet, and never takes more than `limit` bytes.
    pub(super) fn new(limit: usize) -> Remembered {
        let lists: Box<[Mutex<Vec<KnownFile>>]> = if limit > 0 {
            (0..LISTS).map(|_| Mutex::default()).collect()
        } else {
            Box::default()
        };
        Remembered {
            used: AtomicUsize::new(size_of_val(&*lists)),
            lists,
            limit,
            count: AtomicUsize::new(0),
            folds: AtomicU32::new(0),
            swept: Mutex::new(None),
        }
    }

    /// How many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How many files are known.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Forgets everything.
    pub(super) fn forget(&self) {
        self.retain(|_| false);
        self.folds.store(0, Ordering::Relaxed);
    }

    /// Asks what is known of a file, if that is of its present state.
    pub(super) fn ask<T>(
        &self,
        stamp: &Stamp,
        search: u32,
        answer: impl FnOnce(&FileFacts, &Sketch) -> Option<T>,
    ) -> Option<T> {
        let mut list = self.list(stamp.key)?;
        let at = position(&list, stamp.key).ok()?;
        let known = list.get_mut(at)?;
        known.met = search;
        if known.stamp != *stamp {
            return None;
        }
        answer(&known.facts, &known.sketch)
    }

    /// Tells whether the present state of a file is known.
    pub(super) fn knows(&self, stamp: &Stamp, search: u32) -> bool {
        self.ask(stamp, search, |_, _| Some(())).is_some()
    }

    /// Takes room for what will be known of a file of this size; `None` if there is none.
    pub(super) fn reserve(&self, size: usize, search: u32) -> Option<Reserved<'_>> {
        let sketch = sketch::largest(size) >> self.folds.load(Ordering::Relaxed);
        // A list that is full grows by an eighth, while its old room is still taken; so much is free for every list.
        let bytes = size_of::<KnownFile>() + sketch + SKETCH_OVERHEAD;
        let take = || {
            let room = self.limit.saturating_sub(self.limit / 16);
            let taken = |used: usize| used.checked_add(bytes).filter(|used| *used <= room);
            self.used
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
                .is_ok()
        };
        let is_taken = take() || (self.make_room(search) && take());
        is_taken.then(|| Reserved {
            remembered: self,
            bytes,
        })
    }

    /// Forgets what is not met any more, or folds what is; tells whether that made room. One thread at a time.
    fn make_room(&self, search: u32) -> bool {
        let mut swept = match self.swept.try_lock() {
            Ok(swept) => swept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let before = self.bytes();
        if swept.is_none_or(|last| search.wrapping_sub(last) >= UNMET_MAX) {
            *swept = Some(search);
            self.retain(|known| search.wrapping_sub(known.met) <= UNMET_MAX);
        }
        let is_enough = || self.bytes() + self.limit / 16 < before;
        if !is_enough() && self.folds.load(Ordering::Relaxed) < FOLDS_MAX {
            self.folds.fetch_add(1, Ordering::Relaxed);
            self.fold();
        }
        is_enough()
    }

    fn fold(&self) {
        for list in &self.lists {
            let mut list = lock(list);
            for known in list.iter_mut() {
                let before = known.sketch.len();
                known.sketch.fold();
                self.give_back(before - known.sketch.len());
            }
        }
    }

    fn retain(&self, mut is_kept: impl FnMut(&KnownFile) -> bool) {
        for list in &self.lists {
            let mut list = lock(list);
            let before = bytes_of(&list);
            let length = list.len();
            list.retain(&mut is_kept);
            list.shrink_to_fit();
            self.count.fetch_sub(length - list.len(), Ordering::Relaxed);
            self.give_back(before - bytes_of(&list));
        }
        if self.bytes() < self.limit / 4 {
            self.folds.store(0, Ordering::Relaxed);
        }
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn list(&self, key: Key) -> Option<MutexGuard<'_, Vec<KnownFile>>> {
        let spread = (key.0 ^ key.1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let at = usize::try_from(spread).ok()? % self.lists.len().max(1);
        self.lists.get(at).map(lock)
    }
}

impl Reserved<'_> {
    /// Keeps what is known of a file, and gives back what it does not need.
    pub(super) fn keep(self, stamp: Stamp, facts: FileFacts, mut sketch: Sketch, search: u32) {
        let remembered = self.remembered;
        for _ in 0..remembered.folds.load(Ordering::Relaxed) {
            sketch.fold();
        }
        let known = KnownFile {
            stamp,
            facts,
            met: search,
            sketch,
        };
        let Some(mut list) = remembered.list(stamp.key) else {
            return;
        };
        let before = bytes_of(&list);
        match position(&list, stamp.key) {
            Ok(at) => {
                if let Some(old) = list.get_mut(at) {
                    *old = known;
                }
            }
            Err(at) => {
                if list.len() == list.capacity() {
                    let more = list.len() / 8 + 1;
                    list.reserve_exact(more);
                }
                list.insert(at, known);
                remembered.count.fetch_add(1, Ordering::Relaxed);
            }
        }
        let after = bytes_of(&list);
        let more = after.saturating_sub(before);
        remembered.used.fetch_add(more, Ordering::Relaxed);
        remembered.give_back(before.saturating_sub(after));
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.remembered.give_back(self.bytes);
    }
}

/// What a list holds.
fn bytes_of(list: &Vec<KnownFile>) -> usize {
    let sketches: usize = list.iter().map(KnownFile::sketch_bytes).sum();
    list.capacity() * size_of::<KnownFile>() + sketches
}

fn position(list: &[KnownFile], key: Key) -> Result<usize, usize> {
    list.binary_search_by_key(&key, |known| known.stamp.key)
}

fn lock(list: &Mutex<Vec<KnownFile>>) -> MutexGuard<'_, Vec<KnownFile>> {
    // After a panic the list is still a sorted list of files.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_memory::sketch::{SketchTable, learn};
    use proptest::prelude::*;

    fn stamp(inode: u64) -> Stamp {
        Stamp {
            key: (inode, 1),
            size: 10,
            modified: 5,
            changed: 6,
        }
    }

    fn keep(remembered: &Remembered, inode: u64, content: &str, search: u32) -> bool {
        let learned = learn(content.as_bytes(), false, &mut SketchTable::default());
        keep_learned(remembered, inode, content.len(), &learned, search)
    }

    fn keep_learned(
        remembered: &Remembered,
        inode: u64,
        size: usize,
        (facts, sketch): &(FileFacts, Sketch),
        search: u32,
    ) -> bool {
        let Some(room) = remembered.reserve(size, search) else {
            return false;
        };
        room.keep(stamp(inode), *facts, sketch.clone(), search);
        true
    }

    /// What the lists hold, counted one by one.
    fn counted(remembered: &Remembered) -> usize {
        let lists = remembered.lists.iter();
        size_of_val(&*remembered.lists) + lists.map(|list| bytes_of(&lock(list))).sum::<usize>()
    }

    #[test]
    fn only_the_same_state_is_known() {
        let remembered = Remembered::new(1 << 20);
        assert!(keep(&remembered, 7, "content of some length", 1));
        assert!(remembered.knows(&stamp(7), 1));
        assert!(!remembered.knows(&stamp(8), 1));
        for other in [
            Stamp {
                size: 11,
                ..stamp(7)
            },
            Stamp {
                modified: 6,
                ..stamp(7)
            },
            Stamp {
                changed: 7,
                ..stamp(7)
            },
            Stamp {
                key: (7, 2),
                ..stamp(7)
            },
        ] {
            assert!(!remembered.knows(&other, 1), "{other:?}");
        }
        assert_eq!(remembered.count(), 1);
        assert_eq!(remembered.bytes(), counted(&remembered));
        remembered.forget();
        assert_eq!(remembered.count(), 0);
        assert_eq!(remembered.bytes(), counted(&remembered));
    }

    #[test]
    fn what_is_not_met_goes_first_and_then_sketches_are_folded() {
        let content: String = (0..2000).map(|number| format!("word{number} ")).collect();
        let learned = learn(content.as_bytes(), false, &mut SketchTable::default());
        let remembered = Remembered::new(600_000);
        let mut inode = 0;
        while keep_learned(&remembered, inode, content.len(), &learned, 1) {
            assert!(remembered.bytes() <= 600_000);
            inode += 1;
        }
        assert_eq!(remembered.folds.load(Ordering::Relaxed), FOLDS_MAX);
        assert!(remembered.knows(&stamp(0), 5), "nothing went");
        for search in 5..30 {
            for kept in 0..10 {
                assert!(remembered.knows(&stamp(kept), search));
            }
        }
        assert!(keep(&remembered, inode, &content, 30));
        assert!(remembered.knows(&stamp(9), 30));
        assert!(!remembered.knows(&stamp(10), 30));
        assert_eq!(remembered.folds.load(Ordering::Relaxed), 0);
        assert_eq!(remembered.bytes(), counted(&remembered));
    }

    #[test]
    fn three_hundred_thousand_files_stay_within_sixteen_mebibytes() {
        let limit = 16 << 20;
        let remembered = Remembered::new(limit);
        let content: String = (0..120).map(|number| format!("let v{number};\n")).collect();
        let learned = learn(content.as_bytes(), false, &mut SketchTable::default());
        let mut most = 0;
        for inode in 0..300_000 {
            keep_learned(&remembered, inode, content.len(), &learned, 1);
            most = most.max(remembered.bytes());
        }
        assert!(most <= limit, "{most}");
        assert!(remembered.count() > 50_000, "{}", remembered.count());
        assert_eq!(remembered.bytes(), counted(&remembered));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_budget_is_never_exceeded(
            limit in 40_000..400_000_usize,
            files in prop::collection::vec((0..500_u64, 0..4_000_usize, 0..100_u32), 1..150),
        ) {
            let remembered = Remembered::new(limit);
            for (inode, length, search) in files {
                let content = "some words 0123456789 ".repeat(length / 20);
                keep(&remembered, inode, &content, search);
                prop_assert!(remembered.bytes() <= limit);
            }
            prop_assert_eq!(remembered.bytes(), counted(&remembered));
        }
    }
}
