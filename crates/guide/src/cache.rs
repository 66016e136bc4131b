//! The cache of what agents handed over, bounded in bytes and in time. Each owner has entries of its own; the least recently
//! used of the holder with the most are evicted first.
//!
//! Entries of one batch appear together or not at all.

mod lru_table;
mod partition;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::file::{AgentFile, ToldBy};
use crate::listing::DirectoryListing;
use crate::owner::CacheOwner;
use crate::project_path::ProjectPath;

use lru_table::ENTRIES_LIMIT;
use partition::Partition;

/// The expiry of an entry that is kept for ever.
const NEVER: u64 = u64::MAX;
/// The number of entries that any cache may hold, however few bytes it may hold.
const ENTRIES_MIN: u64 = 1024;
/// The bytes of the limit for which one more entry is allowed, so that empty files cannot fill the memory.
const BYTES_PER_ENTRY: u64 = 256;
/// The number of owners whose figures are kept although they hold nothing.
const OWNERS_KEPT: usize = 1024;
/// How long the figures of such an owner are kept if there are more.
const REMEMBERED: Duration = Duration::from_secs(60);
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
            CachedValue::File(file) => file.held_bytes(),
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

    /// Returns how it was handed over.
    pub(crate) fn told_by(&self) -> ToldBy {
        match self {
            CachedValue::File(file) => file.told_by,
            CachedValue::Listing(listing) => listing.told_by,
        }
    }

    fn kind(&self) -> CacheKind {
        match self {
            CachedValue::File(_) => CacheKind::File,
            CachedValue::Listing(_) => CacheKind::Listing,
        }
    }
}

/// Identifies one of the two entries of a path.
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

/// Counters since the cache was created.
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
    /// Counters since the cache was created.
    pub counters: CacheCounters,
}

/// The size of a batch that is too large even for an empty cache, and the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoesNotFit {
    pub(crate) size: u64,
    pub(crate) limit: u64,
}

/// A bounded cache of many owners' entries. All of its calls take the same short lock.
///
/// The bounds hold for all owners together. If they are exceeded, the holder with the most loses its least recently
/// used entries, so that nobody can push out the entries of holders with less.
#[derive(Debug)]
pub struct FileCache {
    contents: Mutex<CacheContents>,
    created: Instant,
    ttl: Option<Duration>,
    room: CacheRoom,
}

/// How much all owners together may hold.
#[derive(Debug, Clone, Copy)]
struct CacheRoom {
    max_bytes: u64,
    max_entries: u64,
}

#[derive(Debug)]
struct CacheContents {
    partitions: HashMap<Arc<str>, Partition>,
    /// What happened to entries of owners that were forgotten.
    past: CacheCounters,
    swept: Instant,
}

impl FileCache {
    /// Creates a cache that holds at most `max_bytes`, each entry for `ttl`; without a `ttl` for ever.
    #[must_use]
    pub fn new(max_bytes: u64, ttl: Option<Duration>) -> FileCache {
        let created = Instant::now();
        FileCache {
            contents: Mutex::new(CacheContents {
                partitions: HashMap::new(),
                past: CacheCounters::default(),
                swept: created,
            }),
            created,
            ttl,
            room: CacheRoom {
                max_bytes,
                max_entries: ENTRIES_MIN
                    .max(max_bytes / BYTES_PER_ENTRY)
                    .min(ENTRIES_LIMIT),
            },
        }
    }

    /// Stores entries, all or none. Of two entries for the same path the later one stays.
    pub(crate) fn put(
        &self,
        owner: &CacheOwner,
        entries: Vec<(ProjectPath, CachedValue)>,
        now: Instant,
    ) -> Result<PutOutcome, DoesNotFit> {
        self.room.check(&entries)?;
        let paths: HashSet<ProjectPath> = entries.iter().map(|(path, _)| path.clone()).collect();
        let mut contents = self.contents(now);
        let (age, expires) = (self.age(now), self.expiry(now));
        let own = contents.partition(owner, age);
        let before = own.counters;
        let each = entries.into_iter();
        let statuses = each
            .map(|(path, value)| own.insert(path.as_str(), value, expires))
            .collect();
        contents.make_room(self.room, &owner.name, paths.len() as u64);
        let after = contents.partition(owner, age).counters;
        let evicted = Evicted {
            entries: after.evictions - before.evictions,
            bytes: after.evicted_bytes - before.evicted_bytes,
        };
        Ok(PutOutcome { statuses, evicted })
    }

