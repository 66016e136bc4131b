//! Chooses where a root's history is stored: a private directory, outside the root if it can be on the same file system.
//!
//! Security: it is opened without following links, and trusted only if it is ours, private, and its header names the
//! root: by its device and inode, or, if replicas share it and each sees it under another device, by its name and a
//! number that only they know. An unpacked archive can bring a forged one; that is left alone, and a new one is made
//! beside it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::change::{Change, Durability, EntryRef, OnExisting};
use crate::leftovers;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::reserved::reserved_name;
use crate::syscall::{self, Clobber, Errno, Purpose, SysResult};
use crate::together::name_hash;

const PRIVATE_DIRECTORY: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
/// How many forged directories are passed before there is no history.
const BESIDE: usize = 8;
/// A history of a root that may be gone is kept at least this long, in seconds: a process may be about to open it.
const LEAST_KEPT: u64 = 24 * 60 * 60;
/// How often to try for a number that is free in both histories, while others take numbers.
const JOINT_TRIES: usize = 64;
/// The version of the files.
const VERSION: u32 = 1;

/// The header of a history: it says which root the directory belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Header {
    /// A directory as this machine sees it.
    Own {
        history: u32,
        device: u64,
        inode: u64,
        /// When the root's directory was made, if the file system knows: another one may get the same number later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        born: Option<(i64, u32)>,
    },
    /// A root of replicas.
    Shared {
        history: u32,
        /// The number of their shared directory.
        cluster: String,
        root: String,
    },
}

impl Header {
    pub(crate) fn of(root: &Metadata) -> Header {
        Header::Own {
            history: VERSION,
            device: root.device,
            inode: root.inode,
            born: root.created.map(|born| (born.seconds, born.nanoseconds)),
        }
    }

    /// The header for a root that replicas share under a name.
    pub(crate) fn shared(cluster: &str, root: &str) -> Header {
        Header::Shared {
            history: VERSION,
            cluster: cluster.to_owned(),
            root: root.to_owned(),
        }
    }

    /// Tells this history from all others.
    pub(crate) fn key(&self) -> String {
        let own = store_name(self, 0).map(|name| name.shown().into_owned());
        match self {
            Header::Own { .. } => own.unwrap_or_default(),
            Header::Shared { cluster, .. } => format!("{cluster}/{}", own.unwrap_or_default()),
        }
    }

    fn is_shared(&self) -> bool {
        matches!(self, Header::Shared { .. })
    }

    /// Drops what this machine remembers of a directory if other machines write there too.
    fn look_past_caches(&self, dir: BorrowedFd<'_>) -> SysResult<()> {
        if self.is_shared() {
            syscall::sync_attributes_unchecked(dir)?;
        }
        Ok(())
    }
}

/// The open directory of a root's history.
#[derive(Debug)]
pub(crate) struct Store {
    dir: OwnedFd,
    objects: OwnedFd,
    records: OwnedFd,
    /// Threads of one process share a lock on the file, so they take turns by this one.
    counter: Mutex<File>,
    /// Replicas on other machines write here too.
    shared: bool,
    /// Two names can change places here, once that was tried.
    exchanges: OnceLock<bool>,
    /// Locked together with others: nobody removes a directory that is in use.
    _used: OwnedFd,
    /// Directories that were not trusted, so that a new one was made beside them.
    pub(crate) forged: usize,
}

