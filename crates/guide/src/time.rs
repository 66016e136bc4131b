//! The time, passed to everything that needs it, so that tests can choose it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A moment, by the clock that never jumps and by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The monotonic time, for lifetimes.
    pub steady: Instant,
    /// Seconds since the epoch, for people, other processes and comparisons with modification times.
    pub wall: f64,
}

impl Now {
    /// Reads both clocks.
    #[must_use]
    pub fn read() -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            steady: Instant::now(),
            wall: wall.map_or(0.0, |since| since.as_secs_f64()),
        }
    }

    /// Returns the moment some seconds later.
    #[cfg(test)]
    pub(crate) fn later(self, seconds: u64) -> Now {
        Now {
            steady: self.steady + std::time::Duration::from_secs(seconds),
            wall: self.wall + seconds as f64,
        }
    }
}
