//! The lists of directories that searches met, so that the next search need not read them again.
//!
//! A list is taken from here only while the directory's device, inode and times are what they were when it was read. It is
//! kept only if the directory's last change was long over when the search began, and if its times were the same after it
//! was read: two changes in quick succession can leave the same times. Nothing here is kept of a file system whose
//! directories do not show their changes so ([`Dir::list_stamp`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dir::{Dir, RawEntry, TakeName, Unlisted};
use crate::error::Result;
use crate::metadata::{FileKind, Metadata, Time};

/// How many searches have to pass without meeting a directory until it is forgotten for want of room.
const UNMET_MAX: u32 = 16;
/// The memory of a list besides its names: its counters and the allocator's overhead.
const LIST_OVERHEAD: usize = 48;

/// The lists of the directories of all roots, within a bound.
#[derive(Debug)]
pub struct Listings {
    limit: usize,
    kept: Mutex<KeptListings>,
}

#[derive(Debug, Default)]
struct KeptListings {
    directories: HashMap<(u64, u64), KeptListing>,
    /// The memory of the lists, without the table.
    list_bytes: usize,
    /// The search that last looked for lists to forget.
    swept: u32,
}

#[derive(Debug)]
struct KeptListing {
    modified: Time,
    changed: Time,
    /// The search that last met the directory.
    met: u32,
    entries: Arc<[u8]>,
}

/// The lists that one search uses.
#[derive(Debug, Clone)]
pub struct ListingVisit {
    /// What is remembered.
    pub listings: Arc<Listings>,
    /// The number of the search.
    pub number: u32,
    /// What changed before this moment changed long enough ago to be remembered.
    pub settled_before: Time,
}

impl Listings {
    /// Remembers nothing yet, and never more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Listings {
        Listings {
            limit,
            kept: Mutex::default(),
        }
    }

    /// Forgets everything.
    pub fn forget(&self) {
        *self.kept() = KeptListings::default();
    }

    /// How many bytes are held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept().bytes()
    }

    fn kept(&self) -> MutexGuard<'_, KeptListings> {
        // After a panic the table is still a table of lists.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, now: &Metadata, search: u32) -> Option<Arc<[u8]>> {
        let mut kept = self.kept();
        let listing = kept.directories.get_mut(&(now.device, now.inode))?;
        let is_same = (listing.modified, listing.changed) == (now.modified, now.changed);
        listing.met = search;
        is_same.then(|| Arc::clone(&listing.entries))
    }

    fn keep(&self, now: &Metadata, search: u32, entries: Arc<[u8]>) {
        let mut kept = self.kept();
        let key = (now.device, now.inode);
        kept.remove(key);
        if !kept.has_room(entries.len(), self.limit) {
            kept.sweep(search);
        }
        if kept.has_room(entries.len(), self.limit) {
            kept.list_bytes += entries.len() + LIST_OVERHEAD;
            let listing = KeptListing {
                modified: now.modified,
                changed: now.changed,
                met: search,
                entries,
            };
            kept.directories.insert(key, listing);
        }
    }
}

impl KeptListings {
    fn bytes(&self) -> usize {
        self.list_bytes + table_bytes(self.directories.capacity())
    }

    /// Tells whether a list of this length fits, including the larger table that it may need while the old one still
    /// exists.
    fn has_room(&self, length: usize, limit: usize) -> bool {
        let capacity = self.directories.capacity();
        let is_full = self.directories.len() >= capacity;
        let grown = if is_full {
            table_bytes(capacity.max(4) * 2)
        } else {
            0
        };
        self.bytes() + grown + length + LIST_OVERHEAD <= limit
    }

    fn remove(&mut self, key: (u64, u64)) {
        if let Some(listing) = self.directories.remove(&key) {
            self.list_bytes -= listing.entries.len() + LIST_OVERHEAD;
        }
    }

    /// Forgets what many searches did not meet; at most once for so many searches.
    fn sweep(&mut self, search: u32) {
        if search.wrapping_sub(self.swept) < UNMET_MAX {
            return;
        }
        self.swept = search;
        let is_met = |listing: &KeptListing| search.wrapping_sub(listing.met) <= UNMET_MAX;
        self.directories.retain(|_, listing| is_met(listing));
        self.directories.shrink_to_fit();
        let lengths = self.directories.values().map(|kept| kept.entries.len());
        self.list_bytes = lengths.map(|length| length + LIST_OVERHEAD).sum();
    }
}

/// The most memory of a table with room for this many directories.
fn table_bytes(capacity: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let slot = size_of::<((u64, u64), KeptListing)>() + 1;
    (capacity * 8 / 7 + 16).next_power_of_two() * slot
}

impl ListingVisit {
    /// Feeds every name and kind to `take`, from memory or by reading the directory.
    pub(crate) fn for_each_name(
        &self,
        dir: &Dir,
        unlisted: Unlisted,
        take: TakeName<'_>,
    ) -> Result<()> {
        // Security: a remembered list is shared by all callers, so it is filtered again for each.
        let mut list = |take: TakeName<'_>| self.for_each_known(dir, unlisted, take);
        dir.for_each_seen(unlisted, &mut list, take)
    }

