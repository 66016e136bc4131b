//! Prunes what is too old or too much: whole changes, the oldest first.
//!
//! If several clients share a root, the changes of the largest user are pruned first, so that one client cannot
//! prune everyone's undo.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::History;
use super::chain;
use super::journal::now_ms;
use super::ledger::{Ledger, ListedChange};
use super::record::{End, parse_change_id};
use super::store::Store;
use crate::change::{Change, Durability, Observers};
use crate::dir::{Dir, RootShare};
use crate::leftovers::{is_abandoned, is_temporary};
use crate::metadata::FileKind;
use crate::name::Name;
use crate::quota::{Amount, measure};
use crate::replace::UnnamedFiles;
use crate::syscall::{self, Errno, SysResult};
use crate::together::DeadReplica;

/// How long a change without an end may be under way.
const UNSETTLED_MS: u64 = 60 * 60 * 1000;
/// How often everything that is kept is looked at; in between only what came is.
const MEASURED_EVERY: Duration = Duration::from_secs(60 * 60);

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

/// The result of a look at everything that is kept.
#[derive(Debug)]
pub(super) struct Measured {
    bytes: u64,
    /// The last change that was counted.
    last: u64,
    at: Instant,
}

/// How much is to be kept.
#[derive(Debug, Clone, Copy)]
struct KeptBounds {
    keep: Duration,
    max_bytes: u64,
    max_changes: u64,
}

