//! Looks paths up: in one fast call if no link is on the way, else by a walk over the components.

mod component_walk;
mod fast;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::name::{Name, shown};
use crate::name_path::NamePath;
use crate::rel_path::RelPath;
use crate::root::Root;
use crate::syscall::{self, Errno, SysResult};

pub(crate) use component_walk::{Start, walk_from};

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The path means what the link leads to: reading and writing.
    Last,
    /// The path means the link itself: removing and renaming. Links before the last name are followed.
    Never,
}

/// Which means of look-up a root uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolver {
    /// `openat2` and `/proc/self/fd`, if the system has them.
    #[default]
    Auto,
    /// The component walk alone, as on kernels without `openat2`.
    WalkOnly,
    /// The component walk, and without `/proc` to re-open an inode.
    WalkWithoutProc,
}

/// Where a look-up ended.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The deepest directory on the way that exists; `None` for the root's own descriptor.
    pub(crate) parent: Option<OwnedFd>,
    /// That directory's path inside the root.
    pub(crate) parent_path: Vec<u8>,
    /// What follows it.
    pub(crate) tail: Tail,
}

/// What is at the end of a path.
#[derive(Debug)]
pub(crate) enum Tail {
    /// The root itself.
    Root,
    /// An entry that exists, with an `O_PATH` descriptor for it.
    Existing {
        name: Name,
        fd: OwnedFd,
        metadata: Metadata,
    },
    /// The names that do not exist, in order; never empty.
    Missing {
        names: Vec<Name>,
        /// A slash at the end says that only a directory will do.
        directory: bool,
    },
}

/// Looks a path up beneath a root. The caller checks the requirement of a trailing slash.
pub(crate) fn resolve(root: &Root, path: &RelPath, follow: Follow) -> Result<Resolved> {
    #[cfg(test)]
    if crate::planted_fault::take_stale() {
        return Err(Error::from_errno("open", path.as_given(), Errno::STALE));
    }
    let mut found = match fast::resolve(root, path, follow) {
        Some(result) => result?,
        None => component_walk::resolve(root, path, follow)?,
    };
    if let (Tail::Missing { directory, .. }, true) = (&mut found.tail, path.must_be_directory()) {
        *directory = true;
    }
    confirm(root, &found, path.as_given())?;
    Ok(found)
}

/// Fails unless the entry is still where it was found, so that the view's verdict applies. Checked only if the root has
/// a view.
pub(crate) fn confirm(root: &Root, found: &Resolved, given: &str) -> Result<()> {
    if root.view().is_none() {
        return Ok(());
    }
    let confirmed = match (&found.tail, &found.parent) {
        (Tail::Existing { name, fd, .. }, _) => {
            root.confirm(fd.as_fd(), &joined(&found.parent_path, name))
        }
        (Tail::Missing { .. }, Some(parent)) => root.confirm(parent.as_fd(), &found.parent_path),
        _ => Ok(()),
    };
    confirmed.map_err(|errno| Error::from_errno("open", given, errno))
}

/// Joins an entry's name to its directory's path.
pub(crate) fn joined(parent: &[u8], name: &Name) -> Vec<u8> {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.as_bytes().len());
    path.extend_from_slice(parent);
    if !parent.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    path
}

/// Says in which directory a name is missing.
pub(crate) fn not_found(given: &str, parent: &[u8], missing: &Name) -> Error {
    Error::NotFound {
        path: given.to_owned(),
        parent: shown(parent).into_owned(),
        missing: missing.shown().into_owned(),
        denied: false,
    }
}

/// The refusal of a hidden name: the same as for a missing one, with a mark for the log.
pub(crate) fn denied(given: &str, parent: &[u8], name: &Name) -> Error {
    match not_found(given, parent, name) {
        Error::NotFound {
            path,
            parent,
            missing,
            ..
        } => Error::NotFound {
            path,
            parent,
            missing,
            denied: true,
        },
        other => other,
    }
}

/// Which calls a directory is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// One `openat2` for all names, if it works.
    OneCall,
    /// One `openat` for each name.
    StepByStep,
}

/// Opens a directory by names that are never followed; `None` for the one they begin in.
pub(crate) fn open_dir_below(
    base: BorrowedFd<'_>,
    path: &[u8],
    means: Means,
) -> SysResult<Option<OwnedFd>> {
    if means == Means::OneCall
        && let Some(names) = NamePath::copied(path)
        && let Ok(dir) = syscall::openat2_dir_unchecked(base, &names)
    {
        return Ok(Some(dir));
    }
    let mut current: Option<OwnedFd> = None;
    for piece in path.split(|&b| b == b'/').filter(|p| !p.is_empty()) {
        let name = Name::new(piece).ok_or(Errno::INVAL)?;
        let dir = current.as_ref().map_or(base, AsFd::as_fd);
        current = Some(syscall::look_dir_unchecked(dir, &name)?);
    }
    Ok(current)
}

/// Opens a directory by its resolved path, refusing every link on the way; `None` for the root.
pub(crate) fn reopen_resolved(root: &Root, path: &[u8]) -> SysResult<Option<OwnedFd>> {
    let means = if root.uses_openat2() {
        Means::OneCall
    } else {
        Means::StepByStep
    };
    open_dir_below(root.fd(), path, means)
}
