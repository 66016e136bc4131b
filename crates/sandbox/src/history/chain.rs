//! The chain of the records: each line holds the hash of the one before, the first of a file that of a line in an earlier
//! file, and a list beside the files says which there are. So a line or a file that is altered or missing is found.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use super::journal::{is_finished, open_record, record_names, stem_of};
use super::lines::each_line;
use super::record::{Line, NO_HASH, glance, hash};
use super::store::{Store, errno_of};
use crate::name::Name;
use crate::syscall::{self, Errno, Purpose, SysResult};

/// The list of the record files: an entry of this length for each, so that one can be blanked and used again.
const LIST: &str = "list";
const ENTRY: usize = 22;

/// How many hashes of removed files are kept besides those that other files continue from.
const HASHES_KEPT: usize = 1000;

/// How much of a file is read to find its last line.
const TAIL_READ: u64 = 64 * 1024;

/// Where the chain of hashes breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// The record file.
    pub file: String,
    /// The first line that is not as it was written, from 1; `None` if the file is missing.
    pub line: Option<usize>,
}

/// Lists a record file. It already exists, and is on disk.
pub(super) fn list(records: BorrowedFd<'_>, stem: &str) -> SysResult<()> {
    let entry = format!("{stem}\n");
    if entry.len() != ENTRY {
        return Err(Errno::INVAL);
    }
    with_list(records, |file, text| {
        let mut entries = (0..).zip(text.chunks(ENTRY));
        let free = entries.find(|(_, entry)| stem_in(entry).is_none());
        let index = free.map_or(text.len().div_ceil(ENTRY), |(index, _)| index);
        write_entry(file, index, entry.as_bytes())?;
        syscall::sync_data_unchecked(file.as_fd())
    })
}

/// Removes a record file from the list before it is deleted.
fn unlist(records: BorrowedFd<'_>, stem: &[u8]) -> SysResult<()> {
    with_list(records, |file, text| {
        let blank = format!("{:>1$}\n", "", ENTRY - 1);
        let entries = (0..).zip(text.chunks(ENTRY));
        let mut own = entries.filter(|(_, entry)| stem_in(entry) == Some(stem));
        own.try_for_each(|(index, _)| write_entry(file, index, blank.as_bytes()))?;
        syscall::sync_data_unchecked(file.as_fd())
    })
}

fn write_entry(file: &File, index: usize, entry: &[u8]) -> SysResult<()> {
    let written = file.write_all_at(entry, (index * ENTRY) as u64);
    written.map_err(|error| errno_of(&error))
}

/// Lets `act` see and change the list while nobody else does.
fn with_list(
    records: BorrowedFd<'_>,
    act: impl FnOnce(&File, &[u8]) -> SysResult<()>,
) -> SysResult<()> {
    let name = Name::new(LIST.as_bytes()).ok_or(Errno::INVAL)?;
    let file = File::from(syscall::open_own_unchecked(records, &name)?);
    // The lock goes with the descriptor.
    syscall::lock_unchecked(file.as_fd())?;
    let text = list_text(&file)?;
    act(&file, &text)
}

fn list_text(file: &File) -> SysResult<Vec<u8>> {
    let mut text = Vec::new();
    let read = std::io::Read::read_to_end(&mut &*file, &mut text);
    read.map_err(|error| errno_of(&error))?;
    Ok(text)
}

/// The record files that there have to be.
fn listed(store: &Store) -> SysResult<BTreeSet<Vec<u8>>> {
    let name = Name::new(LIST.as_bytes()).ok_or(Errno::INVAL)?;
    let file = match syscall::open_content_unchecked(store.records(), &name, Purpose::Read) {
        // An earlier version kept none.
        Err(Errno::NOENT) => return Ok(BTreeSet::new()),
        opened => File::from(opened?),
    };
    let text = list_text(&file)?;
    let stems = text.chunks(ENTRY).filter_map(stem_in);
    Ok(stems.map(<[u8]>::to_vec).collect())
}

/// The name in an entry; `None` if it is blank, or was torn by a power cut.
fn stem_in(entry: &[u8]) -> Option<&[u8]> {
    let stem = entry.strip_suffix(b"\n")?;
    let is_stem = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
    (entry.len() == ENTRY && stem.iter().all(is_stem)).then_some(stem)
}

