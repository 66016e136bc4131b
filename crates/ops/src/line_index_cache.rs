//! The line indexes of files that were read by lines recently, so that the next read need not count again.
//!
//! Bounded: [`FILES_MAX`] indexes of 128 KiB at most. An index is for one state of one file, known by device, inode,
//! size and times. A file that changed a moment ago is not remembered: the next change might not show in its times. Nor
//! is a file that was open for writing when the read began, nor one on a file system whose times do not show every
//! change ([`OpenFile::is_stamping`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use sandbox::{Metadata, OpenFile, Time};

use crate::text::line_index::LineIndex;

/// How many files are remembered; the least recently used are dropped first.
const FILES_MAX: usize = 32;

/// How many seconds must have passed since a file's last change: two changes in quick succession may leave the same times.
const SETTLED: i64 = 2;

/// One state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    modified: Time,
    changed: Time,
}

impl FileVersion {
    fn of(metadata: &Metadata) -> FileVersion {
        FileVersion {
            device: metadata.device,
            inode: metadata.inode,
            size: metadata.size,
            modified: metadata.modified,
            changed: metadata.changed,
        }
    }

    /// Tells whether the last change is long enough ago for another one to show in the times.
    fn is_settled(&self, patience: i64) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
        let last = self.changed.seconds.max(self.modified.seconds);
        last.saturating_add(patience) <= now
    }
}

/// The line indexes of the process.
#[derive(Debug)]
pub struct LineIndexCache {
    /// The most recently used first.
    held: Mutex<VecDeque<(FileVersion, Arc<LineIndex>)>>,
    /// For how many seconds a file that was just changed is not remembered.
    patience: i64,
    /// Tests of what is remembered run on any file system.
    trusts_all: bool,
}

impl Default for LineIndexCache {
    fn default() -> LineIndexCache {
        LineIndexCache {
            held: Mutex::default(),
            patience: SETTLED,
            trusts_all: false,
        }
    }
}

impl LineIndexCache {
    /// The index of an open file; `None` if it was never read or has changed.
    pub(crate) fn find(&self, open: &OpenFile) -> Arc<LineIndex> {
        let state = FileVersion::of(&open.metadata);
        let mut held = self.held();
        let found = held.iter().position(|(known, _)| *known == state);
        let Some(entry) = found.and_then(|at| held.remove(at)) else {
            return Arc::default();
        };
        let index = Arc::clone(&entry.1);
        held.push_front(entry);
        index
    }

    /// Tells whether what is read of a file from now on may be remembered.
    ///
    /// Checked before the read: a store through an existing mapping may not show in the times.
    pub(crate) fn may_learn(&self, open: &OpenFile) -> bool {
        self.trusts_all || open.is_stamping()
    }