impl Store {
    /// Opens the history of a root in a directory, and makes it if it is missing.
    pub(crate) fn open(holder: BorrowedFd<'_>, header: &Header) -> SysResult<Store> {
        header.look_past_caches(holder)?;
        let holder = own_directory(holder)?;
        header.look_past_caches(holder.as_fd())?;
        let mut forged = 0;
        while forged < BESIDE {
            let name = store_name(header, forged)?;
            match open_trusted(holder.as_fd(), &name, header) {
                Ok(Some(dir)) => {
                    let used = use_dir(dir.as_fd())?;
                    // Before it was locked somebody may have removed it because it was old.
                    if is_at(holder.as_fd(), &name, dir.as_fd())? {
                        return Store::of((dir, used), forged, header.is_shared());
                    }
                }
                Ok(None) => forged += 1,
                Err(Errno::NOENT) => match make(holder.as_fd(), &name, header) {
                    // Another process was faster: its directory is looked at next.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                },
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// Tells whether there is something in its place, whether it can be opened or not.
    pub(crate) fn is_made(holder: BorrowedFd<'_>, header: &Header) -> bool {
        let Some(name) = reserved_name() else {
            return false;
        };
        let own = |dir: OwnedFd| {
            let _ = header.look_past_caches(dir.as_fd());
            let name = store_name(header, 0);
            name.is_ok_and(|name| syscall::stat_at_unchecked(dir.as_fd(), &name).is_ok())
        };
        let _ = header.look_past_caches(holder);
        match syscall::open_dir_unchecked(holder, &name) {
            Err(Errno::NOENT) => false,
            Err(_) => true,
            Ok(dir) => own(dir),
        }
    }

    /// Records how long changes are kept, for the time when the root is gone.
    pub(crate) fn note_keep(&self, keep: Duration) -> SysResult<()> {
        let seconds = keep.as_secs().to_string();
        let name = fixed("keep")?;
        if read_own(self.dir.as_fd(), &name).as_deref() == Ok(seconds.as_bytes()) {
            return Ok(());
        }
        write_own(self.dir.as_fd(), &name, seconds.as_bytes())
    }

    fn of((dir, used): (OwnedFd, OwnedFd), forged: usize, shared: bool) -> SysResult<Store> {
        let objects = syscall::open_dir_unchecked(dir.as_fd(), &fixed("objects")?)?;
        let records = syscall::open_dir_unchecked(dir.as_fd(), &fixed("records")?)?;
        let counter = syscall::open_own_unchecked(dir.as_fd(), &fixed("counter")?)?;
        Ok(Store {
            dir,
            objects,
            records,
            counter: Mutex::new(File::from(counter)),
            shared,
            exchanges: OnceLock::new(),
            _used: used,
            forged,
        })
    }

    /// Tells whether replicas on other machines write here too: they see only what is on the file server.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Keeps everyone else from removing old changes, while what is returned lives.
    pub(crate) fn alone(&self) -> Option<OwnedFd> {
        let file = syscall::open_own_unchecked(self.dir.as_fd(), &fixed("pruning").ok()?).ok()?;
        syscall::lock_unchecked(file.as_fd()).ok()?;
        Some(file)
    }

    /// Tells whether two names can change places. Some file systems say that they did and only rename, so it is tried.
    pub(crate) fn exchanges(&self) -> bool {
        if let Some(known) = self.exchanges.get() {
            return *known;
        }
        // What cannot be tried now is tried again.
        let tried = self.try_exchange();
        tried.is_ok_and(|exchanges| *self.exchanges.get_or_init(|| exchanges))
    }

    fn try_exchange(&self) -> SysResult<bool> {
        let objects = self.objects();
        let names = [leftovers::temporary_name()?, leftovers::temporary_name()?];
        let [one, other] = names.each_ref().map(|name| (objects, name));
        let made = |(dir, name): EntryRef<'_>| {
            let file = syscall::create_unchecked(dir, name, PRIVATE_FILE)?;
            syscall::stat_unchecked(file.as_fd())
        };
        let tried = made(one).and_then(|first| {
            let second = made(other)?;
            if syscall::exchange_unchecked(one, other).is_err() {
                return Ok(false);
            }
            let is_there = |(dir, name): EntryRef<'_>, file: &Metadata| {
                syscall::stat_at_unchecked(dir, name).is_ok_and(|there| there.same_file(file))
            };
            Ok(is_there(one, &second) && is_there(other, &first))
        });
        for (dir, name) in [one, other] {
            let _ = syscall::unlink_unchecked(dir, name);
        }
        tried
    }

    pub(crate) fn objects(&self) -> BorrowedFd<'_> {
        self.objects.as_fd()
    }

    pub(crate) fn records(&self) -> BorrowedFd<'_> {
        self.records.as_fd()
    }

    /// The next number, larger than all before it and than `least`, whoever took them.
    pub(crate) fn next_number(&self, least: u64) -> SysResult<u64> {
        let mut counter = self.counter();
        self.renew(&mut counter)?;
        syscall::lock_unchecked(counter.as_fd())?;
        let number = self.take_number(&counter, least);
        // The descriptor stays open, and its lock with it.
        syscall::unlock_unchecked(counter.as_fd())?;
        number
    }

