//! Serializes the changes of several processes, so that none is lost.
//!
//! A process serializes its own calls itself; this module does so across processes that use the same files: several
//! servers started by editors, or replicas on several machines. A lock is an `flock`, which the kernel frees with its
//! process, so a killed process blocks nobody.
//!
//! On file systems of this machine a call locks the very files and directories ([`descent`]) and creates nothing. On those
//! of a file server, where directories cannot be locked and look-ups may be old, it locks files of a directory that all
//! replicas share ([`slots`]), if the operator gave one.
//!
//! A call tries all its locks at once and keeps none if another process holds one, so no two calls wait for each other.

mod descent;
mod shared_account;
mod slots;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::located::Located;
use crate::metadata::Metadata;
use crate::name::Name;
use crate::root::Root;
use crate::syscall::{self, Errno, FileSystem, HowLocked, SysResult};

pub(crate) use shared_account::{AccountRecord, LockedRecord, SharedAccount, Waits};
pub use slots::{Cluster, DeadReplica};
pub(crate) use slots::{has_name, name_hash};

/// How much a call locks at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One entry.
    Entry,
    /// A directory and all below it.
    Tree,
}

/// Identifies a file among all others.
pub(crate) type FileId = (u64, u64);

pub(crate) fn id_of(metadata: &Metadata) -> FileId {
    (metadata.device, metadata.inode)
}

/// How the changes in a root are ordered with those of other processes.
#[derive(Debug)]
pub(crate) struct RootLocks {
    top: OwnedFd,
    /// Whether content is opened through `/proc`.
    by_proc: bool,
    means: Means,
}

#[derive(Debug)]
enum Means {
    /// The files and directories themselves are locked.
    Descriptors,
    /// Files of a shared directory are locked.
    Slots { cluster: Arc<Cluster>, root: String },
    /// Nothing is: the root is a file server's, and the operator named no shared directory.
    Nothing,
}

impl RootLocks {
    pub(crate) fn new(top: OwnedFd, by_proc: bool) -> RootLocks {
        let means = match syscall::file_system_unchecked(top.as_fd()) {
            FileSystem::Own => Means::Descriptors,
            FileSystem::Remote => Means::Nothing,
        };
        RootLocks {
            top,
            by_proc,
            means,
        }
    }

    /// The locks of a root that replicas share under a name.
    pub(crate) fn shared(
        top: OwnedFd,
        by_proc: bool,
        cluster: Arc<Cluster>,
        root: &str,
    ) -> RootLocks {
        RootLocks {
            top,
            by_proc,
            means: Means::Slots {
                cluster,
                root: root.to_owned(),
            },
        }
    }

    /// The directory and the name under which replicas share the root.
    pub(crate) fn shared_as(&self) -> Option<(&Arc<Cluster>, &str)> {
        match &self.means {
            Means::Slots { cluster, root } => Some((cluster, root)),
            Means::Descriptors | Means::Nothing => None,
        }
    }
}

/// A place that is going to be changed: where it is, to compare and to lock, and what was found there.
#[derive(Debug, Clone)]
pub struct ChangePlace {
    /// The resolved path on the host: never shown and never opened.
    host_path: String,
    /// The resolved path inside the root.
    inside: Vec<u8>,
    /// What a look-up found there; `None` without a look-up.
    there: Option<Option<FileId>>,
    locks: Option<Arc<RootLocks>>,
}

impl PartialEq for ChangePlace {
    fn eq(&self, other: &ChangePlace) -> bool {
        self.host_path == other.host_path
    }
}

impl Eq for ChangePlace {}

impl ChangePlace {
    /// A place that only serializes calls of this process.
    #[must_use]
    pub fn of_this_process(host_path: &str) -> ChangePlace {
        ChangePlace {
            host_path: host_path.to_owned(),
            inside: Vec::new(),
            there: None,
            locks: None,
        }
    }

    /// The resolved path on the host, to compare places only.
    #[must_use]
    pub fn host_path(&self) -> &str {
        &self.host_path
    }

    fn names(&self) -> Vec<Name> {
        let names = self.inside.split(|&byte| byte == b'/');
        names.filter_map(Name::new).collect()
    }
}

impl Located<'_> {
    /// This place, to be locked before it is changed.
    #[must_use]
    pub fn change_place(&self) -> ChangePlace {
        ChangePlace {
            host_path: self.host_path(),
            inside: self.path_bytes(),
            there: Some(self.metadata().map(id_of)),
            locks: Some(Arc::clone(self.root().locks())),
        }
    }
}

