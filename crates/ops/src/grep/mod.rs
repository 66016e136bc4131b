//! Searches the content of files.
//!
//! The walk hands out files in path order; the pool's threads read small ones whole into their own buffers and
//! large ones in pieces, and results are put together in path order. The first results are therefore the same
//! whatever the number of threads, and memory grows with the answer only. A search from the end does all of that
//! backwards: the last file first, and a large one from its last piece on.

mod batch;
mod commit;
mod compressed;
mod file;
mod held;
mod line_match;
mod lines;
mod memory;
mod window;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandbox::{FileKind, Follow, Seen, WalkOptions, WalkOrder};

pub use self::line_match::LineMatch;

use self::batch::{Candidate, GrepBatch, Named, Upcoming};
use self::commit::{BatchMatches, GrepProgress, PieceLines};
use self::compressed::search_compressed;
use self::file::{Collected, FileSearched, HitRoom, LargeFile, Scratch, is_binary_file};
use self::held::{HeldFile, HeldFiles};
use self::lines::Searched;
use crate::context::{Cancel, Context};
use crate::decompress::Compression;
use crate::error::{PatternRole, Result, Wanted};
use crate::gathered_bytes::{Gathered, with_room};
use crate::ignore_rules::IgnoreRules;
use crate::operation::Operation;
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};
use crate::pattern::{self, FileFilter, LineMatcher, Pattern};
use crate::place::Place;
use crate::search_memory::{Excluded, Needs, SearchVisit, SketchTable, Tally, WHOLE_MAX};
use crate::shared_walk::{SharedWalk, WalkFilter, is_file};
use crate::unread::{Unread, UnreadTotal};

/// The most lines of context on each side.
pub const CONTEXT_LINES_MAX: usize = 1000;
/// How many files and directories a unit has at most.
const FILES_PER_UNIT: usize = 64;
const DIRECTORIES_PER_UNIT: usize = 16;
/// How often a unit that opens nothing checks whether to stop.
const STEPS_PER_LOOK: u64 = 16;
/// How much a unit reads before it gives way to other calls.
const BYTES_PER_UNIT: u64 = 4 * 1024 * 1024;

/// Searches a file, or the files below a directory, for lines that match.
#[derive(Debug, Clone)]
pub struct Grep {
    /// Where: a directory or one file.
    pub place: Place,
    /// What for.
    pub pattern: Pattern,
    /// Which files, by a glob: without `/` by name at any depth, else by the path relative to the place.
    pub filter: Option<String>,
    /// How many lines before and after each match are wanted, up to [`CONTEXT_LINES_MAX`].
    pub context_lines: usize,
    /// How many matches are wanted; files, if the output is files or counts.
    pub max_results: usize,
    /// How long the search may take.
    pub timeout: Duration,
    /// How deep; 1 is the directory's own files.
    pub max_depth: Option<usize>,
    /// Larger files are skipped.
    pub max_file_size: Option<u64>,
    /// Whether ignore files count.
    pub ignore_rules: IgnoreRules,
    /// What is returned for matches.
    pub output: SearchOutput,
    /// Which matches are wanted if there are more than `max_results`.
    pub from: SearchFrom,
    /// What happens to compressed files.
    pub compressed: CompressedFiles,
}

/// Which matches are wanted if there are more than fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchFrom {
    /// The first ones.
    #[default]
    Start,
    /// The last ones. Large files are read backwards, so their lines are counted from their end.
    End,
}

/// What happens to compressed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressedFiles {
    /// They are searched as they are: most are binary and skipped.
    #[default]
    AsTheyAre,
    /// The content of files named `*.gz` and `*.zst` is searched.
    Decompressed,
}

/// What is returned for matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchOutput {
    /// Every matching line.
    #[default]
    Matches,
    /// The files that have one.
    Files,
    /// How many each file has.
    Count,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grepped {
    /// The files with matches, in the order of their paths' bytes.
    pub files: Vec<FileMatches>,
    /// How many matching lines are returned or counted; with [`SearchOutput::Files`] how many files.
    pub total_matches: u64,
    /// How many files were searched.
    pub files_searched: u64,
    /// How many were not: binary, unreadable or too large; and directories that could not be read.
    pub files_skipped: u64,
    /// How many of those could not be read, or only in part.
    pub unread: UnreadTotal,
    /// How many of those only because they are too large.
    pub files_too_large: u64,
    /// How many lines were too long to be matched as a whole: a match that spans more than 4 KiB of one may be missing.
    pub lines_in_parts: u64,
    /// More follows after what is returned.
    pub truncated: bool,
    /// The time was over before the search was.
    pub timed_out: bool,
}

