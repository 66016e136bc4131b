//! One connection: encryption, its limits, and the requests on it until it ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use mcp::HttpClient;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answers::HttpReply;
use super::connection_limits::ConnectionSlot;
use super::connection_timer::ConnectionTimer;
use super::guarded_stream::GuardedStream;
use super::hang_up::HangUp;
use super::refusal::Refusal;
use super::router::{RequestInfo, Router};

/// The most bytes of a request's headers; larger ones are answered with 431.
pub(super) const MAX_HEADERS: usize = 64 * 1024;
/// How many unsent bytes of a reply the kernel buffers.
const UNSENT: u32 = 256 * 1024;
/// How long a connection that was asked to leave may take for the request that it serves.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// The response to an address with too many connections.
const TOO_MANY: &str = "Service Unavailable: this address has too many connections; close some and try again, or raise \
                        server.max_connections_per_address";

/// Refuses a connection of an address that has too many.
pub(super) fn refuse(stream: &TcpStream, address: SocketAddr) {
    tracing::warn!(%address, "connection refused: too many connections from this address");
    let length = TOO_MANY.len();
    let reply = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{TOO_MANY}"
    );
    // The connection is new, so its buffer has room. A client that speaks TLS cannot read it.
    let _ = stream.try_write(reply.as_bytes());
}

/// Serves a connection until it ends or another takes its place.
pub(super) async fn serve(
    stream: TcpStream,
    address: SocketAddr,
    router: Arc<Router>,
    shutdown: CancellationToken,
    slot: ConnectionSlot,
) {
    let _open = router.connected();
    let slot = Arc::new(slot);
    tokio::select! {
        () = encrypt_and_converse(stream, address, router, shutdown, Arc::clone(&slot)) => {}
        () = slot.turned_out() => tracing::debug!(%address, "a connection made room for another"),
    }
}

async fn encrypt_and_converse(
    stream: TcpStream,
    address: SocketAddr,
    router: Arc<Router>,
    shutdown: CancellationToken,
    slot: Arc<ConnectionSlot>,
) {
    let greeted_by = Instant::now() + router.handshake_timeout();
    // Small replies must not wait for an acknowledgement. If this fails, they are only slower.
    let _ = stream.set_nodelay(true);
    // Makes a slow reader visible: otherwise the kernel takes megabytes at once and then nothing for half a minute.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
    let client = RemoteClient {
        address,
        hang_up: Arc::new(HangUp::of(&stream)),
        slot,
        greeted_by,
    };
    let Some(tls) = router.tls() else {
        return converse(stream, client, router, shutdown).await;
    };
    match tokio::time::timeout_at(greeted_by, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, client, router, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, %address, "no encryption was agreed on"),
        Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
    }
}

/// The other end of a connection.
struct RemoteClient {
    address: SocketAddr,
    hang_up: Arc<HangUp>,
    slot: Arc<ConnectionSlot>,
    /// The deadline for the headers of its first request.
    greeted_by: Instant,
}

impl RemoteClient {
    /// Waits for the deadline of a client that sends no request.
    async fn stays_silent(slot: &ConnectionSlot, greeted_by: Instant) {
        tokio::time::sleep_until(greeted_by).await;
        if slot.has_asked() {
            std::future::pending().await
        }
    }
}

/// Answers a request unless its client hangs up.
async fn answer(
    router: Arc<Router>,
    request: Request<Incoming>,
    info: RequestInfo,
    hang_up: Arc<HangUp>,
) -> io::Result<HttpReply> {
    tokio::select! {
        biased;
        reply = router.handle(request, info) => Ok(reply),
        () = hang_up.gone() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Serves the last request of a connection. One that makes room for others has a few seconds for it; the end of the process
/// has a patience of its own.
async fn ended_in_time(
    serving: impl Future<Output = hyper::Result<()>>,
    slot: &ConnectionSlot,
) -> hyper::Result<()> {
    let overstays = async {
        slot.asked_to_leave().await;
        tokio::time::sleep(LEAVES_WITHIN).await;
    };
    tokio::select! {
        ended = serving => ended,
        () = overstays => {
            tracing::debug!("a busy connection made room for another");
            Ok(())
        }
    }
}

/// Waits until the process ends, or others need the place.
async fn asked_to_end(shutdown: &CancellationToken, slot: &ConnectionSlot) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = slot.asked_to_leave() => {}
    }
}

/// Tells why a connection ended.
fn tell_end(error: &hyper::Error, address: SocketAddr, router: &Router) {
    match unreadable(error) {
        Some(refusal) => router.refused_unread(address.ip(), &refusal),
        None => tracing::debug!(%error, %address, "a connection broke"),
    }
}

/// What hyper told a client whose bytes are no request.
fn unreadable(error: &hyper::Error) -> Option<Refusal> {
    let status = match error.is_parse() {
        true if error.is_parse_too_large() => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        true => StatusCode::BAD_REQUEST,
        false => return None,
    };
    let name = status.canonical_reason().unwrap_or_default();
    Some(Refusal::new(status, format!("{name}: {error}")))
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
    let RemoteClient {
        address,
        hang_up,
        slot,
        greeted_by,
    } = client;
    let own_slot = Arc::clone(&slot);
    let client = HttpClient::at(address);
    let last_host = Arc::default();
    let router_of_refusals = Arc::clone(&router);
    let service = service_fn(move |request: Request<Incoming>| {
        slot.asks();
        let info = RequestInfo {
            client: client.clone(),
            peer: address.ip(),
            slot: Some(Arc::clone(&slot)),
            last_host: Arc::clone(&last_host),
            has_two_lengths: head.has_two_lengths(),
        };
        answer(Arc::clone(&router), request, info, Arc::clone(&hang_up))
    });
    let serving = http1::Builder::new()
        .timer(ConnectionTimer::default())
        .header_read_timeout(patience)
        .max_buf_size(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = asked_to_end(&shutdown, &own_slot) => {
            serving.as_mut().graceful_shutdown();
            ended_in_time(serving, &own_slot).await
        }
        () = RemoteClient::stays_silent(&own_slot, greeted_by) => {
            return tracing::debug!(%address, "a new connection sent no request in time");
        }
    };
    if let Err(error) = ended {
        tell_end(&error, address, &router_of_refusals);
    }
}
