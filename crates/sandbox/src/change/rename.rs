//! Renames an entry, inside a root or from one to another.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Change, EntryRef, OnExisting, Parents};
use crate::error::{Error, PathFault, Result};
use crate::history::{Part, PartKind, RenameAcross};
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, is_plain};
use crate::new_dirs::NewDirs;
use crate::quota::{self, Amount};
use crate::rights::Right;
use crate::syscall::{self, Clobber, Errno, HowLocked, SysResult};

/// The mode of a directory that only holds a name for the moment.
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;
/// The mode of a file that only holds a name for the moment.
const PLACEHOLDER_MODE: u32 = 0o600;
/// How often the lock of such a file is tried, and after which pause.
const PLACEHOLDER_TRIES: usize = 100;
const PLACEHOLDER_PAUSE: Duration = Duration::from_millis(2);

impl Change {
    /// Renames an entry, a link as itself; missing parents of `to` are made.
    ///
    /// `stop` is called while the size of a tree is determined that moves to a root with a quota.
    pub fn rename(
        &self,
        from: &Located<'_>,
        to: &Located<'_>,
        on_existing: OnExisting,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.rename_refilling(from, to, (on_existing, None), stop)
    }

    /// Renames an entry; if wanted, something that is kept takes the place of what goes to another root.
    pub(crate) fn rename_refilling(
        &self,
        from: &Located<'_>,
        to: &Located<'_>,
        (on_existing, refill): (OnExisting, Option<&Name>),
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        check_rename(from, to, stop)?;
        let (name, _, metadata) = from.entry()?;
        let weight = weight_for(from, to, stop)?;
        let room = refill.map(|object| from.root().reserve_object(object, &from.path()));
        let room = room.transpose()?.flatten();
        // Before directories are made, so that they are a part of it.
        let joint = self.begin_joint(from, to);
        let joint = joint.map_err(|errno| from.failed("open", errno))?;
        let (parent, to_name) = self.ready_parent(to, Parents::Create)?;
        let to_dir = parent.as_ref().map_or(to.parent(), NewDirs::innermost);
        let (source, target) = ((from.parent(), name), (to_dir, to_name));
        let to_sync = |dir| {
            self.prepare_sync(dir)
                .map_err(|errno| from.failed("open", errno))
        };
        let (sync_to, sync_from) = (to_sync(to_dir)?, to_sync(from.parent())?);
        let plain = || rename_entry(source, target, on_existing, metadata.kind);
        let path = || to.given().to_owned();
        let observers = to.root().observers();
        let rename = || {
            if from.root().is_same(to.root()) {
                let (from, to) = ((source, from.path()), (target, to.path()));
                return self.move_kept(observers, from, to, &plain);
            }
            let Some(joint) = &joint else {
                return self.moved_to_other_root(from, to, &plain);
            };
            joint.rename(&RenameAcross {
                source,
                target,
                on_existing,
                refill,
            })
        };
        let renamed = observers.put(target, &path, || Ok(weight), None, rename)?;
        renamed.map_err(|errno| rename_failed(from, to, errno))?;
        from.root().observers().moved_away(weight);
        if let Some((room, refilled)) = room {
            room.settle(refilled);
        }
        let synced = sync_to.finish().and_then(|()| sync_from.finish());
        if let Some(parent) = parent {
            parent.keep();
        }
        synced.map_err(|errno| Error::unsynced(to.given(), errno))
    }
}

impl Change {
    /// Moves an entry to another root if one of them keeps no history: the other says that it cannot take that back.
    fn moved_to_other_root(
        &self,
        from: &Located<'_>,
        to: &Located<'_>,
        plain: &dyn Fn() -> SysResult<()>,
    ) -> SysResult<()> {
        let part = |kind, path| Part {
            lost: true,
            ..Part::new(kind, path)
        };
        let (away, here) = (from.root().observers(), to.root().observers());
        self.noted(
            away,
            || part(PartKind::Remove, from.path()),
            || self.noted(here, || part(PartKind::Create, to.path()), plain),
        )
    }
}

/// Refuses a move that leads into what is moved, to a name for a directory, or past what the client may remove or see.
fn check_rename(from: &Located<'_>, to: &Located<'_>, stop: &dyn Fn() -> bool) -> Result<()> {
    let (_, _, metadata) = from.entry()?;
    if from.contains(to) && !to.contains(from) {
        return Err(Error::IntoItself {
            path: from.given().to_owned(),
        });
    }
    if to.is_for_directory() && !metadata.is_directory() {
        return Err(Error::NotADirectory {
            path: to.given().to_owned(),
        });
    }
    from.check_whole(Some(to), stop)?;
    from.judge(Right::Remove)
}

/// How much of a quota an entry and everything below it take; zero if its move changes no account.
fn weight_for(from: &Located<'_>, to: &Located<'_>, stop: &dyn Fn() -> bool) -> Result<Amount> {
    let same_root = from.root().is_same(to.root());
    let accounts = [from.root(), to.root()].map(|root| root.observers().quota.as_ref());
    let (_, _, metadata) = from.entry()?;
    if same_root || accounts.iter().all(Option::is_none) {
        return Ok(Amount::default());
    }
    if !metadata.is_directory() {
        return Ok(Amount::of(metadata));
    }
    let below = quota::measure(from.open_dir()?, true, stop)?;
    Ok(Amount {
        files: below.files.saturating_add(1),
        ..below
    })
}

