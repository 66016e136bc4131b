//! Files that come in chunks. Chunks are kept here until the last one has come; an incomplete file goes nowhere else.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{ChunkFault, Error, Result};
use crate::file::ContentHash;
use crate::owner::CacheOwner;
use crate::project_path::ProjectPath;

/// The most chunks of one file.
pub const CHUNKS_MAX: u32 = 10_000;
/// The most uploads in progress.
const UPLOADS_MAX: usize = 256;
/// The most uploads in progress of one holder; the rest is reserved for others.
const UPLOADS_OF_ONE: usize = UPLOADS_MAX / 2;
/// The least that a chunk counts, so that many small ones cannot fill the memory.
const CHUNK_BYTES_MIN: u64 = 128;
/// How many of the missing chunks are named.
const MISSING_SHOWN: usize = 10;

/// A chunk of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its index, from 0.
    pub index: u32,
    /// The number of chunks of the file.
    pub count: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The hash that its bytes should have, if the agent gave one.
    pub hash: Option<String>,
    /// The hash of the whole file, which may come with any chunk.
    pub content_hash: Option<String>,
    /// Something to drop together with the chunk.
    pub held: HeldRoom,
}

/// Something that is kept as long as a chunk is, such as its room in a budget of bytes.
#[derive(Clone, Default)]
pub struct HeldRoom {
    _kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl HeldRoom {
    /// Keeps something.
    pub fn new(kept: impl Any + Send + Sync) -> HeldRoom {
        HeldRoom {
            _kept: Some(Arc::new(kept)),
        }
    }
}

impl fmt::Debug for HeldRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldRoom")
    }
}

/// Does not affect the equality of chunks.
impl PartialEq for HeldRoom {
    fn eq(&self, _: &HeldRoom) -> bool {
        true
    }
}

impl Eq for HeldRoom {}

/// How far an upload has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadProgress {
    /// The number of chunks that have come.
    pub(crate) received: u32,
    /// The first chunks that have not come.
    pub(crate) missing: Vec<u32>,
    /// The whole content once every chunk has come, and the hash that it should have.
    pub(crate) whole: Option<(Vec<u8>, Option<String>)>,
    /// Whether earlier chunks were dropped because the number of chunks changed.
    pub(crate) restarted: bool,
    /// Whether earlier chunks were dropped because this one came too late.
    pub(crate) expired: bool,
}

/// The uploads in progress.
#[derive(Debug)]
pub struct Uploads {
    pending: Mutex<PendingUploads>,
    /// The most bytes of one holder. All together may have twice as many.
    max_bytes: u64,
    lifetime: Duration,
}

/// The owner and the path of an upload.
type UploadKey = (Arc<str>, ProjectPath);

#[derive(Debug, Default)]
struct PendingUploads {
    uploads: HashMap<UploadKey, ChunkedUpload>,
    /// The last uploads that expired, so that a client that continues one can be told.
    expired: VecDeque<UploadKey>,
}

#[derive(Debug)]
struct ChunkedUpload {
    /// The holder whose share of the room it uses.
    holder: Arc<str>,
    count: u32,
    chunks: BTreeMap<u32, (Vec<u8>, HeldRoom)>,
    content_hash: Option<String>,
    /// The bytes of its content so far.
    bytes: u64,
    /// How much of the room it takes.
    weight: u64,
    touched: Instant,
}

impl ChunkedUpload {
    /// Keeps a chunk, replacing an earlier one with the same index.
    fn insert(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes.len() as u64;
        self.weight += weight(&chunk.bytes);
        let earlier = self.chunks.insert(chunk.index, (chunk.bytes, chunk.held));
        if let Some((bytes, _)) = earlier {
            self.bytes -= bytes.len() as u64;
            self.weight -= weight(&bytes);
        }
    }

    /// The first chunks that have not come.
    fn missing(&self) -> Vec<u32> {
        let missing = (0..self.count).filter(|index| !self.chunks.contains_key(index));
        missing.take(MISSING_SHOWN).collect()
    }
}

