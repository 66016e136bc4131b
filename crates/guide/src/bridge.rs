//! The bridge to the agent's files. It answers from the cache if it can and asks the agent otherwise.
//!
//! A request runs until it is done or needs an answer that has not come yet. The caller gets the answer and runs the
//! request again with a `Resume`, which says what was asked before. So nothing waits here, and another process can take
//! over between two steps. Failures are never cached.

mod attempt;
mod list_directory;
mod read_file;
mod store;

use std::time::Duration;

use crate::agent::{AgentQuestion, Subject};
use crate::cache::{CacheKind, CachedValue, FileCache};
use crate::error::Error;
use crate::project_path::ProjectPath;
use crate::time::Now;
use crate::upload::Uploads;
use crate::validator::PathValidator;

pub use list_directory::{DirectoryRead, DirectoryRequest};
pub use read_file::{Content, FileRead, FileRequest};
pub use store::{IncomingFile, Stored, StoredFiles, StoredListing, Upload, Uploaded, Warning};

/// The longest pause between two chunks of an upload.
const UPLOAD_LIFETIME: Duration = Duration::from_secs(600);

/// What the bridge may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeLimits {
    /// Bytes in the cache. Uploads in progress may hold the same number again.
    pub cache_size: u64,
    /// How long an entry is kept; `None` keeps it for ever.
    pub cache_ttl: Option<Duration>,
}

/// Access to the agent's files.
#[derive(Debug)]
pub struct FilesystemBridge {
    validator: PathValidator,
    cache: FileCache,
    uploads: Uploads,
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
            validator,
            cache: FileCache::new(limits.cache_size, limits.cache_ttl),
            uploads: Uploads::new(limits.cache_size, lifetime),
        }
    }

    /// Returns the validator of every path.
    #[must_use]
    pub fn validator(&self) -> &PathValidator {
        &self.validator
    }

    /// Returns the cache.
    #[must_use]
    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    /// Returns the uploads in progress.
    #[must_use]
    pub fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// Tells whether the agent has handed over what a question asks for since it was asked.
    #[must_use]
    pub fn has_arrived(&self, question: &AgentQuestion, asked_at: f64, now: Now) -> bool {
        let kind = match question.subject {
            Subject::File { .. } => CacheKind::File,
            Subject::Directory { .. } => CacheKind::Listing,
        };
        self.stored_since(kind, &question.path, asked_at, now)
            .is_some()
    }

    /// Returns an entry that was stored at or after a moment, whether or not it is good enough for a request.
    fn stored_since(
        &self,
        kind: CacheKind,
        path: &ProjectPath,
        moment: f64,
        now: Now,
    ) -> Option<CachedValue> {
        let held = self.cache.peek(kind, path.as_str(), now.steady)?;
        (held.stored_at() >= moment).then_some(held)
    }

    /// Adds the directory to look in instead to the error about a missing path.
    fn with_directory_above(&self, error: Error, path: &ProjectPath) -> Error {
        match error {
            Error::NotFound { path: missing, .. } => Error::NotFound {
                path: missing,
                above: self.validator.above(path),
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