impl History {
    /// Returns how much is kept.
    #[must_use]
    pub fn figures(&self) -> HistoryFigures {
        let Some(store) = self.existing_store() else {
            return HistoryFigures::default();
        };
        let ledger = self.ledger();
        let oldest = ledger.all().find(is_kept);
        HistoryFigures {
            changes: ledger.kept_count(),
            bytes: self.measure_all(store, &ledger).unwrap_or_default(),
            oldest_ms: oldest.and_then(|oldest| oldest.time()),
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

    /// Checks the chain of records; the number of lines, or the place of the break.
    pub fn verify(&self) -> Option<Result<u64, super::BrokenChain>> {
        chain::verify(self.existing_store()?).ok()
    }

    /// Removes what is older, more or larger than the settings want.
    pub fn prune(&self) -> Pruned {
        let settings = &self.settings;
        if self.is_small_enough() {
            return Pruned::default();
        }
        let bounds = KeptBounds {
            keep: settings.keep,
            max_bytes: settings.max_bytes,
            max_changes: settings.max_changes,
        };
        self.prune_those(|all| doomed(&all, bounds))
    }

    /// Tells whether nothing has to go, without reading every record.
    fn is_small_enough(&self) -> bool {
        let Some(store) = self.existing_store() else {
            return true;
        };
        let settings = &self.settings;
        let ledger = self.ledger();
        let keep = settings.keep.as_millis() as u64;
        let mut kept = ledger.all().filter(is_kept);
        let oldest = kept.next();
        let is_old = |time| now_ms().saturating_sub(time) > keep;
        if oldest.and_then(|oldest| oldest.time()).is_some_and(is_old)
            || kept.count() as u64 >= settings.max_changes
        {
            return false;
        }
        let bytes = self.bytes_about(store, &ledger);
        bytes.is_ok_and(|bytes| bytes <= settings.max_bytes)
    }

    /// The bytes that are kept, or more: what went since the last look at everything is not known.
    fn bytes_about(&self, store: &Store, ledger: &Ledger<'_>) -> SysResult<u64> {
        let mut measured = self.measured();
        if let Some(known) = measured
            .as_mut()
            .filter(|known| known.at.elapsed() < MEASURED_EVERY)
        {
            for change in ledger.after(known.last) {
                let record = change.record();
                let parts = record.iter().flat_map(|record| &record.parts);
                let objects = parts.filter_map(|part| Name::new(part.object.as_ref()?.as_bytes()));
                known.bytes += objects.map(|name| self.size_of(store, &name)).sum::<u64>();
                known.last = change.number();
            }
            if known.bytes <= self.settings.max_bytes {
                self.counts.bytes.store(known.bytes, Ordering::Relaxed);
                return Ok(known.bytes);
            }
        }
        drop(measured);
        self.measure_all(store, ledger)
    }

    fn measure_all(&self, store: &Store, ledger: &Ledger<'_>) -> SysResult<u64> {
        let bytes = self.sizes(store)?.iter().map(|(_, bytes)| bytes).sum();
        *self.measured() = Some(Measured {
            bytes,
            last: ledger.all().next_back().map_or(0, |last| last.number()),
            at: Instant::now(),
        });
        self.counts.bytes.store(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn measured(&self) -> MutexGuard<'_, Option<Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes half of what is kept, because the disk is full; tells whether there was anything.
    pub(crate) fn make_room(&self) -> bool {
        self.make_room_beside(&[])
    }

    /// The same without what is kept of these changes.
    pub(crate) fn make_room_beside(&self, needed: &[u64]) -> bool {
        let pruned = self.prune_those(|mut all| {
            all.retain(|change| change.is_settled && !needed.contains(&change.number));
            let bytes: u64 = all.iter().map(|change| change.bytes).sum();
            let half = KeptBounds {
                keep: self.settings.keep,
                max_bytes: bytes / 2,
                max_changes: self.settings.max_changes,
            };
            doomed(&all, half)
        });
        pruned.changes > 0
    }

    /// Removes what `choose` says of all that is kept.
    fn prune_those(&self, choose: impl FnOnce(Vec<Weighed>) -> BTreeSet<u64>) -> Pruned {
        let Some(store) = self.existing_store() else {
            return Pruned::default();
        };
        // Others may prune too, so that what is written down is read once they cannot.
        let _alone = store.alone();
        let (Ok(ledger), Ok(sizes)) = (self.try_ledger(), self.sizes(store)) else {
            return Pruned::default();
        };
        let doomed = choose(weighed(&ledger, &sizes));
        let oldest = oldest_after(&ledger, store.oldest_kept(), &doomed);
        // After a kill, what is gone has to be known to be gone. A full disk has no room for that before something went.
        let noted = self.note_pruned(store, oldest, &doomed);
        let pruned = Pruned {
            changes: doomed.len() as u64,
            stuck: clear_objects(store, &ledger, &doomed),
        };
        if noted.is_err() {
            let _ = self.note_pruned(store, oldest, &doomed);
        }
        self.counts
            .pruned
            .fetch_add(pruned.changes, Ordering::Relaxed);
        if !doomed.is_empty() {
            let _ = chain::remove_old_files(store, oldest);
        }
        *self.measured() = None;
        pruned
    }

    fn note_pruned(&self, store: &Store, oldest: u64, doomed: &BTreeSet<u64>) -> SysResult<()> {
        if !doomed.is_empty() && oldest > store.oldest_kept() {
            store.set_oldest_kept(oldest)?;
        }
        // What goes from among others is not older than all that is kept.
        let among: Vec<u64> = doomed.range(oldest..).copied().collect();
        self.journal.end_pruned(store, &among)
    }
}

/// The oldest number that may still be needed once some changes are gone.
fn oldest_after(ledger: &Ledger<'_>, known: u64, doomed: &BTreeSet<u64>) -> u64 {
    let mut next = known.max(1);
    for change in ledger.written_after(next - 1) {
        // Somebody took the number before, and may be about to write it down.
        let is_late = |time| now_ms().saturating_sub(time) > UNSETTLED_MS;
        if change.number() > next && !change.time().is_some_and(is_late) {
            return next;
        }
        let is_gone = matches!(change.end(), Some(End::Void | End::Pruned));
        if !is_gone && !doomed.contains(&change.number()) {
            return change.number();
        }
        next = change.number() + 1;
    }
    next
}

impl Ledger<'_> {
    /// How many changes there are of which nothing was pruned.
    pub(super) fn kept_count(&self) -> u64 {
        self.all().filter(is_kept).count() as u64
    }
}

/// Tells whether nothing of a change was pruned.
fn is_kept(change: &ListedChange<'_>) -> bool {
    change.end() != Some(End::Pruned)
}

/// A change, and what it takes.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    number: u64,
    time: u64,
    /// Whose it is.
    account: usize,
    /// It ended, or it is too old to be under way in another process.
    is_settled: bool,
    bytes: u64,
}

/// The changes of which nothing was pruned, the oldest first.
fn weighed(ledger: &Ledger<'_>, sizes: &[(u64, u64)]) -> Vec<Weighed> {
    let mut accounts: HashMap<String, usize> = HashMap::new();
    let now = now_ms();
    let weigh = |change: ListedChange<'_>| {
        let author = change.author().unwrap_or_default();
        let next = accounts.len();
        let number = change.number();
        let size = sizes.binary_search_by_key(&number, |(number, _)| *number);
        Weighed {
            number,
            time: author.time,
            account: *accounts
                .entry(share_of(&author.account).to_owned())
                .or_insert(next),
            is_settled: change.end().is_some() || now.saturating_sub(author.time) > UNSETTLED_MS,
            // What is empty takes room too.
            bytes: size.map_or(0, |at| sizes.get(at).map_or(0, |(_, bytes)| 1.max(*bytes))),
        }
    };
    ledger.all().filter(is_kept).map(weigh).collect()
}

/// Whose share a change counts to. The client chooses its name, and anyone may begin many sessions: were each a share of its
/// own, many old ones would leave no room for the newest.
fn share_of(account: &str) -> &str {
    match account.split_once('/') {
        Some((kind @ ("stdio" | "session"), _)) => kind,
        _ => account,
    }
}

/// The changes to prune.
fn doomed(all: &[Weighed], bounds: KeptBounds) -> BTreeSet<u64> {
    let now = now_ms();
    let keep = bounds.keep.as_millis() as u64;
    let is_old = |change: &&Weighed| now.saturating_sub(change.time) > keep;
    let settled = || all.iter().filter(|change| change.is_settled);
    let mut doomed: BTreeSet<u64> = settled()
        .filter(is_old)
        .map(|change| change.number)
        .collect();
    let many = ((all.len() - doomed.len()) as u64).saturating_sub(bounds.max_changes);
    let young = settled().filter(|change| !doomed.contains(&change.number));
    let excess = largest_shares(young.map(|change| (change, 1)), many);
    doomed.extend(excess);
    let heavy = settled().filter(|change| change.bytes > 0 && !doomed.contains(&change.number));
    let heavy: Vec<(&Weighed, u64)> = heavy.map(|change| (change, change.bytes)).collect();
    let total: u64 = heavy.iter().map(|(_, bytes)| bytes).sum();
    let excess = largest_shares(heavy.into_iter(), total.saturating_sub(bounds.max_bytes));
    doomed.extend(excess);
    doomed
}

/// The oldest changes of whoever has the most, until this much went.
fn largest_shares<'a>(
    changes: impl Iterator<Item = (&'a Weighed, u64)>,
    mut excess: u64,
) -> Vec<u64> {
    let mut queues: HashMap<usize, (u64, VecDeque<(u64, u64)>)> = HashMap::new();
    for (change, weight) in changes.filter(|_| excess > 0) {
        let (share, queue) = queues.entry(change.account).or_default();
        *share += weight;
        queue.push_back((change.number, weight));
    }
    let first = |queue: &VecDeque<(u64, u64)>| queue.front().map_or(0, |(number, _)| *number);
    // Of equal shares the one with the oldest change is the larger.
    let shares = queues.iter();
    let mut shares: BinaryHeap<(u64, Reverse<u64>, usize)> = shares
        .map(|(account, (share, queue))| (*share, Reverse(first(queue)), *account))
        .collect();
    let mut doomed = Vec::new();
    while excess > 0 {
        let Some((share, _, account)) = shares.pop() else {
            break;
        };
        let Some((_, queue)) = queues.get_mut(&account) else {
            break;
        };
        let Some((number, weight)) = queue.pop_front() else {
            continue;
        };
        doomed.push(number);
        excess = excess.saturating_sub(weight);
        if !queue.is_empty() {
            shares.push((share - weight, Reverse(first(queue)), account));
        }
    }
    doomed
}

/// Removes what is kept of changes, and what is left of those before them; tells how much of it could not be removed.
fn clear_objects(store: &Store, ledger: &Ledger<'_>, doomed: &BTreeSet<u64>) -> u64 {
    let oldest = store.oldest_kept();
    // A killed pruning leaves changes marked as pruned whose objects it had not removed yet.
    let is_pruned = |number| ledger.end(number) == Some(End::Pruned);
    let mut names = Vec::new();
    let listed = syscall::reopen_dir_unchecked(store.objects()).and_then(|dir| {
        syscall::read_dir_unchecked(dir.as_fd(), &mut |name, _| {
            let name = Name::new(name).filter(|name| {
                if is_temporary(name.as_bytes()) {
                    return is_abandoned(dir.as_fd(), name, &[]);
                }
                let number = number_of(name).unwrap_or(0);
                number < oldest || doomed.contains(&number) || is_pruned(number)
            });
            names.extend(name);
        })
    });
    let stuck = names.iter().filter(|name| clear(store, name).is_err());
    stuck.count() as u64 + u64::from(listed.is_err())
}

impl History {
    /// Removes temporary files beside what is kept whose process is gone; tells how many.
    pub(crate) fn sweep(&self, dead: &[DeadReplica]) -> u64 {
        let Some(store) = self.existing_store() else {
            return 0;
        };
        let mut names = Vec::new();
        let listed = syscall::reopen_dir_unchecked(store.objects()).and_then(|dir| {
            syscall::read_dir_unchecked(dir.as_fd(), &mut |name, _| {
                let name = Name::new(name).filter(|name| is_temporary(name.as_bytes()));
                names.extend(name.filter(|name| is_abandoned(dir.as_fd(), name, dead)));
            })
        });
        let cleared = names.iter().filter(|name| clear(store, name).is_ok());
        listed.map_or(0, |()| cleared.count() as u64)
    }

