//! Copies a tree of directories: without recursion, with few descriptors, never following while it walks.
//!
//! One thread goes through the directories and hands files out in batches; a second one copies, and the first
//! helps whenever the second has enough to do. Each file appears whole; the tree as such does not.

use std::ops::AddAssign;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};

use sandbox::{
    Change, Dir, DirEntry, FileKind, Follow, LinkTarget, Metadata, Name, OnExisting, OpenFile,
    Parents, RelPath, Root, Sharing, Staged, copy_content, is_within,
};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::levels::{DirNewness, Levels, TreeLevel};

/// How many files are handed out at once.
const BATCH: usize = 32;
/// How many batches may wait.
const WAITING: usize = 16;
/// How many links to directories may lie on one way before the next is left out.
const LINKS_ON_THE_WAY: u32 = 8;
/// How many of the things left out are named.
const SKIPPED_KEPT: usize = 1000;

/// Why something was left out of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// A link that leads outside the root.
    LeadsOutside,
    /// A link to something missing outside the tree that is copied.
    Dangling,
    /// A link in a circle, or to a directory that holds the source or the destination.
    Loop,
    /// A link whose target cannot be written as a link's text.
    Untranslatable,
    /// A FIFO, socket or device.
    Special(FileKind),
}

/// Something that was left out of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the source's root.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

impl Skipped {
    /// The failure that this is where nothing may be left out.
    fn into_error(self) -> Error {
        let path = self.path;
        match self.reason {
            SkipReason::LeadsOutside => Error::Outside {
                path,
                leads_to: String::new(),
            },
            SkipReason::Loop => Error::Loop { path },
            SkipReason::Special(kind) => Error::NotAFile { path, kind },
            SkipReason::Dangling | SkipReason::Untranslatable => Error::NotAFile {
                path,
                kind: FileKind::Symlink,
            },
        }
    }
}

/// What becomes of a copy that cannot be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSkip {
    /// What cannot be copied is left out and named.
    Name,
    /// It fails.
    Fail,
}

/// What a copy has done so far.
#[derive(Debug, Default)]
pub(crate) struct CopyTally {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) directories: u64,
    pub(crate) links: u64,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) skipped_total: u64,
}

impl CopyTally {
    fn skip(&mut self, path: String, reason: SkipReason) {
        self.skipped_total += 1;
        if self.skipped.len() < SKIPPED_KEPT {
            self.skipped.push(Skipped { path, reason });
        }
    }
}

impl AddAssign for CopyTally {
    fn add_assign(&mut self, other: CopyTally) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.directories += other.directories;
        self.links += other.links;
        self.skipped_total += other.skipped_total;
        self.skipped.extend(other.skipped);
        self.skipped.truncate(SKIPPED_KEPT);
    }
}

/// One side of a copy: the top directory and the root it lies in.
#[derive(Debug, Clone)]
pub(crate) struct CopySide<'root> {
    pub(crate) root: &'root Root,
    pub(crate) top: Dir,
}

impl CopySide<'_> {
    fn host_path(&self) -> String {
        self.root.host_path(self.top.path())
    }
}

/// Copies what a directory holds into another, which is there already.
pub(crate) fn copy_tree(
    source: &CopySide<'_>,
    destination: &CopySide<'_>,
    newness: DirNewness,
    change: &Change,
    on_skip: OnSkip,
    context: &Context,
) -> Result<CopyTally> {
    let crew = TreeCopy {
        change,
        source: source.root,
        destination: destination.root,
        context,
        on_skip,
        sharing: Sharing::default(),
        stop: AtomicBool::new(false),
        state: Mutex::default(),
    };
    let (sender, receiver) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let worker = || crew.work(receiver);
        // Where the system refuses a thread the receiver is gone, and this thread does all the work itself.
        let _ = std::thread::Builder::new()
            .name("copy".to_owned())
            .spawn_scoped(scope, worker);
        let walked = CopyWalk::new(&crew, source, destination, sender)
            .and_then(|walk| walk.run(source, destination, newness));
        if let Err(error) = walked {
            crew.fail(error);
        }
    });
    crew.finish()
}

