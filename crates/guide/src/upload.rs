//! Files that come in chunks. Chunks are kept here until the last one has come; an incomplete file goes nowhere else.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{ChunkFault, Error, Result};
use crate::file::ContentHash;
use crate::project_path::ProjectPath;

/// The most chunks of one file.
pub const CHUNKS_MAX: u32 = 10_000;
/// The most uploads in progress.
const UPLOADS_MAX: usize = 256;
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
    /// What is dropped with it.
    pub held: Held,
}

/// Something that is kept as long as a chunk is, such as its room in a budget of bytes.
#[derive(Clone, Default)]
pub struct Held {
    _kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl Held {
    /// Keeps something.
    pub fn new(kept: impl Any + Send + Sync) -> Held {
        Held {
            _kept: Some(Arc::new(kept)),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// What is kept makes no difference to the chunk.
impl PartialEq for Held {
    fn eq(&self, _: &Held) -> bool {
        true
    }
}

impl Eq for Held {}

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
    max_bytes: u64,
    lifetime: Duration,
}

/// The owner and the path of an upload.
type UploadKey = (String, ProjectPath);

#[derive(Debug, Default)]
struct PendingUploads {
    uploads: HashMap<UploadKey, ChunkedUpload>,
    bytes: u64,
    /// The last uploads that expired, so that a client that continues one can be told.
    expired: VecDeque<UploadKey>,
}

#[derive(Debug)]
struct ChunkedUpload {
    count: u32,
    chunks: BTreeMap<u32, (Vec<u8>, Held)>,
    content_hash: Option<String>,
    bytes: u64,
    touched: Instant,
}

impl ChunkedUpload {
    /// The first chunks that have not come.
    fn missing(&self) -> Vec<u32> {
        let missing = (0..self.count).filter(|index| !self.chunks.contains_key(index));
        missing.take(MISSING_SHOWN).collect()
    }
}

impl Uploads {
    /// Creates a store for at most `max_bytes` of chunks. An upload expires `lifetime` after its last chunk.
    #[must_use]
    pub fn new(max_bytes: u64, lifetime: Duration) -> Uploads {
        Uploads {
            pending: Mutex::default(),
            max_bytes,
            lifetime,
        }
    }

    /// Returns the number of uploads in progress and the bytes that they hold.
    #[must_use]
    pub fn usage(&self, now: Instant) -> (usize, u64) {
        let mut pending = self.pending();
        pending.expire(now, self.lifetime);
        (pending.uploads.len(), pending.bytes)
    }

    /// Adds a chunk. `owner` keeps two clients' uploads of the same path apart.
    pub(crate) fn add(
        &self,
        owner: &str,
        path: &ProjectPath,
        chunk: Chunk,
        now: Instant,
    ) -> Result<UploadProgress> {
        check(path, &chunk)?;
        let mut pending = self.pending();
        pending.expire(now, self.lifetime);
        let key = (owner.to_owned(), path.clone());
        let restarted = pending.remove_if(&key, |upload| upload.count != chunk.count);
        self.check_room(&pending, &key, &chunk)?;
        let expired = pending.take_expired(&key);
        let (received, missing) = pending.insert(&key, chunk, now);
        Ok(UploadProgress {
            received,
            missing,
            whole: pending.take_if_complete(&key),
            restarted,
            expired,
        })
    }

    fn check_room(&self, pending: &PendingUploads, key: &UploadKey, chunk: &Chunk) -> Result<()> {
        if !pending.uploads.contains_key(key) && pending.uploads.len() >= UPLOADS_MAX {
            return Err(bad(&key.1, ChunkFault::TooManyUploads));
        }
        let size = pending.bytes.saturating_add(chunk.bytes.len() as u64);
        if size > self.max_bytes {
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
        self.bytes = self.uploads.values().map(|upload| upload.bytes).sum();
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
            self.remove(key);
        }
        is_other
    }

    fn remove(&mut self, key: &UploadKey) -> Option<ChunkedUpload> {
        let upload = self.uploads.remove(key)?;
        self.bytes = self.bytes.saturating_sub(upload.bytes);
        Some(upload)
    }

    /// Keeps a chunk. Returns how many have come, and the first that have not.
    fn insert(&mut self, key: &UploadKey, chunk: Chunk, now: Instant) -> (u32, Vec<u32>) {
        let upload = self.uploads.entry(key.clone()).or_insert(ChunkedUpload {
            count: chunk.count,
            chunks: BTreeMap::new(),
            content_hash: None,
            bytes: 0,
            touched: now,
        });
        let size = chunk.bytes.len() as u64;
        let earlier = upload.chunks.insert(chunk.index, (chunk.bytes, chunk.held));
        let earlier = earlier.map_or(0, |(bytes, _)| bytes.len() as u64);
        upload.content_hash = chunk.content_hash.or(upload.content_hash.take());
        upload.touched = now;
        upload.bytes = upload.bytes + size - earlier;
        self.bytes = self.bytes + size - earlier;
        (upload.chunks.len() as u32, upload.missing())
    }

    fn take_if_complete(&mut self, key: &UploadKey) -> Option<(Vec<u8>, Option<String>)> {
        let upload = self.uploads.get(key)?;
        if upload.chunks.len() < upload.count as usize {
            return None;
        }
        let upload = self.remove(key)?;
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
    let hash = chunk.hash.as_deref();
    check_hash(path, Some(index), &chunk.bytes, hash)
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
            held: Held::default(),
        }
    }

    fn path(text: &str) -> ProjectPath {
        ProjectPath::allowed(text)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn chunks_of_two_clients_do_not_mix() {
        let (uploads, now) = (Uploads::new(100, MINUTE), Instant::now());
        let add = |owner, chunk| {
            let progress = uploads.add(owner, &path("a"), chunk, now).unwrap();
            progress.whole.map(|(bytes, _)| bytes)
        };
        assert_eq!(add("one", chunk(0, 2, b"1")), None);
        assert_eq!(add("two", chunk(1, 2, b"B")), None);
        assert_eq!(add("one", chunk(1, 2, b"2")).as_deref(), Some(&b"12"[..]));
        assert_eq!(uploads.usage(now), (1, 1));
    }

    #[test]
    fn wrong_chunks_are_refused_and_change_nothing() {
        let (uploads, now) = (Uploads::new(4, MINUTE), Instant::now());
        let fault = |chunk| uploads.add("", &path("a"), chunk, now).unwrap_err();
        let beyond = ChunkFault::BeyondCount { index: 2, count: 2 };
        assert_eq!(fault(chunk(2, 2, b"")), bad(&path("a"), beyond));
        let none = ChunkFault::BadCount { count: 0 };
        assert_eq!(fault(chunk(0, 0, b"")), bad(&path("a"), none));
        assert!(matches!(
            fault(chunk(0, 2, b"12345")),
            Error::TooLarge { size: 5, .. }
        ));
        let hashed = Chunk {
            hash: Some("00".to_owned()),
            ..chunk(0, 2, b"1")
        };
        assert!(matches!(
            fault(hashed),
            Error::HashDiffers { chunk: Some(0), .. }
        ));
        assert_eq!(uploads.usage(now), (0, 0));
    }

    #[test]
    fn incomplete_uploads_expire() {
        let (uploads, now) = (Uploads::new(100, MINUTE), Instant::now());
        uploads.add("", &path("a"), chunk(0, 2, b"1"), now).unwrap();
        let later = now + MINUTE;
        let progress = uploads.add("", &path("a"), chunk(1, 2, b"2"), later);
        let progress = progress.unwrap();
        assert_eq!(progress.received, 1, "the first is gone");
        assert!(progress.expired, "and the reply says so");
        let again = uploads.add("", &path("a"), chunk(1, 2, b"2"), later);
        assert!(!again.unwrap().expired, "only once");
    }

    #[test]
    fn another_number_of_chunks_begins_anew() {
        let (uploads, now) = (Uploads::new(100, MINUTE), Instant::now());
        let add = |chunk| uploads.add("", &path("a"), chunk, now).unwrap();
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
            let (uploads, now) = (Uploads::new(10_000, MINUTE), Instant::now());
            let pieces: Vec<&[u8]> = content.chunks(size).collect();
            let count = pieces.len() as u32;
            let (last, others) = pieces.split_last().expect("at least one");
            let add = |index: usize, bytes: &[u8]| {
                uploads.add("", &path("a"), chunk(index as u32, count, bytes), now).unwrap().whole
            };
            let shuffled = order.iter().filter_map(|n| n.checked_rem(others.len()));
            for index in shuffled.chain(0..others.len()) {
                prop_assert_eq!(add(index, others[index]), None);
            }
            prop_assert_eq!(add(others.len(), last), Some((content.clone(), None)));
            prop_assert_eq!(uploads.usage(now), (0, 0));
        }
    }
}
