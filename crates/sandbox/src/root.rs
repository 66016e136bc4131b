//! A root: an open directory that nothing escapes from, and the places inside it.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dir::{Common, Dir};
use crate::error::{Error, Result};
use crate::link::{self, LinkTarget};
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::name_path::NamePath;
use crate::open_file::{self, OpenFile};
use crate::quota::{Ledger, Quota};
use crate::rel_path::{self, PathStep, RelPath};
use crate::replace::UnnamedFiles;
use crate::resolve::{self, Follow, Resolved, Resolver, Tail, joined};
use crate::syscall::{self, Errno};

/// An open directory; every path is looked up inside it, by descriptor.
pub struct Root {
    fd: OwnedFd,
    real_path: PathBuf,
    /// The absolute spellings under which links may name this root: the real one, then the configured.
    spellings: Vec<Vec<Name>>,
    openat2: AtomicBool,
    proc: bool,
    /// Its files are this machine's own.
    local: bool,
    ledger: Option<Arc<Ledger>>,
}

impl Root {
    /// Opens a directory as a root. Its path is used this once; later only the descriptor counts.
    pub fn open(path: &Path) -> io::Result<Root> {
        Root::open_with(path, Resolver::Auto)
    }

    /// Opens a root with a chosen means of look-up.
    pub fn open_with(path: &Path, resolver: Resolver) -> io::Result<Root> {
        let configured = std::path::absolute(path)?;
        let real_path = std::fs::canonicalize(path)?;
        let fd = syscall::open_root_unchecked(&real_path)?;
        let mut spellings = vec![spelled(&real_path)];
        // Security: a spelling with `..` in it would not be the plain list of names it is compared as.
        if !has_parent_steps(&configured) && spelled(&configured) != spellings[0] {
            spellings.push(spelled(&configured));
        }
        Ok(Root {
            local: syscall::is_local_unchecked(fd.as_fd()),
            fd,
            real_path,
            spellings,
            openat2: AtomicBool::new(resolver == Resolver::Auto),
            proc: resolver != Resolver::WalkWithoutProc && syscall::proc_fds().is_some(),
            ledger: None,
        })
    }

    /// This root, of which changes through it never make more than a quota.
    pub fn with_quota(mut self, quota: Quota) -> io::Result<Root> {
        let top = self.fd.try_clone()?;
        self.ledger = Some(Arc::new(Ledger::new(quota, top)));
        Ok(self)
    }

    /// The host path, for start-up and the log only.
    #[must_use]
    pub fn real_path(&self) -> &Path {
        &self.real_path
    }

