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

/// Returns whose files a call means. The kind of the account is part of the name, because a token may have the same
/// name as a host.
pub(super) fn owner(caller: &Caller, sharing: CacheSharing) -> CacheOwner {
    match sharing {
        CacheSharing::Shared => CacheOwner::default(),
        CacheSharing::PerClient => CacheOwner {
            name: format!("{:?} {}", caller.account_kind, caller.account).into(),
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
