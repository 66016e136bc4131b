//! The entries of one owner.

use std::sync::Arc;

use super::lru_table::LruTable;
use super::{BYTES_PER_ENTRY, CacheCounters, CacheKind, CachedValue, StoreStatus};

/// The entries of one owner, in the order of their last use.
#[derive(Debug)]
pub(super) struct Partition {
    /// The holder whose share of the room it uses.
    pub(super) holder: Arc<str>,
    pub(super) entries: LruTable,
    pub(super) bytes: u64,
    pub(super) counters: CacheCounters,
    /// When it was last used, in milliseconds since the cache was created.
    pub(super) used: u64,
}

impl Partition {
    pub(super) fn new(holder: Arc<str>) -> Partition {
        Partition {
            holder,
            entries: LruTable::new(),
            bytes: 0,
            counters: CacheCounters::default(),
            used: 0,
        }
    }

    /// Returns what it takes of the room: entries without content take some, too.
    pub(super) fn weight(&self) -> u64 {
        let for_entries = self.entries.len().saturating_mul(BYTES_PER_ENTRY);
        self.bytes.saturating_add(for_entries)
    }

    /// Returns an entry that has not expired, with its slot.
    pub(super) fn alive(
        &mut self,
        kind: CacheKind,
        path: &str,
        age: u64,
    ) -> Option<(u32, CachedValue)> {
        let at = self.entries.position(kind, path)?;
        if self.entries.is_expired(at, age) {
            self.expire(at);
            return None;
        }
        Some((at, self.entries.value(at)?))
    }

    pub(super) fn insert(&mut self, path: &str, value: CachedValue, expires: u64) -> StoreStatus {
        self.bytes += value.bytes();
        if let Some(at) = self.entries.position(value.kind(), path) {
            self.counters.updates += 1;
            let earlier = self.entries.replace(at, value, expires);
            self.bytes -= earlier.map_or(0, |earlier| earlier.bytes());
            return StoreStatus::Updated;
        }
        self.counters.insertions += 1;
        self.entries.add(path, value, expires);
        StoreStatus::Cached
    }

    fn remove(&mut self, at: u32) {
        let removed = self.entries.remove(at);
        self.bytes -= removed.map_or(0, |value| value.bytes());
    }

    pub(super) fn invalidate(&mut self, at: u32) {
        self.counters.invalidations += 1;
        self.remove(at);
    }

    fn expire(&mut self, at: u32) {
        self.counters.expirations += 1;
        self.remove(at);
    }

    /// Evicts the least recently used entry and returns its bytes.
    pub(super) fn evict_oldest(&mut self) -> u64 {
        let evicted = self.entries.remove_oldest();
        let bytes = evicted.map_or(0, |value| value.bytes());
        self.bytes -= bytes;
        self.counters.evictions += 1;
        self.counters.evicted_bytes += bytes;
        bytes
    }

    pub(super) fn sweep(&mut self, age: u64) {
        for at in self.entries.positions() {
            if self.entries.is_expired(at, age) {
                self.expire(at);
            }
        }
    }

    /// Removes the entries that are out of date, and returns the paths of the files among them.
    pub(super) fn invalidate_all(
        &mut self,
        mut is_stale: impl FnMut(&str, &CachedValue) -> bool,
    ) -> Vec<String> {
        let mut stale = Vec::new();
        for at in self.entries.positions() {
            let Some((path, value)) = self.entries.entry(at) else {
                continue;
            };
            if is_stale(path, &value) {
                stale.push((at, value.kind(), path.to_owned()));
            }
        }
        stale.iter().for_each(|(at, _, _)| self.invalidate(*at));
        let files = stale
            .into_iter()
            .filter(|(_, kind, _)| *kind == CacheKind::File);
        let mut files: Vec<String> = files.map(|(_, _, path)| path).collect();
        files.sort_unstable();
        files
    }
}
