//! Atomic create and replace: content is written to an unnamed file and gets its name when it is whole.
//!
//! If the file system has no unnamed files, or the system no `/proc`, a temporary file in the same directory is used
//! instead; `leftovers.rs` removes those that a killed process leaves behind.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::attributes;
use crate::change::{Change, EntryRef, Observers, OnExisting, Parents, rename_entry};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::NewEntry;
use crate::in_place;
use crate::leftovers;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata, Time};
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::new_mode::{NEW_MODE, new_mode};
use crate::open_file::{OpenFile, Replaceable};
use crate::quota::{Amount, Reservation};
use crate::resolve::Tail;
use crate::syscall::{self, Errno, SysResult};

/// Files that have a name before they are whole, or will take over another's mode, are private until then.
const PRIVATE_MODE: u32 = 0o600;

/// Whether new content is kept in an unnamed file until it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnnamedFiles {
    /// If the file system has them.
    Used,
    /// Without `/proc` they could not be given a name.
    Avoided,
}

/// The directory that a file will be in, open for as long as it takes.
#[derive(Debug, Clone)]
enum TargetDir {
    Own(Arc<OwnedFd>),
    Shared(Dir),
}

impl TargetDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            TargetDir::Own(dir) => dir.as_fd(),
            TargetDir::Shared(dir) => dir.fd(),
        }
    }
}

/// Where a new file will be, and how it is staged.
struct Target {
    dir: TargetDir,
    name: Name,
    observers: Observers,
    unnamed: UnnamedFiles,
}

impl Target {
    fn in_dir(dir: &Dir, name: &Name) -> Target {
        Target {
            dir: TargetDir::Shared(dir.clone()),
            name: name.clone(),
            observers: dir.observers().clone(),
            unnamed: dir.unnamed_files(),
        }
    }
}

/// A new file's content, invisible until it is committed. Dropping it leaves the old file untouched.
#[derive(Debug)]
pub struct Staged {
    dir: TargetDir,
    name: Name,
    path: String,
    file: File,
    /// The name of a temporary file that has one.
    temporary: Option<Name>,
    existing: Option<Metadata>,
    mode: Option<u32>,
    /// When the content was last read and last changed, if the file keeps that.
    times: Option<(Time, Time)>,
    on_existing: OnExisting,
    change: Change,
    observers: Observers,
    /// Room in a quota for what will be written.
    reservation: Option<Reservation>,
    /// Directories that were made for it, which are removed unless it is committed.
    parents: Option<NewDirs>,
}

impl Change {
    /// Begins to create or replace a file.
    pub fn stage(
        &self,
        place: &Located<'_>,
        on_existing: OnExisting,
        parents: Parents,
    ) -> Result<Staged> {
        match place.tail() {
            Tail::Root => Err(Error::IsADirectory {
                path: place.given().to_owned(),
            }),
            Tail::Missing {
                directory: true, ..
            } => Err(place.failed("create", Errno::ISDIR)),
            Tail::Missing { .. } => self.begin_at(place, on_existing, parents),
            Tail::Existing { .. } if on_existing == OnExisting::Fail => {
                Err(place.failed("create", Errno::EXIST))
            }
            Tail::Existing { .. } => self.stage_over(place, &place.open_to_replace()?),
        }
    }

    /// Begins to replace a file that was opened at this place and may be written.
    pub fn stage_over(&self, place: &Located<'_>, old: &Replaceable) -> Result<Staged> {
        let mut staged = self.begin_at(place, OnExisting::Replace, Parents::Require)?;
        staged.take_after(old.open());
        Ok(staged)
    }

    /// Begins the copy of a file that is moved. None of an existing file's attributes are kept.
    pub fn stage_moved(&self, place: &Located<'_>, on_existing: OnExisting) -> Result<Staged> {
        if place.is_for_directory() {
            return Err(place.failed("create", Errno::ISDIR));
        }
        self.begin_at(place, on_existing, Parents::Create)
    }

