//! What goes when it is old, or too much: whole changes, the oldest first.
//!
//! If several clients share a root, the changes of the largest user are pruned first, so that one client cannot
//! prune everyone's undo.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::History;
use super::journal::{self, ChangeRecord, now_ms};
use super::record::{glance, hash, parse_change_id};
use super::store::Store;
use crate::change::{Change, Durability, Observers};
use crate::dir::{Dir, RootShare};
use crate::name::Name;
use crate::quota::{Amount, measure};
use crate::replace::UnnamedFiles;
use crate::resolve::{Means, open_dir_below};
use crate::syscall::{self, SysResult};

/// How many hashes of record files that are gone are kept, for the chain of those that followed them.
const HASHES_KEPT: usize = 1000;

/// How long a change without an end may be under way.
const UNSETTLED_MS: u64 = 60 * 60 * 1000;

/// What a history holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryFigures {
    /// The changes that can be seen.
    pub changes: u64,
    /// The bytes of old content.
    pub bytes: u64,
    /// When the oldest of them was made, in milliseconds since the epoch.
    pub oldest_ms: Option<u64>,
}

/// What a pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Changes.
    pub changes: u64,
    /// Objects that could not be removed, such as directories of others.
    pub stuck: u64,
}

/// How much is wanted to be kept.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    keep: Duration,
    max_bytes: u64,
    max_changes: u64,
}

impl History {
    /// Tells how much is kept.
    #[must_use]
    pub fn figures(&self) -> HistoryFigures {
        let Some(store) = self.existing_store() else {
            return HistoryFigures::default();
        };
        let changes = journal::read_all(store).unwrap_or_default();
        let objects = self.objects(store).unwrap_or_default();
        let made = changes.values().filter(|change| change.is_made());
        HistoryFigures {
            changes: made.clone().count() as u64,
            bytes: self.note_bytes(&objects),
            oldest_ms: made.map(|change| change.author.time).min(),
        }
    }

    /// The oldest change that may still be there.
    #[must_use]
    pub fn oldest_kept(&self) -> u64 {
        self.existing_store().map_or(0, Store::oldest_kept)
    }

