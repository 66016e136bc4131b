//! Every way a call on a root can fail, with the facts a caller needs to explain it.

use std::io;

use crate::name::{is_plain, to_bytes};
use crate::syscall::Errno;

/// What this crate's calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what is wrong with a path before anything is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// Holds a NUL byte.
    Nul,
    /// Is longer than the system takes (4,096 bytes).
    TooLong,
    /// Holds a name longer than the system takes (255 bytes).
    NameTooLong,
    /// Holds a name that the file system of this place cannot hold, such as one with a colon on FAT.
    Unstorable,
}

/// A failed call. Paths are as shown to clients: relative to the root, with `/`, never a host path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path cannot name anything.
    #[error("invalid path {path:?}: {fault:?}")]
    InvalidPath {
        /// The path as it came, shortened.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// The path resolves outside the root. Nothing outside was touched.
    #[error("{path:?} resolves outside the root")]
    Outside {
        /// The path as it came.
        path: String,
        /// Where it leads, as text, for the log only: it may hold a host path.
        leads_to: String,
        /// The path inside the root of the link that leads out, if one does.
        link: Option<String>,
    },
    /// Nothing is there.
    #[error("{path:?} does not exist")]
    NotFound {
        /// The path as it came.
        path: String,
        /// The deepest directory on the way that does exist, resolved.
        parent: String,
        /// The name that is missing in that directory.
        missing: String,
        /// The view of the root hides the path, whether or not something is there.
        denied: bool,
    },
    /// A component on the way, or the thing itself, is not a directory.
    #[error("{path:?} is not a directory")]
    NotADirectory {
        /// What is not a directory.
        path: String,
    },
    /// A directory is there, but something else was expected.
    #[error("{path:?} is a directory")]
    IsADirectory {
        /// The directory.
        path: String,
    },
    /// A FIFO, socket or device: never opened.
    #[error("{path:?} is a {kind}, not a regular file")]
    NotAFile {
        /// The special file.
        path: String,
        /// What it is.
        kind: crate::FileKind,
    },
    /// Something is there already and must not be replaced.
    #[error("{path:?} already exists")]
    AlreadyExists {
        /// What is there.
        path: String,
    },
    /// The directory still has entries.
    #[error("{path:?} is not empty")]
    NotEmpty {
        /// The directory.
        path: String,
    },
    /// Links lead to each other, or there are more than 40 on the way.
    #[error("too many links on the way to {path:?}")]
    Loop {
        /// The path as it came.
        path: String,
    },
    /// The root itself would be removed, renamed or replaced.
    #[error("the root itself cannot be changed that way")]
    RootProtected,
    /// Source and destination are on different file systems, or one is inside the other.
    #[error("{path:?} cannot be renamed to another file system")]
    CrossDevice {
        /// The source.
        path: String,
    },
    /// A directory would be moved or copied into itself.
    #[error("{path:?} cannot be put inside itself")]
    IntoItself {
        /// The source.
        path: String,
    },
    /// The system refuses access, or the file is immutable or on a read-only mount.
    #[error("permission denied on {path:?}")]
    PermissionDenied {
        /// What access was refused to.
        path: String,
    },
    /// The root's holder lacks the right to do this. Nothing was changed.
    #[error("there is no right to {} {path:?}", right.name())]
    NotGranted {
        /// What would have been changed.
        path: String,
        /// The right that is missing.
        right: crate::Right,
    },
    /// No space, inodes or quota left.
    #[error("no space left while writing {path:?}")]
    DiskFull {
        /// What was being written.
        path: String,
    },
    /// The root would hold more than its quota allows.
    #[error("{path:?} would exceed the quota of {most}")]
    OverQuota {
        /// What was being written.
        path: String,
        /// Which limit it is.
        limit: crate::QuotaLimit,
        /// The limit.
        most: u64,
        /// What is there, and what other changes under way will add.
        used: u64,
        /// How much more the change needs.
        needed: u64,
    },
    /// The content of a root with a quota has not been counted yet. A later try may succeed.
    #[error("what the root holds is still being counted")]
    QuotaUnknown,
    /// The process has no descriptor left. A later try may succeed.
    #[error("too many open files")]
    TooManyOpenFiles,
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The change was made and can be seen, but syncing it failed: a crash of the machine may lose it.
    #[error("{path:?} was changed, but not synced: {source}")]
    Unsynced {
        /// What was changed.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// An entry is not the one that was copied, so it was not removed.
    #[error("{path:?} changed meanwhile")]
    Changed {
        /// The entry.
        path: String,
    },
    /// Before it was used, another process (perhaps on the file server) replaced the file or a directory on the way, or
    /// created what was missing. A new look-up finds the current state.
    #[error("{path:?} was replaced meanwhile")]
    Stale {
        /// The entry.
        path: String,
    },
    /// Anything else the system says.
    #[error("{operation} failed on {path:?}: {source}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// On what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// The failure to sync a change that was made.
    pub(crate) fn unsynced(path: &str, errno: Errno) -> Error {
        Error::Unsynced {
            path: path.to_owned(),
            source: errno.into(),
        }
    }

    /// Translates an error number.
    pub(crate) fn from_errno(operation: &'static str, path: &str, errno: Errno) -> Error {
        let path = path.to_owned();
        match errno {
            errno if is_unstorable(operation, &path, errno) => Error::InvalidPath {
                path,
                fault: PathFault::Unstorable,
            },
            Errno::NOENT => Error::NotFound {
                path,
                parent: String::new(),
                missing: String::new(),
                denied: false,
            },
            Errno::NOTDIR => Error::NotADirectory { path },
            Errno::ISDIR => Error::IsADirectory { path },
            Errno::EXIST => Error::AlreadyExists { path },
            Errno::NOTEMPTY => Error::NotEmpty { path },
            Errno::LOOP => Error::Loop { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Error::PermissionDenied { path },
            Errno::NOSPC | Errno::DQUOT => Error::DiskFull { path },
            Errno::MFILE | Errno::NFILE => Error::TooManyOpenFiles,
            Errno::NAMETOOLONG => Error::InvalidPath {
                path,
                fault: PathFault::NameTooLong,
            },
            Errno::XDEV => Error::CrossDevice { path },
            Errno::STALE => Error::Stale { path },
            errno => Error::Io {
                operation,
                path,
                source: errno.into(),
            },
        }
    }
}

/// Tells whether the system says that a file system cannot hold a name. Where it may mean something else too, the name decides:
/// exFAT in user space, for one, says that there is no such name where it should be made.
pub(crate) fn is_unstorable(operation: &str, path: &str, errno: Errno) -> bool {
    let is_step = |name: &[u8]| matches!(name, b"." | b"..");
    let is_odd = || {
        let path = to_bytes(path);
        let mut names = path.split(|byte| *byte == b'/');
        !names.all(|name| is_step(name) || is_plain(name))
    };
    match (errno, operation) {
        (Errno::ILSEQ, _) | (Errno::INVAL, "create" | "mkdir" | "symlink") => true,
        (Errno::INVAL, "open" | "stat" | "rename")
        | (Errno::NOENT, "create" | "mkdir" | "symlink" | "rename") => is_odd(),
        _ => false,
    }
}

/// How often something is looked up that was replaced on its file server meanwhile.
const STALE_TRIES: usize = 4;

/// Looks something up again if it was replaced on its file server meanwhile.
pub(crate) fn again_if_stale<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let mut found = look();
    for _ in 1..STALE_TRIES {
        match found {
            Err(Error::Stale { .. }) => found = look(),
            ended => return ended,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted_fault::plant_stale;
    use crate::{Follow, RelPath, Root};

    #[test]
    fn a_stale_handle_is_looked_up_again_a_few_times() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("file"), "text").unwrap();
        let root = Root::open(temp.path()).unwrap();
        let path = RelPath::parse("file").unwrap();
        plant_stale(3);
        assert!(
            root.locate(&path, Follow::Last)
                .unwrap()
                .metadata()
                .is_some()
        );
        plant_stale(4);
        let failure = root.locate(&path, Follow::Last).unwrap_err();
        assert!(matches!(failure, Error::Stale { .. }), "{failure:?}");
        plant_stale(0);
    }

    #[test]
    fn a_name_that_a_file_system_cannot_hold_is_an_invalid_path() {
        let of = |operation, errno| Error::from_errno(operation, "a:b", errno);
        let is_invalid = |error: Error| {
            matches!(
                error,
                Error::InvalidPath {
                    fault: PathFault::Unstorable,
                    ..
                }
            )
        };
        assert!(is_invalid(of("create", Errno::INVAL)) && is_invalid(of("mkdir", Errno::ILSEQ)));
        for operation in ["open", "stat", "rename"] {
            assert!(is_invalid(of(operation, Errno::INVAL)), "{operation}");
            let plain = Error::from_errno(operation, "a/../b.c", Errno::INVAL);
            assert!(matches!(plain, Error::Io { .. }), "{operation}: {plain:?}");
        }
        assert!(matches!(of("write", Errno::INVAL), Error::Io { .. }));
        assert!(is_invalid(of("create", Errno::NOENT)) && is_invalid(of("rename", Errno::NOENT)));
        assert!(matches!(of("open", Errno::NOENT), Error::NotFound { .. }));
        let plain = Error::from_errno("create", "a/b.c", Errno::NOENT);
        assert!(matches!(plain, Error::NotFound { .. }), "{plain:?}");
    }
}
