//! Copies attributes from one file to another: owner, mode, access control lists, extended attributes, times.
//!
//! Security: nobody gets more rights than they had, and set-uid and set-gid are never taken over by a file.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::change::Change;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::syscall::{self, Errno};

/// Files and directories are private while owner and mode are being changed.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;
/// Attributes that belong to the old content: capabilities of a program, and signatures of its content.
const NOT_CARRIED: [&CStr; 3] = [c"security.capability", c"security.ima", c"security.evm"];
/// The access control list: with one, the mode's group bits are an upper bound and not the group's rights.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";
/// The list that new entries of a directory inherit.
const DEFAULT_LIST: &CStr = c"system.posix_acl_default";

/// Takes over owner and attributes as far as the process is allowed to; returns the mode to set when the file is
/// complete.
pub(crate) fn inherit(from: impl AsFd, to: impl AsFd, metadata: &Metadata) -> u32 {
    let (from, to) = (from.as_fd(), to.as_fd());
    let private = if metadata.is_directory() {
        PRIVATE_DIRECTORY
    } else {
        PRIVATE_FILE
    };
    let _ = syscall::set_mode_unchecked(to, private);
    let group_kept = keep_owner(to, metadata);
    let list_kept = keep_attributes(from, to);
    kept_mode(metadata, group_kept, list_kept)
}

/// Removes lists that a new file inherited from its directory and the file it stands for does not have.
pub(crate) fn drop_foreign_lists(from: impl AsFd, to: impl AsFd) {
    for list in [ACCESS_LIST, DEFAULT_LIST] {
        if !syscall::has_xattr_unchecked(from.as_fd(), list) {
            // There is none to remove, or the file system has no lists.
            let _ = syscall::remove_xattr_unchecked(to.as_fd(), list);
        }
    }
}

/// The mode of a copy.
///
/// Security: a copy has no list, so the group gets nothing if the group bits were only the list's upper bound.
pub(crate) fn copied_mode(from: BorrowedFd<'_>, metadata: &Metadata) -> u32 {
    let has_group_rights = metadata.mode & 0o070 != 0;
    let list_kept = !has_group_rights || !syscall::has_xattr_unchecked(from, ACCESS_LIST);
    kept_mode(metadata, true, list_kept) & 0o777
}

impl Dir {
    /// The permission bits that a copy of this directory has.
    pub fn mode_of_copy(&self) -> Result<u32> {
        Ok(copied_mode(self.fd(), &self.metadata()?))
    }

    /// Tells whether its file system is this machine's own, with times that move in steps of milliseconds.
    #[must_use]
    pub fn is_local(&self) -> bool {
        syscall::is_local_unchecked(self.fd())
    }
}

impl Change {
    /// Gives a directory everything that a directory moved by copying keeps; returns the mode that remains to be set.
    pub(crate) fn dress(&self, from: &Dir, to: &Dir) -> Result<u32> {
        let metadata = from.metadata()?;
        let mode = inherit(from.fd(), to.fd(), &metadata);
        drop_foreign_lists(from.fd(), to.fd());
        syscall::set_times_unchecked(to.fd(), metadata.accessed, metadata.modified)
            .map_err(|errno| Error::from_errno("utime", to.path(), errno))?;
        Ok(mode)
    }

    /// Gives a directory owner, lists, attributes, mode and times of another, once everything is in it.
    pub fn dress_dir(&self, from: &Dir, to: &Dir) -> Result<()> {
        let mode = self.dress(from, to)?;
        syscall::set_mode_unchecked(to.fd(), mode)
            .map_err(|errno| Error::from_errno("chmod", to.path(), errno))
    }
}

/// Gives a file another's owner and group, or the group alone; tells whether the group is the same now.
fn keep_owner(file: BorrowedFd<'_>, old: &Metadata) -> bool {
    syscall::set_owner_unchecked(file, Some(old.uid), old.gid).is_ok()
        || syscall::set_owner_unchecked(file, None, old.gid).is_ok()
}

/// Copies extended attributes; tells whether the access control list, if there is one, was copied.
fn keep_attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> bool {
    let names = match syscall::xattr_names_unchecked(from) {
        Ok(names) => names,
        Err(errno) => return matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS),
    };
    let carried = names
        .iter()
        .filter(|name| !NOT_CARRIED.contains(&name.as_c_str()));
    carried.fold(true, |list_kept, name| {
        let copied = syscall::copy_xattr_unchecked(from, to, name).is_ok();
        list_kept && (copied || name.as_c_str() != ACCESS_LIST)
    })
}

/// Security: the mode gives nobody more rights than they had. A group that could not be kept gets the rights of others;
/// without the list that bounded it, the group gets nothing. A directory keeps its sticky bit, which only takes rights
/// away, and hands its group on if that was kept.
fn kept_mode(old: &Metadata, group_kept: bool, list_kept: bool) -> u32 {
    let mode = old.mode;
    let rights = match (group_kept, list_kept) {
        (true, true) => mode & 0o777,
        (false, true) => mode & (0o707 | (mode & 0o007) << 3),
        (_, false) => mode & 0o707,
    };
    let of_directory = match (old.is_directory(), group_kept) {
        (true, true) => mode & 0o3000,
        (true, false) => mode & 0o1000,
        (false, _) => 0,
    };
    rights | of_directory
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{FileKind, Time};

    fn metadata(kind: FileKind, mode: u32) -> Metadata {
        Metadata {
            kind,
            size: 0,
            mode,
            uid: 0,
            gid: 0,
            links: 1,
            modified: Time::default(),
            accessed: Time::default(),
            changed: Time::default(),
            created: None,
            device: 0,
            inode: 0,
        }
    }

    #[test]
    fn a_mode_is_narrowed_where_the_group_or_its_list_is_lost() {
        let kept = |mode, group, list| kept_mode(&metadata(FileKind::File, mode), group, list);
        assert_eq!(kept(0o6664, true, true), 0o664);
        assert_eq!(kept(0o664, false, true), 0o644);
        assert_eq!(kept(0o660, false, true), 0o600);
        assert_eq!(kept(0o664, true, false), 0o604);
    }

    #[test]
    fn a_directory_keeps_what_takes_rights_away_and_its_group() {
        let kept = |group| kept_mode(&metadata(FileKind::Directory, 0o7775), group, true);
        assert_eq!(kept(true), 0o3775);
        assert_eq!(kept(false), 0o1755);
    }
}