    /// Looks up an entry and lets the caller decide about it. A fresh entry counts as a hit; the caller counts misses.
    pub(crate) fn find(
        &self,
        owner: &CacheOwner,
        kind: CacheKind,
        path: &str,
        now: Instant,
        judge: impl FnOnce(&CachedValue) -> Verdict,
    ) -> Option<CachedValue> {
        let (mut contents, age) = (self.contents(now), self.age(now));
        let own = contents.partitions.get_mut(&owner.name)?;
        let (at, value) = own.alive(kind, path, age)?;
        match judge(&value) {
            Verdict::Fresh => {
                own.counters.hits += 1;
                own.used = age;
                own.entries.touch(at);
                Some(value)
            }
            Verdict::Stale => {
                own.invalidate(at);
                None
            }
            Verdict::Unfit => None,
        }
    }

    /// Counts a lookup that found nothing.
    pub(crate) fn count_miss(&self, owner: &CacheOwner, now: Instant) {
        let mut contents = self.contents(now);
        contents.partition(owner, self.age(now)).counters.misses += 1;
    }

    /// Looks up an entry without counting it or marking it as used.
    pub(crate) fn peek(
        &self,
        owner: &CacheOwner,
        kind: CacheKind,
        path: &str,
        now: Instant,
    ) -> Option<CachedValue> {
        let mut contents = self.contents(now);
        let own = contents.partitions.get_mut(&owner.name)?;
        let found = own.alive(kind, path, self.age(now));
        found.map(|(_, value)| value)
    }

    /// Removes a file, if it is there.
    pub(crate) fn forget_file(&self, owner: &CacheOwner, path: &str, now: Instant) {
        self.find(owner, CacheKind::File, path, now, |_| Verdict::Stale);
    }

    /// Removes every entry of an owner that is out of date, and returns the paths of the files among them.
    pub(crate) fn invalidate_all(
        &self,
        owner: &CacheOwner,
        now: Instant,
        is_stale: impl FnMut(&str, &CachedValue) -> bool,
    ) -> Vec<String> {
        let mut contents = self.contents(now);
        match contents.partitions.get_mut(&owner.name) {
            Some(own) => {
                own.sweep(self.age(now));
                own.invalidate_all(is_stale)
            }
            None => Vec::new(),
        }
    }

    /// Returns what an owner holds and what happened to its entries.
    #[must_use]
    pub fn usage_of(&self, owner: &CacheOwner, now: Instant) -> CacheUsage {
        let (mut contents, age) = (self.contents(now), self.age(now));
        let mut usage = self.nothing();
        if let Some(own) = contents.partitions.get_mut(&owner.name) {
            own.sweep(age);
            usage.add(own);
        }
        usage
    }

    /// Returns what all owners hold and what happened since the cache was created.
    #[must_use]
    pub fn usage(&self, now: Instant) -> CacheUsage {
        let (mut contents, age) = (self.contents(now), self.age(now));
        let mut usage = self.nothing();
        usage.counters = contents.past;
        for partition in contents.partitions.values_mut() {
            partition.sweep(age);
            usage.add(partition);
        }
        usage
    }

    fn nothing(&self) -> CacheUsage {
        CacheUsage {
            entries: 0,
            bytes: 0,
            max_bytes: self.room.max_bytes,
            counters: CacheCounters::default(),
        }
    }

    fn expiry(&self, now: Instant) -> u64 {
        self.ttl
            .map_or(NEVER, |ttl| self.age(now).saturating_add(millis(ttl)))
    }

    fn age(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.created))
    }

    /// Locks the contents, and from time to time removes expired entries.
    fn contents(&self, now: Instant) -> MutexGuard<'_, CacheContents> {
        let contents = self.contents.lock();
        let mut contents = contents.unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(contents.swept) >= SWEEP_EVERY {
            contents.swept = now;
            contents.sweep(self.age(now), self.ttl.is_some());
        }
        contents
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

