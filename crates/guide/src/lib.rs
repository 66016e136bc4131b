//! The agent's files: what may be asked for, what was handed over, and whom to ask.
//!
//! The files here are not the server's: it never opens one. Agents hand content over, or the [`FilesystemBridge`] asks
//! for it through an [`Agent`]. Every path passes the [`PathValidator`] first; what came is kept in a bounded
//! [`FileCache`]. This crate is synchronous, never waits, and knows nothing of MCP, JSON or words for people.

mod agent;
mod agent_answer;
mod bridge;
mod cache;
mod encoding;
mod error;
mod file;
mod listing;
mod policy;
mod store;
mod time;
mod upload;

pub use agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject,
};
pub use bridge::{
    BridgeLimits, Content, DirectoryRead, DirectoryRequest, FileRead, FileRequest,
    FilesystemBridge, Freshness,
};
pub use cache::{
    CacheCounters, CacheUsage, CachedValue, Evicted, FileCache, PutOutcome, StoreStatus,
};
pub use encoding::TextEncoding;
pub use error::{ChunkFault, Error, ErrorKind, FormatFault, PolicyViolation, Result};
pub use file::{AgentFile, ContentHash, ContentShape};
pub use listing::{DirectoryListing, ENTRIES_MAX, EntryKind, LEVELS_MAX, PathInfo};
pub use policy::{AllowedFault, PathValidator, ProjectPath, SecurityPolicy};
pub use store::{IncomingFile, Stored, StoredFiles, StoredListing, Upload, Uploaded, Warning};
pub use time::Now;
pub use upload::{CHUNKS_MAX, Chunk, Uploads};
