//! Atomic create and replace: content is written to an unnamed file and gets its name when it is whole.
//!
//! Where the file system has no unnamed files, or the system no `/proc`, a named temporary file in the same
//! directory takes their place; `leftovers.rs` says what happens to those a killed process leaves behind.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::change::{OnExisting, Parents, sync_dir};
use crate::content;
use crate::error::{Error, Result};
use crate::leftovers;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::resolve::Tail;
use crate::root::Located;
use crate::syscall::{self, Clobber, Errno, Purpose, SysResult};

/// New files before the umask.
const NEW_MODE: u32 = 0o666;
/// Files that will take over another's mode are private until then.
const PRIVATE_MODE: u32 = 0o600;
/// Attributes that a change of content takes away, as the kernel itself does.
const NOT_CARRIED: [&std::ffi::CStr; 1] = [c"security.capability"];

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

/// A new file's content, unseen until it is committed; dropped, nothing has happened to the file.
#[derive(Debug)]
pub struct Staged {
    dir: OwnedFd,
    name: Name,
    path: String,
    file: File,
    /// The name of a temporary file that has one.
    temporary: Option<Name>,
    existing: Option<Metadata>,
    mode: Option<u32>,
    on_existing: OnExisting,
    durability: Durability,
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
            Tail::Missing { .. } => None,
            Tail::Existing { .. } if options.on_existing == OnExisting::Fail => {
                return Err(self.failed("create", Errno::EXIST));
            }
            // Security: an existing file that may not be written must not be replaced instead.
            Tail::Existing { .. } => Some(content::open(self, Purpose::Write)?),
        };
        let (parent, name) = self.ready_parent(options.parents, options.durability)?;
        let dir = parent.as_ref().map_or(self.parent(), AsFd::as_fd);
        let mut staged = begin(
            dir,
            name,
            &self.path(),
            options.on_existing,
            options.durability,
        )
        .map_err(|errno| self.failed("create", errno))?;
        if let Some(opened) = existing {
            staged.take_after(&opened.file, opened.metadata);
        }
        Ok(staged)
    }
}

/// Begins a file in an open directory. What is there keeps none of its attributes.
pub(crate) fn stage_in(
    dir: BorrowedFd<'_>,
    name: &Name,
    path: &str,
    on_existing: OnExisting,
    durability: Durability,
) -> Result<Staged> {
    begin(dir, name, path, on_existing, durability)
        .map_err(|errno| Error::from_errno("create", path, errno))
}

fn begin(
    dir: BorrowedFd<'_>,
    name: &Name,
    path: &str,
    on_existing: OnExisting,
    durability: Durability,
) -> SysResult<Staged> {
    let (file, temporary) = temporary(dir)?;
    Ok(Staged {
        dir: dir.try_clone_to_owned().map_err(|_| Errno::MFILE)?,
        name: name.clone(),
        path: path.to_owned(),
        file: File::from(file),
        temporary,
        existing: None,
        mode: None,
        on_existing,
        durability,
    })
}

fn temporary(dir: BorrowedFd<'_>) -> SysResult<(OwnedFd, Option<Name>)> {
    if syscall::proc_fds().is_some() {
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

    /// Takes over owner, attributes and mode of the file that will be replaced, as far as the process may.
    fn take_after(&mut self, old: &File, metadata: Metadata) {
        let (from, to) = (old.as_fd(), self.file.as_fd());
        // Private while owner and mode are being changed.
        let _ = syscall::set_mode_unchecked(to, PRIVATE_MODE);
        let _ = syscall::set_owner_unchecked(to, metadata.uid, metadata.gid);
        for name in syscall::xattr_names_unchecked(from).unwrap_or_default() {
            if !NOT_CARRIED.contains(&name.as_c_str()) {
                let _ = syscall::copy_xattr_unchecked(from, to, &name);
            }
        }
        self.mode = Some(metadata.mode & 0o777);
        self.existing = Some(metadata);
    }

    /// Makes the file seen under its name, whole.
    pub fn commit(mut self) -> Result<Metadata> {
        self.publish()
            .map_err(|errno| Error::from_errno("create", &self.path, errno))
    }

    fn publish(&mut self) -> SysResult<Metadata> {
        if let Some(mode) = self.mode {
            syscall::set_mode_unchecked(self.file.as_fd(), mode)?;
        }
        if self.durability == Durability::Fsync {
            syscall::sync_unchecked(self.file.as_fd())?;
        }
        self.give_name()?;
        if self.durability == Durability::Fsync {
            sync_dir(self.dir.as_fd())?;
        }
        syscall::stat_unchecked(self.file.as_fd())
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
        let clobber = match self.on_existing {
            OnExisting::Fail => Clobber::No,
            OnExisting::Replace => Clobber::Yes,
        };
        if let Some(temporary) = &self.temporary {
            let dir = self.dir.as_fd();
            syscall::rename_unchecked((dir, temporary), (dir, &self.name), clobber)?;
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
