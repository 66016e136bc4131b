//! The calls that change something by name: always on (directory descriptor, last name), never following.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use crate::dir;
use crate::error::{Error, Result};
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::open_file::{self, OpenFile};
use crate::quota::{self, Amount};
use crate::replace::{Durability, StageOptions};
use crate::resolve::Tail;
use crate::root::Located;
use crate::syscall::{self, Clobber, Errno, Purpose};

/// The mode of a directory that only holds a name for the moment.
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;
/// How often an append tries again that a concurrent creation or removal disturbed.
const APPEND_TRIES: usize = 4;

/// What to do where something is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Leave it and fail, also when it comes at the last moment.
    Fail,
    /// Replace it.
    Replace,
}

/// What to do where directories on the way are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// Make them.
    Create,
    /// Fail.
    Require,
}

/// How something is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renaming {
    /// What to do where something is there.
    pub on_existing: OnExisting,
    /// Whether both directories are on disk before it is confirmed.
    pub durability: Durability,
}

/// What `mkdir -p` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// How many directories are new; 0 where it was there already.
    pub created: u64,
}

impl Located<'_> {
    /// Makes this directory and the missing ones on the way.
    pub fn make_dirs(&self, durability: Durability) -> Result<Made> {
        let made = self.make_dirs_for_now(durability)?;
        let created = made.as_ref().map_or(0, NewDirs::created);
        if let Some(made) = made {
            made.keep();
        }
        Ok(Made { created })
    }

    /// Makes this directory and the missing ones on the way, which go again unless they are kept; `None` where it is
    /// there already.
    pub fn make_dirs_for_now(&self, durability: Durability) -> Result<Option<NewDirs>> {
        match self.tail() {
            Tail::Root => Ok(None),
            Tail::Existing { metadata, .. } if metadata.is_directory() => Ok(None),
            Tail::Existing { .. } => Err(self.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } => NewDirs::make(self, names, durability).map(Some),
        }
    }

    /// Makes this directory alone.
    pub fn make_dir(&self) -> Result<()> {
        match self.tail() {
            Tail::Root | Tail::Existing { .. } => Err(self.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } if names.len() > 1 => Err(self.not_found(names)),
            Tail::Missing { .. } => match self.make_dirs(Durability::Fast)?.created {
                0 => Err(self.failed("mkdir", Errno::EXIST)),
                _ => Ok(()),
            },
        }
    }

    /// The directories made for a new entry, where any are missing and wanted, and the entry's name.
    pub(crate) fn ready_parent(
        &self,
        parents: Parents,
        durability: Durability,
    ) -> Result<(Option<NewDirs>, &Name)> {
        match self.tail() {
            Tail::Root => Err(Error::RootProtected),
            Tail::Existing { name, .. } => Ok((None, name)),
            Tail::Missing { names, .. } => match names.split_last() {
                Some((last, [])) => Ok((None, last)),
                Some((last, before)) if parents == Parents::Create => {
                    Ok((Some(NewDirs::make(self, before, durability)?), last))
                }
                _ => Err(self.not_found(names)),
            },
        }
    }

    /// Adds bytes at the end in one write; the file is made where it is missing.
    pub fn append(
        &self,
        bytes: &[u8],
        parents: Parents,
        durability: Durability,
    ) -> Result<Metadata> {
        if matches!(self.tail(), Tail::Existing { .. } | Tail::Root) {
            return self.append_existing(bytes, durability);
        }
        let options = StageOptions {
            on_existing: OnExisting::Fail,
            parents,
            durability,
        };
        for _ in 0..APPEND_TRIES {
            let mut staged = self.stage(options)?;
            staged
                .write_all(bytes)
                .map_err(|error| self.write_failed(error))?;
            match staged.commit() {
                // Somebody made the file meanwhile: look again and add to that one.
                Err(Error::AlreadyExists { .. }) => match self.look_again()? {
                    Some(place) => return place.append_existing(bytes, durability),
                    None => continue,
                },
                result => return result,
            }
        }
        Err(self.failed("append", Errno::AGAIN))
    }

    /// The same name in the same directory, as it is now; `None` where it is still missing.
    fn look_again(&self) -> Result<Option<Located<'_>>> {
        let path = crate::RelPath::parse(&crate::name::shown(&self.path_bytes()))?;
        let place = self.root().locate(&path, crate::Follow::Last)?;
        Ok(place.metadata().is_some().then_some(place))
    }

    fn append_existing(&self, bytes: &[u8], durability: Durability) -> Result<Metadata> {
        let opened = open_file::open(self, Purpose::Append)?;
        let failed = |errno| self.failed("append", errno);
        let before = syscall::stat_unchecked(opened.file.as_fd()).map_err(failed)?;
        let more = Amount {
            bytes: bytes.len() as u64,
            files: 0,
        };
        let ledger = self.root().ledger();
        let room = ledger.map(|ledger| ledger.reserve(more, self.given()));
        let room = room.transpose()?;
        // Space first, so that a full disk is found out before a byte is changed.
        syscall::reserve_unchecked(opened.file.as_fd(), before.size, bytes.len() as u64)
            .map_err(failed)?;
        let mut file = &opened.file;
        let written = file
            .write(bytes)
            .map_err(|error| self.write_failed(error))?;
        if written < bytes.len() {
            self.take_back(&opened.file, before.size, written as u64)?;
            return Err(failed(Errno::NOSPC));
        }
        if let Some(room) = room {
            room.settle(more);
        }
        if durability == Durability::Fsync {
            syscall::sync_unchecked(opened.file.as_fd()).map_err(failed)?;
        }
        syscall::stat_unchecked(opened.file.as_fd()).map_err(failed)
    }

    /// Removes a part of an append, unless somebody else has added to the file since.
    fn take_back(&self, file: &File, size: u64, written: u64) -> Result<()> {
        let now = syscall::stat_unchecked(file.as_fd()).map_err(|e| self.failed("append", e))?;
        if now.size == size + written {
            file.set_len(size)
                .map_err(|error| self.write_failed(error))?;
        }
        Ok(())
    }

    pub(crate) fn write_failed(&self, error: std::io::Error) -> Error {
        match Errno::from_io_error(&error) {
            Some(errno) => self.failed("write", errno),
            None => Error::Io {
                operation: "write",
                path: self.given().to_owned(),
                source: error,
            },
        }
    }

    /// Fails where a file is there that the process may not write, or where no file can be.
    pub fn check_writable(&self) -> Result<()> {
        match self.tail() {
            Tail::Root => Err(Error::IsADirectory {
                path: self.given().to_owned(),
            }),
            Tail::Missing { .. } => Ok(()),
            Tail::Existing { .. } => self.open_to_replace().map(drop),
        }
    }

    /// Opens a file that will be replaced, which takes the right to write it.
    pub(crate) fn open_to_replace(&self) -> Result<OpenFile> {
        match open_file::open(self, Purpose::Write) {
            // A running program cannot be written in place, but it can be replaced.
            Err(Error::Io { source, .. })
                if Errno::from_io_error(&source) == Some(Errno::TXTBSY) =>
            {
                open_file::open(self, Purpose::Read)
            }
            opened => opened,
        }
    }

    /// Removes a file, a link or a special file; a link is removed itself.
    pub fn unlink(&self) -> Result<()> {
        let (name, _, metadata) = self.entry()?;
        if metadata.is_directory() {
            return Err(self.special(FileKind::Directory));
        }
        self.take_away(name, || syscall::unlink_unchecked(self.parent(), name))
            .map_err(|errno| self.failed("unlink", errno))
    }

    /// Removes an empty directory.
    pub fn remove_empty_dir(&self) -> Result<()> {
        let (name, _, metadata) = self.entry()?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: self.given().to_owned(),
            });
        }
        self.take_away(name, || syscall::remove_dir_unchecked(self.parent(), name))
            .map_err(|errno| self.failed("rmdir", errno))
    }

    /// Makes a change that takes this entry away, and takes it off the root's account.
    fn take_away(
        &self,
        name: &Name,
        change: impl FnOnce() -> syscall::SysResult<()>,
    ) -> syscall::SysResult<()> {
        dir::take_away(self.root().ledger(), (self.parent(), name), change)
    }

    /// Renames this entry, a link as itself; missing directories on the way to `to` are made.
    ///
    /// `stop` is asked while the size of a tree is found out that goes to a root with a quota.
    pub fn rename_to(
        &self,
        to: &Located<'_>,
        renaming: Renaming,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let (name, _, metadata) = self.entry()?;
        if self.contains(to) {
            return Err(Error::IntoItself {
                path: self.given().to_owned(),
            });
        }
        if to.is_for_directory() && !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: to.given().to_owned(),
            });
        }
        let weight = self.weight_for(to, stop)?;
        let (parent, to_name) = to.ready_parent(Parents::Create, renaming.durability)?;
        let to_dir = parent.as_ref().map_or(to.parent(), NewDirs::innermost);
        let (from, target) = ((self.parent(), name), (to_dir, to_name));
        self.change_places(to, weight, target, || {
            rename(from, target, renaming.on_existing, metadata.kind)
        })?
        .map_err(|errno| self.rename_failed(to, errno))?;
        let synced = match renaming.durability {
            Durability::Fsync => sync_dir(to_dir).and_then(|()| sync_dir(self.parent())),
            Durability::Fast => Ok(()),
        };
        if let Some(parent) = parent {
            parent.keep();
        }
        synced.map_err(|errno| self.failed("fsync", errno))
    }

    /// What this entry and all below it take of a quota; nothing where no account changes by its move.
    fn weight_for(&self, to: &Located<'_>, stop: &dyn Fn() -> bool) -> Result<Amount> {
        let same_root = std::ptr::eq(self.root(), to.root());
        let accounts = [self.root().ledger(), to.root().ledger()];
        let (_, _, metadata) = self.entry()?;
        if same_root || accounts.iter().all(Option::is_none) {
            return Ok(Amount::default());
        }
        match metadata.is_directory() {
            true => {
                let below = quota::measure(self.open_dir()?, true, stop)?;
                Ok(Amount {
                    files: below.files.saturating_add(1),
                    ..below
                })
            }
            false => Ok(Amount::of(metadata)),
        }
    }

    /// Renames, and enters it in the accounts of both roots: what came, and what it replaced.
    fn change_places(
        &self,
        to: &Located<'_>,
        weight: Amount,
        target: EntryRef<'_>,
        rename: impl FnOnce() -> syscall::SysResult<()>,
    ) -> Result<syscall::SysResult<()>> {
        let replaced = || dir::amount_at(target.0, target.1);
        let renamed = match to.root().ledger() {
            None => rename(),
            Some(ledger) => ledger.exchange(to.given(), weight, None, &replaced, rename)?,
        };
        if let (Ok(()), Some(ledger)) = (&renamed, self.root().ledger()) {
            ledger.gone(weight);
        }
        Ok(renamed)
    }

    /// Tells whether `other` is this place or lies inside it, by their resolved paths.
    #[must_use]
    pub fn contains(&self, other: &Located<'_>) -> bool {
        let (own, other_path) = (self.path_bytes(), other.path_bytes());
        let same_root = std::ptr::eq(self.root(), other.root());
        same_root
            && other_path
                .strip_prefix(own.as_slice())
                .is_some_and(|rest| rest.starts_with(b"/"))
    }

    fn rename_failed(&self, to: &Located<'_>, errno: Errno) -> Error {
        match errno {
            Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR => Error::AlreadyExists {
                path: to.given().to_owned(),
            },
            Errno::INVAL => Error::IntoItself {
                path: self.given().to_owned(),
            },
            errno => self.failed("rename", errno),
        }
    }
}

