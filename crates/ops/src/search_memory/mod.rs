//! What searches remember, so that the next one need not read files again that cannot match.
//!
//! What is remembered may only exclude a file, and only while the file's present state proves that it still holds
//! (`docs/search.md`). A file is remembered if, on one descriptor: its last change was over two seconds before the search
//! began, nobody had it open for writing, all of it was read, and its size and times were the same afterwards. It is excluded
//! only if device, inode, size and times are equal now.

mod clock;
mod large;
mod needs;
mod remembered;
mod sketch;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sandbox::{FileKind, ListingVisit, Listings, Metadata, OpenFile, Time, WalkItem};

use self::clock::{ClockWatch, Moment};
use self::large::{LargeFiles, Piece};
pub(crate) use self::needs::Needs;
use self::remembered::{FileStamp, Key, Remembered};
use self::sketch::GrowingSketch;
pub(crate) use self::sketch::SketchTable;
use crate::pattern::Pattern;

/// How many seconds must have passed since a file's last change: two changes in quick succession may leave the same times.
const SETTLED_SECONDS: i64 = 2;
/// A search learns one in this many of the files that it meets: learning all at once would make the first search twice
/// as long. While nothing is known, it learns fewer, because it saves nothing that could pay for it. Eight searches
/// learn all files.
const LEARNED_OF_FIRST: u64 = 16;
const LEARNED_OF: u64 = 7;
/// How many known files a search checks before it may conclude that too few are excluded; after that it still checks
/// one in this many.
const ASKED_FIRST: u64 = 256;
const SPARED_OF: u64 = 8;
/// Larger files are searched in pieces, and learned piece by piece.
pub(crate) const WHOLE_MAX: u64 = 1024 * 1024;
/// The part of the memory that the lists of directories may take.
const LISTINGS_SHARE: usize = 8;

/// What the searches of the process remember.
#[derive(Debug)]
pub struct SearchMemory {
    listings: Arc<Listings>,
    files: Remembered,
    large: LargeFiles,
    clock: Mutex<ClockWatch>,
    /// How many searches of any kind have begun: each meets directories.
    searches: AtomicU32,
    /// How many of them consult the memory before they open files. The others do not count for how long a known file
    /// has not been met.
    asking: AtomicU32,
    /// How often a file did not have to be searched.
    spared: AtomicU64,
    patience: i64,
    /// How far tests move the wall clock, in nanoseconds.
    shift: AtomicI64,
    is_on: bool,
}

/// How much is remembered, and how often it helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchMemoryUsage {
    /// The bytes held.
    pub bytes: u64,
    /// The files known.
    pub files: u64,
    /// How often a file was not opened because it cannot match.
    pub hits: u64,
}

impl Default for SearchMemory {
    /// Remembers nothing.
    fn default() -> SearchMemory {
        SearchMemory::new(0)
    }
}

impl SearchMemory {
    /// Remembers nothing yet, and never more than `limit` bytes; nothing at all with 0.
    #[must_use]
    pub fn new(limit: u64) -> SearchMemory {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let listings = limit / LISTINGS_SHARE;
        SearchMemory {
            listings: Arc::new(Listings::new(listings)),
            files: Remembered::new(limit - listings),
            large: LargeFiles::default(),
            clock: Mutex::default(),
            searches: AtomicU32::new(0),
            asking: AtomicU32::new(0),
            spared: AtomicU64::new(0),
            patience: SETTLED_SECONDS,
            shift: AtomicI64::new(0),
            is_on: limit > 0,
        }
    }

    /// How much is remembered by now.
    #[must_use]
    pub fn usage(&self) -> SearchMemoryUsage {
        SearchMemoryUsage {
            bytes: (self.files.bytes() + self.listings.bytes()) as u64,
            files: self.files.count() as u64,
            hits: self.spared.load(Ordering::Relaxed),
        }
    }

