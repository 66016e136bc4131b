//! Who calls how often, and who tries what is forbidden. A table that cannot grow without end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most clients that are told apart; further ones count together.
const CLIENTS_MAX: usize = 10_000;
/// Whom the clients beyond the table are taken for.
const OTHERS: &str = "others";
/// What frequency is measured over.
const WINDOW: Duration = Duration::from_secs(10);
/// More calls than this in one window are unusual.
const USUAL_MAX: u64 = 100;

/// What is known of every client.
#[derive(Debug, Default)]
pub(super) struct Watch {
    clients: Mutex<HashMap<String, Client>>,
}

#[derive(Debug, Clone)]
struct Client {
    /// The order in which clients came.
    number: usize,
    calls: u64,
    violations: u64,
    window_began: Instant,
    in_window: u64,
    in_last_window: u64,
}

/// What a client did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: usize,
    pub(super) calls: u64,
    pub(super) violations: u64,
    /// Calls within the last ten to twenty seconds.
    pub(super) recent: u64,
    pub(super) is_asking: bool,
}

impl Watch {
    /// Counts a call, and says how many there were in this window where it has just become unusual.
    pub(super) fn called(&self, account: &str, now: Instant) -> Option<u64> {
        let mut clients = self.clients();
        let client = entry(&mut clients, account, now);
        client.turn(now);
        client.calls += 1;
        client.in_window += 1;
        (client.in_window == USUAL_MAX + 1).then_some(client.in_window)
    }

    /// Counts a violation, and says how many of this client there were.
    pub(super) fn violated(&self, account: &str, now: Instant) -> u64 {
        let mut clients = self.clients();
        let client = entry(&mut clients, account, now);
        client.violations += 1;
        client.violations
    }

    /// Every client in the order they came; `account` is the one who asks.
    pub(super) fn records(&self, account: &str, now: Instant) -> Vec<Record> {
        let mut clients = self.clients();
        let each = clients.iter_mut().map(|(name, client)| {
            client.turn(now);
            client.record(name == account)
        });
        let mut records: Vec<Record> = each.collect();
        records.sort_unstable_by_key(|record| record.number);
        records
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<'a>(
    clients: &'a mut HashMap<String, Client>,
    account: &str,
    now: Instant,
) -> &'a mut Client {
    let number = clients.len() + 1;
    let is_known = number <= CLIENTS_MAX || clients.contains_key(account);
    let name = if is_known { account } else { OTHERS };
    clients.entry(name.to_owned()).or_insert_with(|| Client {
        number,
        calls: 0,
        violations: 0,
        window_began: now,
        in_window: 0,
        in_last_window: 0,
    })
}

impl Client {
    /// Begins a new window where the last is over.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.window_began);
        if age < WINDOW {
            return;
        }
        self.in_last_window = if age < WINDOW * 2 { self.in_window } else { 0 };
        self.in_window = 0;
        self.window_began = now;
    }

    fn record(&self, is_asking: bool) -> Record {
        Record {
            number: self.number,
            calls: self.calls,
            violations: self.violations,
            recent: self.in_window + self.in_last_window,
            is_asking,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusual_frequency_is_told_once_a_window() {
        let (watch, now) = (Watch::default(), Instant::now());
        let told = |at| {
            let calls = (0..USUAL_MAX * 2).filter_map(|_| watch.called("a", at));
            calls.collect::<Vec<u64>>()
        };
        assert_eq!(told(now), [USUAL_MAX + 1]);
        assert_eq!(watch.called("b", now), None);
        assert_eq!(told(now + WINDOW), [USUAL_MAX + 1]);
        let records = watch.records("a", now + WINDOW);
        let [first, second] = records[..] else {
            panic!("{records:?}")
        };
        assert_eq!((first.calls, first.recent), (400, 400));
        assert!(first.is_asking && !second.is_asking);
        assert_eq!(watch.records("a", now + WINDOW * 4)[0].recent, 0);
    }

    #[test]
    fn violations_count_per_client_and_the_table_is_bounded() {
        let (watch, now) = (Watch::default(), Instant::now());
        assert_eq!(watch.violated("a", now), 1);
        assert_eq!(watch.violated("b", now), 1);
        assert_eq!(watch.violated("a", now), 2);
        for number in 0..CLIENTS_MAX + 50 {
            watch.called(&number.to_string(), now);
        }
        assert_eq!(watch.records("a", now).len(), CLIENTS_MAX + 1);
        assert_eq!(watch.violated("a", now), 3);
    }
}
