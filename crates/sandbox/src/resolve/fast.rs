//! The fast look-up: no link is on the way, so the path as written is the resolved path.

use std::os::fd::OwnedFd;

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
    let fd = match syscall::look_unchecked(root.fd_or(parent.as_ref()), &last) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => {
            let tail = Tail::Missing {
                names: vec![last],
                directory: false,
            };
            return Some(Ok(Resolved {
                parent,
                parent_path,
                tail,
            }));
        }
        Err(errno) => return Some(Err(Error::from_errno("open", path.as_given(), errno))),
    };
    let metadata = match syscall::stat_unchecked(root.fd_or(Some(&fd))) {
        Ok(metadata) => metadata,
        Err(errno) => return Some(Err(Error::from_errno("stat", path.as_given(), errno))),
    };
    let is_hidden = || !root.shows_plainly(names.as_bytes(), metadata.kind);
    if (metadata.kind == FileKind::Symlink && follow == Follow::Last) || is_hidden() {
        return None;
    }
    let tail = Tail::Existing {
        name: last,
        fd,
        metadata,
    };
    Some(Ok(Resolved {
        parent,
        parent_path,
        tail,
    }))
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
        // A link, an escape, something missing, or a filter that forbids the call: the walk finds out.
        Err(_) => None,
    }
}