    /// Whether anything may be remembered.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins a search, which may or may not consult the memory before it opens files; `None` if nothing is remembered.
    pub(crate) fn begin(self: &Arc<Self>, asks: bool) -> Option<SearchVisit> {
        if !self.is_on {
            return None;
        }
        let moment = self.moment();
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if clock.has_stepped_back(moment) {
            // From now on, a write may get exactly the times that are remembered.
            self.listings.forget();
            self.large.forget(&self.files);
            self.files.forget();
        }
        drop(clock);
        Some(SearchVisit {
            memory: Arc::clone(self),
            walk_number: self.searches.fetch_add(1, Ordering::Relaxed),
            number: self.asking.fetch_add(u32::from(asks), Ordering::Relaxed),
            began: moment,
            settled_before: Time {
                seconds: moment.wall.seconds.saturating_sub(self.patience),
                ..moment.wall
            },
            learned_of: match self.files.count() {
                0 => LEARNED_OF_FIRST,
                _ => LEARNED_OF,
            },
            met: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            spared: AtomicU64::new(0),
            learned: AtomicU64::new(0),
            pieces_met: AtomicU64::new(0),
            pieces_learned: AtomicU64::new(0),
        })
    }

    fn moment(&self) -> Moment {
        Moment::now(self.shift.load(Ordering::Relaxed))
    }
}

/// One search and what it may use.
#[derive(Debug)]
pub(crate) struct SearchVisit {
    memory: Arc<SearchMemory>,
    walk_number: u32,
    number: u32,
    began: Moment,
    settled_before: Time,
    /// One in this many files is learned.
    learned_of: u64,
    met: AtomicU64,
    asked: AtomicU64,
    spared: AtomicU64,
    learned: AtomicU64,
    /// Pieces of large files, likewise.
    pieces_met: AtomicU64,
    pieces_learned: AtomicU64,
}

/// What one unit of a search counted since it began: threads that share a counter for each file slow each other down.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Files that were met, excluded or not.
    met: u64,
    /// Those that were checked before they were opened.
    asked: u64,
    /// Those that were not opened.
    spared: u64,
}

impl Tally {
    /// Counts a file that the search meets.
    pub(crate) fn meet(&mut self) {
        self.met += 1;
    }
}

/// What a search would find in a file that is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excluded {
    /// Text without a match.
    Text,
    /// A binary file, which is skipped.
    Binary,
}

/// What a search checks about a file before it opens it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// What a match needs.
    pub(crate) needs: &'a Needs,
    /// The longest line that is matched as a whole: a reply tells of longer ones.
    pub(crate) longest_line: usize,
    /// Larger files are skipped as too large.
    pub(crate) largest: u64,
}

impl SearchVisit {
    /// What the walk of this search needs to remember listings.
    pub(crate) fn listings(&self) -> ListingVisit {
        ListingVisit {
            listings: Arc::clone(&self.memory.listings),
            number: self.walk_number,
            settled_before: self.settled_before,
        }
    }

    /// Adds what a unit counted.
    pub(crate) fn add(&self, tally: Tally) {
        self.met.fetch_add(tally.met, Ordering::Relaxed);
        self.asked.fetch_add(tally.asked, Ordering::Relaxed);
        self.spared.fetch_add(tally.spared, Ordering::Relaxed);
        let memory = &self.memory;
        memory.spared.fetch_add(tally.spared, Ordering::Relaxed);
    }

    /// Whether checking one more known file is worth it: a search that excludes few files opens most of them unchecked.
    fn pays(&self, tally: &Tally) -> bool {
        let asked = self.asked.load(Ordering::Relaxed) + tally.asked;
        let spared = self.spared.load(Ordering::Relaxed) + tally.spared;
        asked < ASKED_FIRST
            || spared.saturating_mul(SPARED_OF) >= asked
            || tally.met.is_multiple_of(SPARED_OF)
    }

