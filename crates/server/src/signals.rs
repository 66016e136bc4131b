//! What signals do: the first SIGINT or SIGTERM asks the process to stop, the second ends it. SIGHUP reads the
//! config file, tokens and certificates again and opens the audit file again.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::service_manager;

/// How long running calls may continue after the process is asked to stop; then they are cut.
pub(crate) const FINISHING: Duration = Duration::from_secs(3);

/// Returns a token that the first signal cancels. It must be called inside the runtime.
pub(crate) fn stop_on_signals() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = CancellationToken::new();
    let token = asked.clone();
    tokio::spawn(async move {
        next(&mut interrupt, &mut terminate).await;
        tracing::info!("stopping");
        service_manager::tell_stopping();
        token.cancel();
        next(&mut interrupt, &mut terminate).await;
        tracing::warn!("stopped by a second signal");
        std::process::exit(1);
    });
    Ok(asked)
}

/// Begins to listen to SIGHUP: from now on it does not end the process. It must be called inside the runtime.
pub(crate) fn hangups() -> Option<Signal> {
    let hangup = signal(SignalKind::hangup());
    let warned = hangup.inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be listened to"));
    warned.ok()
}

/// Reloads at every SIGHUP.
pub(crate) async fn reload_on_hangup(
    mut hangups: Signal,
    reopen_audit: impl Fn(),
    reload: impl Fn() + Clone + Send + 'static,
) {
    while hangups.recv().await.is_some() {
        // Reading the operator's files can wait for a slow disk. A panic in it must not end the listening.
        let _ = tokio::task::spawn_blocking(reload.clone()).await;
        reopen_audit();
    }
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
