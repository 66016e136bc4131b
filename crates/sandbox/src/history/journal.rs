//! The record files: one for each process, which holds a lock on it for as long as it may add to it.
//!
//! All lines of a change are in one file. A file that nobody holds is finished, or its process died: then
//! `recovery.rs` looks at the changes in it that have no end.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::chain;
use super::lines::each_line;
use super::record::{Author, End, Line, Part, glance, hash};
use super::store::{Store, errno_of};
use crate::change::Durability;
use crate::leftovers;
use crate::name::Name;
use crate::syscall::{self, Clobber, Errno, HowLocked, Purpose, SysResult};
use crate::together::has_name;

/// How many lines a file has before the next one is begun, so that old ones can be removed whole.
const LINES_MAX: u64 = if cfg!(test) { 50 } else { 20_000 };
/// The end of the name of a file that lines may be added to.
const OPEN: &str = ".open";
/// The end of the name of a file that is finished.
const FINISHED: &str = ".jsonl";

/// How long a look at the lock on the own record file holds. File servers take locks away after a longer silence.
const HELD_FOR: Duration = if cfg!(test) {
    Duration::ZERO
} else {
    Duration::from_secs(1)
};

/// This process's records of the changes in one root.
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

    /// Records further parts of a change.
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

    /// Records that a part did not happen.
    pub(crate) fn fail(&self, number: u64, part: u32) {
        if let Ok(file) = self.file_of(number) {
            let failed = file.append(Line {
                failed: vec![part],
                ..Line::of(number)
            });
            // It must not be taken for one that happened.
            let _ = failed.and_then(|()| file.sync_if_shared());
        }
    }

    fn file_of(&self, number: u64) -> SysResult<Arc<RecordFile>> {
        let file = self.lock().open.get(&number).cloned();
        file.ok_or(Errno::NOENT)
    }

    /// Records that a change ended. It need not be on disk if its parts show the same.
    pub(crate) fn end(&self, number: u64, end: End, durability: Durability) -> SysResult<()> {
        let file = self.lock().open.remove(&number);
        let Some(file) = file else { return Ok(()) };
        file.append(end_line(number, end))?;
        match (end, durability) {
            (End::Done | End::Pruned, Durability::Fast) => Ok(()),
            _ => file.sync(durability),
        }
    }

    /// Records the end of a change that another process began, and which of its parts did not happen.
    pub(crate) fn end_foreign(
        &self,
        store: &Store,
        number: u64,
        end: End,
        failed: Vec<u32>,
    ) -> SysResult<()> {
        let file = self.lock().file_for(store)?;
        file.append(Line {
            failed,
            ..end_line(number, end)
        })?;
        file.sync(Durability::Fsync)
    }

    /// Records that the content of some changes is gone, although older changes are kept.
    pub(crate) fn end_pruned(&self, store: &Store, numbers: &[u64]) -> SysResult<()> {
        for number in numbers {
            let file = self.lock().file_for(store)?;
            file.append(end_line(*number, End::Pruned))?;
        }
        // A file that was full meanwhile is on disk already.
        let current = self.lock().current.clone();
        current.map_or(Ok(()), |file| file.sync_if_shared())
    }

    /// Tells whether a change is under way in this process.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.lock().open.contains_key(&number)
    }

    /// Begins another file with the next change if others took this process for dead.
    pub(super) fn heed_loss(&self) {
        self.lock().drop_lost();
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
    /// Others finish the file of a process that they take for dead: later additions would not be read.
    fn drop_lost(&mut self) {
        self.current.take_if(|file| !file.is_held());
    }

    fn file_for(&mut self, store: &Store) -> SysResult<Arc<RecordFile>> {
        self.drop_lost();
        let before = match &self.current {
            Some(file) if file.lines() < LINES_MAX => return Ok(Arc::clone(file)),
            // Changes under way still add to it, so that others follow the line that the next file does.
            Some(full) => full.handover()?,
            None => chain::newest_hash(store)?,
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
    /// When the lock was looked at; `None` once it is lost.
    held: Mutex<Option<Instant>>,
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
        chain::list(records.as_fd(), &stem)?;
        Ok(RecordFile {
            file: File::from(file),
            records,
            stem,
            shared: store.is_shared(),
            held: Mutex::new(Some(Instant::now())),
            tail: Mutex::new(FileTail {
                hash: before,
                lines: 0,
                length: 0,
            }),
        })
    }

    /// Tells whether others still see that its process lives.
    fn is_held(&self) -> bool {
        if !self.shared {
            return true;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |looked: Instant| looked.elapsed() < HELD_FOR;
        if !held.is_some_and(is_recent) {
            let is_ours = held.is_some()
                && syscall::hold_surely_unchecked(self.file.as_fd(), HowLocked::Exclusive)
                    == Ok(true)
                && has_name(
                    self.records.as_fd(),
                    format!("{}{OPEN}", self.stem).as_bytes(),
                    self.file.as_fd(),
                );
            *held = is_ours.then(Instant::now);
        }
        held.is_some()
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

    /// The line that the next file continues from. It is on disk before that file says so.
    fn handover(&self) -> SysResult<String> {
        let hash = self.tail().hash.clone();
        self.sync(Durability::Fsync)?;
        Ok(hash)
    }

    fn tail(&self) -> MutexGuard<'_, FileTail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecordFile {
    /// Nobody needs to look at the file again after a process that ended in order.
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Whoever took this process for dead finishes it when it has settled all of it.
        if held.is_none() {
            return;
        }
        // Others read a finished file to its end once.
        let _ = self.sync_if_shared();
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

/// A record file opened for reading.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) name: Name,
    pub(crate) file: File,
    is_open: bool,
}

impl FoundFile {
    fn new(name: Name, file: File) -> FoundFile {
        FoundFile {
            is_open: !is_finished(&name),
            file,
            name,
        }
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
}

/// The names of the record files, the oldest first.
pub(super) fn record_names(store: &Store) -> SysResult<Vec<Name>> {
    let listed = syscall::reopen_dir_unchecked(store.records())?;
    if store.is_shared() {
        syscall::sync_attributes_unchecked(listed.as_fd())?;
    }
    let mut names = Vec::new();
    syscall::read_dir_unchecked(listed.as_fd(), &mut |name, _| {
        let is_ours = name.ends_with(OPEN.as_bytes()) || name.ends_with(FINISHED.as_bytes());
        names.extend(Name::new(name).filter(|_| is_ours));
    })?;
    names.sort_unstable();
    // One that was renamed while they were listed may have been listed under both names. The finished one comes first.
    names.dedup_by(|next, one| stem_of(next) == stem_of(one));
    Ok(names)
}

/// The name of a record file without its end.
pub(super) fn stem_of(name: &Name) -> &[u8] {
    let bytes = name.as_bytes();
    let open = bytes.strip_suffix(OPEN.as_bytes());
    open.or(bytes.strip_suffix(FINISHED.as_bytes()))
        .unwrap_or(bytes)
}

/// Tells whether a file of this name gets no more lines.
pub(super) fn is_finished(name: &Name) -> bool {
    name.as_bytes().ends_with(FINISHED.as_bytes())
}

/// Opens a record file, with its name by now; `None` if it is gone.
pub(super) fn open_record(store: &Store, name: &Name) -> SysResult<Option<(File, Name)>> {
    // It may have been finished, and so renamed, since it was listed.
    for name in [Some(name.clone()), finished_name(name)]
        .into_iter()
        .flatten()
    {
        match syscall::open_content_unchecked(store.records(), &name, Purpose::Read) {
            Err(Errno::NOENT | Errno::STALE) => {}
            opened => return opened.map(|file| Some((File::from(file), name))),
        }
    }
    Ok(None)
}

/// The record files, the oldest first.
pub(crate) fn files(store: &Store) -> SysResult<Vec<FoundFile>> {
    let mut files = Vec::new();
    for name in record_names(store)? {
        let opened = open_record(store, &name)?;
        files.extend(opened.map(|(file, name)| FoundFile::new(name, file)));
    }
    Ok(files)
}

/// The record files that their processes may add to, if they live. They are opened for writing, because NFS gives a lock for
/// one alone on no others.
pub(crate) fn unfinished_files(store: &Store) -> SysResult<Vec<FoundFile>> {
    let names = record_names(store)?.into_iter();
    let opened = names.filter(|name| !is_finished(name)).filter_map(|name| {
        let file = syscall::open_content_unchecked(store.records(), &name, Purpose::Edit);
        let file = File::from(file.ok()?);
        Some(FoundFile::new(name, file))
    });
    Ok(opened.collect())
}

/// The name that a file has when it is finished; `None` if it is.
fn finished_name(open: &Name) -> Option<Name> {
    let stem = open.as_bytes().strip_suffix(OPEN.as_bytes())?;
    Name::new(&[stem, FINISHED.as_bytes()].concat())
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
pub(crate) fn unfinished(found: &FoundFile) -> SysResult<Vec<u64>> {
    let mut open = BTreeSet::new();
    each_line(&found.file, 0, &mut |_, line| match glance(line) {
        Some((number, true)) => drop(open.remove(&number)),
        Some((number, false)) => drop(open.insert(number)),
        None => {}
    })?;
    Ok(open.into_iter().collect())
}

#[cfg(test)]
impl Journal {
    /// Loses the lock of the record file, as a file server may take it away.
    pub(super) fn lose_lock(&self) {
        let current = self.lock().current.clone().expect("a file");
        syscall::unlock_unchecked(current.file.as_fd()).expect("a lock");
    }
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
        files.retain(|file| file.extension().is_some());
        files.sort();
        files
    }

    #[test]
    fn changes_of_several_processes_have_numbers_of_one_counter() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(&temp);
        let (one, two) = (Journal::default(), Journal::default());
        let numbers = [begin(&one, &store, "a"), begin(&two, &store, "b")];
        assert_eq!(numbers, [1, 2]);
        let more = Part::new(PartKind::Remove, "c".to_owned());
        one.add(1, more, true, Durability::Fsync).unwrap();
        one.end(1, End::Done, Durability::Fast).unwrap();
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
        assert_eq!(unfinished(&found).unwrap(), [1]);
        found.finish(&store);
        assert!(!files(&store).unwrap()[0].is_open);
    }

    #[test]
    fn an_altered_or_missing_line_is_found() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(&temp);
        let journal = Journal::default();
        for path in ["a", "b", "c"] {
            begin(&journal, &store, path);
        }
        assert_eq!(chain::verify(&store).unwrap(), Ok(3));
        let file = record_files(&temp).remove(0);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"b\"", "\"x\"")).unwrap();
        assert_eq!(chain::verify(&store).unwrap().unwrap_err().line, Some(2));
        let without: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("\"b\""))
            .collect();
        fs::write(&file, without.join("\n") + "\n").unwrap();
        assert_eq!(chain::verify(&store).unwrap().unwrap_err().line, Some(1));
        fs::write(&file, text.clone() + "{\"n\":4").unwrap();
        assert_eq!(
            chain::verify(&store).unwrap(),
            Ok(3),
            "a torn line is no altered one"
        );
        fs::write(&file, text.replacen('{', "[", 1)).unwrap();
        assert_eq!(chain::verify(&store).unwrap().unwrap_err().line, Some(1));
    }
}