impl Uploads {
    /// Creates a store for at most `max_bytes` of chunks of one holder. An upload expires `lifetime` after its last chunk.
    #[must_use]
    pub fn new(max_bytes: u64, lifetime: Duration) -> Uploads {
        Uploads {
            pending: Mutex::default(),
            max_bytes,
            lifetime,
        }
    }

    /// Returns the number of an owner's uploads in progress and the bytes that they hold.
    #[must_use]
    pub fn usage_of(&self, owner: &CacheOwner, now: Instant) -> (usize, u64) {
        let mut pending = self.pending();
        pending.expire(now, self.lifetime);
        let each = pending.uploads.iter();
        let own = each.filter(|((name, _), _)| *name == owner.name);
        own.fold((0, 0), |(count, bytes), (_, upload)| {
            (count + 1, bytes + upload.bytes)
        })
    }

    /// Adds a chunk, whose hash was compared already.
    pub(crate) fn add(
        &self,
        owner: &CacheOwner,
        path: &ProjectPath,
        chunk: Chunk,
        now: Instant,
    ) -> Result<UploadProgress> {
        check(path, &chunk)?;
        let mut pending = self.pending();
        pending.expire(now, self.lifetime);
        let key = (Arc::clone(&owner.name), path.clone());
        let restarted = pending.remove_if(&key, |upload| upload.count != chunk.count);
        self.check_room(&pending, &key, &owner.holder, &chunk)?;
        let expired = pending.take_expired(&key);
        let (received, missing) = pending.insert(&key, &owner.holder, chunk, now);
        Ok(UploadProgress {
            received,
            missing,
            whole: pending.take_if_complete(&key),
            restarted,
            expired,
        })
    }

