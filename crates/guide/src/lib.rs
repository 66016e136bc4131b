//! The agent's files: which paths may be named, what the agent handed over, and how it is asked.
//!
//! These are not the server's files, and it never opens one. Agents hand content over, or the [`FilesystemBridge`] asks for
//! it through an [`Agent`]. The [`PathValidator`] checks every path first, and a bounded [`FileCache`] keeps the content.
//! This crate is synchronous, never waits, and knows nothing of MCP, JSON or messages for people.

mod agent;
mod bridge;
mod cache;
mod encoding;
mod error;
mod file;
mod listing;
mod owner;
mod policy;
mod project_path;
mod time;
mod upload;
mod validator;

pub use agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject, Told,
};
pub use bridge::{
    BridgeLimits, ClientBridge, DirectoryRead, DirectoryRequest, FileContent, FileRead,
    FileRequest, FilesystemBridge, Freshness, IncomingFile, Stored, StoredFiles, StoredListing,
    Upload, Uploaded, Warning,
};
pub use cache::{CacheCounters, CacheUsage, Evicted, FileCache, StoreStatus};
pub use encoding::TextEncoding;
pub use error::{ChunkFault, Error, ErrorType, FormatFault, Mute, PolicyViolation, Result};
pub use file::{AgentFile, ContentHash, ContentShape, ToldBy};
pub use listing::{DirectoryListing, ENTRIES_MAX, EntryKind, LEVELS_MAX, PathInfo};
pub use owner::CacheOwner;
pub use policy::{AllowedFault, SecurityPolicy};
pub use project_path::ProjectPath;
pub use time::Now;
pub use upload::{CHUNKS_MAX, Chunk, HeldRoom, Uploads};
pub use validator::PathValidator;
