//! Copies a tree of directories.
//!
//! A walk goes through the source, makes directories and links in the copy and hands out files in batches, which the
//! pool's threads copy. A large file is copied in several units, so that other clients get their turn in between. The copy
//! grows below a hidden name, so that nobody sees a part of it.

mod link_text;
mod merge;
mod record;
mod settle;
mod walk;

use std::collections::VecDeque;
use std::ops::{AddAssign, ControlFlow};
use std::sync::Arc;

use sandbox::{
    Change, ContentCopy, CopyStep, Dir, FileKind, Follow, Located, Metadata, Name, OpenFile,
    RelPath, Root, Sharing, Staged,
};

use self::record::{CopiedPart, CopyStamp};
use self::walk::CopyWalk;
use crate::context::Cancel;
use crate::error::{Error, Result, Wanted};
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};

pub(crate) use self::merge::merge;
pub(crate) use self::record::{CopyRecord, below, outwait_step};
pub(crate) use self::settle::{dress, prune};

/// How much a unit copies at least before it hands back the rest of its batch.
const BYTES_PER_UNIT: u64 = 2 * 1024 * 1024;
/// How many of the entries left out are named.
const SKIPPED_KEPT: usize = 1000;
/// A copy must take entries, whatever the mode of its source.
const OWNER_MAY: u32 = 0o700;

