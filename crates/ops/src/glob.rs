//! Finds entries of a tree by their paths.
//!
//! Directories in which nothing can match are not entered, and only entries that are returned are asked for size and times.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{FileKind, Follow, Seen, WalkItem, WalkOptions};

use crate::context::{Cancel, Context};
use crate::entry_facts::EntryFacts;
use crate::error::{PatternRole, Result, Wanted};
use crate::gathered_bytes::{Gathered, told_entry, with_room};
use crate::ignore_rules::IgnoreRules;
use crate::operation::Operation;
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};
use crate::pattern::{PathGlob, PathMatcher};
use crate::place::Place;
use crate::shared_walk::{SharedStep, SharedWalk, WalkFilter, is_invalid_utf8};
use crate::unread::UnreadTotal;

/// How much a unit does before other calls get their turn: entries that match, and directories.
const ENTRIES_PER_UNIT: usize = 512;
const DIRECTORIES_PER_UNIT: usize = 32;
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
    /// Whether ignore files apply.
    pub ignore_rules: IgnoreRules,
    /// In which order they come.
    pub order: GlobOrder,
    /// What is neither returned nor entered.
    pub exclude: Vec<PathPattern>,
}

/// In which order entries come. The first of *all* that match are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GlobOrder {
    /// By the bytes of their paths.
    #[default]
    Path,
    /// The largest first.
    Size,
    /// The latest change first.
    Modified,
}

/// A pattern for paths relative to the searched directory.
#[derive(Debug, Clone)]
pub enum PathPattern {
    /// A glob: `*` stays within a name, `**/` descends; without `/` it is about the directory's own entries.
    Glob(String),
    /// A regular expression, found anywhere in the path.
    Regex(String),
    /// A regular expression, found nowhere in the path.
    NotRegex(String),
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
    /// The directories that could not be read.
    pub unread: UnreadTotal,
    /// More follows after what is returned.
    pub truncated: bool,
    /// The time ran out before everything was searched.
    pub timed_out: bool,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobEntry {
    /// Its path inside the root, as shown.
    pub path: Box<str>,
    /// What is known of it; a link is not followed.
    pub facts: EntryFacts,
}

impl Operation for Glob {
    type Outcome = Globbed;

    fn run(self, context: &Context) -> Result<Globbed> {
        let cancel = context.cancel.within(self.timeout);
        let search = |gathered: &_| self.try_run(context, &cancel, gathered);
        let found = with_room(context, search)?;
        if found.entries.is_empty() {
            self.place.refuse_removed_top()?;
        }
        Ok(found)
    }
}

impl Glob {
    fn try_run(
        &self,
        context: &Context,
        cancel: &Cancel,
        gathered: &Arc<Gathered>,
    ) -> Result<Globbed> {
        let search = GlobSearch {
            matcher: self.pattern.compile()?,
            kinds: self.kinds,
            // The largest entry may be anywhere.
            max_results: match self.order {
                GlobOrder::Path => self.max_results.min(ENTRIES_MAX),
                GlobOrder::Size | GlobOrder::Modified => ENTRIES_MAX,
            },
            exclude: compiled_all(&self.exclude)?,
            cancel: cancel.clone(),
            gathered: Arc::clone(gathered),
        };
        let (located, _) = self.place.existing(Follow::Last, Wanted::Directory)?;
        let dir = located.open_dir()?;
        let options = WalkOptions {
            max_depth: self.max_depth,
            ..WalkOptions::default()
        };
        let visit = context.search_memory.begin(false);
        let remembered = visit.map(|visit| visit.listings());
        let walked = SharedWalk::new(&self.place, dir, options, self.ignore_rules, remembered);
        let (mut found, ending) = ordered::run(search, Some(walked), Globbed::default(), cancel)?;
        found.timed_out = ending == RunEnd::Expired;
        self.order.apply(&mut found, self.max_results);
        Ok(found)
    }
}

impl GlobOrder {
    /// Brings what was found into this order and keeps the first of it. Equal entries stay in the order of their paths.
    fn apply(self, found: &mut Globbed, max_results: usize) {
        // The size of a directory's own list means nothing.
        let size = |entry: &GlobEntry| match entry.facts.kind {
            FileKind::Directory => 0,
            _ => entry.facts.size,
        };
        let entries = &mut found.entries;
        match self {
            GlobOrder::Path => return,
            GlobOrder::Size => entries.sort_by_key(|entry| Reverse(size(entry))),
            GlobOrder::Modified => {
                entries.sort_by_key(|entry| Reverse(entry.facts.modified()));
            }
        }
        found.truncated |= entries.len() > max_results;
        entries.truncate(max_results);
    }
}

impl PathPattern {
    fn compile(&self) -> Result<PathMatcher> {
        match self {
            PathPattern::Glob(text) => {
                PathGlob::new(PatternRole::PathGlob, text).map(PathMatcher::Glob)
            }
            PathPattern::Regex(text) => PathMatcher::regex(text),
            PathPattern::NotRegex(text) => PathMatcher::not_regex(text),
        }
    }
}

fn compiled_all(patterns: &[PathPattern]) -> Result<Vec<PathMatcher>> {
    patterns.iter().map(PathPattern::compile).collect()
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

struct GlobSearch {
    matcher: PathMatcher,
    exclude: Vec<PathMatcher>,
    kinds: Kinds,
    max_results: usize,
    cancel: Cancel,
    gathered: Arc<Gathered>,
}

impl WalkFilter for GlobSearch {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        let directory = seen.kind == FileKind::Directory;
        self.kinds.include(seen.kind)
            && (directory || !self.matcher.directories_only())
            && self.matcher.is_match(seen.path)
            && !self.excludes(seen)
    }

    fn enters(&self, directory: &Seen<'_>) -> bool {
        self.matcher
            .may_match_below(directory.name, directory.depth)
            && !self.excludes(directory)
    }
}

impl GlobSearch {
    fn excludes(&self, seen: &Seen<'_>) -> bool {
        self.exclude
            .iter()
            .any(|matcher| matcher.is_match(seen.path))
    }
}

impl GlobSearch {
    fn worked(&self, mut unit: GlobUnit, rest: Option<SharedWalk>) -> Worked<Globbed, SharedWalk> {
        let entries = &unit.found.entries;
        self.cancel.advance(entries.len() as u64);
        let bytes = entries
            .iter()
            .map(|entry| told_entry::<GlobEntry>(entry.path.len()));
        if !self.gathered.add(bytes.sum()) {
            // The results are dropped at once; the commit of this unit ends the search.
            unit.found = Globbed::default();
        }
        Worked {
            found: Some(unit.found),
            rest,
        }
    }

