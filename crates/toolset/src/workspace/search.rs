//! What `grep` and `glob` have in common: their bounds and defaults.

use std::time::Duration;

/// The most results a call may ask for.
pub(super) const MAX_RESULTS: usize = 1_000_000;
/// The longest a search may take, and its default, in seconds.
pub(super) const TIMEOUT_SECONDS: u64 = 3_600;

/// How much longer than its search a call may take, for putting the answer together.
const GRACE: Duration = Duration::from_secs(10);

/// The default directory.
pub(super) fn here() -> String {
    ".".to_owned()
}

/// The default number of results.
pub(super) fn max_results() -> usize {
    100
}

/// The default time of a search.
pub(super) fn timeout_seconds() -> u64 {
    300
}

/// How long the call may take: the search ends itself and still answers, so the call waits longer.
pub(super) fn call_timeout(seconds: u64) -> Duration {
    Duration::from_secs(seconds).saturating_add(GRACE)
}
