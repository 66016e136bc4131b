//! Derives admission for a named client, or for new settings, from that of the process.

use std::collections::HashSet;
use std::sync::Arc;

use ops::SearchMemory;
use tokio::sync::Semaphore;

use super::Admission;
use crate::deployment::{ClientGrant, Deployment};
use crate::host_paths::HostDirectories;
use crate::rate::{CallRate, RateLimit};

impl Admission {
    /// The same admission under new settings. Running and waiting calls, held bytes and counts carry over. The byte
    /// limits stay as they were at the start.
    #[must_use]
    pub fn again(&self, deployment: Deployment) -> Arc<Admission> {
        let is_same_memory =
            self.deployment.limits.search_memory == deployment.limits.search_memory;
        let rate = deployment
            .rate
            .map(|rate| kept_rate(rate, self.deployment.rate, self.rate.as_ref()));
        Arc::new(Admission {
            rate,
            search_memory: if is_same_memory {
                Arc::clone(&self.search_memory)
            } else {
                Arc::new(SearchMemory::new(deployment.limits.search_memory))
            },
            ..self.sharing(deployment)
        })
    }

    /// Puts in force what the whole process shares: how many calls run, and how long persons may take.
    pub fn enforce(&self) {
        self.slots.resize(self.deployment.max_concurrent_calls);
        self.confirmations
            .set_patience(self.deployment.confirm_timeout);
    }

    /// The same process as a named client sees it: only its roots and tools exist. Turns, memory and statistics are
    /// shared. The part of its allowance that it used `before` stays used.
    #[must_use]
    pub fn for_client(&self, client: &ClientGrant, before: Option<&Admission>) -> Arc<Admission> {
        let deployment = self.deployment.for_client(client);
        let rate = match client.rate {
            Some(rate) => {
                let known = before.and_then(|before| Some((before.deployment.rate?, &before.rate)));
                let (known, limit) = known.unzip();
                Some(kept_rate(rate, known, limit.and_then(Option::as_ref)))
            }
            None => self.rate.clone(),
        };
        let names = self.deployment.roots.iter().map(|grant| &grant.name);
        let hidden = names.filter(|name| !client.roots.iter().any(|own| own.name == **name));
        let hidden = hidden.cloned().collect();
        let same_places = before.filter(|before| before.max_calls == client.max_calls);
        let places = match same_places {
            Some(before) => before.places.clone(),
            None => client.max_calls.map(places),
        };
        Arc::new(Admission {
            rate,
            places,
            max_calls: client.max_calls,
            hidden,
            is_of_client: true,
            ..self.sharing(deployment)
        })
    }

    /// The same admission without limits of its own.
    fn sharing(&self, deployment: Deployment) -> Admission {
        let names = deployment.roots.iter().enumerate();
        Admission {
            by_name: names
                .map(|(index, grant)| (grant.name.clone(), index))
                .collect(),
            host_directories: Arc::new(HostDirectories::of(&deployment)),
            deployment,
            rate: None,
            places: None,
            max_calls: None,
            hidden: HashSet::new(),
            is_of_client: false,
            slots: Arc::clone(&self.slots),
            client_stats: Arc::clone(&self.client_stats),
            line_index_cache: Arc::clone(&self.line_index_cache),
            search_memory: Arc::clone(&self.search_memory),
            byte_budget: Arc::clone(&self.byte_budget),
            closing: self.closing.clone(),
            watches: Arc::clone(&self.watches),
            subscriptions: Arc::clone(&self.subscriptions),
            confirmations: Arc::clone(&self.confirmations),
            root_turns: Arc::clone(&self.root_turns),
        }
    }
}

/// The allowance for a rate; the existing one is kept if the rate did not change.
fn kept_rate(
    rate: CallRate,
    before: Option<CallRate>,
    limit: Option<&Arc<RateLimit>>,
) -> Arc<RateLimit> {
    match limit {
        Some(limit) if before == Some(rate) => Arc::clone(limit),
        _ => Arc::new(RateLimit::new(rate)),
    }
}

/// A limit of this many calls at once.
fn places(most: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
}