fn rename_failed(from: &Located<'_>, to: &Located<'_>, errno: Errno) -> Error {
    match errno {
        Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR => Error::AlreadyExists {
            path: to.given().to_owned(),
        },
        Errno::INVAL | Errno::ILSEQ if !is_into_itself(from, to, errno) => unstorable(to),
        Errno::NOENT if !is_plain(name_of(to)) => unstorable(to),
        Errno::INVAL => Error::IntoItself {
            path: from.given().to_owned(),
        },
        errno => from.failed("rename", errno),
    }
}

fn unstorable(to: &Located<'_>) -> Error {
    Error::InvalidPath {
        path: to.given().to_owned(),
        fault: PathFault::Unstorable,
    }
}

fn name_of<'a>(to: &'a Located<'_>) -> &'a [u8] {
    to.name().map(Name::as_bytes).unwrap_or_default()
}

/// Tells whether a refused rename was one of a directory into itself, by way of another mount of the same place, and not
/// one to a name that the file system cannot hold.
fn is_into_itself(from: &Located<'_>, to: &Located<'_>, errno: Errno) -> bool {
    let is_directory = from.metadata().is_some_and(Metadata::is_directory);
    errno == Errno::INVAL && is_directory && is_plain(name_of(to))
}

/// Renames, replacing or not.
pub(crate) fn rename_entry(
    from: EntryRef<'_>,
    to: EntryRef<'_>,
    on_existing: OnExisting,
    kind: FileKind,
) -> SysResult<()> {
    if on_existing == OnExisting::Replace {
        return syscall::rename_unchecked(from, to, Clobber::Yes);
    }
    match syscall::rename_unchecked(from, to, Clobber::No) {
        // Network and user-space file systems often cannot rename without replacing.
        Err(Errno::INVAL | Errno::NOSYS) => rename_in_steps(from, to, kind),
        result => result,
    }
}

/// Renames without replacing on a file system that cannot do that in one call.
fn rename_in_steps(from: EntryRef<'_>, to: EntryRef<'_>, kind: FileKind) -> SysResult<()> {
    if kind == FileKind::Directory {
        // An empty directory takes the name first: the rename replaces that one and nothing else.
        syscall::make_dir_unchecked(to.0, to.1, PRIVATE_DIRECTORY_MODE)?;
        return syscall::rename_unchecked(from, to, Clobber::Yes).inspect_err(|_| {
            let _ = syscall::remove_dir_unchecked(to.0, to.1);
        });
    }
    match syscall::link_unchecked(from, to) {
        // There are no hard links either.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            return rename_over_placeholder(from, to);
        }
        linked => linked?,
    }
    syscall::unlink_unchecked(from.0, from.1).inspect_err(|_| {
        let _ = syscall::unlink_unchecked(to.0, to.1);
    })
}

/// Waits a moment for the lock of a new file, and tells whether it is still empty then.
fn is_ours_alone(file: BorrowedFd<'_>) -> SysResult<bool> {
    for _ in 0..PLACEHOLDER_TRIES {
        if syscall::hold_unchecked(file, HowLocked::Exclusive)? {
            return Ok(syscall::stat_content_unchecked(file)?.size == 0);
        }
        std::thread::sleep(PLACEHOLDER_PAUSE);
    }
    Ok(false)
}

/// Takes the name with an empty file, which fails if anything is there, and renames over that one.
///
/// This has one winner too, but weaker guarantees: readers see an empty file for a moment, and anything that another
/// program writes into it is lost.
fn rename_over_placeholder(from: EntryRef<'_>, to: EntryRef<'_>) -> SysResult<()> {
    let placeholder = syscall::create_unchecked(to.0, to.1, PLACEHOLDER_MODE)?;
    // A process of ours that has found it already may be about to add to it: then it is that one's file.
    if !is_ours_alone(placeholder.as_fd())? {
        return Err(Errno::EXIST);
    }
    syscall::rename_unchecked(from, to, Clobber::Yes).inspect_err(|_| {
        let _ = syscall::unlink_unchecked(to.0, to.1);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted_fault::{self, PlantedFault};
    use std::fs;

    #[test]
    fn without_hard_links_a_rename_in_steps_has_one_winner_too() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::write(path("file"), "file").unwrap();
        fs::write(path("other"), "other").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let dir = syscall::open_root_unchecked(temp.path()).unwrap();
        let go = |from: &[u8], to: &[u8], kind| {
            let (from, to) = (Name::new(from).unwrap(), Name::new(to).unwrap());
            planted_fault::with(Some(PlantedFault::NoHardLinks), || {
                rename_entry(
                    (dir.as_fd(), &from),
                    (dir.as_fd(), &to),
                    OnExisting::Fail,
                    kind,
                )
            })
        };
        assert_eq!(go(b"file", b"other", FileKind::File), Err(Errno::EXIST));
        assert_eq!(go(b"none", b"new", FileKind::File), Err(Errno::NOENT));
        assert!(!path("new").exists(), "the placeholder stays");
        go(b"file", b"moved", FileKind::File).unwrap();
        go(b"link", b"renamed", FileKind::Symlink).unwrap();
        assert_eq!(fs::read(path("moved")).unwrap(), b"file");
        assert_eq!(fs::read(path("other")).unwrap(), b"other");
        assert!(path("renamed").is_symlink() && !path("link").is_symlink());
    }

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
