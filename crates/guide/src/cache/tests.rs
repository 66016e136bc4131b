use super::*;
use crate::encoding::TextEncoding;
use crate::file::{ContentShape, ToldBy};
use proptest::prelude::*;

fn file(size: usize) -> CachedValue {
    CachedValue::File(Arc::new(AgentFile {
        content: vec![b'x'; size].into(),
        shape: ContentShape::Text,
        encoding: TextEncoding::UTF_8,
        mtime: None,
        stored_at: 0.0,
        told_by: ToldBy::Tool,
    }))
}

fn one() -> CacheOwner {
    CacheOwner::alone("one")
}

fn put(cache: &FileCache, path: &str, size: usize, now: Instant) -> PutOutcome {
    put_of(cache, &one(), path, size, now)
}

fn put_of(
    cache: &FileCache,
    owner: &CacheOwner,
    path: &str,
    size: usize,
    now: Instant,
) -> PutOutcome {
    let entry = (ProjectPath::allowed(path), file(size));
    cache.put(owner, vec![entry], now).unwrap()
}

fn holds(cache: &FileCache, path: &str, now: Instant) -> bool {
    cache.peek(&one(), CacheKind::File, path, now).is_some()
}

fn get(cache: &FileCache, path: &str, now: Instant) -> bool {
    let found = cache.find(&one(), CacheKind::File, path, now, |_| Verdict::Fresh);
    if found.is_none() {
        cache.count_miss(&one(), now);
    }
    found.is_some()
}

#[test]
fn owners_do_not_see_each_other() {
    let (cache, now) = (FileCache::new(100, None), Instant::now());
    let other = CacheOwner::alone("other");
    put(&cache, "a", 10, now);
    assert!(cache.peek(&other, CacheKind::File, "a", now).is_none());
    assert_eq!(
        put_of(&cache, &other, "a", 20, now).statuses,
        [StoreStatus::Cached]
    );
    cache.forget_file(&other, "a", now);
    assert!(holds(&cache, "a", now));
    assert_eq!(cache.usage_of(&other, now).entries, 0);
    assert_eq!(cache.usage(now).counters.insertions, 2);
}

#[test]
fn who_holds_the_most_makes_room() {
    let (cache, now) = (FileCache::new(100, None), Instant::now());
    let (small, large) = (CacheOwner::alone("small"), CacheOwner::alone("large"));
    put_of(&cache, &small, "a", 10, now);
    for number in 0..50 {
        put_of(&cache, &large, &number.to_string(), 10, now);
    }
    assert_eq!(cache.usage_of(&small, now).bytes, 10);
    assert_eq!(cache.usage_of(&large, now).bytes, 90);
    // Who holds less gets what it needs from the others.
    put_of(&cache, &small, "b", 30, now);
    assert_eq!(cache.usage_of(&small, now).bytes, 40);
    assert_eq!(cache.usage_of(&small, now).counters.evictions, 0);
    assert_eq!(cache.usage_of(&large, now).bytes, 60);
    // What was just put stays, however much it is.
    put_of(&cache, &large, "all", 95, now);
    assert_eq!(cache.usage_of(&large, now).bytes, 95);
}

#[test]
fn many_owners_of_one_holder_have_one_share() {
    let (cache, now) = (FileCache::new(1_000, None), Instant::now());
    put(&cache, "a", 200, now);
    for number in 0..100_u64 {
        let session = CacheOwner {
            name: number.to_string().into(),
            holder: "host".into(),
        };
        put_of(
            &cache,
            &session,
            "a",
            100,
            now + Duration::from_millis(number),
        );
    }
    assert!(
        holds(&cache, "a", now),
        "it is not pushed out by many sessions"
    );
    let last = CacheOwner::alone("99");
    let first = CacheOwner::alone("0");
    assert_eq!(
        cache.usage_of(&first, now).entries,
        0,
        "the oldest goes first"
    );
    assert_eq!(cache.usage_of(&last, now).entries, 1);
    assert_eq!(cache.usage(now).bytes, 1_000);
}

#[test]
fn owners_that_hold_nothing_are_forgotten_but_counted() {
    let (cache, now) = (FileCache::new(100, None), Instant::now());
    for number in 0..2 * OWNERS_KEPT {
        cache.count_miss(&CacheOwner::alone(&number.to_string()), now);
    }
    let later = now + REMEMBERED + SWEEP_EVERY;
    assert_eq!(cache.usage(later).counters.misses, 2 * OWNERS_KEPT as u64);
    assert!(cache.contents(later).partitions.len() <= OWNERS_KEPT);
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
    assert_eq!(figures.entries, 1);
    assert_eq!(figures.bytes, 30);
    assert_eq!(figures.counters.insertions, 1);
    assert_eq!(figures.counters.updates, 1);
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let (cache, now) = (FileCache::new(30, None), Instant::now());
    put(&cache, "a", 10, now);
    let batch = ["b", "c"].map(|path| (ProjectPath::allowed(path), file(16)));
    let refused = cache.put(&one(), batch.into(), now);
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
    assert_eq!(figures.entries, 0);
    assert_eq!(figures.counters.expirations, 1);
    assert!(adds_up(&figures));
}

#[test]
fn empty_files_are_bounded_too() {
    let (cache, now) = (FileCache::new(1, None), Instant::now());
    for number in 0..ENTRIES_MIN + 100 {
        put(&cache, &number.to_string(), 0, now);
    }
    let figures = cache.usage(now);
    assert_eq!(figures.entries, ENTRIES_MIN);
    assert_eq!(figures.counters.evictions, 100);
}

#[test]
fn stale_entries_go_and_unfit_ones_stay() {
    let (cache, now) = (FileCache::new(100, None), Instant::now());
    put(&cache, "a", 1, now);
    let find = |verdict| cache.find(&one(), CacheKind::File, "a", now, |_| verdict);
    assert_eq!(find(Verdict::Unfit), None);
    assert!(find(Verdict::Fresh).is_some());
    assert_eq!(find(Verdict::Stale), None);
    assert!(!holds(&cache, "a", now));
    let counters = cache.usage(now).counters;
    assert_eq!(counters.hits, 1);
    assert_eq!(counters.invalidations, 1);
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
                            let pair = pair.map(|p| (ProjectPath::allowed(p), file(100)));
                            drop(cache.put(&one(), pair.into(), now));
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
                        (ProjectPath::allowed(&key.to_string()), file(*size as usize))
                    });
                    let _ = cache.put(&one(), entries.collect(), now);
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
