//! The mode that a new file gets: what the process's umask leaves, or what the directory's default list says.
//!
//! A temporary file with a name is private until it is whole, so the system does not compute its mode for us.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::fs::Mode;

use crate::leftovers;
use crate::syscall::{self, Errno, SysResult};

/// New files before the umask.
pub(crate) const NEW_MODE: u32 = 0o666;
/// The default access control list of a directory: with one, the umask does not count for new files.
const DEFAULT_LIST: &std::ffi::CStr = c"system.posix_acl_default";
/// The strict umask that is set while the old one is read, if it can only be read by setting it.
const STRICT_UMASK: Mode = Mode::from_raw_mode(0o077);

/// The mode of a new file in a directory.
pub(crate) fn new_mode(dir: BorrowedFd<'_>) -> SysResult<u32> {
    if has_default_list(dir) {
        probed(dir)
    } else {
        Ok(NEW_MODE & !umask())
    }
}

/// Tells whether a directory has a default list, or may have one.
fn has_default_list(dir: BorrowedFd<'_>) -> bool {
    let Ok(readable) = syscall::reopen_dir_unchecked(dir) else {
        return true;
    };
    match syscall::xattr_names_unchecked(readable.as_fd()) {
        Ok(names) => names.iter().any(|name| name.as_c_str() == DEFAULT_LIST),
        Err(errno) => !matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS),
    }
}

/// Makes an empty file, looks at its mode and removes it.
fn probed(dir: BorrowedFd<'_>) -> SysResult<u32> {
    let name = leftovers::temporary_name()?;
    let made = syscall::create_unchecked(dir, &name, NEW_MODE)?;
    let mode = syscall::stat_content_unchecked(made.as_fd()).map(|made| made.mode & 0o777);
    syscall::unlink_unchecked(dir, &name)?;
    mode
}

/// The umask of the process, read once: nothing here changes it.
pub(crate) fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| told_umask().unwrap_or_else(exchanged_umask))
}

fn told_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

/// Sets the umask and sets it back: without `/proc` nothing else tells it. A file that another thread makes in
/// between is more private than it has to be.
fn exchanged_umask() -> u32 {
    let own = rustix::process::umask(STRICT_UMASK);
    rustix::process::umask(own);
    own.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn both_ways_tell_the_mode_that_the_system_gives() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        std::fs::write(&path, "").unwrap();
        let given = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let dir = syscall::open_root_unchecked(temp.path()).unwrap();
        assert_eq!(new_mode(dir.as_fd()), Ok(given));
        assert_eq!(probed(dir.as_fd()), Ok(given));
        assert_eq!(told_umask(), Some(umask()));
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
