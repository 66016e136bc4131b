//! Parent directories created for a change; removed on drop unless the change succeeds.
//!
//! A failed call must leave nothing behind. Only directories that this call made are removed, only while they are empty,
//! and never through a link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::change::{Change, Observers, remove_dir_entry};
use crate::error::Result;
use crate::history::{NotedPart, Part, PartKind};
use crate::located::Located;
use crate::name::{Name, shown};
use crate::quota::Amount;
use crate::resolve::{Means, joined, open_dir_below};
use crate::syscall::{self, Errno, SysResult};

/// The mode of new directories before the umask.
const DIRECTORY_MODE: u32 = 0o777;

/// Nested directories, some of them new. The new ones are removed on drop if they are empty, unless they are kept.
#[derive(Debug)]
pub struct NewDirs {
    /// The directory they begin in.
    base: OwnedFd,
    names: Vec<Name>,
    /// How many of the names, from the first, already existed; the others are new.
    old: usize,
    innermost: OwnedFd,
    observers: Observers,
    change: Change,
    /// The record of each directory; none for those that already existed.
    noted: Vec<Option<NotedPart>>,
}

impl NewDirs {
    /// Makes nested directories below the parent of a place.
    pub(crate) fn make(change: &Change, place: &Located<'_>, names: &[Name]) -> Result<NewDirs> {
        let failed = |errno| place.failed("mkdir", errno);
        let copy = || place.parent().try_clone_to_owned();
        let no_descriptor = |_| failed(Errno::MFILE);
        let mut made = NewDirs {
            base: copy().map_err(no_descriptor)?,
            names: Vec::with_capacity(names.len()),
            old: 0,
            innermost: copy().map_err(no_descriptor)?,
            observers: place.root().observers().clone(),
            // The change that they were made for follows.
            change: change.with_more_parts(),
            noted: Vec::with_capacity(names.len()),
        };
        let mut path = place.parent_path().to_vec();
        for name in names {
            path = joined(&path, name);
            if made.add(place.given(), &path, name)?.map_err(failed)? == MadeDir::New {
                change.sync_dir(made.innermost.as_fd()).map_err(failed)?;
            }
            // Security: whatever took the name in between is entered only if it is a real directory.
            made.innermost =
                syscall::look_dir_unchecked(made.innermost.as_fd(), name).map_err(failed)?;
        }
        Ok(made)
    }

    /// Makes one more directory inside the innermost.
    fn add(&mut self, given: &str, path: &[u8], name: &Name) -> Result<SysResult<MadeDir>> {
        let dir = self.innermost.as_fd();
        let part = || Part::new(PartKind::MakeDir, shown(path).into_owned());
        let make = || {
            let noted = self.change.note(&self.observers, part)?;
            syscall::make_dir_unchecked(dir, name, self.observers.audience.mode(DIRECTORY_MODE))
                .inspect_err(|_| self.change.disown(noted.as_ref()))?;
            Ok(noted)
        };
        let given = || given.to_owned();
        let mut noted = None;
        let make = || make().map(|made| noted = made);
        let made = self
            .observers
            .put((dir, name), &given, || Ok(Amount::ENTRY), None, make)?;
        Ok(match made {
            Ok(()) => {
                self.names.push(name.clone());
                self.noted.push(noted);
                Ok(MadeDir::New)
            }
            Err(Errno::EXIST) => {
                self.names.push(name.clone());
                self.noted.push(None);
                self.old = self.names.len();
                Ok(MadeDir::Old)
            }
            Err(errno) => Err(errno),
        })
    }

    /// The innermost of them.
    pub(crate) fn innermost(&self) -> BorrowedFd<'_> {
        self.innermost.as_fd()
    }

    /// How many are new.
    #[must_use]
    pub fn created(&self) -> u64 {
        (self.names.len() - self.old) as u64
    }

    /// Keeps them.
    pub fn keep(mut self) {
        self.old = self.names.len();
    }

    /// Removes the last one; fails if it is not empty or gone.
    fn remove_last(&self, name: &Name) -> SysResult<()> {
        let names: Vec<&[u8]> = self.names.iter().map(Name::as_bytes).collect();
        let above = open_dir_below(self.base.as_fd(), &names.join(&b'/'), Means::OneCall)?;
        let dir = above.as_ref().map_or(self.base.as_fd(), AsFd::as_fd);
        remove_dir_entry(&self.observers, (dir, name))
    }
}

impl Drop for NewDirs {
    fn drop(&mut self) {
        while self.names.len() > self.old {
            let Some(name) = self.names.pop() else { return };
            if self.remove_last(&name).is_err() {
                return;
            }
            self.change.disown(self.noted.pop().flatten().as_ref());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeDir {
    New,
    Old,
}
