//! Puts the changes of one file in order, so that neither of two edits at once is lost.
//!
//! An edit reads, computes and replaces. The file's number changes with each replacement, so the lock is on the
//! resolved path. It orders the calls of this process only; other processes see each write whole or not at all.

use std::collections::HashSet;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox::{Follow, Located};

use crate::context::Cancel;
use crate::error::Result;
use crate::place::Place;
use crate::pool;

/// How often a waiting call checks whether its caller gave up.
const PATIENCE_CHECK: Duration = Duration::from_millis(50);

static HELD: LazyLock<(Mutex<HashSet<String>>, Condvar)> = LazyLock::new(Default::default);

/// The right to change one file, or the two ends of a move; others wait until it is dropped.
#[derive(Debug)]
pub(crate) struct EditLock {
    keys: Vec<String>,
}

/// What orders the changes of a place: its resolved path on the host, never shown and never opened.
pub(crate) fn key(located: &Located<'_>) -> String {
    located.host_path()
}

impl EditLock {
    /// Looks up the file to write and waits for its turn.
    pub(crate) fn take<'place>(
        place: &'place Place,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        EditLock::take_found(&|| place.file_to_write(), &|found| vec![key(found)], cancel)
    }

    /// Looks up what is named, a link itself and not its target, and waits for its turn: an edit that began earlier must
    /// not bring back what was removed.
    pub(crate) fn take_named<'place>(
        place: &'place Place,
        cancel: &Cancel,
    ) -> Result<(EditLock, Located<'place>)> {
        let look_up = || place.locate(Follow::Never);
        EditLock::take_found(&look_up, &|found| vec![key(found)], cancel)
    }

    /// Looks something up and waits until all its keys are free at once, so that no two calls wait for each other.
    ///
    /// The look-up is repeated after the wait, because the call it waited for may have changed what is there.
    pub(crate) fn take_found<Found>(
        look_up: &dyn Fn() -> Result<Found>,
        keys: &dyn Fn(&Found) -> Vec<String>,
        cancel: &Cancel,
    ) -> Result<(EditLock, Found)> {
        loop {
            let lock = EditLock::wait(keys(&look_up()?), cancel)?;
            let found = look_up()?;
            if keys(&found) == lock.keys {
                return Ok((lock, found));
            }
            cancel.check()?;
        }
    }

    fn wait(keys: Vec<String>, cancel: &Cancel) -> Result<EditLock> {
        // Declared before the table's lock, so that the thread waits for its next seat without it.
        let mut aside = None;
        let mut held = held();
        while keys.iter().any(|key| held.contains(key)) {
            cancel.check()?;
            aside.get_or_insert_with(|| pool::step_aside(cancel));
            let woken = HELD.1.wait_timeout(held, PATIENCE_CHECK);
            held = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        held.extend(keys.iter().cloned());
        Ok(EditLock { keys })
    }
}

impl Drop for EditLock {
    fn drop(&mut self) {
        let mut held = held();
        for key in &self.keys {
            held.remove(key);
        }
        drop(held);
        HELD.1.notify_all();
    }
}

fn held() -> MutexGuard<'static, HashSet<String>> {
    HELD.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::Tree;

    #[test]
    fn what_is_removed_or_moved_waits_for_its_edit() {
        let tree = Tree::new();
        tree.file("file", "");
        let place = tree.place("file");
        let held = EditLock::take(&place, &Cancel::never()).unwrap();
        let hasty = Cancel::after(Duration::from_millis(1));
        let failure = EditLock::take_named(&place, &hasty).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Timeout);
        drop(held);
        EditLock::take_named(&place, &Cancel::never()).unwrap();
    }

    #[test]
    fn two_keys_are_taken_at_once_or_not_at_all() {
        let cancel = Cancel::never();
        let keys = |names: [&str; 2]| names.map(|name| format!("two {name}")).to_vec();
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
        let first = EditLock::wait(vec!["here".to_owned()], &cancel).unwrap();
        EditLock::wait(vec!["there".to_owned()], &cancel).unwrap();
        let hasty = Cancel::after(Duration::from_millis(1));
        let failure = EditLock::wait(vec!["here".to_owned()], &hasty).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Timeout);
        drop(first);
        EditLock::wait(vec!["here".to_owned()], &cancel).unwrap();
    }
}