impl CacheRoom {
    fn has(&self, bytes: u64, entries: u64) -> bool {
        bytes <= self.max_bytes && entries <= self.max_entries
    }

    /// Refuses entries that are too large even for an empty cache.
    fn check(&self, entries: &[(ProjectPath, CachedValue)]) -> Result<(), DoesNotFit> {
        let sizes = entries.iter().map(|(_, value)| value.bytes());
        let size = sizes.fold(0, u64::saturating_add);
        if size > self.max_bytes || entries.len() as u64 > self.max_entries {
            let limit = self.max_bytes;
            return Err(DoesNotFit { size, limit });
        }
        Ok(())
    }
}

impl CacheUsage {
    fn add(&mut self, partition: &Partition) {
        self.entries += partition.entries.len();
        self.bytes += partition.bytes;
        self.counters.add(&partition.counters);
    }
}

impl CacheCounters {
    fn add(&mut self, other: &CacheCounters) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.insertions += other.insertions;
        self.updates += other.updates;
        self.evictions += other.evictions;
        self.evicted_bytes += other.evicted_bytes;
        self.expirations += other.expirations;
        self.invalidations += other.invalidations;
    }
}

impl CacheContents {
    /// Returns an owner's entries, and marks them as used.
    fn partition(&mut self, owner: &CacheOwner, age: u64) -> &mut Partition {
        let partition = self.partitions.entry(Arc::clone(&owner.name));
        let partition = partition.or_insert_with(|| Partition::new(Arc::clone(&owner.holder)));
        partition.used = age;
        partition
    }

    /// Evicts entries until the rest fits. This many of the owner's newest entries stay: they were checked to fit.
    fn make_room(&mut self, room: CacheRoom, owner: &str, newest: u64) {
        let kept = |name: &str| if name == owner { newest } else { 0 };
        let (mut bytes, mut entries) = self.totals();
        while !room.has(bytes, entries) {
            let Some((victim, others)) = self.victim(kept) else {
                return;
            };
            let Some(partition) = self.partitions.get_mut(&victim) else {
                return;
            };
            let mut is_more = true;
            while is_more && !room.has(bytes, entries) {
                bytes -= partition.evict_oldest();
                entries -= 1;
                is_more = partition.entries.len() > kept(&victim) && partition.weight() > others;
            }
        }
    }

    fn totals(&self) -> (u64, u64) {
        let each = self.partitions.values();
        each.fold((0, 0), |(bytes, entries), one| {
            (bytes + one.bytes, entries + one.entries.len())
        })
    }

    /// Returns whose entry is evicted next, and what the next largest holder has. It is the holder with the most, and
    /// among its owners the least recently used one.
    fn victim(&self, kept: impl Fn(&str) -> u64) -> Option<(Arc<str>, u64)> {
        let mut weights: HashMap<&str, u64> = HashMap::new();
        for partition in self.partitions.values() {
            *weights.entry(&partition.holder).or_default() += partition.weight();
        }
        let weight = |partition: &Partition| weights.get(&*partition.holder).copied();
        let evictable = self
            .partitions
            .iter()
            .filter(|(name, partition)| partition.entries.len() > kept(name));
        let (name, partition) = evictable
            .max_by_key(|(_, partition)| (weight(partition), std::cmp::Reverse(partition.used)))?;
        let others = weights
            .iter()
            .filter(|(holder, _)| ***holder != *partition.holder);
        let others = others.map(|(_, weight)| *weight).max();
        Some((Arc::clone(name), others.unwrap_or_default()))
    }

    /// Removes what has expired. If there are many owners, forgets those that hold nothing and have been inactive for a
    /// while.
    fn sweep(&mut self, age: u64, may_expire: bool) {
        let past = &mut self.past;
        let are_many = self.partitions.len() > OWNERS_KEPT;
        self.partitions.retain(|_, partition| {
            if may_expire {
                partition.sweep(age);
            }
            let is_idle = age.saturating_sub(partition.used) > millis(REMEMBERED);
            let is_forgotten = are_many && is_idle && partition.entries.len() == 0;
            if is_forgotten {
                past.add(&partition.counters);
            }
            !is_forgotten
        });
    }
}

#[cfg(test)]
mod tests;
