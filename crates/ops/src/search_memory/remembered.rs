//! What is known of files, within a bound.
//!
//! Files are found by device and inode, in many short sorted lists: a table of hashes would take half as much again. At
//! the bound, files that many searches did not meet are dropped first; then all sketches are folded to half their size;
//! then nothing more is taken. There is no least-recently-used order: a walk over more files than fit would drop each
//! before its turn.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use sandbox::{Metadata, Time};

use super::sketch::{self, Sketch};

/// The least and the most number of lists, and how much memory each stands for.
const LISTS_MIN: usize = 16;
const LISTS_MAX: usize = 4096;
const BYTES_PER_LIST: usize = 16 * 1024;
/// How many searches have to pass without meeting a file until it is forgotten for want of room.
const UNMET_MAX: u32 = 16;
/// How often all sketches are folded at most.
const FOLDS_MAX: u32 = 2;
/// What the allocator adds to a sketch.
const SKETCH_OVERHEAD: usize = 16;

/// A state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    key: Key,
    size: u64,
    modified: i64,
    changed: i64,
}

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileStamp {
    /// Which file it is of.
    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// The state; `None` if its times are centuries away, and so cannot be written down here.
    pub(super) fn of(metadata: &Metadata) -> Option<FileStamp> {
        Some(FileStamp {
            key: Key {
                device: metadata.device,
                inode: metadata.inode,
            },
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
pub(super) struct LearnedFacts {
    /// It is skipped by searches.
    pub(super) is_binary: bool,
    /// It has a letter that is another form of `s` or `k`.
    pub(super) has_odd_letters: bool,
    /// The longest line with its end, in bytes, or more.
    pub(super) longest_line: u32,
}

#[derive(Debug)]
struct KnownFile {
    stamp: FileStamp,
    facts: LearnedFacts,
    /// The search that last met it.
    met: u32,
    sketch: Sketch,
}

impl KnownFile {
    fn sketch_bytes(&self) -> usize {
        self.sketch.len() + SKETCH_OVERHEAD
    }
}

/// Some files, by their inodes in order. The inodes lie apart: a look-up reads a few cache lines, and most find nothing.
#[derive(Debug, Default)]
struct FileList {
    inodes: Vec<u64>,
    files: Vec<KnownFile>,
}

impl FileList {
    /// What is known of a file, in any state.
    fn find(&mut self, key: Key) -> Option<&mut KnownFile> {
        let at = self.inodes.binary_search(&key.inode).ok()?;
        let known = self.files.get_mut(at)?;
        (known.stamp.key == key).then_some(known)
    }

    /// Keeps what is known of a file and returns what was known. Of two files with one inode on two devices the last stays.
    fn keep(&mut self, known: KnownFile) -> Option<KnownFile> {
        let inode = known.stamp.key.inode;
        match self.inodes.binary_search(&inode) {
            Ok(at) => {
                let old = self.files.get_mut(at)?;
                Some(std::mem::replace(old, known))
            }
            Err(at) => {
                if self.inodes.len() == self.inodes.capacity() {
                    let more = self.inodes.len() / 8 + 1;
                    self.inodes.reserve_exact(more);
                    self.files.reserve_exact(more);
                }
                self.inodes.insert(at, inode);
                self.files.insert(at, known);
                None
            }
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&KnownFile) -> bool) {
        let mut kept = self.files.iter().map(&is_kept);
        self.inodes.retain(|_| kept.next().unwrap_or(false));
        drop(kept);
        self.files.retain(is_kept);
        self.inodes.shrink_to_fit();
        self.files.shrink_to_fit();
    }

    /// What it holds but for the sketches.
    fn room(&self) -> usize {
        self.inodes.capacity() * size_of::<u64>() + self.files.capacity() * size_of::<KnownFile>()
    }

    fn bytes(&self) -> usize {
        let sketches: usize = self.files.iter().map(KnownFile::sketch_bytes).sum();
        self.room() + sketches
    }
}

/// The files that are known.
#[derive(Debug)]
pub(super) struct Remembered {
    lists: Box<[Mutex<FileList>]>,
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
        let count = match limit {
            0 => 0,
            _ => (limit / BYTES_PER_LIST).clamp(LISTS_MIN, LISTS_MAX),
        };
        let lists: Box<[Mutex<FileList>]> = (0..count).map(|_| Mutex::default()).collect();
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
        stamp: &FileStamp,
        search: u32,
        answer: impl FnOnce(&LearnedFacts, &Sketch) -> Option<T>,
    ) -> Option<T> {
        let mut list = self.list(stamp.key)?;
        let known = list.find(stamp.key)?;
        known.met = search;
        if known.stamp != *stamp {
            return None;
        }
        answer(&known.facts, &known.sketch)
    }

    /// Tells whether anything is known of a file, in whatever state it is.
    pub(super) fn has(&self, key: Key, search: u32) -> bool {
        if self.count() == 0 {
            return false;
        }
        let mut list = self.list(key);
        let known = list.as_mut().and_then(|list| list.find(key));
        known.map(|known| known.met = search).is_some()
    }

    /// Tells whether the present state of a file is known.
    pub(super) fn knows(&self, stamp: &FileStamp, search: u32) -> bool {
        self.ask(stamp, search, |_, _| Some(())).is_some()
    }

    /// Takes room for what will be known of a file of this size; `None` if there is none.
    pub(super) fn reserve(&self, size: usize, search: u32) -> Option<Reserved<'_>> {
        let sketch = sketch::largest(size) >> self.folds.load(Ordering::Relaxed);
        let bytes = size_of::<u64>() + size_of::<KnownFile>() + sketch + SKETCH_OVERHEAD;
        let is_taken = self.take(bytes) || (self.make_room(search) && self.take(bytes));
        is_taken.then(|| Reserved {
            remembered: self,
            bytes,
        })
    }

    /// Takes room for something else than files, if there is so much.
    pub(super) fn take(&self, bytes: usize) -> bool {
        // A full list grows by an eighth while its old memory is still taken; that much is kept free for every list.
        let room = self.limit.saturating_sub(self.limit / 16);
        let taken = |used: usize| used.checked_add(bytes).filter(|used| *used <= room);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_ok()
    }

    /// Forgets files that are no longer met, or folds the others; returns whether that made room. One thread at a time.
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
            for known in &mut list.files {
                let before = known.sketch.len();
                known.sketch.fold();
                self.give_back(before - known.sketch.len());
            }
        }
    }

    fn retain(&self, is_kept: impl Fn(&KnownFile) -> bool) {
        for list in &self.lists {
            let mut list = lock(list);
            let (before, length) = (list.bytes(), list.files.len());
            list.retain(&is_kept);
            let gone = length - list.files.len();
            self.count.fetch_sub(gone, Ordering::Relaxed);
            self.give_back(before - list.bytes());
        }
        if self.bytes() < self.limit / 4 {
            self.folds.store(0, Ordering::Relaxed);
        }
    }

    /// Gives back room that was taken.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn list(&self, key: Key) -> Option<MutexGuard<'_, FileList>> {
        let spread = (key.inode ^ key.device).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let at = usize::try_from(spread).ok()? % self.lists.len().max(1);
        self.lists.get(at).map(lock)
    }
}

