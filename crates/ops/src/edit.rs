//! Shared by patches, replacements and insertions: reads, changes and replaces a text file in one step; for several
//! files, replaces them one after the other once all are written.
//!
//! Must not decide what an edit does: that is `text`.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;

use sandbox::{
    Follow, Located, Metadata, NewDirs, OnExisting, OpenFile, Parents, Replaceable, Staged,
    copy_part,
};

use crate::consent::Planned;
use crate::context::Context;
use crate::descriptor_share::DescriptorShare;
use crate::edit_lock::{EditLock, LockKey};
use crate::error::{Error, RequestPart, Result, Wanted};
use crate::place::Place;
use crate::read_at::{read_up_to, reader};
use crate::text::edit::Splice;
use crate::text::encoding::{self, Utf8Check};
use crate::text::lines::Blocks;
use crate::text::pieces::{PieceSource, Pieces};
use crate::version::Version;
use crate::write::write_failed;

/// The largest file that is edited, or returned whole by tools that cannot return a part.
pub const WHOLE_FILE_MAX: u64 = 100 * 1024 * 1024;
/// How much is copied at a time.
const BLOCK: usize = 1024 * 1024;
/// From this size on, the kernel copies unchanged content; less is cheaper through a buffer.
const KERNEL_COPY_MIN: u64 = 64 * 1024;

/// The right to change several files, and the descriptors for it.
pub(crate) struct BatchTurn {
    lock: EditLock,
    _descriptors: DescriptorShare,
}

/// A file that is locked to be changed.
pub(crate) struct Edited<'a> {
    place: &'a Place,
    located: Located<'a>,
    /// The existing file, once opened.
    old: OnceCell<Replaceable>,
    context: &'a Context,
    /// Held by this file alone; several files share one.
    lock: Option<EditLock>,
}

