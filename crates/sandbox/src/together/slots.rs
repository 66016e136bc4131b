//! Locks for replicas on several machines: files in a directory that all of them share, chosen by a hash of the path.
//!
//! An edit locks the slot of its path alone and the slots of all directories above it together with others; whoever changes
//! a whole tree locks the slot of its top alone. Paths and directories have slots of their own, so that two paths with the
//! same slot only wait for each other, and none for the root.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use super::descent::open_content;
use super::{ChangePlace, Extent, FileId, HeldPlaces, Means, RootLocks, id_of};
use crate::metadata::FileKind;
use crate::name::Name;
use crate::syscall::{self, Errno, HowLocked, Purpose, SysResult};

/// How many lock files there are for entries, and as many for directories.
const SLOTS: u64 = 512;

/// The directory that replicas share: their locks, and the accounts of their quotas.
#[derive(Debug)]
pub struct Cluster {
    dir: OwnedFd,
    /// The name of this replica's own file, and that file, locked while the replica lives.
    replica: String,
    _alive: OwnedFd,
}

impl Cluster {
    /// Opens the shared directory, and makes it where it is missing; every replica has to be given the same one.
    pub fn open(path: &Path) -> io::Result<Arc<Cluster>> {
        let mut maker = std::fs::DirBuilder::new();
        maker.recursive(true).mode(0o700).create(path)?;
        let dir = syscall::open_root_unchecked(&std::fs::canonicalize(path)?)?;
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let replica = format!("replica-{:016x}", u64::from_ne_bytes(number));
        // A directory that cannot be written is found at the start, not by the first change.
        let alive = open_own(dir.as_fd(), &replica)?;
        syscall::lock_unchecked(alive.as_fd())?;
        Ok(Arc::new(Cluster {
            dir,
            replica,
            _alive: alive,
        }))
    }

    /// The name of this replica.
    pub(super) fn replica(&self) -> &str {
        &self.replica
    }

    /// Tells whether a replica lives. The file of one that is gone is removed.
    pub(super) fn lives(&self, replica: &str) -> bool {
        let Some(name) = Name::new(replica.as_bytes()).filter(|_| replica.starts_with("replica-"))
        else {
            return false;
        };
        let Ok(file) = syscall::open_own_unchecked(self.fd(), &name) else {
            return true;
        };
        let is_gone = syscall::try_lock_unchecked(file.as_fd()) == Ok(true);
        if is_gone {
            let _ = syscall::unlink_unchecked(self.fd(), &name);
        }
        !is_gone
    }

