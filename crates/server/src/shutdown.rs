//! How the process ends: the first SIGINT or SIGTERM asks, the second insists.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long running calls may go on after the process is asked to stop; then they are cut.
pub(crate) const FINISHING: Duration = Duration::from_secs(3);

/// A token that the first signal cancels. Must be called inside the runtime.
pub(crate) fn on_signals() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = CancellationToken::new();
    let token = asked.clone();
    tokio::spawn(async move {
        next(&mut interrupt, &mut terminate).await;
        tracing::info!("stopping");
        token.cancel();
        next(&mut interrupt, &mut terminate).await;
        tracing::warn!("stopped by a second signal");
        std::process::exit(1);
    });
    Ok(asked)
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