    /// The bytes that are kept of each change, in the order of their numbers.
    fn sizes(&self, store: &Store) -> SysResult<Vec<(u64, u64)>> {
        let listed = syscall::reopen_dir_unchecked(store.objects())?;
        let mut sizes: Vec<(u64, u64)> = Vec::new();
        let mut trees = BTreeSet::new();
        syscall::read_dir_unchecked(listed.as_fd(), &mut |name, kind| {
            let Some(name) = Name::new(name) else { return };
            // What a recovery put aside belongs to no change.
            let number = number_of(&name).unwrap_or(0);
            sizes.push((number, self.size_of(store, &name)));
            if kind != FileKind::File {
                trees.insert(name);
            }
        })?;
        self.tree_sizes().retain(|name, _| trees.contains(name));
        sizes.sort_unstable();
        sizes.dedup_by(|next, one| {
            let is_one = next.0 == one.0;
            one.1 += if is_one { next.1 } else { 0 };
            is_one
        });
        Ok(sizes)
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
        let bytes = store.amount_of(name).map_or(0, |amount| amount.bytes);
        self.tree_sizes().insert(name.clone(), bytes);
        bytes
    }

    fn tree_sizes(&self) -> MutexGuard<'_, HashMap<Name, u64>> {
        self.tree_sizes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// What an object takes of a quota, with all that is in it.
    pub(super) fn amount_of(&self, object: &Name) -> SysResult<Amount> {
        let metadata = syscall::stat_at_unchecked(self.objects(), object)?;
        let own = Amount::of(&metadata);
        if !metadata.is_directory() {
            return Ok(own);
        }
        let top = plain_dir(self.objects())?.open_dir(object);
        let below = top.and_then(|top| measure(top, true, &|| false));
        below.map(|below| own.plus(below)).map_err(|_| Errno::IO)
    }

