//! Serializes the changes of one file and of one tree, so that none is lost.
//!
//! An edit reads, computes and replaces. The file's number changes with each replacement, so the lock is on the
//! resolved path. A call that moves a whole tree locks everything below it. So a change below is either finished before
//! and moves along, or begins afterwards, looks again and finds the file gone. While a call holds a lock on a path, no
//! call of this process gives that path to another directory: a rename of a directory locks the tree too.
//!
//! Then it locks the same places for other processes, which `sandbox::HeldPlaces` does. It waits for those while it
//! holds the lock of this process, which is safe: a call that has both waits for nothing.
//!
//! No deadlock is possible: a call takes all its locks at once and waits with none. One that waits leaves its seat in the
//! pool, because the holder may need it.

use std::collections::HashSet;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sandbox::{ChangePlace, Extent, Follow, HeldPlaces, Located, Metadata, is_within};

use crate::context::Cancel;
use crate::error::{Error, Result, Wanted};
use crate::place::Place;
use crate::pool;

/// How often a waiting call checks whether its caller gave up.
const PATIENCE_CHECK: Duration = Duration::from_millis(50);
/// How long new changes below a tree yield to a call that waits for the tree. If this were longer, one long change
/// below would delay all others.
const PRECEDENCE: Duration = Duration::from_secs(1);

static LOCKS: LazyLock<(Mutex<LockTable>, Condvar)> = LazyLock::new(Default::default);

/// How long a call waits before it tries again to lock what another process has, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How often a place may differ from what was locked before the call gives up: some file systems give a file a new
/// number at each look.
const MISFITS: usize = 8;

/// What a call locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockKey {
    /// One entry.
    Entry(ChangePlace),
    /// A directory and all below it.
    Tree(ChangePlace),
}

impl LockKey {
    /// Orders the changes of a place.
    pub(crate) fn entry(located: &Located<'_>) -> LockKey {
        LockKey::Entry(located.change_place())
    }

    /// Orders the changes of a place and of all below it.
    pub(crate) fn tree(located: &Located<'_>) -> LockKey {
        LockKey::Tree(located.change_place())
    }

    fn place(&self) -> &ChangePlace {
        match self {
            LockKey::Entry(place) | LockKey::Tree(place) => place,
        }
    }

    /// The host path, never shown and never opened.
    pub(crate) fn path(&self) -> &str {
        self.place().host_path()
    }

    fn extent(&self) -> Extent {
        match self {
            LockKey::Entry(_) => Extent::Entry,
            LockKey::Tree(_) => Extent::Tree,
        }
    }

    /// Tells whether it is, or is below, a locked tree, or has one below it that it would lock too.
    fn meets_tree(&self, tree: &str) -> bool {
        let path = self.path();
        match self {
            LockKey::Entry(_) => is_within(path, tree),
            LockKey::Tree(_) => is_within(path, tree) || is_within(tree, path),
        }
    }
}

/// The locks that are held, and the calls that wait for a tree.
#[derive(Debug, Default)]
struct LockTable {
    entries: HashSet<String>,
    trees: Vec<String>,
    waiting: Vec<TreeWaiter>,
    next_ticket: u64,
}

/// A call that waits for a tree. Later calls let it go first, or it might wait for ever.
#[derive(Debug)]
struct TreeWaiter {
    ticket: u64,
    trees: Vec<String>,
    since: Instant,
}

impl LockTable {
    /// Tells whether one with this ticket must wait.
    fn must_wait(&self, keys: &[LockKey], ticket: u64) -> bool {
        keys.iter()
            .any(|key| self.is_held(key) || self.is_promised(key, ticket))
    }

    fn is_held(&self, key: &LockKey) -> bool {
        let below = match key {
            LockKey::Entry(_) => self.entries.contains(key.path()),
            LockKey::Tree(_) => {
                let mut entries = self.entries.iter();
                entries.any(|path| is_within(path, key.path()))
            }
        };
        below || self.trees.iter().any(|tree| key.meets_tree(tree))
    }

    fn is_promised(&self, key: &LockKey, ticket: u64) -> bool {
        self.waiting.iter().any(|waiter| {
            waiter.ticket < ticket
                && waiter.trees.iter().any(|tree| key.meets_tree(tree))
                && waiter.since.elapsed() < PRECEDENCE
        })
    }

    fn enter_waiting(&mut self, keys: &[LockKey], ticket: u64) {
        let trees: Vec<String> = keys.iter().filter_map(tree_of).collect();
        let is_known = self.waiting.iter().any(|waiter| waiter.ticket == ticket);
        if !is_known && !trees.is_empty() {
            self.waiting.push(TreeWaiter {
                ticket,
                trees,
                since: Instant::now(),
            });
        }
    }

    fn take(&mut self, keys: &[LockKey]) {
        for key in keys {
            let path = key.path().to_owned();
            match key {
                LockKey::Entry(_) => drop(self.entries.insert(path)),
                LockKey::Tree(_) => self.trees.push(path),
            }
        }
    }

