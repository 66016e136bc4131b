//! The record files: one for each process, which holds a lock on it for as long as it may add to it.
//!
//! All lines of a change are in one file. A file that nobody holds is finished, or its process died: then
//! `recovery.rs` looks at the changes in it that have no end.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::record::{Author, End, Line, NO_HASH, Part, glance, hash};
use super::store::{Store, errno_of};
use crate::change::Durability;
use crate::leftovers;
use crate::name::Name;
use crate::syscall::{self, Clobber, Errno, Purpose, SysResult};

/// How many lines a file has before the next one is begun, so that old ones can be removed whole.
const LINES_MAX: u64 = 20_000;
/// The end of the name of a file that lines may be added to.
const OPEN: &str = ".open";
/// The end of the name of a file that is finished.
const FINISHED: &str = ".jsonl";

/// What this process writes down about the changes of one root.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    state: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    current: Option<Arc<RecordFile>>,
    /// The changes under way, each with the file that it is in.
    open: HashMap<u64, Arc<RecordFile>>,
}

impl Journal {
    /// Writes the first line of a change, on disk if it has to be.
    pub(crate) fn begin(
        &self,
        store: &Store,
        number: u64,
        author: &Author,
        part: Part,
        last: bool,
        durability: Durability,
    ) -> SysResult<()> {
        let file = {
            let mut state = self.lock();
            let file = state.file_for(store)?;
            state.open.insert(number, Arc::clone(&file));
            file
        };
        let line = Line {
            by: Some(author.clone()),
            parts: vec![part],
            last,
            ..Line::of(number)
        };
        let begun = file.append(line).and_then(|()| file.sync(durability));
        begun.inspect_err(|_| drop(self.lock().open.remove(&number)))
    }

    /// Writes down further parts of a change.
    pub(crate) fn add(
        &self,
        number: u64,
        part: Part,
        last: bool,
        durability: Durability,
    ) -> SysResult<()> {
        let file = self.file_of(number)?;
        file.append(Line {
            parts: vec![part],
            last,
            ..Line::of(number)
        })?;
        file.sync(durability)
    }

    /// Writes down that a part did not happen.
    pub(crate) fn fail(&self, number: u64, part: u32) {
        if let Ok(file) = self.file_of(number) {
            let failed = file.append(Line {
                failed: vec![part],
                ..Line::of(number)
            });
            // Nobody may take it for one that happened.
            let _ = failed.and_then(|()| file.sync_if_shared());
        }
    }

    fn file_of(&self, number: u64) -> SysResult<Arc<RecordFile>> {
        let file = self.lock().open.get(&number).cloned();
        file.ok_or(Errno::NOENT)
    }

    /// Writes down that a change ended. It need not be on disk: a look at its parts tells the same.
    pub(crate) fn end(&self, number: u64, end: End) {
        let file = self.lock().open.remove(&number);
        if let Some(file) = file {
            let ended = file.append(end_line(number, end));
            if end == End::Void {
                let _ = ended.and_then(|()| file.sync_if_shared());
            }
        }
    }

    /// Writes down the end of a change that another process began.
    pub(crate) fn end_foreign(&self, store: &Store, number: u64, end: End) -> SysResult<()> {
        let file = self.lock().file_for(store)?;
        file.append(end_line(number, end))?;
        file.sync(Durability::Fsync)
    }