/// Why something was left out of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// A link that leads outside the root.
    LeadsOutside,
    /// A link to something missing outside the copied tree.
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
    /// The corresponding error, for copies that may leave nothing out.
    fn into_error(self) -> Error {
        let path = self.path;
        match self.reason {
            SkipReason::LeadsOutside => Error::Outside {
                link: Some(path.clone()),
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

/// What happens if a copy cannot be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSkip {
    /// Entries that cannot be copied are left out and named.
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

/// Which of a file's attributes its copy gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// The mode; if it replaces a file, that file's mode.
    Mode,
    /// Everything, as if the file itself had moved.
    All,
}

/// One side of a copy: the top directory and the root it is in.
#[derive(Debug, Clone)]
pub(crate) struct CopySide {
    pub(crate) root: Arc<Root>,
    pub(crate) top: Dir,
}

/// How a tree is copied.
#[derive(Debug, Clone)]
pub(crate) struct CopyOptions {
    pub(crate) on_skip: OnSkip,
    pub(crate) attributes: Attributes,
    /// Records what is copied. Entries that it already holds are not copied again.
    pub(crate) record: Option<Arc<CopyRecord>>,
}

/// Copies what a directory holds into a tree of ours that nobody else sees.
///
/// If called again with a record, it copies what is new or changed since.
pub(crate) fn copy_tree(
    source: &CopySide,
    destination: &CopySide,
    change: &Change,
    options: &CopyOptions,
    cancel: &Cancel,
) -> Result<CopyTally> {
    let copy = TreeCopy(Arc::new(CopyJob {
        // The whole tree is synced at once, before it is seen.
        change: change.unsynced(),
        source: Arc::clone(&source.root),
        top: destination.top.path_bytes().to_vec(),
        cancel: cancel.clone(),
        options: options.clone(),
        sharing: Sharing::default(),
    }));
    let walk = CopyWalk::new(Arc::clone(&copy.0), source, destination)?;
    let (copied, end) = ordered::run(copy, walk, CopyProgress::default(), cancel)?;
    if let Some(failure) = copied.failure {
        return Err(failure);
    }
    if end == RunEnd::Expired {
        return Err(Error::Timeout);
    }
    let mut tally = copied.tally;
    // The top itself.
    tally.directories += 1;
    tally.skipped.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(tally)
}

/// Files to copy, and what the walk did on the way to them.
#[derive(Default)]
struct CopyBatch {
    /// The file that an earlier unit copied in part.
    begun: Option<BegunFile>,
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

/// A file that is being copied, and what will be noted of it.
struct BegunFile {
    copy: FileCopy,
    noted: Option<(Vec<u8>, CopiedPart, CopyStamp)>,
}

/// Files to copy from one directory to another.
struct FileGroup {
    source: Dir,
    destination: Dir,
    files: VecDeque<FileEntry>,
}

/// A file to copy.
struct FileEntry {
    name: Name,
    /// Where the content is in the source's root, if the name is a link to a file outside the tree.
    linked: Option<RelPath>,
}

impl FileEntry {
    fn part(&self) -> CopiedPart {
        match self.linked {
            Some(_) => CopiedPart::Content,
            None => CopiedPart::Entry,
        }
    }
}

/// What was copied before the first failure.
#[derive(Default)]
struct CopyProgress {
    tally: CopyTally,
    failure: Option<Error>,
}

/// State shared by the walk and the threads that copy files.
struct CopyJob {
    change: Change,
    source: Arc<Root>,
    /// The path of the top of the copy.
    top: Vec<u8>,
    cancel: Cancel,
    options: CopyOptions,
    sharing: Sharing,
}

impl CopyJob {
    /// Copies the next piece of a batch and returns its size; `None` when nothing is left.
    fn copy_piece(&self, batch: &mut CopyBatch, tally: &mut CopyTally) -> Result<Option<u64>> {
        let begun = match batch.begun.take() {
            Some(begun) => Some(begun),
            None => match batch.next_file() {
                Some((group, file)) => self.begin(group, &file, tally)?,
                None => return Ok(None),
            },
        };
        let Some(mut begun) = begun else {
            return Ok(Some(0));
        };
        match begun.copy.step(&self.sharing)? {
            CopyStep::Copied(bytes) => {
                batch.begun = Some(begun);
                Ok(Some(bytes))
            }
            CopyStep::Finished => {
                tally.bytes += begun.copy.finish()?;
                tally.files += 1;
                if let (Some(record), Some((path, part, stamp))) = (self.record(), begun.noted) {
                    record.note(&path, part, stamp);
                }
                Ok(Some(0))
            }
        }
    }

    fn begin(
        &self,
        group: &FileGroup,
        file: &FileEntry,
        tally: &mut CopyTally,
    ) -> Result<Option<BegunFile>> {
        match self.open(group, file) {
            Ok(open) => self.begin_open(open, group, file, tally),
            // It vanished or changed its kind since it was listed.
            Err(sandbox::Error::NotFound { .. }) => Ok(None),
            Err(sandbox::Error::NotAFile { path, kind }) => {
                self.skip(tally, path, SkipReason::Special(kind))?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn begin_open(
        &self,
        open: OpenFile,
        group: &FileGroup,
        file: &FileEntry,
        tally: &mut CopyTally,
    ) -> Result<Option<BegunFile>> {
        let mut noted = None;
        if let Some(record) = self.record() {
            let path = self.below_top(&group.destination, &file.name);
            let part = file.part();
            if record.has(&path, part, &open.metadata) {
                tally.files += 1;
                tally.bytes += open.metadata.size;
                return Ok(None);
            }
            self.make_way(&group.destination, &file.name)?;
            let stamp = record.stamp(&open.metadata, || open.is_local(), &self.cancel)?;
            noted = Some((path, part, stamp));
        }
        let staged = self.change.stage_hidden(&group.destination, &file.name)?;
        let copy = FileCopy::begin(staged, open, self.options.attributes)?;
        Ok(Some(BegunFile { copy, noted }))
    }

    /// Removes a directory that an earlier pass copied but that the source has since replaced by something else.
    fn make_way(&self, directory: &Dir, name: &Name) -> Result<()> {
        let there = directory.stat(name);
        if there.is_ok_and(|there| there.is_directory()) {
            let stop = || self.cancel.must_stop();
            self.change.clear_in(directory, name, &stop)?;
        }
        Ok(())
    }

    /// Makes a directory of the copy, or opens the one that an earlier pass made.
    fn make_dir(&self, parent: &Dir, name: &Name, mode: u32) -> sandbox::Result<Dir> {
        let make = || {
            self.change
                .make_dir_in(parent, name, mode & 0o777 | OWNER_MAY)
        };
        match make() {
            Err(sandbox::Error::AlreadyExists { .. }) if self.record().is_some() => {
                parent.open_dir(name).or_else(|_| {
                    let stop = || self.cancel.must_stop();
                    self.change.clear_in(parent, name, &stop)?;
                    make()
                })
            }
            made => made,
        }
    }

    /// Makes a link of the copy, unless an earlier pass made it.
    fn make_link(&self, directory: &Dir, name: &Name, text: &[u8]) -> Result<()> {
        match self.change.make_link_in(directory, name, text) {
            Err(sandbox::Error::AlreadyExists { .. }) if self.record().is_some() => {
                if directory.read_link(name).is_ok_and(|old| old == text) {
                    return Ok(());
                }
                self.make_way(directory, name)?;
                Ok(self.change.replace_by_link(directory, name, text)?)
            }
            made => Ok(made?),
        }
    }

    /// Notes a directory, which is copied to another one.
    fn note_dir(&self, directory: &Dir, name: &Name, metadata: &Metadata) {
        if let Some(record) = self.record() {
            let path = self.below_top(directory, name);
            record.note(&path, CopiedPart::Entry, CopyStamp::uncertain(metadata));
        }
    }

    /// Notes a link of `source` before it is read.
    fn note_link(
        &self,
        source: &Dir,
        directory: &Dir,
        name: &Name,
        metadata: &Metadata,
    ) -> Result<()> {
        if let Some(record) = self.record() {
            let path = self.below_top(directory, name);
            let stamp = record.stamp(metadata, || source.is_local(), &self.cancel)?;
            record.note(&path, CopiedPart::Entry, stamp);
        }
        Ok(())
    }

    fn record(&self) -> Option<&CopyRecord> {
        self.options.record.as_deref()
    }

    /// The path of an entry of the copy below its top.
    fn below_top(&self, directory: &Dir, name: &Name) -> Vec<u8> {
        let mut path = below(directory.path_bytes(), &self.top).to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        path
    }

    fn open(&self, group: &FileGroup, file: &FileEntry) -> sandbox::Result<OpenFile> {
        match &file.linked {
            Some(path) => self.source.locate(path, Follow::Never)?.open_file(),
            None => group.source.open_file(&file.name),
        }
    }

    fn skip(&self, tally: &mut CopyTally, path: String, reason: SkipReason) -> Result<()> {
        match self.options.on_skip {
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

    /// Leaves the files after a large one to other threads.
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

/// A directory in the place of a file, or the other way round.
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

/// The copy of one file: its content step by step, then its mode; then it becomes visible.
pub(crate) struct FileCopy {
    staged: Staged,
    open: OpenFile,
    content: ContentCopy,
}

impl FileCopy {
    pub(crate) fn begin(
        mut staged: Staged,
        open: OpenFile,
        attributes: Attributes,
    ) -> Result<FileCopy> {
        match attributes {
            Attributes::All => staged.keep_all(&open),
            Attributes::Mode if staged.existing().is_none() => staged.copy_mode(&open),
            Attributes::Mode => {}
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

    /// Copies all of a file's content.
    pub(crate) fn run(&mut self, cancel: &Cancel) -> Result<()> {
        let sharing = Sharing::default();
        loop {
            cancel.check_and_give_way()?;
            match self.step(&sharing)? {
                CopyStep::Copied(bytes) => cancel.advance(bytes),
                CopyStep::Finished => return Ok(()),
            }
        }
    }

    /// Looks up the destination again while holding its lock; fails if its directory was moved away.
    pub(crate) fn confirm(&mut self, place: &Located<'_>) -> Result<()> {
        if self.staged.confirm(place)? {
            return Ok(());
        }
        Err(vanished(place))
    }

    /// Tells whether an entry is unchanged since it was opened to be copied.
    pub(crate) fn is_of(&self, now: &Metadata) -> bool {
        self.opened().same_state(now)
    }

    /// What was copied, as it was when it was opened.
    pub(crate) fn opened(&self) -> &Metadata {
        &self.open.metadata
    }

    /// Makes the file visible and returns its size.
    pub(crate) fn finish(self) -> Result<u64> {
        self.staged.publish()?;
        Ok(self.content.copied())
    }
}

/// The error of a call whose directory was moved away while it worked; the call then starts over.
pub(crate) fn vanished(place: &Located<'_>) -> Error {
    Error::NotFound {
        path: place.path(),
        wanted: Wanted::Directory,
        near: Vec::new(),
        denied: false,
    }
}