    fn release(&mut self, keys: &[LockKey]) {
        for key in keys {
            match key {
                LockKey::Entry(_) => drop(self.entries.remove(key.path())),
                LockKey::Tree(_) => {
                    let held = self.trees.iter().position(|held| held == key.path());
                    held.map(|index| self.trees.swap_remove(index));
                }
            }
        }
    }
}

fn tree_of(key: &LockKey) -> Option<String> {
    match key {
        LockKey::Entry(_) => None,
        LockKey::Tree(tree) => Some(tree.host_path().to_owned()),
    }
}

/// The right to change one file, one tree, or the two ends of a move; others wait until it is dropped.
#[derive(Debug)]
pub(crate) struct EditLock {
    keys: Vec<LockKey>,
    /// The locks that other processes see. Released first.
    held: HeldPlaces,
}

impl EditLock {
    /// Looks up the file to write and waits for its turn. Fails if it is not the version that the caller requires.
    pub(crate) fn take<'place>(
        place: &'place Place,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        let (lock, located) = EditLock::take_entry(&|| place.file_to_write(), cancel)?;
        place.check_version(&located, cancel)?;
        Ok((lock, located))
    }

    /// Looks up the file to edit and waits for its turn.
    pub(crate) fn take_to_edit<'place>(
        place: &'place Place,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        EditLock::take_entry(&|| place.file_to_edit(), cancel)
    }

    /// Looks up what is named, a link itself and not its target, and waits for its turn: an edit that began earlier must
    /// not bring back what was removed. A directory is locked with all below it, so that nothing that is removed with it
    /// can be moved out meanwhile.
    pub(crate) fn take_named<'place>(
        place: &'place Place,
        wanted: Wanted,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        let keys = |found: &Located<'_>| {
            let is_directory = found.metadata().is_some_and(Metadata::is_directory);
            let key = if is_directory {
                LockKey::tree(found)
            } else {
                LockKey::entry(found)
            };
            vec![key]
        };
        let look_up = || place.locate_wanted(Follow::Never, wanted);
        let (lock, located) = EditLock::take_found(&look_up, &keys, cancel)?;
        // The caller has a better message for a missing file.
        if located.metadata().is_some() {
            place.check_version(&located, cancel)?;
        }
        Ok((lock, located))
    }

    /// Looks up one entry and waits for its turn.
    pub(crate) fn take_entry<'place>(
        look_up: &dyn Fn() -> Result<Located<'place>>,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        EditLock::take_found(look_up, &|found| vec![LockKey::entry(found)], cancel)
    }

    /// Looks something up and waits until all its keys are free at once, so that no two calls wait for each other.
    ///
    /// The look-up is repeated after the wait, because the call it waited for may have changed what is there.
    pub(crate) fn take_found<Found>(
        look_up: &dyn Fn() -> Result<Found>,
        keys: &dyn Fn(&Found) -> Vec<LockKey>,
        cancel: &Cancel,
    ) -> Result<(EditLock, Found)> {
        let mut misfits = 0;
        loop {
            let mut lock = EditLock::wait(keys(&look_up()?), cancel)?;
            lock.hold(cancel)?;
            let found = look_up()?;
            let now = keys(&found);
            if now == lock.keys {
                if lock.held.fits(now.iter().map(LockKey::place)) || misfits == MISFITS {
                    return Ok((lock, found));
                }
                misfits += 1;
            }
            cancel.check()?;
        }
    }

    /// Waits until no other process holds a conflicting lock. A waiting call keeps none of these locks, and tries
    /// again.
    fn hold(&mut self, cancel: &Cancel) -> Result<()> {
        let places: Vec<_> = self
            .keys
            .iter()
            .map(|key| (key.place(), key.extent()))
            .collect();
        let mut misses = 0;
        let mut try_hold = || match HeldPlaces::try_hold(&places) {
            Err(sandbox::Error::Stale { .. }) if misses < MISFITS => {
                misses += 1;
                Ok(None)
            }
            tried => Ok::<_, Error>(tried?),
        };
        if let Some(held) = try_hold()? {
            self.held = held;
            return Ok(());
        }
        let _aside = pool::step_aside(cancel);
        let mut pause = FIRST_PAUSE;
        loop {
            cancel.check()?;
            std::thread::sleep(pause);
            if let Some(held) = try_hold()? {
                self.held = held;
                return Ok(());
            }
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// Fails if a file server has given the lock to another replica meanwhile. Asked just before a change is made.
    pub(crate) fn confirm(&self) -> Result<()> {
        Ok(self.held.confirm()?)
    }

    fn of(keys: Vec<LockKey>) -> EditLock {
        EditLock {
            keys,
            held: HeldPlaces::default(),
        }
    }

    fn wait(keys: Vec<LockKey>, cancel: &Cancel) -> Result<EditLock> {
        // Declared before the table's lock, so that the thread waits for its next seat without it.
        let _aside;
        let mut table = locks();
        if !table.must_wait(&keys, u64::MAX) {
            table.take(&keys);
            return Ok(EditLock::of(keys));
        }
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        table.enter_waiting(&keys, ticket);
        _aside = pool::step_aside(cancel);
        let waited = loop {
            if let Err(error) = cancel.check() {
                break Err(error);
            }
            let woken = LOCKS.1.wait_timeout(table, PATIENCE_CHECK);
            table = woken.unwrap_or_else(PoisonError::into_inner).0;
            if !table.must_wait(&keys, ticket) {
                table.take(&keys);
                break Ok(EditLock::of(keys));
            }
        };
        table.waiting.retain(|waiter| waiter.ticket != ticket);
        drop(table);
        if waited.is_err() {
            LOCKS.1.notify_all();
        }
        waited
    }
}

impl Drop for EditLock {
    fn drop(&mut self) {
        self.held = HeldPlaces::default();
        locks().release(&self.keys);
        LOCKS.1.notify_all();
    }
}

fn locks() -> MutexGuard<'static, LockTable> {
    LOCKS.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::Tree;

    fn entry(path: &str) -> LockKey {
        LockKey::Entry(ChangePlace::of_this_process(path))
    }

    fn tree(path: &str) -> LockKey {
        LockKey::Tree(ChangePlace::of_this_process(path))
    }

    fn is_free(key: LockKey) -> bool {
        let hasty = Cancel::after(Duration::from_millis(1));
        EditLock::wait(vec![key], &hasty).is_ok()
    }

    #[test]
    fn a_tree_is_locked_with_all_below_it_and_nothing_beside_it() {
        let cancel = Cancel::never();
        let held = EditLock::wait(vec![tree("/t/a")], &cancel).unwrap();
        for key in [entry("/t/a"), entry("/t/a/b/c"), tree("/t/a/b"), tree("/t")] {
            assert!(!is_free(key.clone()), "{key:?}");
        }
        for key in [entry("/t/ab"), entry("/t"), tree("/t/b")] {
            assert!(is_free(key.clone()), "{key:?}");
        }
        drop(held);
        let below = EditLock::wait(vec![entry("/t/a/b/c")], &cancel).unwrap();
        assert!(!is_free(tree("/t/a")) && is_free(tree("/t/ab")));
        drop(below);
        assert!(is_free(tree("/t/a")));
    }

    #[test]
    fn changes_that_begin_later_let_one_who_waits_for_the_tree_go_first() {
        let cancel = Cancel::never();
        let below = EditLock::wait(vec![entry("/u/a/file")], &cancel).unwrap();
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| EditLock::wait(vec![tree("/u/a")], &Cancel::never()));
            // Its precedence must not end while the test looks.
            let long = Duration::from_secs(3600);
            let is_mover = |one: &&mut TreeWaiter| one.trees == ["/u/a"];
            let waits_since_long = || {
                let mut locks = locks();
                let mover = locks.waiting.iter_mut().find(is_mover);
                mover.map(|one| one.since += long).is_some()
            };
            while !waits_since_long() {
                std::thread::yield_now();
            }
            assert!(!is_free(entry("/u/a/other")) && is_free(entry("/u/b")));
            drop(below);
            drop(mover.join().unwrap().unwrap());
        });
        assert!(is_free(entry("/u/a/other")));
    }

    #[test]
    fn one_who_gave_up_waiting_for_a_tree_is_in_nobodys_way() {
        let below = EditLock::wait(vec![entry("/v/a/file")], &Cancel::never()).unwrap();
        assert!(!is_free(tree("/v/a")) && is_free(entry("/v/a/other")));
        drop(below);
    }

    #[test]
    fn what_is_removed_or_moved_waits_for_its_edit() {
        let tree = Tree::new();
        tree.file("file", "");
        let place = tree.place("file");
        let held = EditLock::take(&place, &Cancel::never()).unwrap();
        let hasty = Cancel::after(Duration::from_millis(1));
        let failure = EditLock::take_named(&place, Wanted::File, &hasty).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Timeout);
        drop(held);
        EditLock::take_named(&place, Wanted::File, &Cancel::never()).unwrap();
    }

    #[test]
    fn two_keys_are_taken_at_once_or_not_at_all() {
        let cancel = Cancel::never();
        let keys = |names: [&str; 2]| names.map(|name| entry(&format!("two {name}"))).to_vec();
        let held = EditLock::wait(keys(["b", "c"]), &cancel).unwrap();
        let hasty = Cancel::after(Duration::from_millis(1));
        assert!(EditLock::wait(keys(["a", "b"]), &hasty).is_err());
        // What was free of it still is.
        EditLock::wait(keys(["a", "a"]), &cancel).unwrap();
        drop(held);
        EditLock::wait(keys(["a", "b"]), &cancel).unwrap();
    }

    #[test]
    fn a_second_taker_waits_until_its_caller_gives_up() {
        let cancel = Cancel::never();
        let first = EditLock::wait(vec![entry("here")], &cancel).unwrap();
        EditLock::wait(vec![entry("there")], &cancel).unwrap();
        let hasty = Cancel::after(Duration::from_millis(1));
        let failure = EditLock::wait(vec![entry("here")], &hasty).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Timeout);
        drop(first);
        EditLock::wait(vec![entry("here")], &cancel).unwrap();
    }
}