/// Files to copy from one directory to another.
struct FileBatch {
    source: Dir,
    destination: Dir,
    newness: DirNewness,
    names: Vec<Name>,
}

#[derive(Default)]
struct CopyState {
    tally: CopyTally,
    failure: Option<Error>,
}

/// What both threads share.
struct TreeCopy<'a> {
    change: &'a Change,
    source: &'a Root,
    destination: &'a Root,
    context: &'a Context,
    on_skip: OnSkip,
    sharing: Sharing,
    stop: AtomicBool,
    state: Mutex<CopyState>,
}

impl TreeCopy<'_> {
    fn work(&self, batches: Receiver<FileBatch>) {
        for batch in batches {
            self.copy_batch(&batch);
        }
    }

    fn copy_batch(&self, batch: &FileBatch) {
        let mut tally = CopyTally::default();
        let copied = batch
            .names
            .iter()
            .try_for_each(|name| self.copy_entry(batch, name, &mut tally));
        self.context.cancel.advance(tally.files);
        self.add(tally);
        if let Err(error) = copied {
            self.fail(error);
        }
    }

    fn copy_entry(&self, batch: &FileBatch, name: &Name, tally: &mut CopyTally) -> Result<()> {
        self.check()?;
        match batch.source.open_file(name) {
            Ok(open) => self.copy_file(&open, &batch.destination, name, batch.newness, tally),
            // It went, or became something else, since it was listed.
            Err(sandbox::Error::NotFound { .. }) => Ok(()),
            Err(sandbox::Error::NotAFile { path, kind }) => {
                self.skip(tally, path, SkipReason::Special(kind))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn copy_file(
        &self,
        open: &OpenFile,
        directory: &Dir,
        name: &Name,
        newness: DirNewness,
        tally: &mut CopyTally,
    ) -> Result<()> {
        let staged = self.stage(directory, name, newness)?;
        let stop = || self.must_stop();
        tally.bytes += fill(staged, open, &self.sharing, &stop, &|_| {}, self.context)?;
        tally.files += 1;
        Ok(())
    }

    /// Begins a file; one that is there is replaced if it may be written. Syncing is done once for the tree.
    fn stage(&self, directory: &Dir, name: &Name, newness: DirNewness) -> Result<Staged> {
        if newness == DirNewness::Old {
            let there = directory.locate(self.destination, name)?;
            if there
                .metadata()
                .is_some_and(|metadata| metadata.kind != FileKind::Symlink)
            {
                let staged = self
                    .change
                    .stage(&there, OnExisting::Replace, Parents::Require);
                return staged.map_err(|error| occupied(error, &there));
            }
        }
        Ok(self.change.stage_in(directory, name, OnExisting::Replace)?)
    }

    fn skip(&self, tally: &mut CopyTally, path: String, reason: SkipReason) -> Result<()> {
        match self.on_skip {
            OnSkip::Fail => Err(Skipped { path, reason }.into_error()),
            OnSkip::Name => {
                tally.skip(path, reason);
                Ok(())
            }
        }
    }

    fn check(&self) -> Result<()> {
        self.context.cancel.check()?;
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.context.cancel.must_stop()
    }

    fn add(&self, tally: CopyTally) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .tally += tally;
    }

    /// Ends the copy; the first failure is the one that is told.
    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failure
            .get_or_insert(error);
    }

    fn finish(self) -> Result<CopyTally> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut tally = state.tally;
        tally.skipped.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        state.failure.map_or(Ok(tally), Err)
    }
}

/// A directory where a file is to be, or the other way round.
fn occupied(error: sandbox::Error, there: &sandbox::Located<'_>) -> Error {
    match (error, there.metadata()) {
        (sandbox::Error::IsADirectory { .. } | sandbox::Error::NotAFile { .. }, Some(metadata)) => {
            Error::AlreadyExists {
                path: there.path(),
                kind: metadata.kind,
            }
        }
        (error, _) => error.into(),
    }
}

