//! What searches of every set have in common: their bounds and defaults.

use std::time::Duration;

use ops::Limits;

/// The most results a call may ask for.
pub(crate) const MAX_RESULTS: usize = 1_000_000;
/// The longest a search may be given, in seconds.
pub(crate) const TIMEOUT_SECONDS: u64 = 3_600;

/// How much longer than its search a call may take: the time to build the reply.
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

/// How long a search may take: as long as it asks for, within the operator's limit. Asking for more is no error: what
/// was found in time is returned, and the reply says that the time was up.
pub(crate) fn search_timeout(seconds: u64, limits: &Limits) -> Duration {
    Duration::from_secs(seconds).min(limits.search_timeout)
}

/// How long the call may take: the search stops by itself and still answers, so the call's own deadline is later.
pub(crate) fn call_timeout(seconds: u64, limits: &Limits) -> Duration {
    with_grace(search_timeout(seconds, limits))
}

/// The time of a search with the time to build the reply.
pub(crate) fn with_grace(search: Duration) -> Duration {
    search.saturating_add(GRACE)
}

/// Tells serde to leave out a count of nothing.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The note for a search that was not finished in time.
pub(crate) fn timed_out(narrow: &str) -> String {
    format!("timed out before everything was searched: {narrow}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_takes_no_longer_than_the_operator_lets_it() {
        let limits = Limits {
            search_timeout: Duration::from_secs(20),
            ..Limits::for_tests()
        };
        for (asked, given) in [(1, 1), (20, 20), (21, 20), (TIMEOUT_SECONDS, 20)] {
            let given = Duration::from_secs(given);
            assert_eq!(search_timeout(asked, &limits), given);
            assert_eq!(call_timeout(asked, &limits), given + GRACE);
        }
    }
}
