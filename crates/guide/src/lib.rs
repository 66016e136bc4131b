//! The agent's files: what may be asked for, what was handed over, and whom to ask.
//!
//! The files here are not the server's: it never opens one. Agents hand content over, or the [`FilesystemBridge`] asks
//! for it through an [`Agent`]. Every path passes the [`PathValidator`] first; what came is kept in a bounded
//! [`FileCache`]. This crate is synchronous, never waits, and knows nothing of MCP, JSON or words for people.

mod ask;
mod bridge;
mod cache;
mod encoding;
mod error;
mod file;
mod handover;
mod listing;
mod policy;
mod time;
mod upload;

pub use ask::{Agent, Asked, Lack, Outcome, Question, Resume, Source, Subject};
pub use bridge::{
    Content, DirectoryRead, FileRead, FilesystemBridge, Freshness, Limits, ListDirectory, ReadFile,
};
pub use cache::{Batch, Counters, Evicted, Figures, FileCache, Status, Value};
pub use encoding::TextEncoding;
pub use error::{ChunkFault, Error, ErrorKind, FormatFault, Result, Violation};
pub use file::{ContentHash, File, Shape};
pub use handover::{Handover, Stored, StoredFiles, StoredListing, Upload, Uploaded, Warning};
pub use listing::{ENTRIES_MAX, EntryKind, LEVELS_MAX, Listing, PathInfo};
pub use policy::{AllowedFault, PathValidator, ProjectPath, SecurityPolicy};
pub use time::Now;
pub use upload::{CHUNKS_MAX, Chunk, Uploads};