    /// Looks at a matching entry; `None` if it is gone meanwhile.
    fn entry(item: &WalkItem) -> Option<GlobEntry> {
        let metadata = item.dir.stat_content(&item.name).ok()?;
        Some(GlobEntry {
            path: item.path().into_boxed_str(),
            facts: EntryFacts::described(&metadata, is_invalid_utf8(item)),
        })
    }
}

/// How a unit ended.
struct GlobUnit {
    found: Globbed,
    directories: usize,
    /// One entry more than requested shows that more follow.
    most: usize,
}

impl GlobUnit {
    fn take(&mut self, met: SharedStep) {
        match met {
            SharedStep::Item(item) => self.found.entries.extend(GlobSearch::entry(&item)),
            SharedStep::Passed => self.directories += 1,
            SharedStep::Unreadable(unread) => self.found.unread.add(unread),
        }
    }

    fn must_pause(&self) -> bool {
        self.directories >= DIRECTORIES_PER_UNIT || self.found.entries.len() >= self.most
    }
}

impl Stages for GlobSearch {
    type Source = Option<SharedWalk>;
    type Batch = SharedWalk;
    type Found = Globbed;
    type Outcome = Globbed;

    fn pull(&self, source: &mut Option<SharedWalk>) -> Option<SharedWalk> {
        source.take()
    }

    fn split(&self, mut walked: SharedWalk) -> (SharedWalk, Option<SharedWalk>) {
        let later = walked.split(ENTRIES_PER_UNIT);
        (walked, later)
    }

    fn work(&self, mut walked: SharedWalk, halt: &Halt) -> Worked<Globbed, SharedWalk> {
        let mut unit = GlobUnit {
            found: Globbed::default(),
            directories: 0,
            most: self.max_results.saturating_add(1).min(ENTRIES_PER_UNIT),
        };
        while !halt.must_stop() && !unit.must_pause() {
            let Some(met) = walked.step(self) else {
                return self.worked(unit, None);
            };
            unit.take(met);
        }
        self.worked(unit, Some(walked))
    }

