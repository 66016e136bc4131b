//! The fast look-up: no link is on the way, so the path as written is the resolved path.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::metadata::FileKind;
use crate::name::Name;
use crate::name_path::NamePath;
use crate::rel_path::RelPath;
use crate::reserved::may_name_reserved;
use crate::root::Root;
use crate::syscall::{self, Errno};

use super::{Follow, Resolved, Tail};

/// Looks a path up with one `openat2` for the parent; `None` if the component walk has to decide.
pub(super) fn resolve(root: &Root, path: &RelPath, follow: Follow) -> Option<Result<Resolved>> {
    let names = path.downward()?;
    if may_name_reserved(names.as_bytes())
        || !root.shows_plainly(names.as_bytes(), FileKind::Unknown)
    {
        return None;
    }
    let (parent_path, last) = split_last(names.as_bytes())?;
    let parent = if parent_path.is_empty() {
        None
    } else {
        Some(open_parent(root, &parent_path)?)
    };
    let tail = match tail(root.fd_or(parent.as_ref()), last, path.as_given()) {
        Ok(tail) => tail,
        Err(error) => return Some(Err(error)),
    };
    if let Tail::Existing { metadata, .. } = &tail {
        let is_link = metadata.kind == FileKind::Symlink;
        if (is_link && follow == Follow::Last)
            || !root.shows_plainly(names.as_bytes(), metadata.kind)
        {
            return None;
        }
    }
    Some(Ok(Resolved {
        parent,
        parent_path,
        tail,
    }))
}

/// What is at the last name of a path.
fn tail(dir: BorrowedFd<'_>, name: Name, given: &str) -> Result<Tail> {
    let fd = match syscall::look_unchecked(dir, &name) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => {
            return Ok(Tail::Missing {
                names: vec![name],
                directory: false,
            });
        }
        Err(errno) => return Err(Error::from_errno("open", given, errno)),
    };
    let metadata = syscall::stat_unchecked(fd.as_fd());
    let metadata = metadata.map_err(|errno| Error::from_errno("stat", given, errno))?;
    Ok(Tail::Existing { name, fd, metadata })
}

/// Cuts a path before its last name.
fn split_last(path: &[u8]) -> Option<(Vec<u8>, Name)> {
    let (parent, last) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (path.get(..slash)?, path.get(slash + 1..)?),
        None => (&[][..], path),
    };
    Some((parent.to_vec(), Name::new(last)?))
}

fn open_parent(root: &Root, path: &[u8]) -> Option<OwnedFd> {
    if !root.uses_openat2() {
        return None;
    }
    let path = NamePath::copied(path)?;
    match syscall::openat2_dir_unchecked(root.fd(), &path) {
        Ok(fd) => Some(fd),
        Err(Errno::NOSYS) => {
            root.forget_openat2();
            None
        }
        // A link, an escape, something missing, or a filter that forbids the call: the walk finds out which.
        Err(_) => None,
    }
}
