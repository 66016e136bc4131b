//! An open directory inside a root: entries are reached from its descriptor, by one name, never followed.

mod anchor;
mod seen;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use self::anchor::{Above, Anchor};
use crate::change::Observers;
use crate::copy_content;
use crate::error::{Error, Result, is_unstorable};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::open_file::{self, OpenFile};
use crate::replace::UnnamedFiles;
use crate::reserved::is_reserved;
use crate::resolve::{Resolved, Tail};
use crate::root::Root;
use crate::syscall::{self, Errno, Purpose, Stamping};
use crate::view::{RootView, Standing};

/// Takes the name and the kind of an entry.
pub(crate) type TakeName<'t> = &'t mut dyn FnMut(&[u8], RawEntry);

/// What a directory list says about an entry besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawEntry {
    pub(crate) kind: FileKind,
    /// A hint only: what is mounted over an entry has another.
    pub(crate) inode: u64,
}

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
    /// The view's verdict on it, determined on first use.
    standing: OnceLock<Standing>,
    /// What was known of the directory above when this one was opened from it.
    above: Option<Above>,
    /// When it was last known to be at its path.
    anchor: Mutex<Option<Anchor>>,
    /// When it was known to be at its path and was listed first.
    listed_since: OnceLock<Anchor>,
    /// It is not at its path now, but will be or was.
    is_elsewhere: bool,
}

/// State shared by the directories of a root.
#[derive(Debug, Clone)]
pub(crate) struct RootShare {
    pub(crate) unnamed: UnnamedFiles,
    pub(crate) observers: Observers,
    /// The view of the root; without one, everything is visible.
    pub(crate) view: Option<Arc<RootView>>,
}

/// Which entries a listing has besides those that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// None.
    LeftOut,
    /// Entries with a temporary name: not visible yet, or no longer.
    Temporary,
    /// Those and the reserved name, for removing a directory with everything in it.
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

impl From<Open> for Dir {
    fn from(open: Open) -> Dir {
        Dir(Arc::new(open))
    }
}