    /// The directory, for Landlock.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Opens a file of the shared directory, and makes it where it is missing.
    pub(super) fn open_own(&self, name: &str) -> SysResult<OwnedFd> {
        open_own(self.fd(), name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(name) = Name::new(self.replica.as_bytes()) {
            let _ = syscall::unlink_unchecked(self.dir.as_fd(), &name);
        }
    }
}

fn open_own(dir: BorrowedFd<'_>, name: &str) -> SysResult<OwnedFd> {
    let name = Name::new(name.as_bytes()).ok_or(Errno::INVAL)?;
    syscall::open_own_unchecked(dir, &name)
}

/// FNV-1a, which gives every replica the same number.
pub(super) fn hash(root: &str, path: &[u8]) -> u64 {
    let bytes = root.bytes().chain([0]).chain(path.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn entry_slot(root: &str, path: &[u8]) -> u64 {
    hash(root, path) % SLOTS
}

fn directory_slot(root: &str, path: &[u8]) -> u64 {
    SLOTS + entry_slot(root, path)
}

/// The slots of one place, with how each is locked.
fn slots_of(root: &str, path: &[u8], extent: Extent) -> Vec<(u64, HowLocked)> {
    let mut slots = vec![(entry_slot(root, path), HowLocked::Exclusive)];
    if extent == Extent::Tree {
        slots.push((directory_slot(root, path), HowLocked::Exclusive));
    }
    if !path.is_empty() {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let above = ends.filter_map(|(end, _)| path.get(..end));
        let above = above.chain([b"".as_slice()]);
        slots.extend(above.map(|dir| (directory_slot(root, dir), HowLocked::Shared)));
    }
    slots
}

impl HeldPlaces {
    /// Locks the slots of all places, each once, in ascending order. Returns whether all locks were free.
    pub(super) fn take_slots(&mut self, places: &[(&ChangePlace, Extent)]) -> SysResult<bool> {
        let mut wanted: BTreeMap<u64, HowLocked> = BTreeMap::new();
        let mut shared = None;
        for (place, extent) in places {
            let Some(Means::Slots { cluster, root }) =
                place.locks.as_deref().map(|locks| &locks.means)
            else {
                continue;
            };
            shared = Some(cluster);
            for (slot, how) in slots_of(root, &place.inside, *extent) {
                let known = wanted.entry(slot).or_insert(how);
                *known = how.max(*known);
            }
        }
        let Some(cluster) = shared else {
            return Ok(true);
        };
        for (slot, how) in wanted {
            let file = cluster.open_own(&format!("slot-{slot:03x}"))?;
            // A slot is no file of a root, whatever its number there is.
            if self.keep(file, (u64::MAX, slot), how)?.is_none() {
                return Ok(false);
            }
        }
        self.slots = self.open.len();
        Ok(true)
    }

    /// Asks the file server what is at a place by now, and locks the file itself too: those who do not use this directory
    /// may heed that. `None` if somebody is in the way.
    pub(super) fn look_past_caches(
        &mut self,
        locks: &RootLocks,
        place: &ChangePlace,
    ) -> SysResult<Option<Option<FileId>>> {
        let names = place.names();
        let Some((last, above)) = names.split_last() else {
            return Ok(Some(None));
        };
        let mut dir = syscall::reopen_dir_unchecked(locks.top.as_fd())?;
        for name in above {
            syscall::sync_attributes_unchecked(dir.as_fd())?;
            dir = match syscall::look_dir_unchecked(dir.as_fd(), name) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Some(None)),
                below => below?,
            };
        }
        syscall::sync_attributes_unchecked(dir.as_fd())?;
        let entry = match syscall::look_unchecked(dir.as_fd(), last) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Some(None)),
            found => found?,
        };
        let metadata = syscall::stat_content_unchecked(entry.as_fd())?;
        let id = id_of(&metadata);
        if metadata.kind != FileKind::File {
            return Ok(Some(Some(id)));
        }
        // NFS locks alone only what is open for writing.
        let purposes = [Purpose::Edit, Purpose::Write, Purpose::Read];
        let Some(open) = open_content(dir.as_fd(), last, &entry, locks.by_proc, &purposes)? else {
            return Ok(Some(Some(id)));
        };
        let is_held = self.keep(open, id, HowLocked::Exclusive)?.is_some();
        let now = syscall::stat_at_unchecked(dir.as_fd(), last);
        let is_same = now.is_ok_and(|now| id_of(&now) == id);
        Ok((is_held && is_same).then_some(Some(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_below_a_tree_meets_the_lock_of_its_top_and_no_other_edit() {
        let below = slots_of("root", b"a/b/file", Extent::Entry);
        let top = slots_of("root", b"a", Extent::Tree);
        let top_slot = directory_slot("root", b"a");
        assert!(below.contains(&(top_slot, HowLocked::Shared)));
        assert!(top.contains(&(top_slot, HowLocked::Exclusive)));
        let alone = |slots: &[(u64, HowLocked)]| -> Vec<u64> {
            let alone = slots.iter().filter(|(_, how)| *how == HowLocked::Exclusive);
            alone.map(|(slot, _)| *slot).collect()
        };
        assert!(alone(&below).iter().all(|slot| *slot < SLOTS));
        assert_eq!(alone(&below).len(), 1);
        assert_eq!(below.len(), 4, "itself, a/b, a and the root");
        assert_eq!(slots_of("root", b"", Extent::Tree).len(), 2);
    }

    #[test]
    fn every_replica_chooses_the_same_slot() {
        assert_eq!(hash("main", b"notes/today.md"), 0x8d8d_db6c_2cd0_eb9a);
        assert_ne!(hash("main", b"a"), hash("maina", b""));
    }
}
