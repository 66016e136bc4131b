//! History: every change can be listed and undone.
//!
//! Writes of this crate never change a file's content in place: they replace the file. So what was there is kept by a
//! rename, which costs less than freeing it. [`store`] says where it lives, [`journal`] what is written down, [`keep`] how
//! something is kept when it is replaced or removed, [`undo`] how it comes back, [`recovery`] what happens after a kill,
//! and [`prune`] what goes when it is old or too much. [`ledger`] reads what is written down, [`chain`] proves it.

mod chain;
mod change_record;
mod crossing;
mod forget;
mod index;
mod journal;
mod keep;
mod kept_copy;
mod ledger;
mod lines;
mod past;
mod prune;
mod record;
mod recorder;
mod recovery;
mod rehearsal;
#[cfg(test)]
mod replica_tests;
mod stamp;
mod store;
mod tail;
#[cfg(test)]
mod tests;
mod undo;
mod undo_ends;
mod undo_fault;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use self::journal::Journal;
use self::store::{Header, Store};
use crate::name::Name;
use crate::syscall::{self, Errno, SysResult};
use crate::together::Cluster;

pub use self::chain::BrokenChain;
pub use self::change_record::ChangeRecord;
pub(crate) use self::crossing::RenameAcross;
pub use self::crossing::{CrossedEnd, CrossingFault};
pub(crate) use self::keep::{NewEntry, NotedPart};
pub use self::ledger::{Ledger, ListedChange, Mention};
pub use self::past::Past;
pub use self::prune::{HistoryFigures, Pruned};
pub(crate) use self::record::Stamp;
pub use self::record::{Author, Part, PartKind, change_id, parse_change_id};
pub(crate) use self::recorder::CallChanges;
pub(crate) use self::tail::tail_of;

pub use self::recovery::Recovered;
pub use self::undo_fault::{InPlace, UndoFault};

/// Where the history of a root is, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistorySettings {
    /// Where it is.
    pub place: HistoryPlace,
    /// How long a change is kept.
    pub keep: Duration,
    /// How many bytes of old content are kept.
    pub max_bytes: u64,
    /// How many changes are kept.
    pub max_changes: u64,
    /// Whether a client may undo other clients' changes.
    pub undo_any: bool,
}

/// Where a history is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryPlace {
    /// Below the first of these directories that is on the file system of the root; else in the root.
    Auto(Vec<PathBuf>),
    /// In the root.
    Root,
    /// Below this directory.
    At(PathBuf),
}

/// The history of one root.
#[derive(Debug)]
pub struct History {
    /// The directory that holds the reserved one: the root, or one on its file system.
    holder: OwnedFd,
    is_in_root: bool,
    /// What says that a directory is the history of this root.
    header: Header,
    /// The directory of the replicas that share it.
    cluster: Option<Arc<Cluster>>,
    settings: HistorySettings,
    /// Opened at the first change, so that nothing is made in a root that is only read.
    store: OnceLock<Store>,
    /// Why it could not be opened when that was tried last. One call tries at a time.
    fault: Mutex<Option<Errno>>,
    journal: Journal,
    /// Two names cannot change places on this file system.
    lacks_exchange: AtomicBool,
    /// Where what is written down is, as far as it was looked at.
    index: Mutex<Arc<index::Index>>,
    /// The bytes of trees that are kept: they do not change, and a walk over each takes long.
    tree_sizes: Mutex<HashMap<Name, u64>>,
    /// The result of the last look at everything that is kept.
    measured: Mutex<Option<prune::Measured>>,
    counts: Counts,
}

/// What this process did with a history, and what it found at its last look.
#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    pruned: AtomicU64,
    undone: AtomicU64,
}

/// The figures of a history that cost little to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// The changes that are kept.
    pub changes: u64,
    /// The bytes of old content, as of the last look of this process.
    pub bytes: u64,
    /// The changes that this process pruned.
    pub pruned: u64,
    /// The changes that this process took back.
    pub undone: u64,
}

