//! Locks for replicas on several machines: files in a directory that all of them share, chosen by a hash of the path.
//!
//! An edit locks the slot of its path alone and the slots of all directories above it together with others; whoever changes
//! a whole tree locks the slot of its top alone. Paths and directories have slots of their own, so that two paths with the
//! same slot only wait for each other, and none for the root.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::descent::open_content;
use super::{ChangePlace, Extent, FileId, HeldPlaces, Means, RootLocks, id_of};
use crate::leftovers;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::syscall::{self, Clobber, Errno, HowLocked, Purpose, SysResult};

/// How many lock files there are for entries, and as many for directories.
const SLOTS: u64 = 512;
/// How the names of the replicas' own files begin.
const REPLICA: &str = "replica-";
/// How long the number of the shared directory is.
const ID_LENGTH: usize = 32;

/// The directory that replicas share: their locks, and the accounts of their quotas.
#[derive(Debug)]
pub struct Cluster {
    dir: OwnedFd,
    /// A number that only the replicas know.
    id: String,
    life: Mutex<Life>,
}

/// Shows that a replica is alive.
#[derive(Debug)]
struct Life {
    /// The name of its own file, and that file, locked while the replica lives.
    replica: String,
    alive: OwnedFd,
    has_left: bool,
}

impl Life {
    fn begin(dir: BorrowedFd<'_>) -> SysResult<Life> {
        let replica = own_name();
        let alive = show_life(dir, &replica)?;
        Ok(Life {
            replica,
            alive,
            has_left: false,
        })
    }

    /// Tells whether others still see that it is alive. Others may have cleaned up after a replica that was out of
    /// reach.
    fn is_shown(&self, dir: BorrowedFd<'_>) -> bool {
        let is_held = syscall::hold_surely_unchecked(self.alive.as_fd(), HowLocked::Exclusive);
        is_held == Ok(true) && has_name(dir, self.replica.as_bytes(), self.alive.as_fd())
    }
}

/// Tells whether an open file of a shared directory still has its name there.
pub(crate) fn has_name(dir: BorrowedFd<'_>, name: &[u8], file: BorrowedFd<'_>) -> bool {
    syscall::sync_attributes_unchecked(dir).is_ok() && is_named(dir, name, file)
}

/// The same, as far as this machine knows the directory.
fn is_named(dir: BorrowedFd<'_>, name: &[u8], file: BorrowedFd<'_>) -> bool {
    let Some(name) = Name::new(name) else {
        return false;
    };
    let named = syscall::stat_at_unchecked(dir, &name);
    let file = syscall::stat_unchecked(file);
    named.is_ok_and(|named| file.is_ok_and(|file| file.same_file(&named)))
}

/// A replica that died. No other replica cleans up after it while this value lives.
#[derive(Debug)]
pub struct DeadReplica {
    name: Name,
    run: u64,
    _held: OwnedFd,
}

impl DeadReplica {
    /// The number in the names of what it left.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }
}

impl Cluster {
    /// Opens the shared directory, and makes it if it is missing; every replica has to be given the same one.
    pub fn open(path: &Path) -> io::Result<Arc<Cluster>> {
        let mut maker = std::fs::DirBuilder::new();
        maker.recursive(true).mode(0o700).create(path)?;
        let dir = syscall::open_root_unchecked(&std::fs::canonicalize(path)?)?;
        // A directory that cannot be written, or locked in, is found at the start, not by the first change.
        let life = Life::begin(dir.as_fd())?;
        let id = shared_id(dir.as_fd())?;
        Ok(Arc::new(Cluster {
            dir,
            id,
            life: Mutex::new(life),
        }))
    }

