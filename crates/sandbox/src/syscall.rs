//! The only module that calls `rustix::fs`. Every name ends in `_unchecked`: nothing here is confined by
//! itself, the callers are. A name given to a call that takes one is a [`Name`], so it never crosses a
//! directory by itself; a path is a [`NamePath`], so it never goes up.

mod attributes;
mod kept;
mod notify;
mod stamps;
mod stat;
mod together;

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{self as sys, AtFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
pub(crate) use rustix::io::Errno;
use rustix::io::ReadWriteFlags;
use rustix::path::DecInt;

use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::name_path::NamePath;
use crate::planted_fault::{self, PlantedFault};

pub(crate) use attributes::{
    copy_xattr_unchecked, has_xattr_unchecked, remove_xattr_unchecked, set_mode_unchecked,
    set_owner_unchecked, set_times_unchecked, xattr_names_unchecked,
};

pub(crate) use kept::{
    exchange_unchecked, lock_shared_unchecked, lock_unchecked, open_own_unchecked,
    sync_data_unchecked, try_lock_unchecked, unlock_unchecked,
};
pub(crate) use stat::{
    is_mount_point_unchecked, stat_at_unchecked, stat_content_at_unchecked, stat_content_unchecked,
    stat_unchecked,
};
use stat::{kind, statx};

pub(crate) use stamps::{Stamping, is_unwritten_unchecked, stamping_unchecked};

pub(crate) use notify::{
    Notice, changes_unseen_unchecked, has_notices_unchecked, listen_unchecked, notices_unchecked,
    unwatch_unchecked, watch_dir_unchecked,
};
pub(crate) use together::{
    FileSystem, HowLocked, check_writable_dir_unchecked, file_system_unchecked,
    hold_surely_unchecked, hold_unchecked, mount_number_unchecked, sync_attributes_unchecked,
    sync_entry_unchecked,
};

pub(crate) type SysResult<T> = Result<T, Errno>;

/// How often a look-up is tried again that a rename elsewhere on the host disturbed.
const TRIES: usize = 16;
/// How many bytes of directory entries are fetched at a time.
const DIRENT_BUFFER: usize = 32 * 1024;
/// Room for the path of a descriptor: the kernel tells none that is longer than a page.
const PATH_BUFFER: usize = 4096;

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LOOK_DIR: OFlags = LOOK.union(OFlags::DIRECTORY);
const READ_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Security: a FIFO or terminal must never block us or become our controlling terminal.
const CONTENT: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Security: no link is followed, so that names lead only down.
const UNLINKED: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
/// No link is followed, and the kernel checks once more that the end is beneath the beginning.
const BENEATH: ResolveFlags = UNLINKED.union(ResolveFlags::BENEATH);

/// The types of file systems on this machine's own disks or in its memory: ext4, XFS, Btrfs, F2FS, tmpfs.
const LOCAL: [sys::FsWord; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

#[cfg(not(test))]
fn before(_call: &'static str) {}

#[cfg(test)]
fn before(call: &'static str) {
    hook::fire(call);
}

/// Lets a test act before every system call of its own thread.
#[cfg(test)]
pub(crate) mod hook {
    use std::cell::RefCell;

    type Action = Box<dyn FnMut(&'static str)>;

    thread_local! {
        static ACTION: RefCell<Option<Action>> = const { RefCell::new(None) };
    }

    /// Runs `body` with `action` called before each system call it makes.
    pub(crate) fn with<T>(
        action: impl FnMut(&'static str) + 'static,
        body: impl FnOnce() -> T,
    ) -> T {
        ACTION.with(|cell| *cell.borrow_mut() = Some(Box::new(action)));
        let result = body();
        ACTION.with(|cell| *cell.borrow_mut() = None);
        result
    }

    pub(super) fn fire(call: &'static str) {
        // Taken out while it runs, so that an action may itself use this crate.
        let action = ACTION.with(|cell| cell.borrow_mut().take());
        if let Some(mut action) = action {
            action(call);
            ACTION.with(|cell| *cell.borrow_mut() = Some(action));
        }
    }
}

/// The flags with which an entry is opened; without `O_NOFOLLOW` if a test plants that fault.
fn unfollowed(flags: OFlags) -> OFlags {
    if planted_fault::planted(PlantedFault::FollowLinks) {
        flags.difference(OFlags::NOFOLLOW)
    } else {
        flags.union(OFlags::NOFOLLOW)
    }
}

fn retry<T>(mut call: impl FnMut() -> SysResult<T>) -> SysResult<T> {
    for _ in 1..TRIES {
        match call() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    call()
}

/// Opens a root by its host path: the one place where a path string is opened.
pub(crate) fn open_root_unchecked(path: &Path) -> SysResult<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    sys::openat(sys::CWD, path, flags, Mode::empty())
}

/// Looks at what is at the host path of a root, never following a link at its end.
pub(crate) fn stat_host_path_unchecked(path: &Path) -> SysResult<Metadata> {
    statx(sys::CWD, path, AtFlags::SYMLINK_NOFOLLOW)
}

/// Opens what names lead to from `root`; without RESOLVE flags if a test plants that fault.
fn openat2(
    root: BorrowedFd<'_>,
    names: &NamePath<'_>,
    flags: OFlags,
    resolve: ResolveFlags,
) -> SysResult<OwnedFd> {
    before("openat2");
    let resolve = if planted_fault::planted(PlantedFault::NoResolveFlags) {
        ResolveFlags::empty()
    } else {
        resolve
    };
    sys::openat2(root, names.as_c_str(), flags, Mode::empty(), resolve)
}

/// Looks up a directory beneath `root`, refusing every link.
pub(crate) fn openat2_dir_unchecked(
    root: BorrowedFd<'_>,
    names: &NamePath<'_>,
) -> SysResult<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry(|| openat2(root, names, flags, BENEATH))
}

/// Looks at what is beneath `root` in one call, refusing every link on the way.
///
/// Names without links lead only down, so the kernel is not asked to look once more: it would cost a twentieth of the
/// open that follows.
pub(crate) fn openat2_look_unchecked(
    root: BorrowedFd<'_>,
    names: &NamePath<'_>,
) -> SysResult<OwnedFd> {
    retry(|| openat2(root, names, unfollowed(LOOK), UNLINKED))
}

/// Looks at what is beneath `root` only if the answer is in memory and on the root's own file system, so that it never waits
/// for a disk.
pub(crate) fn openat2_look_in_memory_unchecked(
    root: BorrowedFd<'_>,
    names: &NamePath<'_>,
) -> SysResult<OwnedFd> {
    let resolve = UNLINKED | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
    openat2(root, names, unfollowed(LOOK), resolve)
}

/// Reads a file of `size` bytes if all of it is in memory; `None` if a disk would be waited for, or it has another size.
pub(crate) fn read_cached_unchecked(file: BorrowedFd<'_>, size: usize) -> Option<Vec<u8>> {
    before("preadv2");
    // One byte more than there should be shows that the file ends there.
    let mut bytes = vec![0; size.checked_add(1)?];
    let buffers = &mut [IoSliceMut::new(&mut bytes)];
    let length = rustix::io::preadv2(file, buffers, 0, ReadWriteFlags::NOWAIT).ok()?;
    bytes.truncate(size);
    (length == size).then_some(bytes)
}

/// Reads the first bytes of a file if they are in memory; `None` if a disk would be waited for, or it has fewer.
pub(crate) fn read_cached_beginning_unchecked(
    file: BorrowedFd<'_>,
    length: usize,
) -> Option<Vec<u8>> {
    before("preadv2");
    let mut bytes = vec![0; length];
    let buffers = &mut [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::preadv2(file, buffers, 0, ReadWriteFlags::NOWAIT).ok()?;
    (read == length).then_some(bytes)
}

/// Reads once from `offset` on.
pub(crate) fn read_at_unchecked(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
) -> SysResult<usize> {
    before("pread");
    rustix::io::pread(file, buffer, offset)
}

/// Tells whether a file system is this machine's own, so that opening a file that was looked up waits for nobody.
pub(crate) fn is_local_unchecked(fd: BorrowedFd<'_>) -> bool {
    sys::fstatfs(fd).is_ok_and(|stat| LOCAL.contains(&stat.f_type))
}

/// Looks at an entry without following it or opening its content.
pub(crate) fn look_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<OwnedFd> {
    before("openat");
    retry(|| sys::openat(dir, name.as_c_str(), unfollowed(LOOK), Mode::empty()))
}

/// Looks at an entry that has to be a directory, without following it.
pub(crate) fn look_dir_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<OwnedFd> {
    before("openat");
    retry(|| sys::openat(dir, name.as_c_str(), unfollowed(LOOK_DIR), Mode::empty()))
}

/// Opens an entry that has to be a directory for listing, without following it.
pub(crate) fn open_dir_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<OwnedFd> {
    before("openat");
    retry(|| sys::openat(dir, name.as_c_str(), unfollowed(READ_DIR), Mode::empty()))
}

/// Opens the directory of a descriptor for listing.
pub(crate) fn reopen_dir_unchecked(dir: BorrowedFd<'_>) -> SysResult<OwnedFd> {
    before("openat");
    retry(|| sys::openat(dir, c".", READ_DIR, Mode::empty()))
}

/// Opens the directory above. Security: callers compare its identity with the one they came from.
pub(crate) fn open_parent_unchecked(dir: BorrowedFd<'_>) -> SysResult<OwnedFd> {
    before("openat");
    retry(|| sys::openat(dir, c"..", READ_DIR, Mode::empty()))
}

/// Opens a directory by its host path: what a test plants for `..`, never what we do.
#[cfg(test)]
pub(crate) fn open_by_string_unchecked(path: &Path) -> SysResult<OwnedFd> {
    before("openat");
    open_root_unchecked(path)
}

/// Opens content by name and follows it: what a test plants for opening content, never what we do.
#[cfg(test)]
pub(crate) fn open_content_following_unchecked(
    dir: BorrowedFd<'_>,
    name: &Name,
    purpose: Purpose,
) -> SysResult<OwnedFd> {
    before("openat");
    sys::openat(dir, name.as_c_str(), purpose.flags(), Mode::empty())
}

/// The purpose of a content descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
    /// Reading a file that will be replaced.
    Edit,
    Append,
}

impl Purpose {
    fn flags(self) -> OFlags {
        match self {
            Purpose::Read => OFlags::RDONLY | CONTENT,
            Purpose::Write => OFlags::WRONLY | CONTENT,
            Purpose::Edit => OFlags::RDWR | CONTENT,
            Purpose::Append => OFlags::WRONLY | OFlags::APPEND | CONTENT,
        }
    }
}

/// Opens an entry's content by name, never following it.
pub(crate) fn open_content_unchecked(
    dir: BorrowedFd<'_>,
    name: &Name,
    purpose: Purpose,
) -> SysResult<OwnedFd> {
    before("openat");
    let flags = unfollowed(purpose.flags());
    stamps::retry_beside_leases(|| sys::openat(dir, name.as_c_str(), flags, Mode::empty()))
}

/// Opens the content of the inode of a descriptor; `None` if there is no `/proc`.
pub(crate) fn reopen_content_unchecked(
    entry: BorrowedFd<'_>,
    purpose: Purpose,
) -> Option<SysResult<OwnedFd>> {
    let proc = proc_fds()?;
    before("reopen");
    let number = fd_number(entry);
    let open = || sys::openat(proc, number.as_c_str(), purpose.flags(), Mode::empty());
    Some(stamps::retry_beside_leases(open))
}

/// `/proc/self/fd`, taken once and checked to be procfs, so that it works after Landlock locked us in.
pub(crate) fn proc_fds() -> Option<BorrowedFd<'static>> {
    static PROC: OnceLock<Option<OwnedFd>> = OnceLock::new();
    PROC.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = sys::openat(sys::CWD, c"/proc/self/fd", flags, Mode::empty()).ok()?;
        let is_proc = sys::fstatfs(&fd).ok()?.f_type == sys::PROC_SUPER_MAGIC;
        is_proc.then_some(fd)
    })
    .as_ref()
    .map(AsFd::as_fd)
}

/// Where a descriptor is now, as an absolute path; the kernel adds ` (deleted)` if it is nowhere.
pub(crate) fn path_of_unchecked(fd: BorrowedFd<'_>) -> SysResult<Vec<u8>> {
    let proc = proc_fds().ok_or(Errno::NOSYS)?;
    before("readlinkat");
    let mut buffer = [MaybeUninit::uninit(); PATH_BUFFER];
    let number = fd_number(fd);
    let (path, _) = sys::readlinkat_raw(proc, number.as_c_str(), &mut buffer)?;
    // A path that fills the buffer may be cut.
    if path.len() >= PATH_BUFFER {
        return Err(Errno::NAMETOOLONG);
    }
    Ok(path.to_vec())
}

fn fd_number(fd: BorrowedFd<'_>) -> DecInt {
    DecInt::from_fd(fd)
}

/// Makes an unnamed file in a directory, with the umask applied to `mode`.
pub(crate) fn open_unnamed_unchecked(dir: BorrowedFd<'_>, mode: u32) -> SysResult<OwnedFd> {
    before("tmpfile");
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    sys::openat(dir, c".", flags, Mode::from_raw_mode(mode))
}

/// Makes a new file by name; fails if anything is there, also a link.
pub(crate) fn create_unchecked(dir: BorrowedFd<'_>, name: &Name, mode: u32) -> SysResult<OwnedFd> {
    before("create");
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::openat(dir, name.as_c_str(), flags, Mode::from_raw_mode(mode))
}

/// Gives an unnamed file its name; fails if anything is there.
pub(crate) fn link_unnamed_unchecked(
    file: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &Name,
) -> SysResult<()> {
    let proc = proc_fds().ok_or(Errno::NOSYS)?;
    before("linkat");
    let number = fd_number(file);
    sys::linkat(
        proc,
        number.as_c_str(),
        dir,
        name.as_c_str(),
        AtFlags::SYMLINK_FOLLOW,
    )
}

/// Whether a rename may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clobber {
    Yes,
    No,
}