    fn check_room(
        &self,
        pending: &PendingUploads,
        key: &UploadKey,
        holder: &str,
        chunk: &Chunk,
    ) -> Result<()> {
        let (all, all_bytes) = pending.taken(|_| true);
        let (own, own_bytes) = pending.taken(|upload| &*upload.holder == holder);
        let is_new = !pending.uploads.contains_key(key);
        if is_new && (own >= UPLOADS_OF_ONE || all >= UPLOADS_MAX) {
            return Err(bad(&key.1, ChunkFault::TooManyUploads));
        }
        let replaced = pending.weight_of(key, chunk.index);
        let more = weight(&chunk.bytes).saturating_sub(replaced);
        let size = own_bytes.saturating_add(more);
        let is_full = all_bytes.saturating_add(more) > self.max_bytes.saturating_mul(2);
        if size > self.max_bytes || is_full {
            return Err(Error::TooLarge {
                path: key.1.to_string(),
                size,
                limit: self.max_bytes,
            });
        }
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, PendingUploads> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingUploads {
    fn expire(&mut self, now: Instant, lifetime: Duration) {
        let expired = &mut self.expired;
        self.uploads.retain(|key, upload| {
            let is_alive = now.saturating_duration_since(upload.touched) < lifetime;
            if !is_alive {
                expired.push_back(key.clone());
            }
            is_alive
        });
        let excess = expired.len().saturating_sub(UPLOADS_MAX);
        expired.drain(..excess);
    }

    /// Counts some uploads, and what they take of the room.
    fn taken(&self, is_meant: impl Fn(&ChunkedUpload) -> bool) -> (usize, u64) {
        let meant = self.uploads.values().filter(|upload| is_meant(upload));
        meant.fold((0, 0), |(count, bytes), upload| {
            (count + 1, bytes + upload.weight)
        })
    }

    /// Returns what a chunk that has come before takes of the room.
    fn weight_of(&self, key: &UploadKey, index: u32) -> u64 {
        let upload = self.uploads.get(key);
        let chunk = upload.and_then(|upload| upload.chunks.get(&index));
        chunk.map_or(0, |(bytes, _)| weight(bytes))
    }

    /// Tells whether an upload has expired, only the first time.
    fn take_expired(&mut self, key: &UploadKey) -> bool {
        let before = self.expired.len();
        self.expired.retain(|expired| expired != key);
        self.expired.len() < before
    }

    fn remove_if(
        &mut self,
        key: &UploadKey,
        is_other: impl FnOnce(&ChunkedUpload) -> bool,
    ) -> bool {
        let is_other = self.uploads.get(key).is_some_and(is_other);
        if is_other {
            self.uploads.remove(key);
        }
        is_other
    }

    /// Keeps a chunk. Returns how many have come, and the first that have not.
    fn insert(
        &mut self,
        key: &UploadKey,
        holder: &Arc<str>,
        chunk: Chunk,
        now: Instant,
    ) -> (u32, Vec<u32>) {
        let upload = self.uploads.entry(key.clone()).or_insert(ChunkedUpload {
            holder: Arc::clone(holder),
            count: chunk.count,
            chunks: BTreeMap::new(),
            content_hash: None,
            bytes: 0,
            weight: 0,
            touched: now,
        });
        upload.content_hash = chunk.content_hash.clone().or(upload.content_hash.take());
        upload.touched = now;
        upload.insert(chunk);
        (upload.chunks.len() as u32, upload.missing())
    }

    fn take_if_complete(&mut self, key: &UploadKey) -> Option<(Vec<u8>, Option<String>)> {
        let upload = self.uploads.get(key)?;
        if upload.chunks.len() < upload.count as usize {
            return None;
        }
        let upload = self.uploads.remove(key)?;
        let mut whole = Vec::with_capacity(upload.bytes as usize);
        for (chunk, _) in upload.chunks.values() {
            whole.extend_from_slice(chunk);
        }
        Some((whole, upload.content_hash))
    }
}

fn check(path: &ProjectPath, chunk: &Chunk) -> Result<()> {
    let Chunk { index, count, .. } = *chunk;
    if count == 0 || count > CHUNKS_MAX {
        return Err(bad(path, ChunkFault::BadCount { count }));
    }
    if index >= count {
        return Err(bad(path, ChunkFault::BeyondCount { index, count }));
    }
    Ok(())
}

/// How much of the room a chunk takes.
fn weight(bytes: &[u8]) -> u64 {
    CHUNK_BYTES_MIN.max(bytes.len() as u64)
}

/// Compares bytes with the hash that they should have.
pub(crate) fn check_hash(
    path: &ProjectPath,
    chunk: Option<u32>,
    bytes: &[u8],
    expected: Option<&str>,
) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let found = ContentHash::of(bytes);
    if found.is(expected) {
        return Ok(());
    }
    Err(Error::HashDiffers {
        path: path.to_string(),
        chunk,
        expected: expected.to_owned(),
        found: found.to_string(),
    })
}

fn bad(path: &ProjectPath, fault: ChunkFault) -> Error {
    Error::BadChunk {
        path: path.to_string(),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(index: u32, count: u32, bytes: &[u8]) -> Chunk {
        Chunk {
            index,
            count,
            bytes: bytes.to_vec(),
            hash: None,
            content_hash: None,
            held: HeldRoom::default(),
        }
    }

    fn path(text: &str) -> ProjectPath {
        ProjectPath::allowed(text)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn one() -> CacheOwner {
        CacheOwner::alone("one")
    }

    #[test]
    fn chunks_of_two_clients_do_not_mix() {
        let (uploads, now) = (Uploads::new(10_000, MINUTE), Instant::now());
        let add = |owner, chunk| {
            let owner = CacheOwner::alone(owner);
            let progress = uploads.add(&owner, &path("a"), chunk, now).unwrap();
            progress.whole.map(|(bytes, _)| bytes)
        };
        assert_eq!(add("one", chunk(0, 2, b"1")), None);
        assert_eq!(add("two", chunk(1, 2, b"B")), None);
        assert_eq!(uploads.usage_of(&one(), now), (1, 1));
        assert_eq!(add("one", chunk(1, 2, b"2")).as_deref(), Some(&b"12"[..]));
        assert_eq!(uploads.usage_of(&one(), now), (0, 0));
        assert_eq!(uploads.usage_of(&CacheOwner::alone("two"), now), (1, 1));
    }

    #[test]
    fn wrong_chunks_are_refused_and_change_nothing() {
        let (uploads, now) = (Uploads::new(200, MINUTE), Instant::now());
        let fault = |chunk| uploads.add(&one(), &path("a"), chunk, now).unwrap_err();
        let beyond = ChunkFault::BeyondCount { index: 2, count: 2 };
        assert_eq!(fault(chunk(2, 2, b"")), bad(&path("a"), beyond));
        let none = ChunkFault::BadCount { count: 0 };
        assert_eq!(fault(chunk(0, 0, b"")), bad(&path("a"), none));
        assert!(matches!(
            fault(chunk(0, 2, &[0; 201])),
            Error::TooLarge { size: 201, .. }
        ));
        assert_eq!(uploads.usage_of(&one(), now), (0, 0));
    }

    #[test]
    fn each_holder_has_its_share() {
        let (uploads, now) = (Uploads::new(1_000, MINUTE), Instant::now());
        let session = |number: usize| CacheOwner {
            name: format!("session {number}").into(),
            holder: "host".into(),
        };
        let add = |owner: &CacheOwner, name: &str, bytes: &[u8]| {
            uploads.add(owner, &path(name), chunk(0, 2, bytes), now)
        };
        // Many sessions have one share of the bytes; small chunks count, too.
        let room = (0..20).filter(|number| add(&session(*number), "a", b"x").is_ok());
        assert_eq!(room.count(), 1_000 / 128);
        assert!(add(&one(), "a", &[0; 900]).is_ok());
        // Another chunk with the same index takes the place of the first.
        assert!(add(&one(), "a", &[0; 900]).is_ok());
        assert!(add(&one(), "b", &[0; 200]).is_err());
        let (uploads, now) = (Uploads::new(1 << 30, MINUTE), Instant::now());
        let add = |owner: &CacheOwner, number: usize| {
            let progress = uploads.add(owner, &path(&number.to_string()), chunk(0, 2, b""), now);
            progress.is_ok()
        };
        let let_in = (0..300).filter(|number| add(&session(*number), *number));
        assert_eq!(let_in.count(), UPLOADS_OF_ONE);
        assert!(add(&one(), 0));
    }

    #[test]
    fn incomplete_uploads_expire() {
        let (uploads, now) = (Uploads::new(10_000, MINUTE), Instant::now());
        uploads
            .add(&one(), &path("a"), chunk(0, 2, b"1"), now)
            .unwrap();
        let later = now + MINUTE;
        let progress = uploads.add(&one(), &path("a"), chunk(1, 2, b"2"), later);
        let progress = progress.unwrap();
        assert_eq!(progress.received, 1, "the first is gone");
        assert!(progress.expired, "and the reply says so");
        let again = uploads.add(&one(), &path("a"), chunk(1, 2, b"2"), later);
        assert!(!again.unwrap().expired, "only once");
    }

    #[test]
    fn another_number_of_chunks_begins_anew() {
        let (uploads, now) = (Uploads::new(10_000, MINUTE), Instant::now());
        let add = |chunk| uploads.add(&one(), &path("a"), chunk, now).unwrap();
        add(chunk(0, 3, b"old"));
        let progress = add(chunk(0, 2, b"new"));
        assert!(progress.restarted && progress.received == 1);
        let whole = add(chunk(1, 2, b"!")).whole;
        assert_eq!(whole, Some((b"new!".to_vec(), None)));
    }

    proptest! {
        #[test]
        fn any_order_and_any_repetition_gives_the_whole(
            content in proptest::collection::vec(any::<u8>(), 1..200),
            size in 1usize..40,
            order in proptest::collection::vec(any::<usize>(), 0..60),
        ) {
            let (uploads, now) = (Uploads::new(100_000, MINUTE), Instant::now());
            let pieces: Vec<&[u8]> = content.chunks(size).collect();
            let count = pieces.len() as u32;
            let (last, others) = pieces.split_last().expect("at least one");
            let add = |index: usize, bytes: &[u8]| {
                uploads.add(&one(), &path("a"), chunk(index as u32, count, bytes), now).unwrap().whole
            };
            let shuffled = order.iter().filter_map(|n| n.checked_rem(others.len()));
            for index in shuffled.chain(0..others.len()) {
                prop_assert_eq!(add(index, others[index]), None);
            }
            prop_assert_eq!(add(others.len(), last), Some((content.clone(), None)));
            prop_assert_eq!(uploads.usage_of(&one(), now), (0, 0));
        }
    }
}
