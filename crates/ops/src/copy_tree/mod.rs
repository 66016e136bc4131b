//! Copies a tree of directories.
//!
//! A walk goes through the source, makes directories and links in the copy and hands out files in batches, which the
//! pool's threads copy. A large file is copied in several units, so that other clients get their turn in between. Each
//! file appears whole; the tree as such does not.

mod link_text;
mod walk;

use std::collections::VecDeque;
use std::ops::{AddAssign, ControlFlow};
use std::sync::Arc;

use sandbox::{
    Change, ContentCopy, CopyStep, Dir, FileKind, Follow, Name, OnExisting, OpenFile, Parents,
    RelPath, Root, Sharing, Staged,
};

use self::walk::CopyWalk;
use crate::context::{Cancel, Context};
use crate::error::{Error, Result};
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};

/// How much a unit copies at least before it hands back the rest of its batch.
const BYTES_PER_UNIT: u64 = 2 * 1024 * 1024;
/// How many of the things left out are named.
const SKIPPED_KEPT: usize = 1000;
/// A copy must take entries, whatever the mode of its source.
const OWNER_MAY: u32 = 0o700;

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

/// Whether a directory was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirNewness {
    /// It was made just now.
    Fresh,
    /// It was there.
    Old,
}

/// Makes a directory, or opens the one that is there.
pub(crate) fn make_in(
    change: &Change,
    parent: &Dir,
    name: &Name,
    mode: u32,
) -> sandbox::Result<(Dir, DirNewness)> {
    match change.make_dir_in(parent, name, mode & 0o777 | OWNER_MAY) {
        Ok(dir) => Ok((dir, DirNewness::Fresh)),
        Err(sandbox::Error::AlreadyExists { path }) => match parent.open_dir(name) {
            Ok(dir) => Ok((dir, DirNewness::Old)),
            Err(_) => Err(sandbox::Error::AlreadyExists { path }),
        },
        Err(error) => Err(error),
    }
}

/// One side of a copy: the top directory and the root it is in.
#[derive(Debug, Clone)]
pub(crate) struct CopySide {
    pub(crate) root: Arc<Root>,
    pub(crate) top: Dir,
}

/// Copies what a directory holds into another, which is there already.
pub(crate) fn copy_tree(
    source: &CopySide,
    destination: &CopySide,
    newness: DirNewness,
    change: &Change,
    on_skip: OnSkip,
    context: &Context,
) -> Result<CopyTally> {
    let copy = TreeCopy(Arc::new(CopyJob {
        change: change.clone(),
        source: Arc::clone(&source.root),
        destination: Arc::clone(&destination.root),
        cancel: context.cancel.clone(),
        on_skip,
        sharing: Sharing::default(),
    }));
    let walk = CopyWalk::new(Arc::clone(&copy.0), source, destination, newness)?;
    let (copied, end) = ordered::run(copy, walk, CopyProgress::default(), &context.cancel)?;
    if let Some(failure) = copied.failure {
        return Err(failure);
    }
    if end == RunEnd::Expired {
        return Err(Error::Timeout);
    }
    let mut tally = copied.tally;
    tally.skipped.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(tally)
}

/// Files to copy, and what the walk did on the way to them.
#[derive(Default)]
struct CopyBatch {
    /// The file that an earlier unit copied a part of.
    begun: Option<FileCopy>,
    groups: VecDeque<FileGroup>,
    /// What the walk and earlier units did.
    tally: CopyTally,
    /// Why the walk ended early.
    failure: Option<Error>,
}

impl CopyBatch {
    /// Takes out the next file, with the group that it is in.
    fn next_file(&mut self) -> Option<(&FileGroup, FileEntry)> {
        while self.groups.front()?.files.is_empty() {
            self.groups.pop_front();
        }
        let group = self.groups.front_mut()?;
        let file = group.files.pop_front()?;
        Some((group, file))
    }
}

/// Files to copy from one directory to another.
struct FileGroup {
    source: Dir,
    destination: Dir,
    newness: DirNewness,
    files: VecDeque<FileEntry>,
}

/// A file to copy.
struct FileEntry {
    name: Name,
    /// Where the content is in the source's root, if the name is a link to a file outside the tree.
    linked: Option<RelPath>,
}

/// What was copied before the first failure.
#[derive(Default)]
struct CopyProgress {
    tally: CopyTally,
    failure: Option<Error>,
}

/// What the walk and the threads that copy files share.
struct CopyJob {
    change: Change,
    source: Arc<Root>,
    destination: Arc<Root>,
    cancel: Cancel,
    on_skip: OnSkip,
    sharing: Sharing,
}