    /// Begins a file in an open directory. None of an existing file's attributes are kept.
    pub fn stage_in(&self, dir: &Dir, name: &Name, on_existing: OnExisting) -> Result<Staged> {
        dir.check_new(name, FileKind::File)?;
        let path = dir.join(name);
        self.begin_file(Target::in_dir(dir, name), path, on_existing)
            .map_err(|errno| Error::from_errno("create", &dir.join(name), errno))
    }

    /// Begins a file in a hidden tree. It has its name from the start, which costs less than an unnamed file.
    pub fn stage_hidden(&self, dir: &Dir, name: &Name) -> Result<Staged> {
        dir.check_new(name, FileKind::File)?;
        // The account of a quota compares the new entry with the old one, so nothing may be there.
        if dir.observers().quota.is_none() {
            match syscall::create_unchecked(dir.fd(), name, dir.observers().audience.mode(NEW_MODE))
            {
                Ok(file) => {
                    let target = Target::in_dir(dir, name);
                    let own_name = Some(name.clone());
                    let on_existing = OnExisting::Replace;
                    let path = dir.join(name);
                    return Ok(self.staged(target, path, on_existing, (file, own_name)));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(dir.failed("create", name, errno)),
            }
        }
        self.stage_in(dir, name, OnExisting::Replace)
    }

    fn begin_at(
        &self,
        place: &Located<'_>,
        on_existing: OnExisting,
        parents: Parents,
    ) -> Result<Staged> {
        let failed = |errno| place.failed("create", errno);
        let (parents, name) = self.ready_parent(place, parents)?;
        let dir = parents.as_ref().map_or(place.parent(), NewDirs::innermost);
        let dir = dir.try_clone_to_owned().map_err(|_| failed(Errno::MFILE))?;
        let target = Target {
            dir: TargetDir::Own(Arc::new(dir)),
            name: name.clone(),
            observers: place.root().observers().clone(),
            unnamed: place.root().unnamed_files(),
        };
        let begun = self.begin_file(target, place.path(), on_existing);
        let mut staged = begun.map_err(failed)?;
        staged.parents = parents;
        Ok(staged)
    }

    fn begin_file(
        &self,
        target: Target,
        path: String,
        on_existing: OnExisting,
    ) -> SysResult<Staged> {
        let mode = target.observers.audience.mode(NEW_MODE);
        let begun = temporary(target.dir.as_fd(), target.unnamed, mode)?;
        Ok(self.staged(target, path, on_existing, begun))
    }

    fn staged(
        &self,
        target: Target,
        path: String,
        on_existing: OnExisting,
        (file, temporary): (OwnedFd, Option<Name>),
    ) -> Staged {
        Staged {
            dir: target.dir,
            name: target.name,
            path,
            file: File::from(file),
            temporary,
            existing: None,
            mode: None,
            times: None,
            on_existing,
            change: self.clone(),
            observers: target.observers,
            reservation: None,
            parents: None,
        }
    }
}

fn temporary(
    dir: BorrowedFd<'_>,
    unnamed: UnnamedFiles,
    mode: u32,
) -> SysResult<(OwnedFd, Option<Name>)> {
    if unnamed == UnnamedFiles::Used {
        match syscall::open_unnamed_unchecked(dir, mode) {
            Ok(file) => return Ok((file, None)),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    let name = leftovers::temporary_name()?;
    // Security: others can open it by its name from now on, and it may become a copy of something private.
    let file = syscall::create_unchecked(dir, &name, PRIVATE_MODE)?;
    Ok((file, Some(name)))
}

impl Staged {
    /// The file to write into.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// What will be replaced.
    #[must_use]
    pub fn existing(&self) -> Option<&Metadata> {
        self.existing.as_ref()
    }

    /// Gives it the permission bits of another file, as a copy has them: never set-uid, set-gid, sticky.
    pub fn copy_mode(&mut self, of: &OpenFile) {
        self.mode = Some(attributes::copied_mode(of.file.as_fd(), &of.metadata));
    }

    /// Takes over owner, attributes and mode of the file that will be replaced, as far as the process may.
    fn take_after(&mut self, old: &OpenFile) {
        self.mode = Some(attributes::inherit(&old.file, &self.file, &old.metadata));
        self.existing = Some(old.metadata);
    }

    /// Takes over everything that a file moved by copying keeps: owner, lists, attributes, mode and times.
    pub fn keep_all(&mut self, of: &OpenFile) {
        self.mode = Some(attributes::inherit(&of.file, &self.file, &of.metadata));
        attributes::drop_foreign_lists(&of.file, &self.file);
        self.times = Some((of.metadata.accessed, of.metadata.modified));
    }

    /// Looks up the place of the file again just before the commit, with the place locked.
    ///
    /// Tells whether it is still the same directory. The new file takes its attributes from what is there now.
    pub fn confirm(&mut self, place: &Located<'_>) -> Result<bool> {
        let failed = |errno| place.failed("create", errno);
        let own = syscall::stat_unchecked(self.dir.as_fd()).map_err(failed)?;
        let parent = syscall::stat_unchecked(place.parent()).map_err(failed)?;
        let is_direct = place.metadata().is_some() || place.is_only_last_missing();
        if !is_direct || !own.same_file(&parent) || place.name() != Some(&self.name) {
            return Ok(false);
        }
        let there = place.metadata();
        if there.is_none() {
            // An entry that another process creates from now on is not locked, and must not be replaced unseen.
            self.on_existing = OnExisting::Fail;
        }
        let is_known = |there: &Metadata| {
            let existing = self.existing.as_ref();
            existing.is_some_and(|existing| there.same_file(existing))
        };
        let is_other = there.is_some_and(|there| !is_known(there));
        if is_other && self.on_existing == OnExisting::Replace {
            self.take_after(place.open_to_replace()?.open());
        }
        Ok(true)
    }

    /// Reserves this many bytes in the root's quota, so that a file beyond it is refused before it is written.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        let entry = (self.dir.as_fd(), &self.name);
        self.reservation = self.observers.reserve_file(entry, bytes, &self.path)?;
        Ok(())
    }

    /// Declares that further parts of the change follow this one.
    pub fn expect_more_parts(&mut self) {
        self.change = self.change.with_more_parts();
    }

    /// Makes the complete file visible under its name, and returns its metadata.
    pub fn commit(mut self) -> Result<Metadata> {
        self.make_seen()?;
        syscall::stat_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("create", &self.path, errno))
    }

    /// Makes the file visible like [`Staged::commit`], as one of several files. Dropping the result removes the
    /// directories that were made for it, unless they are kept.
    pub fn commit_for_now(mut self) -> Result<(Metadata, Option<NewDirs>)> {
        let parents = self.parents.take();
        self.make_seen()?;
        let metadata = syscall::stat_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("create", &self.path, errno))?;
        Ok((metadata, parents))
    }

