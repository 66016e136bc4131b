//! Notices that the wall clock was set back, so that past times occur again.

use rustix::time::{ClockId, Timespec, clock_gettime};
use sandbox::Time;

/// By how much the clock may go back unnoticed, in nanoseconds: less than the time for which changes have to be over before
/// anything is remembered.
const UNNOTICED: i128 = 500_000_000;

/// The wall clock, and how far it is ahead of the time since the machine started, which nobody can set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) wall: Time,
    ahead: i128,
}

impl Moment {
    /// Reads both clocks; the wall clock is taken as `shift` nanoseconds further.
    pub(super) fn now(shift: i64) -> Moment {
        let wall = nanoseconds(clock_gettime(ClockId::Realtime)) + i128::from(shift);
        let started = nanoseconds(clock_gettime(ClockId::Boottime));
        Moment::at(wall, started)
    }

    fn at(wall: i128, since_start: i128) -> Moment {
        Moment {
            wall: time(wall),
            ahead: wall - since_start,
        }
    }

    /// Tells whether the clock was set back after `other`.
    pub(super) fn is_behind(self, other: Moment) -> bool {
        self.ahead + UNNOTICED < other.ahead
    }
}

/// Remembers how far the wall clock was ahead.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    furthest: Option<Moment>,
}

impl ClockWatch {
    /// Tells whether the clock was set back since this last returned true. Small steps add up.
    pub(super) fn has_stepped_back(&mut self, now: Moment) -> bool {
        let is_behind = self
            .furthest
            .is_some_and(|furthest| now.is_behind(furthest));
        let is_furthest = self
            .furthest
            .is_none_or(|furthest| now.ahead > furthest.ahead);
        if is_behind || is_furthest {
            self.furthest = Some(now);
        }
        is_behind
    }
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

fn time(nanoseconds: i128) -> Time {
    let whole = nanoseconds.div_euclid(1_000_000_000);
    let rest = nanoseconds.rem_euclid(1_000_000_000);
    Time {
        seconds: i64::try_from(whole).unwrap_or_default(),
        nanoseconds: u32::try_from(rest).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_back_are_told_once_and_small_ones_add_up() {
        const SECOND: i128 = 1_000_000_000;
        let mut watch = ClockWatch::default();
        let mut tell = |wall: i128, since_start: i128| {
            watch.has_stepped_back(Moment::at(wall * SECOND / 10, since_start * SECOND / 10))
        };
        assert!(!tell(1000, 0));
        assert!(!tell(1100, 100), "time passes");
        assert!(!tell(9100, 100), "set forward");
        assert!(tell(1200, 200), "set back");
        assert!(!tell(1300, 300), "told once");
        assert!(!tell(1396, 400), "a little");
        assert!(tell(1492, 500), "a little more");
    }

    #[test]
    fn a_moment_is_now() {
        let now = Moment::now(0);
        assert!(now.wall.seconds > 1_600_000_000);
        assert!(Moment::now(-1_000_000_000).is_behind(now));
        assert!(!Moment::now(0).is_behind(now));
    }
}
