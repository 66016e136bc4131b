//! The bridge to the agent's files. It answers from the cache if it can and asks the agent otherwise.
//!
//! A request runs until it is done or needs an answer that has not come yet. The caller gets the answer and runs the
//! request again with a `Resume`, which says what was asked before. So nothing waits here, and another process can take
//! over between two steps. Failures are never cached.

mod attempt;
mod list_directory;
mod read_file;
mod staleness;
mod store;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::agent::{AgentQuestion, Subject};
use crate::cache::{CacheKind, CacheUsage, CachedValue, FileCache};
use crate::error::Error;
use crate::file::ToldBy;
use crate::owner::CacheOwner;
use crate::project_path::ProjectPath;
use crate::time::Now;
use crate::upload::Uploads;
use crate::validator::PathValidator;

pub use list_directory::{DirectoryRead, DirectoryRequest};
pub use read_file::{FileContent, FileRead, FileRequest};
pub use store::{IncomingFile, Stored, StoredFiles, StoredListing, Upload, Uploaded, Warning};

/// The longest pause between two chunks of an upload.
const UPLOAD_LIFETIME: Duration = Duration::from_secs(600);

/// What the bridge may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeLimits {
    /// Bytes in the cache, for all clients together. Uploads in progress of one client may hold the same number again.
    pub cache_size: u64,
    /// How long an entry is kept; `None` keeps it for ever.
    pub cache_ttl: Option<Duration>,
    /// After how long the agent is asked again for content without a modification time; `None` for never.
    pub recheck: Option<Duration>,
}

/// Access to the agents' files.
#[derive(Debug)]
pub struct FilesystemBridge {
    parts: Arc<BridgeParts>,
}

/// State shared by all clients.
#[derive(Debug)]
struct BridgeParts {
    validator: PathValidator,
    cache: FileCache,
    uploads: Uploads,
    recheck: Option<Duration>,
}

/// Access to the files of one client's agent. Content from other clients does not exist here.
#[derive(Debug, Clone)]
pub struct ClientBridge {
    parts: Arc<BridgeParts>,
    owner: CacheOwner,
}

/// Whether a cached copy is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// A cached copy is good enough.
    #[default]
    Cached,
    /// The agent is asked in any case.
    Refresh,
}

impl FilesystemBridge {
    /// Creates a bridge with an empty cache.
    #[must_use]
    pub fn new(validator: PathValidator, limits: BridgeLimits) -> FilesystemBridge {
        let lifetime = limits
            .cache_ttl
            .map_or(UPLOAD_LIFETIME, |ttl| ttl.min(UPLOAD_LIFETIME));
        FilesystemBridge {
            parts: Arc::new(BridgeParts {
                validator,
                cache: FileCache::new(limits.cache_size, limits.cache_ttl),
                uploads: Uploads::new(limits.cache_size, lifetime),
                recheck: limits.recheck,
            }),
        }
    }

    /// Returns the bridge as one client sees it.
    #[must_use]
    pub fn of(&self, owner: CacheOwner) -> ClientBridge {
        ClientBridge {
            parts: Arc::clone(&self.parts),
            owner,
        }
    }

    /// Returns the validator of every path.
    #[must_use]
    pub fn validator(&self) -> &PathValidator {
        &self.parts.validator
    }

    /// Returns what the cache holds for all clients together.
    #[must_use]
    pub fn cache_usage(&self, now: Instant) -> CacheUsage {
        self.parts.cache.usage(now)
    }
}

impl ClientBridge {
    /// Returns whose bridge it is.
    #[must_use]
    pub fn owner(&self) -> &CacheOwner {
        &self.owner
    }

    /// Returns the validator of every path.
    #[must_use]
    pub fn validator(&self) -> &PathValidator {
        &self.parts.validator
    }

    /// Returns what the cache holds for this client.
    #[must_use]
    pub fn cache_usage(&self, now: Instant) -> CacheUsage {
        self.parts.cache.usage_of(&self.owner, now)
    }

    /// Returns the number of this client's uploads in progress and the bytes that they hold.
    #[must_use]
    pub fn upload_usage(&self, now: Instant) -> (usize, u64) {
        self.parts.uploads.usage_of(&self.owner, now)
    }

    /// Tells whether the agent has handed over by a tool what a question asks for since it was asked.
    #[must_use]
    pub fn has_arrived(&self, question: &AgentQuestion, asked_at: f64, now: Now) -> bool {
        let kind = match question.subject {
            Subject::File { .. } => CacheKind::File,
            Subject::Directory { .. } => CacheKind::Listing,
        };
        self.handed_over_since(kind, &question.path, asked_at, now)
            .is_some()
    }

    /// Returns an entry that a tool stored at or after a moment, whether or not it is good enough for a request.
    fn handed_over_since(
        &self,
        kind: CacheKind,
        path: &ProjectPath,
        moment: f64,
        now: Now,
    ) -> Option<CachedValue> {
        let cache = &self.parts.cache;
        let held = cache.peek(&self.owner, kind, path.as_str(), now.steady)?;
        (held.stored_at() >= moment && held.told_by() == ToldBy::Tool).then_some(held)
    }

    /// Tells whether the agent should be asked again for an entry, because nobody can say whether it is out of date.
    fn is_due(&self, mtime: Option<f64>, stored_at: f64, now: Now) -> bool {
        let recheck = self.parts.recheck;
        mtime.is_none() && recheck.is_some_and(|after| now.wall - stored_at >= after.as_secs_f64())
    }

    /// Adds the directory to look in instead to the error about a missing path.
    fn with_directory_above(&self, error: Error, path: &ProjectPath) -> Error {
        match error {
            Error::NotFound { path: missing, .. } => Error::NotFound {
                path: missing,
                above: self.parts.validator.above(path),
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