pub(crate) fn rename_unchecked(
    from: (BorrowedFd<'_>, &Name),
    to: (BorrowedFd<'_>, &Name),
    clobber: Clobber,
) -> SysResult<()> {
    before("renameat2");
    let flags = match clobber {
        Clobber::Yes => RenameFlags::empty(),
        Clobber::No
            if planted_fault::planted(PlantedFault::NoHardLinks)
                || planted_fault::planted(PlantedFault::NoRenameFlags) =>
        {
            return Err(Errno::INVAL);
        }
        Clobber::No => RenameFlags::NOREPLACE,
    };
    sys::renameat_with(from.0, from.1.as_c_str(), to.0, to.1.as_c_str(), flags)
}

/// Gives a file a second name; fails if anything is there. A link is not followed.
pub(crate) fn link_unchecked(
    from: (BorrowedFd<'_>, &Name),
    to: (BorrowedFd<'_>, &Name),
) -> SysResult<()> {
    before("linkat");
    if planted_fault::planted(PlantedFault::NoHardLinks) {
        return Err(Errno::PERM);
    }
    sys::linkat(
        from.0,
        from.1.as_c_str(),
        to.0,
        to.1.as_c_str(),
        AtFlags::empty(),
    )
}

pub(crate) fn unlink_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<()> {
    before("unlinkat");
    sys::unlinkat(dir, name.as_c_str(), AtFlags::empty())
}

pub(crate) fn remove_dir_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<()> {
    before("rmdir");
    sys::unlinkat(dir, name.as_c_str(), AtFlags::REMOVEDIR)
}

pub(crate) fn make_dir_unchecked(dir: BorrowedFd<'_>, name: &Name, mode: u32) -> SysResult<()> {
    before("mkdirat");
    sys::mkdirat(dir, name.as_c_str(), Mode::from_raw_mode(mode))
}

pub(crate) fn make_link_unchecked(
    dir: BorrowedFd<'_>,
    name: &Name,
    target: &[u8],
) -> SysResult<()> {
    before("symlinkat");
    sys::symlinkat(target, dir, name.as_c_str())
}

/// The text of the link of a descriptor.
pub(crate) fn read_link_unchecked(link: BorrowedFd<'_>) -> SysResult<Vec<u8>> {
    before("readlinkat");
    sys::readlinkat(link, c"", Vec::new()).map(|text| text.into_bytes())
}

/// The text of a link by name.
pub(crate) fn read_link_at_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<Vec<u8>> {
    before("readlinkat");
    sys::readlinkat(dir, name.as_c_str(), Vec::new()).map(|text| text.into_bytes())
}

/// Feeds every entry of an open directory to `take`, without `.` and `..`.
pub(crate) fn read_dir_unchecked(
    dir: BorrowedFd<'_>,
    take: &mut dyn FnMut(&[u8], FileKind),
) -> SysResult<()> {
    read_entries_unchecked(dir, &mut |name, kind, _| take(name, kind))
}

/// Feeds every entry to `take` with the inode number that the directory lists, which is not that of what is mounted there.
pub(crate) fn read_entries_unchecked(
    dir: BorrowedFd<'_>,
    take: &mut dyn FnMut(&[u8], FileKind, u64),
) -> SysResult<()> {
    let mut buffer = [MaybeUninit::uninit(); DIRENT_BUFFER];
    let mut entries = RawDir::new(dir, &mut buffer);
    before("getdents");
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            take(name, kind(entry.file_type()), entry.ino());
        }
    }
    Ok(())
}

/// What the process may do with an entry by its effective ids, never following it.
pub(crate) fn may_unchecked(dir: BorrowedFd<'_>, name: &Name, access: sys::Access) -> bool {
    before("faccessat");
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    sys::accessat(dir, name.as_c_str(), access, flags).is_ok()
}

/// What the process may do with the directory of a descriptor.
pub(crate) fn may_dir_unchecked(dir: BorrowedFd<'_>, access: sys::Access) -> bool {
    before("faccessat");
    sys::accessat(dir, c".", access, AtFlags::EACCESS).is_ok()
}

pub(crate) fn sync_unchecked(fd: BorrowedFd<'_>) -> SysResult<()> {
    before("fsync");
    match sys::fsync(fd) {
        // Some file systems cannot sync a directory; there is nothing more to do then.
        Err(Errno::INVAL | Errno::ROFS) => Ok(()),
        result => result,
    }
}

pub(crate) fn sync_filesystem_unchecked(fd: BorrowedFd<'_>) -> SysResult<()> {
    before("syncfs");
    sys::syncfs(fd)
}

pub(crate) fn reserve_unchecked(file: BorrowedFd<'_>, offset: u64, length: u64) -> SysResult<()> {
    before("fallocate");
    match retry(|| sys::fallocate(file, sys::FallocateFlags::KEEP_SIZE, offset, length)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        result => result,
    }
}

/// Moves the read position to the first data at or behind `offset`; `None` if only a hole follows.
pub(crate) fn seek_data_unchecked(file: BorrowedFd<'_>, offset: u64) -> SysResult<Option<u64>> {
    before("lseek");
    match sys::seek(file, sys::SeekFrom::Data(offset)) {
        Err(Errno::NXIO) => Ok(None),
        found => found.map(Some),
    }
}

/// Moves the read position to the first hole at or behind `offset`; the end of the file counts as one, also if it is before.
pub(crate) fn seek_hole_unchecked(file: BorrowedFd<'_>, offset: u64) -> SysResult<u64> {
    before("lseek");
    match sys::seek(file, sys::SeekFrom::Hole(offset)) {
        Err(Errno::NXIO) => Ok(offset),
        found => found,
    }
}

/// Shares all blocks of `from` with the empty file `to`, if the file system can.
pub(crate) fn clone_unchecked(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> SysResult<()> {
    before("ficlone");
    sys::ioctl_ficlone(to, from)
}

pub(crate) fn copy_range_unchecked(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    length: usize,
) -> SysResult<usize> {
    before("copy_file_range");
    sys::copy_file_range(from, None, to, None, length)
}
