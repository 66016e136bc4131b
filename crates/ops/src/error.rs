//! Every way an operation can fail. A variant holds facts; each tool set's `errors.rs` turns them into words.

mod parts;

use sandbox::{FileKind, PathFault, QuotaLimit};

pub use self::parts::{PatternRole, RequestPart};
use crate::history::UndoRefusal;

/// What operations return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the client expected at a missing path, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// Anything.
    Anything,
    /// The source of a copy or move.
    Source,
}

/// Why an edit was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditFault {
    /// The old string is not there.
    Missing {
        /// The lines most like it.
        nearest: Option<NearRegion>,
    },
    /// The old string is not there, but the new one is, in these lines.
    AlreadyThere {
        /// From 1, in order.
        lines: Vec<u64>,
    },
    /// The old string is not there, but would be, in these lines, if each `\n` that it spells out were a line end.
    Escaped {
        /// From 1, in order.
        lines: Vec<u64>,
    },
    /// The old string is there more than once.
    Repeated {
        /// How often.
        count: u64,
        /// Where, the first of them.
        lines: Vec<u64>,
    },
    /// All places were requested, and there are more than one call may change.
    TooMany {
        /// How many there are.
        count: u64,
        /// How many one call changes.
        most: u64,
    },
    /// The files would become too long.
    TooLong {
        /// How many bytes one call puts in, and a file may have, at most.
        most: u64,
    },
    /// Both strings are the same, or differ only in line ends, which stay as they are.
    Idle,
    /// The old string is empty, which makes a file, but the file is there.
    Exists,
}

/// The lines of a text that are most like a string that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearRegion {
    /// The first and the last of them, from 1.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// What all of them differ in, if it has a name.
    pub difference: Option<NearDifference>,
    /// Some of them, with their numbers.
    pub lines: Vec<(u64, String)>,
}

/// The only difference between otherwise equal lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NearDifference {
    /// Blanks around the lines.
    Indentation,
    /// Blanks inside the lines.
    Blanks,
    /// Upper and lower case.
    Case,
    /// Letters that are one character on one side and two on the other.
    UnicodeForm,
    /// A line end behind the last of them, or before the first.
    LastLineEnd,
}

/// What a tree operation had done before it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeWork {
    /// A removal: some entries are gone, some are left.
    Removed {
        /// The entries that are gone.
        gone: u64,
        /// The entries that are left, up to ten thousand.
        left: u64,
    },
    /// A copy into a directory that was there.
    Merged {
        /// Files that were replaced, which stay so.
        replaced: u64,
        /// New entries that were removed again.
        taken_back: u64,
        /// New entries that others have changed since, which stay.
        left: u64,
    },
    /// A move by copying: the copy is whole, and a part of the source is still there.
    Moved {
        /// The path of the copy.
        destination: String,
        /// Where what is left of the source is.
        source: String,
        /// The entries of the source that are left, up to ten thousand.
        left: u64,
    },
}