impl<'a> Edited<'a> {
    /// Waits for the file's turn and looks it up.
    pub(crate) fn begin(place: &'a Place, context: &'a Context) -> Result<Edited<'a>> {
        let (lock, located) = EditLock::take_to_edit(place, &context.cancel)?;
        Ok(Edited {
            place,
            located,
            old: OnceCell::new(),
            context,
            lock: Some(lock),
        })
    }

    /// Waits for the turn of all files at once and looks them up by `look_up`. Two places may be the same file: see
    /// [`Edited::key`]. `argument` is what names them.
    pub(crate) fn begin_all(
        places: &'a [Place],
        part: RequestPart,
        look_up: fn(&'a Place) -> Result<Located<'a>>,
        context: &'a Context,
    ) -> Result<(BatchTurn, Vec<Edited<'a>>)> {
        let descriptors = DescriptorShare::take(places.len(), part, &context.cancel)?;
        let look_up = || places.iter().map(look_up).collect();
        let keys = |found: &Vec<Located<'a>>| found.iter().map(LockKey::entry).collect();
        let (lock, found) = EditLock::take_found(&look_up, &keys, &context.cancel)?;
        for (place, located) in places.iter().zip(&found) {
            place.check_version(located, &context.cancel)?;
        }
        let edited = places.iter().zip(found).map(|(place, located)| Edited {
            place,
            located,
            old: OnceCell::new(),
            context,
            lock: None,
        });
        let turn = BatchTurn {
            lock,
            _descriptors: descriptors,
        };
        Ok((turn, edited.collect()))
    }

    /// A key that is equal for two places that are the same file; never shown.
    pub(crate) fn key(&self) -> String {
        self.located.host_path()
    }

    /// The resolved path.
    pub(crate) fn path(&self) -> String {
        self.located.path()
    }

    /// The version that the file has after [`StagedFiles::commit_all`], if the caller wants it; see [`Place::version_written`].
    pub(crate) fn version(&self, metadata: &Metadata, content: Option<&[u8]>) -> Option<Version> {
        self.place
            .version_written(metadata, content, &self.context.cancel)
    }

    /// Tells whether the file is there already.
    pub(crate) fn exists(&self) -> bool {
        self.located.metadata().is_some()
    }

    fn planned(&self) -> Planned {
        Planned::overwriting(u64::from(self.exists()))
    }

    /// Opens the file, which must be there, be text, writable and not too large.
    pub(crate) fn open_text(&self) -> Result<&OpenFile> {
        let open = self.open()?;
        self.check_text(open)?;
        Ok(open)
    }

    /// Opens the file, which must be there, writable and not too large. Its reader checks that it is text.
    pub(crate) fn open(&self) -> Result<&OpenFile> {
        if let Some(old) = self.old.get() {
            return Ok(old.open());
        }
        let required = self.located.require();
        let metadata = required.map_err(|error| self.place.explain(error, Wanted::File))?;
        self.check_size(metadata.size)?;
        let old = self.located.open_to_edit()?;
        Ok(self.old.get_or_init(|| old).open())
    }

    /// Opens the file, which must be there and writable, to be replaced as a whole.
    pub(crate) fn open_to_replace(&self) -> Result<()> {
        if self.old.get().is_none() {
            // Opened for reading too, if possible: then it can be parsed and put back.
            let readable = self.located.open_to_edit();
            let old = readable.or_else(|_| self.located.open_to_replace())?;
            self.old.get_or_init(|| old);
        }
        Ok(())
    }

    /// The file, if it was opened.
    pub(crate) fn opened(&self) -> Option<&OpenFile> {
        self.old.get().map(Replaceable::open)
    }

    /// The error for a file that is not text, with what it seems to be.
    pub(crate) fn not_text(&self, open: &OpenFile) -> Error {
        let head = read_up_to(open, 0, encoding::HEAD as u64, &self.context.cancel);
        Error::NotText {
            path: self.path(),
            seems: encoding::likely_encoding(&head.unwrap_or_default()),
        }
    }

    fn check_size(&self, size: u64) -> Result<()> {
        if size > WHOLE_FILE_MAX {
            return Err(Error::TooLarge {
                path: self.path(),
                size,
                limit: WHOLE_FILE_MAX,
            });
        }
        Ok(())
    }

    fn check_text(&self, open: &OpenFile) -> Result<()> {
        let mut check = Utf8Check::default();
        self.each_block(open, 0..u64::MAX, &mut |block| {
            check.feed(block);
            if check.is_broken() {
                Err(self.not_text(open))
            } else {
                Ok(())
            }
        })?;
        if check.is_valid() {
            Ok(())
        } else {
            Err(self.not_text(open))
        }
    }

    /// Replaces the file with a changed version, without holding the unchanged content.
    pub(crate) fn splice(&self, open: &OpenFile, splice: &Splice) -> Result<Metadata> {
        let mut staged = self.stage()?;
        let kept = open
            .metadata
            .size
            .saturating_sub(splice.range.end - splice.range.start);
        staged.reserve(kept.saturating_add(splice.replacement.len() as u64))?;
        self.keep(open, &staged, 0..splice.range.start)?;
        self.write(&mut staged, &splice.replacement)?;
        self.keep(open, &staged, splice.range.end..u64::MAX)?;
        self.commit(staged)
    }

    /// Copies unchanged content.
    fn keep(&self, open: &OpenFile, staged: &Staged, range: Range<u64>) -> Result<()> {
        let stop = || self.context.cancel.must_stop();
        copy_part(open, staged, range, &stop)
            .map(drop)
            .map_err(|error| self.named(self.context.cancel.explain(error)))
    }

    /// A copy between open files does not know their paths.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::DiskFull { path } if path.is_empty() => Error::DiskFull { path: self.path() },
            error => error,
        }
    }

    /// Copies everything, even if the caller gave up.
    fn keep_all(&self, open: &OpenFile, staged: &Staged) -> Result<()> {
        Ok(copy_part(open, staged, 0..u64::MAX, &|| false).map(drop)?)
    }

    /// Writes the file's whole content, seen by nobody before [`StagedFiles::commit_all`]; a missing file gets the directories on the
    /// way.
    pub(crate) fn stage_content(&self, content: &[u8]) -> Result<Staged> {
        let mut staged = self.stage()?;
        staged.reserve(content.len() as u64)?;
        content
            .chunks(BLOCK)
            .try_for_each(|block| self.write(&mut staged, block))?;
        Ok(staged)
    }

    /// Writes what the file will be, seen by nobody before [`StagedFiles::commit_all`].
    pub(crate) fn stage_pieces(&self, pieces: &Pieces) -> Result<Staged> {
        let mut staged = self.stage()?;
        staged.reserve(pieces.length())?;
        let mut writer = PieceWriter {
            edited: self,
            staged: &mut staged,
            buffer: Vec::new(),
        };
        pieces.iter().try_for_each(|piece| match &piece.source {
            PieceSource::Kept(offset) => writer.keep(*offset..offset + piece.length),
            PieceSource::New(..) => writer.add(piece.new_bytes().unwrap_or_default()),
        })?;
        writer.flush()?;
        Ok(staged)
    }

    /// Puts back what was there before a commit, on a best-effort basis: its own failures are ignored.
    fn put_back(&self) {
        let undone = match self.old.get() {
            Some(old) => self.stage().and_then(|staged| {
                self.keep_all(old.open(), &staged)?;
                Ok(staged.commit().map(drop)?)
            }),
            None => self.place.locate(Follow::Last).and_then(|made| {
                let change = self.context.unseen_change();
                Ok(change.unlink(&made)?)
            }),
        };
        drop(undone);
    }

    fn each_block(
        &self,
        open: &OpenFile,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let length = range
            .end
            .min(open.metadata.size.saturating_add(1))
            .saturating_sub(range.start);
        let size = usize::try_from(length).unwrap_or(BLOCK).clamp(1, BLOCK);
        let mut read = reader(open, &self.context.cancel);
        let mut blocks = Blocks::new(&mut read, range.start, size);
        while let Some((position, block)) = blocks.next()? {
            let left = usize::try_from(range.end.saturating_sub(position)).unwrap_or(usize::MAX);
            take(block.get(..left).unwrap_or(block))?;
            if left <= block.len() {
                break;
            }
        }
        Ok(())
    }

    fn stage(&self) -> Result<Staged> {
        let change = self.context.unseen_change();
        let staged = match self.old.get() {
            Some(old) => change.stage_over(&self.located, old),
            None => change.stage(&self.located, OnExisting::Fail, Parents::Create),
        };
        staged.map_err(|error| self.place.explain(error, Wanted::Directory))
    }

    fn write(&self, staged: &mut Staged, block: &[u8]) -> Result<()> {
        self.context.cancel.check()?;
        staged
            .write_all(block)
            .map_err(|error| write_failed(&self.located, &error))
    }

    fn commit(&self, staged: Staged) -> Result<Metadata> {
        self.context.cancel.check()?;
        self.context.consent.check(self.planned())?;
        self.lock.as_ref().map_or(Ok(()), EditLock::confirm)?;
        staged.commit().map_err(|error| self.commit_failed(error))
    }

    /// A file that was missing and that another process made meanwhile is not locked: the call looks again.
    fn commit_failed(&self, error: sandbox::Error) -> Error {
        match error {
            sandbox::Error::AlreadyExists { path } if !self.exists() => Error::Stale { path },
            error => error.into(),
        }
    }
}