    /// The last number that was given to a change.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.existing_store().map_or(0, Store::last_number)
    }

    /// Checks the chain of records; the number of lines, or where it breaks.
    pub fn verify(&self) -> Option<Result<u64, super::BrokenChain>> {
        journal::verify(self.existing_store()?).ok()
    }

    /// Removes what is older, more or larger than the settings want.
    pub fn prune(&self) -> Pruned {
        let settings = &self.settings;
        if self.is_small_enough() {
            return Pruned::default();
        }
        self.prune_to(Bounds {
            keep: settings.keep,
            max_bytes: settings.max_bytes,
            max_changes: settings.max_changes,
        })
    }

    /// Tells whether nothing has to go, without reading every record.
    fn is_small_enough(&self) -> bool {
        let Some(store) = self.existing_store() else {
            return true;
        };
        let settings = &self.settings;
        let kept = (store.last_number() + 1).saturating_sub(store.oldest_kept());
        let keep = settings.keep.as_millis() as u64;
        let is_young =
            journal::first_time(store).is_some_and(|time| now_ms().saturating_sub(time) <= keep);
        let Ok(objects) = self.objects(store) else {
            return false;
        };
        let bytes = self.note_bytes(&objects);
        is_young && kept <= settings.max_changes && bytes <= settings.max_bytes
    }

    fn note_bytes(&self, objects: &BTreeMap<u64, KeptObjects>) -> u64 {
        let bytes = objects.values().map(|kept| kept.bytes).sum();
        self.counts.bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Removes half of what is kept, because the disk is full; tells whether there was anything.
    pub(crate) fn make_room(&self) -> bool {
        let figures = self.figures();
        let pruned = self.prune_to(Bounds {
            keep: self.settings.keep,
            max_bytes: figures.bytes / 2,
            max_changes: self.settings.max_changes,
        });
        pruned.changes > 0
    }

    /// Removes what is kept of one path, or of all below it; tells how many objects went.
    pub fn forget(&self, path: &str) -> u64 {
        let Some(store) = self.existing_store() else {
            return 0;
        };
        let changes = journal::read_all(store).unwrap_or_default();
        let parts = changes.values().flat_map(|change| &change.parts);
        let touched = parts.filter(|part| {
            let to = part.to.as_deref().unwrap_or(&part.path);
            crate::is_within(&part.path, path) || crate::is_within(to, path)
        });
        let objects: BTreeSet<&String> = touched.filter_map(|part| part.object.as_ref()).collect();
        let names = objects
            .iter()
            .filter_map(|object| Name::new(object.as_bytes()));
        let whole = names.filter(|name| clear(store, name).is_ok()).count() as u64;
        // What was removed with a directory around it is inside of what is kept of that.
        let parts = changes.values().flat_map(|change| &change.parts);
        let inside = parts.filter_map(|part| {
            let tops = [part.to.as_deref(), Some(part.path.as_str())];
            let top = tops
                .into_iter()
                .flatten()
                .find(|top| *top != path && crate::is_within(path, top))?;
            Some((part.object.as_deref()?, path.get(top.len()..)?))
        });
        let cleared = inside.filter(|(object, rest)| clear_inside(store, object, rest).is_ok());
        whole + cleared.count() as u64
    }

    fn prune_to(&self, bounds: Bounds) -> Pruned {
        let Some(store) = self.existing_store() else {
            return Pruned::default();
        };
        let _alone = store.is_shared().then(|| store.alone());
        let (Ok(changes), Ok(objects)) = (journal::read_all(store), self.objects(store)) else {
            return Pruned::default();
        };
        let doomed = self.doomed(&changes, &objects, bounds);
        let oldest_kept = store.oldest_kept();
        let goes = |number: &u64| {
            let is_orphan = *number < oldest_kept && !changes.contains_key(number);
            is_orphan || doomed.contains(number)
        };
        let gone = objects.iter().filter(|(number, _)| goes(number));
        let names = gone.flat_map(|(_, kept)| &kept.names);
        let pruned = Pruned {
            changes: doomed.len() as u64,
            stuck: names.filter(|name| clear(store, name).is_err()).count() as u64,
        };
        self.counts
            .pruned
            .fetch_add(pruned.changes, Ordering::Relaxed);
        let kept = changes.keys().find(|number| !doomed.contains(number));
        let oldest = kept.copied().unwrap_or_else(|| store.last_number() + 1);
        if !doomed.is_empty() && oldest > store.oldest_kept() {
            let _ = store.set_oldest_kept(oldest);
            let _ = remove_old_files(store, oldest);
        }
        pruned
    }

    /// The changes that have to go.
    fn doomed(
        &self,
        changes: &BTreeMap<u64, ChangeRecord>,
        objects: &BTreeMap<u64, KeptObjects>,
        bounds: Bounds,
    ) -> BTreeSet<u64> {
        let now = now_ms();
        let keep = bounds.keep.as_millis() as u64;
        let many = (changes.len() as u64).saturating_sub(bounds.max_changes) as usize;
        let is_settled = |change: &ChangeRecord| {
            // Another process may be at it.
            change.end.is_some() || now.saturating_sub(change.author.time) > UNSETTLED_MS
        };
        let old = changes.values().enumerate().filter(|(index, change)| {
            *index < many || now.saturating_sub(change.author.time) > keep
        });
        let mut doomed: BTreeSet<u64> = old
            .filter(|(_, change)| is_settled(change))
            .map(|(_, change)| change.number)
            .collect();
        let kept = |change: &ChangeRecord| objects.get(&change.number).map_or(0, |kept| kept.bytes);
        let others = changes.values().filter(|change| {
            kept(change) > 0 && !doomed.contains(&change.number) && is_settled(change)
        });
        let heavy = others.map(|change| (change, kept(change))).collect();
        doomed.extend(largest_shares(heavy, bounds.max_bytes));
        doomed
    }
}

/// Removes the oldest changes of the largest user until the history fits its limit.
fn largest_shares(mut kept: VecDeque<(&ChangeRecord, u64)>, max_bytes: u64) -> Vec<u64> {
    let mut total: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
    let mut shares: HashMap<String, u64> = HashMap::new();
    for (change, bytes) in &kept {
        *shares.entry(change.author.client.clone()).or_default() += bytes;
    }
    let mut doomed = Vec::new();
    while total > max_bytes {
        let Some((client, share)) = shares.iter_mut().max_by_key(|(_, bytes)| **bytes) else {
            break;
        };
        let oldest = kept
            .iter()
            .position(|(change, _)| change.author.client == *client);
        let Some((change, bytes)) = oldest.and_then(|index| kept.remove(index)) else {
            break;
        };
        *share -= bytes;
        total -= bytes;
        doomed.push(change.number);
    }
    doomed
}

/// What is kept of one change.
#[derive(Debug, Default)]
struct KeptObjects {
    names: Vec<Name>,
    bytes: u64,
}