/// The matches of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatches {
    /// Its path inside the root, as shown.
    pub path: String,
    /// The path's bytes are not UTF-8.
    pub invalid_utf8: bool,
    /// How many lines match; 1 with [`SearchOutput::Files`].
    pub count: u64,
    /// The lines, with [`SearchOutput::Matches`].
    pub matches: Vec<LineMatch>,
}

impl Operation for Grep {
    type Outcome = Grepped;

    fn run(self, context: &Context) -> Result<Grepped> {
        let cancel = context.cancel.within(self.timeout);
        let search = |gathered: &_| self.try_run(context, &cancel, gathered);
        let found = with_room(context, search)?;
        if found.files.is_empty() {
            self.place.refuse_removed_top()?;
        }
        Ok(found)
    }
}

impl Grep {
    fn try_run(
        &self,
        context: &Context,
        cancel: &Cancel,
        gathered: &Arc<Gathered>,
    ) -> Result<Grepped> {
        let search = GrepSearch {
            gathered: Some(Arc::clone(gathered)),
            ..GrepSearch::new(self, context, cancel)?
        };
        let source = self.source(&search)?;
        let (progress, ending) = ordered::run(search, source, GrepProgress::default(), cancel)?;
        let mut found = progress.found;
        found.timed_out = ending == RunEnd::Expired;
        if self.from == SearchFrom::End {
            found.files.reverse();
            let files = found.files.iter_mut();
            files.for_each(|file| file.matches.reverse());
        }
        Ok(found)
    }

    fn source(&self, search: &GrepSearch) -> Result<Option<GrepBatch>> {
        let (located, metadata) = self.place.existing(Follow::Last, Wanted::Anything)?;
        if metadata.kind != FileKind::Directory {
            let invalid_utf8 = located.is_invalid_utf8();
            let candidate = Candidate {
                opened: located.open_file()?,
                named: Named::Already { invalid_utf8 },
            };
            return Ok(Some(GrepBatch {
                opened: Some(candidate),
                ..GrepBatch::default()
            }));
        }
        let dir = located.open_dir()?;
        let options = WalkOptions {
            max_depth: self.max_depth,
            order: match self.from {
                SearchFrom::Start => WalkOrder::Paths,
                SearchFrom::End => WalkOrder::PathsReversed,
            },
        };
        let remembered = search.memory.as_ref().map(SearchVisit::listings);
        let walked = SharedWalk::new(&self.place, dir, options, self.ignore_rules, remembered);
        Ok(Some(GrepBatch {
            walked: Some(walked),
            ..GrepBatch::default()
        }))
    }
}

struct GrepSearch {
    matcher: LineMatcher,
    filter: Option<FileFilter>,
    wanted: Collected,
    max_results: usize,
    max_text: usize,
    max_file_size: u64,
    compressed: CompressedFiles,
    /// The memory of searches that this one uses and extends.
    memory: Option<SearchVisit>,
    /// What a match needs, if that can exclude files.
    needs: Option<Needs>,
    cancel: Cancel,
    gathered: Option<Arc<Gathered>>,
    scratches: Mutex<Vec<Scratch>>,
}

/// One unit of work under way.
struct GrepUnit<'a> {
    found: BatchMatches,
    held: HeldFiles,
    scratch: Scratch,
    room: HitRoom,
    read: u64,
    directories: usize,
    /// How often it was asked to pause.
    steps: u64,
    /// How many files were not opened.
    known: u64,
    tally: Tally,
    halt: &'a Halt,
}

impl GrepUnit<'_> {
    /// Tells whether to stop between two files.
    fn must_pause(&mut self) -> bool {
        let files = self.found.searched + self.found.skipped;
        // Files that are not opened take so little time that checking the clock for each would be noticeable.
        let looks = self.steps.is_multiple_of(STEPS_PER_LOOK) || files > self.known;
        self.steps += 1;
        self.read > BYTES_PER_UNIT
            || files >= FILES_PER_UNIT as u64
            || self.directories >= DIRECTORIES_PER_UNIT
            || (looks && self.halt.must_stop())
    }
}

/// What follows after a file.
enum Next {
    Another,
    Enough,
    Halted,
    Pieces(LargeFile),
}

