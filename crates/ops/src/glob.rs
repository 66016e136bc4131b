//! Finds entries of a tree by their paths.
//!
//! Directories in which nothing can match are not entered, and only what is returned is looked at for its size and times.

use std::ops::ControlFlow;
use std::time::Duration;

use sandbox::{FileKind, Follow, Metadata, WalkItem};

use crate::context::{Cancel, Context};
use crate::error::{Result, Wanted};
use crate::ignore_rules::IgnoreRules;
use crate::operation::Operation;
use crate::ordered::{self, Ending, Halt, Stages, Worked};
use crate::pattern::{PathGlob, PathMatcher};
use crate::place::Place;
use crate::walked::{Choice, Walked, WalkedBatch, is_invalid_utf8};

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

impl Operation for Glob {
    type Outcome = Globbed;

    fn run(self, context: &Context) -> Result<Globbed> {
        let cancel = context.cancel.within(self.timeout);
        let search = Search {
            matcher: self.pattern.compile()?,
            kinds: self.kinds,
            max_results: self.max_results.min(ENTRIES_MAX),
            cancel: cancel.clone(),
        };
        let (located, _) = self.place.existing(Follow::Last, Wanted::Directory)?;
        let dir = located.open_dir()?;
        let walked = Walked::new(
            &self.place,
            dir,
            self.max_depth,
            self.ignore_rules,
            ENTRIES_PER_BATCH,
        );
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
        self.matcher
            .may_match_below(directory.name.as_bytes(), directory.depth)
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
        let invalid_utf8 = is_invalid_utf8(item);
        Some(GlobEntry {
            path: item.path(),
            invalid_utf8,
            metadata,
        })
    }
}

impl Search {
    /// Collects the matching entries; tells how many were looked at before it had to stop.
    fn look(&self, items: &[WalkItem], found: &mut Globbed, halt: &Halt) -> usize {
        let mut paths = RelativePaths::default();
        for (index, item) in items.iter().enumerate() {
            if halt.must_stop() {
                return index;
            }
            // One more than wanted tells whether more follows.
            if found.entries.len() > self.max_results {
                break;
            }
            if self.matcher.is_match(paths.of(item)) {
                found.entries.extend(Search::entry(item));
            }
        }
        items.len()
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

    fn work(&self, mut batch: WalkedBatch, halt: &Halt) -> Worked<Globbed, WalkedBatch> {
        let mut found = Globbed {
            directories_skipped: std::mem::take(&mut batch.unreadable),
            ..Globbed::default()
        };
        let looked = self.look(&batch.items, &mut found, halt);
        self.cancel.advance(looked as u64);
        batch.items.drain(..looked);
        let rest = (!batch.items.is_empty()).then_some(batch);
        Worked { found, rest }
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
        }
    }

    fn run(request: Glob) -> Globbed {
        request.run(&context()).unwrap()
    }

    fn paths(found: &Globbed) -> Vec<&str> {
        found
            .entries
            .iter()
            .map(|entry| entry.path.as_str())
            .collect()
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
                argument: "regex",
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
        assert_eq!(file.entries[0].metadata.size, 5);
        assert_eq!(
            run(glob(&tree, "link")).entries[0].metadata.kind,
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
        assert_eq!(paths(&found), ["src/a.go", "src/pkg", "src/up"]);
    }

    #[test]
    fn names_that_are_not_text_match_and_are_shown() {
        let tree = Tree::new();
        tree.file_named(b"d\xfe/x\xff.go", "");
        let found = run(glob(&tree, "**/*.go"));
        assert_eq!(paths(&found), ["d\u{F7FE}/x\u{F7FF}.go"]);
        assert!(found.entries[0].invalid_utf8);
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
                argument: "pattern",
                ..
            })
        ));
    }
}
