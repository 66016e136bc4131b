//! A view applied to a root: it also finds out where an open descriptor really is.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::{Standing, View};
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::reserved::is_ours;
use crate::syscall::{self, Errno, SysResult};

/// The suffix that the kernel adds to the path of a removed file.
const DELETED: &[u8] = b" (deleted)";

/// A root's view, and the root's own directory.
#[derive(Debug)]
pub(crate) struct RootView {
    view: Arc<View>,
    top: Arc<OwnedFd>,
    real_path: Vec<u8>,
    has_proc: bool,
}

impl RootView {
    pub(crate) fn new(view: Arc<View>, top: Arc<OwnedFd>, real: &Path, has_proc: bool) -> RootView {
        RootView {
            view,
            top,
            real_path: real.as_os_str().as_bytes().to_vec(),
            has_proc,
        }
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Tells whether a path without links, from the root, names a file or directory that may exist, and nothing else by
    /// any folding of names.
    pub(crate) fn shows_plainly(&self, path: &[u8], kind: FileKind) -> bool {
        let mut at = self.view.start();
        let mut spare = at.clone();
        for name in path.split(|&byte| byte == b'/') {
            if self.view.is_doubtful(&at, name) {
                return false;
            }
            self.view.step_on(&mut at, &mut spare, name);
        }
        self.view.judges(&at, kind)
    }

    /// Fails with `STALE` unless a descriptor is at this path inside the root now.
    ///
    /// Security: a look-up goes from directory to directory, and any of them may be moved meanwhile to a hidden place.
    /// The kernel reports in one step where a descriptor is.
    pub(crate) fn confirm(&self, fd: BorrowedFd<'_>, path: &[u8]) -> SysResult<()> {
        if !self.has_proc {
            return self.confirm_by_name(fd, path);
        }
        let actual = syscall::path_of_unchecked(fd)?;
        if is_at(&actual, &self.real_path, path) {
            return Ok(());
        }
        let is_removed = || syscall::stat_content_unchecked(fd).is_ok_and(|now| now.links == 0);
        let actual = match actual.strip_suffix(DELETED) {
            Some(path) if is_removed() => path,
            _ => &actual,
        };
        // The root's own directory may have been moved.
        let top = || syscall::path_of_unchecked(self.top.as_fd());
        if is_at(actual, &self.real_path, path) || is_at(actual, &top()?, path) {
            return Ok(());
        }
        Err(Errno::STALE)
    }

    /// Without `/proc`: the path leads to the same file when it is looked up once more.
    fn confirm_by_name(&self, fd: BorrowedFd<'_>, path: &[u8]) -> SysResult<()> {
        let own = syscall::stat_unchecked(fd)?;
        let mut current: Option<OwnedFd> = None;
        for piece in path.split(|&byte| byte == b'/').filter(|p| !p.is_empty()) {
            let name = Name::new(piece).ok_or(Errno::STALE)?;
            let dir = current.as_ref().map_or(self.top.as_fd(), AsFd::as_fd);
            current = Some(syscall::look_unchecked(dir, &name).map_err(|_| Errno::STALE)?);
        }
        let dir = current.as_ref().map_or(self.top.as_fd(), AsFd::as_fd);
        if syscall::stat_unchecked(dir)?.same_file(&own) {
            Ok(())
        } else {
            Err(Errno::STALE)
        }
    }

    /// The name under which an entry is stored that was found by a doubtful one; `None` if it cannot be found out.
    pub(crate) fn stored_name(
        &self,
        dir: BorrowedFd<'_>,
        name: &Name,
        found: &Metadata,
    ) -> Option<Name> {
        let listing = syscall::reopen_dir_unchecked(dir).ok()?;
        let (mut is_exact, mut alike, mut others) = (false, Vec::new(), Vec::new());
        let wanted = folded(name.as_bytes());
        syscall::read_dir_unchecked(listing.as_fd(), &mut |entry, _| {
            if entry == name.as_bytes() {
                is_exact = true;
            } else if folded(entry) == wanted {
                alike.extend(Name::new(entry));
            } else if !is_ours(entry) {
                others.extend(Name::new(entry));
            }
        })
        .ok()?;
        if is_exact {
            return Some(name.clone());
        }
        alike.into_iter().chain(others).find(|entry| {
            let there = syscall::stat_at_unchecked(dir, entry);
            there.is_ok_and(|there| there.same_file(found))
        })
    }

    /// Where an entry of a directory stands.
    pub(crate) fn step(&self, dir: &Standing, name: &Name) -> Standing {
        self.view.step(dir, name.as_bytes())
    }
}

/// Tells whether an absolute path is a path inside a directory. Case does not count: the kernel tells the first spelling by
/// which a file system that folds case was asked, and the stored one was judged.
fn is_at(actual: &[u8], top: &[u8], inside: &[u8]) -> bool {
    let top = top.strip_suffix(b"/").unwrap_or(top);
    let Some(rest) = actual.strip_prefix(top) else {
        return false;
    };
    let rest = match rest {
        [b'/', rest @ ..] => rest,
        [] => rest,
        _ => return false,
    };
    rest == inside
        || (rest.len() == inside.len() || !rest.is_ascii()) && folded(rest) == folded(inside)
}

fn folded(name: &[u8]) -> Vec<u8> {
    match str::from_utf8(name) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}
