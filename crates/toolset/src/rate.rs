//! How often a client may call. One number for each client, in a table of bounded size.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most clients that are told apart; further ones share one allowance.
const CLIENTS_MAX: usize = 10_000;
/// How often a full table is searched for quiet clients.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// The name for all clients that the table has no room for.
const OTHERS: &str = "";

/// A client's allowance of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// Calls a second in the long run.
    pub per_second: u32,
    /// Calls at once after a pause.
    pub burst: u32,
}

/// Limits every client to its allowance.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// How much of the allowance one call uses.
    each: Duration,
    /// How much may be used ahead of time.
    ahead: Duration,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    /// When each client has its whole allowance again. A client that is not listed has it now.
    whole_at: HashMap<String, Instant>,
    swept: Option<Instant>,
}

impl RateLimit {
    pub(crate) fn new(rate: CallRate) -> RateLimit {
        let each = Duration::from_secs(1) / rate.per_second.max(1);
        RateLimit {
            each,
            ahead: each.saturating_mul(rate.burst.max(1)),
            clients: Mutex::default(),
        }
    }

    /// Takes one call from a client's allowance, or says how long to wait for it.
    pub(crate) fn take(&self, client: &str, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let client = clients.known_as(client, now);
        let whole_at = clients.whole_at.get(client).copied().unwrap_or(now);
        let used = whole_at.saturating_duration_since(now) + self.each;
        if used > self.ahead {
            return Err(used - self.ahead);
        }
        clients.whole_at.insert(client.to_owned(), now + used);
        Ok(())
    }
}

impl Clients {
    /// Returns a client's name in the table; removes quiet clients if a new one needs room.
    fn known_as<'a>(&mut self, client: &'a str, now: Instant) -> &'a str {
        if self.whole_at.len() < CLIENTS_MAX || self.whole_at.contains_key(client) {
            return client;
        }
        let due = |swept: Instant| now.saturating_duration_since(swept) >= SWEEP_EVERY;
        if self.swept.is_none_or(due) {
            self.swept = Some(now);
            self.whole_at.retain(|_, whole_at| *whole_at > now);
        }
        if self.whole_at.len() < CLIENTS_MAX {
            client
        } else {
            OTHERS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(per_second: u32, burst: u32) -> RateLimit {
        RateLimit::new(CallRate { per_second, burst })
    }

    #[test]
    fn a_burst_passes_and_the_next_call_waits_for_its_share() {
        let (limit, now) = (limit(10, 3), Instant::now());
        for _ in 0..3 {
            assert_eq!(limit.take("a", now), Ok(()));
        }
        assert_eq!(limit.take("a", now), Err(Duration::from_millis(100)));
        assert_eq!(limit.take("b", now), Ok(()), "others have their own");
        let later = now + Duration::from_millis(100);
        assert_eq!(limit.take("a", later), Ok(()));
        assert!(limit.take("a", later).is_err());
    }

    #[test]
    fn the_table_is_bounded_and_quiet_clients_leave_it() {
        let (limit, now) = (limit(1, 1), Instant::now());
        for number in 0..CLIENTS_MAX {
            assert_eq!(limit.take(&number.to_string(), now), Ok(()));
        }
        assert_eq!(limit.take("new", now), Ok(()));
        assert!(limit.take("newer", now).is_err(), "new ones share");
        let held = || limit.clients.lock().unwrap().whole_at.len();
        assert!(held() <= CLIENTS_MAX + 1);
        let later = now + Duration::from_secs(2);
        assert_eq!(limit.take("latest", later), Ok(()));
        assert_eq!(held(), 1);
    }

    proptest! {
        #[test]
        fn no_client_gets_more_than_its_allowance(
            per_second in 1u32..50,
            burst in 1u32..20,
            pauses in proptest::collection::vec(0u64..200, 1..200),
        ) {
            let limit = limit(per_second, burst);
            let start = Instant::now();
            let mut now = start;
            let mut taken = 0;
            for pause in pauses {
                now += Duration::from_millis(pause);
                taken += u32::from(limit.take("a", now).is_ok());
            }
            let most = f64::from(burst) + (now - start).as_secs_f64() * f64::from(per_second);
            prop_assert!(f64::from(taken) <= most + 0.001);
        }
    }
}