    fn commit(&self, outcome: &mut Globbed, found: Globbed) -> ControlFlow<()> {
        if self.gathered.is_refused() {
            return ControlFlow::Break(());
        }
        outcome.unread.extend(found.unread);
        outcome.entries.extend(found.entries);
        if outcome.entries.len() > self.max_results {
            outcome.entries.truncate(self.max_results);
            outcome.truncated = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::testing::{Tree, cancelled, context};

    fn glob(tree: &Tree, pattern: &str) -> Glob {
        Glob {
            place: tree.place("."),
            pattern: PathPattern::Glob(pattern.to_owned()),
            kinds: Kinds::All,
            max_results: 100_000,
            timeout: Duration::from_secs(300),
            max_depth: None,
            ignore_rules: IgnoreRules::Disregard,
            order: GlobOrder::Path,
            exclude: Vec::new(),
        }
    }

    fn run(request: Glob) -> Globbed {
        request.run(&context()).unwrap()
    }

    fn paths(found: &Globbed) -> Vec<&str> {
        found.entries.iter().map(|entry| &*entry.path).collect()
    }

    fn sources() -> Tree {
        Tree::with(&[
            ("a.go", "12345"),
            ("b.txt", ""),
            (".hidden.go", ""),
            ("src/a.go", ""),
            ("src/pkg/b.go", ""),
            ("src/pkg/sub/c.go", ""),
            ("src.go", ""),
            ("docs/d.go", ""),
        ])
    }

    #[test]
    fn patterns_find_what_they_say() {
        let tree = sources();
        let deep = ["src/a.go", "src/pkg/b.go", "src/pkg/sub/c.go"];
        for (pattern, expected) in [
            ("*.go", vec![".hidden.go", "a.go", "src.go"]),
            ("src/**/*.go", deep.to_vec()),
            ("src/*", vec!["src/a.go", "src/pkg"]),
            ("{src,docs}/*.go", vec!["docs/d.go", "src/a.go"]),
            ("**/sub/*", vec!["src/pkg/sub/c.go"]),
            ("s*/", vec!["src"]),
            ("**/pkg", vec!["src/pkg"]),
            ("nothing*", vec![]),
        ] {
            assert_eq!(paths(&run(glob(&tree, pattern))), expected, "{pattern}");
        }
        let below = run(Glob {
            place: tree.place("src"),
            ..glob(&tree, "**/*.go")
        });
        assert_eq!(paths(&below), deep);
        let own = run(Glob {
            place: tree.place("src"),
            ..glob(&tree, "*.go")
        });
        assert_eq!(paths(&own), ["src/a.go"]);
    }

    #[test]
    fn expressions_look_at_relative_paths() {
        let tree = sources();
        let expression = |place: &str, text: &str| {
            let pattern = PathPattern::Regex(text.to_owned());
            run(Glob {
                place: tree.place(place),
                pattern,
                ..glob(&tree, "")
            })
        };
        assert_eq!(paths(&expression(".", r"pkg/\w\.go$")), ["src/pkg/b.go"]);
        assert_eq!(paths(&expression("src", r"^pkg/.\.go$")), ["src/pkg/b.go"]);
        let bad = Glob {
            pattern: PathPattern::Regex("[unclosed".to_owned()),
            ..glob(&tree, "")
        };
        let error = bad.run(&context()).unwrap_err();
        assert!(matches!(
            error,
            Error::InvalidPattern {
                role: PatternRole::PathRegex,
                ..
            }
        ));
    }

    #[test]
    fn kinds_and_metadata_are_of_the_entry_itself() {
        let tree = sources();
        tree.link("link", "a.go");
        for (kinds, expected) in [
            (Kinds::Files, vec!["a.go"]),
            (Kinds::Symlinks, vec!["link"]),
            (Kinds::Directories, vec!["src"]),
        ] {
            let found = run(Glob {
                kinds,
                ..glob(&tree, "{a.go,link,src}")
            });
            assert_eq!(paths(&found), expected);
        }
        let file = run(glob(&tree, "a.go"));
        assert_eq!(file.entries[0].facts.size, 5);
        assert_eq!(
            run(glob(&tree, "link")).entries[0].facts.kind,
            FileKind::Symlink
        );
    }

    #[test]
    fn the_order_is_that_of_full_paths_as_bytes() {
        let tree = Tree::new();
        let mut expected = Vec::new();
        for number in 0..900 {
            let separator = ["/", ".", "-", "/x/", "0"][number % 5];
            let path = format!("d{}{separator}f{number}", number % 17);
            tree.file(&path, "");
            expected.push(path);
        }
        expected.sort();
        let all = Glob {
            kinds: Kinds::Files,
            ..glob(&tree, "**")
        };
        assert_eq!(paths(&run(all.clone())), expected);
        for wanted in [0, 1, 7, 899, 900, 901] {
            let first = run(Glob {
                max_results: wanted,
                ..all.clone()
            });
            assert_eq!(paths(&first), expected[..wanted.min(900)]);
            assert_eq!(first.truncated, wanted < 900, "{wanted}");
        }
    }

    #[test]
    fn depth_and_links_bound_the_walk() {
        let tree = sources();
        tree.link("src/up", "../docs");
        let found = run(Glob {
            max_depth: Some(2),
            ..glob(&tree, "src/**")
        });
        assert_eq!(paths(&found), ["src", "src/a.go", "src/pkg", "src/up"]);
    }

    #[test]
    fn names_that_are_not_text_match_and_are_shown() {
        let tree = Tree::new();
        tree.file_named(b"d\xfe/x\xff.go", "");
        let found = run(glob(&tree, "**/*.go"));
        assert_eq!(paths(&found), ["d\u{F7FE}/x\u{F7FF}.go"]);
        assert!(found.entries[0].facts.invalid_utf8);
    }

    #[test]
    fn deadlines_and_faults_are_told() {
        let tree = sources();
        assert!(
            run(Glob {
                timeout: Duration::ZERO,
                ..glob(&tree, "**")
            })
            .timed_out
        );
        assert!(matches!(
            glob(&tree, "*").run(&cancelled()),
            Err(Error::Cancelled)
        ));
        let file = Glob {
            place: tree.place("a.go"),
            ..glob(&tree, "*")
        };
        assert!(matches!(
            file.run(&context()),
            Err(Error::NotADirectory { .. })
        ));
        let invalid = glob(&tree, "{a").run(&context());
        assert!(matches!(
            invalid,
            Err(Error::InvalidPattern {
                role: PatternRole::PathGlob,
                ..
            })
        ));
    }
}