    /// Tells whether an object may still be there.
    pub(super) fn keeps(&self, object: &Name) -> bool {
        syscall::stat_at_unchecked(self.objects(), object) != Err(Errno::NOENT)
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

pub(super) fn clear(store: &Store, name: &Name) -> crate::Result<()> {
    let dir = objects_dir(store).ok_or(crate::Error::Stopped)?;
    Change::begin(Durability::Fast).clear_unmounted(&dir, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;
    use crate::history::HistorySettings;
    use crate::history::tests::{call_of, settings, write};
    use std::path::Path;

    fn keeping(top: &Path, max_changes: u64) -> Root {
        let few = HistorySettings {
            max_changes,
            ..settings()
        };
        Root::open(top).unwrap().with_history(few).unwrap()
    }

    fn kept(root: &Root) -> Vec<u64> {
        let ledger = root.history().unwrap().ledger();
        let kept = ledger.all().filter(is_kept);
        kept.map(|change| change.number()).collect()
    }

    /// A process that was killed while it tried something out beside what is kept.
    #[test]
    fn what_a_killed_process_left_beside_objects_is_swept_and_what_is_in_use_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = keeping(temp.path(), 2);
        write(&root, "a", "1");
        let store = root.history().unwrap().store().unwrap();
        let own = crate::leftovers::temporary_name().unwrap();
        // The same process number in another run is another process.
        let shown = own.shown().into_owned();
        let mut pieces: Vec<&str> = shown.split('-').collect();
        pieces[4] = "1";
        let gone = pieces.join("-");
        let gone = Name::new(gone.as_bytes()).unwrap();
        for name in [&own, &gone] {
            syscall::create_unchecked(store.objects(), name, 0o600).unwrap();
        }
        for number in 0..4 {
            write(&root, "a", &number.to_string());
        }
        root.history().unwrap().prune();
        let is_there = |name| syscall::stat_at_unchecked(store.objects(), name).is_ok();
        assert!(is_there(&own), "a pruning leaves it");
        root.sweep_leftovers(&|| false);
        assert!(is_there(&own));
        assert!(!is_there(&gone));
    }

    fn objects(root: &Root) -> usize {
        let store = root.history().unwrap().store().unwrap();
        let dir = syscall::reopen_dir_unchecked(store.objects()).unwrap();
        let mut count = 0;
        syscall::read_dir_unchecked(dir.as_fd(), &mut |_, _| count += 1).unwrap();
        count
    }

    /// Each start of a program, and each session, is an account: those of long ago leave room for the newest.
    #[test]
    fn sessions_of_the_past_do_not_crowd_out_the_newest() {
        for kind in ["stdio/program", "session"] {
            let temp = tempfile::tempdir().unwrap();
            let root = keeping(temp.path(), 6);
            for session in [1, 2, 3, 4, 5, 5, 5, 5, 5] {
                let call = call_of(&format!("{kind}/{session}"));
                call.write(&root, "a", "text").unwrap();
                call.end();
            }
            root.history().unwrap().prune();
            assert_eq!(kept(&root), [4, 5, 6, 7, 8, 9], "{kind}");
        }
    }

    /// A number that was given may be recorded later.
    #[test]
    fn a_change_that_is_about_to_be_written_down_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let root = keeping(temp.path(), 0);
        let history = root.history().unwrap();
        write(&root, "a", "1");
        let taken = history.store().unwrap().next_number(0).unwrap();
        write(&root, "a", "2");
        let last = history.store().unwrap().next_number(0).unwrap();
        history.prune();
        assert_eq!(kept(&root).len(), 0);
        assert_eq!(objects(&root), 0);
        assert_eq!(history.oldest_kept(), taken);
        // One that is still not recorded long after is not needed.
        let ledger = history.ledger();
        let gone = [1, 3].into_iter().collect();
        assert_eq!(oldest_after(&ledger, 3, &gone), last);
    }

    /// What is said to be gone goes, though the process that said so was killed.
    #[test]
    fn a_pruning_that_was_killed_is_finished_by_the_next() {
        let temp = tempfile::tempdir().unwrap();
        let root = keeping(temp.path(), 2);
        let history = root.history().unwrap();
        write(&root, "a", "0");
        for text in ["1", "2", "3"] {
            write(&root, "a", text);
        }
        let store = history.store().unwrap();
        history.journal.end_pruned(store, &[3]).unwrap();
        assert_eq!(objects(&root), 3);
        history.prune();
        assert_eq!(kept(&root), [2, 4]);
        assert_eq!(objects(&root), 2);
    }
}