/// Writes pieces, small ones together.
struct PieceWriter<'w, 'a> {
    edited: &'w Edited<'a>,
    staged: &'w mut Staged,
    buffer: Vec<u8>,
}

impl PieceWriter<'_, '_> {
    fn keep(&mut self, range: Range<u64>) -> Result<()> {
        let Some(old) = self.edited.old.get() else {
            return Ok(());
        };
        let length = range.end - range.start;
        if length >= KERNEL_COPY_MIN {
            self.flush()?;
            return self.edited.keep(old.open(), self.staged, range);
        }
        let cancel = &self.edited.context.cancel;
        let kept = read_up_to(old.open(), range.start, length, cancel)?;
        self.add(&kept)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        buffer
            .chunks(BLOCK)
            .try_for_each(|block| self.edited.write(self.staged, block))
    }
}

/// New contents of several files, seen by nobody yet. Dropped in reverse, so that a directory that was made for one of
/// them is empty when it is removed.
#[derive(Default)]
pub(crate) struct StagedFiles<'e, 'a>(Vec<(&'e Edited<'a>, Staged)>);

impl<'e, 'a> StagedFiles<'e, 'a> {
    /// Adds a file.
    pub(crate) fn push(&mut self, edited: &'e Edited<'a>, staged: Staged) {
        self.0.push((edited, staged));
    }