    fn take_number(&self, counter: &File, least: u64) -> SysResult<u64> {
        if self.shared {
            syscall::sync_attributes_unchecked(counter.as_fd())?;
        }
        let number = number_in(counter).max(least) + 1;
        let written = counter.write_all_at(format!("{number:020}").as_bytes(), 0);
        written.map_err(|error| errno_of(&error))?;
        Ok(number)
    }

    /// Takes a number that is new in both histories.
    pub(crate) fn next_joint_number(&self, other: &Store) -> SysResult<u64> {
        let mut number = self.next_number(0)?;
        for _ in 0..JOINT_TRIES {
            let theirs = other.next_number(number - 1)?;
            if theirs == number {
                return Ok(number);
            }
            // Whoever is behind catches up. What is skipped names no change.
            number = self.next_number(theirs - 1)?;
            if number == theirs {
                return Ok(number);
            }
        }
        Err(Errno::AGAIN)
    }

    /// The last number that was given.
    pub(crate) fn last_number(&self) -> u64 {
        let mut counter = self.counter();
        let _ = self.renew(&mut counter);
        number_in(&counter)
    }

    /// Opens the counter again if others write it: a file that was open before may be read as it was then.
    fn renew(&self, counter: &mut File) -> SysResult<()> {
        if self.shared {
            let opened = syscall::open_own_unchecked(self.dir.as_fd(), &fixed("counter")?)?;
            *counter = File::from(opened);
        }
        Ok(())
    }

