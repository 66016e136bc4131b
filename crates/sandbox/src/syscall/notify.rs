//! Notices of the kernel about changes in directories (inotify).

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::fs::{self as sys, inotify};

use super::{Errno, SysResult, before, fd_number, proc_fds};

/// How many bytes of events are fetched at a time.
const EVENT_BUFFER: usize = 16 * 1024;

/// The file systems whose content changes without this kernel knowing: NFS, SMB (three forms), FUSE, 9P, Ceph, AFS, VirtualBox.
const REMOTE: [sys::FsWord; 9] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x6573_5546,
    0x0102_1997,
    0x00C3_6400,
    0x5346_414F,
    0x786F_4256,
];

/// One notice of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The watched directory.
    pub(crate) watch: i32,
    /// What happened.
    pub(crate) what: ReadFlags,
    /// The kernel's cookie: equal for both ends of a rename.
    pub(crate) cookie: u32,
    /// The entry of that directory; empty if it is the directory itself.
    pub(crate) name: Vec<u8>,
}

/// Begins to listen; nothing is watched yet.
pub(crate) fn listen_unchecked() -> SysResult<OwnedFd> {
    before("inotify_init1");
    init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
}

/// Watches an open directory, even if it was renamed meanwhile.
pub(crate) fn watch_dir_unchecked(listener: BorrowedFd<'_>, dir: BorrowedFd<'_>) -> SysResult<i32> {
    before("inotify_add_watch");
    // There is no form of the call that takes a descriptor, only its name in procfs.
    proc_fds().ok_or(Errno::NOSYS)?;
    let path = format!("/proc/self/fd/{}", fd_number(dir).as_str());
    let wanted = WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
        | WatchFlags::EXCL_UNLINK;
    add_watch(listener, path, wanted)
}

/// Stops watching a directory, which may already be gone.
pub(crate) fn unwatch_unchecked(listener: BorrowedFd<'_>, watch: i32) {
    before("inotify_rm_watch");
    let _ = inotify::remove_watch(listener, watch);
}

/// Whether events are pending. If the poll fails, assume so; the read will tell.
pub(crate) fn has_notices_unchecked(listener: BorrowedFd<'_>) -> bool {
    before("poll");
    let mut one = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    poll(&mut one, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// Reads all pending notices, without waiting.
pub(crate) fn notices_unchecked(listener: BorrowedFd<'_>) -> SysResult<Vec<Notice>> {
    before("read");
    let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER];
    let mut reader = Reader::new(listener, &mut buffer);
    let mut notices = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => notices.push(Notice {
                watch: event.wd(),
                what: event.events(),
                cookie: event.cookie(),
                name: event
                    .file_name()
                    .map_or_else(Vec::new, |name| name.to_bytes().to_owned()),
            }),
            Err(Errno::AGAIN) => return Ok(notices),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Tells whether other machines or programs can change the content without this kernel knowing.
pub(crate) fn changes_unseen_unchecked(fd: BorrowedFd<'_>) -> bool {
    sys::fstatfs(fd).is_ok_and(|stat| REMOTE.contains(&stat.f_type))
}
