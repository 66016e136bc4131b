//! The cache of what agents handed over, bounded in bytes and in time. It evicts the least recently used entry first.
//!
//! Entries of one batch appear together or not at all.

mod lru_table;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::file::AgentFile;
use crate::listing::DirectoryListing;
use crate::project_path::ProjectPath;

use lru_table::{ENTRIES_LIMIT, LruTable};

/// The expiry of an entry that is kept for ever.
const NEVER: u64 = u64::MAX;
/// The number of entries that any cache may hold, however few bytes it may hold.
const ENTRIES_MIN: u64 = 1024;
/// The bytes of the limit for which one more entry is allowed, so that empty files cannot fill the memory.
const BYTES_PER_ENTRY: u64 = 256;
/// How often all expired entries are removed at once.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What an entry holds. A file and a listing of the same path are two entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CachedValue {
    /// A file's content.
    File(Arc<AgentFile>),
    /// A directory's entries.
    Listing(Arc<DirectoryListing>),
}

impl CachedValue {
    /// Returns what counts towards the limit.
    fn bytes(&self) -> u64 {
        match self {
            CachedValue::File(file) => file.size(),
            CachedValue::Listing(listing) => listing.bytes(),
        }
    }

    /// Returns when it was handed over, in seconds since the epoch.
    pub(crate) fn stored_at(&self) -> f64 {
        match self {
            CachedValue::File(file) => file.stored_at,
            CachedValue::Listing(listing) => listing.stored_at,
        }
    }

    fn kind(&self) -> CacheKind {
        match self {
            CachedValue::File(_) => CacheKind::File,
            CachedValue::Listing(_) => CacheKind::Listing,
        }
    }
}

/// Which of the two entries of a path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CacheKind {
    File,
    Listing,
}

/// What to do with an entry that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Use it.
    Fresh,
    /// Remove it, because it is out of date.
    Stale,
    /// Keep it, but do not use it for this request.
    Unfit,
}

/// How an entry was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreStatus {
    /// Its path had no entry.
    Cached,
    /// It replaced an entry.
    Updated,
}

/// What was evicted to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evicted {
    /// The number of entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The result of storing a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PutOutcome {
    /// How each entry was stored, in order.
    pub(crate) statuses: Vec<StoreStatus>,
    /// What was evicted to make room.
    pub(crate) evicted: Evicted,
}

/// What happened since the cache was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounters {
    /// Lookups that found a usable entry.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries that were new.
    pub insertions: u64,
    /// Entries that replaced another.
    pub updates: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
    /// The bytes of the evicted entries.
    pub evicted_bytes: u64,
    /// Entries removed because their time was over.
    pub expirations: u64,
    /// Entries removed because the agent's file had changed.
    pub invalidations: u64,
}

/// How much the cache holds, and what happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUsage {
    /// The number of entries.
    pub entries: u64,
    /// The bytes of their content.
    pub bytes: u64,
    /// The most bytes that it may hold.
    pub max_bytes: u64,
    /// What happened since the cache was created.
    pub counters: CacheCounters,
}

/// The size of a batch that is too large even for an empty cache, and the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoesNotFit {
    pub(crate) size: u64,
    pub(crate) limit: u64,
}

/// A bounded cache. All of its calls take the same short lock.
#[derive(Debug)]
pub struct FileCache {
    contents: Mutex<CacheContents>,
    created: Instant,
    ttl: Option<Duration>,
    max_bytes: u64,
    max_entries: u64,
}

#[derive(Debug)]
struct CacheContents {
    entries: LruTable,
    bytes: u64,
    counters: CacheCounters,
    swept: Instant,
}

impl FileCache {
    /// Creates a cache that holds at most `max_bytes`, each entry for `ttl`; without a `ttl` for ever.
    #[must_use]
    pub fn new(max_bytes: u64, ttl: Option<Duration>) -> FileCache {
        let created = Instant::now();
        FileCache {
            contents: Mutex::new(CacheContents {
                entries: LruTable::new(),
                bytes: 0,
                counters: CacheCounters::default(),
                swept: created,
            }),
            created,
            ttl,
            max_bytes,
            max_entries: ENTRIES_MIN
                .max(max_bytes / BYTES_PER_ENTRY)
                .min(ENTRIES_LIMIT),
        }
    }

    /// Returns how many bytes it may hold.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Stores entries, all or none. Of two entries for the same path the later one stays.
    pub(crate) fn put(
        &self,
        entries: Vec<(ProjectPath, CachedValue)>,
        now: Instant,
    ) -> Result<PutOutcome, DoesNotFit> {
        self.check_fits(&entries)?;
        let mut contents = self.contents(now);
        let before = contents.counters;
        let expires = self.expiry(now);
        let each = entries.into_iter();
        let statuses = each
            .map(|(path, value)| contents.insert(path.as_str(), value, expires))
            .collect();
        // The new entries are the most recently used and fit, so none of them is evicted.
        while contents.bytes > self.max_bytes || contents.entries.len() > self.max_entries {
            contents.evict_oldest();
        }
        let evicted = Evicted {
            entries: contents.counters.evictions - before.evictions,
            bytes: contents.counters.evicted_bytes - before.evicted_bytes,
        };
        Ok(PutOutcome { statuses, evicted })
    }