/// Copies content and mode into a new file and makes it seen; tells the bytes copied.
pub(crate) fn fill(
    mut staged: Staged,
    open: &OpenFile,
    sharing: &Sharing,
    stop: &dyn Fn() -> bool,
    advance: &dyn Fn(u64),
    context: &Context,
) -> Result<u64> {
    // A file that is replaced keeps its own mode.
    if staged.existing().is_none() {
        staged.copy_mode(&open.metadata);
    }
    staged.reserve(open.metadata.size)?;
    let copied = copy_content(open, &staged, sharing, stop, advance);
    let bytes = copied.map_err(|error| context.cancel.explain(error))?;
    staged.publish()?;
    Ok(bytes)
}

/// A directory whose turn has yet to come.
struct PendingDir {
    source: Rc<TreeLevel>,
    destination: Rc<TreeLevel>,
    tree: Rc<LinkedTree>,
}

/// The tree a directory belongs to: the source itself, or what a link in it leads to.
struct LinkedTree {
    /// Its top's resolved path in the source's root; empty for the root itself.
    top: String,
    links_on_the_way: u32,
}

/// Where a walk is: one directory on both sides.
struct OpenPair {
    pending: PendingDir,
    source: Dir,
    destination: Dir,
    newness: DirNewness,
}

struct CopyWalk<'a> {
    crew: &'a TreeCopy<'a>,
    batches: SyncSender<FileBatch>,
    source: Levels<'a>,
    destination: Levels<'a>,
    /// What must not be met on the way down.
    destination_top: Metadata,
    /// The host paths of both tops, for links that lead to a directory around them.
    tops: [String; 2],
    stack: Vec<PendingDir>,
    tally: CopyTally,
}

