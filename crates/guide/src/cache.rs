//! What agents handed over, bounded in bytes and in time. The least recently used goes first.
//!
//! Entries of one batch appear together or not at all. An entry costs little beside its content: a slot in one vector
//! (key, value, neighbours, end of life) and its number in a hash table.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashTable;

use crate::file::AgentFile;
use crate::listing::DirectoryListing;
use crate::policy::ProjectPath;

/// No slot.
const NONE: u32 = u32::MAX;
/// For ever.
const NEVER: u64 = u64::MAX;
/// However small the bound in bytes is, so many entries may be held.
const ENTRIES_MIN: u64 = 1024;
/// One entry more is allowed for so many bytes of the bound, so that empty files cannot fill the memory.
const BYTES_PER_ENTRY: u64 = 256;
/// How often everything that has expired is thrown away at once.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What an entry holds. A file and a listing of the same path are two entries.
#[derive(Debug, Clone, PartialEq)]
pub enum CachedValue {
    /// A file's content.
    File(Arc<AgentFile>),
    /// A directory's entries.
    Listing(Arc<DirectoryListing>),
}

impl CachedValue {
    /// What counts towards the bound.
    fn bytes(&self) -> u64 {
        match self {
            CachedValue::File(file) => file.size(),
            CachedValue::Listing(listing) => listing.bytes(),
        }
    }

    /// When it was handed over, in seconds since the epoch.
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

/// Which of the two entries of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CacheKind {
    File,
    Listing,
}

/// What to do with an entry that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is what was looked for.
    Fresh,
    /// It is out of date and goes.
    Stale,
    /// It stays, but is not what was looked for.
    Unfit,
}

/// What became of an entry that was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreStatus {
    /// There was none for its path.
    Cached,
    /// It replaced one.
    Updated,
}

/// What was thrown out to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evicted {
    /// How many entries.
    pub entries: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOutcome {
    /// For each entry, in order.
    pub statuses: Vec<StoreStatus>,
    /// What had to go for it.
    pub evicted: Evicted,
}

/// What happened since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounters {
    /// Searches that found what they looked for.
    pub hits: u64,
    /// Searches that did not.
    pub misses: u64,
    /// Entries that were new.
    pub insertions: u64,
    /// Entries that replaced another.
    pub updates: u64,
    /// Entries thrown out to make room.
    pub evictions: u64,
    /// Their bytes.
    pub evicted_bytes: u64,
    /// Entries that were kept too long.
    pub expirations: u64,
    /// Entries that went because the agent's file had changed.
    pub invalidations: u64,
}

/// How the cache is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUsage {
    /// How many entries are held.
    pub entries: u64,
    /// How many bytes are held.
    pub bytes: u64,
    /// How many bytes may be held.
    pub max_bytes: u64,
    /// What happened since the start.
    pub counters: CacheCounters,
}

/// A batch that does not fit, even into an empty cache: its bytes and the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoesNotFit {
    pub(crate) size: u64,
    pub(crate) limit: u64,
}

/// A bounded cache. All of its calls take the same short lock.
#[derive(Debug)]
pub struct FileCache {
    held: Mutex<Held>,
    hasher: RandomState,
    start: Instant,
    ttl: Option<Duration>,
    max_bytes: u64,
    max_entries: u64,
}

#[derive(Debug)]
struct Held {
    slots: Vec<CacheSlot>,
    table: HashTable<u32>,
    /// The most and the least recently used.
    first: u32,
    last: u32,
    /// The first of the empty slots.
    free: u32,
    bytes: u64,
    counters: CacheCounters,
    swept: Instant,
}

#[derive(Debug)]
struct CacheSlot {
    key: Box<str>,
    /// None where the slot is empty; `next` is then the next empty one.
    value: Option<CachedValue>,
    /// In milliseconds since the cache's start.
    expires: u64,
    before: u32,
    next: u32,
}

impl FileCache {
    /// A cache that holds at most so many bytes, each entry for so long; no time is for ever.
    #[must_use]
    pub fn new(max_bytes: u64, ttl: Option<Duration>) -> FileCache {
        let start = Instant::now();
        FileCache {
            held: Mutex::new(Held {
                slots: Vec::new(),
                table: HashTable::new(),
                first: NONE,
                last: NONE,
                free: NONE,
                bytes: 0,
                counters: CacheCounters::default(),
                swept: start,
            }),
            hasher: RandomState::new(),
            start,
            ttl,
            max_bytes,
            max_entries: ENTRIES_MIN
                .max(max_bytes / BYTES_PER_ENTRY)
                .min(NONE.into()),
        }
    }

