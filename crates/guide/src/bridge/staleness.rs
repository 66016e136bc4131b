//! Which cached entries a new listing shows to be out of date.

use super::ClientBridge;
use super::list_directory::ancestors;
use crate::cache::{CacheKind, CachedValue};
use crate::file::AgentFile;
use crate::listing::{Accepts, DirectoryListing, EntryKind, PathInfo};
use crate::project_path::{PROJECT_ROOT, ProjectPath};
use crate::time::Now;

impl ClientBridge {
    /// Returns the size of a file, if a cached listing tells it.
    pub(super) fn listed_size(&self, path: &ProjectPath, now: Now) -> Option<u64> {
        let cache = &self.parts.cache;
        ancestors(path.as_str()).find_map(|(directory, below)| {
            let held = cache.peek(&self.owner, CacheKind::Listing, directory, now.steady)?;
            let CachedValue::Listing(listing) = held else {
                return None;
            };
            match shown(&listing, None, below) {
                ShownEntry::There(entry) => entry.size,
                ShownEntry::Gone | ShownEntry::Unknown => None,
            }
        })
    }
}

/// Tells whether an entry is not what a new listing of a directory says. `accepts` is the listing's filter.
pub(super) fn is_stale(
    path: &str,
    value: &CachedValue,
    directory: &str,
    listing: &DirectoryListing,
    accepts: Option<Accepts<'_>>,
) -> bool {
    let Some(below) = below(path, directory) else {
        return false;
    };
    let shown = shown(listing, accepts, below);
    match value {
        // The listing is that of the directory itself.
        _ if below.is_empty() => false,
        CachedValue::File(file) => is_stale_file(file, &shown),
        CachedValue::Listing(_) => is_stale_listing(&shown, listing),
    }
}

/// What a listing says about a path below its directory.
enum ShownEntry<'a> {
    /// Nothing: the listing does not reach so far, or leaves such names out.
    Unknown,
    /// It is not there.
    Gone,
    /// It is there.
    There(&'a PathInfo),
}

fn shown<'a>(
    listing: &'a DirectoryListing,
    accepts: Option<Accepts<'_>>,
    below: &str,
) -> ShownEntry<'a> {
    let is_filtered = listing.pattern.is_some();
    let mut entries = listing.entries.as_slice();
    let mut names = below.split('/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let at = entries.binary_search_by(|entry| (*entry.name).cmp(name));
        let entry = at.ok().and_then(|at| entries.get(at));
        match entry {
            Some(entry) if is_last => return ShownEntry::There(entry),
            Some(entry) => match (entry.kind, &entry.children) {
                (EntryKind::Directory, Some(children)) => entries = children,
                (EntryKind::File, _) => return ShownEntry::Gone,
                (EntryKind::Directory | EntryKind::Symlink, _) => return ShownEntry::Unknown,
            },
            None if !is_filtered => return ShownEntry::Gone,
            None => {
                let is_wanted = is_last && accepts.is_some_and(|accepts| accepts(name, below));
                return if is_wanted {
                    ShownEntry::Gone
                } else {
                    ShownEntry::Unknown
                };
            }
        }
    }
    ShownEntry::Unknown
}

/// Returns the way from a directory down to a path; empty for the directory itself.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if path == directory {
        return Some("");
    }
    if directory == PROJECT_ROOT {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

fn is_stale_file(file: &AgentFile, shown: &ShownEntry<'_>) -> bool {
    let entry = match shown {
        ShownEntry::Unknown => return false,
        ShownEntry::Gone => return true,
        ShownEntry::There(entry) => entry,
    };
    match entry.kind {
        EntryKind::Directory => true,
        // Size and time are those of the link.
        EntryKind::Symlink => false,
        EntryKind::File => has_other_size(file, entry) || has_other_time(file, entry),
    }
}

fn has_other_size(file: &AgentFile, entry: &PathInfo) -> bool {
    let known = || file.bytes().map(|bytes| bytes.len() as u64);
    entry
        .size
        .is_some_and(|size| known().is_some_and(|known| known != size))
}

fn has_other_time(file: &AgentFile, entry: &PathInfo) -> bool {
    match (entry.mtime, file.mtime) {
        (None, _) => false,
        (Some(listed), Some(own)) => !is_same_time(listed, own),
        (Some(listed), None) => file.is_older_than(listed),
    }
}

/// Compares two times. Some programs tell whole seconds only.
fn is_same_time(one: f64, other: f64) -> bool {
    let is_rough = one.fract() == 0.0 || other.fract() == 0.0;
    one == other || (is_rough && one.floor() == other.floor())
}

/// A listing of a directory is dropped if the directory is gone, or if the new listing has everything below it.
fn is_stale_listing(shown: &ShownEntry<'_>, listing: &DirectoryListing) -> bool {
    match shown {
        ShownEntry::Unknown => false,
        ShownEntry::Gone => true,
        ShownEntry::There(entry) => match entry.kind {
            EntryKind::File => true,
            EntryKind::Symlink => false,
            EntryKind::Directory => listing.pattern.is_none() && entry.is_deep(),
        },
    }
}