/// The hash of the last recorded line, for the first file of a process. The line is on disk before another one says
/// that it follows it.
pub(super) fn newest_hash(store: &Store) -> SysResult<String> {
    for name in record_names(store)?.iter().rev() {
        let Some((file, _)) = open_record(store, name)? else {
            continue;
        };
        if let Some(hash) = last_hash(&file)? {
            syscall::sync_data_unchecked(file.as_fd())?;
            return Ok(hash);
        }
    }
    Ok(NO_HASH.to_owned())
}

fn last_hash(file: &File) -> SysResult<Option<String>> {
    let size = syscall::stat_unchecked(file.as_fd())?.size;
    let mut last = None;
    let mut from = size.saturating_sub(TAIL_READ);
    if from > 0 {
        // The first piece may be the end of a line; if there is no other, all of the file is read.
        let mut lines = 0;
        let mut begins = from;
        each_line(file, from, &mut |at, _| {
            lines += 1;
            begins = at;
        })?;
        from = if lines > 1 { begins } else { 0 };
    }
    each_line(file, from, &mut |_, line| last = Some(hash(line)))?;
    Ok(last)
}

/// What the first line of a file says it follows.
fn beginning(file: &File) -> SysResult<Option<String>> {
    let mut text = vec![0; TAIL_READ as usize];
    let read = file.read_at(&mut text, 0);
    let length = read.map_err(|error| errno_of(&error))?;
    let text = text.get(..length).unwrap_or_default();
    let line = memchr::memchr(b'\n', text).and_then(|end| text.get(..end));
    let line = line.and_then(|line| serde_json::from_slice::<Line>(line).ok());
    Ok(line.map(|line| line.prev))
}

/// Checks the chain of every record file; the number of lines, or the first that was altered.
pub(crate) fn verify(store: &Store) -> SysResult<Result<u64, BrokenChain>> {
    let listed_before = listed(store)?;
    let names = record_names(store)?;
    let mut check = ChainCheck::default();
    for name in &names {
        if let Some((file, _)) = open_record(store, name)?
            && let Some(prev) = beginning(&file)?.filter(|prev| prev != NO_HASH)
        {
            check.wanted.insert(prev, name);
        }
    }
    for name in &names {
        if let Some((file, _)) = open_record(store, name)?
            && let Some(broken) = check.read(name, &file)?
        {
            return Ok(Err(broken));
        }
    }
    // Files may be pruned meanwhile.
    for hash in store.pruned_hashes() {
        check.wanted.remove(&hash);
    }
    if let Some(name) = check.wanted.values().min() {
        return Ok(Err(broken(name, Some(1))));
    }
    let there: HashSet<&[u8]> = names.iter().map(stem_of).collect();
    let mut missing = listed_before
        .iter()
        .filter(|stem| !there.contains(stem.as_slice()));
    let still = listed(store)?;
    Ok(match missing.find(|stem| still.contains(*stem)) {
        Some(stem) => Err(BrokenChain {
            file: String::from_utf8_lossy(stem).into_owned(),
            line: None,
        }),
        None => Ok(check.lines),
    })
}

fn broken(name: &Name, line: Option<usize>) -> BrokenChain {
    BrokenChain {
        file: name.shown().into_owned(),
        line,
    }
}

/// What was found so far.
#[derive(Default)]
struct ChainCheck<'a> {
    /// The hashes that files continue from and that were not found yet, each with the file.
    wanted: BTreeMap<String, &'a Name>,
    lines: u64,
}

impl ChainCheck<'_> {
    /// Reads a file to its end or to the first line that does not fit.
    fn read(&mut self, name: &Name, file: &File) -> SysResult<Option<BrokenChain>> {
        let mut previous: Option<String> = None;
        let (mut index, mut found) = (0, None);
        each_line(file, 0, &mut |_, line| {
            index += 1;
            if found.is_some() {
                return;
            }
            let prev = serde_json::from_slice::<Line>(line).map(|line| line.prev);
            found = match (prev, &previous) {
                (Err(_), _) => Some(index),
                // A line is known to be altered by the one after it.
                (Ok(prev), Some(previous)) if prev != *previous => Some(index - 1),
                _ => None,
            };
            let hash = hash(line);
            self.wanted.remove(&hash);
            previous = Some(hash);
            self.lines += 1;
        })?;
        Ok(found.map(|line| broken(name, Some(line))))
    }
}