    /// Remembers what was learnt, unless the file changed meanwhile, or another call learnt more.
    pub(crate) fn keep(&self, open: &OpenFile, index: Arc<LineIndex>) {
        let state = FileVersion::of(&open.metadata);
        let now = open.current().map(|now| FileVersion::of(&now));
        if !state.is_settled(self.patience) || now.ok() != Some(state) {
            return;
        }
        let mut held = self.held();
        let same = |known: &FileVersion| (known.device, known.inode) == (state.device, state.inode);
        if let Some(at) = held.iter().position(|(known, _)| same(known)) {
            let further = |(known, old): &(FileVersion, Arc<LineIndex>)| {
                *known == state && old.known().offset > index.known().offset
            };
            if held.get(at).is_some_and(further) {
                return;
            }
            held.remove(at);
        }
        held.push_front((state, index));
        held.truncate(FILES_MAX);
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<(FileVersion, Arc<LineIndex>)>> {
        // After a panic the list is still a valid list of indexes.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, context};
    use crate::{
        Body, Contents, Context, Operation, Oversize, Read, ReadRange, StoredForm, TextPolicy,
        Totals,
    };
    use proptest::prelude::*;

    /// A context that remembers files however new they are.
    fn eager() -> Context {
        remembering(true)
    }

    fn remembering(trusts_all: bool) -> Context {
        Context {
            line_index_cache: Arc::new(LineIndexCache {
                patience: 0,
                trusts_all,
                ..LineIndexCache::default()
            }),
            ..context()
        }
    }

    fn lines(tree: &Tree, context: &Context, offset: i64) -> Contents {
        let read = Read {
            place: tree.place("file"),
            range: ReadRange::Lines {
                offset,
                limit: Some(2),
            },
            max_bytes: None,
            oversize: Oversize::Cut,
            text: TextPolicy::Detect,
            totals: Totals::Count,
            form: StoredForm::AsStored,
        };
        read.run(context).unwrap()
    }

    fn opened(tree: &Tree) -> OpenFile {
        tree.root.open_file(&tree.place("file").path).unwrap()
    }

    fn numbered(count: u64) -> String {
        (1..=count).map(|number| format!("{number:09}\n")).collect()
    }

    #[test]
    fn what_was_counted_once_is_known() {
        let tree = Tree::new();
        tree.file("file", numbered(50_000));
        let context = eager();
        assert_eq!(lines(&tree, &context, 40_000).lines_total, Some(50_000));
        let index = context.line_index_cache.find(&opened(&tree));
        assert_eq!(index.lines(), Some(50_000));
        assert!(index.before_line(40_000).offset > 300_000);
    }

    #[test]
    fn what_is_known_is_used() {
        let tree = Tree::new();
        tree.file("file", numbered(50_000));
        let context = eager();
        let mut false_index = LineIndex::default();
        false_index.learn(0, b"one line", 0);
        false_index.end();
        context
            .line_index_cache
            .keep(&opened(&tree), Arc::new(false_index));
        assert_eq!(lines(&tree, &context, 1).lines_total, Some(1));
    }

    #[test]
    fn a_changed_file_is_counted_anew() {
        let tree = Tree::new();
        let context = eager();
        for count in [50_000, 60_000, 40_000] {
            tree.file("file", numbered(count));
            let contents = lines(&tree, &context, -1);
            assert_eq!(contents.lines_total, Some(count));
            assert_eq!(contents.start_line, Some(count));
        }
        assert_eq!(context.line_index_cache.held().len(), 1);
    }

    #[test]
    fn a_store_through_a_mapping_that_leaves_the_times_is_counted() {
        let tree = Tree::new();
        tree.file("file", numbered(50_000));
        let context = remembering(false);
        let mut mapped = lease::mapping::MappedFile::open(&tree.host("file")).unwrap();
        // The page is dirty: what is stored from now on does not show in the file's times.
        mapped.store(0, b'x');
        for (at, total) in [(1, 50_000), (2, 50_001), (3, 50_002)] {
            assert_eq!(lines(&tree, &context, 1).lines_total, Some(total));
            mapped.store(at, b'\n');
        }
        assert!(context.line_index_cache.held().is_empty());
    }

    #[test]
    fn new_and_small_files_are_not_remembered() {
        let tree = Tree::new();
        let (eager, usual) = (eager(), context());
        tree.file("file", numbered(50_000));
        lines(&tree, &usual, 3);
        tree.file("file", numbered(50));
        lines(&tree, &eager, 3);
        assert!(
            usual.line_index_cache.held().is_empty() && eager.line_index_cache.held().is_empty()
        );
    }

    #[test]
    fn the_files_used_longest_ago_are_forgotten() {
        let tree = Tree::new();
        let indexes = LineIndexCache {
            patience: 0,
            ..LineIndexCache::default()
        };
        let files: Vec<OpenFile> = (0..FILES_MAX + 2)
            .map(|number| {
                let name = format!("file{number}");
                tree.file(&name, "x");
                tree.root.open_file(&tree.place(&name).path).unwrap()
            })
            .collect();
        let mut known = LineIndex::default();
        known.learn(0, b"x", 0);
        for open in &files {
            indexes.keep(open, Arc::new(known.clone()));
            indexes.find(&files[0]);
        }
        assert_eq!(indexes.held().len(), FILES_MAX);
        let remembered = |at: usize| indexes.find(&files[at]).known().offset > 0;
        assert!(remembered(0) && !remembered(1) && remembered(FILES_MAX + 1));
    }

    #[test]
    fn lines_come_without_a_total_where_counting_takes_too_long() {
        let tree = Tree::new();
        tree.file("file", numbered(2_000));
        tree.stretch("file", 1 << 40);
        let context = Context {
            cancel: crate::Cancel::after(std::time::Duration::from_secs(4)),
            ..eager()
        };
        let contents = lines(&tree, &context, 1_500);
        assert_eq!(
            contents.body,
            Body::Text("000001500\n000001501\n".to_owned())
        );
        assert_eq!(contents.start_line, Some(1_500));
        assert_eq!(contents.lines_total, None);
        assert!(contents.truncated);
        let learnt = context.line_index_cache.find(&opened(&tree));
        assert!(learnt.known().offset > 1 << 20 && learnt.lines().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn reads_that_share_an_index_agree_with_splitting(
            widths in proptest::collection::vec(0_usize..3000, 400..800),
            offsets in proptest::collection::vec(-900_i64..900, 1..12),
        ) {
            let tree = Tree::new();
            let content: String = widths.iter().map(|&width| "x".repeat(width) + "\n").collect();
            let content = content.trim_end_matches('\n');
            tree.file("file", content);
            let all: Vec<&str> = content.split_inclusive('\n').collect();
            let context = eager();
            for offset in offsets.into_iter().filter(|&offset| offset != 0) {
                let first = match offset {
                    ..0 => all.len().saturating_sub(offset.unsigned_abs() as usize),
                    _ => (offset.unsigned_abs() as usize - 1).min(all.len()),
                };
                let expected: String = all[first..].iter().take(2).copied().collect();
                let contents = lines(&tree, &context, offset);
                prop_assert_eq!(contents.body, Body::Text(expected));
                prop_assert_eq!(contents.lines_total, Some(all.len() as u64));
                prop_assert_eq!(contents.start_line, (first < all.len()).then_some(first as u64 + 1));
            }
        }
    }
}
