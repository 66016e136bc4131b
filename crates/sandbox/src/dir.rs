//! An open directory inside a root: entries are reached from its descriptor, by one name, never followed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::change::Observers;
use crate::copy_content;
use crate::error::{Error, Result};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::open_file::{self, OpenFile};
use crate::replace::UnnamedFiles;
use crate::reserved::is_reserved;
use crate::resolve::{Resolved, Tail, joined};
use crate::root::Root;
use crate::syscall::{self, Errno, Purpose, Stamping};

/// An open directory; clones share the descriptor.
#[derive(Debug, Clone)]
pub struct Dir(Arc<Open>);

#[derive(Debug)]
struct Open {
    fd: OwnedFd,
    path: Vec<u8>,
    share: RootShare,
    /// The path as clients see it, made on first use.
    shown: OnceLock<String>,
    /// The descriptor's own read position was used; a second listing opens the directory again.
    listed: AtomicBool,
    /// Its device and what the times of entries there show, asked on first use.
    stamping: OnceLock<(u64, Stamping)>,
}

/// What the directories of a root share.
#[derive(Debug, Clone)]
pub(crate) struct RootShare {
    pub(crate) unnamed: UnnamedFiles,
    pub(crate) observers: Observers,
}

/// Which entries a listing has beside those that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// None.
    LeftOut,
    /// Those with a temporary name: nobody's files yet, or not any more.
    Temporary,
    /// Those and what has the reserved name, for whoever removes a directory with all it holds.
    All,
}

impl Unlisted {
    /// Tells whether a listing has an entry of this name.
    pub(crate) fn lists(self, name: &[u8]) -> bool {
        match self {
            Unlisted::LeftOut => !leftovers::is_temporary(name) && !is_reserved(name),
            Unlisted::Temporary => !is_reserved(name),
            Unlisted::All => true,
        }
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: FileKind,
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd, path: Vec<u8>, share: RootShare) -> Dir {
        Dir(Arc::new(Open {
            fd,
            path,
            share,
            shown: OnceLock::new(),
            listed: AtomicBool::new(false),
            stamping: OnceLock::new(),
        }))
    }

    /// Another directory of the same root.
    pub(crate) fn kin(&self, fd: OwnedFd, path: Vec<u8>) -> Dir {
        Dir::new(fd, path, self.0.share.clone())
    }

    /// The same directory under another path.
    pub(crate) fn named(&self, path: Vec<u8>) -> Result<Dir, Errno> {
        let fd = self.fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        Ok(self.kin(fd, path))
    }

    /// The same directory, in which no change is written down: what nobody sees is nobody's change.
    pub(crate) fn unrecorded(&self) -> Result<Dir, Errno> {
        let fd = self.fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        let share = RootShare {
            unnamed: self.0.share.unnamed,
            observers: self.observers().unrecorded(),
        };
        Ok(Dir::new(fd, self.path_bytes().to_vec(), share))
    }

