//! A directory of the agent: a tree of names with what is known about each.

use crate::error::{Error, Result};
use crate::file::ToldBy;
use crate::project_path::ProjectPath;
use crate::validator::PathValidator;

/// The most entries of one listing, counted over all levels.
pub const ENTRIES_MAX: usize = 30_000;
/// The most levels of one listing; the directory's own entries are the first.
pub const LEVELS_MAX: usize = 32;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which the agent did not follow.
    Symlink,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct PathInfo {
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes, if the agent said so.
    pub size: Option<u64>,
    /// When it was last changed, in seconds since the epoch, if the agent said so.
    pub mtime: Option<f64>,
    /// Its entries, if it is a directory and the agent listed it.
    pub children: Option<Vec<PathInfo>>,
}

impl PathInfo {
    fn bytes(&self) -> u64 {
        let below = self.children.iter().flatten().map(PathInfo::bytes);
        (size_of::<PathInfo>() + self.name.len()) as u64 + below.sum::<u64>()
    }

    /// Tells whether it is a file, or a directory with everything below it.
    pub(crate) fn is_deep(&self) -> bool {
        let known = self.children.as_ref();
        self.kind != EntryKind::Directory || known.is_some_and(|below| is_deep(below))
    }
}

/// A directory as the agent listed it, sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryListing {
    /// The entries of the directory itself.
    pub entries: Vec<PathInfo>,
    /// The pattern that all of its files match, if they were filtered.
    pub pattern: Option<Box<str>>,
    /// When it was handed over, in seconds since the epoch.
    pub stored_at: f64,
    /// How it was handed over.
    pub told_by: ToldBy,
}

/// A function that decides by name and path whether a file matches.
pub(crate) type Accepts<'call> = &'call (dyn Fn(&str, &str) -> bool + Send + Sync);

impl DirectoryListing {
    /// Returns roughly how much memory it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let entries: u64 = self.entries.iter().map(PathInfo::bytes).sum();
        size_of::<DirectoryListing>() as u64 + entries
    }

    /// Tells whether it reaches down to the last directory.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        is_deep(&self.entries)
    }

    /// Returns the entries of a directory below, by binary search at each level.
    #[must_use]
    pub fn below(&self, path: &str) -> Option<&[PathInfo]> {
        let mut entries = self.entries.as_slice();
        for name in path.split('/') {
            entries = found(entries, name)?.children.as_deref()?;
        }
        Some(entries)
    }
}

fn found<'a>(entries: &'a [PathInfo], name: &str) -> Option<&'a PathInfo> {
    let at = entries.binary_search_by(|entry| (*entry.name).cmp(name));
    at.ok().and_then(|at| entries.get(at))
}

fn is_deep(entries: &[PathInfo]) -> bool {
    entries.iter().all(PathInfo::is_deep)
}

/// Counts the files (links among them) and the directories, at every depth.
#[must_use]
pub(crate) fn count(entries: &[PathInfo]) -> (u64, u64) {
    let mut counts = (0, 0);
    for entry in entries {
        let below = count(entry.children.as_deref().unwrap_or(&[]));
        let (files, directories) = match entry.kind {
            EntryKind::Directory => (0, 1),
            EntryKind::File | EntryKind::Symlink => (1, 0),
        };
        counts = (counts.0 + below.0 + files, counts.1 + below.1 + directories);
    }
    counts
}

/// Checks every path of a tree and sorts each level. A name that comes twice is an error.
pub(crate) fn checked(
    validator: &PathValidator,
    directory: &ProjectPath,
    entries: Vec<PathInfo>,
) -> Result<Vec<PathInfo>> {
    let mut check = ListingCheck {
        validator,
        listed: directory.as_str(),
        left: ENTRIES_MAX,
    };
    check.entries(directory, entries, 1)
}

struct ListingCheck<'call> {
    validator: &'call PathValidator,
    listed: &'call str,
    left: usize,
}

