//! What a move by copying remembers about each copied entry, to tell later whether the entry is unchanged.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sandbox::{Metadata, Time};

use crate::context::Cancel;
use crate::error::Result;
use crate::pool;

/// Two changes within this time may leave the same timestamps, because the clock of file systems moves in steps.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// The same where the file system is not this machine's own: some have steps of two seconds.
const COARSE_STEP: Duration = Duration::from_secs(2);
/// How often to check whether the caller gave up during a pause.
const LOOK: Duration = Duration::from_millis(50);

/// Which of two things at one path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopiedPart {
    /// The entry itself.
    Entry,
    /// The content that a link leads to, which replaces the link in the copy.
    Content,
}

/// The entries that were copied, by their path below the top of the tree.
///
/// Paths are kept as hashes with random keys, so that a large tree takes little memory and nobody can provoke a
/// collision.
#[derive(Debug, Default)]
pub(crate) struct CopyRecord {
    stamps: Mutex<HashMap<u128, Noted>>,
    hashes: [RandomState; 2],
    pass: AtomicU32,
    /// When the second pass began.
    repeated: OnceLock<Instant>,
}

/// The state of an entry when it was opened to be copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyStamp {
    metadata: Metadata,
    /// A change after this look would be visible to the next one.
    is_certain: bool,
}

impl CopyStamp {
    /// The stamp of a directory, whose times do not matter.
    pub(crate) fn uncertain(metadata: &Metadata) -> CopyStamp {
        CopyStamp {
            metadata: *metadata,
            is_certain: false,
        }
    }

    fn is_of(&self, now: &Metadata) -> bool {
        let was = &self.metadata;
        if !was.same_file(now) || was.kind != now.kind {
            return false;
        }
        // What is in a directory has stamps of its own. Another name of a file that is removed changes `changed`.
        now.is_directory()
            || (was.size == now.size
                && was.modified == now.modified
                && (was.changed == now.changed || was.links > 1))
    }
}

/// Something whose times may not show the next change.
#[derive(Debug, Clone, Copy)]
struct Fresh {
    /// For how long still.
    left: Duration,
    /// Its times are in the future, so that they do not tell when it was changed.
    is_ahead: bool,
}

/// Looks at the time of the last change of something.
fn freshness(seen: &Metadata, is_local: impl FnOnce() -> bool) -> Option<Fresh> {
    let age = now().saturating_sub(nanoseconds(seen.changed));
    let nanoseconds_of = |step: Duration| step.as_nanos() as i128;
    if age > nanoseconds_of(COARSE_STEP) {
        return None;
    }
    let step = if is_local() { CLOCK_STEP } else { COARSE_STEP };
    let left = match u64::try_from(age) {
        Ok(age) => step.checked_sub(Duration::from_nanos(age))?,
        Err(_) => step,
    };
    Some(Fresh {
        left,
        is_ahead: age < 0,
    })
}

/// Waits before something is read until every change after that would show in its times, if it has just been changed.
pub(crate) fn outwait_step(
    seen: &Metadata,
    is_local: impl FnOnce() -> bool,
    cancel: &Cancel,
) -> Result<()> {
    freshness(seen, is_local).map_or(Ok(()), |fresh| pause(fresh.left, cancel))
}

/// Waits a little longer than `left`, unless the caller gives up.
fn pause(left: Duration, cancel: &Cancel) -> Result<()> {
    let until = Instant::now() + left;
    let _aside = pool::step_aside(cancel);
    loop {
        cancel.check()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK));
    }
}

#[derive(Debug)]
struct Noted {
    stamp: CopyStamp,
    pass: u32,
}

impl CopyRecord {
    /// Begins another pass through the source: entries that it does not meet are gone.
    pub(crate) fn begin_pass(&self) {
        self.pass.fetch_add(1, Ordering::Relaxed);
        self.repeated.get_or_init(Instant::now);
    }