    fn check_fits(&self, entries: &[(ProjectPath, CachedValue)]) -> Result<(), DoesNotFit> {
        let sizes = entries.iter().map(|(_, value)| value.bytes());
        let size = sizes.fold(0, u64::saturating_add);
        if size > self.max_bytes || entries.len() as u64 > self.max_entries {
            let limit = self.max_bytes;
            return Err(DoesNotFit { size, limit });
        }
        Ok(())
    }

    /// Looks up an entry and lets the caller judge it. A fresh entry counts as a hit; the caller counts misses.
    pub(crate) fn find(
        &self,
        kind: CacheKind,
        path: &str,
        now: Instant,
        judge: impl FnOnce(&CachedValue) -> Verdict,
    ) -> Option<CachedValue> {
        let mut contents = self.contents(now);
        let (at, value) = contents.alive(kind, path, self.age(now))?;
        match judge(&value) {
            Verdict::Fresh => {
                contents.counters.hits += 1;
                contents.entries.touch(at);
                Some(value)
            }
            Verdict::Stale => {
                contents.invalidate(at);
                None
            }
            Verdict::Unfit => None,
        }
    }

    /// Counts a lookup that found nothing.
    pub(crate) fn count_miss(&self, now: Instant) {
        self.contents(now).counters.misses += 1;
    }

    /// Looks up an entry without counting it or marking it as used.
    pub(crate) fn peek(&self, kind: CacheKind, path: &str, now: Instant) -> Option<CachedValue> {
        let found = self.contents(now).alive(kind, path, self.age(now));
        found.map(|(_, value)| value)
    }

    /// Removes a file if it is stale, and tells whether it was.
    pub(crate) fn invalidate(
        &self,
        path: &str,
        now: Instant,
        is_stale: impl FnOnce(&AgentFile) -> bool,
    ) -> bool {
        let mut contents = self.contents(now);
        match contents.alive(CacheKind::File, path, self.age(now)) {
            Some((at, CachedValue::File(file))) if is_stale(&file) => {
                contents.invalidate(at);
                true
            }
            _ => false,
        }
    }

    /// Returns what it holds and what happened since it was created.
    #[must_use]
    pub fn usage(&self, now: Instant) -> CacheUsage {
        let mut contents = self.contents(now);
        contents.sweep(self.age(now));
        CacheUsage {
            entries: contents.entries.len(),
            bytes: contents.bytes,
            max_bytes: self.max_bytes,
            counters: contents.counters,
        }
    }

    fn expiry(&self, now: Instant) -> u64 {
        self.ttl
            .map_or(NEVER, |ttl| self.age(now).saturating_add(millis(ttl)))
    }

    fn age(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.created))
    }

    /// Locks the contents, and now and then removes what has expired.
    fn contents(&self, now: Instant) -> MutexGuard<'_, CacheContents> {
        let contents = self.contents.lock();
        let mut contents = contents.unwrap_or_else(PoisonError::into_inner);
        let is_due = now.saturating_duration_since(contents.swept) >= SWEEP_EVERY;
        if self.ttl.is_some() && is_due {
            contents.swept = now;
            contents.sweep(self.age(now));
        }
        contents
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

impl CacheContents {
    /// Returns an entry that has not expired, with its slot.
    fn alive(&mut self, kind: CacheKind, path: &str, age: u64) -> Option<(u32, CachedValue)> {
        let at = self.entries.position(kind, path)?;
        if self.entries.is_expired(at, age) {
            self.expire(at);
            return None;
        }
        Some((at, self.entries.value(at)?))
    }

    fn insert(&mut self, path: &str, value: CachedValue, expires: u64) -> StoreStatus {
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

    fn invalidate(&mut self, at: u32) {
        self.counters.invalidations += 1;
        self.remove(at);
    }

    fn expire(&mut self, at: u32) {
        self.counters.expirations += 1;
        self.remove(at);
    }

    fn evict_oldest(&mut self) {
        let evicted = self.entries.remove_oldest();
        let bytes = evicted.map_or(0, |value| value.bytes());
        self.bytes -= bytes;
        self.counters.evictions += 1;
        self.counters.evicted_bytes += bytes;
    }

    fn sweep(&mut self, age: u64) {
        for at in self.entries.positions() {
            if self.entries.is_expired(at, age) {
                self.expire(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