    /// Tells whether a change is under way in this process.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.lock().open.contains_key(&number)
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end_line(number: u64, end: End) -> Line {
    Line {
        end: Some(end),
        ..Line::of(number)
    }
}

impl JournalState {
    fn file_for(&mut self, store: &Store) -> SysResult<Arc<RecordFile>> {
        let before = match &self.current {
            Some(file) if file.lines() < LINES_MAX => return Ok(Arc::clone(file)),
            Some(full) => full.last_hash(),
            None => NO_HASH.to_owned(),
        };
        let file = Arc::new(RecordFile::create(store, before)?);
        self.current = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// A record file of this process. It is finished when no change in it is under way and no other will begin in it.
#[derive(Debug)]
struct RecordFile {
    file: File,
    records: OwnedFd,
    stem: String,
    /// Other machines read it.
    shared: bool,
    tail: Mutex<FileTail>,
}

#[derive(Debug)]
struct FileTail {
    hash: String,
    lines: u64,
    /// How long the file is.
    length: u64,
}

impl RecordFile {
    fn create(store: &Store, before: String) -> SysResult<RecordFile> {
        let records = store.records().try_clone_to_owned();
        let records = records.map_err(|_| Errno::MFILE)?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
        let random = u32::from_ne_bytes(random);
        // Names are in the order of time, so that the oldest file comes first.
        let stem = format!("{:012x}-{random:08x}", now_ms());
        let own = name(&stem, OPEN)?;
        let temporary = leftovers::temporary_name()?;
        let file = syscall::create_unchecked(records.as_fd(), &temporary, 0o600)?;
        // Lock the file before another process can mistake it for an orphan.
        let held = syscall::lock_unchecked(file.as_fd()).and_then(|()| {
            let (from, to) = ((records.as_fd(), &temporary), (records.as_fd(), &own));
            syscall::rename_unchecked(from, to, Clobber::Yes)?;
            syscall::sync_unchecked(records.as_fd())
        });
        held.inspect_err(|_| {
            let _ = syscall::unlink_unchecked(records.as_fd(), &temporary);
        })?;
        Ok(RecordFile {
            file: File::from(file),
            records,
            stem,
            shared: store.is_shared(),
            tail: Mutex::new(FileTail {
                hash: before,
                lines: 0,
                length: 0,
            }),
        })
    }

    fn append(&self, mut line: Line) -> SysResult<()> {
        let mut tail = self.tail();
        line.prev = tail.hash.clone();
        let mut text = serde_json::to_vec(&line).map_err(|_| Errno::INVAL)?;
        let hash = hash(&text);
        text.push(b'\n');
        // One write, so that a line is whole or the last. Only this process adds to the file.
        if let Err(error) = self.file.write_all_at(&text, tail.length) {
            // A part of a line would spoil the next one.
            let _ = self.file.set_len(tail.length);
            return Err(errno_of(&error));
        }
        tail.hash = hash;
        tail.lines += 1;
        tail.length += text.len() as u64;
        Ok(())
    }

    fn sync(&self, durability: Durability) -> SysResult<()> {
        match durability {
            Durability::Fsync => syscall::sync_data_unchecked(self.file.as_fd()),
            Durability::Fast => self.sync_if_shared(),
        }
    }

    /// Other machines see only what is on the file server.
    fn sync_if_shared(&self) -> SysResult<()> {
        match self.shared {
            true => syscall::sync_data_unchecked(self.file.as_fd()),
            false => Ok(()),
        }
    }

    fn lines(&self) -> u64 {
        self.tail().lines
    }

    fn last_hash(&self) -> String {
        self.tail().hash.clone()
    }

    fn tail(&self) -> MutexGuard<'_, FileTail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecordFile {
    /// Nobody needs to look at the file again after a process that ended in order.
    fn drop(&mut self) {
        if let (Ok(open), Ok(finished)) = (name(&self.stem, OPEN), name(&self.stem, FINISHED)) {
            finish(self.records.as_fd(), &open, &finished);
        }
    }
}

fn finish(records: std::os::fd::BorrowedFd<'_>, open: &Name, finished: &Name) {
    // No other file has this name. A rename that must not replace is a second link for a moment on some file systems, and
    // then every line would be read twice.
    let _ = syscall::rename_unchecked((records, open), (records, finished), Clobber::Yes);
}

fn name(stem: &str, end: &str) -> SysResult<Name> {
    Name::new(format!("{stem}{end}").as_bytes()).ok_or(Errno::INVAL)
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl ChangeRecord {
    /// The parts that happened, each with its index.
    pub(crate) fn made_parts(&self) -> impl DoubleEndedIterator<Item = (u32, &Part)> {
        let numbered = self.parts.iter().enumerate();
        numbered
            .map(|(index, part)| (index as u32, part))
            .filter(|(index, _)| !self.failed.contains(index))
    }

    /// The parts that happened.
    pub fn made(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.made_parts().map(|(_, part)| part)
    }

    /// Tells whether it took place, as far as is known.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.end != Some(End::Void) && self.made_parts().next().is_some()
    }
}

/// A change as the record files have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// Its number.
    pub number: u64,
    /// Who made it.
    pub author: Author,
    /// What happened, in order.
    pub parts: Vec<Part>,
    /// The parts that were written down and did not happen.
    pub(crate) failed: Vec<u32>,
    /// All parts were written down.
    pub(crate) is_whole: bool,
    pub(crate) end: Option<End>,
}

/// A record file opened for reading.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) name: Name,
    pub(crate) file: File,
    is_open: bool,
}

impl FoundFile {
    fn new(name: Name, file: OwnedFd) -> FoundFile {
        FoundFile {
            is_open: name.as_bytes().ends_with(OPEN.as_bytes()),
            file: File::from(file),
            name,
        }
    }

