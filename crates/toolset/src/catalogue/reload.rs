//! The tools of an endpoint after the settings were reloaded.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Catalogue, ToolEntry};

impl Catalogue {
    /// Keeps counting from the figures of an earlier catalogue of the same endpoint.
    pub(crate) fn counting_on(mut self, earlier: &Catalogue) -> Catalogue {
        let name = |entry: &ToolEntry| (entry.contract.name(), entry.tool.definition().name);
        let known = earlier.entries.iter().chain(&earlier.methods);
        let known: HashMap<_, _> = known
            .map(|entry| (name(entry), Arc::clone(&entry.counters)))
            .collect();
        for entry in self.entries.iter_mut().chain(&mut self.methods) {
            if let Some(counters) = known.get(&name(entry)) {
                entry.counters = Arc::clone(counters);
            }
        }
        self
    }
}