    /// The bound in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Puts entries in, all or none. Of two for the same path the later one stays.
    pub(crate) fn put(
        &self,
        entries: Vec<(ProjectPath, CachedValue)>,
        now: Instant,
    ) -> Result<PutOutcome, DoesNotFit> {
        self.check_fits(&entries)?;
        let mut held = self.held(now);
        let before = held.counters;
        let expires = self.expiry(now);
        let each = entries.into_iter();
        let statuses = each
            .map(|(path, value)| held.insert(&self.hasher, path.as_str(), value, expires))
            .collect();
        // What was put in just now is used most recently and fits, so none of it goes.
        while held.bytes > self.max_bytes || held.table.len() as u64 > self.max_entries {
            held.evict_last(&self.hasher);
        }
        let evicted = Evicted {
            entries: held.counters.evictions - before.evictions,
            bytes: held.counters.evicted_bytes - before.evicted_bytes,
        };
        Ok(PutOutcome { statuses, evicted })
    }

    fn check_fits(&self, entries: &[(ProjectPath, CachedValue)]) -> Result<(), DoesNotFit> {
        let sizes = entries.iter().map(|(_, value)| value.bytes());
        let size = sizes.fold(0, u64::saturating_add);
        match size > self.max_bytes || entries.len() as u64 > self.max_entries {
            true => Err(DoesNotFit {
                size,
                limit: self.max_bytes,
            }),
            false => Ok(()),
        }
    }

    /// Looks an entry up; who looks judges what is found. What is found is a hit; a miss is for the caller to count.
    pub(crate) fn find(
        &self,
        kind: CacheKind,
        path: &str,
        now: Instant,
        judge: impl FnOnce(&CachedValue) -> Verdict,
    ) -> Option<CachedValue> {
        let mut held = self.held(now);
        let at = held.alive(&self.hasher, kind, path, self.age(now));
        let value = at.and_then(|at| held.value(at));
        let verdict = value.as_ref().map(judge);
        match (at, verdict) {
            (Some(at), Some(Verdict::Fresh)) => {
                held.counters.hits += 1;
                held.touch(at);
                return value;
            }
            (Some(at), Some(Verdict::Stale)) => {
                held.counters.invalidations += 1;
                held.remove(&self.hasher, at);
            }
            _ => {}
        }
        None
    }

    /// Counts a search that found nothing.
    pub(crate) fn missed(&self, now: Instant) {
        self.held(now).counters.misses += 1;
    }

    /// Looks an entry up without a trace, for those who only want to know.
    pub(crate) fn peek(&self, kind: CacheKind, path: &str, now: Instant) -> Option<CachedValue> {
        let mut held = self.held(now);
        let at = held.alive(&self.hasher, kind, path, self.age(now))?;
        held.value(at)
    }

    /// Throws a file out if it is stale, and says whether it was.
    pub(crate) fn invalidate(
        &self,
        path: &str,
        now: Instant,
        is_stale: impl FnOnce(&AgentFile) -> bool,
    ) -> bool {
        let mut held = self.held(now);
        let Some(at) = held.alive(&self.hasher, CacheKind::File, path, self.age(now)) else {
            return false;
        };
        let is_stale = matches!(held.value(at), Some(CachedValue::File(file)) if is_stale(&file));
        if is_stale {
            held.counters.invalidations += 1;
            held.remove(&self.hasher, at);
        }
        is_stale
    }

    /// How it is doing.
    #[must_use]
    pub fn usage(&self, now: Instant) -> CacheUsage {
        let mut held = self.held(now);
        held.sweep(&self.hasher, self.age(now));
        CacheUsage {
            entries: held.table.len() as u64,
            bytes: held.bytes,
            max_bytes: self.max_bytes,
            counters: held.counters,
        }
    }

    fn expiry(&self, now: Instant) -> u64 {
        self.ttl
            .map_or(NEVER, |ttl| self.age(now).saturating_add(millis(ttl)))
    }

    fn age(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.start))
    }

    /// The entries; those that have expired go now and then.
    fn held(&self, now: Instant) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now.saturating_duration_since(held.swept) >= SWEEP_EVERY;
        if self.ttl.is_some() && is_due {
            held.swept = now;
            held.sweep(&self.hasher, self.age(now));
        }
        held
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

