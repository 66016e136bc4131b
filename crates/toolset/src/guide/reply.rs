//! The reply of every tool of the set, and the parts that several have.

use guide::{AgentFile, CacheCounters, CacheUsage, ClientBridge, Evicted, Stored, Warning};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::prompts;

/// A success: what was asked for, what to know about it, and what is odd about it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Success<T> {
    /// True; a failure has false here.
    success: bool,
    /// What the call came to, with statistics.
    data: T,
    /// What it means, and what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What is odd about it: decide whether to accept it or to call again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The paths it was about, for the log.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) paths: Vec<String>,
}

impl<T> Success<T> {
    /// A success. If there are warnings, its message says that something is missing.
    pub(super) fn new(data: T, message: String, warnings: &[Warning], paths: Vec<String>) -> Self {
        Success {
            success: true,
            data,
            message: Some(if warnings.iter().any(prompts::is_partial) {
                prompts::partial(&message)
            } else {
                message
            }),
            warnings: warnings.iter().map(prompts::warning).collect(),
            paths,
        }
    }
}

/// How the cache is doing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct CacheFigures {
    /// Files and listings held.
    entries: u64,
    /// Bytes held.
    bytes: u64,
    /// Bytes that may be held.
    max_bytes: u64,
    /// Requests answered from the cache.
    hits: u64,
    /// Requests for which the agent had to be asked.
    misses: u64,
    /// Entries that replaced another.
    updates: u64,
    /// Entries thrown out to make room, the least recently used first.
    evictions: u64,
    /// Entries that were kept for longer than the cache's time to live.
    expirations: u64,
    /// Entries thrown out because the file has changed since.
    invalidations: u64,
}

impl CacheFigures {
    /// How this client's part of it is doing now.
    pub(super) fn now(bridge: &ClientBridge) -> CacheFigures {
        let now = std::time::Instant::now();
        let CacheUsage {
            entries,
            bytes,
            max_bytes,
            counters,
        } = bridge.cache_usage(now);
        let CacheCounters {
            hits,
            misses,
            updates,
            evictions,
            expirations,
            invalidations,
            ..
        } = counters;
        CacheFigures {
            entries,
            bytes,
            max_bytes,
            hits,
            misses,
            updates,
            evictions,
            expirations,
            invalidations,
        }
    }
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct FileMetadata {
    /// Size of the file in bytes, in its encoding.
    size: u64,
    /// When the agent's file was changed, in seconds since the epoch, if the agent said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<f64>,
    /// The encoding of the agent's file.
    encoding: String,
    /// Whether the content is bytes rather than text.
    binary: bool,
    /// When the content was handed over, in ISO 8601.
    cached_at: String,
}

impl FileMetadata {
    pub(super) fn of(file: &AgentFile) -> FileMetadata {
        FileMetadata {
            size: file.size(),
            mtime: file.mtime,
            encoding: file.encoding.name(),
            binary: file.shape == guide::ContentShape::Bytes,
            cached_at: iso(file.stored_at),
        }
    }
}

/// A moment in ISO 8601, to the millisecond.
pub(super) fn iso(seconds: f64) -> String {
    // The value comes from the clock, so it is within the range of both types.
    let moment = Timestamp::from_millisecond((seconds * 1000.0) as i64);
    format!("{:.3}", moment.unwrap_or_default())
}

/// A file that was stored.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct StoredFile {
    /// The file, relative to the project root: also the key of its cache entry.
    cache_key: String,
    /// cached if it is new, updated if it replaced an entry.
    status: &'static str,
    /// SHA-256 of the file's bytes, in hexadecimal.
    content_hash: String,
    /// What is known of it.
    metadata: FileMetadata,
}

impl StoredFile {
    pub(super) fn of(stored: &Stored) -> StoredFile {
        StoredFile {
            cache_key: stored.path.to_string(),
            status: prompts::status(stored.status),
            content_hash: stored.hash.to_string(),
            metadata: FileMetadata::of(&stored.file),
        }
    }
}

/// What had to go to make room.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct EvictedFigures {
    /// Entries.
    entries: u64,
    /// Bytes.
    bytes: u64,
}

impl EvictedFigures {
    pub(super) fn of(evicted: Evicted) -> EvictedFigures {
        EvictedFigures {
            entries: evicted.entries,
            bytes: evicted.bytes,
        }
    }
}

impl StoredFile {
    /// The outcome in a word.
    pub(super) fn said(&self) -> String {
        format!("{} is {}", self.cache_key, self.status)
    }
}
