//! Where an operation works: a root and a path inside it.

use std::sync::Arc;

use sandbox::{RelPath, Root};

use crate::error::Result;

/// A path inside a root, parsed and not yet looked up.
#[derive(Debug, Clone)]
pub struct Place {
    /// The root.
    pub root: Arc<Root>,
    /// The path inside it.
    pub path: RelPath,
}

impl Place {
    /// Parses a client's path.
    pub fn new(root: Arc<Root>, path: &str) -> Result<Place> {
        Ok(Place {
            root,
            path: RelPath::parse(path)?,
        })
    }
}