impl ListingCheck<'_> {
    fn entries(
        &mut self,
        directory: &ProjectPath,
        entries: Vec<PathInfo>,
        level: usize,
    ) -> Result<Vec<PathInfo>> {
        if level > LEVELS_MAX {
            return Err(self.bad(format!("it is more than {LEVELS_MAX} levels deep")));
        }
        let checked = entries
            .into_iter()
            .map(|entry| self.entry(directory, entry, level));
        let mut entries = checked.collect::<Result<Vec<PathInfo>>>()?;
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut neighbours = entries.iter().zip(entries.iter().skip(1));
        match neighbours.find(|(one, other)| one.name == other.name) {
            Some((one, _)) => Err(self.bad(format!("the name {:?} comes twice", one.name))),
            None => Ok(entries),
        }
    }

    fn entry(
        &mut self,
        directory: &ProjectPath,
        mut entry: PathInfo,
        level: usize,
    ) -> Result<PathInfo> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| self.bad(format!("it has more than {ENTRIES_MAX} entries")))?;
        let path = self.validator.validate_entry(directory, &entry.name)?;
        if let Some(children) = entry.children.take() {
            if entry.kind != EntryKind::Directory {
                return Err(self.bad(format!("{path} is no directory but has children")));
            }
            entry.children = Some(self.entries(&path, children, level + 1)?);
        }
        Ok(entry)
    }

    fn bad(&self, reason: String) -> Error {
        Error::BadListing {
            path: self.listed.to_owned(),
            reason,
        }
    }
}

/// Removes the files that do not match and returns their number. Directories stay. Paths are relative to the listing.
pub(crate) fn filter(entries: &mut Vec<PathInfo>, accepts: Accepts<'_>) -> u64 {
    filter_below("", entries, accepts)
}

fn filter_below(above: &str, entries: &mut Vec<PathInfo>, accepts: Accepts<'_>) -> u64 {
    let mut left_out = 0;
    entries.retain_mut(|entry| {
        let path = match above {
            "" => entry.name.to_string(),
            above => format!("{above}/{}", entry.name),
        };
        let is_wanted = entry.kind == EntryKind::Directory || accepts(&entry.name, &path);
        left_out += u64::from(!is_wanted);
        if let Some(children) = &mut entry.children {
            left_out += filter_below(&path, children, accepts);
        }
        is_wanted
    });
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathInfo {
        PathInfo {
            name: name.into(),
            kind: EntryKind::File,
            size: None,
            mtime: None,
            children: None,
        }
    }

    fn directory(name: &str, children: Option<Vec<PathInfo>>) -> PathInfo {
        PathInfo {
            kind: EntryKind::Directory,
            children,
            ..file(name)
        }
    }

    fn listing(entries: Vec<PathInfo>) -> DirectoryListing {
        DirectoryListing {
            entries,
            pattern: None,
            stored_at: 0.0,
            told_by: ToldBy::Tool,
        }
    }

    #[test]
    fn a_tree_is_found_through_by_names() {
        let inner = directory("inner", Some(vec![file("deep.md")]));
        let tree = listing(vec![directory("a", Some(vec![inner])), file("b")]);
        assert_eq!(tree.below("a/inner"), Some(&[file("deep.md")][..]));
        assert_eq!(tree.below("a/other"), None);
        assert_eq!(tree.below("b"), None);
        assert!(tree.is_deep());
        assert!(!listing(vec![directory("a", None)]).is_deep());
        assert_eq!(count(&tree.entries), (2, 2));
    }

    #[test]
    fn filters_take_files_and_leave_directories() {
        let mut entries = vec![
            directory("a", Some(vec![file("x.md"), file("x.rs")])),
            file("y.rs"),
        ];
        let left_out = filter(&mut entries, &|name, _| name.ends_with(".md"));
        assert_eq!(left_out, 2);
        assert_eq!(entries, [directory("a", Some(vec![file("x.md")]))]);
        let left_out = filter(&mut entries, &|_, path| path == "a/x.md");
        assert_eq!(left_out, 0);
    }

    #[test]
    fn size_in_memory_counts_every_name() {
        let small = listing(vec![file("a")]).bytes();
        let large = listing(vec![directory("b", Some(vec![file(&"n".repeat(200))]))]).bytes();
        assert!(large > small + 200);
    }
}
