//! Counts the calls and violations of each client, so that a warning says whether it is the first, and operators hear of
//! clients that call unusually often. The table is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most clients that are told apart; further ones are counted together.
const CLIENTS_MAX: usize = 10_000;
/// The name for all clients that the table has no room for.
const OTHERS: &str = "others";
/// The time over which calls are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// How long a client is remembered after its last call when there is no room for new ones.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The calls of one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientStats {
    /// Clients are numbered in the order they came.
    pub(crate) number: usize,
    pub(crate) calls: u64,
    pub(crate) violations: u64,
    /// Calls within the last ten to twenty seconds.
    pub(crate) recent: u64,
}

/// The calls of every client.
#[derive(Debug, Default)]
pub(crate) struct StatsTable(Mutex<ClientTable>);

#[derive(Debug, Default)]
struct ClientTable {
    table: HashMap<String, ClientRecord>,
    /// How many there have been.
    came: usize,
}

#[derive(Debug)]
struct ClientRecord {
    number: usize,
    calls: u64,
    violations: u64,
    window_began: Instant,
    in_window: u64,
    in_last_window: u64,
    /// Whether the log already reports that this client calls often in this window.
    is_told: bool,
}

impl StatsTable {
    /// Counts a call; returns the window's total when it first exceeds the usual.
    pub(crate) fn called(&self, client: &str, usual: Option<u64>, now: Instant) -> Option<u64> {
        self.clients().with(client, now, |client| {
            client.roll_window(now);
            client.calls += 1;
            client.in_window += 1;
            let is_unusual = usual.is_some_and(|usual| client.in_window > usual) && !client.is_told;
            client.is_told |= is_unusual;
            is_unusual.then_some(client.in_window)
        })
    }

    /// Counts a violation of a client, and tells what it did so far.
    pub(crate) fn violated(&self, client: &str, now: Instant) -> ClientStats {
        self.clients().with(client, now, |client| {
            client.violations += 1;
            client.stats()
        })
    }

    /// Every client in the order of arrival, each with whether it is the one asking.
    pub(crate) fn all(&self, asking: &str, now: Instant) -> Vec<(ClientStats, bool)> {
        let mut clients = self.clients();
        let each = clients.table.iter_mut().map(|(name, client)| {
            client.roll_window(now);
            (client.stats(), name == asking)
        });
        let mut table: Vec<(ClientStats, bool)> = each.collect();
        table.sort_unstable_by_key(|(stats, _)| stats.number);
        table
    }

    fn clients(&self) -> MutexGuard<'_, ClientTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientTable {
    /// Uses the record of a client; removes quiet clients if a new one needs room.
    fn with<T>(
        &mut self,
        client: &str,
        now: Instant,
        use_it: impl FnOnce(&mut ClientRecord) -> T,
    ) -> T {
        if let Some(known) = self.table.get_mut(client) {
            return use_it(known);
        }
        if self.table.len() >= CLIENTS_MAX {
            self.table.retain(|_, client| client.is_recent(now));
        }
        let has_room = self.table.len() < CLIENTS_MAX;
        let name = if has_room { client } else { OTHERS };
        use_it(self.table.entry(name.to_owned()).or_insert_with(|| {
            self.came += 1;
            ClientRecord::new(self.came, now)
        }))
    }
}

impl ClientRecord {
    fn new(number: usize, now: Instant) -> ClientRecord {
        ClientRecord {
            number,
            calls: 0,
            violations: 0,
            window_began: now,
            in_window: 0,
            in_last_window: 0,
            is_told: false,
        }
    }

    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window_began) < REMEMBERED
    }

    /// Begins a new window once the last one is over.
    fn roll_window(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.window_began);
        if age < WINDOW {
            return;
        }
        self.in_last_window = if age < WINDOW * 2 { self.in_window } else { 0 };
        (self.in_window, self.is_told) = (0, false);
        self.window_began = now;
    }

    fn stats(&self) -> ClientStats {
        ClientStats {
            number: self.number,
            calls: self.calls,
            violations: self.violations,
            recent: self.in_window + self.in_last_window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusual_frequency_is_told_once_a_window() {
        let (table, now) = (StatsTable::default(), Instant::now());
        let told = |at| {
            let calls = (0..200).filter_map(|_| table.called("a", Some(100), at));
            calls.collect::<Vec<u64>>()
        };
        assert_eq!(told(now), [101]);
        assert_eq!(table.called("b", Some(100), now), None);
        assert_eq!(told(now + WINDOW), [101]);
        assert_eq!(table.called("a", None, now + WINDOW), None);
        let all = table.all("a", now + WINDOW);
        let [(first, true), (second, false)] = all[..] else {
            panic!("{all:?}")
        };
        assert_eq!(first.calls, 401);
        assert_eq!(first.recent, 401);
        assert_eq!(second.calls, 1);
        assert_eq!(table.all("a", now + WINDOW * 4)[0].0.recent, 0);
    }

    #[test]
    fn clients_are_counted_apart_in_a_table_that_has_an_end() {
        let (table, now) = (StatsTable::default(), Instant::now());
        for number in 0..CLIENTS_MAX + 5 {
            table.called(&number.to_string(), None, now);
        }
        let first = table.violated("0", now);
        assert_eq!(first.calls, 1);
        assert_eq!(first.violations, 1);
        let others = table.violated("new", now);
        assert_eq!(others.calls, 5);
        assert_eq!(others.violations, 1);
        assert_eq!(table.all("", now).len(), CLIENTS_MAX + 1);
        table.called("later", None, now + REMEMBERED);
        assert_eq!(table.all("", now + REMEMBERED).len(), 1);
    }
}