impl Reserved<'_> {
    /// Keeps what is known of a file, and gives back what it does not need.
    pub(super) fn keep(
        self,
        stamp: FileStamp,
        facts: LearnedFacts,
        mut sketch: Sketch,
        search: u32,
    ) {
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
        let more = known.sketch_bytes();
        let before = list.room();
        let old = list.keep(known);
        let more = more + list.room() - before;
        remembered.used.fetch_add(more, Ordering::Relaxed);
        match old {
            Some(old) => remembered.give_back(old.sketch_bytes()),
            None => {
                remembered.count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.remembered.give_back(self.bytes);
    }
}

fn lock(list: &Mutex<FileList>) -> MutexGuard<'_, FileList> {
    // After a panic a list still holds files, each with its own stamp.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_memory::sketch::{SketchTable, learn};
    use proptest::prelude::*;

    fn stamp(inode: u64) -> FileStamp {
        FileStamp {
            key: Key { inode, device: 1 },
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
        (facts, sketch): &(LearnedFacts, Sketch),
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
        size_of_val(&*remembered.lists) + lists.map(|list| lock(list).bytes()).sum::<usize>()
    }

    #[test]
    fn only_the_same_state_is_known() {
        let remembered = Remembered::new(1 << 20);
        assert!(keep(&remembered, 7, "content of some length", 1));
        assert!(remembered.knows(&stamp(7), 1));
        assert!(!remembered.knows(&stamp(8), 1));
        let elsewhere = Key {
            device: 2,
            inode: 7,
        };
        for other in [
            FileStamp {
                size: 11,
                ..stamp(7)
            },
            FileStamp {
                modified: 6,
                ..stamp(7)
            },
            FileStamp {
                changed: 7,
                ..stamp(7)
            },
            FileStamp {
                key: elsewhere,
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
    fn of_two_files_with_one_inode_one_is_known_and_the_room_is_counted() {
        let remembered = Remembered::new(1 << 20);
        let content: String = (0..2000).map(|number| format!("word{number} ")).collect();
        let learned = learn(content.as_bytes(), false, &mut SketchTable::default());
        for device in 1..20 {
            let key = Key { device, inode: 7 };
            let stamp = FileStamp { key, ..stamp(7) };
            let room = remembered.reserve(content.len(), 1).unwrap();
            room.keep(stamp, learned.0, learned.1.clone(), 1);
            assert!(remembered.has(key, 1) && remembered.knows(&stamp, 1));
            assert_eq!(remembered.bytes(), counted(&remembered));
        }
        let known = |device| remembered.has(Key { device, inode: 7 }, 1);
        assert_eq!(
            (1..20).filter(|device| known(*device)).count(),
            remembered.count()
        );
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
