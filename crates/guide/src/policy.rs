//! The directories of the project that may be named.

use sandbox::is_within;

use crate::error::Error;

/// The directories of the project that may be named; everything else is denied.
#[derive(Debug, Clone, Default)]
pub struct SecurityPolicy {
    directories: Vec<AllowedDirectory>,
}

/// A directory that may be named.
#[derive(Debug, Clone)]
pub(crate) struct AllowedDirectory {
    /// Its normal form.
    pub(crate) path: String,
    /// Its real path, which differs if it is a link; its normal form if nothing is there.
    pub(crate) resolved: String,
    pub(crate) exists: bool,
}

/// A configured path that cannot be allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{path:?} cannot be allowed: {error}")]
pub struct AllowedFault {
    /// Its index in the list.
    pub index: usize,
    /// The path as it was configured.
    pub path: String,
    /// What is wrong with it.
    pub error: Error,
}

impl SecurityPolicy {
    pub(crate) fn new(directories: Vec<AllowedDirectory>) -> SecurityPolicy {
        SecurityPolicy { directories }
    }

    /// Iterates over the allowed directories in their normal form.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        let directories = self.directories.iter();
        directories.map(|directory| directory.path.as_str())
    }

    /// Iterates over the allowed directories that do not exist, which the operator should hear about.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.directories.iter().filter(|one| !one.exists);
        missing.map(|directory| directory.path.as_str())
    }

    /// Tells whether a path may be named, by its text.
    pub(crate) fn allows(&self, path: &str) -> bool {
        let mut directories = self.directories.iter();
        directories.any(|directory| is_within(path, &directory.path))
    }

    /// Tells whether a path may be named, by where it really leads.
    pub(crate) fn allows_resolved(&self, path: &str) -> bool {
        let mut directories = self.directories.iter();
        directories.any(|directory| is_within(path, &directory.resolved))
    }
}