    /// Its path as clients see it; empty for the root itself, so that it joins as a prefix.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0
            .shown
            .get_or_init(|| shown(&self.0.path).into_owned())
    }

    /// Its path in bytes; empty for the root itself.
    #[must_use]
    pub fn path_bytes(&self) -> &[u8] {
        &self.0.path
    }

    /// The path of one of its entries as clients see it.
    #[must_use]
    pub fn join(&self, name: &Name) -> String {
        match self.path() {
            "" => name.shown().into_owned(),
            parent => format!("{parent}/{}", name.shown()),
        }
    }

    /// What is known of the directory itself.
    pub fn metadata(&self) -> Result<Metadata> {
        syscall::stat_unchecked(self.fd())
            .map_err(|errno| Error::from_errno("stat", self.path(), errno))
    }

    /// The device of its files, if it is on a file system where a file's times show every change of its content.
    #[must_use]
    pub fn stamping_device(&self) -> Option<u64> {
        let known = self.0.stamping.get().copied();
        match known.or_else(|| Some(self.stamping_of(&self.metadata().ok()?)))? {
            (device, Stamping::All) => Some(device),
            _ => None,
        }
    }

    /// What is known of it but its birth time, if it is on a file system where its times show every change of its list.
    pub(crate) fn list_stamp(&self) -> Option<Metadata> {
        let metadata = syscall::stat_content_unchecked(self.fd()).ok()?;
        let (_, stamping) = self.stamping_of(&metadata);
        matches!(stamping, Stamping::All | Stamping::Directories).then_some(metadata)
    }

    fn stamping_of(&self, own: &Metadata) -> (u64, Stamping) {
        let ask = || (own.device, syscall::stamping_unchecked(self.fd()));
        *self.0.stamping.get_or_init(ask)
    }

    /// Lists it, in no order, without `.`, `..` and what is still in the making.
    pub fn entries(&self) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        self.for_each_entry(&mut |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Feeds every entry to `take` as the system hands them out, for directories too large to hold.
    ///
    /// What is still in the making is left out.
    pub fn for_each_entry(&self, take: &mut dyn FnMut(DirEntry)) -> Result<()> {
        self.for_each_name(Unlisted::LeftOut, &mut |name, kind| {
            if let Some(name) = Name::new(name) {
                take(DirEntry { name, kind });
            }
        })
    }

    /// Feeds every name and kind to `take`, without allocating: for callers that keep few of many names.
    pub(crate) fn for_each_name(
        &self,
        unlisted: Unlisted,
        take: &mut dyn FnMut(&[u8], FileKind),
    ) -> Result<()> {
        let failed = |errno| Error::from_errno("list", self.path(), errno);
        let own = !self.0.listed.swap(true, Ordering::Relaxed);
        let fresh = if own {
            None
        } else {
            Some(syscall::reopen_dir_unchecked(self.fd()).map_err(failed)?)
        };
        let fd = fresh.as_ref().map_or(self.fd(), AsFd::as_fd);
        syscall::read_dir_unchecked(fd, &mut |name, kind| {
            if unlisted.lists(name) {
                take(name, self.known_kind(name, kind));
            }
        })
        .map_err(failed)
    }

    /// Looks at an entry whose kind the listing does not tell; some file systems never do.
    fn known_kind(&self, name: &[u8], kind: FileKind) -> FileKind {
        let name = match kind {
            FileKind::Unknown => Name::new(name),
            _ => None,
        };
        let metadata = name.and_then(|name| syscall::stat_at_unchecked(self.fd(), &name).ok());
        metadata.map_or(kind, |metadata| metadata.kind)
    }

    /// What is known of an entry; a link is not followed.
    pub fn stat(&self, name: &Name) -> Result<Metadata> {
        syscall::stat_at_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("stat", name, errno))
    }

    /// Opens an entry's content for reading: regular files only, links are refused.
    pub fn open_file(&self, name: &Name) -> Result<OpenFile> {
        let mut opened = self.open_file_unnamed(name)?;
        opened.path = self.join(name);
        Ok(opened)
    }

    /// Opens an entry like [`Dir::open_file`] but leaves its path empty, for callers that name few of many files.
    pub fn open_file_unnamed(&self, name: &Name) -> Result<OpenFile> {
        let fd = syscall::open_content_unchecked(self.fd(), name, Purpose::Read)
            .map_err(|errno| self.not_openable(name, errno))?;
        open_file::regular_only(fd, || self.join(name))
    }

    /// Opens an entry for listing; links are refused.
    pub fn open_dir(&self, name: &Name) -> Result<Dir> {
        let fd = syscall::open_dir_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("open", name, errno))?;
        Ok(self.kin(fd, joined(self.path_bytes(), name)))
    }

    /// The text of a link.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>> {
        syscall::read_link_at_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("readlink", name, errno))
    }

    /// An entry as a place, not followed.
    pub fn locate<'root>(&self, root: &'root Root, name: &Name) -> Result<Located<'root>> {
        let failed = |errno| self.failed("open", name, errno);
        let tail = match syscall::look_unchecked(self.fd(), name) {
            Ok(fd) => {
                let metadata = syscall::stat_unchecked(fd.as_fd()).map_err(failed)?;
                Tail::Existing {
                    name: name.clone(),
                    fd,
                    metadata,
                }
            }
            Err(Errno::NOENT) => Tail::Missing {
                names: vec![name.clone()],
                directory: false,
            },
            Err(errno) => return Err(failed(errno)),
        };
        let parent = self
            .fd()
            .try_clone_to_owned()
            .map_err(copy_content::failed)?;
        let found = Resolved {
            parent: Some(parent),
            parent_path: self.path_bytes().to_vec(),
            tail,
        };
        Ok(Located::new(root, self.join(name), found))
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.0.share.observers
    }

    pub(crate) fn unnamed_files(&self) -> UnnamedFiles {
        self.0.share.unnamed
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    pub(crate) fn failed(&self, operation: &'static str, name: &Name, errno: Errno) -> Error {
        match errno {
            Errno::NOENT => Error::NotFound {
                path: self.join(name),
                parent: self.path().to_owned(),
                missing: name.shown().into_owned(),
            },
            errno => Error::from_errno(operation, &self.join(name), errno),
        }
    }

    /// `O_NOFOLLOW` answers a link with ELOOP, and a socket cannot be opened at all.
    fn not_openable(&self, name: &Name, errno: Errno) -> Error {
        match errno {
            Errno::LOOP => Error::NotAFile {
                path: self.join(name),
                kind: FileKind::Symlink,
            },
            Errno::NXIO => Error::NotAFile {
                path: self.join(name),
                kind: FileKind::Socket,
            },
            errno => self.failed("open", name, errno),
        }
    }
}
