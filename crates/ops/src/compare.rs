//! Compares two directories, or two files, by their content.
//!
//! Both trees are walked side by side in the same order, so only the result is held in memory. Sizes are compared
//! first, then bytes, on the pool.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::time::Duration;

use sandbox::{Dir, FileKind, Follow, Name, OpenFile, WalkItem, WalkOptions, Walker};
use similar::TextDiff;

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::ordered::{self, Halt, Stages, Worked};
use crate::place::Place;
use crate::read_at::{read_at, read_up_to};
use crate::text::encoding;

/// How many paths of each kind are listed.
const PATHS_TOLD: usize = 1000;
/// The largest files that are compared line by line, and how much of the diff is returned.
const DIFFED_MAX: u64 = 4 * 1024 * 1024;
const DIFF_TOLD: usize = 64 * 1024;
/// How long that may take; after that the diff is coarser, but correct. It is computed in one go, so other calls get no
/// turn meanwhile.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(200);
/// How many lines around a change a difference has.
const DIFF_CONTEXT: usize = 3;
/// How many entries a unit has, and how many bytes of a pair it compares.
const UNIT_ENTRIES: usize = 16;
const UNIT_BYTES: u64 = 32 * 1024 * 1024;
const BLOCK: usize = 128 * 1024;

/// Compares two places.
#[derive(Debug)]
pub struct Compare {
    /// The first place; links are followed.
    pub place: Place,
    /// The second place; links are followed.
    pub other: Place,
}

/// The outcome of a comparison.
#[derive(Debug)]
pub enum Compared {
    /// For two directories.
    Directories(ComparedDirectories),
    /// For two files.
    Files(ComparedFiles),
}

/// How two directories differ. Paths are relative to them; a directory ends with a slash and stands for everything in
/// it.
#[derive(Debug, Default)]
pub struct ComparedDirectories {
    /// What only the first has.
    pub only_here: ToldPaths,
    /// What only the other has.
    pub only_there: ToldPaths,
    /// What both have with different content.
    pub differ: ToldPaths,
    /// Those of them that have the same size.
    pub same_size: Vec<String>,
    /// What could not be read.
    pub unreadable: ToldPaths,
    /// How many files and links are equal.
    pub equal: u64,
}

/// Paths, of which only the first are listed.
#[derive(Debug, Default)]
pub struct ToldPaths {
    /// The first, in order.
    pub paths: Vec<String>,
    /// How many there are.
    pub count: u64,
}

impl ToldPaths {
    fn add(&mut self, path: String) {
        self.count += 1;
        if self.paths.len() < PATHS_TOLD {
            self.paths.push(path);
        }
    }
}

/// How two files differ.
#[derive(Debug)]
pub struct ComparedFiles {
    /// Whether every byte is the same.
    pub equal: bool,
    /// Their sizes in bytes.
    pub sizes: (u64, u64),
    /// A unified diff, if both are texts that are not too large.
    pub diff: Option<String>,
    /// The diff was cut.
    pub truncated: bool,
}

impl Operation for Compare {
    type Outcome = Compared;

    fn run(self, context: &Context) -> Result<Compared> {
        let (here, one) = self.place.existing(Follow::Last, Wanted::Anything)?;
        let (there, other) = self.other.existing(Follow::Last, Wanted::Anything)?;
        match (one.is_directory(), other.is_directory()) {
            (true, true) => {
                let merge = Merge::new(here.open_dir()?, there.open_dir()?);
                let outcome = ComparedDirectories::default();
                let (outcome, _) = ordered::run(Comparing, merge, outcome, &context.cancel)?;
                context.cancel.check()?;
                Ok(Compared::Directories(outcome))
            }
            (false, false) => self.files(context).map(Compared::Files),
            (true, false) => Err(Error::NotADirectory { path: there.path() }),
            (false, true) => Err(Error::NotADirectory { path: here.path() }),
        }
    }
}

impl Compare {
    fn files(&self, context: &Context) -> Result<ComparedFiles> {
        let one = self.place.open_file(Wanted::File)?;
        let other = self.other.open_file(Wanted::File)?;
        compare_files(&one, &other, context)
    }
}