    /// Looks a path up; what is missing is a place too.
    pub fn locate(&self, path: &RelPath, follow: Follow) -> Result<Located<'_>> {
        let found = resolve::resolve(self, path, follow)?;
        let located = Located::new(self, path.as_given().to_owned(), found);
        match path.must_be_directory() {
            true => located.being_directory(),
            false => Ok(located),
        }
    }

    /// Opens a file's content for reading: regular files only, and what it is is known before it is opened.
    ///
    /// The same as looking the path up and opening what is there, but quicker where no link is on the way,
    /// because the directory it lies in is not opened.
    pub fn open_file(&self, path: &RelPath) -> Result<OpenFile> {
        match self.open_entry(path) {
            Some(opened) => Ok(opened),
            None => self.locate(path, Follow::Last)?.open_file(),
        }
    }

    /// Opens a file of at most `most` bytes if all of it lies in memory, so that reading it waits for nobody; `None`
    /// where that is not so, or anything else about it is unusual.
    #[must_use]
    pub fn try_open_inline(&self, path: &RelPath, most: usize) -> Option<OpenFile> {
        let direct = self
            .direct_path(path)
            .filter(|_| self.local && self.uses_proc())?;
        let entry = syscall::openat2_look_in_memory_unchecked(self.fd(), &direct).ok()?;
        let opened = open_looked_at(&entry, &direct)?;
        let size = usize::try_from(opened.metadata.size).ok()?;
        let at_hand = size <= most && syscall::is_in_memory_unchecked(opened.file.as_fd(), size);
        at_hand.then_some(opened)
    }

    /// The quick way; where it fails, whyever, the careful one tells why.
    fn open_entry(&self, path: &RelPath) -> Option<OpenFile> {
        let direct = self.direct_path(path).filter(|_| self.uses_proc())?;
        let entry = syscall::openat2_look_unchecked(self.fd(), &direct).ok()?;
        open_looked_at(&entry, &direct)
    }

    /// The path where one `openat2` may look it all up.
    fn direct_path<'a>(&self, path: &'a RelPath) -> Option<NamePath<'a>> {
        if !self.uses_openat2() || path.must_be_directory() {
            return None;
        }
        path.downward()
    }

    /// What is known of the root directory itself.
    pub fn metadata(&self) -> Result<Metadata> {
        syscall::stat_unchecked(self.fd()).map_err(|errno| Error::from_errno("stat", ".", errno))
    }

    /// Tells whether look-ups use `openat2`.
    #[must_use]
    pub fn uses_openat2(&self) -> bool {
        self.openat2.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }

    pub(crate) fn uses_proc(&self) -> bool {
        self.proc
    }

    /// How files come into being: an unnamed file gets its name through `/proc`.
    pub(crate) fn unnamed_files(&self) -> UnnamedFiles {
        match self.proc {
            true => UnnamedFiles::Used,
            false => UnnamedFiles::Avoided,
        }
    }

    /// The account of what it holds, where that has a limit.
    pub(crate) fn ledger(&self) -> Option<&Arc<Ledger>> {
        self.ledger.as_ref()
    }

    /// What its directories have in common.
    pub(crate) fn common(&self) -> Common {
        Common {
            unnamed: self.unnamed_files(),
            ledger: self.ledger.clone(),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The given descriptor, or the root's own.
    pub(crate) fn fd_or<'a>(&'a self, fd: Option<&'a OwnedFd>) -> BorrowedFd<'a> {
        fd.map_or(self.fd(), AsFd::as_fd)
    }

    pub(crate) fn real_names(&self) -> &[Name] {
        self.spellings.first().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn spellings(&self) -> impl Iterator<Item = &[Name]> {
        self.spellings.iter().map(Vec::as_slice)
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Security: no host path, a debug print may end in a log.
        f.debug_struct("Root").finish_non_exhaustive()
    }
}

/// Opens a regular file that was looked at.
fn open_looked_at(entry: &OwnedFd, path: &NamePath<'_>) -> Option<OpenFile> {
    let metadata = syscall::stat_content_unchecked(entry.as_fd()).ok()?;
    // Security: opening a device can act, so the kind is known before anything is opened.
    if metadata.kind != FileKind::File {
        return None;
    }
    let opened = syscall::reopen_content_unchecked(entry.as_fd(), syscall::Purpose::Read)?;
    Some(OpenFile {
        file: opened.ok()?.into(),
        metadata,
        path: shown(path.as_bytes()).into_owned(),
    })
}

fn spelled(path: &Path) -> Vec<Name> {
    rel_path::steps(path.as_os_str().as_bytes())
        .into_iter()
        .filter_map(|step| match step {
            PathStep::Into(name) => Some(name),
            PathStep::Up => None,
        })
        .collect()
}

fn has_parent_steps(path: &Path) -> bool {
    path.components()
        .any(|piece| piece.as_os_str() == OsStr::new(".."))
}

/// What the process may do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess {
    /// It may be read.
    pub readable: bool,
    /// It may be written.
    pub writable: bool,
    /// It may be executed, or entered where it is a directory.
    pub executable: bool,
}

/// One place, looked up once: its directory's descriptor, its name, and what is there.
#[derive(Debug)]
pub struct Located<'root> {
    root: &'root Root,
    given: String,
    found: Resolved,
}

impl<'root> Located<'root> {
    pub(crate) fn new(root: &'root Root, given: String, found: Resolved) -> Located<'root> {
        Located { root, given, found }
    }

    /// The root it lies in.
    #[must_use]
    pub fn root(&self) -> &'root Root {
        self.root
    }

    /// The path as the client gave it.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The resolved path inside the root as clients see it; `.` for the root itself.
    #[must_use]
    pub fn path(&self) -> String {
        let bytes = self.path_bytes();
        if bytes.is_empty() {
            ".".to_owned()
        } else {
            shown(&bytes).into_owned()
        }
    }