    /// Makes all files visible, one after the other. If one fails, those before it are put back, and directories made
    /// for them are removed. Once begun it ignores cancellation, which would leave half of the files changed.
    ///
    /// A crash in between leaves some of them changed, unless the root keeps a history: then they are put back at the
    /// next start.
    pub(crate) fn commit_all(mut self, turn: &BatchTurn) -> Result<Vec<Metadata>> {
        if let Some((edited, _)) = self.0.first() {
            edited.context.cancel.check()?;
            let mut planned = Planned::NOTHING;
            self.0.iter().for_each(|(one, _)| planned += one.planned());
            edited.context.consent.check(planned)?;
        }
        turn.lock.confirm()?;
        let mut done = CommittedFiles::default();
        let mut unsynced = None;
        // The first one is committed first.
        self.0.reverse();
        while let Some((edited, mut staged)) = self.0.pop() {
            if !self.0.is_empty() {
                staged.expect_more_parts();
            }
            match staged.commit_for_now() {
                Ok((metadata, parents)) => done.add(edited, metadata, parents),
                // This file is already changed. Stopping here would leave the change half done.
                Err(error @ sandbox::Error::Unsynced { .. }) => unsynced = Some(error),
                Err(error) => {
                    self.0.reverse();
                    drop(self);
                    done.put_back();
                    return Err(edited.commit_failed(error));
                }
            }
        }
        let committed = done.keep();
        unsynced.map_or(Ok(committed), |error| Err(error.into()))
    }
}

impl Drop for StagedFiles<'_, '_> {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// Files that are already visible, in the order of their commits.
#[derive(Default)]
struct CommittedFiles<'e, 'a> {
    files: Vec<&'e Edited<'a>>,
    metadata: Vec<Metadata>,
    parents: Vec<NewDirs>,
}

impl<'e, 'a> CommittedFiles<'e, 'a> {
    fn add(&mut self, edited: &'e Edited<'a>, metadata: Metadata, parents: Option<NewDirs>) {
        self.files.push(edited);
        self.metadata.push(metadata);
        self.parents.extend(parents);
    }

    fn keep(self) -> Vec<Metadata> {
        self.parents.into_iter().for_each(NewDirs::keep);
        self.metadata
    }

    /// Puts back what was there before, the last first: then the directories that were made are empty and vanish.
    fn put_back(mut self) {
        self.files.iter().rev().for_each(|edited| edited.put_back());
        while self.parents.pop().is_some() {}
    }
}

/// Refuses a call that names one file twice: each change would undo the other.
pub(crate) fn refuse_twice(edited: &[Edited<'_>], part: RequestPart) -> Result<()> {
    let mut known = HashSet::new();
    match edited.iter().find(|edited| !known.insert(edited.key())) {
        Some(twice) => Err(Error::InvalidPart {
            part,
            reason: format!("two of its names are the same file: {}", twice.path()),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