impl GrepSearch {
    fn new(request: &Grep, context: &Context, cancel: &Cancel) -> Result<GrepSearch> {
        let memory = &context.search_memory;
        let needs = memory
            .is_on()
            .then(|| pattern::needs(&request.pattern))
            .flatten();
        Ok(GrepSearch {
            matcher: LineMatcher::new(&request.pattern)?,
            memory: memory.begin(needs.is_some()),
            needs,
            filter: request
                .filter
                .as_deref()
                .map(|text| FileFilter::new(PatternRole::SearchedFiles, text))
                .transpose()?,
            wanted: Collected {
                output: request.output,
                context_lines: request.context_lines.min(CONTEXT_LINES_MAX),
                from: request.from,
            },
            max_results: request.max_results,
            max_text: usize::try_from(context.limits.max_file_size).unwrap_or(usize::MAX),
            max_file_size: request.max_file_size.unwrap_or(u64::MAX),
            compressed: request.compressed,
            cancel: cancel.clone(),
            gathered: None,
            scratches: Mutex::new(Vec::new()),
        })
    }

    /// Counts what a unit found, and tells whether there is room for it.
    fn gathers(&self, found: &BatchMatches) -> bool {
        let gathered = self.gathered.as_ref();
        gathered.is_none_or(|gathered| gathered.add(found.footprint()))
    }

    /// Lends a thread its buffers; there are never more than threads working at once.
    fn scratch(&self) -> Scratch {
        let mut scratches = self
            .scratches
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let fresh = || Scratch {
            matcher: self.matcher.clone(),
            buffer: Vec::new(),
            table: SketchTable::default(),
        };
        scratches.pop().unwrap_or_else(fresh)
    }

    fn give_back(&self, scratch: Scratch) {
        self.scratches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(scratch);
    }

    fn room(&self) -> HitRoom {
        HitRoom {
            matches: self.max_results.saturating_add(1),
            text: self.max_text.max(1),
        }
    }

    /// Searches files one after the other, and hands back those it did not get to.
    fn files(&self, batch: GrepBatch, unit: &mut GrepUnit<'_>) -> Option<GrepBatch> {
        let rest = self.each_file(batch, unit);
        unit.held.tell(&mut unit.found);
        rest
    }

    fn each_file(&self, mut batch: GrepBatch, unit: &mut GrepUnit<'_>) -> Option<GrepBatch> {
        loop {
            if unit.must_pause() {
                return Some(batch);
            }
            let candidate = match batch.next(self, &mut unit.tally)? {
                Upcoming::File(candidate) => candidate,
                Upcoming::Known(excluded, size) => {
                    unit.known += 1;
                    // Counted as if it had been read, because the end of a unit affects the counts of a cut reply.
                    unit.read += size;
                    match excluded {
                        Excluded::Text => unit.found.searched += 1,
                        Excluded::Binary => unit.found.skipped += 1,
                    }
                    if size > WHOLE_MAX {
                        // Its pieces would have been other units.
                        return Some(batch);
                    }
                    continue;
                }
                Upcoming::Unreadable(unread) => {
                    unit.found.skip(unread);
                    continue;
                }
                Upcoming::Directory => {
                    unit.directories += 1;
                    continue;
                }
            };
            match self.file(candidate, unit) {
                Next::Another => {}
                // If one of them has moved, more is wanted.
                Next::Enough if !unit.held.tell(&mut unit.found) => {}
                Next::Enough => {
                    unit.found.full = unit.room.text == 0;
                    return None;
                }
                Next::Halted => return Some(batch),
                Next::Pieces(large) => {
                    return Some(GrepBatch {
                        large: Some(large),
                        ..batch
                    });
                }
            }
        }
    }

    fn file(&self, candidate: Candidate, unit: &mut GrepUnit<'_>) -> Next {
        let size = candidate.opened.metadata.size;
        let is_too_large = size > self.max_file_size;
        let compression = match self.compressed {
            CompressedFiles::AsTheyAre => None,
            CompressedFiles::Decompressed => candidate.compression(),
        };
        let is_large = size > WHOLE_MAX && compression.is_none();
        if is_too_large || (is_large && is_binary_file(&candidate.opened)) {
            unit.found.skipped += 1;
            unit.found.too_large += u64::from(is_too_large);
            return Next::Another;
        }
        unit.read += size;
        if is_large && candidate.is_moved() {
            unit.found.skipped += 1;
            return Next::Another;
        }
        if is_large {
            unit.found.searched += 1;
            let lesson = self.large_lesson(&candidate);
            let (opened, invalid_utf8) = candidate.with_path();
            return Next::Pieces(LargeFile {
                opened: Arc::new(opened),
                invalid_utf8,
                start: 0,
                end: size,
                lesson,
            });
        }
        let searched = match compression {
            Some(kind) => self.unfolded(&candidate, kind, unit),
            None => self.search_and_learn(&candidate, unit),
        };
        self.searched(candidate, searched, unit)
    }

