//! A value of which one version is in force, and which the operator may replace while others use it.

use std::sync::{Arc, PoisonError, RwLock};

/// Holds the version in force. Reading it is nearly free, and a reader keeps the version that it got.
pub(crate) struct InForce<T>(RwLock<Arc<T>>);

impl<T> InForce<T> {
    /// Puts the first version in force.
    pub(crate) fn new(first: impl Into<Arc<T>>) -> InForce<T> {
        InForce(RwLock::new(first.into()))
    }

    /// The version in force now.
    pub(crate) fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another version in force.
    pub(crate) fn replace(&self, next: impl Into<Arc<T>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next.into();
    }
}