/// Removes record files in which every change is gone, and remembers the hashes that the others continue from.
pub(super) fn remove_old_files(store: &Store, oldest: u64) -> SysResult<()> {
    let names = record_names(store)?;
    let mut wanted = BTreeSet::new();
    for name in &names {
        if let Some((file, _)) = open_record(store, name)? {
            wanted.extend(beginning(&file)?);
        }
    }
    for name in names.iter().filter(|name| is_finished(name)) {
        let Some((file, name)) = open_record(store, name)? else {
            continue;
        };
        if let Some(kept) = hashes_of_old(&file, oldest, &wanted)? {
            let mut hashes = store.pruned_hashes();
            hashes.retain(|hash| !kept.contains(hash));
            hashes.extend(kept);
            bound(&mut hashes, &wanted);
            store.set_pruned_hashes(&hashes)?;
            unlist(store.records(), stem_of(&name))?;
            syscall::unlink_unchecked(store.records(), &name)?;
        }
    }
    Ok(())
}

/// The hashes to keep of a file: those that others continue from, and its last; `None` if a change in it is kept.
fn hashes_of_old(
    file: &File,
    oldest: u64,
    wanted: &BTreeSet<String>,
) -> SysResult<Option<Vec<String>>> {
    let (mut is_old, mut kept, mut last) = (true, Vec::new(), None);
    each_line(file, 0, &mut |_, line| {
        is_old &= glance(line).is_none_or(|(number, _)| number < oldest);
        if is_old {
            let hash = hash(line);
            kept.extend(wanted.get(&hash).cloned());
            last = Some(hash);
        }
    })?;
    kept.extend(last.filter(|last| !kept.contains(last)));
    Ok(is_old.then_some(kept))
}

/// Drops the oldest hashes that no file continues from.
fn bound(hashes: &mut Vec<String>, wanted: &BTreeSet<String>) {
    let mut excess = hashes.len().saturating_sub(HASHES_KEPT);
    hashes.retain(|hash| {
        let goes = excess > 0 && !wanted.contains(hash);
        excess -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;
    use crate::history::tests::{open, write};
    use std::fs;
    use std::path::{Path, PathBuf};

    fn record_files(top: &Path) -> Vec<PathBuf> {
        let holder = fs::read_dir(top.join(".mcp-filesystem")).unwrap();
        let mut stores = holder.map(|entry| entry.unwrap().path());
        let store = stores.find(|path| path.is_dir()).unwrap();
        let files = fs::read_dir(store.join("records")).unwrap();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some());
        files.sort();
        files
    }

    fn verified(root: &Root) -> Result<u64, BrokenChain> {
        root.history().unwrap().verify().unwrap()
    }

    /// Changes that began in a file go on in it while the next one has begun.
    #[test]
    fn many_at_once_leave_an_unbroken_chain() {
        const THREADS: u64 = 8;
        const EACH: u64 = 60;
        let temp = tempfile::tempdir().unwrap();
        let root = open(temp.path());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let root = &root;
                scope.spawn(move || {
                    for round in 0..EACH {
                        write(root, &format!("f{thread}"), &round.to_string());
                    }
                });
            }
        });
        assert!(record_files(temp.path()).len() > 5);
        assert_eq!(verified(&root), Ok(2 * THREADS * EACH));
        // A change that began in the first file ends in it when the third one is there.
        let late = crate::history::tests::begin_writing(&root, "late");
        for round in 0..120 {
            write(&root, "other", &round.to_string());
        }
        late.end();
        assert!(verified(&root).is_ok());
        // The chain holds when old files were pruned.
        let files = record_files(temp.path()).len();
        drop(root);
        let few = crate::history::HistorySettings {
            max_changes: 10,
            ..crate::history::tests::settings()
        };
        let root = Root::open(temp.path()).unwrap().with_history(few).unwrap();
        root.history().unwrap().prune();
        assert!(record_files(temp.path()).len() < files);
        assert!(verified(&root).is_ok());
        write(&root, "more", "text");
        assert!(verified(&root).is_ok());
    }

    #[test]
    fn a_file_that_is_missing_is_found() {
        let temp = tempfile::tempdir().unwrap();
        for text in ["1", "2", "3"] {
            let root = open(temp.path());
            write(&root, "a", text);
        }
        let root = open(temp.path());
        assert_eq!(verified(&root), Ok(6));
        let files = record_files(temp.path());
        assert_eq!(files.len(), 3);
        for file in files {
            let content = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            assert!(verified(&root).is_err(), "{file:?}");
            fs::write(&file, content).unwrap();
            assert!(verified(&root).is_ok());
        }
        // Without the end of a file, the next one does not go on from it.
        let first = record_files(temp.path()).remove(0);
        let text = fs::read_to_string(&first).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        fs::write(&first, format!("{}\n", lines[0])).unwrap();
        assert_eq!(verified(&root).unwrap_err().line, Some(1));
    }
}
