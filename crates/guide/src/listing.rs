//! A directory of the agent: a tree of names with what is known of each.

use crate::error::{Error, Result};
use crate::policy::{PathValidator, ProjectPath, joined};

/// The most entries of one listing, at every level together.
pub const ENTRIES_MAX: usize = 30_000;
/// The most levels of one listing; the directory's own entries are the first.
pub const LEVELS_MAX: usize = 32;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link, which the agent did not follow.
    Symlink,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct PathInfo {
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes, where the agent said so.
    pub size: Option<u64>,
    /// When it was changed, in seconds since the epoch, where the agent said so.
    pub mtime: Option<f64>,
    /// What is in it, where it is a directory and the agent looked.
    pub children: Option<Vec<PathInfo>>,
}

impl PathInfo {
    fn bytes(&self) -> u64 {
        let below = self.children.iter().flatten().map(PathInfo::bytes);
        (size_of::<PathInfo>() + self.name.len()) as u64 + below.sum::<u64>()
    }

    fn is_deep(&self) -> bool {
        let known = self.children.as_ref();
        self.kind != EntryKind::Directory || known.is_some_and(|below| is_deep(below))
    }
}

/// A directory as the agent told it, in the order of names.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryListing {
    /// The entries of the directory itself.
    pub entries: Vec<PathInfo>,
    /// Only files that match this are in it.
    pub pattern: Option<Box<str>>,
    /// When it was told, in seconds since the epoch.
    pub stored_at: f64,
}

/// Tells by name and path whether a file is wanted.
pub(crate) type Accepts<'call> = &'call (dyn Fn(&str, &str) -> bool + Send + Sync);

impl DirectoryListing {
    /// Tells roughly what it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let entries: u64 = self.entries.iter().map(PathInfo::bytes).sum();
        size_of::<DirectoryListing>() as u64 + entries
    }

    /// Tells whether it goes down to the last directory.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        is_deep(&self.entries)
    }

    /// What is in a directory below, given by its names; each step is a binary search.
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

/// How many entries there are, counted by what they are.
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

/// Every entry with its path, from the top.
pub(crate) fn visit(directory: &str, entries: &[PathInfo], see: &mut dyn FnMut(&str, &PathInfo)) {
    for entry in entries {
        let path = joined(directory, &entry.name);
        see(&path, entry);
        visit(&path, entry.children.as_deref().unwrap_or(&[]), see);
    }
}

/// Judges every path of a tree and puts it in order; a name that comes twice is a mistake.
pub(crate) fn admitted(
    validator: &PathValidator,
    directory: &ProjectPath,
    entries: Vec<PathInfo>,
) -> Result<Vec<PathInfo>> {
    let mut admission = Admission {
        validator,
        listed: directory.as_str(),
        left: ENTRIES_MAX,
    };
    admission.entries(directory, entries, 1)
}

struct Admission<'call> {
    validator: &'call PathValidator,
    listed: &'call str,
    left: usize,
}

impl Admission<'_> {
    fn entries(
        &mut self,
        directory: &ProjectPath,
        entries: Vec<PathInfo>,
        level: usize,
    ) -> Result<Vec<PathInfo>> {
        if level > LEVELS_MAX {
            return Err(self.bad(format!("it is more than {LEVELS_MAX} levels deep")));
        }
        let admitted = entries
            .into_iter()
            .map(|entry| self.entry(directory, entry, level));
        let mut entries = admitted.collect::<Result<Vec<PathInfo>>>()?;
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

/// Leaves out the files that are not wanted, and says how many; directories stay. Paths are relative to the listing.
pub(crate) fn filtered(entries: &mut Vec<PathInfo>, accepts: Accepts<'_>) -> u64 {
    filtered_below("", entries, accepts)
}

fn filtered_below(above: &str, entries: &mut Vec<PathInfo>, accepts: Accepts<'_>) -> u64 {
    let mut left_out = 0;
    entries.retain_mut(|entry| {
        let path = match above {
            "" => entry.name.to_string(),
            above => format!("{above}/{}", entry.name),
        };
        let is_wanted = entry.kind == EntryKind::Directory || accepts(&entry.name, &path);
        left_out += u64::from(!is_wanted);
        if let Some(children) = &mut entry.children {
            left_out += filtered_below(&path, children, accepts);
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
        let left_out = filtered(&mut entries, &|name, _| name.ends_with(".md"));
        assert_eq!(left_out, 2);
        assert_eq!(entries, [directory("a", Some(vec![file("x.md")]))]);
        let left_out = filtered(&mut entries, &|_, path| path == "a/x.md");
        assert_eq!(left_out, 0);
    }

    #[test]
    fn size_in_memory_counts_every_name() {
        let small = listing(vec![file("a")]).bytes();
        let large = listing(vec![directory("b", Some(vec![file(&"n".repeat(200))]))]).bytes();
        assert!(large > small + 200);
    }
}
