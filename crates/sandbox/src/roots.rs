//! The named roots of one process.

use std::sync::Arc;

use crate::root::Root;
use crate::together::Cluster;

/// A root under the name clients use.
#[derive(Debug, Clone)]
pub struct NamedRoot {
    /// Its name for clients.
    pub name: String,
    /// The root.
    pub root: Arc<Root>,
    /// Nothing in it may be changed.
    pub read_only: bool,
}

/// All roots, in the order they were configured.
#[derive(Debug, Clone, Default)]
pub struct Roots(Vec<NamedRoot>, Option<Arc<Cluster>>);

impl Roots {
    /// Takes the roots; their names have to differ.
    #[must_use]
    pub fn new(roots: Vec<NamedRoot>) -> Roots {
        Roots(roots, None)
    }

    /// The same roots of a replica.
    #[must_use]
    pub fn of_cluster(mut self, cluster: Option<Arc<Cluster>>) -> Roots {
        self.1 = cluster;
        self
    }

    /// The directory that replicas share, if there are several.
    #[must_use]
    pub fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.1.as_ref()
    }

    /// The root of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&NamedRoot> {
        self.0.iter().find(|root| root.name == name)
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, NamedRoot> {
        self.0.iter()
    }
}