impl Root {
    /// What is at a resolved path inside, to be locked before it is changed.
    #[must_use]
    pub fn change_place(&self, inside: &str) -> ChangePlace {
        let plain = match inside {
            "." => "",
            inside => inside,
        };
        ChangePlace {
            host_path: self.host_path(inside),
            inside: crate::name::to_bytes(plain).into_owned(),
            there: None,
            locks: Some(Arc::clone(self.locks())),
        }
    }
}

/// Locks that other processes respect, held until dropped.
#[derive(Debug, Default)]
pub struct HeldPlaces {
    open: Vec<Held>,
    /// What was found at each place once it was locked.
    found: Vec<Option<Option<FileId>>>,
    /// How many of them are slots, which a file server may have taken from us.
    slots: usize,
    /// The directory of the slots.
    cluster: Option<Arc<Cluster>>,
    /// What is looked at again before a change: a directory, a name in it, and what was there.
    watched: Vec<(OwnedFd, Name, Option<FileId>)>,
    /// The first place, for an error.
    path: String,
}

#[derive(Debug)]
struct Held {
    id: FileId,
    file: OwnedFd,
    how: HowLocked,
}

impl HeldPlaces {
    /// Tries to lock all places; `None` if another process holds one of them.
    pub fn try_hold(places: &[(&ChangePlace, Extent)]) -> Result<Option<HeldPlaces>> {
        let path = places.first().map(|(place, _)| &*place.inside);
        let path = crate::name::shown(path.unwrap_or_default()).into_owned();
        let mut held = HeldPlaces {
            path,
            ..HeldPlaces::default()
        };
        let tried = held.try_all(places);
        let is_held = tried.map_err(|errno| match errno {
            // Somebody has just replaced it: file systems in user space may not find what was looked at before.
            Errno::NOENT => Error::from_errno("lock", &held.path, Errno::STALE),
            errno => Error::from_errno("lock", &held.path, errno),
        })?;
        Ok(is_held.then_some(held))
    }

    fn try_all(&mut self, places: &[(&ChangePlace, Extent)]) -> SysResult<bool> {
        if !self.take_slots(places)? {
            return Ok(false);
        }
        for (place, extent) in places {
            let found = match place.locks.as_deref() {
                None => None,
                Some(locks) => match &locks.means {
                    Means::Nothing => None,
                    Means::Descriptors => match self.descend(locks, place, *extent)? {
                        Some(found) => Some(found),
                        None => return Ok(false),
                    },
                    Means::Slots { .. } => match self.look_past_caches(locks, place)? {
                        Some(found) => Some(found),
                        None => return Ok(false),
                    },
                },
            };
            self.found.push(found);
        }
        Ok(true)
    }

    /// Tells whether places are unchanged since they were locked.
    #[must_use]
    pub fn fits<'place>(&self, places: impl IntoIterator<Item = &'place ChangePlace>) -> bool {
        let mut pairs = self.found.iter().zip(places);
        pairs.all(|(found, place)| match (found, &place.there) {
            (Some(found), Some(there)) => found == there,
            _ => true,
        })
    }

    /// Fails if a file server has given a lock to another process meanwhile, as it may after a lost connection.
    pub fn confirm(&self) -> Result<()> {
        let mut slots = self.open.iter().take(self.slots);
        let is_ours = |held: &Held| syscall::hold_surely_unchecked(held.file.as_fd(), held.how);
        if slots.all(|held| is_ours(held) == Ok(true))
            && self.slots_are_named()
            && self.is_as_found()
        {
            return Ok(());
        }
        Err(Error::Stale {
            path: self.path.clone(),
        })
    }

    /// Locks a slot and keeps it; returns whether no other process holds it. A slot that cannot be locked is an error: without it
    /// replicas would not see each other.
    fn keep_slot(&mut self, file: OwnedFd, slot: u64, how: HowLocked) -> SysResult<bool> {
        let is_held = syscall::hold_surely_unchecked(file.as_fd(), how)?;
        // A slot is no file of a root, whatever its number there is.
        let id = (u64::MAX, slot);
        self.open.push(Held { id, file, how });
        Ok(is_held)
    }

    /// Locks an open file or directory once, with the strongest lock needed; `None` if another process holds it.
    fn keep(&mut self, file: OwnedFd, id: FileId, how: HowLocked) -> SysResult<Option<usize>> {
        let known = self.open.iter().position(|held| held.id == id);
        if let Some((index, held)) =
            known.and_then(|index| Some((index, self.open.get_mut(index)?)))
        {
            let is_held = held.how >= how || syscall::hold_unchecked(held.file.as_fd(), how)?;
            held.how = held.how.max(how);
            return Ok(is_held.then_some(index));
        }
        let is_held = syscall::hold_unchecked(file.as_fd(), how)?;
        self.open.push(Held { id, file, how });
        Ok(is_held.then(|| self.open.len() - 1))
    }
}

#[cfg(test)]
mod tests;
