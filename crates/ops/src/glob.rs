//! Finds entries of a tree by their paths.
//!
//! Directories in which nothing can match are not entered, and only what is returned is looked at for its size and times.

use std::ops::ControlFlow;
use std::time::Duration;

use sandbox::{FileKind, Follow, Metadata, WalkItem};

use crate::context::{Cancel, Context};
use crate::error::Result;
use crate::ignore_rules::IgnoreRules;
use crate::ordered::{self, Ending, Halt, Stages, Worked};
use crate::pattern::{PathGlob, PathMatcher};
use crate::place::Place;
use crate::walked::{Choice, Walked, WalkedBatch};

/// How many entries a batch has at most.
const ENTRIES_PER_BATCH: usize = 512;
/// How many entries are returned at most, whatever a call asks for.
pub const ENTRIES_MAX: usize = 1_000_000;

/// Finds the entries below a directory whose path relative to it matches.
#[derive(Debug, Clone)]
pub struct Glob {
    /// The directory.
    pub place: Place,
    /// What their paths match.
    pub pattern: PathPattern,
    /// Which kinds are wanted.
    pub kinds: Kinds,
    /// How many are wanted, up to [`ENTRIES_MAX`].
    pub max_results: usize,
    /// How long the search may take.
    pub timeout: Duration,
    /// How deep; 1 is the directory's own entries.
    pub max_depth: Option<usize>,
    /// Whether ignore files count.
    pub ignore_rules: IgnoreRules,
}

/// A pattern for paths relative to the searched directory.
#[derive(Debug, Clone)]
pub enum PathPattern {
    /// A glob: `*` stays within a name, `**/` descends; without `/` it is about the directory's own entries.
    Glob(String),
    /// A regular expression, found anywhere in the path.
    Regex(String),
}

/// Which kinds of entries are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kinds {
    /// All.
    #[default]
    All,
    /// Regular files.
    Files,
    /// Directories.
    Directories,
    /// Symbolic links.
    Symlinks,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globbed {
    /// The entries, in the order of their paths' bytes.
    pub entries: Vec<GlobEntry>,
    /// How many directories could not be read.
    pub directories_skipped: u64,
    /// More follows after what is returned.
    pub truncated: bool,
    /// The time was over before the search was.
    pub timed_out: bool,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobEntry {
    /// Its path inside the root, as shown.
    pub path: String,
    /// The path's bytes are not UTF-8.
    pub invalid_utf8: bool,
    /// What is known of it; a link is not followed.
    pub metadata: Metadata,
}

impl Glob {
    /// Runs the search.
    pub fn run(self, context: &Context) -> Result<Globbed> {
        let cancel = context.cancel.within(self.timeout);
        let search = Search {
            matcher: self.pattern.compile()?,
            kinds: self.kinds,
            max_results: self.max_results.min(ENTRIES_MAX),
            cancel: cancel.clone(),
        };
        let dir = self.place.root.locate(&self.place.path, Follow::Last)?.open_dir()?;
        let walked =
            Walked::new(&self.place, dir, self.max_depth, self.ignore_rules, ENTRIES_PER_BATCH);
        let (mut found, ending) = ordered::run(search, walked, Globbed::default(), &cancel)?;
        found.timed_out = ending == Ending::Expired;
        Ok(found)
    }
}

impl PathPattern {
    fn compile(&self) -> Result<PathMatcher> {
        match self {
            PathPattern::Glob(text) => PathGlob::new("pattern", text).map(PathMatcher::Glob),
            PathPattern::Regex(text) => PathMatcher::regex(text),
        }
    }
}

impl Kinds {
    fn include(self, kind: FileKind) -> bool {
        match self {
            Kinds::All => true,
            Kinds::Files => kind == FileKind::File,
            Kinds::Directories => kind == FileKind::Directory,
            Kinds::Symlinks => kind == FileKind::Symlink,
        }
    }
}

struct Search {
    matcher: PathMatcher,
    kinds: Kinds,
    max_results: usize,
    cancel: Cancel,
}

impl Choice for Search {
    fn enters(&self, directory: &WalkItem) -> bool {
        self.matcher.may_match_below(directory.name.as_bytes(), directory.depth)
    }

    fn wants(&self, item: &WalkItem) -> bool {
        let directory = item.kind == FileKind::Directory;
        self.kinds.include(item.kind) && (directory || !self.matcher.directories_only())
    }
}

impl Search {
    /// Looks at a matching entry; `None` when it is gone meanwhile.
    fn entry(item: &WalkItem) -> Option<GlobEntry> {
        let metadata = item.dir.stat(&item.name).ok()?;
        let invalid_utf8 =
            item.name.is_invalid_utf8() || std::str::from_utf8(item.dir.path_bytes()).is_err();
        Some(GlobEntry { path: item.path(), invalid_utf8, metadata })
    }
}

/// Builds the paths of entries relative to where their walk began, the directory's part once for its entries.
#[derive(Default)]
struct RelativePaths {
    directory: String,
    bytes: Vec<u8>,
    prefix: usize,
}

impl RelativePaths {
    fn of(&mut self, item: &WalkItem) -> &[u8] {
        if self.bytes.is_empty() || self.directory != item.dir.path() {
            item.dir.path().clone_into(&mut self.directory);
            self.bytes = crate::walked::relative_path(item);
            self.prefix = self.bytes.len() - item.name.as_bytes().len();
        } else {
            self.bytes.truncate(self.prefix);
            self.bytes.extend_from_slice(item.name.as_bytes());
        }
        &self.bytes
    }
}

impl Stages for Search {
    type Source = Walked;
    type Batch = WalkedBatch;
    type Found = Globbed;
    type Outcome = Globbed;

    fn pull(&self, source: &mut Walked) -> Option<WalkedBatch> {
        source.next_batch(self)
    }

    fn split(&self, batch: WalkedBatch) -> (WalkedBatch, Option<WalkedBatch>) {
        (batch, None)
    }

    fn work(&self, batch: WalkedBatch, halt: &Halt) -> Worked<Globbed, WalkedBatch> {
        let mut found = Globbed { directories_skipped: batch.unreadable, ..Globbed::default() };
        if halt.must_stop() {
            return Worked { found, rest: Some(batch) };
        }
        let mut paths = RelativePaths::default();
        let matching = batch.items.iter().filter(|item| self.matcher.is_match(paths.of(item)));
        // One more than wanted tells whether more follows.
        let most = self.max_results.saturating_add(1);
        found.entries.extend(matching.filter_map(Search::entry).take(most));
        self.cancel.advance(batch.items.len() as u64);
        Worked { found, rest: None }
    }

    fn commit(&self, outcome: &mut Globbed, found: Globbed) -> ControlFlow<()> {
        outcome.directories_skipped += found.directories_skipped;
        outcome.entries.extend(found.entries);
        if outcome.entries.len() > self.max_results {
            outcome.entries.truncate(self.max_results);
            outcome.truncated = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