    /// The last name; `None` for the root itself.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        match &self.found.tail {
            Tail::Root => None,
            Tail::Existing { name, .. } => Some(name),
            Tail::Missing { names, .. } => names.last(),
        }
    }

    /// Tells whether the bytes of its resolved path are not UTF-8, so that clients see a stand-in form.
    #[must_use]
    pub fn is_invalid_utf8(&self) -> bool {
        std::str::from_utf8(&self.path_bytes()).is_err()
    }

    /// Tells whether it is the root itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        matches!(self.found.tail, Tail::Root)
    }

    /// What is there; `None` where nothing is, and for the root itself.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        match &self.found.tail {
            Tail::Existing { metadata, .. } => Some(metadata),
            Tail::Root | Tail::Missing { .. } => None,
        }
    }

    /// What is there, also for the root itself; fails where nothing is.
    pub fn require(&self) -> Result<Metadata> {
        match &self.found.tail {
            Tail::Root => self.root.metadata(),
            Tail::Existing { metadata, .. } => Ok(*metadata),
            Tail::Missing { names, .. } => Err(self.not_found(names)),
        }
    }

    /// Tells whether nothing is there and a slash at the end says that only a directory may come.
    pub(crate) fn is_for_directory(&self) -> bool {
        matches!(
            self.found.tail,
            Tail::Missing {
                directory: true,
                ..
            }
        )
    }

    /// This place, which a slash behind its name says to be a directory, or a link to one.
    fn being_directory(self) -> Result<Located<'root>> {
        let is_directory = match self.metadata().map(|there| there.kind) {
            None | Some(FileKind::Directory) => true,
            // The link itself is meant, as without the slash; `open` with a slash would follow it.
            Some(FileKind::Symlink) => match link::follow(&self)?.tail {
                Tail::Existing { metadata, .. } => metadata.is_directory(),
                Tail::Root => true,
                Tail::Missing { .. } => false,
            },
            Some(_) => false,
        };
        match is_directory {
            true => Ok(self),
            false => Err(Error::NotADirectory { path: self.given }),
        }
    }

    /// Opens its content for reading: regular files only, and never waits for anyone.
    pub fn open_file(&self) -> Result<OpenFile> {
        open_file::open(self, syscall::Purpose::Read)
    }

    /// Opens it for listing.
    pub fn open_dir(&self) -> Result<Dir> {
        let metadata = self.require()?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: self.given.clone(),
            });
        }
        let fd = match &self.found.tail {
            Tail::Existing { fd, .. } => fd.as_fd(),
            Tail::Root | Tail::Missing { .. } => self.root.fd(),
        };
        let fd = syscall::reopen_dir_unchecked(fd).map_err(|errno| self.failed("open", errno))?;
        Ok(Dir::new(fd, self.path_bytes(), self.root.common()))
    }

    /// Tells where a link leads, without touching anything outside.
    pub fn link_target(&self) -> Result<LinkTarget> {
        link::target(self)
    }

    /// What the process may do with it.
    #[must_use]
    pub fn access(&self) -> FileAccess {
        use rustix::fs::Access as Ask;
        let may = |ask| match &self.found.tail {
            Tail::Root => syscall::may_dir_unchecked(self.root.fd(), ask),
            Tail::Existing { name, .. } => syscall::may_unchecked(self.parent(), name, ask),
            Tail::Missing { .. } => false,
        };
        FileAccess {
            readable: may(Ask::READ_OK),
            writable: may(Ask::WRITE_OK),
            executable: may(Ask::EXEC_OK),
        }
    }

    pub(crate) fn path_bytes(&self) -> Vec<u8> {
        let parent = self.found.parent_path.clone();
        match &self.found.tail {
            Tail::Root => parent,
            Tail::Existing { name, .. } => joined(&parent, name),
            Tail::Missing { names, .. } => {
                names.iter().fold(parent, |path, name| joined(&path, name))
            }
        }
    }

    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.root.fd_or(self.found.parent.as_ref())
    }

    pub(crate) fn parent_path(&self) -> &[u8] {
        &self.found.parent_path
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.found.tail
    }

    pub(crate) fn not_found(&self, missing: &[Name]) -> Error {
        match missing.first() {
            Some(name) => resolve::not_found(&self.given, &self.found.parent_path, name),
            None => self.failed("open", Errno::NOENT),
        }
    }

    pub(crate) fn failed(&self, operation: &'static str, errno: Errno) -> Error {
        Error::from_errno(operation, &self.given, errno)
    }

    /// The entry itself, for calls that change it: never the root, never missing.
    pub(crate) fn entry(&self) -> Result<(&Name, &OwnedFd, &Metadata)> {
        match &self.found.tail {
            Tail::Root => Err(Error::RootProtected),
            Tail::Existing { name, fd, metadata } => Ok((name, fd, metadata)),
            Tail::Missing { names, .. } => Err(self.not_found(names)),
        }
    }

    pub(crate) fn special(&self, kind: FileKind) -> Error {
        match kind {
            FileKind::Directory => Error::IsADirectory {
                path: self.given.clone(),
            },
            kind => Error::NotAFile {
                path: self.given.clone(),
                kind,
            },
        }
    }
}
