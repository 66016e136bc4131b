//! Counts the outcomes and durations of each tool's calls since the start. Metrics contain no path and no client's name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The upper bounds of the histogram's buckets, in seconds; the last bucket has none.
pub const DURATION_BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 300.0,
];

/// The outcome of a call that went well.
pub(crate) const OK: &str = "ok";

/// Counts the calls of one tool.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    /// Calls that went well; most do, and no lock is taken for them.
    well: AtomicU64,
    failures: Mutex<BTreeMap<&'static str, u64>>,
    classes: [AtomicU64; DURATION_BUCKETS.len()],
    microseconds: AtomicU64,
    bytes: AtomicU64,
}

/// The figures of one tool at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMetrics {
    /// The tool set.
    pub toolset: &'static str,
    /// The tool.
    pub tool: &'static str,
    /// The number of calls that ended with `ok` or with each error code.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// How many calls took at most as long as each of [`DURATION_BUCKETS`].
    pub at_most: [u64; DURATION_BUCKETS.len()],
    /// How long all calls took together.
    pub duration: Duration,
    /// How many bytes all replies had together.
    pub bytes: u64,
}

impl CallCounters {
    pub(crate) fn add(&self, outcome: &'static str, duration: Duration, bytes: usize) {
        if outcome == OK {
            self.well.fetch_add(1, Ordering::Relaxed);
        } else {
            *self.failures().entry(outcome).or_default() += 1;
        }
        let seconds = duration.as_secs_f64();
        let class = DURATION_BUCKETS.iter().position(|most| seconds <= *most);
        if let Some(class) = class.and_then(|class| self.classes.get(class)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self, toolset: &'static str, tool: &'static str) -> ToolMetrics {
        let mut outcomes = self.failures().clone();
        let well = self.well.load(Ordering::Relaxed);
        if well > 0 {
            outcomes.insert(OK, well);
        }
        let mut sum = 0;
        let at_most = self.classes.each_ref().map(|class| {
            sum += class.load(Ordering::Relaxed);
            sum
        });
        ToolMetrics {
            toolset,
            tool,
            outcomes,
            at_most,
            duration: Duration::from_micros(self.microseconds.load(Ordering::Relaxed)),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn failures(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_add_up_and_the_longest_calls_are_in_none() {
        let counters = CallCounters::default();
        for milliseconds in [0, 1, 2, 400_000] {
            counters.add(OK, Duration::from_millis(milliseconds), 10);
        }
        counters.add("not_found", Duration::from_millis(1), 1);
        let metrics = counters.metrics("workspace", "grep");
        assert_eq!(metrics.at_most[..3], [1, 3, 4]);
        assert_eq!(metrics.at_most[11], 4);
        assert_eq!(
            metrics.outcomes,
            BTreeMap::from([("ok", 4), ("not_found", 1)])
        );
        assert_eq!(metrics.bytes, 41);
        assert_eq!(metrics.duration.as_secs(), 400);
    }
}
