//! Atomic create and replace: content is written to an unnamed file and gets its name when it is whole.
//!
//! If the file system has no unnamed files, or the system no `/proc`, a temporary file in the same directory is used
//! instead; `leftovers.rs` removes those that a killed process leaves behind.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::change::{Change, EntryRef, Observers, OnExisting, Parents, rename_entry};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::open_file::{OpenFile, Replaceable};
use crate::quota::{Amount, Reservation};
use crate::resolve::Tail;
use crate::syscall::{self, Errno, SysResult};

/// New files before the umask.
const NEW_MODE: u32 = 0o666;
/// Files that will take over another's mode are private until then.
const PRIVATE_MODE: u32 = 0o600;
/// Attributes that belong to the old content: rights of a program, and signatures of what it was.
const NOT_CARRIED: [&CStr; 3] = [c"security.capability", c"security.ima", c"security.evm"];
/// The access control list: with one, the mode's group bits are an upper bound and not the group's rights.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

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

/// Where a file will be, and how it begins there.
struct Target {
    dir: TargetDir,
    name: Name,
    observers: Observers,
    unnamed: UnnamedFiles,
}

/// A new file's content, unseen until it is committed; dropped, nothing has happened to the file.
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

    /// Begins a file in an open directory. What is there keeps none of its attributes.
    pub fn stage_in(&self, dir: &Dir, name: &Name, on_existing: OnExisting) -> Result<Staged> {
        let path = dir.join(name);
        let target = Target {
            dir: TargetDir::Shared(dir.clone()),
            name: name.clone(),
            observers: dir.observers().clone(),
            unnamed: dir.unnamed_files(),
        };
        self.begin_file(target, path, on_existing)
            .map_err(|errno| Error::from_errno("create", &dir.join(name), errno))
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
        let (file, temporary) = temporary(target.dir.as_fd(), target.unnamed)?;
        let mut staged = Staged {
            dir: target.dir,
            name: target.name,
            path,
            file: File::from(file),
            temporary,
            existing: None,
            mode: None,
            on_existing,
            change: self.clone(),
            observers: target.observers,
            reservation: None,
            parents: None,
        };
        staged.hide_content()?;
        Ok(staged)
    }
}

fn temporary(dir: BorrowedFd<'_>, unnamed: UnnamedFiles) -> SysResult<(OwnedFd, Option<Name>)> {
    if unnamed == UnnamedFiles::Used {
        match syscall::open_unnamed_unchecked(dir, NEW_MODE) {
            Ok(file) => return Ok((file, None)),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    let name = leftovers::temporary_name()?;
    Ok((syscall::create_unchecked(dir, &name, NEW_MODE)?, Some(name)))
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
    pub fn copy_mode(&mut self, of: &Metadata) {
        self.mode = Some(of.mode & 0o777);
    }

    /// Security: a temporary file with a name is private until it is whole, whatever the umask allows: it
    /// may become a copy of something private.
    fn hide_content(&mut self) -> SysResult<()> {
        if self.temporary.is_some() {
            self.mode = Some(syscall::stat_unchecked(self.file.as_fd())?.mode & 0o777);
            let _ = syscall::set_mode_unchecked(self.file.as_fd(), PRIVATE_MODE);
        }
        Ok(())
    }

    /// Takes over owner, attributes and mode of the file that will be replaced, as far as the process may.
    fn take_after(&mut self, old: &OpenFile) {
        let (from, to) = (old.file.as_fd(), self.file.as_fd());
        let metadata = old.metadata;
        // Private while owner and mode are being changed.
        let _ = syscall::set_mode_unchecked(to, PRIVATE_MODE);
        let group_kept = keep_owner(to, &metadata);
        let list_kept = keep_attributes(from, to);
        self.mode = Some(kept_mode(metadata.mode, group_kept, list_kept));
        self.existing = Some(metadata);
    }

    /// Keeps room in the root's quota for this many bytes, so that too much is refused before it is written.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        let entry = (self.dir.as_fd(), &self.name);
        self.reservation = self.observers.reserve_file(entry, bytes, &self.path)?;
        Ok(())
    }

    /// Makes the file seen under its name, whole, and tells what is known of it then.
    pub fn commit(mut self) -> Result<Metadata> {
        self.make_seen()?;
        syscall::stat_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("create", &self.path, errno))
    }

    /// Makes the file seen like [`Staged::commit`], without a look at it afterwards.
    pub fn publish(mut self) -> Result<()> {
        self.make_seen()
    }

    fn make_seen(&mut self) -> Result<()> {
        let path = self.path.clone();
        let failed = |errno| Error::from_errno("create", &path, errno);
        self.complete().map_err(failed)?;
        self.take_name()?.map_err(failed)?;
        if let Some(parents) = self.parents.take() {
            parents.keep();
        }
        self.change.sync_dir(self.dir.as_fd()).map_err(failed)
    }

    /// Does everything that can be done before the file is seen.
    fn complete(&mut self) -> SysResult<()> {
        let file = self.file.as_fd();
        if let Some(mode) = self.mode
            // A look costs a fraction of setting the mode.
            && syscall::stat_content_unchecked(file)?.mode != mode
        {
            syscall::set_mode_unchecked(file, mode)?;
        }
        self.change.sync_file(file)
    }

    /// Gives the file its name if the observers agree.
    fn take_name(&mut self) -> Result<SysResult<()>> {
        let entry = (self.dir.as_fd(), &self.name);
        let (file, path) = (self.file.as_fd(), &self.path);
        let (temporary, on_existing) = (&mut self.temporary, self.on_existing);
        self.observers.put(
            entry,
            &|| path.clone(),
            || syscall::stat_unchecked(file).map(|file| Amount::of(&file)),
            self.reservation.take(),
            || give_name(file, entry, temporary, on_existing),
        )
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

/// Gives a file another's owner and group, or the group alone; tells whether the group is the same now.
fn keep_owner(file: BorrowedFd<'_>, old: &Metadata) -> bool {
    syscall::set_owner_unchecked(file, Some(old.uid), old.gid).is_ok()
        || syscall::set_owner_unchecked(file, None, old.gid).is_ok()
}

/// Copies extended attributes; tells whether the access control list, if there is one, was copied.
fn keep_attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> bool {
    let names = match syscall::xattr_names_unchecked(from) {
        Ok(names) => names,
        Err(errno) => return matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS),
    };
    let carried = names
        .iter()
        .filter(|name| !NOT_CARRIED.contains(&name.as_c_str()));
    carried.fold(true, |list_kept, name| {
        let copied = syscall::copy_xattr_unchecked(from, to, name).is_ok();
        list_kept && (copied || name.as_c_str() != ACCESS_LIST)
    })
}

/// Security: the mode of a replaced file gives nobody more than they had. A group that could not be kept
/// gets what others have; without the list that bounded it, the group gets nothing.
fn kept_mode(mode: u32, group_kept: bool, list_kept: bool) -> u32 {
    match (group_kept, list_kept) {
        (true, true) => mode & 0o777,
        (false, true) => mode & (0o707 | (mode & 0o007) << 3),
        (_, false) => mode & 0o707,
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_narrowed_where_the_group_or_its_list_is_lost() {
        assert_eq!(kept_mode(0o6664, true, true), 0o664);
        assert_eq!(kept_mode(0o664, false, true), 0o644);
        assert_eq!(kept_mode(0o660, false, true), 0o600);
        assert_eq!(kept_mode(0o664, true, false), 0o604);
    }
}
