//! One connection: encryption, its limits, and the requests on it until it ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::guarded_stream::GuardedStream;
use super::hang_up::HangUp;
use super::router::{RequestInfo, Router};

/// How long the TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a request's headers; larger ones are answered with 431.
pub(super) const MAX_HEADERS: usize = 64 * 1024;
/// How many unsent bytes of a reply the kernel buffers.
const UNSENT: u32 = 256 * 1024;

/// Serves a connection until it ends, and then gives its slot back.
pub(super) async fn serve(
    stream: TcpStream,
    address: SocketAddr,
    router: Arc<Router>,
    shutdown: CancellationToken,
    _slot: OwnedSemaphorePermit,
) {
    let _open = router.connected();
    // Small replies must not wait for an acknowledgement. If this fails, they are only slower.
    let _ = stream.set_nodelay(true);
    // Makes a slow reader visible: otherwise the kernel takes megabytes at once and then nothing for half a minute.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
    let client = RemoteClient {
        address,
        hang_up: Arc::new(HangUp::of(&stream)),
    };
    let Some(tls) = router.tls() else {
        return converse(stream, client, router, shutdown).await;
    };
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, client, router, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, %address, "no encryption was agreed on"),
        Err(_) => tracing::debug!(%address, "a client was too slow to agree on encryption"),
    }
}

/// Who is at the other end of a connection.
struct RemoteClient {
    address: SocketAddr,
    hang_up: Arc<HangUp>,
}

async fn converse<S>(
    stream: S,
    client: RemoteClient,
    router: Arc<Router>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let patience = router.client_timeout();
    let (stream, head) = GuardedStream::new(stream, patience);
    let RemoteClient { address, hang_up } = client;
    let from: Arc<str> = address.to_string().into();
    let service = service_fn(move |request: Request<Incoming>| {
        let router = Arc::clone(&router);
        let info = RequestInfo {
            address: Arc::clone(&from),
            has_two_lengths: head.has_two_lengths(),
        };
        let hang_up = Arc::clone(&hang_up);
        async move {
            tokio::select! {
                biased;
                reply = router.handle(request, info) => Ok(reply),
                () = hang_up.gone() => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            }
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %address, "a connection broke");
    }
}
