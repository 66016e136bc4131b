//! The names of a large directory, in one piece of memory.
//!
//! Each in memory of its own would leave as many small pieces behind when they are described, which stay with the process.

use std::ops::Range;

use sandbox::{DirEntry, FileKind, Name};

/// Names with their kinds.
#[derive(Debug, Default)]
pub(crate) struct NameList {
    bytes: Vec<u8>,
    names: Vec<ListedName>,
}

#[derive(Debug)]
struct ListedName {
    start: usize,
    length: u16,
    kind: FileKind,
}

impl NameList {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: &DirEntry) {
        let name = entry.name.as_bytes();
        // No file system has longer names than 1,020 bytes.
        let Ok(length) = u16::try_from(name.len()) else {
            return;
        };
        self.names.push(ListedName {
            start: self.bytes.len(),
            length,
            kind: entry.kind,
        });
        self.bytes.extend_from_slice(name);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Sorts them by their bytes.
    pub(crate) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.names
            .sort_unstable_by(|one, other| one.of(bytes).cmp(other.of(bytes)));
    }

    /// Keeps the first ones.
    pub(crate) fn truncate(&mut self, most: usize) {
        self.names.truncate(most);
    }
}

impl ListedName {
    fn of<'list>(&self, bytes: &'list [u8]) -> &'list [u8] {
        let end = self.start + usize::from(self.length);
        bytes.get(self.start..end).unwrap_or_default()
    }
}

impl IntoIterator for NameList {
    type Item = DirEntry;
    type IntoIter = NameListEntries;

    fn into_iter(self) -> NameListEntries {
        NameListEntries {
            left: 0..self.names.len(),
            list: self,
        }
    }
}

/// The entries of a list, made one by one.
#[derive(Debug)]
pub(crate) struct NameListEntries {
    list: NameList,
    left: Range<usize>,
}

impl Iterator for NameListEntries {
    type Item = DirEntry;

    fn next(&mut self) -> Option<DirEntry> {
        let listed = self.list.names.get(self.left.next()?)?;
        Some(DirEntry {
            name: Name::new(listed.of(&self.list.bytes))?,
            kind: listed.kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_sorted_as_bytes() {
        let mut list = NameList::default();
        for (name, kind) in [
            (&b"b"[..], FileKind::File),
            (b"a-", FileKind::Directory),
            (b"\xff", FileKind::Fifo),
            (b"a", FileKind::Symlink),
        ] {
            let name = Name::new(name).unwrap();
            list.push(&DirEntry { name, kind });
        }
        list.sort();
        list.truncate(3);
        assert_eq!(list.len(), 3);
        let entries = list.into_iter();
        let found: Vec<_> = entries.map(|entry| (entry.name, entry.kind)).collect();
        let name = |bytes: &[u8]| Name::new(bytes).unwrap();
        assert_eq!(
            found,
            [
                (name(b"a"), FileKind::Symlink),
                (name(b"a-"), FileKind::Directory),
                (name(b"b"), FileKind::File),
            ]
        );
    }
}