    /// Tells what a search of a file would find, if that is known to be nothing; with the file's size.
    pub(crate) fn excludes(
        &self,
        item: &WalkItem,
        question: Question<'_>,
        tally: &mut Tally,
    ) -> Option<(Excluded, u64)> {
        let device = item.dir.stamping_device()?;
        // The inode from the directory list is a hint that saves checking files of which nothing is known in any state.
        let inode = item.inode;
        let is_known = self.memory.files.has(Key { device, inode }, self.number);
        if !is_known || !self.pays(tally) {
            return None;
        }
        tally.asked += 1;
        let now = item.dir.stat_content(&item.name).ok()?;
        let is_own = now.kind == FileKind::File && now.device == device;
        if !is_own || now.size > question.largest {
            return None;
        }
        let stamp = FileStamp::of(&now)?;
        let excluded = self
            .memory
            .files
            .ask(&stamp, self.number, |facts, sketch| {
                if facts.is_binary {
                    return Some(Excluded::Binary);
                }
                let is_plain = facts.longest_line as usize <= question.longest_line;
                (is_plain && question.needs.exclude(facts.has_odd_letters, sketch))
                    .then_some(Excluded::Text)
            })?;
        tally.spared += 1;
        Some((excluded, now.size))
    }

    /// Decides before the read whether an opened file is learned; [`Lesson::learn`] then learns it.
    pub(crate) fn lesson(
        &self,
        item: &WalkItem,
        opened: &OpenFile,
        tally: &Tally,
    ) -> Option<Lesson<'_>> {
        let before = opened.metadata;
        if before.size > WHOLE_MAX || !self.has_turn(tally) {
            return None;
        }
        let stamp = self.learnable(item, &before)?;
        let size = usize::try_from(before.size).ok()?;
        let room = self.memory.files.reserve(size, self.number)?;
        // A process that has it open for writing can change it without a trace in its times.
        if !opened.is_unwritten() {
            return None;
        }
        self.learned.fetch_add(1, Ordering::Relaxed);
        Some(Lesson {
            visit: self,
            stamp,
            before,
            room,
        })
    }

    /// The state of a file that may be learned, if it is not known yet.
    fn learnable(&self, item: &WalkItem, before: &Metadata) -> Option<FileStamp> {
        let is_settled = before.changed.max(before.modified) < self.settled_before;
        let is_own = is_settled && item.dir.stamping_device() == Some(before.device);
        let stamp = FileStamp::of(before).filter(|_| is_own)?;
        (!self.memory.files.knows(&stamp, self.number)).then_some(stamp)
    }

    /// Decides whether the pieces of an opened large file may be learned.
    pub(crate) fn large_lesson(&self, item: &WalkItem, opened: &OpenFile) -> Option<LargeLesson> {
        let stamp = self.learnable(item, &opened.metadata)?;
        Some(LargeLesson { stamp })
    }

    /// Decides whether a piece is learned, before it is read. What it promises is kept by [`PieceLesson::learn`].
    pub(crate) fn piece_lesson(
        &self,
        LargeLesson { stamp }: LargeLesson,
        opened: &OpenFile,
        (at, of): (usize, usize),
    ) -> Option<PieceLesson<'_>> {
        let met = self.pieces_met.fetch_add(1, Ordering::Relaxed);
        let learned = self.pieces_learned.load(Ordering::Relaxed);
        let piece = Piece { stamp, at, of };
        let is_learned = learned.saturating_mul(self.learned_of) <= met
            && self.memory.large.lacks(piece)
            && opened.is_unwritten();
        is_learned.then(|| {
            self.pieces_learned.fetch_add(1, Ordering::Relaxed);
            PieceLesson { visit: self, piece }
        })
    }

    fn has_turn(&self, tally: &Tally) -> bool {
        let learned = self.learned.load(Ordering::Relaxed);
        let met = self.met.load(Ordering::Relaxed) + tally.met;
        learned.saturating_mul(self.learned_of) <= met
    }
}