/// A directory and a name in it.
type EntryRef<'a> = (BorrowedFd<'a>, &'a Name);

/// Renames, replacing or not.
pub(crate) fn rename(
    from: EntryRef<'_>,
    to: EntryRef<'_>,
    on_existing: OnExisting,
    kind: FileKind,
) -> syscall::SysResult<()> {
    if on_existing == OnExisting::Replace {
        return syscall::rename_unchecked(from, to, Clobber::Yes);
    }
    match syscall::rename_unchecked(from, to, Clobber::No) {
        // Network and user-space file systems often cannot refuse to replace.
        Err(Errno::INVAL | Errno::NOSYS) => rename_in_steps(from, to, kind),
        result => result,
    }
}

/// Renames without replacing where the file system cannot do that in one call.
fn rename_in_steps(from: EntryRef<'_>, to: EntryRef<'_>, kind: FileKind) -> syscall::SysResult<()> {
    if kind == FileKind::Directory {
        // An empty directory takes the name first: the rename replaces that one and nothing else.
        syscall::make_dir_unchecked(to.0, to.1, PRIVATE_DIRECTORY_MODE)?;
        return syscall::rename_unchecked(from, to, Clobber::Yes).inspect_err(|_| {
            let _ = syscall::remove_dir_unchecked(to.0, to.1);
        });
    }
    syscall::link_unchecked(from, to)?;
    syscall::unlink_unchecked(from.0, from.1).inspect_err(|_| {
        let _ = syscall::unlink_unchecked(to.0, to.1);
    })
}