    fn for_each_known(&self, dir: &Dir, unlisted: Unlisted, take: TakeName<'_>) -> Result<()> {
        let Some(before) = dir.list_stamp() else {
            return dir.for_each_stored(unlisted, take);
        };
        let mut feed = |name: &[u8], listed| {
            if unlisted.lists(name) {
                take(name, listed);
            }
        };
        if let Some(entries) = self.listings.find(&before, self.number) {
            replay(&entries, &mut feed);
            return Ok(());
        }
        let is_settled = before.changed.max(before.modified) < self.settled_before;
        let mut lesson = is_settled.then(Vec::new);
        dir.for_each_name(Unlisted::All, &mut |name, listed| {
            record(&mut lesson, self.listings.limit, name, listed);
            feed(name, listed);
        })?;
        let is_unchanged = || {
            dir.list_stamp()
                .is_some_and(|after| after.same_state(&before))
        };
        if let Some(entries) = lesson.filter(|_| is_unchanged()) {
            let entries = in_path_order(&entries);
            self.listings.keep(&before, self.number, entries);
        }
        Ok(())
    }
}

/// Adds an entry to what is to be remembered. Gives up if the kind is unknown or the list alone is too large.
fn record(lesson: &mut Option<Vec<u8>>, limit: usize, name: &[u8], listed: RawEntry) {
    let Some(entries) = lesson else {
        return;
    };
    if entries.len() >= limit || write(entries, name, listed).is_none() {
        *lesson = None;
    }
}

/// Writes an entry: its kind, the length of its name, its inode and the name.
fn write(entries: &mut Vec<u8>, name: &[u8], listed: RawEntry) -> Option<()> {
    let kind = kind_number(listed.kind)?;
    let length = u8::try_from(name.len()).ok()?;
    entries.extend([kind, length]);
    entries.extend(listed.inode.to_ne_bytes());
    entries.extend_from_slice(name);
    Some(())
}

/// What can be remembered, by its number.
const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

fn kind_number(kind: FileKind) -> Option<u8> {
    let at = KINDS.iter().position(|known| *known == kind)?;
    u8::try_from(at).ok()
}

fn replay(entries: &[u8], take: TakeName<'_>) {
    for (name, listed) in each(entries) {
        take(name, listed);
    }
}

/// The names of a remembered list, and what was listed of them.
fn each(entries: &[u8]) -> impl Iterator<Item = (&[u8], RawEntry)> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let [kind, length, behind @ ..] = rest else {
            return None;
        };
        let (inode, behind) = behind.split_first_chunk()?;
        let (name, behind) = behind.split_at_checked(usize::from(*length))?;
        rest = behind;
        let listed = RawEntry {
            kind: *KINDS.get(usize::from(*kind))?,
            inode: u64::from_ne_bytes(*inode),
        };
        Some((name, listed))
    })
}

/// Returns the list in walk order. Sorting an already sorted list is cheap.
fn in_path_order(entries: &[u8]) -> Arc<[u8]> {
    let mut sorted: Vec<_> = each(entries).collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let mut ordered = Vec::with_capacity(entries.len());
    for (name, listed) in sorted {
        // All of them were written once.
        let _ = write(&mut ordered, name, listed);
    }
    ordered.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Vec<u8> {
        let mut lesson = Some(Vec::new());
        for name in names {
            record(&mut lesson, 1000, name.as_bytes(), listed(FileKind::File));
        }
        lesson.unwrap()
    }

    fn listed(kind: FileKind) -> RawEntry {
        RawEntry {
            kind,
            inode: 1 << 40,
        }
    }

    fn directory(inode: u64) -> Metadata {
        Metadata {
            kind: FileKind::Directory,
            size: 4096,
            mode: 0o755,
            uid: 0,
            gid: 0,
            links: 2,
            modified: Time::default(),
            accessed: Time::default(),
            changed: Time::default(),
            created: None,
            device: 1,
            inode,
        }
    }

    #[test]
    fn what_is_recorded_is_replayed_in_order() {
        let ordered = in_path_order(&entries(&["b", "a.txt", "a"]));
        let names: Vec<&[u8]> = each(&ordered).map(|(name, _)| name).collect();
        assert_eq!(names, [&b"a"[..], b"a.txt", b"b"]);
        assert!(each(&ordered).all(|(_, entry)| entry == listed(FileKind::File)));
        let mut lesson = Some(Vec::new());
        record(&mut lesson, 1000, b"odd", listed(FileKind::Unknown));
        assert_eq!(lesson, None);
        let mut lesson = Some(entries(&["a name that is long enough"]));
        record(&mut lesson, 10, b"more", listed(FileKind::File));
        assert_eq!(lesson, None);
    }

    #[test]
    fn the_bound_holds_and_what_is_not_met_goes_first() {
        let limit = 20_000;
        let listings = Listings::new(limit);
        let entries: Arc<[u8]> = entries(&["one", "two", "three"]).into();
        for inode in 0..1000 {
            listings.keep(&directory(inode), 1, Arc::clone(&entries));
            assert!(listings.bytes() <= limit);
        }
        assert!(listings.find(&directory(0), 1).is_some());
        assert!(listings.find(&directory(999), 1).is_none());
        for search in 2..40 {
            assert!(listings.find(&directory(0), search).is_some());
        }
        listings.keep(&directory(999), 40, Arc::clone(&entries));
        assert!(listings.find(&directory(999), 40).is_some());
        assert!(listings.find(&directory(0), 40).is_some());
        assert!(listings.find(&directory(1), 40).is_none());
        listings.forget();
        assert!(listings.find(&directory(0), 41).is_none());
        assert!(listings.bytes() < 2000);
    }

    #[test]
    fn another_stamp_is_another_directory() {
        let listings = Listings::new(10_000);
        listings.keep(&directory(1), 1, entries(&["one"]).into());
        let mut changed = directory(1);
        changed.changed.nanoseconds = 1;
        assert!(listings.find(&changed, 1).is_none());
        assert!(listings.find(&directory(1), 1).is_some());
        let elsewhere = Metadata {
            device: 2,
            ..directory(1)
        };
        assert!(listings.find(&elsewhere, 1).is_none());
    }
}
