//! Knows where the lines of each change are, so that only requested ones are read. It is built from the beginning of
//! each line and can be continued: a hundred thousand changes take about three megabytes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::journal::{self, is_finished, open_record, stem_of};
use super::lines::each_line;
use super::record::{End, Line, end_of, glance};
use super::store::Store;
use crate::name::Name;
use crate::syscall::SysResult;

/// How many bits of a place say where in its file a line is; those above them say which file.
const OFFSET_BITS: u32 = 40;
/// How many bits beside a number say how the change ended.
const END_BITS: u32 = 2;

/// The marks of lines that say which changes are undone, and which parts failed. Quotes inside of texts are escaped.
static UNDOES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""undoes":["#));
static FAILED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""failed":["#));

/// Where a line is that is not the end of its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineAt {
    pub(super) number: u64,
    place: u64,
}

impl LineAt {
    fn new(number: u64, file: usize, offset: u64) -> Option<LineAt> {
        let is_small = offset < 1 << OFFSET_BITS && (file as u64) < 1 << (64 - OFFSET_BITS);
        let place = ((file as u64) << OFFSET_BITS) | offset;
        is_small.then_some(LineAt { number, place })
    }

    pub(super) fn file(self) -> usize {
        (self.place >> OFFSET_BITS) as usize
    }

    pub(super) fn offset(self) -> u64 {
        self.place & ((1 << OFFSET_BITS) - 1)
    }
}

/// A record file, as far as it was read.
#[derive(Debug, Clone)]
struct IndexedFile {
    name: Name,
    seen: u64,
    /// Nothing will be added to it.
    is_finished: bool,
}

/// The positions of all records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    files: Vec<IndexedFile>,
    /// In order; the lines of one change are in one file.
    lines: Vec<LineAt>,
    /// Numbers, each with how it ended, in order.
    ends: Vec<u64>,
    undoes: BTreeMap<u64, Vec<u64>>,
    /// The changes with parts that did not happen.
    failing: BTreeSet<u64>,
    /// The parts that did not happen according to the ends of changes: a dead process's work was undone in part.
    failed_at_end: BTreeMap<u64, Vec<u32>>,
    /// What is before it was pruned.
    oldest: u64,
}

impl Index {
    /// Reads what was recorded since the last time.
    pub(super) fn update(&mut self, store: &Store) -> SysResult<()> {
        let names = journal::record_names(store)?;
        let stems: HashSet<&[u8]> = names.iter().map(stem_of).collect();
        if self
            .files
            .iter()
            .any(|file| !stems.contains(stem_of(&file.name)))
        {
            *self = Index::default();
        }
        // What was pruned may still be in a file with others.
        self.forget_before(store.oldest_kept());
        let known: BTreeMap<Vec<u8>, usize> = (0..)
            .zip(&self.files)
            .map(|(index, file)| (stem_of(&file.name).to_vec(), index))
            .collect();
        for name in &names {
            let index = known.get(stem_of(name)).copied();
            self.look_at(store, name, index)?;
        }
        if !self.lines.is_sorted() {
            self.lines.sort();
        }
        if !self.ends.is_sorted() {
            self.ends.sort();
        }
        Ok(())
    }

    fn look_at(&mut self, store: &Store, name: &Name, index: Option<usize>) -> SysResult<()> {
        let index = index.unwrap_or_else(|| {
            self.files.push(IndexedFile {
                name: name.clone(),
                seen: 0,
                is_finished: false,
            });
            self.files.len() - 1
        });
        let Some(known) = self.files.get(index).filter(|file| !file.is_finished) else {
            return Ok(());
        };
        let from = known.seen;
        // One that is pruned at this moment is missed at the next look.
        let Some((file, name)) = open_record(store, name)? else {
            return Ok(());
        };
        let seen = each_line(&file, from, &mut |at, line| self.take(index, at, line))?;
        if let Some(known) = self.files.get_mut(index) {
            let is_finished = is_finished(&name);
            *known = IndexedFile {
                name,
                seen,
                is_finished,
            };
        }
        Ok(())
    }

    fn take(&mut self, file: usize, at: u64, line: &[u8]) {
        let Some((number, ends)) = glance(line) else {
            return;
        };
        if number < self.oldest || number >= 1 << (64 - END_BITS) {
            return;
        }
        if ends {
            let code = match end_of(line) {
                Some(End::Void) => 2,
                Some(End::Pruned) => 1,
                Some(End::Done) | None => 0,
            };
            self.ends.push((number << END_BITS) | code);
            if FAILED.find(line).is_some()
                && let Ok(line) = serde_json::from_slice::<Line>(line)
            {
                self.failing.insert(number);
                self.failed_at_end.insert(number, line.failed);
            }
            return;
        }
        self.lines.extend(LineAt::new(number, file, at));
        if UNDOES.find(line).is_some()
            && let Ok(line) = serde_json::from_slice::<Line>(line)
        {
            let undoes = line.by.map(|by| by.undoes).unwrap_or_default();
            self.undoes.insert(number, undoes);
        }
        if FAILED.find(line).is_some() {
            self.failing.insert(number);
        }
    }

    fn forget_before(&mut self, oldest: u64) {
        if oldest <= self.oldest {
            return;
        }
        self.oldest = oldest;
        self.lines.retain(|line| line.number >= oldest);
        self.ends.retain(|end| end >> END_BITS >= oldest);
        self.undoes = self.undoes.split_off(&oldest);
        self.failing = self.failing.split_off(&oldest);
        self.failed_at_end = self.failed_at_end.split_off(&oldest);
    }

    /// The name of a file.
    pub(super) fn name(&self, file: usize) -> Option<&Name> {
        self.files.get(file).map(|file| &file.name)
    }

    /// The lines of the changes with larger numbers, in order.
    pub(super) fn lines_after(&self, number: u64) -> &[LineAt] {
        let first = self.lines.partition_point(|line| line.number <= number);
        self.lines.get(first..).unwrap_or_default()
    }

    /// The lines of one change.
    pub(super) fn lines_of(&self, number: u64) -> &[LineAt] {
        let first = self.lines.partition_point(|line| line.number < number);
        let behind = self.lines.partition_point(|line| line.number <= number);
        self.lines.get(first..behind).unwrap_or_default()
    }

    /// How a change ended, if that was recorded.
    pub(super) fn end(&self, number: u64) -> Option<End> {
        let behind = self.ends.partition_point(|end| end >> END_BITS <= number);
        let last = behind.checked_sub(1).and_then(|last| self.ends.get(last))?;
        (last >> END_BITS == number).then_some(match last % (1 << END_BITS) {
            2 => End::Void,
            1 => End::Pruned,
            _ => End::Done,
        })
    }

    /// The parts of a change that did not happen, by its end.
    pub(super) fn failed_at_end(&self, number: u64) -> &[u32] {
        self.failed_at_end.get(&number).map_or(&[], Vec::as_slice)
    }

    /// The changes that undo others, in order.
    pub(super) fn undoes(&self) -> &BTreeMap<u64, Vec<u64>> {
        &self.undoes
    }

    /// Tells whether a part of a change did not happen.
    pub(super) fn is_failing(&self, number: u64) -> bool {
        self.failing.contains(&number)
    }
}