impl Held {
    /// The slot of an entry that has not expired.
    fn alive(
        &mut self,
        hasher: &RandomState,
        kind: CacheKind,
        path: &str,
        age: u64,
    ) -> Option<u32> {
        let at = self.lookup(hasher, kind, path)?;
        if self.slot(at)?.expires > age {
            return Some(at);
        }
        self.counters.expirations += 1;
        self.remove(hasher, at);
        None
    }

    fn lookup(&self, hasher: &RandomState, kind: CacheKind, path: &str) -> Option<u32> {
        let hash = hasher.hash_one((kind, path));
        let is = |at: &u32| self.slot(*at).is_some_and(|slot| slot.is(kind, path));
        self.table.find(hash, is).copied()
    }

    fn slot(&self, at: u32) -> Option<&CacheSlot> {
        self.slots.get(at as usize)
    }

    fn value(&self, at: u32) -> Option<CachedValue> {
        self.slot(at)?.value.clone()
    }

    fn insert(
        &mut self,
        hasher: &RandomState,
        key: &str,
        value: CachedValue,
        expires: u64,
    ) -> StoreStatus {
        let earlier = self.lookup(hasher, value.kind(), key);
        self.bytes += value.bytes();
        match earlier {
            Some(at) => {
                self.counters.updates += 1;
                self.replace(at, value, expires);
                self.touch(at);
                StoreStatus::Updated
            }
            None => {
                self.counters.insertions += 1;
                self.add(hasher, key, value, expires);
                StoreStatus::Cached
            }
        }
    }

    fn replace(&mut self, at: u32, value: CachedValue, expires: u64) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        slot.expires = expires;
        let earlier = slot.value.replace(value);
        self.bytes -= earlier.map_or(0, |value| value.bytes());
    }

    fn add(&mut self, hasher: &RandomState, key: &str, value: CachedValue, expires: u64) {
        let hash = hasher.hash_one((value.kind(), key));
        let slot = CacheSlot {
            key: key.into(),
            value: Some(value),
            expires,
            before: NONE,
            next: NONE,
        };
        let at = self.place(slot);
        let slots = &self.slots;
        self.table
            .insert_unique(hash, at, |at| rehash(slots, hasher, *at));
        self.link_first(at);
    }

    /// Puts a slot into an empty place, or behind the last.
    fn place(&mut self, slot: CacheSlot) -> u32 {
        if let Some(empty) = self.slots.get_mut(self.free as usize) {
            let at = self.free;
            self.free = empty.next;
            *empty = slot;
            return at;
        }
        // Growing by an eighth instead of doubling keeps little memory in reserve.
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len() / 8 + 16);
        }
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    fn remove(&mut self, hasher: &RandomState, at: u32) -> u64 {
        self.unlink(at);
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return 0;
        };
        let (key, value) = (std::mem::take(&mut slot.key), slot.value.take());
        slot.next = self.free;
        self.free = at;
        let Some(value) = value else { return 0 };
        let hash = hasher.hash_one((value.kind(), &*key));
        if let Ok(entry) = self.table.find_entry(hash, |own| *own == at) {
            entry.remove();
        }
        self.bytes -= value.bytes();
        value.bytes()
    }

    fn evict_last(&mut self, hasher: &RandomState) {
        let bytes = self.remove(hasher, self.last);
        self.counters.evictions += 1;
        self.counters.evicted_bytes += bytes;
    }

    fn sweep(&mut self, hasher: &RandomState, age: u64) {
        for at in 0..self.slots.len() as u32 {
            let is_over = |slot: &CacheSlot| slot.value.is_some() && slot.expires <= age;
            if self.slot(at).is_some_and(is_over) {
                self.counters.expirations += 1;
                self.remove(hasher, at);
            }
        }
    }

    fn touch(&mut self, at: u32) {
        self.unlink(at);
        self.link_first(at);
    }

    fn link_first(&mut self, at: u32) {
        let first = self.first;
        if let Some(slot) = self.slots.get_mut(at as usize) {
            (slot.before, slot.next) = (NONE, first);
        }
        match self.slots.get_mut(first as usize) {
            Some(second) => second.before = at,
            None => self.last = at,
        }
        self.first = at;
    }

    fn unlink(&mut self, at: u32) {
        let Some((before, next)) = self.slot(at).map(|slot| (slot.before, slot.next)) else {
            return;
        };
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.next = next,
            None => self.first = next,
        }
        match self.slots.get_mut(next as usize) {
            Some(slot) => slot.before = before,
            None => self.last = before,
        }
    }
}