/// A failed operation. Paths are relative to the root as clients see them.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the field names and the variants' sentences say it all"
)]
pub enum Error {
    #[error("invalid path {path:?}: {fault:?}")]
    InvalidPath { path: String, fault: PathFault },
    /// `leads_to` may hold a host path: for the log only. `link` is the link that leads out, if one does.
    #[error("{path:?} resolves outside the root")]
    Outside {
        path: String,
        leads_to: String,
        link: Option<String>,
    },
    #[error("too many links on the way to {path:?}")]
    Loop { path: String },
    /// `near` holds up to three paths in the same directory that look like the missing one.
    #[error("{path:?} does not exist")]
    NotFound {
        path: String,
        wanted: Wanted,
        near: Vec<String>,
        /// The view of the root hides the path, whether or not something is there: for the log only.
        denied: bool,
    },
    /// A link on the way leads to `target`, where nothing is.
    #[error("{path:?} does not exist: the link {link:?} leads to nothing")]
    Dangling {
        path: String,
        wanted: Wanted,
        link: String,
        target: String,
    },
    #[error("{path:?} already exists")]
    AlreadyExists { path: String, kind: FileKind },
    /// Something is there that an entry of this kind cannot replace.
    #[error("{path:?} is a {kind}, which a {by} cannot replace")]
    Irreplaceable {
        path: String,
        kind: FileKind,
        by: FileKind,
    },
    #[error("{path:?} is not a directory")]
    NotADirectory { path: String },
    #[error("{path:?} is a directory")]
    IsADirectory { path: String },
    #[error("{path:?} is a {kind}")]
    NotAFile { path: String, kind: FileKind },
    #[error("{path:?} is not empty")]
    DirectoryNotEmpty {
        path: String,
        /// The first few names in it, if they were looked for.
        names: Vec<String>,
    },
    #[error("{path:?} has {size} bytes, over {limit}")]
    TooLarge { path: String, size: u64, limit: u64 },
    /// Its decompressed content is larger than what is kept in memory.
    #[error("{path:?} unfolds to more than {most} bytes")]
    Unfolds { path: String, most: u64 },
    #[error("the patch is malformed at line {line}: {reason}")]
    PatchMalformed { line: usize, reason: String },
    #[error("hunk {hunk} does not match at line {line}")]
    PatchMismatch {
        path: String,
        hunk: usize,
        line: usize,
        expected: String,
        found: Option<String>,
    },
    /// Its old lines are in several places, none of them at the line that its header names.
    #[error("hunk {hunk} fits {count} places of {path:?}")]
    PatchNotUnique {
        path: String,
        hunk: usize,
        count: u64,
        lines: Vec<u64>,
    },
    /// A patch for several files, or one that names none, if the call does not fit that.
    #[error("the patch is for {files} files")]
    PatchFiles { files: usize },
    /// A patch for more files than one call may change.
    #[error("the patch is for {files} files, over {most}")]
    PatchTooManyFiles { files: usize, most: usize },
    /// The old side of the patch is `/dev/null`, but the file is there and not empty.
    #[error("the patch makes {path:?}, which exists")]
    PatchCreates { path: String },
    #[error("the {role} is invalid: {reason}")]
    InvalidPattern { role: PatternRole, reason: String },
    #[error("the string to look for is empty")]
    EmptySearchString,
    #[error("invalid {part}: {reason}")]
    InvalidPart { part: RequestPart, reason: String },
    /// For callers that check more than operations do: the name is the caller's own.
    #[error("invalid {argument}: {reason}")]
    InvalidArgument {
        argument: &'static str,
        reason: String,
    },
    /// Not valid UTF-8 where text is needed; `seems` names what it looks like.
    #[error("{path:?} is not UTF-8 but seems to be {seems}")]
    NotText { path: String, seems: &'static str },
    /// One of the edits of a call; nothing was changed. Both numbers count from 1.
    #[error("edit {edit} of {edits} does not fit {path:?}: {fault:?}")]
    EditRefused {
        path: String,
        edit: usize,
        edits: usize,
        fault: EditFault,
    },
    #[error("the content does not match its encoding")]
    InvalidEncoding { reason: String },
    #[error("the string is not in {path:?}")]
    StringNotFound {
        path: String,
        nearest: Option<(u64, String)>,
    },
    #[error("the string appears {count} times in {path:?}")]
    StringNotUnique {
        path: String,
        count: u64,
        lines: Vec<u64>,
    },
    #[error("line {line} is out of range 1 to {max}")]
    LineOutOfRange { path: String, line: i64, max: u64 },
    #[error("permission denied on {path:?}")]
    PermissionDenied { path: String },
    /// The client may not do this in the root.
    #[error("this client may not {} in this root: {path:?}", right.name())]
    NotGranted { path: String, right: sandbox::Right },
    #[error("no space left while writing {path:?}")]
    DiskFull { path: String },
    /// The root would hold more than its operator allows.
    #[error("{path:?} needs {needed} more where {used} of {most} are used")]
    QuotaExceeded {
        path: String,
        limit: QuotaLimit,
        most: u64,
        used: u64,
        needed: u64,
    },
    #[error("the root itself is protected")]
    RootProtected,
    #[error("{path:?} cannot be put inside itself")]
    IntoItself { path: String },
    /// The change was made and is visible; only a crash of the machine may undo it.
    #[error("{path:?} was changed, but not synced: {reason}")]
    Unsynced { path: String, reason: String },
    /// It is not the version that the caller saw; `present` is its version now, if it exists. Nothing was changed.
    #[error("{path:?} is not at version {expected}")]
    VersionConflict {
        path: String,
        expected: String,
        present: Option<String>,
        /// The author and number of the last change, if this server made it.
        by: Option<(String, String)>,
    },
    /// A change was not undone, or the state it left is unknown.
    #[error("{0:?}")]
    UndoRefused(Box<UndoRefusal>),
    /// It changed since it was copied, so it was not removed.
    #[error("{path:?} changed while it was moved")]
    Changed { path: String },
    /// Another process, or a file server, replaced what was found before it was used, again and again.
    #[error("{path:?} is being replaced by another process")]
    Stale { path: String },
    /// A tree operation failed when a part of its work was done.
    #[error("{done:?}, then: {cause}")]
    Unfinished { done: TreeWork, cause: Box<Error> },
    /// A person has to be asked first, so nothing was changed.
    #[error("it would remove {} files and overwrite {}, which nobody confirmed", planned.removes, planned.overwrites)]
    Unconfirmed { planned: crate::Planned },
    /// Too much is held for the client already to read so many bytes more for it.
    #[error("no room for {bytes} bytes")]
    NoRoom { bytes: u64 },
    #[error("the deadline has passed")]
    Timeout,
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{operation} failed on {path:?}: {reason}")]
    Io {
        operation: &'static str,
        path: String,
        reason: String,
    },
}

/// The closed list of kinds. Every tool set matches it without a catch-all, so a new kind does not compile
/// until each set has words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each kind is the variant of the same name")]
pub enum ErrorKind {
    InvalidPath,
    Outside,
    Loop,
    NotFound,
    AlreadyExists,
    NotADirectory,
    IsADirectory,
    NotAFile,
    DirectoryNotEmpty,
    TooLarge,
    PatchFailed,
    InvalidPattern,
    InvalidArgument,
    NotText,
    EditRefused,
    InvalidEncoding,
    StringNotFound,
    StringNotUnique,
    LineOutOfRange,
    PermissionDenied,
    DiskFull,
    RootProtected,
    IntoItself,
    VersionConflict,
    Gone,
    NoRoom,
    Timeout,
    Cancelled,
    Io,
}

impl Error {
    /// The kind of this failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::InvalidPath { .. } => ErrorKind::InvalidPath,
            Error::Outside { .. } => ErrorKind::Outside,
            Error::Loop { .. } => ErrorKind::Loop,
            Error::NotFound { .. } | Error::Dangling { .. } => ErrorKind::NotFound,
            Error::AlreadyExists { .. } | Error::Irreplaceable { .. } => ErrorKind::AlreadyExists,
            Error::NotADirectory { .. } => ErrorKind::NotADirectory,
            Error::IsADirectory { .. } => ErrorKind::IsADirectory,
            Error::NotAFile { .. } => ErrorKind::NotAFile,
            Error::DirectoryNotEmpty { .. } => ErrorKind::DirectoryNotEmpty,
            Error::TooLarge { .. } | Error::Unfolds { .. } => ErrorKind::TooLarge,
            Error::PatchMalformed { .. }
            | Error::PatchMismatch { .. }
            | Error::PatchNotUnique { .. }
            | Error::PatchFiles { .. }
            | Error::PatchTooManyFiles { .. }
            | Error::PatchCreates { .. } => ErrorKind::PatchFailed,
            Error::InvalidPattern { .. } => ErrorKind::InvalidPattern,
            Error::InvalidArgument { .. }
            | Error::InvalidPart { .. }
            | Error::EmptySearchString => ErrorKind::InvalidArgument,
            Error::NotText { .. } => ErrorKind::NotText,
            Error::EditRefused { .. } => ErrorKind::EditRefused,
            Error::InvalidEncoding { .. } => ErrorKind::InvalidEncoding,
            Error::StringNotFound { .. } => ErrorKind::StringNotFound,
            Error::StringNotUnique { .. } => ErrorKind::StringNotUnique,
            Error::LineOutOfRange { .. } => ErrorKind::LineOutOfRange,
            Error::PermissionDenied { .. } | Error::NotGranted { .. } => {
                ErrorKind::PermissionDenied
            }
            Error::DiskFull { .. } | Error::QuotaExceeded { .. } => ErrorKind::DiskFull,
            Error::RootProtected => ErrorKind::RootProtected,
            Error::IntoItself { .. } => ErrorKind::IntoItself,
            Error::VersionConflict { .. } => ErrorKind::VersionConflict,
            Error::UndoRefused(refusal) => refusal_kind(refusal),
            Error::Unconfirmed { .. } => ErrorKind::PermissionDenied,
            Error::NoRoom { .. } => ErrorKind::NoRoom,
            Error::Timeout => ErrorKind::Timeout,
            Error::Cancelled => ErrorKind::Cancelled,
            Error::Io { .. }
            | Error::Unsynced { .. }
            | Error::Changed { .. }
            | Error::Stale { .. } => ErrorKind::Io,
            Error::Unfinished { cause, .. } => cause.kind(),
        }
    }

    /// The path this failure is about, if it is about one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::InvalidPath { path, .. }
            | Error::Outside { path, .. }
            | Error::Loop { path }
            | Error::NotFound { path, .. }
            | Error::Dangling { path, .. }
            | Error::AlreadyExists { path, .. }
            | Error::Irreplaceable { path, .. }
            | Error::NotADirectory { path }
            | Error::IsADirectory { path }
            | Error::NotAFile { path, .. }
            | Error::DirectoryNotEmpty { path, .. }
            | Error::TooLarge { path, .. }
            | Error::Unfolds { path, .. }
            | Error::PatchMismatch { path, .. }
            | Error::PatchNotUnique { path, .. }
            | Error::PatchCreates { path }
            | Error::NotText { path, .. }
            | Error::EditRefused { path, .. }
            | Error::StringNotFound { path, .. }
            | Error::StringNotUnique { path, .. }
            | Error::LineOutOfRange { path, .. }
            | Error::PermissionDenied { path }
            | Error::NotGranted { path, .. }
            | Error::DiskFull { path }
            | Error::QuotaExceeded { path, .. }
            | Error::IntoItself { path }
            | Error::Unsynced { path, .. }
            | Error::VersionConflict { path, .. }
            | Error::Changed { path }
            | Error::Stale { path }
            | Error::Io { path, .. } => Some(path),
            Error::UndoRefused(refusal) => refusal_path(refusal),
            Error::Unfinished { cause, .. } => cause.path(),
            Error::Unconfirmed { .. }
            | Error::PatchMalformed { .. }
            | Error::PatchFiles { .. }
            | Error::PatchTooManyFiles { .. }
            | Error::InvalidPattern { .. }
            | Error::InvalidArgument { .. }
            | Error::InvalidPart { .. }
            | Error::EmptySearchString
            | Error::InvalidEncoding { .. }
            | Error::RootProtected
            | Error::NoRoom { .. }
            | Error::Timeout
            | Error::Cancelled => None,
        }
    }
}