/// Compares two open files.
pub(crate) fn compare_files(
    one: &OpenFile,
    other: &OpenFile,
    context: &Context,
) -> Result<ComparedFiles> {
    let sizes = (one.metadata.size, other.metadata.size);
    let stop = || context.cancel.check_and_give_way().is_err();
    let equal = sizes.0 == sizes.1 && same_content(one, other, 0, u64::MAX, &stop)?.same;
    context.cancel.check()?;
    let mut compared = ComparedFiles {
        equal,
        sizes,
        diff: None,
        truncated: false,
    };
    if !equal && sizes.0.max(sizes.1) <= DIFFED_MAX {
        context.take_room(sizes.0.saturating_add(sizes.1))?;
        let read = |open| read_up_to(open, 0, DIFFED_MAX, &context.cancel);
        let (old, new) = (read(one)?, read(other)?);
        let texts = encoding::utf8(&old).zip(encoding::utf8(&new));
        let diff = texts.map(|(old, new)| diff((&one.path, old), (&other.path, new)));
        context.cancel.check_and_give_way()?;
        compared.truncated = diff.as_ref().is_some_and(|diff| diff.len() > DIFF_TOLD);
        compared.diff = diff.map(|diff| whole_lines(diff, DIFF_TOLD));
    }
    Ok(compared)
}

fn diff((old_name, old): (&str, &str), (new_name, new): (&str, &str)) -> String {
    let mut config = TextDiff::configure();
    let diff = config.timeout(DIFF_TIME).diff_lines(old, new);
    unified(&diff, old_name, new_name)
}

/// A unified diff with these names.
pub(crate) fn unified<'text>(
    diff: &'text TextDiff<'text, 'text, 'text, str>,
    old_name: &str,
    new_name: &str,
) -> String {
    let mut unified = diff.unified_diff();
    unified
        .context_radius(DIFF_CONTEXT)
        .header(old_name, new_name)
        .to_string()
}

/// The text, cut behind its last line that ends within this many bytes.
pub(crate) fn whole_lines(mut text: String, most: usize) -> String {
    if text.len() > most {
        let head = text.as_bytes().get(..most).unwrap_or_default();
        let end = memchr::memrchr(b'\n', head).map_or(0, |newline| newline + 1);
        text.truncate(end);
    }
    text
}

/// What a comparison of contents found so far.
struct ContentVerdict {
    same: bool,
    /// Where to go on, if it did not get to the end.
    next: Option<u64>,
}

/// Compares two files from an offset on, up to a number of bytes.
fn same_content(
    one: &OpenFile,
    other: &OpenFile,
    from: u64,
    most: u64,
    stop: &dyn Fn() -> bool,
) -> Result<ContentVerdict> {
    let (mut here, mut there) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut offset = from;
    let verdict = |same, next| Ok(ContentVerdict { same, next });
    while offset.saturating_sub(from) < most {
        if stop() {
            return verdict(false, Some(offset));
        }
        let count = fill(one, &mut here, offset)?;
        if fill(other, &mut there, offset)? != count || here.get(..count) != there.get(..count) {
            return verdict(false, None);
        }
        if count < BLOCK {
            return verdict(true, None);
        }
        offset += count as u64;
    }
    verdict(true, Some(offset))
}

