//! The time, given to everything that needs it, so that tests can choose it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A moment, by the clock that never jumps and by the one on the wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// For lifetimes.
    pub steady: Instant,
    /// Seconds since the epoch, for people, other processes and modification times.
    pub wall: f64,
}

impl Now {
    /// This moment.
    #[must_use]
    pub fn read() -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Now {
            steady: Instant::now(),
            wall: wall.map_or(0.0, |since| since.as_secs_f64()),
        }
    }

    /// The moment some seconds later.
    #[cfg(test)]
    pub(crate) fn later(self, seconds: u64) -> Now {
        Now {
            steady: self.steady + std::time::Duration::from_secs(seconds),
            wall: self.wall + seconds as f64,
        }
    }
}
