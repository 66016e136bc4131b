//! Atomic create and replace: content is written to an unnamed file and gets its name when it is whole.
//!
//! Where the file system has no unnamed files, or the system no `/proc`, a named temporary file in the same
//! directory takes their place; `leftovers.rs` says what happens to those a killed process leaves behind.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::change::{OnExisting, Parents, rename, sync_dir};
use crate::dir::{Common, Dir, amount_at};
use crate::error::{Error, Result};
use crate::leftovers;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::quota::{Amount, Ledger, Reservation};
use crate::resolve::Tail;
use crate::root::Located;
use crate::syscall::{self, Errno, SysResult};

/// New files before the umask.
const NEW_MODE: u32 = 0o666;
/// Files that will take over another's mode are private until then.
const PRIVATE_MODE: u32 = 0o600;
/// Attributes that belong to the old content: rights of a program, and signatures of what it was.
const NOT_CARRIED: [&CStr; 3] = [c"security.capability", c"security.ima", c"security.evm"];
/// The access control list: with one, the mode's group bits are an upper bound and not the group's rights.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Whether a write is on disk before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and directory are synced first.
    #[default]
    Fsync,
    /// The system writes when it likes; a crash of the machine may lose the newest writes.
    Fast,
}

/// How a file is made or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageOptions {
    /// What to do where a file is there.
    pub on_existing: OnExisting,
    /// What to do where directories are missing.
    pub parents: Parents,
    /// Whether it is on disk before it is confirmed.
    pub durability: Durability,
}

/// Whether new content is kept in an unnamed file until it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnnamedFiles {
    /// Where the file system has them.
    Used,
    /// Without `/proc` they could not be given a name.
    Avoided,
}

/// How a file begins.
#[derive(Debug, Clone)]
pub(crate) struct Beginning {
    pub(crate) on_existing: OnExisting,
    pub(crate) durability: Durability,
    pub(crate) common: Common,
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
    durability: Durability,
    ledger: Option<Arc<Ledger>>,
    /// Room in a quota for what will be written.
    reservation: Option<Reservation>,
    /// Directories that were made for it, which go again where it is not committed.
    parents: Option<NewDirs>,
}

impl Located<'_> {
    /// Begins to create or replace a file.
    pub fn stage(&self, options: StageOptions) -> Result<Staged> {
        let existing = match self.tail() {
            Tail::Root => {
                return Err(Error::IsADirectory {
                    path: self.given().to_owned(),
                });
            }
            Tail::Missing {
                directory: true, ..
            } => return Err(self.failed("create", Errno::ISDIR)),
            Tail::Missing { .. } => None,
            Tail::Existing { .. } if options.on_existing == OnExisting::Fail => {
                return Err(self.failed("create", Errno::EXIST));
            }
            // Security: an existing file that may not be written must not be replaced instead.
            Tail::Existing { .. } => Some(self.open_to_replace()?),
        };
        let (parent, name) = self.ready_parent(options.parents, options.durability)?;
        let dir = parent.as_ref().map_or(self.parent(), NewDirs::innermost);
        let beginning = Beginning {
            on_existing: options.on_existing,
            durability: options.durability,
            common: self.root().common(),
        };
        let own_dir = dir.try_clone_to_owned().map_err(|_| Errno::MFILE);
        let mut staged = own_dir
            .and_then(|dir| begin(TargetDir::Own(Arc::new(dir)), name, &self.path(), beginning))
            .map_err(|errno| self.failed("create", errno))?;
        staged.parents = parent;
        if let Some(opened) = existing {
            staged.take_after(&opened.file, opened.metadata);
        }
        Ok(staged)
    }
}

/// Begins a file in an open directory. What is there keeps none of its attributes.
pub(crate) fn stage_in(dir: &Dir, name: &Name, path: &str, beginning: Beginning) -> Result<Staged> {
    begin(TargetDir::Shared(dir.clone()), name, path, beginning)
        .map_err(|errno| Error::from_errno("create", path, errno))
}