fn fill(open: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match read_at(open, room, offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Two walks side by side.
struct Merge {
    here: ComparedTree,
    there: ComparedTree,
}

/// One of two walks, and its next entry.
struct ComparedTree {
    walker: Walker,
    prefix: usize,
    next: Option<Entry>,
    started: bool,
    /// A directory that is not entered, because the other side has none there.
    skipped: Option<Vec<u8>>,
}

/// An entry, or a directory that cannot be read.
struct Entry {
    path: Vec<u8>,
    item: Option<WalkItem>,
}

impl ComparedTree {
    fn new(dir: Dir) -> ComparedTree {
        ComparedTree {
            prefix: dir.path_bytes().len(),
            walker: Walker::new(dir, WalkOptions::default()),
            next: None,
            started: false,
            skipped: None,
        }
    }

    /// The next entry.
    fn peek(&mut self) -> Option<&Entry> {
        if !self.started {
            self.started = true;
            self.next = self.advance();
        }
        self.next.as_ref()
    }

    fn take(&mut self) -> Option<Entry> {
        self.peek()?;
        self.started = false;
        self.next.take()
    }

    fn advance(&mut self) -> Option<Entry> {
        let (prefix, skipped) = (self.prefix, self.skipped.as_deref());
        let relative = |path: &[u8]| {
            let path = path.get(prefix..).unwrap_or_default();
            path.strip_prefix(b"/").unwrap_or(path).to_vec()
        };
        let mut descend = |item: &WalkItem| Some(&*relative(&item.path_bytes())) != skipped;
        Some(match self.walker.next(&mut descend)? {
            Ok(item) => Entry {
                path: relative(&item.path_bytes()),
                item: Some(item),
            },
            Err(fault) => Entry {
                path: relative(fault.path.as_bytes()),
                item: None,
            },
        })
    }
}

/// An entry of one directory or of both.
enum Met {
    OnlyHere(Vec<u8>, FileKind),
    OnlyThere(Vec<u8>, FileKind),
    Unreadable(Vec<u8>),
    /// An entry of a different kind on each side.
    Unlike(Vec<u8>),
    Both(Box<PathPair>),
}

/// Two files or two links of the same path, and how far they were compared.
struct PathPair {
    path: Vec<u8>,
    kind: FileKind,
    here: (Dir, Name),
    there: (Dir, Name),
    offset: u64,
}

impl Merge {
    fn new(here: Dir, there: Dir) -> Merge {
        Merge {
            here: ComparedTree::new(here),
            there: ComparedTree::new(there),
        }
    }

    fn next(&mut self) -> Option<Met> {
        loop {
            let order = match (self.here.peek(), self.there.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(here), Some(there)) => here.path.cmp(&there.path),
            };
            let met = match order {
                Ordering::Less => only(&mut self.here, Met::OnlyHere),
                Ordering::Greater => only(&mut self.there, Met::OnlyThere),
                Ordering::Equal => self.both(),
            };
            if met.is_some() {
                return met;
            }
        }
    }

    /// An entry that both have; `None` for two directories, whose entries follow.
    fn both(&mut self) -> Option<Met> {
        let (here, there) = (self.here.take()?, self.there.take()?);
        let path = here.path;
        let (Some(here), Some(there)) = (here.item, there.item) else {
            return Some(Met::Unreadable(path));
        };
        if here.kind != there.kind {
            self.here.skipped = Some(path.clone());
            self.there.skipped = Some(path.clone());
            return Some(Met::Unlike(path));
        }
        (here.kind != FileKind::Directory).then(|| {
            Met::Both(Box::new(PathPair {
                path,
                kind: here.kind,
                here: (here.dir, here.name),
                there: (there.dir, there.name),
                offset: 0,
            }))
        })
    }
}

/// An entry that only one side has; its content is not listed.
fn only(side: &mut ComparedTree, met: fn(Vec<u8>, FileKind) -> Met) -> Option<Met> {
    let entry = side.take()?;
    Some(match entry.item {
        Some(item) => {
            side.skipped = Some(entry.path.clone());
            met(entry.path, item.kind)
        }
        None => Met::Unreadable(entry.path),
    })
}

/// What was found out about an entry.
enum EntryVerdict {
    OnlyHere(String),
    OnlyThere(String),
    Unreadable(String),
    Differ { path: String, same_size: bool },
    Equal,
}

struct Comparing;

impl Stages for Comparing {
    type Source = Merge;
    type Batch = (Vec<EntryVerdict>, std::collections::VecDeque<Met>);
    type Found = Vec<EntryVerdict>;
    type Outcome = ComparedDirectories;

    fn pull(&self, source: &mut Merge) -> Option<Self::Batch> {
        let entries = std::iter::from_fn(|| source.next()).take(UNIT_ENTRIES);
        let batch: std::collections::VecDeque<Met> = entries.collect();
        (!batch.is_empty()).then(|| (Vec::new(), batch))
    }

    fn split(&self, batch: Self::Batch) -> (Self::Batch, Option<Self::Batch>) {
        (batch, None)
    }

    fn work(&self, batch: Self::Batch, halt: &Halt) -> Worked<Vec<EntryVerdict>, Self::Batch> {
        let (mut verdicts, mut left) = batch;
        let mut budget = UNIT_BYTES;
        while let Some(met) = left.pop_front() {
            match judge(met, &mut budget, halt) {
                Ok(verdict) => verdicts.push(verdict),
                Err(unfinished) => left.push_front(unfinished),
            }
            if budget == 0 || halt.must_stop() {
                break;
            }
        }
        let (found, rest) = match left.is_empty() {
            true => (Some(verdicts), None),
            false => (None, Some((verdicts, left))),
        };
        Worked { found, rest }
    }

    fn commit(
        &self,
        outcome: &mut ComparedDirectories,
        found: Vec<EntryVerdict>,
    ) -> ControlFlow<()> {
        for verdict in found {
            match verdict {
                EntryVerdict::OnlyHere(path) => outcome.only_here.add(path),
                EntryVerdict::OnlyThere(path) => outcome.only_there.add(path),
                EntryVerdict::Unreadable(path) => outcome.unreadable.add(path),
                EntryVerdict::Equal => outcome.equal += 1,
                EntryVerdict::Differ { path, same_size } => {
                    if same_size && outcome.differ.paths.len() < PATHS_TOLD {
                        outcome.same_size.push(path.clone());
                    }
                    outcome.differ.add(path);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Finds out about an entry, or gives it back if the budget or the time is over.
fn judge(met: Met, budget: &mut u64, halt: &Halt) -> std::result::Result<EntryVerdict, Met> {
    let told = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    Ok(match met {
        Met::OnlyHere(path, kind) => EntryVerdict::OnlyHere(with_slash(told(&path), kind)),
        Met::OnlyThere(path, kind) => EntryVerdict::OnlyThere(with_slash(told(&path), kind)),
        Met::Unreadable(path) => EntryVerdict::Unreadable(told(&path)),
        Met::Unlike(path) => EntryVerdict::Differ {
            path: told(&path),
            same_size: false,
        },
        Met::Both(pair) => {
            let path = told(&pair.path);
            match pair.compare(budget, halt) {
                Err(_) => EntryVerdict::Unreadable(path),
                Ok(PairVerdict::Equal) => EntryVerdict::Equal,
                Ok(PairVerdict::Differ { same_size }) => EntryVerdict::Differ { path, same_size },
                Ok(PairVerdict::Unfinished(pair)) => return Err(Met::Both(pair)),
            }
        }
    })
}

fn with_slash(path: String, kind: FileKind) -> String {
    if kind == FileKind::Directory {
        path + "/"
    } else {
        path
    }
}

enum PairVerdict {
    Equal,
    Differ { same_size: bool },
    Unfinished(Box<PathPair>),
}

impl PathPair {
    fn compare(self: Box<PathPair>, budget: &mut u64, halt: &Halt) -> Result<PairVerdict> {
        match self.kind {
            FileKind::File => self.compare_files(budget, halt),
            FileKind::Symlink => self.compare_links(),
            // Pipes, sockets and devices have no content of their own.
            _ => Ok(PairVerdict::Equal),
        }
    }

    fn compare_links(&self) -> Result<PairVerdict> {
        let ((dir, name), (other_dir, other_name)) = (&self.here, &self.there);
        let same = dir.read_link(name)? == other_dir.read_link(other_name)?;
        Ok(match same {
            true => PairVerdict::Equal,
            false => PairVerdict::Differ { same_size: false },
        })
    }

    fn compare_files(
        mut self: Box<PathPair>,
        budget: &mut u64,
        halt: &Halt,
    ) -> Result<PairVerdict> {
        let ((dir, name), (other_dir, other_name)) = (&self.here, &self.there);
        let (one, other) = (dir.open_file(name)?, other_dir.open_file(other_name)?);
        if one.metadata.size != other.metadata.size {
            return Ok(PairVerdict::Differ { same_size: false });
        }
        let stop = || {
            halt.give_way();
            halt.must_stop()
        };
        let found = same_content(&one, &other, self.offset, *budget, &stop)?;
        let seen = found.next.unwrap_or(one.metadata.size);
        *budget = budget.saturating_sub(seen.saturating_sub(self.offset));
        Ok(match found {
            ContentVerdict {
                next: Some(next), ..
            } => {
                self.offset = next;
                PairVerdict::Unfinished(self)
            }
            ContentVerdict { same: true, .. } => PairVerdict::Equal,
            ContentVerdict { same: false, .. } => PairVerdict::Differ { same_size: true },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn compare(tree: &Tree, one: &str, other: &str) -> Result<Compared> {
        Compare {
            place: tree.place(one),
            other: tree.place(other),
        }
        .run(&context())
    }

    fn directories(tree: &Tree, one: &str, other: &str) -> ComparedDirectories {
        match compare(tree, one, other).unwrap() {
            Compared::Directories(compared) => compared,
            Compared::Files(files) => panic!("{files:?}"),
        }
    }

    fn files(tree: &Tree, one: &str, other: &str) -> ComparedFiles {
        match compare(tree, one, other).unwrap() {
            Compared::Files(compared) => compared,
            Compared::Directories(directories) => panic!("{directories:?}"),
        }
    }

    #[test]
    fn directories_are_compared_by_content() {
        let tree = Tree::new();
        for side in ["a", "x/b"] {
            tree.file(&format!("{side}/same/deep/file"), "same")
                .file(&format!("{side}/same.txt"), "same")
                .file(&format!("{side}/size"), side)
                .file(&format!("{side}/bytes"), side.get(..1).unwrap())
                .link(&format!("{side}/link"), "same.txt");
        }
        tree.file("a/only/here/1", "").file("a/only/here/2", "");
        tree.file("x/b/only.txt", "").directory("x/b/empty");
        tree.directory("a/kind")
            .file("a/kind/below", "")
            .file("x/b/kind", "");
        let compared = directories(&tree, "a", "x/b");
        assert_eq!(compared.only_here.paths, ["only/"]);
        assert_eq!(compared.only_there.paths, ["empty/", "only.txt"]);
        assert_eq!(compared.differ.paths, ["bytes", "kind", "size"]);
        assert_eq!(compared.same_size, ["bytes"]);
        assert_eq!(compared.equal, 3);
        assert_eq!(compared.unreadable.count, 0);
        let same = directories(&tree, "a", "a");
        assert_eq!(same.equal, 8);
        assert_eq!(same.differ.count, 0);
        assert_eq!(
            directories(&tree, "x/b", ".").only_there.paths,
            ["a/", "x/"]
        );
    }

    #[test]
    fn many_and_large_files_are_compared() {
        let tree = Tree::new();
        let large = "x".repeat(3 * BLOCK + 1);
        for n in 0..300 {
            tree.file(&format!("a/{n:03}"), &large);
            let end = if n % 100 == 7 { "y" } else { "x" };
            tree.file(
                &format!("b/{n:03}"),
                format!("{}{end}", large.get(1..).unwrap()),
            );
        }
        let compared = directories(&tree, "a", "b");
        assert_eq!(compared.same_size, ["007", "107", "207"]);
        assert_eq!(compared.equal, 297);
        assert_eq!(compared.differ.count, 3);
    }

    #[test]
    fn files_are_compared_line_by_line() {
        let tree = Tree::with(&[
            ("a", "1\n2\n3\n"),
            ("b", "1\nzwei\n3\n"),
            ("c", "1\n2\n3\n"),
        ]);
        tree.file("bytes", b"\xff");
        let found = files(&tree, "a", "b");
        let expected = "--- a\n+++ b\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n";
        assert!(!found.equal);
        assert_eq!(found.diff.as_deref(), Some(expected));
        assert!(files(&tree, "a", "c").equal);
        let found = files(&tree, "a", "bytes");
        assert!(!found.equal);
        assert_eq!(found.diff, None);
        assert_eq!(found.sizes, (6, 1));
        tree.file("long", "x\n".repeat(100_000))
            .file("other", "y\n".repeat(100_000));
        let found = files(&tree, "long", "other");
        assert!(found.truncated && found.diff.is_some_and(|diff| diff.len() <= DIFF_TOLD));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let tree = Tree::with(&[("file", ""), ("dir/file", "")]);
        for (one, other, kind) in [
            ("file", "dir", ErrorKind::NotADirectory),
            ("dir", "file", ErrorKind::NotADirectory),
            ("file", "none", ErrorKind::NotFound),
            ("../outside", "dir", ErrorKind::Outside),
        ] {
            assert_eq!(
                compare(&tree, one, other).unwrap_err().kind(),
                kind,
                "{one} {other}"
            );
        }
        let (place, other) = (tree.place("dir"), tree.place("dir"));
        let failure = Compare { place, other }.run(&cancelled()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
    }
}