/// A file that is about to be read, and then remembered.
pub(crate) struct Lesson<'a> {
    visit: &'a SearchVisit,
    stamp: FileStamp,
    before: Metadata,
    room: remembered::Reserved<'a>,
}

/// A large file whose pieces may be learned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeLesson {
    stamp: FileStamp,
}

/// A piece of a large file that is about to be read, and then remembered.
pub(crate) struct PieceLesson<'a> {
    visit: &'a SearchVisit,
    piece: Piece,
}

impl SearchVisit {
    /// Tells whether a file that was read and the clock stayed what they were.
    fn saw_no_change(&self, opened: &OpenFile, before: &Metadata) -> bool {
        let now = opened.current();
        let is_same = now.is_ok_and(|now| now.same_state(before));
        is_same && !self.memory.moment().is_behind(self.began)
    }
}

impl PieceLesson<'_> {
    /// Remembers the lines that begin in the piece, all of them whole, if the file and the clock stayed what they were.
    pub(crate) fn learn(self, opened: &OpenFile, lines: &[u8], table: &mut SketchTable) {
        let PieceLesson { visit, piece } = self;
        if !visit.saw_no_change(opened, &opened.metadata) {
            return;
        }
        let (memory, number) = (&visit.memory, visit.number);
        let learned = GrowingSketch::of(lines, table);
        let all = memory.large.keep(piece, &learned, &memory.files, number);
        let size = usize::try_from(opened.metadata.size).unwrap_or(usize::MAX);
        if let Some(all) = all
            && let Some(room) = memory.files.reserve(size, number)
        {
            let (facts, sketch) = all.finish();
            room.keep(piece.stamp, facts, sketch, number);
        }
    }
}

impl Lesson<'_> {
    /// Remembers what was read, if it is all of the file, and the file and the clock stayed what they were.
    pub(crate) fn learn(
        self,
        opened: &OpenFile,
        content: &[u8],
        is_binary: bool,
        table: &mut SketchTable,
    ) {
        let is_whole = content.len() as u64 == self.before.size;
        if !is_whole || !self.visit.saw_no_change(opened, &self.before) {
            return;
        }
        let (facts, sketch) = sketch::learn(content, is_binary, table);
        self.room.keep(self.stamp, facts, sketch, self.visit.number);
    }
}

/// Tells whether content is excluded from the search for a pattern, folded so many times to save memory; for tests.
#[doc(hidden)]
#[must_use]
pub fn excludes_content(pattern: &Pattern, content: &[u8], folds: u32) -> Option<bool> {
    let needs = crate::pattern::needs(pattern)?;
    let (facts, mut sketch) = sketch::learn(content, false, &mut SketchTable::default());
    for _ in 0..folds {
        sketch.fold();
    }
    Some(needs.exclude(facts.has_odd_letters, &sketch))
}

/// The same for content that is learned in parts of so many lines, as large files are; for tests.
#[doc(hidden)]
#[must_use]
pub fn excludes_parts(pattern: &Pattern, content: &[u8], lines: usize, folds: u32) -> Option<bool> {
    let needs = crate::pattern::needs(pattern)?;
    let mut table = SketchTable::default();
    let mut all = GrowingSketch::new();
    let mut rest = content;
    while !rest.is_empty() {
        let ends = memchr::memchr_iter(b'\n', rest);
        let end = ends.take(lines.max(1)).last();
        let (part, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        all.add(&GrowingSketch::of(part, &mut table));
        rest = behind;
    }
    let (facts, mut sketch) = all.finish();
    (0..folds).for_each(|_| sketch.fold());
    Some(needs.exclude(facts.has_odd_letters, &sketch))
}

/// Tells whether a line of content matches a pattern; for tests.
#[doc(hidden)]
#[must_use]
pub fn matches_content(pattern: &Pattern, content: &[u8]) -> Option<bool> {
    let matcher = crate::pattern::LineMatcher::new(pattern).ok()?;
    Some(matcher.next_line(content, 0).is_some())
}