fn begin(dir: TargetDir, name: &Name, path: &str, beginning: Beginning) -> SysResult<Staged> {
    let (file, temporary) = temporary(dir.as_fd(), beginning.common.unnamed)?;
    let mut staged = Staged {
        dir,
        name: name.clone(),
        path: path.to_owned(),
        file: File::from(file),
        temporary,
        existing: None,
        mode: None,
        on_existing: beginning.on_existing,
        durability: beginning.durability,
        ledger: beginning.common.ledger,
        reservation: None,
        parents: None,
    };
    staged.hide_content()?;
    Ok(staged)
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
    #[must_use]
    pub fn file(&self) -> &File {
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
    fn take_after(&mut self, old: &File, metadata: Metadata) {
        let (from, to) = (old.as_fd(), self.file.as_fd());
        // Private while owner and mode are being changed.
        let _ = syscall::set_mode_unchecked(to, PRIVATE_MODE);
        let group_kept = keep_owner(to, &metadata);
        let list_kept = keep_attributes(from, to);
        self.mode = Some(kept_mode(metadata.mode, group_kept, list_kept));
        self.existing = Some(metadata);
    }

    /// Keeps room in the root's quota for this many bytes, so that too much is refused before it is written.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        if let Some(ledger) = &self.ledger {
            let old = amount_at(self.dir.as_fd(), &self.name);
            let more = Amount {
                bytes: bytes.saturating_sub(old.bytes),
                files: 1_u64.saturating_sub(old.files),
            };
            self.reservation = Some(ledger.reserve(more, &self.path)?);
        }
        Ok(())
    }

    /// Makes the file seen under its name, whole, and tells what is known of it then.
    pub fn commit(mut self) -> Result<Metadata> {
        self.make_seen()?;
        syscall::stat_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("create", &self.path, errno))
    }

    /// The same for those who do not want to know.
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
        if self.durability == Durability::Fsync {
            sync_dir(self.dir.as_fd()).map_err(failed)?;
        }
        Ok(())
    }

    /// Does all that can be done before the file is seen.
    fn complete(&mut self) -> SysResult<()> {
        let file = self.file.as_fd();
        if let Some(mode) = self.mode
            // A look costs a fraction of a change.
            && syscall::stat_content_unchecked(file)?.mode != mode
        {
            syscall::set_mode_unchecked(file, mode)?;
        }
        match self.durability {
            Durability::Fsync => syscall::sync_unchecked(self.file.as_fd()),
            Durability::Fast => Ok(()),
        }
    }

    /// Gives the file its name if a quota leaves room for it.
    fn take_name(&mut self) -> Result<SysResult<()>> {
        let Some(ledger) = self.ledger.take() else {
            return Ok(self.give_name());
        };
        let metadata = syscall::stat_unchecked(self.file.as_fd())
            .map_err(|errno| Error::from_errno("create", &self.path, errno))?;
        let own_dir = self.dir.clone();
        let (path, name, held) = (
            self.path.clone(),
            self.name.clone(),
            self.reservation.take(),
        );
        let old = move || amount_at(own_dir.as_fd(), &name);
        ledger.exchange(&path, Amount::of(&metadata), held, &old, || {
            self.give_name()
        })
    }

    fn give_name(&mut self) -> SysResult<()> {
        if self.temporary.is_none() {
            match syscall::link_unnamed_unchecked(self.file.as_fd(), self.dir.as_fd(), &self.name) {
                Err(Errno::EXIST) if self.on_existing == OnExisting::Replace => {}
                result => return result,
            }
            self.refuse_directory()?;
            let name = leftovers::temporary_name()?;
            syscall::link_unnamed_unchecked(self.file.as_fd(), self.dir.as_fd(), &name)?;
            self.temporary = Some(name);
        }
        if let Some(temporary) = &self.temporary {
            let dir = self.dir.as_fd();
            let (from, to) = ((dir, temporary), (dir, &self.name));
            rename(from, to, self.on_existing, FileKind::File)?;
            self.temporary = None;
        }
        Ok(())
    }

    /// A directory cannot be replaced by a file: found out before a temporary name is made.
    fn refuse_directory(&self) -> SysResult<()> {
        match syscall::stat_at_unchecked(self.dir.as_fd(), &self.name) {
            Ok(metadata) if metadata.kind == FileKind::Directory => Err(Errno::ISDIR),
            _ => Ok(()),
        }
    }
}

/// Gives a file another's owner and group, or the group alone; tells whether the group is the same now.
fn keep_owner(file: BorrowedFd<'_>, old: &Metadata) -> bool {
    syscall::set_owner_unchecked(file, Some(old.uid), old.gid).is_ok()
        || syscall::set_owner_unchecked(file, None, old.gid).is_ok()
}

/// Copies extended attributes; tells whether the access control list, where there is one, came along.
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