impl<'a> CopyWalk<'a> {
    fn new(
        crew: &'a TreeCopy<'a>,
        source: &CopySide<'a>,
        destination: &CopySide<'a>,
        batches: SyncSender<FileBatch>,
    ) -> Result<CopyWalk<'a>> {
        Ok(CopyWalk {
            crew,
            batches,
            source: Levels::new(source.root),
            destination: Levels::new(destination.root),
            destination_top: destination.top.metadata()?,
            tops: [source.host_path(), destination.host_path()],
            stack: Vec::new(),
            tally: CopyTally::default(),
        })
    }

    fn run(
        mut self,
        source: &CopySide<'_>,
        destination: &CopySide<'_>,
        newness: DirNewness,
    ) -> Result<()> {
        let tree = Rc::new(LinkedTree {
            top: source.top.path().to_owned(),
            links_on_the_way: 0,
        });
        let pending = PendingDir {
            source: TreeLevel::top(source.top.clone()),
            destination: TreeLevel::top(destination.top.clone()),
            tree,
        };
        let (source, destination) = (source.top.clone(), destination.top.clone());
        let mut walked = self.visit(OpenPair {
            pending,
            source,
            destination,
            newness,
        });
        while let (Ok(()), Some(pending)) = (&walked, self.stack.pop()) {
            walked = self.enter(pending);
        }
        self.crew.add(std::mem::take(&mut self.tally));
        walked
    }

    fn enter(&mut self, pending: PendingDir) -> Result<()> {
        self.crew.check()?;
        let source = match self.source.open(&pending.source) {
            // It went, or became something else, since it was listed.
            Err(sandbox::Error::NotFound { .. } | sandbox::Error::NotADirectory { .. }) => {
                return Ok(());
            }
            opened => opened?,
        };
        let metadata = source.metadata()?;
        // The paths were compared before; this holds against mounts and moves as well.
        if metadata.same_file(&self.destination_top) {
            return Err(Error::IntoItself {
                path: source.path().to_owned(),
            });
        }
        let (destination, newness) =
            self.destination
                .make(self.crew.change, &pending.destination, metadata.mode)?;
        self.tally.directories += 1;
        self.visit(OpenPair {
            pending,
            source,
            destination,
            newness,
        })
    }

    fn visit(&mut self, here: OpenPair) -> Result<()> {
        let (mut names, mut visited) = (Vec::new(), Ok(()));
        here.source.for_each_entry(&mut |entry| {
            if visited.is_ok() {
                visited = self
                    .crew
                    .check()
                    .and_then(|()| self.entry(&here, entry, &mut names));
            }
        })?;
        visited?;
        self.hand_out(&here, names);
        Ok(())
    }

    fn entry(&mut self, here: &OpenPair, entry: DirEntry, names: &mut Vec<Name>) -> Result<()> {
        match entry.kind {
            FileKind::File => {
                names.push(entry.name);
                if names.len() >= BATCH {
                    self.hand_out(here, std::mem::take(names));
                }
                Ok(())
            }
            FileKind::Directory => {
                self.stack.push(PendingDir {
                    source: TreeLevel::below(&here.pending.source, &entry.name),
                    destination: TreeLevel::below(&here.pending.destination, &entry.name),
                    tree: Rc::clone(&here.pending.tree),
                });
                Ok(())
            }
            FileKind::Symlink => self.link(here, &entry.name),
            kind => self.skip(here, &entry.name, SkipReason::Special(kind)),
        }
    }

    /// Gives files to the other thread, or copies them here when that has enough to do.
    fn hand_out(&self, here: &OpenPair, names: Vec<Name>) {
        if names.is_empty() {
            return;
        }
        let (source, destination) = (here.source.clone(), here.destination.clone());
        let batch = FileBatch {
            source,
            destination,
            newness: here.newness,
            names,
        };
        match self.batches.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.crew.copy_batch(&batch);
            }
        }
    }

    fn skip(&mut self, here: &OpenPair, name: &Name, reason: SkipReason) -> Result<()> {
        self.crew
            .skip(&mut self.tally, here.source.join(name), reason)
    }

    fn link(&mut self, here: &OpenPair, name: &Name) -> Result<()> {
        let link = here.source.locate(self.crew.source, name)?;
        if link
            .metadata()
            .is_none_or(|metadata| metadata.kind != FileKind::Symlink)
        {
            // It went, or became something else, since it was listed.
            return Ok(());
        }
        match link.link_target()? {
            LinkTarget::Outside => self.skip(here, name, SkipReason::LeadsOutside),
            LinkTarget::Loop => self.skip(here, name, SkipReason::Loop),
            LinkTarget::Dangling => self.dangling(here, name),
            LinkTarget::Inside { path, .. } if is_within(&here.pending.tree.top, &path) => {
                self.inner_link(here, name, &path)
            }
            LinkTarget::Inside { path, metadata } => match metadata.kind {
                FileKind::File => self.link_to_file(here, name, &path),
                FileKind::Directory => self.link_to_directory(here, name, path),
                kind => self.skip(here, name, SkipReason::Special(kind)),
            },
        }
    }

    /// A link to nothing stays one where its text does not leave the tree.
    fn dangling(&mut self, here: &OpenPair, name: &Name) -> Result<()> {
        let text = here.source.read_link(name)?;
        match stays_below(&text, depth_in(&here.pending.tree.top, here.source.path())) {
            true => self.make_link(here, name, &text),
            false => self.skip(here, name, SkipReason::Dangling),
        }
    }

    /// A link to something in the tree leads to the same thing in the copy.
    fn inner_link(&mut self, here: &OpenPair, name: &Name, path: &str) -> Result<()> {
        let top = &here.pending.tree.top;
        let depth = depth_in(top, here.source.path());
        let text = here.source.read_link(name)?;
        if stays_below(&text, depth) {
            return self.make_link(here, name, &text);
        }
        match relative_text(top, path, depth) {
            Some(text) => self.make_link(here, name, text.as_bytes()),
            None => self.skip(here, name, SkipReason::Untranslatable),
        }
    }

    fn make_link(&mut self, here: &OpenPair, name: &Name, text: &[u8]) -> Result<()> {
        if here.newness == DirNewness::Old {
            let there = here.destination.locate(self.crew.destination, name)?;
            if there.metadata().is_some() {
                self.crew
                    .change
                    .unlink(&there)
                    .map_err(|error| occupied(error, &there))?;
            }
        }
        self.crew
            .change
            .make_link_in(&here.destination, name, text)?;
        self.tally.links += 1;
        Ok(())
    }

    fn link_to_file(&mut self, here: &OpenPair, name: &Name, path: &str) -> Result<()> {
        let open = self
            .crew
            .source
            .locate(&RelPath::parse(path)?, Follow::Never)?
            .open_file()?;
        self.crew.copy_file(
            &open,
            &here.destination,
            name,
            here.newness,
            &mut self.tally,
        )
    }

    fn link_to_directory(&mut self, here: &OpenPair, name: &Name, path: String) -> Result<()> {
        let links_on_the_way = here.pending.tree.links_on_the_way + 1;
        let host = self.crew.source.host_path(&path);
        let around = self.tops.iter().any(|top| is_within(&host, top));
        if around || is_within(&path, here.source.path()) || links_on_the_way > LINKS_ON_THE_WAY {
            return self.skip(here, name, SkipReason::Loop);
        }
        self.stack.push(PendingDir {
            source: TreeLevel::at(path.clone()),
            destination: TreeLevel::below(&here.pending.destination, name),
            tree: Rc::new(LinkedTree {
                top: path,
                links_on_the_way,
            }),
        });
        Ok(())
    }
}