    pub(crate) fn read(&self) -> SysResult<Vec<u8>> {
        let mut text = Vec::new();
        let read = (&self.file).read_to_end(&mut text);
        read.map_err(|error| errno_of(&error))?;
        Ok(text)
    }

    /// Tells whether its process is gone, and holds it from then on.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_open && syscall::try_lock_unchecked(self.file.as_fd()) == Ok(true)
    }

    /// Says that all changes in it were looked at.
    pub(crate) fn finish(&self, store: &Store) {
        if let Some(finished) = finished_name(&self.name) {
            finish(store.records(), &self.name, &finished);
        }
    }

    /// Tells whether it is a file of a process that may add to it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }
}

/// The record files, the oldest first.
pub(crate) fn files(store: &Store) -> SysResult<Vec<FoundFile>> {
    let names = names(store, &[OPEN, FINISHED])?;
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        match syscall::open_content_unchecked(store.records(), &name, Purpose::Read) {
            Ok(file) => files.push(FoundFile::new(name, file)),
            // It was finished, and so renamed, since it was listed.
            Err(Errno::NOENT | Errno::STALE) => {
                let Some(name) = finished_name(&name) else {
                    continue;
                };
                let file = syscall::open_content_unchecked(store.records(), &name, Purpose::Read);
                files.extend(file.map(|file| FoundFile::new(name, file)));
            }
            Err(errno) => return Err(errno),
        }
    }
    // One that was renamed while they were listed may have been listed under both names.
    files.dedup_by(|one, other| one.name == other.name);
    Ok(files)
}

/// The record files that their processes may add to, if they live. They are opened for writing, because NFS gives a lock for
/// one alone on no others.
pub(crate) fn unfinished_files(store: &Store) -> SysResult<Vec<FoundFile>> {
    let opened = names(store, &[OPEN])?.into_iter().filter_map(|name| {
        let file = syscall::open_content_unchecked(store.records(), &name, Purpose::Edit);
        file.ok().map(|file| FoundFile::new(name, file))
    });
    Ok(opened.collect())
}

/// The names of record files with one of these ends, the oldest first.
fn names(store: &Store, ends: &[&str]) -> SysResult<Vec<Name>> {
    let listed = syscall::reopen_dir_unchecked(store.records())?;
    if store.is_shared() {
        syscall::sync_attributes_unchecked(listed.as_fd())?;
    }
    let mut names = Vec::new();
    syscall::read_dir_unchecked(listed.as_fd(), &mut |name, _| {
        let is_ours = ends.iter().any(|end| name.ends_with(end.as_bytes()));
        names.extend(Name::new(name).filter(|_| is_ours));
    })?;
    names.sort_unstable();
    Ok(names)
}

/// The name that a file has when it is finished; `None` if it is.
fn finished_name(open: &Name) -> Option<Name> {
    let stem = open.as_bytes().strip_suffix(OPEN.as_bytes())?;
    Name::new(&[stem, FINISHED.as_bytes()].concat())
}

