//! The stdio transport: one client, JSON-RPC lines on standard input and output.

use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolset::Service;

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
    let read = UntilShutdown {
        read,
        asked: Box::pin(shutdown.cancelled_owned()),
    };
    let transport =
        AsyncRwTransport::new_server(read, write).with_max_line_length(max_message_size);
    match serve_server(service, transport).await {
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

/// Standard input that ends when the process is asked to stop, so that stopping is the same as hanging up.
struct UntilShutdown<R> {
    read: R,
    asked: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilShutdown<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.asked.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}
