//! The stdio transport: one client, JSON-RPC lines on standard input and output.

mod wire;

use std::os::fd::{AsFd, BorrowedFd};

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;
use toolset::Service;

use self::wire::{AtOnce, Wire};
use crate::shutdown::FINISHING;

/// What a pipe may hold for everybody unless the system says otherwise.
const PIPE: usize = 1024 * 1024;

/// Serves the client on standard input and output until it hangs up or the process is asked to stop. Running
/// calls then finish, or are cut a few seconds later.
pub(crate) async fn serve(
    service: Service,
    max_message_size: usize,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    widen(std::io::stdin().as_fd());
    widen(std::io::stdout().as_fd());
    let (read, write) = stdio_pipes();
    let wire = Wire::new(read, write, max_message_size, shutdown);
    let wire = wire.answering(at_once(service.clone()));
    tokio::spawn(cut_late_calls(service.clone(), wire.ended()));
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

/// Answers calls that need no waiting.
fn at_once(service: Service) -> AtOnce {
    Box::new(move |call, client| {
        let result = service.call_at_once(&call.name, &call.arguments, client)?;
        Some(result.message(&call.id, call.revision()))
    })
}

/// Lets a pipe hold more at once, so that a large reply does not change threads for every 64 KiB. What is no pipe, or
/// may not be larger, stays as it is.
fn widen(pipe: BorrowedFd<'_>) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

/// Cuts the calls that run on after the end, so that each still has a reply and a line in the log.
async fn cut_late_calls(service: Service, ended: CancellationToken) {
    ended.cancelled().await;
    tokio::time::sleep(FINISHING).await;
    service.cut_calls();
}

/// Work whose result nobody can read any more is not worth finishing.
async fn cut_unheard_calls(service: Service, unheard: CancellationToken) {
    unheard.cancelled().await;
    service.cut_calls();
}