/// How many directories below `top` the directory `path` is.
fn depth_in(top: &str, path: &str) -> usize {
    let below = path.strip_prefix(top).unwrap_or(path);
    below.split('/').filter(|name| !name.is_empty()).count()
}

/// Tells whether a link's text, read from `depth` directories below a top, never goes above that top.
fn stays_below(text: &[u8], depth: usize) -> bool {
    if text.starts_with(b"/") {
        return false;
    }
    let mut depth = Some(depth);
    for step in text.split(|&byte| byte == b'/') {
        depth = match step {
            b"" | b"." => depth,
            b".." => depth.and_then(|depth| depth.checked_sub(1)),
            _ => depth.map(|depth| depth + 1),
        };
    }
    depth.is_some()
}

/// The text of a link `depth` directories below `top` that leads to `path`. `None` where the path is shown with
/// characters that stand for bytes.
fn relative_text(top: &str, path: &str, depth: usize) -> Option<String> {
    if matches!(sandbox::shown(path.as_bytes()), std::borrow::Cow::Owned(_)) {
        return None;
    }
    let below = path
        .strip_prefix(top)
        .unwrap_or(path)
        .trim_start_matches('/');
    let text = format!("{}{}", "../".repeat(depth), below.trim_start_matches("./"));
    let text = text.trim_end_matches('/');
    Some(if text.is_empty() {
        ".".to_owned()
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_texts_that_go_above_the_top_are_seen() {
        let cases = [
            ("a", 0, true),
            ("../a", 0, false),
            ("../a", 1, true),
            ("a/../../b", 0, false),
            ("a/../../b", 1, true),
            ("../../b/c", 1, false),
            ("/a", 5, false),
            ("./a/./..", 0, true),
        ];
        for (text, depth, expected) in cases {
            assert_eq!(
                stays_below(text.as_bytes(), depth),
                expected,
                "{text} at {depth}"
            );
        }
    }

    #[test]
    fn link_texts_are_written_anew() {
        assert_eq!(relative_text("a", "a/b/c", 2).as_deref(), Some("../../b/c"));
        assert_eq!(relative_text("a", "a", 0).as_deref(), Some("."));
        assert_eq!(relative_text("a", "a", 1).as_deref(), Some(".."));
        assert_eq!(relative_text("", "x", 1).as_deref(), Some("../x"));
        assert_eq!(relative_text("a", "a/\u{F7FF}", 0), None);
    }
}