fn refusal_kind(refusal: &UndoRefusal) -> ErrorKind {
    match refusal {
        UndoRefusal::NoHistory | UndoRefusal::Unknown | UndoRefusal::NothingLeft => {
            ErrorKind::NotFound
        }
        UndoRefusal::Gone { .. } => ErrorKind::Gone,
        UndoRefusal::Conflict { .. }
        | UndoRefusal::AlreadyUndone(_)
        | UndoRefusal::Together(_)
        | UndoRefusal::Alone(_)
        | UndoRefusal::UnderWay => ErrorKind::VersionConflict,
        UndoRefusal::Foreign(_) | UndoRefusal::Forbidden { .. } | UndoRefusal::OtherEnd => {
            ErrorKind::PermissionDenied
        }
        UndoRefusal::Failed { .. } => ErrorKind::Io,
        UndoRefusal::Elsewhere { refusal, .. } => refusal_kind(refusal),
    }
}

fn refusal_path(refusal: &UndoRefusal) -> Option<&str> {
    match refusal {
        UndoRefusal::Conflict { path, .. }
        | UndoRefusal::Gone { path: Some(path) }
        | UndoRefusal::Forbidden { path, .. }
        | UndoRefusal::Failed { path, .. } => Some(path),
        _ => None,
    }
}