    /// Takes the stamp of something that was looked at just now, before it is read.
    ///
    /// From the second pass on only other programs can change it, and what was copied is removed afterwards: a fresh one is
    /// read when every later change would show. Times in the future are outwaited once, from the beginning of the pass.
    pub(crate) fn stamp(
        &self,
        seen: &Metadata,
        is_local: impl FnOnce() -> bool,
        cancel: &Cancel,
    ) -> Result<CopyStamp> {
        let stamp = |is_certain| CopyStamp {
            metadata: *seen,
            is_certain,
        };
        let Some(fresh) = freshness(seen, is_local) else {
            return Ok(stamp(true));
        };
        let Some(begun) = self.repeated.get() else {
            return Ok(stamp(false));
        };
        let left = match fresh.is_ahead {
            true => fresh.left.saturating_sub(begun.elapsed()),
            false => fresh.left,
        };
        pause(left, cancel)?;
        Ok(stamp(true))
    }

    /// Notes what was copied.
    pub(crate) fn note(&self, path: &[u8], part: CopiedPart, stamp: CopyStamp) {
        let pass = self.pass();
        self.lock()
            .insert(self.key(path, part), Noted { stamp, pass });
    }

    /// Tells whether an entry was copied in its present state, and marks it as met in this pass.
    pub(crate) fn has(&self, path: &[u8], part: CopiedPart, now: &Metadata) -> bool {
        let pass = self.pass();
        let mut stamps = self.lock();
        let noted = stamps.get_mut(&self.key(path, part));
        let noted = noted.filter(|noted| noted.stamp.is_certain && noted.stamp.is_of(now));
        noted.map(|noted| noted.pass = pass).is_some()
    }

    /// Tells whether an entry is the one that was copied, so that it may be removed.
    pub(crate) fn verifies(&self, path: &[u8], now: &Metadata) -> bool {
        let stamps = self.lock();
        let noted = stamps.get(&self.key(path, CopiedPart::Entry));
        // What is in a directory has stamps of its own.
        noted.is_some_and(|noted| {
            (noted.stamp.is_certain || now.is_directory()) && noted.stamp.is_of(now)
        })
    }

    /// Tells whether an entry was met in this pass.
    pub(crate) fn is_met(&self, path: &[u8]) -> bool {
        let stamps = self.lock();
        let noted = stamps.get(&self.key(path, CopiedPart::Entry));
        noted.is_some_and(|noted| noted.pass == self.pass())
    }

    /// Tells whether something was copied that this pass has not met.
    pub(crate) fn has_unmet(&self) -> bool {
        let pass = self.pass();
        self.lock().values().any(|noted| noted.pass != pass)
    }

    fn key(&self, path: &[u8], part: CopiedPart) -> u128 {
        let [high, low] = &self.hashes;
        let thing = (path, part == CopiedPart::Content);
        u128::from(high.hash_one(thing)) << 64 | u128::from(low.hash_one(thing))
    }

    fn pass(&self) -> u32 {
        self.pass.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Noted>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path of something below a top directory.
pub(crate) fn below<'path>(path: &'path [u8], top: &[u8]) -> &'path [u8] {
    let rest = path.get(top.len()..).unwrap_or_default();
    rest.strip_prefix(b"/").unwrap_or(rest)
}

fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i128)
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn look(tree: &Tree, path: &str) -> Metadata {
        let place = tree.place(path);
        let located = place.locate(sandbox::Follow::Never).unwrap();
        *located.metadata().unwrap()
    }

    fn certain(metadata: &Metadata) -> CopyStamp {
        CopyStamp {
            metadata: *metadata,
            is_certain: true,
        }
    }

    #[test]
    fn what_changed_is_not_what_was_copied() {
        let tree = Tree::new();
        tree.file("a", "one").file("b", "other").directory("dir");
        let record = CopyRecord::default();
        let (before, dir) = (look(&tree, "a"), look(&tree, "dir"));
        record.note(b"a", CopiedPart::Entry, certain(&before));
        record.note(b"dir", CopiedPart::Entry, certain(&dir));
        assert!(record.verifies(b"a", &before) && record.has(b"a", CopiedPart::Entry, &before));
        assert!(!record.verifies(b"a", &look(&tree, "b")), "another file");
        assert!(!record.verifies(b"b", &before), "another path");
        assert!(
            !record.has(b"a", CopiedPart::Content, &before),
            "another part"
        );
        let longer = Metadata { size: 4, ..before };
        let later = Metadata {
            changed: Time {
                seconds: before.changed.seconds + 1,
                ..before.changed
            },
            ..before
        };
        for changed in [longer, later] {
            assert!(!record.verifies(b"a", &changed));
        }
        tree.file("dir/new", "");
        assert!(
            record.verifies(b"dir", &look(&tree, "dir")),
            "what is in it has its own stamp"
        );
    }

    #[test]
    fn a_fresh_file_is_copied_again_because_its_times_may_hide_a_change() {
        let tree = Tree::new();
        tree.file("a", "one");
        let record = CopyRecord::default();
        let seen = look(&tree, "a");
        let just_now = Metadata {
            changed: Time {
                seconds: seen.changed.seconds + 3600,
                nanoseconds: 0,
            },
            ..seen
        };
        let cancel = Cancel::never();
        let stamp = || record.stamp(&just_now, || true, &cancel).unwrap();
        record.note(b"a", CopiedPart::Entry, stamp());
        assert!(!record.has(b"a", CopiedPart::Entry, &just_now));
        assert!(!record.verifies(b"a", &just_now), "nor is it removed");
        record.begin_pass();
        record.note(b"a", CopiedPart::Entry, stamp());
        assert!(record.verifies(b"a", &just_now), "its step was outwaited");
    }

    #[test]
    fn a_change_after_the_second_look_always_shows() {
        let tree = Tree::new();
        let record = CopyRecord::default();
        record.begin_pass();
        for round in 0..30 {
            let name = format!("{round}");
            tree.file(&name, "one");
            let seen = look(&tree, &name);
            let stamp = record.stamp(&seen, || true, &Cancel::never()).unwrap();
            record.note(name.as_bytes(), CopiedPart::Entry, stamp);
            tree.file(&name, "two");
            assert!(!record.verifies(name.as_bytes(), &look(&tree, &name)));
        }
    }

    #[test]
    fn a_single_file_is_read_when_later_changes_show() {
        let tree = Tree::new();
        for round in 0..30 {
            let name = format!("{round}");
            tree.file(&name, "one");
            let seen = look(&tree, &name);
            outwait_step(&seen, || true, &Cancel::never()).unwrap();
            tree.file(&name, "two");
            assert!(!look(&tree, &name).same_state(&seen));
        }
    }

    #[test]
    fn a_caller_that_gives_up_is_not_kept_waiting() {
        let tree = Tree::new();
        tree.file("a", "one");
        let seen = look(&tree, "a");
        let cancel = Cancel::never();
        cancel.cancel();
        let waited = outwait_step(&seen, || false, &cancel);
        assert!(waited.is_err(), "two seconds are not over");
    }

    #[test]
    fn a_pass_tells_what_it_has_not_met() {
        let tree = Tree::new();
        tree.file("a", "").file("b", "");
        let record = CopyRecord::default();
        for name in ["a", "b"] {
            let stamp = certain(&look(&tree, name));
            record.note(name.as_bytes(), CopiedPart::Entry, stamp);
        }
        record.begin_pass();
        assert!(record.has(b"a", CopiedPart::Entry, &look(&tree, "a")));
        assert!(record.has_unmet() && record.is_met(b"a") && !record.is_met(b"b"));
        assert!(record.has(b"b", CopiedPart::Entry, &look(&tree, "b")));
        assert!(!record.has_unmet());
    }

    #[test]
    fn paths_are_relative_to_the_top() {
        assert_eq!(below(b"top/a/b", b"top"), b"a/b");
        assert_eq!(below(b"a/b", b""), b"a/b");
        assert_eq!(below(b"top", b"top"), b"");
    }
}
