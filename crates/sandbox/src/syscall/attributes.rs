//! Modes, owners, times and extended attributes of open files.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{self as sys, Mode};

use super::{SysResult, before};
use crate::metadata::Time;

pub(crate) fn set_mode_unchecked(file: BorrowedFd<'_>, mode: u32) -> SysResult<()> {
    before("fchmod");
    sys::fchmod(file, Mode::from_raw_mode(mode))
}

/// Sets a file's group, and its owner if one is given.
pub(crate) fn set_owner_unchecked(
    file: BorrowedFd<'_>,
    uid: Option<u32>,
    gid: u32,
) -> SysResult<()> {
    before("fchown");
    sys::fchown(
        file,
        uid.map(sys::Uid::from_raw),
        Some(sys::Gid::from_raw(gid)),
    )
}

/// The names of a file's extended attributes.
pub(crate) fn xattr_names_unchecked(file: BorrowedFd<'_>) -> SysResult<Vec<std::ffi::CString>> {
    before("flistxattr");
    let mut list = vec![0; sys::flistxattr_query(file)?];
    let length = sys::flistxattr(file, list.as_mut_slice())?;
    list.truncate(length);
    let names = list
        .split_inclusive(|&b| b == 0)
        .filter_map(|n| CStr::from_bytes_with_nul(n).ok());
    Ok(names.map(CStr::to_owned).collect())
}

pub(crate) fn copy_xattr_unchecked(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    name: &CStr,
) -> SysResult<()> {
    before("fgetxattr");
    let mut value = vec![0; sys::fgetxattr_query(from, name)?];
    let length = sys::fgetxattr(from, name, value.as_mut_slice())?;
    value.truncate(length);
    sys::fsetxattr(to, name, &value, sys::XattrFlags::empty())
}

/// Tells whether a file has an extended attribute.
pub(crate) fn has_xattr_unchecked(file: BorrowedFd<'_>, name: &CStr) -> bool {
    before("fgetxattr");
    sys::fgetxattr_query(file, name).is_ok()
}

pub(crate) fn remove_xattr_unchecked(file: BorrowedFd<'_>, name: &CStr) -> SysResult<()> {
    before("fremovexattr");
    sys::fremovexattr(file, name)
}

/// Sets when a file was last read and when its content last changed.
pub(crate) fn set_times_unchecked(
    file: BorrowedFd<'_>,
    accessed: Time,
    modified: Time,
) -> SysResult<()> {
    before("futimens");
    let spec = |time: Time| sys::Timespec {
        tv_sec: time.seconds,
        tv_nsec: time.nanoseconds.into(),
    };
    let times = sys::Timestamps {
        last_access: spec(accessed),
        last_modification: spec(modified),
    };
    sys::futimens(file, &times)
}
