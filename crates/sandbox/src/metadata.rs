//! What `statx` tells of a file, in types that say what they mean.

use std::fmt;

/// What a name can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file: the only kind whose content is ever opened.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Something this system has and we do not know.
    Unknown,
}

impl FileKind {
    /// Tells whether it is a pipe, a socket, a device or something unknown.
    #[must_use]
    pub fn is_special(self) -> bool {
        !matches!(
            self,
            FileKind::File | FileKind::Directory | FileKind::Symlink
        )
    }

    /// What it is called.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            FileKind::Fifo => "fifo",
            FileKind::Socket => "socket",
            FileKind::CharDevice => "character device",
            FileKind::BlockDevice => "block device",
            FileKind::Unknown => "special file",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A moment in seconds and nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

/// The metadata of one file, directory or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes, as the system reports it.
    pub size: u64,
    /// Permission bits with set-uid, set-gid and sticky (`mode & 0o7777`).
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// How many names it has.
    pub links: u32,
    /// When the content last changed.
    pub modified: Time,
    /// When it was last read.
    pub accessed: Time,
    /// When content or attributes last changed.
    pub changed: Time,
    /// When it was made, if the file system records it.
    pub created: Option<Time>,
    /// The device it is on.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
}

impl Metadata {
    /// Tells whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Tells whether both describe the same file in the same state, judged by size and times.
    #[must_use]
    pub fn same_state(&self, other: &Metadata) -> bool {
        let state = |of: &Metadata| (of.size, of.modified, of.changed);
        self.same_file(other) && state(self) == state(other)
    }

    /// Tells whether both describe the same file.
    #[must_use]
    pub fn same_file(&self, other: &Metadata) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}
