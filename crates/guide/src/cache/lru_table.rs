//! A hash table that remembers the order in which its entries were used.
//!
//! An entry costs little beside its content: a slot in one vector (key, value, neighbours, expiry) and the slot's number in
//! the hash table. Crates that allocate each entry take 20 to 42 bytes more.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::{CacheKind, CachedValue};

/// The number that stands for no slot.
const NONE: u32 = u32::MAX;
/// The most entries that slot numbers can tell apart.
pub(super) const ENTRIES_LIMIT: u64 = NONE as u64;

/// Entries by kind and path, linked from the most to the least recently used.
#[derive(Debug)]
pub(super) struct LruTable {
    slots: Vec<LruSlot>,
    table: HashTable<u32>,
    hasher: RandomState,
    newest: u32,
    oldest: u32,
    /// The first empty slot.
    free: u32,
}

#[derive(Debug)]
struct LruSlot {
    path: Box<str>,
    /// `None` in an empty slot, whose `older` is then the next empty one.
    value: Option<CachedValue>,
    /// In milliseconds since the cache was created.
    expires: u64,
    newer: u32,
    older: u32,
}

impl LruTable {
    pub(super) fn new() -> LruTable {
        LruTable {
            slots: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::new(),
            newest: NONE,
            oldest: NONE,
            free: NONE,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.table.len() as u64
    }

    /// Returns the slot of an entry.
    pub(super) fn position(&self, kind: CacheKind, path: &str) -> Option<u32> {
        let hash = self.hasher.hash_one((kind, path));
        let is_wanted = |at: &u32| self.slot(*at).is_some_and(|slot| slot.is(kind, path));
        self.table.find(hash, is_wanted).copied()
    }

    pub(super) fn value(&self, at: u32) -> Option<CachedValue> {
        self.slot(at)?.value.clone()
    }

    /// Returns the path and the value in a slot, unless it is empty.
    pub(super) fn entry(&self, at: u32) -> Option<(&str, CachedValue)> {
        let slot = self.slot(at)?;
        Some((&slot.path, slot.value.clone()?))
    }

    pub(super) fn is_expired(&self, at: u32, age: u64) -> bool {
        self.slot(at)
            .is_some_and(|slot| slot.value.is_some() && slot.expires <= age)
    }

    /// Iterates over the numbers of all slots, of which some may be empty.
    pub(super) fn positions(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// Adds an entry, which must not be there yet, as the most recently used.
    pub(super) fn add(&mut self, path: &str, value: CachedValue, expires: u64) {
        let hash = self.hasher.hash_one((value.kind(), path));
        let at = self.place(LruSlot {
            path: path.into(),
            value: Some(value),
            expires,
            newer: NONE,
            older: NONE,
        });
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.table
            .insert_unique(hash, at, |at| rehash(slots, hasher, *at));
        self.link_newest(at);
    }

    /// Gives an entry a new value and makes it the most recently used. Returns the earlier value.
    pub(super) fn replace(
        &mut self,
        at: u32,
        value: CachedValue,
        expires: u64,
    ) -> Option<CachedValue> {
        let slot = self.slots.get_mut(at as usize)?;
        slot.expires = expires;
        let earlier = slot.value.replace(value);
        self.touch(at);
        earlier
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<CachedValue> {
        self.unlink(at);
        let slot = self.slots.get_mut(at as usize)?;
        let (path, value) = (std::mem::take(&mut slot.path), slot.value.take());
        slot.older = self.free;
        self.free = at;
        let value = value?;
        let hash = self.hasher.hash_one((value.kind(), &*path));
        if let Ok(entry) = self.table.find_entry(hash, |own| *own == at) {
            entry.remove();
        }
        Some(value)
    }

    pub(super) fn remove_oldest(&mut self) -> Option<CachedValue> {
        self.remove(self.oldest)
    }

    /// Makes an entry the most recently used.
    pub(super) fn touch(&mut self, at: u32) {
        self.unlink(at);
        self.link_newest(at);
    }

    fn slot(&self, at: u32) -> Option<&LruSlot> {
        self.slots.get(at as usize)
    }

    /// Fills an empty slot, or appends one.
    fn place(&mut self, slot: LruSlot) -> u32 {
        if let Some(empty) = self.slots.get_mut(self.free as usize) {
            let at = self.free;
            self.free = empty.older;
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

    fn link_newest(&mut self, at: u32) {
        let second = self.newest;
        if let Some(slot) = self.slots.get_mut(at as usize) {
            (slot.newer, slot.older) = (NONE, second);
        }
        match self.slots.get_mut(second as usize) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Some((newer, older)) = self.slot(at).map(|slot| (slot.newer, slot.older)) else {
            return;
        };
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

impl LruSlot {
    fn kind(&self) -> Option<CacheKind> {
        self.value.as_ref().map(CachedValue::kind)
    }

    fn is(&self, kind: CacheKind, path: &str) -> bool {
        self.kind() == Some(kind) && &*self.path == path
    }
}

fn rehash(slots: &[LruSlot], hasher: &RandomState, at: u32) -> u64 {
    let slot = slots.get(at as usize);
    let kind = slot.and_then(LruSlot::kind).unwrap_or(CacheKind::File);
    let path = slot.map_or("", |slot| &slot.path);
    hasher.hash_one((kind, path))
}