    /// Makes the file visible like [`Staged::commit`], without reading its metadata.
    pub fn publish(mut self) -> Result<()> {
        self.make_seen()
    }

    fn make_seen(&mut self) -> Result<()> {
        let path = self.path.clone();
        let failed = |errno| Error::from_errno("create", &path, errno);
        self.complete().map_err(failed)?;
        let sync = self.change.prepare_sync(self.dir.as_fd());
        let sync = sync.map_err(failed)?;
        self.take_name()?.map_err(failed)?;
        if let Some(parents) = self.parents.take() {
            parents.keep();
        }
        sync.finish_change(|| path.clone())
    }

    /// Does everything that can be done before the file is visible.
    fn complete(&mut self) -> SysResult<()> {
        let file = self.file.as_fd();
        if let Some(mode) = self.final_mode()?
            // A look costs a fraction of setting the mode.
            && syscall::stat_content_unchecked(file)?.mode != mode
        {
            syscall::set_mode_unchecked(file, mode)?;
        }
        if let Some((accessed, modified)) = self.times {
            syscall::set_times_unchecked(file, accessed, modified)?;
        }
        self.change.sync_file(file)
    }

    /// The mode to set before the file is visible; `None` if the system gave it the right one.
    fn final_mode(&self) -> SysResult<Option<u32>> {
        match (self.mode, &self.temporary) {
            (None, Some(name)) if *name != self.name => {
                let usual = new_mode(self.dir.as_fd())?;
                Ok(Some(self.observers.audience.mode(usual)))
            }
            (mode, _) => Ok(mode),
        }
    }

