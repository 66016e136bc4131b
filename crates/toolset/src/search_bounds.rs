//! What searches of every set have in common: their bounds and defaults.

use std::time::Duration;

/// The most results a call may ask for.
pub(crate) const MAX_RESULTS: usize = 1_000_000;
/// The longest a search may be given, in seconds.
pub(crate) const TIMEOUT_SECONDS: u64 = 3_600;

/// How much longer than its search a call may take, for putting the answer together.
const GRACE: Duration = Duration::from_secs(10);

/// The default directory.
pub(crate) fn here() -> String {
    ".".to_owned()
}

/// The default number of results.
pub(crate) fn max_results() -> usize {
    100
}

/// The default time of a search.
pub(crate) fn timeout_seconds() -> u64 {
    300
}

/// How long the call may take: the search ends itself and still answers, so the call waits longer.
pub(crate) fn call_timeout(seconds: u64) -> Duration {
    Duration::from_secs(seconds).saturating_add(GRACE)
}
