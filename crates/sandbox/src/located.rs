//! A place inside a root: looked up once, and used by descriptor from then on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::link::{self, LinkTarget};
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::open_file::{self, OpenFile};
use crate::resolve::{self, Resolved, Tail, joined};
use crate::rights::Right;
use crate::root::Root;
use crate::syscall::{self, Errno};

/// The process's access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess {
    /// It may be read.
    pub readable: bool,
    /// It may be written.
    pub writable: bool,
    /// It may be executed, or entered if it is a directory.
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

    /// The root it is in.
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

    /// What is there; `None` if nothing is, and for the root itself.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        match &self.found.tail {
            Tail::Existing { metadata, .. } => Some(metadata),
            Tail::Root | Tail::Missing { .. } => None,
        }
    }

    /// The metadata of what is there, also for the root itself; fails if nothing is.
    pub fn require(&self) -> Result<Metadata> {
        match &self.found.tail {
            Tail::Root => self.root.metadata(),
            Tail::Existing { metadata, .. } => Ok(*metadata),
            Tail::Missing { names, .. } => Err(self.not_found(names)),
        }
    }

    /// Tells whether nothing is there and a slash at the end says that only a directory may be made.
    pub(crate) fn is_for_directory(&self) -> bool {
        matches!(
            self.found.tail,
            Tail::Missing {
                directory: true,
                ..
            }
        )
    }

    /// Tells whether nothing is there but all directories on the way are.
    #[must_use]
    pub fn is_only_last_missing(&self) -> bool {
        matches!(&self.found.tail, Tail::Missing { names, .. } if names.len() == 1)
    }

    /// Requires what a slash behind the name says: this place is a directory, or a link to one.
    pub(crate) fn being_directory(self) -> Result<Located<'root>> {
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
        if is_directory {
            Ok(self)
        } else {
            Err(Error::NotADirectory { path: self.given })
        }
    }

    /// Tells whether `other` is this place or is inside it. Roots may overlap, so the real paths decide.
    #[must_use]
    pub fn contains(&self, other: &Located<'_>) -> bool {
        is_within(&other.host_path(), &self.host_path())
    }

    /// The resolved path on the host, to compare places only: never shown and never opened.
    #[must_use]
    pub fn host_path(&self) -> String {
        self.root.host_path(&self.path())
    }

    /// Opens its content for reading: regular files only, and never blocks on a FIFO.
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
        Ok(Dir::new(fd, self.path_bytes(), self.root.share()))
    }

    /// Opens the directory that it is in.
    pub(crate) fn open_parent_dir(&self) -> Result<Dir> {
        let fd = syscall::reopen_dir_unchecked(self.parent());
        let fd = fd.map_err(|errno| self.failed("open", errno))?;
        Ok(Dir::new(
            fd,
            self.parent_path().to_owned(),
            self.root.share(),
        ))
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

    /// Fails if the process cannot remove the entry from its directory, as far as that can be known in advance: the
    /// directory is not writable, or is on a read-only file system.
    pub fn check_removable(&self) -> Result<()> {
        syscall::check_writable_dir_unchecked(self.parent())
            .map_err(|errno| self.failed("unlink", errno))
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

    /// Fails as for a hidden file if nothing is there, and a file that is made there would be hidden.
    ///
    /// Security: a place that is missing may become a directory, which may be visible where a file is not. Whoever wants a
    /// file there has to be refused as early as for one that exists, or the order of refusals tells which exists.
    pub fn require_place_for_file(&self) -> Result<()> {
        let (Tail::Missing { names, .. }, Some(view)) = (&self.found.tail, self.root.view()) else {
            return Ok(());
        };
        match names.first() {
            Some(name) if !view.view().shows(&self.path_bytes(), FileKind::File) => {
                Err(resolve::denied(&self.given, &self.found.parent_path, name))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the root's holder lacks a right.
    pub(crate) fn judge(&self, right: Right) -> Result<()> {
        let observers = self.root.observers();
        observers.judge(right, &|| self.given.clone())
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

/// Tells whether a path is a directory or is below it. An empty directory, `.` and `/` hold everything.
#[must_use]
pub fn is_within(path: &str, directory: &str) -> bool {
    // Security: `docs-private` is not inside `docs`.
    matches!(directory, "" | "." | "/")
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn a_path_is_within_itself_and_what_is_above_it() {
        for (path, directory) in [("a", "a"), ("a/b", "a"), ("a", ""), ("a", "."), ("/a", "/")] {
            assert!(is_within(path, directory), "{path} in {directory}");
        }
        for (path, directory) in [("ab", "a"), ("a", "a/b"), ("a/b", "b"), ("", "a")] {
            assert!(!is_within(path, directory), "{path} in {directory}");
        }
    }
}