impl History {
    /// Finds the place of a root's history.
    ///
    /// Replicas share it under the root's name, and then it is in the root: nothing else is on the same file system for all
    /// of them.
    pub(crate) fn find(
        root: BorrowedFd<'_>,
        settings: HistorySettings,
        shared: Option<(&Arc<Cluster>, &str)>,
    ) -> SysResult<History> {
        let header = match shared {
            Some((cluster, name)) => Header::shared(cluster.id(), name),
            None => Header::of(&syscall::stat_unchecked(root)?),
        };
        let holder = match &settings.place {
            _ if shared.is_some() => None,
            HistoryPlace::Root => None,
            HistoryPlace::At(path) => Some(usable(path, root)?),
            HistoryPlace::Auto(paths) => paths.iter().find_map(|path| usable(path, root).ok()),
        };
        let is_in_root = holder.is_none();
        let holder = match holder {
            Some(holder) => holder,
            None => syscall::reopen_dir_unchecked(root)?,
        };
        Ok(History {
            holder,
            is_in_root,
            header,
            cluster: shared.map(|(cluster, _)| Arc::clone(cluster)),
            settings,
            store: OnceLock::new(),
            fault: Mutex::default(),
            journal: Journal::default(),
            lacks_exchange: AtomicBool::new(false),
            index: Mutex::default(),
            tree_sizes: Mutex::default(),
            measured: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// Tells this history from those of other roots.
    #[must_use]
    pub fn key(&self) -> String {
        self.header.key()
    }

    /// Figures that are cheap enough to be read often.
    #[must_use]
    pub fn counts(&self) -> HistoryCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        HistoryCounts {
            // A move between roots skips numbers, so numbers are not a count.
            changes: self.ledger().kept_count(),
            bytes: of(&counts.bytes),
            pruned: of(&counts.pruned),
            undone: of(&counts.undone),
        }
    }

    fn count_undone(&self, changes: u64) {
        self.counts.undone.fetch_add(changes, Ordering::Relaxed);
    }

    fn exchanges(&self) -> bool {
        !self.lacks_exchange.load(Ordering::Relaxed)
    }

    fn forget_exchange(&self) {
        self.lacks_exchange.store(true, Ordering::Relaxed);
    }

    /// Tells whether a client may undo other clients' changes.
    #[must_use]
    pub fn undo_any(&self) -> bool {
        self.settings.undo_any
    }

    /// Tells whether it is inside the root.
    #[must_use]
    pub fn is_in_root(&self) -> bool {
        self.is_in_root
    }

    /// The directory outside the root that it is in, for a rule of Landlock.
    pub(crate) fn outside(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_in_root).then(|| self.holder.as_fd())
    }

    /// The open directory, made if it is missing; `None` if that cannot be now: the next call tries again.
    pub(crate) fn store(&self) -> Option<&Store> {
        if let Some(store) = self.store.get() {
            return Some(store);
        }
        let mut fault = self.last_fault();
        if self.store.get().is_none() {
            match self.open_store() {
                Ok(store) => drop(self.store.set(store)),
                Err(errno) => *fault = Some(errno),
            }
        }
        self.store.get()
    }

    fn open_store(&self) -> SysResult<Store> {
        // Where a directory cannot take its name in one step, others would see a half of it.
        let lock = self
            .cluster
            .as_ref()
            .map(|cluster| cluster.lock_own("histories"));
        let _alone = lock.transpose()?;
        let store = Store::open(self.holder.as_fd(), &self.header)?;
        store.note_keep(self.settings.keep)?;
        // After a power cut the counter may be behind the records.
        let largest = journal::largest_number(&store);
        if largest > store.last_number() {
            store.next_number(largest)?;
        }
        Ok(store)
    }

    fn last_fault(&self) -> MutexGuard<'_, Option<Errno>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open directory if it was made before.
    pub(crate) fn existing_store(&self) -> Option<&Store> {
        if self.is_made() { self.store() } else { None }
    }

    /// Tells whether there is one already, or something in its place.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.store.get().is_some() || Store::is_made(self.holder.as_fd(), &self.header)
    }

    /// Removes sibling histories that have not changed for longer than their retention and that nobody uses: those of roots
    /// that are gone, and those of this root under a number that it does not have any more.
    pub fn remove_stale(&self) {
        // Others may keep theirs in the same root, so that only what replicas share is left to them.
        if self.cluster.is_none() {
            let _ = store::remove_stale(self.holder.as_fd(), &self.header);
        }
    }

    /// Why there is no history although there should be one.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        if self.store.get().is_some() {
            return None;
        }
        let errno = *self.last_fault();
        Some(std::io::Error::from(errno?).to_string())
    }

    /// How many directories in its place were not trusted, so that another one is used.
    #[must_use]
    pub fn forged(&self) -> usize {
        self.store.get().map_or(0, |store| store.forged)
    }
}

/// Opens a directory for histories, made if it is missing, if what is in the root can get a name there.
fn usable(path: &Path, root: BorrowedFd<'_>) -> SysResult<OwnedFd> {
    std::fs::create_dir_all(path).map_err(|error| store::errno_of(&error))?;
    let holder = syscall::open_root_unchecked(path)?;
    let holder = syscall::reopen_dir_unchecked(holder.as_fd())?;
    let probe = crate::leftovers::temporary_name()?;
    let unnamed = syscall::open_unnamed_unchecked(root, 0o600)?;
    syscall::link_unnamed_unchecked(unnamed.as_fd(), holder.as_fd(), &probe)?;
    syscall::unlink_unchecked(holder.as_fd(), &probe)?;
    Ok(holder)
}

/// Whether an error means that no process can rename files into the history (another file system).
pub(crate) fn is_unmovable(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::XDEV
            | Errno::BUSY
            | Errno::ACCESS
            | Errno::PERM
            | Errno::INVAL
            | Errno::NOSYS
            | Errno::MLINK
            | Errno::OPNOTSUPP
    )
}
