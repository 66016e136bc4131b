//! The records of a root's changes at one moment. Changes are read one by one, on demand.

use std::sync::{Arc, PoisonError};

use memchr::memmem::Finder;

use super::History;
use super::change_record::ChangeRecord;
use super::index::{Index, LineAt};
use super::lines::LineReader;
use super::record::{Author, End, Line, time_of};
use super::store::Store;
use crate::syscall::{Errno, SysResult};

/// The changes of a root at one moment.
#[derive(Debug)]
pub struct Ledger<'h> {
    store: Option<&'h Store>,
    index: Arc<Index>,
    reader: LineReader,
}

/// Texts of which a record has to hold one, by a look at its bytes. It may let through others too.
#[derive(Debug)]
pub struct Mention {
    needles: Vec<Finder<'static>>,
}

impl Mention {
    /// A path, something below it, or a directory that it is in.
    #[must_use]
    pub fn of_path(path: &str) -> Mention {
        // Everything is in the root itself.
        if matches!(path, "" | "." | "/") {
            return Mention::of(&[Vec::new()]);
        }
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let mut needles: Vec<Vec<u8>> = above.chain([path, ""]).map(quoted).collect();
        let mut below = quoted(path);
        below.pop();
        below.push(b'/');
        needles.push(below);
        Mention::of(&needles)
    }

    /// A text as it is, such as a name of a client or a part of it.
    #[must_use]
    pub fn of_text(text: &str) -> Mention {
        let quoted = quoted(text);
        let inner = quoted.get(1..quoted.len().saturating_sub(1));
        Mention::of(&[inner.unwrap_or_default().to_vec()])
    }

    fn of(needles: &[Vec<u8>]) -> Mention {
        let finder = |needle: &Vec<u8>| Finder::new(needle).into_owned();
        Mention {
            needles: needles.iter().map(finder).collect(),
        }
    }

    fn is_in(&self, line: &[u8]) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.find(line).is_some())
    }
}

/// A text as it stands in a record.
fn quoted(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_default()
}

/// A change that was not read yet.
#[derive(Debug, Clone, Copy)]
pub struct ListedChange<'l> {
    ledger: &'l Ledger<'l>,
    lines: &'l [LineAt],
}

impl ListedChange<'_> {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.lines.first().map_or(0, |line| line.number)
    }

    /// Tells whether it may be about something.
    #[must_use]
    pub fn mentions(&self, mention: &Mention) -> bool {
        let is_in = |line: &LineAt| self.ledger.line(*line, |text| mention.is_in(text));
        self.lines.iter().any(|line| is_in(line) == Some(true))
    }

    /// When it was made, in milliseconds since the epoch.
    #[must_use]
    pub fn time(&self) -> Option<u64> {
        let first = *self.lines.first()?;
        self.ledger.line(first, time_of)?
    }

    /// Who made it.
    pub(super) fn author(&self) -> Option<Author> {
        let first = *self.lines.first()?;
        let line = self.ledger.line(first, parsed)??;
        line.by
    }

    pub(super) fn end(&self) -> Option<End> {
        self.ledger.end(self.number())
    }

    /// Its whole record; `None` if that cannot be read, or is gone.
    #[must_use]
    pub fn record(&self) -> Option<ChangeRecord> {
        let mut record = ChangeRecord::empty(self.number());
        for line in self.lines {
            // The last line of a process that died may be torn.
            if let Some(line) = self.ledger.line(*line, parsed)? {
                record.take(line);
            }
        }
        let failed = self.ledger.index.failed_at_end(self.number());
        record.failed.extend_from_slice(failed);
        record.end = self.end();
        (!self.lines.is_empty()).then_some(record)
    }
}

fn parsed(line: &[u8]) -> Option<Line> {
    serde_json::from_slice(line).ok()
}

impl Ledger<'_> {
    /// The changes with larger numbers, in order, but for those that never happened.
    pub fn after(&self, number: u64) -> impl DoubleEndedIterator<Item = ListedChange<'_>> {
        self.written_after(number)
            .filter(|change| change.end() != Some(End::Void))
    }

    /// The changes with larger numbers, in order, with those that never happened.
    pub(super) fn written_after(
        &self,
        number: u64,
    ) -> impl DoubleEndedIterator<Item = ListedChange<'_>> {
        let lines = self.index.lines_after(number);
        let changes = lines.chunk_by(|one, next| one.number == next.number);
        changes.map(|lines| ListedChange {
            ledger: self,
            lines,
        })
    }

    /// All changes, in order, but for those that never happened.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = ListedChange<'_>> {
        self.after(0)
    }

    /// The record of one change.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<ChangeRecord> {
        let lines = self.index.lines_of(number);
        let listed = ListedChange {
            ledger: self,
            lines,
        };
        listed.record()
    }

    /// How a change ended, if that was recorded.
    pub(super) fn end(&self, number: u64) -> Option<End> {
        self.index.end(number)
    }

    /// The record of one change; an error if it exists but cannot be read.
    pub(super) fn read(&self, number: u64) -> SysResult<Option<ChangeRecord>> {
        if self.index.lines_of(number).is_empty() {
            return Ok(None);
        }
        self.get(number).map(Some).ok_or(Errno::IO)
    }

    /// The changes that one took back.
    #[must_use]
    pub fn undoes_of(&self, number: u64) -> &[u64] {
        self.index.undoes().get(&number).map_or(&[], Vec::as_slice)
    }

    /// The changes that took back others and happened, in order, each with those.
    pub fn undoing(&self) -> impl DoubleEndedIterator<Item = (u64, &[u64])> {
        let all = self.index.undoes().iter();
        all.filter(|(number, _)| self.is_made(**number))
            .map(|(number, undoes)| (*number, undoes.as_slice()))
    }

    /// The changes of which at least a part was reverted or did not happen, in order.
    pub(super) fn reverted(&self) -> impl Iterator<Item = ListedChange<'_>> {
        self.written_after(0).filter(|change| {
            change.end() == Some(End::Void) || self.index.is_failing(change.number())
        })
    }

    /// Tells whether a change took place, as far as known.
    fn is_made(&self, number: u64) -> bool {
        match self.index.end(number) {
            Some(End::Void) => false,
            _ if self.index.is_failing(number) => {
                self.get(number).is_some_and(|record| record.is_made())
            }
            _ => true,
        }
    }

    fn line<T>(&self, at: LineAt, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let name = self.index.name(at.file())?;
        self.reader
            .line(self.store?, (at.file(), name), at.offset(), look)
    }
}

impl History {
    /// The current records; none if they cannot be read.
    pub fn ledger(&self) -> Ledger<'_> {
        self.try_ledger().unwrap_or_else(|_| Ledger {
            store: None,
            index: Arc::default(),
            reader: LineReader::default(),
        })
    }

    /// The current records.
    pub(super) fn try_ledger(&self) -> SysResult<Ledger<'_>> {
        let store = self.existing_store();
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = store {
            let updated = Arc::make_mut(&mut index).update(store);
            // What cannot be read now is tried again by the next call.
            updated.inspect_err(|_| *index = Arc::default())?;
        }
        Ok(Ledger {
            store,
            index: Arc::clone(&index),
            reader: LineReader::default(),
        })
    }
}