    /// The number that tells this shared directory from all others.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The name of this replica.
    pub(super) fn replica(&self) -> String {
        self.life().replica.clone()
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that this replica lives under another name if others took it for dead, as they may if it was out of reach of
    /// the file server. Tells whether they did.
    pub fn keep_alive(&self) -> bool {
        let mut life = self.life();
        if life.has_left || life.is_shown(self.fd()) {
            return false;
        }
        // What fails now is tried again at the next turn.
        if let Ok(next) = Life::begin(self.fd()) {
            *life = next;
        }
        true
    }

    /// Ends in order: nothing is left that others would have to clear up.
    pub fn leave(&self) {
        let mut life = self.life();
        let name = Name::new(life.replica.as_bytes()).filter(|_| !life.has_left);
        life.has_left = true;
        if let Some(name) = name {
            let _ = syscall::unlink_unchecked(self.fd(), &name);
        }
    }

    /// Tells whether a replica is alive.
    pub(super) fn lives(&self, replica: &str) -> bool {
        let Some(name) = Name::new(replica.as_bytes()).filter(|_| replica.starts_with(REPLICA))
        else {
            return false;
        };
        match syscall::open_content_unchecked(self.fd(), &name, Purpose::Edit) {
            // It ended in order, or another replica has cleaned up after it.
            Err(Errno::NOENT) => false,
            Err(_) => true,
            Ok(file) => syscall::try_lock_unchecked(file.as_fd()) != Ok(true),
        }
    }

    /// The replicas that are gone and have not been cleaned up after. Each is returned to one replica only.
    pub fn dead(&self) -> Vec<DeadReplica> {
        let mut names = Vec::new();
        let listed = syscall::reopen_dir_unchecked(self.fd()).and_then(|dir| {
            syscall::sync_attributes_unchecked(dir.as_fd())?;
            syscall::read_dir_unchecked(dir.as_fd(), &mut |name, _| names.extend(Name::new(name)))
        });
        let names = names.into_iter().filter(|_| listed.is_ok());
        names.filter_map(|name| self.dead_replica(name)).collect()
    }

    fn dead_replica(&self, name: Name) -> Option<DeadReplica> {
        let run = run_of(&name)?;
        let file = syscall::open_content_unchecked(self.fd(), &name, Purpose::Edit).ok()?;
        let is_gone = syscall::try_lock_unchecked(file.as_fd()) == Ok(true);
        is_gone.then_some(DeadReplica {
            name,
            run,
            _held: file,
        })
    }

    /// Forgets a replica that is gone, after its leftovers were removed.
    pub fn forget(&self, dead: DeadReplica) {
        let _ = syscall::unlink_unchecked(self.fd(), &dead.name);
    }

    /// Waits for the lock on a file of the shared directory, and holds it while what is returned lives.
    pub(crate) fn lock_own(&self, name: &str) -> SysResult<OwnedFd> {
        let file = self.open_own(name)?;
        syscall::lock_unchecked(file.as_fd())?;
        Ok(file)
    }

    /// The directory, for Landlock.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Opens a file of the shared directory, and makes it if it is missing.
    pub(super) fn open_own(&self, name: &str) -> SysResult<OwnedFd> {
        open_own(self.fd(), name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The name of this replica's file: others find by it what it leaves behind if it is killed.
fn own_name() -> String {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let run = leftovers::own_run();
    match OPENED.fetch_add(1, Ordering::Relaxed) {
        0 => format!("{REPLICA}{run:016x}"),
        // A process that opened it before, as tests do.
        more => format!("{REPLICA}{run:016x}-{more}"),
    }
}

fn run_of(name: &Name) -> Option<u64> {
    let text = std::str::from_utf8(name.as_bytes()).ok()?;
    let run = text.strip_prefix(REPLICA)?.split('-').next()?;
    u64::from_str_radix(run, 16).ok()
}

/// Makes the file of this replica, which is locked before others can take it for that of one that is gone.
fn show_life(dir: BorrowedFd<'_>, replica: &str) -> SysResult<OwnedFd> {
    let name = Name::new(replica.as_bytes()).ok_or(Errno::INVAL)?;
    let temporary = leftovers::temporary_name()?;
    let alive = syscall::open_own_unchecked(dir, &temporary)?;
    let shown = syscall::lock_unchecked(alive.as_fd())
        .and_then(|()| syscall::rename_unchecked((dir, &temporary), (dir, &name), Clobber::Yes));
    shown.inspect_err(|_| {
        let _ = syscall::unlink_unchecked(dir, &temporary);
    })?;
    Ok(alive)
}

/// Reads the number of the shared directory. The first replica makes it up: whoever packs an archive cannot know it.
fn shared_id(dir: BorrowedFd<'_>) -> SysResult<String> {
    let file = File::from(open_own(dir, "id")?);
    syscall::lock_unchecked(file.as_fd())?;
    syscall::sync_attributes_unchecked(file.as_fd())?;
    let mut id = [0; ID_LENGTH];
    let known = file.read_exact_at(&mut id, 0).ok();
    let known = known.and_then(|()| String::from_utf8(id.to_vec()).ok());
    if let Some(known) = known.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Ok(known);
    }
    let mut number = [0; 16];
    getrandom::fill(&mut number).map_err(|_| Errno::IO)?;
    let id = format!("{:032x}", u128::from_ne_bytes(number));
    let written = file.write_all_at(id.as_bytes(), 0);
    written.map_err(|_| Errno::IO)?;
    syscall::sync_unchecked(file.as_fd())?;
    Ok(id)
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

/// A number for the name of a root, the same in every replica.
pub(crate) fn name_hash(root: &str) -> u64 {
    hash(root, b"")
}

fn slot_name(slot: u64) -> String {
    format!("slot-{slot:03x}")
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
    /// Tells whether the file server has at each place what was there when it was locked: a lock that was lost and is free
    /// again looks like one that was held all the time.
    pub(super) fn is_as_found(&self) -> bool {
        let is_as_found = |(dir, name, found): &(OwnedFd, Name, Option<FileId>)| {
            syscall::sync_attributes_unchecked(dir.as_fd())?;
            let now = match syscall::look_unchecked(dir.as_fd(), name) {
                Err(Errno::NOENT | Errno::NOTDIR) => None,
                entry => Some(id_of(&syscall::stat_content_unchecked(entry?.as_fd())?)),
            };
            Ok::<bool, Errno>(now == *found)
        };
        self.watched.iter().all(|one| is_as_found(one) == Ok(true))
    }

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
        self.cluster = Some(Arc::clone(cluster));
        for (slot, how) in wanted {
            let file = cluster.open_own(&slot_name(slot))?;
            if !self.keep_slot(file, slot, how)? {
                return Ok(false);
            }
        }
        self.slots = self.open.len();
        // Whoever comes after a removed file locks another one.
        Ok(self.slots_are_named())
    }

    /// Tells whether others who look for the slots find the files that are locked here.
    pub(super) fn slots_are_named(&self) -> bool {
        let Some(cluster) = &self.cluster else {
            return true;
        };
        let dir = cluster.fd();
        let mut slots = self.open.iter().take(self.slots);
        syscall::sync_attributes_unchecked(dir).is_ok()
            && slots.all(|held| is_named(dir, slot_name(held.id.1).as_bytes(), held.file.as_fd()))
    }

    /// Asks the file server what is at a place now, and locks the file itself too, for programs that do not use this
    /// directory. `None` if another process holds that lock.
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
            Err(Errno::NOENT | Errno::NOTDIR) => {
                self.watched.push((dir, last.clone(), None));
                return Ok(Some(None));
            }
            found => found?,
        };
        let metadata = syscall::stat_content_unchecked(entry.as_fd())?;
        let id = id_of(&metadata);
        self.watched.push((
            dir.try_clone().map_err(|_| Errno::MFILE)?,
            last.clone(),
            Some(id),
        ));
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

    /// A replica that was out of reach lost its lock, and others cleared up after it.
    #[test]
    fn a_replica_that_was_taken_for_dead_shows_that_it_lives() {
        let temp = tempfile::tempdir().unwrap();
        let open = || Cluster::open(temp.path()).unwrap();
        let (one, other) = (open(), open());
        assert!(!one.keep_alive());
        let before = one.replica();
        syscall::unlock_unchecked(one.life().alive.as_fd()).unwrap();
        let dead = other.dead();
        assert_eq!(dead.len(), 1);
        dead.into_iter().for_each(|dead| other.forget(dead));
        assert!(!other.lives(&before));
        assert!(one.keep_alive());
        assert!(other.lives(&one.replica()) && other.dead().is_empty());
        assert!(!one.keep_alive());
        one.leave();
        assert!(!one.keep_alive() && !other.lives(&one.replica()));
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 2);
    }

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
