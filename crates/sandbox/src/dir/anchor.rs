//! Spares a walk most of its questions where a directory is.
//!
//! A directory that is moved gets a new time of change, on file systems that say so ([`Stamping::shows_moves`]). So if the
//! kernel has told that a directory is at its path, then one that was opened by its name there, and whose times are older than
//! that question, was at its own path at that moment, with the entries that it has. The question is asked again soon, so that
//! what is told of entries later is not told of another place.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::metadata::{Metadata, Time};
use crate::syscall::Stamping;

/// How much older than the question a directory's times have to be, in seconds: clocks of files may be behind, and some file
/// systems count whole seconds.
const SETTLED_SECONDS: i64 = 2;
/// How far the wall clock may be set back unnoticed, in nanoseconds; less than the time above.
const UNNOTICED: i128 = 500_000_000;
/// How long until a directory is asked for again, in nanoseconds.
const FRESH: i128 = 50_000_000;

/// The moment before a directory was found to be at its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// What changed before this changed before that moment.
    settled_before: Time,
    /// How far the wall clock was ahead of the time since the start of the machine, which nobody can set.
    ahead: i128,
    since_start: i128,
}

/// What was known of a directory when one in it was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Above {
    pub(super) device: u64,
    pub(super) stamping: Stamping,
    pub(super) anchor: Option<Anchor>,
}

impl Anchor {
    /// Now; the directory has to be asked for afterwards.
    pub(super) fn now() -> Anchor {
        let wall = clock_gettime(ClockId::Realtime);
        let since_start = nanoseconds(clock_gettime(ClockId::Boottime));
        Anchor {
            settled_before: Time {
                seconds: wall.tv_sec.saturating_sub(SETTLED_SECONDS),
                nanoseconds: u32::try_from(wall.tv_nsec).unwrap_or_default(),
            },
            ahead: nanoseconds(wall) - since_start,
            since_start,
        }
    }

    /// Tells whether it is so short ago that it need not be asked for again.
    pub(super) fn is_fresh(&self) -> bool {
        nanoseconds(clock_gettime(ClockId::Boottime)) - self.since_start < FRESH
    }

    /// Tells whether a directory with these times, read by now, did not change and was not moved since.
    pub(super) fn is_before_no_change(&self, now: &Metadata) -> bool {
        let last = now.changed.max(now.modified);
        last < self.settled_before && Anchor::now().ahead + UNNOTICED >= self.ahead
    }
}

impl Above {
    /// When a directory in this one was at its path for certain; `None` if its present state does not show that.
    pub(super) fn anchor_for(&self, now: &Metadata) -> Option<Anchor> {
        let is_told = now.device == self.device && self.stamping.shows_moves();
        self.anchor
            .filter(|anchor| is_told && anchor.is_before_no_change(now))
    }
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