impl Open {
    fn new(fd: OwnedFd, path: Vec<u8>, share: RootShare) -> Open {
        Open {
            fd,
            path,
            share,
            shown: OnceLock::new(),
            listed: AtomicBool::new(false),
            stamping: OnceLock::new(),
            standing: OnceLock::new(),
            above: None,
            anchor: Mutex::new(None),
            listed_since: OnceLock::new(),
            is_elsewhere: false,
        }
    }
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd, path: Vec<u8>, share: RootShare) -> Dir {
        Dir::placed(fd, path, share, false)
    }

    fn placed(fd: OwnedFd, path: Vec<u8>, share: RootShare, is_elsewhere: bool) -> Dir {
        let open = Open::new(fd, path, share);
        Dir::from(Open {
            is_elsewhere,
            ..open
        })
    }

    /// Another directory of the same root.
    pub(crate) fn kin(&self, fd: OwnedFd, path: Vec<u8>) -> Dir {
        Dir::placed(fd, path, self.0.share.clone(), self.0.is_elsewhere)
    }

    /// The same directory under another path.
    pub(crate) fn named(&self, path: Vec<u8>) -> Result<Dir, Errno> {
        let fd = self.fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        Ok(Dir::placed(fd, path, self.0.share.clone(), true))
    }

    /// Returns this directory without a history: changes below a hidden name are not recorded.
    pub(crate) fn unrecorded(&self) -> Result<Dir, Errno> {
        let fd = self.fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        let share = RootShare {
            unnamed: self.0.share.unnamed,
            observers: self.observers().unrecorded(),
            view: self.0.share.view.clone(),
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

    /// The metadata of the directory itself.
    pub fn metadata(&self) -> Result<Metadata> {
        syscall::stat_unchecked(self.fd())
            .map_err(|errno| Error::from_errno("stat", self.path(), errno))
    }

    /// The device of its files, if it is on a file system where a file's times show every change of its content.
    #[must_use]
    pub fn stamping_device(&self) -> Option<u64> {
        let known = self.0.stamping.get().copied();
        match known.or_else(|| Some(self.stamping_of(&self.metadata().ok()?)))? {
            (device, stamping) if stamping.shows_content() => Some(device),
            _ => None,
        }
    }

    /// What is known of it but its birth time, if it is on a file system where its times show every change of its list.
    pub(crate) fn list_stamp(&self) -> Option<Metadata> {
        let metadata = syscall::stat_content_unchecked(self.fd()).ok()?;
        let (_, stamping) = self.stamping_of(&metadata);
        stamping.shows_lists().then_some(metadata)
    }

    fn stamping_of(&self, own: &Metadata) -> (u64, Stamping) {
        // Both were open at once, so one device is one file system.
        let above = self.0.above.as_ref();
        let same = above.filter(|above| above.device == own.device);
        let ask = || match same {
            Some(above) => above.stamping,
            None => syscall::stamping_unchecked(self.fd()),
        };
        *self.0.stamping.get_or_init(|| (own.device, ask()))
    }

    /// Lists it in no order, without `.`, `..` and unfinished entries.
    pub fn entries(&self) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        self.for_each_entry(&mut |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Feeds every entry to `take` as the system hands them out, for directories too large to hold.
    ///
    /// Unfinished entries are left out.
    pub fn for_each_entry(&self, take: &mut dyn FnMut(DirEntry)) -> Result<()> {
        self.for_each_name(Unlisted::LeftOut, &mut |name, listed| {
            if let Some(name) = Name::new(name) {
                let kind = listed.kind;
                take(DirEntry { name, kind });
            }
        })
    }

    /// Tells whether both are the same open directory.
    #[must_use]
    pub fn is(&self, other: &Dir) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Feeds every name and kind to `take`, without allocating: for callers that keep few of many names.
    pub(crate) fn for_each_name(&self, unlisted: Unlisted, take: TakeName<'_>) -> Result<()> {
        let mut list = |take: TakeName<'_>| self.for_each_stored(unlisted, take);
        self.for_each_seen(unlisted, &mut list, take)
    }

    pub(crate) fn for_each_stored(&self, unlisted: Unlisted, take: TakeName<'_>) -> Result<()> {
        let failed = |errno| Error::from_errno("list", self.path(), errno);
        let own = !self.0.listed.swap(true, Ordering::Relaxed);
        let fresh = if own {
            None
        } else {
            Some(syscall::reopen_dir_unchecked(self.fd()).map_err(failed)?)
        };
        let fd = fresh.as_ref().map_or(self.fd(), AsFd::as_fd);
        syscall::read_entries_unchecked(fd, &mut |name, kind, inode| {
            if unlisted.lists(name) {
                let kind = self.known_kind(name, kind);
                take(name, RawEntry { kind, inode });
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

    /// The metadata of an entry; a link is not followed.
    pub fn stat(&self, name: &Name) -> Result<Metadata> {
        syscall::stat_at_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("stat", name, errno))
    }

    /// Like [`Dir::stat`], but without when the entry was made, which takes the kernel longer to tell: for callers that ask
    /// about many entries.
    pub fn stat_content(&self, name: &Name) -> Result<Metadata> {
        syscall::stat_content_at_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("stat", name, errno))
    }

    /// Opens an entry's content for reading: regular files only, links are refused.
    pub fn open_file(&self, name: &Name) -> Result<OpenFile> {
        let mut opened = self.open_file_unnamed(name)?;
        self.confirm_file(&opened, name)?;
        opened.path = self.join(name);
        Ok(opened)
    }

    /// Opens an entry like [`Dir::open_file`] but leaves its path empty, for callers that name few of many files. Such
    /// a caller must call [`Dir::confirm_file`] before it reveals anything about the content.
    pub fn open_file_unnamed(&self, name: &Name) -> Result<OpenFile> {
        let fd = syscall::open_content_unchecked(self.fd(), name, Purpose::Read)
            .map_err(|errno| self.not_openable(name, errno))?;
        open_file::regular_only(fd, || self.join(name))
    }

    /// Opens an entry for listing; links are refused.
    pub fn open_dir(&self, name: &Name) -> Result<Dir> {
        let fd = syscall::open_dir_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("open", name, errno))?;
        Ok(self.below(fd, name))
    }

    /// The text of a link.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>> {
        let text = syscall::read_link_at_unchecked(self.fd(), name)
            .map_err(|errno| self.failed("readlink", name, errno))?;
        self.confirm()?;
        Ok(text)
    }

    /// An entry as a place, not followed.
    pub fn locate<'root>(&self, root: &'root Root, name: &Name) -> Result<Located<'root>> {
        let failed = |errno| self.failed("open", name, errno);
        self.check_new(name, FileKind::Unknown)?;
        let tail = match syscall::look_unchecked(self.fd(), name) {
            Ok(fd) => {
                let metadata = syscall::stat_unchecked(fd.as_fd()).map_err(failed)?;
                self.check_new(name, metadata.kind)?;
                self.confirm_entry(fd.as_fd(), name)?;
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
            Errno::NOENT if !is_unstorable(operation, &name.shown(), errno) => Error::NotFound {
                path: self.join(name),
                parent: self.path().to_owned(),
                missing: name.shown().into_owned(),
                denied: false,
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
