//! The stdio transport: one client, JSON-RPC lines on standard input and output.

mod wire;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;
use toolset::Service;

use self::wire::Wire;
use crate::shutdown::FINISHING;

/// Serves the client on standard input and output until it hangs up or the process is asked to stop. Running
/// calls then finish, or are cut a few seconds later.
pub(crate) async fn serve(
    service: Service,
    max_message_size: usize,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    tokio::spawn(cut_late_calls(service.clone(), shutdown.clone()));
    let (read, write) = stdio_pipes();
    let wire = Wire::new(read, write, max_message_size, shutdown);
    tokio::spawn(cut_unheard_calls(service.clone(), wire.unheard()));
    match serve_server(service, wire).await {
        Ok(running) => match running.waiting().await? {
            QuitReason::JoinError(error) => Err(error.into()),
            _ => Ok(()),
        },
        // A client that hangs up before it said anything is no mistake of ours.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn cut_late_calls(service: Service, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(FINISHING).await;
    service.cut_calls();
}

/// Work whose result nobody can read any more is not worth finishing.
async fn cut_unheard_calls(service: Service, unheard: CancellationToken) {
    unheard.cancelled().await;
    service.cut_calls();
}
