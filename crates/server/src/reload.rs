//! SIGHUP: tokens and certificates are read again, the audit file is opened anew. Nothing else of the configuration
//! changes while the process lives.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::keys::KeyRing;

/// Reloads at every SIGHUP, for as long as it is polled.
pub(crate) async fn on_hangup(reopen_audit: impl Fn(), keys: Arc<KeyRing>) {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => return tracing::warn!(%error, "SIGHUP cannot be listened to"),
    };
    while hangup.recv().await.is_some() {
        keys.reload();
        reopen_audit();
    }
}
