//! File metadata from the kernel.

use std::os::fd::BorrowedFd;

use rustix::fs::{self as sys, AtFlags};

use super::{SysResult, before};
use crate::metadata::{FileKind, Metadata, Time};
use crate::name::Name;

/// The metadata of a descriptor's file.
pub(crate) fn stat_unchecked(fd: BorrowedFd<'_>) -> SysResult<Metadata> {
    before("statx");
    statx(fd, c"", AtFlags::EMPTY_PATH)
}

/// The metadata of a descriptor's file without its birth time: cheaper than [`stat_unchecked`].
pub(crate) fn stat_content_unchecked(fd: BorrowedFd<'_>) -> SysResult<Metadata> {
    before("fstat");
    Ok(without_birth(&sys::fstat(fd)?))
}

/// The metadata of an entry without its birth time, never following it: cheaper than [`stat_at_unchecked`].
pub(crate) fn stat_content_at_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<Metadata> {
    before("fstatat");
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    Ok(without_birth(&sys::statat(dir, name.as_c_str(), flags)?))
}

fn without_birth(stat: &sys::Stat) -> Metadata {
    let time = |seconds, nanoseconds| Time {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or_default(),
    };
    Metadata {
        kind: kind(sys::FileType::from_raw_mode(stat.st_mode)),
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        accessed: time(stat.st_atime, stat.st_atime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
        created: None,
        device: stat.st_dev,
        inode: stat.st_ino,
    }
}

/// The metadata of an entry, never following it.
pub(crate) fn stat_at_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<Metadata> {
    before("statx");
    statx(dir, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
}

/// Tells whether something is mounted at an entry.
pub(crate) fn is_mount_point_unchecked(dir: BorrowedFd<'_>, name: &Name) -> SysResult<bool> {
    before("statx");
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = sys::statx(dir, name.as_c_str(), flags, sys::StatxFlags::TYPE)?;
    Ok(stat
        .stx_attributes
        .contains(sys::StatxAttributes::MOUNT_ROOT))
}

/// The metadata of a path below a directory.
pub(super) fn statx<P: rustix::path::Arg>(
    dir: BorrowedFd<'_>,
    path: P,
    flags: AtFlags,
) -> SysResult<Metadata> {
    let wanted = sys::StatxFlags::BASIC_STATS | sys::StatxFlags::BTIME;
    let stat = sys::statx(dir, path, flags | AtFlags::NO_AUTOMOUNT, wanted)?;
    let time = |t: sys::StatxTimestamp| Time {
        seconds: t.tv_sec,
        nanoseconds: t.tv_nsec,
    };
    let has_birth = stat.stx_mask & sys::StatxFlags::BTIME.bits() != 0;
    Ok(Metadata {
        kind: kind(sys::FileType::from_raw_mode(stat.stx_mode.into())),
        size: stat.stx_size,
        mode: u32::from(stat.stx_mode) & 0o7777,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        links: stat.stx_nlink,
        modified: time(stat.stx_mtime),
        accessed: time(stat.stx_atime),
        changed: time(stat.stx_ctime),
        created: has_birth.then(|| time(stat.stx_btime)),
        device: sys::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
    })
}

/// The kind of a file, from the kernel's mode bits.
pub(super) fn kind(file_type: sys::FileType) -> FileKind {
    match file_type {
        sys::FileType::RegularFile => FileKind::File,
        sys::FileType::Directory => FileKind::Directory,
        sys::FileType::Symlink => FileKind::Symlink,
        sys::FileType::Fifo => FileKind::Fifo,
        sys::FileType::Socket => FileKind::Socket,
        sys::FileType::CharacterDevice => FileKind::CharDevice,
        sys::FileType::BlockDevice => FileKind::BlockDevice,
        _ => FileKind::Unknown,
    }
}