    fn counter(&self) -> MutexGuard<'_, File> {
        self.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest change that is kept; those before it are gone.
    pub(crate) fn oldest_kept(&self) -> u64 {
        let text = fixed("oldest").and_then(|name| read_own(self.dir.as_fd(), &name));
        let text = text.ok().and_then(|text| String::from_utf8(text).ok());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    pub(crate) fn set_oldest_kept(&self, number: u64) -> SysResult<()> {
        write_own(
            self.dir.as_fd(),
            &fixed("oldest")?,
            number.to_string().as_bytes(),
        )
    }

    /// The hashes with which record files ended that are gone.
    pub(crate) fn pruned_hashes(&self) -> Vec<String> {
        let text = fixed("pruned").and_then(|name| read_own(self.dir.as_fd(), &name));
        let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn set_pruned_hashes(&self, hashes: &[String]) -> SysResult<()> {
        write_own(
            self.dir.as_fd(),
            &fixed("pruned")?,
            hashes.join("\n").as_bytes(),
        )
    }
}

fn number_in(counter: &File) -> u64 {
    let mut text = [0; 20];
    let read = counter.read_exact_at(&mut text, 0);
    let text = read.ok().and_then(|()| std::str::from_utf8(&text).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn fixed(name: &str) -> SysResult<Name> {
    Name::new(name.as_bytes()).ok_or(Errno::INVAL)
}

fn store_name(header: &Header, forged: usize) -> SysResult<Name> {
    let name = match header {
        // File systems give numbers again, to workspaces that come and go even many times a day.
        Header::Own {
            device,
            inode,
            born,
            ..
        } => match born {
            Some((seconds, nanoseconds)) => {
                format!("{device:x}-{inode:x}.{seconds:x}.{nanoseconds:x}")
            }
            None => format!("{device:x}-{inode:x}"),
        },
        Header::Shared { root, .. } => format!("cluster-{:016x}", name_hash(root)),
    };
    match forged {
        0 => fixed(&name),
        beside => fixed(&format!("{name}-{beside}")),
    }
}

/// Opens the reserved directory in another one, which has to be ours and no link, and makes it private.
fn own_directory(parent: BorrowedFd<'_>) -> SysResult<OwnedFd> {
    let name = reserved_name().ok_or(Errno::INVAL)?;
    let dir = match syscall::open_dir_unchecked(parent, &name) {
        Err(Errno::NOENT) => {
            match syscall::make_dir_unchecked(parent, &name, PRIVATE_DIRECTORY) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            syscall::open_dir_unchecked(parent, &name)?
        }
        opened => opened?,
    };
    let metadata = syscall::stat_unchecked(dir.as_fd())?;
    if metadata.uid != geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if metadata.mode != PRIVATE_DIRECTORY {
        syscall::set_mode_unchecked(dir.as_fd(), PRIVATE_DIRECTORY)?;
    }
    let ignored = fixed(".gitignore")?;
    if let Err(Errno::NOENT) = syscall::stat_at_unchecked(dir.as_fd(), &ignored) {
        write_own(dir.as_fd(), &ignored, b"*\n")?;
    }
    Ok(dir)
}

/// Opens a directory by this name if it can be trusted; `None` if it cannot.
fn open_trusted(
    holder: BorrowedFd<'_>,
    name: &Name,
    header: &Header,
) -> SysResult<Option<OwnedFd>> {
    let dir = match syscall::open_dir_unchecked(holder, name) {
        Err(Errno::LOOP | Errno::NOTDIR) => return Ok(None),
        opened => opened?,
    };
    let metadata = syscall::stat_unchecked(dir.as_fd())?;
    let is_own = metadata.uid == geteuid().as_raw() && metadata.mode == PRIVATE_DIRECTORY;
    let found = read_own(dir.as_fd(), &fixed("header")?);
    let found = found
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    Ok((is_own && found.as_ref() == Some(header)).then_some(dir))
}

/// Says that a directory is in use, for as long as what is returned lives.
fn use_dir(dir: BorrowedFd<'_>) -> SysResult<OwnedFd> {
    let header = syscall::open_content_unchecked(dir, &fixed("header")?, Purpose::Read)?;
    match syscall::lock_shared_unchecked(header.as_fd()) {
        // Where nothing can be locked, nothing is removed either.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => Ok(header),
        Err(errno) => Err(errno),
    }
}

/// Tells whether a directory is still the one of this name.
fn is_at(holder: BorrowedFd<'_>, name: &Name, dir: BorrowedFd<'_>) -> SysResult<bool> {
    let dir = syscall::stat_unchecked(dir)?;
    match syscall::stat_at_unchecked(holder, name) {
        Err(Errno::NOENT) => Ok(false),
        found => Ok(found?.same_file(&dir)),
    }
}

/// Removes the directories of other roots, and of this one under another number, in which nothing was written for longer
/// than they keep anything and that nobody has open.
pub(crate) fn remove_stale(holder: BorrowedFd<'_>, header: &Header) -> SysResult<()> {
    let holder = own_directory(holder)?;
    let own = store_name(header, 0)?;
    let mut names = Vec::new();
    syscall::read_dir_unchecked(holder.as_fd(), &mut |name, kind| {
        names.extend(Name::new(name).filter(|_| kind == FileKind::Directory));
    })?;
    let is_own = |name: &Name| {
        let rest = name.as_bytes().strip_prefix(own.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
    };
    for name in names.iter().filter(|name| !is_own(name)) {
        if let Ok(Some(_alone)) = stale(holder.as_fd(), name) {
            let dir = super::prune::plain_dir(holder.as_fd())?;
            // What cannot be removed now is tried again later.
            let _ = Change::begin(Durability::Fast).clear_unmounted(&dir, name);
        }
    }
    Ok(())
}

/// Locks a directory that is stale and not in use; nobody opens it while what is returned lives.
fn stale(holder: BorrowedFd<'_>, name: &Name) -> SysResult<Option<OwnedFd>> {
    if !is_stale(holder, name)? {
        return Ok(None);
    }
    let dir = syscall::open_dir_unchecked(holder, name)?;
    // NFS locks alone only what is open for writing.
    let header = syscall::open_content_unchecked(dir.as_fd(), &fixed("header")?, Purpose::Edit)?;
    let is_alone = syscall::try_lock_unchecked(header.as_fd())?;
    // Somebody may have used it before it was locked.
    Ok((is_alone && is_stale(holder, name)?).then_some(header))
}

fn is_stale(holder: BorrowedFd<'_>, name: &Name) -> SysResult<bool> {
    let dir = syscall::open_dir_unchecked(holder, name)?;
    let keep = read_own(dir.as_fd(), &fixed("keep")?)?;
    let keep = String::from_utf8(keep).ok();
    let keep: u64 = keep
        .and_then(|text| text.parse().ok())
        .ok_or(Errno::INVAL)?;
    // The counter is written with every change.
    let counter = syscall::stat_at_unchecked(dir.as_fd(), &fixed("counter")?)?;
    let age = (super::journal::now_ms() / 1000)
        .saturating_sub(u64::try_from(counter.modified.seconds).unwrap_or_default());
    Ok(age > keep.max(LEAST_KEPT))
}

/// Makes a whole directory under a temporary name and gives it its own in one step.
fn make(holder: BorrowedFd<'_>, name: &Name, header: &Header) -> SysResult<()> {
    let temporary = leftovers::temporary_name()?;
    syscall::make_dir_unchecked(holder, &temporary, PRIVATE_DIRECTORY)?;
    let made = fill(holder, &temporary, header).and_then(|()| {
        let (from, to) = ((holder, &temporary), (holder, name));
        crate::change::rename_entry(from, to, OnExisting::Fail, FileKind::Directory)
    });
    if made.is_err() {
        let dir = syscall::open_dir_unchecked(holder, &temporary)?;
        for inner in ["objects", "records"] {
            let _ = syscall::remove_dir_unchecked(dir.as_fd(), &fixed(inner)?);
        }
        let _ = syscall::unlink_unchecked(dir.as_fd(), &fixed("header")?);
        let _ = syscall::remove_dir_unchecked(holder, &temporary);
    }
    made
}

fn fill(holder: BorrowedFd<'_>, name: &Name, header: &Header) -> SysResult<()> {
    let dir = syscall::open_dir_unchecked(holder, name)?;
    for inner in ["objects", "records"] {
        syscall::make_dir_unchecked(dir.as_fd(), &fixed(inner)?, PRIVATE_DIRECTORY)?;
    }
    let text = serde_json::to_vec(header).map_err(|_| Errno::INVAL)?;
    write_own(dir.as_fd(), &fixed("header")?, &text)?;
    syscall::sync_unchecked(dir.as_fd())
}

/// Reads a small file of our own; a link is not followed.
fn read_own(dir: BorrowedFd<'_>, name: &Name) -> SysResult<Vec<u8>> {
    const MOST: u64 = 16 * 1024 * 1024;
    let file = syscall::open_content_unchecked(dir, name, Purpose::Read)?;
    if syscall::stat_unchecked(file.as_fd())?.kind != FileKind::File {
        return Err(Errno::INVAL);
    }
    let mut text = Vec::new();
    let read = File::from(file).take(MOST).read_to_end(&mut text);
    read.map_err(|error| errno_of(&error))?;
    Ok(text)
}

/// Writes a small file of our own in one step.
fn write_own(dir: BorrowedFd<'_>, name: &Name, text: &[u8]) -> SysResult<()> {
    let temporary = leftovers::temporary_name()?;
    let file = syscall::create_unchecked(dir, &temporary, PRIVATE_FILE)?;
    let written = (&File::from(file)).write_all(text);
    let written = written
        .map_err(|error| errno_of(&error))
        .and_then(|()| syscall::rename_unchecked((dir, &temporary), (dir, name), Clobber::Yes));
    written.inspect_err(|_| {
        let _ = syscall::unlink_unchecked(dir, &temporary);
    })
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted_fault::{self, PlantedFault};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    fn open(path: &Path) -> SysResult<Store> {
        let root = syscall::open_root_unchecked(path).unwrap();
        let metadata = syscall::stat_unchecked(root.as_fd()).unwrap();
        Store::open(root.as_fd(), &Header::of(&metadata))
    }

    fn stores(path: &Path) -> Vec<PathBuf> {
        let listed = fs::read_dir(path.join(".mcp-filesystem")).unwrap();
        let mut all: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
        all.retain(|path| path.is_dir());
        all.sort();
        all
    }

    #[test]
    fn numbers_are_given_once_whoever_asks() {
        let temp = tempfile::tempdir().unwrap();
        let (one, two) = (open(temp.path()).unwrap(), open(temp.path()).unwrap());
        assert_eq!(one.next_number(0), Ok(1));
        assert_eq!(two.next_number(0), Ok(2));
        assert_eq!(one.next_number(10), Ok(11));
        assert_eq!(two.last_number(), 11);
        let taken = std::thread::scope(|scope| {
            let take = || (0..200).map(|_| one.next_number(0).unwrap()).collect();
            let threads = [(); 4].map(|()| scope.spawn(take));
            let taken = threads.map(|thread| -> Vec<u64> { thread.join().unwrap() });
            taken.concat()
        });
        let distinct: std::collections::BTreeSet<&u64> = taken.iter().collect();
        assert_eq!(distinct.len(), 800);
        assert_eq!(stores(temp.path()).len(), 1);
        let ignored = fs::read(temp.path().join(".mcp-filesystem/.gitignore")).unwrap();
        assert_eq!(ignored, b"*\n");
    }

    /// Replicas see one root under different devices: its name and their number tell whose a history is.
    #[test]
    fn replicas_share_one_history_and_trust_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let root = syscall::open_root_unchecked(temp.path()).unwrap();
        let open =
            |cluster, name| Store::open(root.as_fd(), &Header::shared(cluster, name)).unwrap();
        let (one, two) = (open("7", "main"), open("7", "main"));
        let numbers = [&one, &two, &one, &two].map(|store| store.next_number(0).unwrap());
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(one.last_number(), 4);
        assert_eq!(stores(temp.path()).len(), 1);
        assert_eq!(open("7", "other").next_number(0), Ok(1));
        let forged = open("8", "main");
        assert_eq!((forged.forged, forged.next_number(0)), (1, Ok(1)));
        assert_eq!(stores(temp.path()).len(), 3);
    }

    /// What is old may still be open, in another process or for another root of this one.
    #[test]
    fn a_directory_that_is_in_use_is_not_stale() {
        let temp = tempfile::tempdir().unwrap();
        let root = syscall::open_root_unchecked(temp.path()).unwrap();
        let of = |inode| Header::Own {
            history: VERSION,
            device: 1,
            inode,
            born: None,
        };
        let other = Store::open(root.as_fd(), &of(2)).unwrap();
        other.note_keep(Duration::from_secs(1)).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        other.counter().set_modified(long_ago).unwrap();
        drop(Store::open(root.as_fd(), &of(1)).unwrap());
        remove_stale(root.as_fd(), &of(1)).unwrap();
        assert_eq!(stores(temp.path()).len(), 2);
        assert_eq!(other.next_number(0), Ok(1));
        other.counter().set_modified(long_ago).unwrap();
        drop(other);
        remove_stale(root.as_fd(), &of(1)).unwrap();
        assert_eq!(stores(temp.path()).len(), 1);
        assert!(stores(temp.path())[0].ends_with("1-1"));
    }

    /// A file system may say that names changed places although it put one over the other.
    #[test]
    fn an_exchange_is_believed_once_it_was_seen() {
        let temp = tempfile::tempdir().unwrap();
        let tried = |fault| planted_fault::with(fault, || open(temp.path()).unwrap().exchanges());
        assert!(tried(None));
        assert!(!tried(Some(PlantedFault::IgnoredFlags)));
        assert!(!tried(Some(PlantedFault::NoRenameFlags)));
        let objects = stores(temp.path()).remove(0).join("objects");
        assert_eq!(fs::read_dir(objects).unwrap().count(), 0);
    }

    /// The number of a directory that is gone is soon another's.
    #[test]
    fn roots_that_come_and_go_with_one_number_have_a_history_each() {
        let temp = tempfile::tempdir().unwrap();
        let holder = syscall::open_root_unchecked(temp.path()).unwrap();
        for seconds in 0..20 {
            let header = Header::Own {
                history: VERSION,
                device: 1,
                inode: 2,
                born: Some((seconds, 0)),
            };
            assert_eq!(Store::open(holder.as_fd(), &header).unwrap().forged, 0);
        }
        assert_eq!(stores(temp.path()).len(), 20);
    }

    /// A directory that an archive brought is left alone, and a new one is made beside it.
    #[test]
    fn a_forged_directory_is_not_trusted() {
        let temp = tempfile::tempdir().unwrap();
        drop(open(temp.path()).unwrap());
        let first = stores(temp.path()).remove(0);
        fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(open(temp.path()).unwrap().forged, 1);
        fs::set_permissions(&first, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(open(temp.path()).unwrap().forged, 0);
        fs::write(
            first.join("header"),
            r#"{"history":1,"device":1,"inode":2}"#,
        )
        .unwrap();
        assert_eq!(open(temp.path()).unwrap().forged, 1);
        assert_eq!(stores(temp.path()).len(), 2);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), temp.path().join(".mcp-filesystem")).unwrap();
        assert!(open(temp.path()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