/// Reasons of failures for which the system has no message.
const COUNTING: &str = "what the root holds is still being counted; try again in a moment";
const CROSS_DEVICE: &str = "source and destination are on different file systems";
const TOO_MANY_OPEN: &str = "too many open files; try again in a moment";

impl From<sandbox::Error> for Error {
    fn from(error: sandbox::Error) -> Error {
        use sandbox::Error as E;
        match error {
            E::InvalidPath { path, fault } => Error::InvalidPath { path, fault },
            E::Outside {
                path,
                leads_to,
                link,
            } => Error::Outside {
                path,
                leads_to,
                link,
            },
            E::NotFound { path, denied, .. } => not_found(path, denied),
            E::NotADirectory { path } => Error::NotADirectory { path },
            E::IsADirectory { path } => Error::IsADirectory { path },
            E::NotAFile { path, kind } => Error::NotAFile { path, kind },
            E::AlreadyExists { path } => Error::AlreadyExists {
                path,
                kind: FileKind::Unknown,
            },
            E::NotEmpty { path } => Error::DirectoryNotEmpty {
                path,
                names: Vec::new(),
            },
            E::Loop { path } => Error::Loop { path },
            E::RootProtected => Error::RootProtected,
            E::IntoItself { path } => Error::IntoItself { path },
            E::PermissionDenied { path } => Error::PermissionDenied { path },
            E::NotGranted { path, right } => Error::NotGranted { path, right },
            E::DiskFull { path } => Error::DiskFull { path },
            E::OverQuota {
                path,
                limit,
                most,
                used,
                needed,
            } => Error::QuotaExceeded {
                path,
                limit,
                most,
                used,
                needed,
            },
            E::QuotaUnknown => failed("count", String::new(), COUNTING),
            E::Stopped => Error::Cancelled,
            E::Unsynced { path, source } => {
                let reason = source.to_string();
                Error::Unsynced { path, reason }
            }
            E::Changed { path } => Error::Changed { path },
            E::Stale { path } => Error::Stale { path },
            E::CrossDevice { path } => failed("rename", path, CROSS_DEVICE),
            E::TooManyOpenFiles => failed("open", String::new(), TOO_MANY_OPEN),
            E::Io {
                operation,
                path,
                source,
            } => failed(operation, path, source),
        }
    }
}

fn not_found(path: String, denied: bool) -> Error {
    Error::NotFound {
        path,
        wanted: Wanted::Anything,
        near: Vec::new(),
        denied,
    }
}

fn failed(operation: &'static str, path: String, reason: impl ToString) -> Error {
    Error::Io {
        operation,
        path,
        reason: reason.to_string(),
    }
}
