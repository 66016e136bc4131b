//! Whose entries, uploads and questions are meant.

use std::sync::Arc;

/// A client, as far as the agent's files are concerned. What one owner handed over does not exist for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CacheOwner {
    /// Tells owners apart. A client cannot choose it.
    pub name: Arc<str>,
    /// Whose share of the room it uses. Several owners may have one holder, because anyone can begin many sessions.
    pub holder: Arc<str>,
}

impl CacheOwner {
    /// Creates an owner with a share of its own.
    #[must_use]
    pub fn alone(name: &str) -> CacheOwner {
        CacheOwner {
            name: name.into(),
            holder: name.into(),
        }
    }
}