impl CopyJob {
    /// Copies the next piece of a batch and tells its bytes; `None` when nothing is left.
    fn copy_piece(&self, batch: &mut CopyBatch, tally: &mut CopyTally) -> Result<Option<u64>> {
        let begun = match batch.begun.take() {
            Some(begun) => Some(begun),
            None => match batch.next_file() {
                Some((group, file)) => self.begin(group, &file, tally)?,
                None => return Ok(None),
            },
        };
        let Some(mut copy) = begun else {
            return Ok(Some(0));
        };
        match copy.step(&self.sharing)? {
            CopyStep::Copied(bytes) => {
                batch.begun = Some(copy);
                Ok(Some(bytes))
            }
            CopyStep::Finished => {
                tally.bytes += copy.finish()?;
                tally.files += 1;
                Ok(Some(0))
            }
        }
    }

    fn begin(
        &self,
        group: &FileGroup,
        file: &FileEntry,
        tally: &mut CopyTally,
    ) -> Result<Option<FileCopy>> {
        match self.open(group, file) {
            Ok(open) => {
                let staged = self.stage(&group.destination, &file.name, group.newness)?;
                Ok(Some(FileCopy::begin(staged, open)?))
            }
            // It vanished or became something else since it was listed.
            Err(sandbox::Error::NotFound { .. }) => Ok(None),
            Err(sandbox::Error::NotAFile { path, kind }) => {
                self.skip(tally, path, SkipReason::Special(kind))?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, group: &FileGroup, file: &FileEntry) -> sandbox::Result<OpenFile> {
        match &file.linked {
            Some(path) => self.source.locate(path, Follow::Never)?.open_file(),
            None => group.source.open_file(&file.name),
        }
    }

    /// Begins a file; one that is there is replaced if it may be written. Syncing is done once for the tree.
    fn stage(&self, directory: &Dir, name: &Name, newness: DirNewness) -> Result<Staged> {
        if newness == DirNewness::Old {
            let there = directory.locate(&self.destination, name)?;
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
}

/// The stages of a copy: batches come from the walk in path order, so the first failure in that order is the one told.
struct TreeCopy(Arc<CopyJob>);

impl Stages for TreeCopy {
    type Source = CopyWalk;
    type Batch = CopyBatch;
    type Found = CopyProgress;
    type Outcome = CopyProgress;

    fn pull(&self, walk: &mut CopyWalk) -> Option<CopyBatch> {
        walk.next_batch()
    }

    /// Leaves the files behind a large one to others.
    fn split(&self, mut batch: CopyBatch) -> (CopyBatch, Option<CopyBatch>) {
        if batch.begun.is_none() || batch.groups.is_empty() {
            return (batch, None);
        }
        let large = CopyBatch {
            begun: batch.begun.take(),
            tally: std::mem::take(&mut batch.tally),
            ..CopyBatch::default()
        };
        (large, Some(batch))
    }

    fn work(&self, mut batch: CopyBatch, halt: &Halt) -> Worked<CopyProgress, CopyBatch> {
        let mut tally = std::mem::take(&mut batch.tally);
        let (files_before, mut bytes) = (tally.files, 0);
        let copied = loop {
            if halt.must_stop() || bytes >= BYTES_PER_UNIT {
                break Ok(Some(()));
            }
            match self.0.copy_piece(&mut batch, &mut tally) {
                Ok(Some(piece)) => bytes += piece,
                Ok(None) => break Ok(None),
                Err(error) => break Err(error),
            }
        };
        self.0.cancel.advance(tally.files - files_before);
        let failure = match copied {
            Ok(Some(())) => {
                batch.tally = tally;
                return Worked {
                    found: None,
                    rest: Some(batch),
                };
            }
            Ok(None) => batch.failure,
            Err(error) => Some(error),
        };
        Worked {
            found: Some(CopyProgress { tally, failure }),
            rest: None,
        }
    }

    fn commit(&self, outcome: &mut CopyProgress, found: CopyProgress) -> ControlFlow<()> {
        outcome.tally += found.tally;
        outcome.failure = found.failure;
        if outcome.failure.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
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

/// The copy of one file: its content step by step, then its mode, and then it is visible.
pub(crate) struct FileCopy {
    staged: Staged,
    open: OpenFile,
    content: ContentCopy,
}

impl FileCopy {
    pub(crate) fn begin(mut staged: Staged, open: OpenFile) -> Result<FileCopy> {
        // A file that is replaced keeps its own mode.
        if staged.existing().is_none() {
            staged.copy_mode(&open.metadata);
        }
        staged.reserve(open.metadata.size)?;
        Ok(FileCopy {
            staged,
            open,
            content: ContentCopy::default(),
        })
    }

    pub(crate) fn step(&mut self, sharing: &Sharing) -> Result<CopyStep> {
        Ok(self.content.step(&self.open, &self.staged, sharing)?)
    }

    /// Makes the file visible and tells its bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        self.staged.publish()?;
        Ok(self.content.copied())
    }
}