/// All changes that are written down, in the order of their numbers.
pub(crate) fn read_all(store: &Store) -> SysResult<BTreeMap<u64, ChangeRecord>> {
    let mut changes = BTreeMap::new();
    let mut ends = Vec::new();
    // What was pruned may still be in a file with others.
    let oldest = store.oldest_kept();
    for file in files(store)? {
        for line in file.read()?.split(|&byte| byte == b'\n') {
            // The last line of a process that died may be torn.
            let is_kept = glance(line).is_some_and(|(number, _)| number >= oldest);
            if let Some(line) = is_kept
                .then(|| serde_json::from_slice::<Line>(line).ok())
                .flatten()
            {
                take_line(&mut changes, &mut ends, line);
            }
        }
    }
    for (number, end) in ends {
        if let Some(change) = changes.get_mut(&number) {
            change.end = Some(end);
        }
    }
    Ok(changes)
}

fn take_line(changes: &mut BTreeMap<u64, ChangeRecord>, ends: &mut Vec<(u64, End)>, line: Line) {
    if let Some(end) = line.end {
        ends.push((line.n, end));
        return;
    }
    let change = changes.entry(line.n).or_insert_with(|| ChangeRecord {
        number: line.n,
        author: Author::default(),
        parts: Vec::new(),
        failed: Vec::new(),
        is_whole: false,
        end: None,
    });
    if let Some(author) = line.by {
        change.author = author;
    }
    change.failed.extend(line.failed);
    if !line.parts.is_empty() {
        change.parts.extend(line.parts);
        change.is_whole = line.last;
    }
}

/// When the first change of the oldest record file was made, in milliseconds since the epoch.
pub(crate) fn first_time(store: &Store) -> Option<u64> {
    const LOOKED_AT: usize = 64 * 1024;
    let oldest = files(store).ok()?.into_iter().next()?;
    let mut text = vec![0; LOOKED_AT];
    let length = oldest.file.read_at(&mut text, 0).ok()?;
    let mut lines = text.get(..length)?.split(|&byte| byte == b'\n');
    let line: Line = serde_json::from_slice(lines.next()?).ok()?;
    line.by.map(|by| by.time)
}

/// The largest number in the record files, by a look at their ends alone.
pub(crate) fn largest_number(store: &Store) -> u64 {
    const LOOKED_AT: u64 = 64 * 1024;
    let Ok(files) = files(store) else { return 0 };
    let of_file = |found: FoundFile| {
        let size = syscall::stat_unchecked(found.file.as_fd()).map_or(0, |file| file.size);
        let mut text = vec![0; size.min(LOOKED_AT) as usize];
        let start = size.saturating_sub(LOOKED_AT);
        found.file.read_exact_at(&mut text, start).ok()?;
        let lines = text.split(|&byte| byte == b'\n');
        lines.filter_map(glance).map(|(number, _)| number).max()
    };
    files.into_iter().filter_map(of_file).max().unwrap_or(0)
}

/// The changes of a record file that have no end, in the order of their numbers.
pub(crate) fn unfinished(text: &[u8]) -> Vec<u64> {
    let mut open = BTreeMap::new();
    for (number, ends) in text.split(|&byte| byte == b'\n').filter_map(glance) {
        if ends {
            open.remove(&number);
        } else {
            open.insert(number, ());
        }
    }
    open.into_keys().collect()
}

/// Where the chain of hashes breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// The record file.
    pub file: String,
    /// The first line that is not as it was written, from 1.
    pub line: usize,
}