impl History {
    /// The objects of each change.
    fn objects(&self, store: &Store) -> SysResult<BTreeMap<u64, KeptObjects>> {
        let listed = syscall::reopen_dir_unchecked(store.objects())?;
        let mut objects: BTreeMap<u64, KeptObjects> = BTreeMap::new();
        syscall::read_dir_unchecked(listed.as_fd(), &mut |name, _| {
            let Some(name) = Name::new(name) else { return };
            // What a recovery put aside belongs to no change.
            let number = number_of(&name).unwrap_or(0);
            objects.entry(number).or_default().names.push(name);
        })?;
        for kept in objects.values_mut() {
            kept.bytes = kept
                .names
                .iter()
                .map(|name| self.size_of(store, name))
                .sum();
        }
        let all: BTreeSet<&Name> = objects.values().flat_map(|kept| &kept.names).collect();
        self.tree_sizes().retain(|name, _| all.contains(name));
        Ok(objects)
    }

    fn size_of(&self, store: &Store, name: &Name) -> u64 {
        let Ok(metadata) = syscall::stat_at_unchecked(store.objects(), name) else {
            return 0;
        };
        if !metadata.is_directory() {
            return Amount::of(&metadata).bytes;
        }
        if let Some(known) = self.tree_sizes().get(name) {
            return *known;
        }
        let top = objects_dir(store).and_then(|dir| dir.open_dir(name).ok());
        let measured = top.and_then(|top| measure(top, true, &|| false).ok());
        let bytes = measured.map_or(0, |amount| amount.bytes);
        self.tree_sizes().insert(name.clone(), bytes);
        bytes
    }

    fn tree_sizes(&self) -> MutexGuard<'_, HashMap<Name, u64>> {
        self.tree_sizes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of the change that an object belongs to.
fn number_of(object: &Name) -> Option<u64> {
    let text = std::str::from_utf8(object.as_bytes()).ok()?;
    parse_change_id(text.split_once('.')?.0)
}

fn objects_dir(store: &Store) -> Option<Dir> {
    plain_dir(store.objects()).ok()
}

/// A directory of our own, without observers.
pub(super) fn plain_dir(dir: BorrowedFd<'_>) -> SysResult<Dir> {
    let fd = syscall::reopen_dir_unchecked(dir)?;
    let share = RootShare {
        unnamed: UnnamedFiles::Avoided,
        observers: Observers::default(),
        view: None,
    };
    Ok(Dir::new(fd, Vec::new(), share))
}

fn clear(store: &Store, name: &Name) -> crate::Result<()> {
    let dir = objects_dir(store).ok_or(crate::Error::Stopped)?;
    Change::begin(Durability::Fast).clear_unmounted(&dir, name)
}

/// Removes an entry inside of a tree that is kept. Security: no link on the way is followed.
fn clear_inside(store: &Store, object: &str, rest: &str) -> crate::Result<()> {
    let failed = |errno| crate::Error::from_errno("unlink", rest, errno);
    let whole = [object.as_bytes(), &crate::name::to_bytes(rest)].concat();
    let slash = whole.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let (parent, last) = whole.split_at(slash);
    let name = last.get(1..).and_then(Name::new);
    let name = name.ok_or_else(|| failed(syscall::Errno::INVAL))?;
    let parent = open_dir_below(store.objects(), parent, Means::OneCall).map_err(failed)?;
    let parent = parent.ok_or_else(|| failed(syscall::Errno::INVAL))?;
    let dir = plain_dir(parent.as_fd()).map_err(failed)?;
    Change::begin(Durability::Fast).clear_unmounted(&dir, &name)
}

/// Removes record files in which every change is gone, and remembers how they ended.
fn remove_old_files(store: &Store, oldest: u64) -> SysResult<()> {
    let mut hashes = store.pruned_hashes();
    for file in journal::files(store)? {
        if file.is_open() {
            continue;
        }
        let text = file.read()?;
        let lines = || {
            text.split(|&byte| byte == b'\n')
                .filter(|line| !line.is_empty())
        };
        let numbers = lines().filter_map(glance).map(|(number, _)| number);
        if numbers.max().is_some_and(|largest| largest >= oldest) {
            continue;
        }
        hashes.extend(lines().next_back().map(hash));
        let excess = hashes.len().saturating_sub(HASHES_KEPT);
        hashes.drain(..excess);
        store.set_pruned_hashes(&hashes)?;
        syscall::unlink_unchecked(store.records(), &file.name)?;
    }
    Ok(())
}
