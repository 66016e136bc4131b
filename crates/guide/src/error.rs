//! Every way the agent's files can fail us, as facts; the tool set turns them into words.

use crate::agent::Lack;

/// What this crate's calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a path is refused although it is well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyViolation {
    /// It holds a NUL byte, which deceives programs written in C.
    NulByte,
    /// Its `..` lead above the project.
    Traversal,
    /// It lies in none of the allowed directories.
    NotAllowed,
    /// A link on its way leaves the project.
    LinkLeaves,
    /// A link on its way leads to a directory of the project that is not allowed.
    LinkNotAllowed,
    /// Links lead to each other, or there are too many.
    LinkLoop,
    /// A listed name is no name: it holds a slash, or means this or the upper directory.
    NotAName,
    /// What a client gave back as our own state is not ours.
    ForgedState,
}

impl PolicyViolation {
    /// Its name in logs.
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
    /// There is nothing.
    Empty,
    /// It holds a control character.
    ControlCharacter,
    /// It is longer than 4,095 bytes.
    TooLong,
    /// A name in it is longer than 255 bytes.
    NameTooLong,
    /// It is spelled as a directory's, where a file's is needed.
    Directory,
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFault {
    /// Its number is not below the number of chunks.
    BeyondCount {
        /// Its number.
        index: u32,
        /// The number of chunks.
        count: u32,
    },
    /// There are none, or too many.
    BadCount {
        /// The number of chunks that was told.
        count: u32,
    },
    /// A number without a count, or a count without a number.
    Incomplete,
    /// Too many uploads are under way.
    TooManyUploads,
}

/// Everything that can go wrong. Paths are as clients gave them or in their normal form, never host paths.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the field names and the variants' sentences say it all"
)]
pub enum Error {
    /// `leads_to` is for the log only; `allowed` are the directories to keep to.
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
    /// `above` is the directory above it, where that may be asked for.
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
    Unsupported { path: String },
    #[error("too many questions wait for answers")]
    Busy { limit: usize },
    #[error("where {path:?} leads cannot be told")]
    Unverifiable { path: String, reason: String },
}

/// The closed list of kinds: the `error_type` of every reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The policy forbids it.
    Security,
    /// What came is wrong.
    Validation,
    /// The agent has no such file.
    NotFound,
    /// The agent, or this process, may not look.
    Permission,
    /// The agent did not answer in time.
    Timeout,
    /// The client cannot be asked.
    Unsupported,
    /// Anything else.
    System,
}

impl Error {
    /// The same refusal, with the directories that may be named instead.
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

    /// The kind of this failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Violation { .. } => ErrorKind::Security,
            Error::Format { .. }
            | Error::UnknownEncoding { .. }
            | Error::BadContent { .. }
            | Error::HashDiffers { .. }
            | Error::BadChunk { .. }
            | Error::TooLarge { .. }
            | Error::BadListing { .. } => ErrorKind::Validation,
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::PermissionDenied { .. } | Error::Unverifiable { .. } => ErrorKind::Permission,
            Error::Timeout { .. } => ErrorKind::Timeout,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::AgentFailed { .. }
            | Error::Cut { .. }
            | Error::Lacking { .. }
            | Error::Busy { .. } => ErrorKind::System,
        }
    }

    /// The path it is about, where it is about one.
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
            | Error::Unsupported { path }
            | Error::Unverifiable { path, .. } => Some(path),
            Error::UnknownEncoding { .. } | Error::Busy { .. } => None,
        }
    }
}