/// Checks the chain of every record file; the number of lines, or the first that was altered.
pub(crate) fn verify(store: &Store) -> SysResult<Result<u64, BrokenChain>> {
    let mut known: Vec<String> = store.pruned_hashes();
    known.push(NO_HASH.to_owned());
    let mut lines = 0;
    for file in files(store)? {
        let text = file.read()?;
        // A line without its end is being written, or its process died there.
        let whole = text.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        let mut previous: Option<String> = None;
        for (index, line) in (1..).zip(text.get(..whole).unwrap_or_default().split(|&b| b == b'\n'))
        {
            let parsed = serde_json::from_slice::<Line>(line).ok();
            let fits = match (&parsed, &previous) {
                (Some(line), Some(previous)) => line.prev == *previous,
                (Some(line), None) => known.contains(&line.prev),
                (None, _) => false,
            };
            if !fits && (whole > 0 || !line.is_empty()) {
                let file = file.name.shown().into_owned();
                // A line is known to be altered by the one after it.
                let line = if parsed.is_some() && index > 1 {
                    index - 1
                } else {
                    index
                };
                return Ok(Err(BrokenChain { file, line }));
            }
            lines += u64::from(parsed.is_some());
            previous = Some(hash(line));
        }
        known.extend(previous);
    }
    Ok(Ok(lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::PartKind;
    use crate::history::store::Header;
    use std::fs;
    use std::path::PathBuf;

    fn store(temp: &tempfile::TempDir) -> Store {
        let root = syscall::open_root_unchecked(temp.path()).unwrap();
        let metadata = syscall::stat_unchecked(root.as_fd()).unwrap();
        Store::open(root.as_fd(), &Header::of(&metadata)).unwrap()
    }

    fn begin(journal: &Journal, store: &Store, path: &str) -> u64 {
        let part = Part::new(PartKind::Create, path.to_owned());
        let author = Author {
            client: "test".to_owned(),
            ..Author::default()
        };
        let number = store.next_number(0).unwrap();
        journal
            .begin(store, number, &author, part, true, Durability::Fast)
            .unwrap();
        number
    }

    fn record_files(temp: &tempfile::TempDir) -> Vec<PathBuf> {
        let holder = fs::read_dir(temp.path().join(".mcp-filesystem")).unwrap();
        let mut stores = holder.map(|entry| entry.unwrap().path());
        let store = stores.find(|path| path.is_dir()).unwrap();
        let files = fs::read_dir(store.join("records")).unwrap();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn changes_of_several_processes_are_merged_by_number() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(&temp);
        let (one, two) = (Journal::default(), Journal::default());
        let numbers = [begin(&one, &store, "a"), begin(&two, &store, "b")];
        assert_eq!(numbers, [1, 2]);
        let more = Part::new(PartKind::Remove, "c".to_owned());
        one.add(1, more, true, Durability::Fsync).unwrap();
        one.end(1, End::Done);
        let all = read_all(&store).unwrap();
        let paths: Vec<&str> = all[&1]
            .parts
            .iter()
            .map(|part| part.path.as_str())
            .collect();
        assert_eq!(paths, ["a", "c"]);
        assert_eq!(all[&1].end, Some(End::Done));
        assert_eq!(all[&2].end, None);
        assert_eq!(all[&2].author.client, "test");
        assert!(two.is_open(2) && !one.is_open(1));
        assert_eq!(largest_number(&store), 2);
    }

    #[test]
    fn a_file_is_abandoned_only_when_its_process_let_go_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(&temp);
        let journal = Journal::default();
        begin(&journal, &store, "a");
        assert!(
            files(&store)
                .unwrap()
                .iter()
                .all(|file| !file.is_abandoned())
        );
        let name = record_files(&temp).remove(0);
        drop(journal);
        let finished = record_files(&temp).remove(0);
        assert!(finished.to_str().unwrap().ends_with(FINISHED));
        // As a killed process leaves it.
        fs::rename(finished, &name).unwrap();
        let found = files(&store).unwrap().remove(0);
        assert!(found.is_abandoned());
        assert_eq!(unfinished(&found.read().unwrap()), [1]);
        found.finish(&store);
        assert!(!files(&store).unwrap()[0].is_open());
    }

    #[test]
    fn an_altered_or_missing_line_is_found() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(&temp);
        let journal = Journal::default();
        for path in ["a", "b", "c"] {
            begin(&journal, &store, path);
        }
        assert_eq!(verify(&store).unwrap(), Ok(3));
        let file = record_files(&temp).remove(0);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"b\"", "\"x\"")).unwrap();
        assert_eq!(verify(&store).unwrap().unwrap_err().line, 2);
        let without: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("\"b\""))
            .collect();
        fs::write(&file, without.join("\n") + "\n").unwrap();
        assert_eq!(verify(&store).unwrap().unwrap_err().line, 1);
        fs::write(&file, text.clone() + "{\"n\":4").unwrap();
        assert_eq!(
            verify(&store).unwrap(),
            Ok(3),
            "a torn line is no altered one"
        );
        fs::write(&file, text.replacen('{', "[", 1)).unwrap();
        assert_eq!(verify(&store).unwrap().unwrap_err().line, 1);
    }
}