impl CacheSlot {
    fn is(&self, kind: CacheKind, path: &str) -> bool {
        let own = self.value.as_ref().map(CachedValue::kind);
        own == Some(kind) && &*self.key == path
    }
}

fn rehash(slots: &[CacheSlot], hasher: &RandomState, at: u32) -> u64 {
    let slot = slots.get(at as usize);
    let kind = slot
        .and_then(|slot| slot.value.as_ref())
        .map(CachedValue::kind);
    let (kind, key) = (
        kind.unwrap_or(CacheKind::File),
        slot.map_or("", |slot| &slot.key),
    );
    hasher.hash_one((kind, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::TextEncoding;
    use crate::file::ContentShape;
    use proptest::prelude::*;

    fn file(size: usize) -> CachedValue {
        CachedValue::File(Arc::new(AgentFile {
            content: vec![b'x'; size].into(),
            shape: ContentShape::Text,
            encoding: TextEncoding::UTF_8,
            mtime: None,
            stored_at: 0.0,
        }))
    }

    fn put(cache: &FileCache, path: &str, size: usize, now: Instant) -> PutOutcome {
        let entry = (ProjectPath::unchecked(path), file(size));
        cache.put(vec![entry], now).unwrap()
    }

    fn holds(cache: &FileCache, path: &str, now: Instant) -> bool {
        cache.peek(CacheKind::File, path, now).is_some()
    }

    fn get(cache: &FileCache, path: &str, now: Instant) -> bool {
        let found = cache.find(CacheKind::File, path, now, |_| Verdict::Fresh);
        if found.is_none() {
            cache.missed(now);
        }
        found.is_some()
    }

    /// What must be true of the counters at any time.
    fn adds_up(figures: &CacheUsage) -> bool {
        let CacheCounters {
            insertions,
            evictions,
            expirations,
            invalidations,
            ..
        } = figures.counters;
        insertions == figures.entries + evictions + expirations + invalidations
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let (cache, now) = (FileCache::new(30, None), Instant::now());
        for path in ["a", "b", "c"] {
            put(&cache, path, 10, now);
        }
        assert!(get(&cache, "a", now));
        let batch = put(&cache, "d", 15, now);
        assert_eq!(
            batch.evicted,
            Evicted {
                entries: 2,
                bytes: 20
            }
        );
        let held = ["a", "b", "c", "d"].map(|path| holds(&cache, path, now));
        assert_eq!(held, [true, false, false, true]);
        assert_eq!(cache.usage(now).bytes, 25);
    }

    #[test]
    fn replacing_is_an_update_and_counts_its_bytes_once() {
        let (cache, now) = (FileCache::new(100, None), Instant::now());
        assert_eq!(put(&cache, "a", 10, now).statuses, [StoreStatus::Cached]);
        assert_eq!(put(&cache, "a", 30, now).statuses, [StoreStatus::Updated]);
        let figures = cache.usage(now);
        assert_eq!((figures.entries, figures.bytes), (1, 30));
        assert_eq!(
            (figures.counters.insertions, figures.counters.updates),
            (1, 1)
        );
    }

    #[test]
    fn a_batch_that_does_not_fit_changes_nothing() {
        let (cache, now) = (FileCache::new(30, None), Instant::now());
        put(&cache, "a", 10, now);
        let batch = ["b", "c"].map(|path| (ProjectPath::unchecked(path), file(16)));
        let refused = cache.put(batch.into(), now);
        assert_eq!(
            refused,
            Err(DoesNotFit {
                size: 32,
                limit: 30
            })
        );
        assert!(holds(&cache, "a", now) && !holds(&cache, "b", now));
    }

    #[test]
    fn entries_expire_to_the_millisecond() {
        let ttl = Duration::from_secs(10);
        let (cache, now) = (FileCache::new(100, Some(ttl)), Instant::now());
        put(&cache, "a", 1, now);
        let almost = now + ttl - Duration::from_millis(5);
        assert!(get(&cache, "a", almost));
        assert!(!get(&cache, "a", now + ttl));
        let figures = cache.usage(now + ttl);
        assert_eq!((figures.entries, figures.counters.expirations), (0, 1));
        assert!(adds_up(&figures));
    }

    #[test]
    fn empty_files_are_bounded_too() {
        let (cache, now) = (FileCache::new(1, None), Instant::now());
        for number in 0..ENTRIES_MIN + 100 {
            put(&cache, &number.to_string(), 0, now);
        }
        let figures = cache.usage(now);
        assert_eq!(
            (figures.entries, figures.counters.evictions),
            (ENTRIES_MIN, 100)
        );
    }

    #[test]
    fn stale_entries_go_and_unfit_ones_stay() {
        let (cache, now) = (FileCache::new(100, None), Instant::now());
        put(&cache, "a", 1, now);
        let find = |verdict| cache.find(CacheKind::File, "a", now, |_| verdict);
        assert_eq!(find(Verdict::Unfit), None);
        assert!(find(Verdict::Fresh).is_some());
        assert_eq!(find(Verdict::Stale), None);
        assert!(!holds(&cache, "a", now));
        let counters = cache.usage(now).counters;
        assert_eq!((counters.hits, counters.invalidations), (1, 1));
    }

    #[test]
    fn thirty_two_writers_keep_the_bound_and_the_counters() {
        let cache = FileCache::new(50_000, None);
        let calls = 500;
        std::thread::scope(|scope| {
            for writer in 0..32_usize {
                let cache = &cache;
                scope.spawn(move || {
                    for number in 0..calls {
                        let now = Instant::now();
                        let path = format!("{}", (writer * 31 + number * 7) % 97);
                        match number % 3 {
                            0 => drop(get(cache, &path, now)),
                            1 => drop(put(cache, &path, (number * 37) % 2000, now)),
                            _ => {
                                let pair = [path.as_str(), "shared"];
                                let pair = pair.map(|p| (ProjectPath::unchecked(p), file(100)));
                                drop(cache.put(pair.into(), now));
                            }
                        }
                        assert!(cache.usage(now).bytes <= 50_000);
                    }
                });
            }
        });
        let figures = cache.usage(Instant::now());
        let counters = figures.counters;
        assert!(adds_up(&figures), "{figures:?}");
        let puts = (1..calls).filter(|n| n % 3 == 1).count() + 2 * (2..calls).step_by(3).count();
        assert_eq!(counters.insertions + counters.updates, 32 * puts as u64);
        let gets = (0..calls).step_by(3).count() as u64;
        assert_eq!(counters.hits + counters.misses, 32 * gets);
    }

    /// The cache as anyone would write it who need not care for speed.
    #[derive(Default)]
    struct Model {
        /// The least recently used comes first.
        entries: Vec<(u8, u64)>,
    }

    impl Model {
        fn put(&mut self, batch: &[(u8, u64)], max: u64) {
            if batch.iter().map(|(_, size)| size).sum::<u64>() > max {
                return;
            }
            for (key, size) in batch {
                self.entries.retain(|(own, _)| own != key);
                self.entries.push((*key, *size));
            }
            while self.entries.iter().map(|(_, size)| size).sum::<u64>() > max {
                self.entries.remove(0);
            }
        }

        fn get(&mut self, key: u8) -> bool {
            let Some(at) = self.entries.iter().position(|(own, _)| *own == key) else {
                return false;
            };
            let entry = self.entries.remove(at);
            self.entries.push(entry);
            true
        }
    }

    #[derive(Debug, Clone)]
    enum Act {
        Put(Vec<(u8, u64)>),
        Get(u8),
    }

    proptest! {
        #[test]
        fn it_behaves_as_its_model(acts in proptest::collection::vec(prop_oneof![
            proptest::collection::vec((0u8..12, 0u64..40), 1..4).prop_map(Act::Put),
            (0u8..12).prop_map(Act::Get),
        ], 0..80)) {
            let (cache, now) = (FileCache::new(100, None), Instant::now());
            let mut model = Model::default();
            for act in acts {
                match act {
                    Act::Put(batch) => {
                        let entries = batch.iter().map(|(key, size)| {
                            (ProjectPath::unchecked(&key.to_string()), file(*size as usize))
                        });
                        let _ = cache.put(entries.collect(), now);
                        model.put(&batch, 100);
                    }
                    Act::Get(key) => {
                        prop_assert_eq!(get(&cache, &key.to_string(), now), model.get(key));
                    }
                }
                let figures = cache.usage(now);
                prop_assert_eq!(figures.entries as usize, model.entries.len());
                prop_assert_eq!(figures.bytes, model.entries.iter().map(|(_, size)| size).sum::<u64>());
                prop_assert!(adds_up(&figures));
            }
        }
    }
}
