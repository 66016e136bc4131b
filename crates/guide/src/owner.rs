//! Identifies the owner of entries, uploads and questions.

use std::sync::Arc;

/// A client as the owner of its agent's files. What one owner handed over does not exist for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CacheOwner {
    /// Identifies the owner. A client cannot choose it.
    pub name: Arc<str>,
    /// The holder whose share of the room it uses. Several owners may have one holder, because anyone can open many
    /// sessions.
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
