//! What each client did so far: so that a line about a violation says whether it is the first. The table is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most clients that are told apart; further ones are counted together.
const CLIENTS_MAX: usize = 10_000;
/// Whom the clients beyond the table are counted as.
const OTHERS: &str = "";

/// The calls of one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) violations: u64,
}

/// The calls of every client.
#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<HashMap<String, Tally>>);

impl Tallies {
    /// Counts a call of a client, and tells what it did so far.
    pub(crate) fn add(&self, client: &str, is_violation: bool) -> Tally {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = clients.len() < CLIENTS_MAX || clients.contains_key(client);
        let client = if is_known { client } else { OTHERS };
        if !clients.contains_key(client) {
            clients.insert(client.to_owned(), Tally::default());
        }
        let Some(tally) = clients.get_mut(client) else {
            return Tally::default();
        };
        tally.calls += 1;
        tally.violations += u64::from(is_violation);
        *tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_apart_in_a_table_that_has_an_end() {
        let tallies = Tallies::default();
        for number in 0..CLIENTS_MAX + 5 {
            tallies.add(&number.to_string(), false);
        }
        assert_eq!(
            tallies.add("0", true),
            Tally {
                calls: 2,
                violations: 1
            }
        );
        assert_eq!(
            tallies.add("new", true),
            Tally {
                calls: 6,
                violations: 1
            }
        );
        assert_eq!(tallies.0.lock().unwrap().len(), CLIENTS_MAX + 1);
    }
}