    fn unfolded(
        &self,
        candidate: &Candidate,
        kind: Compression,
        unit: &mut GrepUnit<'_>,
    ) -> FileSearched {
        let GrepUnit {
            scratch,
            room,
            halt,
            ..
        } = unit;
        search_compressed(&candidate.opened, kind, self.wanted, scratch, room, halt)
    }

    /// Adds the result for one file.
    fn searched(
        &self,
        candidate: Candidate,
        searched: FileSearched,
        unit: &mut GrepUnit<'_>,
    ) -> Next {
        let FileSearched {
            hits,
            ended,
            unread,
            ..
        } = searched;
        let is_binary = hits.is_none();
        unit.held
            .add(HeldFile::new(candidate, hits, unread), &mut unit.found);
        if is_binary {
            return Next::Another;
        }
        let files_only = self.wanted.output != SearchOutput::Matches;
        match ended {
            Searched::Halted => Next::Halted,
            _ if files_only && unit.found.files.len() + unit.held.len() > self.max_results => {
                Next::Enough
            }
            Searched::Enough if !files_only => Next::Enough,
            _ => Next::Another,
        }
    }

    /// Searches one piece of a large file; hands it back when it had to stop inside.
    fn piece(&self, large: LargeFile, unit: &mut GrepUnit<'_>) -> Option<GrepBatch> {
        let piece = self.search_piece_and_learn(&large, unit);
        unit.found.piece = Some(PieceLines {
            is_first: match self.wanted.from {
                SearchFrom::Start => large.start == 0,
                SearchFrom::End => large.end == large.opened.metadata.size,
            },
            lines: piece.lines,
        });
        unit.found.unreadable = piece.unreadable.map(|reason| Unread {
            path: large.opened.path.clone(),
            reason,
        });
        unit.found.full = unit.room.text == 0;
        unit.found.lines_in_parts += piece.hits.lines_in_parts;
        unit.found
            .add(large.opened.path.clone(), large.invalid_utf8, piece.hits);
        let halted = piece.searched == Searched::Halted;
        halted.then(|| GrepBatch {
            large: Some(large),
            ..GrepBatch::default()
        })
    }
}

impl WalkFilter for GrepSearch {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        is_file(seen)
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.chooses(seen))
    }

    fn enters(&self, directory: &Seen<'_>) -> bool {
        let below = |filter: &FileFilter| filter.may_match_below(directory.name, directory.depth);
        self.filter.as_ref().is_none_or(below)
    }
}

impl Stages for GrepSearch {
    type Source = Option<GrepBatch>;
    type Batch = GrepBatch;
    type Found = BatchMatches;
    type Outcome = GrepProgress;

    fn pull(&self, source: &mut Option<GrepBatch>) -> Option<GrepBatch> {
        source.take()
    }

    /// Cuts the next piece off a large file, or some files off a walk; other threads can take what is behind.
    fn split(&self, mut batch: GrepBatch) -> (GrepBatch, Option<GrepBatch>) {
        let later = match (batch.large.take(), &mut batch.walked) {
            (Some(large), _) => Some(batch.split_large(large, self.wanted.from)),
            (None, Some(walked)) => walked.split(FILES_PER_UNIT).map(|walked| GrepBatch {
                walked: Some(walked),
                ..GrepBatch::default()
            }),
            (None, None) => None,
        };
        (batch, later.filter(|later| !later.is_empty()))
    }

    fn work(&self, mut batch: GrepBatch, halt: &Halt) -> Worked<BatchMatches, GrepBatch> {
        let mut unit = GrepUnit {
            found: BatchMatches::default(),
            held: HeldFiles::default(),
            scratch: self.scratch(),
            room: self.room(),
            read: 0,
            directories: 0,
            steps: 0,
            known: 0,
            tally: Tally::default(),
            halt,
        };
        let rest = match batch.large.take() {
            Some(large) => self.piece(large, &mut unit),
            None => self.files(batch, &mut unit),
        };
        self.cancel
            .advance(unit.found.searched + unit.found.skipped);
        self.give_back(unit.scratch);
        if let Some(memory) = &self.memory {
            memory.add(unit.tally);
        }
        if !self.gathers(&unit.found) {
            // The results are dropped at once; the commit of this unit ends the search.
            unit.found = BatchMatches::default();
        }
        Worked {
            found: Some(unit.found),
            rest,
        }
    }

    fn commit(&self, progress: &mut GrepProgress, found: BatchMatches) -> ControlFlow<()> {
        let gathered = self.gathered.as_ref();
        if gathered.is_some_and(|gathered| gathered.is_refused()) {
            return ControlFlow::Break(());
        }
        self.commit_batch(progress, found)
    }
}

#[cfg(test)]
mod tests;
