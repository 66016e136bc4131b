//! The one place that decides which client the agent's files belong to.

use guide::CacheOwner;

use crate::client::{AccountKind, Caller};

/// Who sees what an agent handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSharing {
    /// Only the client that handed it over.
    PerClient,
    /// Every client of the server.
    Shared,
}

/// Returns whose files a call means.
pub(super) fn owner(caller: &Caller, sharing: CacheSharing) -> CacheOwner {
    match sharing {
        CacheSharing::Shared => CacheOwner::default(),
        // A subject has a share of its own, because it needs a token of the issuer.
        CacheSharing::PerClient if caller.subject.is_some() => {
            CacheOwner::alone(&caller.owner_name())
        }
        CacheSharing::PerClient => CacheOwner {
            name: caller.owner_name().into(),
            holder: caller.allowance.clone(),
        },
    }
}

/// Returns the name that a sealed state is bound to. A host is left out: replicas behind a proxy may see different ones.
pub(super) fn sealed_name(caller: &Caller, sharing: CacheSharing) -> String {
    match caller.account_kind {
        AccountKind::Host => String::new(),
        _ => owner(caller, sharing).name.to_string(),
    }
}