    /// Gives the file its name if the observers agree.
    fn take_name(&mut self) -> Result<SysResult<()>> {
        let entry = (self.dir.as_fd(), &self.name);
        let (file, path, existing) = (&self.file, &self.path, self.existing.as_ref());
        let (temporary, on_existing) = (&mut self.temporary, self.on_existing);
        let (change, observers) = (&self.change, &self.observers);
        let mut rewritten = None;
        let shown = || path.clone();
        let put = observers.put(
            entry,
            &shown,
            || syscall::stat_unchecked(file.as_fd()).map(|file| Amount::of(&file)),
            self.reservation.take(),
            || {
                // A file in a hidden tree already has its name.
                if temporary.as_ref() == Some(entry.1) {
                    *temporary = None;
                    return Ok(());
                }
                let incoming = NewEntry::Staged {
                    file: file.as_fd(),
                    temporary,
                };
                let mut plain =
                    |incoming: &mut NewEntry<'_>| match incoming.take_name(entry, on_existing) {
                        Err(Errno::BUSY) if on_existing == OnExisting::Replace => {
                            rewritten = Some(in_place::rewrite(file, entry, existing)?);
                            Ok(())
                        }
                        named => named,
                    };
                change.put_kept(
                    observers,
                    incoming,
                    (entry, &shown),
                    on_existing,
                    &mut plain,
                )
            },
        )?;
        if let Some(file) = rewritten
            && put.is_ok()
        {
            self.take_rewritten(file)?;
        }
        Ok(put)
    }

    /// Continues with the file that was rewritten in place, which already has the name.
    fn take_rewritten(&mut self, file: File) -> Result<()> {
        self.file = file;
        self.change.note_rewritten_in_place();
        self.change
            .sync_file(self.file.as_fd())
            .map_err(|errno| Error::unsynced(&self.path, errno))
    }
}

impl NewEntry<'_> {
    /// Gives the staged entry its name, by way of a temporary one if something has to be replaced.
    fn take_name(&mut self, entry: EntryRef<'_>, on_existing: OnExisting) -> SysResult<()> {
        match self {
            NewEntry::Staged { file, temporary } => give_name(*file, entry, temporary, on_existing),
            NewEntry::Entry(from) | NewEntry::Object(from) => {
                rename_entry(*from, entry, on_existing, FileKind::File)
            }
        }
    }
}

/// Gives a file its name, by way of a temporary one if that has to be replaced.
fn give_name(
    file: BorrowedFd<'_>,
    entry: EntryRef<'_>,
    temporary: &mut Option<Name>,
    on_existing: OnExisting,
) -> SysResult<()> {
    let (dir, name) = entry;
    if temporary.is_none() {
        match syscall::link_unnamed_unchecked(file, dir, name) {
            Err(Errno::EXIST) if on_existing == OnExisting::Replace => {}
            result => return result,
        }
        refuse_directory(entry)?;
        let unguessed = leftovers::temporary_name()?;
        syscall::link_unnamed_unchecked(file, dir, &unguessed)?;
        *temporary = Some(unguessed);
    }
    if let Some(named) = temporary {
        rename_entry((dir, named), entry, on_existing, FileKind::File)?;
        *temporary = None;
    }
    Ok(())
}

/// Refuses to replace a directory by a file before a temporary name is made.
fn refuse_directory((dir, name): EntryRef<'_>) -> SysResult<()> {
    match syscall::stat_at_unchecked(dir, name) {
        Ok(metadata) if metadata.kind == FileKind::Directory => Err(Errno::ISDIR),
        _ => Ok(()),
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            // Old changes are pruned before a new one fails.
            Err(error) if is_full(&error) && self.observers.make_room() => self.file.write(bytes),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = syscall::unlink_unchecked(self.dir.as_fd(), name);
        }
    }
}
