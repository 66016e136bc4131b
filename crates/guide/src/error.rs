//! Every failure of this crate, as facts. The tool set turns them into messages.

use crate::agent::Lack;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a path is refused although it is well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyViolation {
    /// It contains a NUL byte, at which programs written in C would stop reading.
    NulByte,
    /// Its `..` leads above the project root.
    Traversal,
    /// It is in none of the allowed directories.
    NotAllowed,
    /// A link on the path leaves the project.
    LinkLeaves,
    /// A link on the path leads to a directory of the project that is not allowed.
    LinkNotAllowed,
    /// Links form a loop, or there are too many.
    LinkLoop,
    /// A listed name is not a single name: it is empty, contains a slash, or is `.` or `..`.
    NotAName,
    /// The state that a client sent back was not made by this server.
    ForgedState,
}

impl PolicyViolation {
    /// Returns its name in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PolicyViolation::NulByte => "nul_byte",
            PolicyViolation::Traversal => "traversal",
            PolicyViolation::NotAllowed => "not_allowed",
            PolicyViolation::LinkLeaves => "link_leaves",
            PolicyViolation::LinkNotAllowed => "link_not_allowed",
            PolicyViolation::LinkLoop => "link_loop",
            PolicyViolation::NotAName => "not_a_name",
            PolicyViolation::ForgedState => "forged_state",
        }
    }
}

/// What is wrong with the form of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatFault {
    /// It is empty.
    Empty,
    /// It contains a control character.
    ControlCharacter,
    /// It is longer than 4,095 bytes.
    TooLong,
    /// A name in it is longer than 255 bytes.
    NameTooLong,
    /// It ends like a directory, but a file is needed.
    Directory,
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFault {
    /// Its index is not below the number of chunks.
    BeyondCount {
        /// Its index.
        index: u32,
        /// The number of chunks.
        count: u32,
    },
    /// The number of chunks is zero or too large.
    BadCount {
        /// The number of chunks that the client gave.
        count: u32,
    },
    /// An index without a count, or a count without an index.
    Incomplete,
    /// Too many uploads are in progress.
    TooManyUploads,
}

/// Why a client cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mute {
    /// It does not support questions.
    Client,
    /// The operator's settings leave no way to ask it.
    Setting,
}

/// A failure. Its paths are as the client gave them or in their normal form, never host paths.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the messages explain the variants and their fields"
)]
pub enum Error {
    /// `leads_to` is for the log only; `allowed` lists the directories that may be named.
    #[error("{path:?} is refused: {}", violation.name())]
    Violation {
        path: String,
        violation: PolicyViolation,
        leads_to: Option<String>,
        allowed: Vec<String>,
    },
    #[error("{path:?} is no path: {fault:?}")]
    Format { path: String, fault: FormatFault },
    #[error("{name:?} is no encoding that is known")]
    UnknownEncoding { name: String },
    #[error("the content of {path:?} is not what its encoding says: {reason}")]
    BadContent { path: String, reason: String },
    #[error("the content of {path:?} has another hash than it should")]
    HashDiffers {
        path: String,
        chunk: Option<u32>,
        expected: String,
        found: String,
    },
    #[error("a chunk of {path:?} is wrong: {fault:?}")]
    BadChunk { path: String, fault: ChunkFault },
    #[error("{path:?} has {size} bytes, over {limit}")]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error("the listing of {path:?} cannot be used: {reason}")]
    BadListing { path: String, reason: String },
    /// `above` is the directory above it, if that may be named.
    #[error("the agent says that {path:?} does not exist")]
    NotFound { path: String, above: Option<String> },
    #[error("the agent says that it may not read {path:?}")]
    PermissionDenied { path: String, said: String },
    #[error("the agent failed on {path:?}")]
    AgentFailed { path: String, said: String },
    #[error("the agent's answer about {path:?} is not whole")]
    Cut { path: String },
    #[error("what the agent handed over of {path:?} is not what it was asked for: {lack:?}")]
    Lacking { path: String, lack: Lack },
    #[error("the agent did not answer about {path:?} in time")]
    Timeout { path: String, seconds: u64 },
    #[error("the client cannot be asked")]
    Unsupported { path: String, why: Mute },
    /// `marker` is the expected beginning of the answer, `said` the actual one.
    #[error("the answer about {path:?} does not begin with its marker")]
    Unmarked {
        path: String,
        marker: String,
        said: String,
    },
    #[error("too many questions wait for answers")]
    Busy { limit: usize },
    #[error("it is unknown where {path:?} leads")]
    Unverifiable { path: String, reason: String },
}

/// The kind of a failure. It is the `error_type` of the reply, and the list is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// The policy forbids it.
    Security,
    /// The input is wrong.
    Validation,
    /// The agent has no such file.
    NotFound,
    /// The agent, or this process, may not read it.
    Permission,
    /// The agent did not answer in time.
    Timeout,
    /// The client cannot be asked.
    Unsupported,
    /// Any other failure.
    System,
}

impl Error {
    /// Adds the directories that may be named instead to a violation.
    pub(crate) fn allowing<'a>(self, directories: impl Iterator<Item = &'a str>) -> Error {
        match self {
            Error::Violation {
                path,
                violation,
                leads_to,
                ..
            } => Error::Violation {
                path,
                violation,
                leads_to,
                allowed: directories.map(str::to_owned).collect(),
            },
            other => other,
        }
    }

    /// Returns the kind of this failure.
    #[must_use]
    pub fn kind(&self) -> ErrorType {
        match self {
            Error::Violation { .. } => ErrorType::Security,
            Error::Format { .. }
            | Error::UnknownEncoding { .. }
            | Error::BadContent { .. }
            | Error::HashDiffers { .. }
            | Error::BadChunk { .. }
            | Error::TooLarge { .. }
            | Error::BadListing { .. } => ErrorType::Validation,
            Error::NotFound { .. } => ErrorType::NotFound,
            Error::PermissionDenied { .. } | Error::Unverifiable { .. } => ErrorType::Permission,
            Error::Timeout { .. } => ErrorType::Timeout,
            Error::Unsupported { .. } => ErrorType::Unsupported,
            Error::AgentFailed { .. }
            | Error::Unmarked { .. }
            | Error::Cut { .. }
            | Error::Lacking { .. }
            | Error::Busy { .. } => ErrorType::System,
        }
    }

    /// Returns the path that it is about, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::Violation { path, .. }
            | Error::Format { path, .. }
            | Error::BadContent { path, .. }
            | Error::HashDiffers { path, .. }
            | Error::BadChunk { path, .. }
            | Error::TooLarge { path, .. }
            | Error::BadListing { path, .. }
            | Error::NotFound { path, .. }
            | Error::PermissionDenied { path, .. }
            | Error::AgentFailed { path, .. }
            | Error::Cut { path }
            | Error::Lacking { path, .. }
            | Error::Timeout { path, .. }
            | Error::Unsupported { path, .. }
            | Error::Unmarked { path, .. }
            | Error::Unverifiable { path, .. } => Some(path),
            Error::UnknownEncoding { .. } | Error::Busy { .. } => None,
        }
    }
}
