//! What patches, replacements and insertions share: a text file is read, changed and replaced in one step.
//!
//! Must not decide what an edit does: that is `text`.

use std::cell::OnceCell;
use std::io::Write as _;
use std::ops::Range;

use sandbox::{Located, Metadata, OnExisting, OpenFile, Parents, Replaceable, Staged, copy_part};

use crate::context::Context;
use crate::edit_lock::EditLock;
use crate::error::{Error, Result, Wanted};
use crate::place::Place;
use crate::read_at::reader;
use crate::text::edit::Splice;
use crate::text::encoding::Utf8Check;
use crate::text::lines::Blocks;
use crate::write::write_failed;

/// The largest file that is edited, or given whole where a part cannot be asked for.
pub const WHOLE_FILE_MAX: u64 = 100 * 1024 * 1024;
/// How much is copied at a time.
const BLOCK: usize = 1024 * 1024;

/// A file whose turn it is to be changed.
pub(crate) struct Edited<'a> {
    place: &'a Place,
    located: Located<'a>,
    /// What is there, once it was opened.
    old: OnceCell<Replaceable>,
    context: &'a Context,
    _lock: EditLock,
}

impl<'a> Edited<'a> {
    /// Waits for the file's turn and looks it up.
    pub(crate) fn begin(place: &'a Place, context: &'a Context) -> Result<Edited<'a>> {
        let (lock, located) = EditLock::take(place, &context.cancel)?;
        Ok(Edited {
            place,
            located,
            old: OnceCell::new(),
            context,
            _lock: lock,
        })
    }

    /// The resolved path.
    pub(crate) fn path(&self) -> String {
        self.located.path()
    }

    /// Tells whether the file is there already.
    pub(crate) fn exists(&self) -> bool {
        self.located.metadata().is_some()
    }

    /// Opens the file, which must be there, be text, writable and not too large.
    pub(crate) fn open_text(&self) -> Result<&OpenFile> {
        let required = self.located.require();
        let metadata = required.map_err(|error| self.place.explain(error, Wanted::File))?;
        self.check_size(metadata.size)?;
        let old = self.located.open_to_edit()?;
        self.check_text(old.open())?;
        Ok(self.old.get_or_init(|| old).open())
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
                Err(Error::NotText { path: self.path() })
            } else {
                Ok(())
            }
        })?;
        if check.is_valid() {
            Ok(())
        } else {
            Err(Error::NotText { path: self.path() })
        }
    }

    /// Replaces the file by itself with one change made, holding none of what stays.
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

    /// Copies what stays.
    fn keep(&self, open: &OpenFile, staged: &Staged, range: Range<u64>) -> Result<()> {
        let stop = || self.context.cancel.must_stop();
        copy_part(open, staged, range, &stop)
            .map(drop)
            .map_err(|error| self.context.cancel.explain(error))
    }

    /// Replaces the file's content; a missing file is made, with the directories on the way.
    pub(crate) fn replace(&self, content: &[u8]) -> Result<Metadata> {
        let mut staged = self.stage()?;
        staged.reserve(content.len() as u64)?;
        content
            .chunks(BLOCK)
            .try_for_each(|block| self.write(&mut staged, block))?;
        self.commit(staged)
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
        let change = self.context.change();
        Ok(match self.old.get() {
            Some(old) => change.stage_over(&self.located, old)?,
            None => change.stage(&self.located, OnExisting::Fail, Parents::Create)?,
        })
    }

    fn write(&self, staged: &mut Staged, block: &[u8]) -> Result<()> {
        self.context.cancel.check()?;
        staged
            .write_all(block)
            .map_err(|error| write_failed(&self.located, &error))
    }

    fn commit(&self, staged: Staged) -> Result<Metadata> {
        self.context.cancel.check()?;
        Ok(staged.commit()?)
    }
}