/// Writes a directory's entries to disk.
pub(crate) fn sync_dir(dir: BorrowedFd<'_>) -> syscall::SysResult<()> {
    let readable = match syscall::reopen_dir_unchecked(dir) {
        Ok(readable) => readable,
        // A directory that may be written but not read cannot be synced by us.
        Err(Errno::ACCESS) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    syscall::sync_unchecked(readable.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_rename_in_steps_moves_and_never_replaces() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::write(path("file"), "file").unwrap();
        fs::create_dir_all(path("dir/sub")).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let dir = syscall::open_root_unchecked(temp.path()).unwrap();
        let go = |from: &[u8], to: &[u8], kind| {
            let (from, to) = (Name::new(from).unwrap(), Name::new(to).unwrap());
            rename_in_steps((dir.as_fd(), &from), (dir.as_fd(), &to), kind)
        };
        assert_eq!(go(b"file", b"dir", FileKind::File), Err(Errno::EXIST));
        assert_eq!(go(b"dir", b"file", FileKind::Directory), Err(Errno::EXIST));
        go(b"file", b"moved", FileKind::File).unwrap();
        go(b"dir", b"other", FileKind::Directory).unwrap();
        go(b"link", b"renamed", FileKind::Symlink).unwrap();
        assert!(path("other/sub").is_dir() && !path("dir").exists());
        assert!(path("renamed").is_symlink() && !path("link").is_symlink());
        assert_eq!(fs::read(path("moved")).unwrap(), b"file");
        let into_itself = syscall::look_unchecked(dir.as_fd(), &Name::new(b"other").unwrap());
        let (own, new) = (Name::new(b"other").unwrap(), Name::new(b"new").unwrap());
        let inside = (into_itself.as_ref().unwrap().as_fd(), &new);
        let refused = rename_in_steps((dir.as_fd(), &own), inside, FileKind::Directory);
        assert_eq!(refused, Err(Errno::INVAL));
        assert!(!path("other/new").exists());
    }
}
