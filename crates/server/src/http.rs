//! The Streamable HTTP transport: connections, their limits and their end. What is asked on them is the [`Router`]'s.

mod answers;
mod body;
mod cors;
mod endpoint;
mod far_end;
mod metrics;
mod outgoing;
mod router;
mod sse;
mod stream;

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolset::Service;

pub(crate) use self::endpoint::Endpoint;
use self::far_end::FarEnd;
pub(crate) use self::router::Options;
use self::router::{Router, Visit};
use self::stream::Watched;
use crate::shutdown::FINISHING;

/// How long connections may take to notice that they were cut.
const CUTTING: Duration = Duration::from_millis(500);
/// How long a client may take to send a request's headers, and a connection may be idle between requests.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// How long a client may take to agree on encryption.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait before accepting again when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// The most bytes that the headers of a request may have; more are answered with 431.
const MAX_HEADERS: usize = 64 * 1024;
/// How much of a reply the kernel takes that the client has no room for yet.
const UNSENT: u32 = 256 * 1024;

/// Serves until the process is asked to stop; running calls then finish or are cut.
pub(crate) async fn serve(
    listener: TcpListener,
    options: Options,
    endpoints: Vec<Endpoint>,
    shutdown: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(
        options.max_connections.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let services = endpoints.iter().map(|one| one.server().service().clone());
    let services: Vec<Service> = services.collect();
    let router = Arc::new(Router::new(options, endpoints));
    let mut connections = JoinSet::new();
    while let Some((stream, address, slot)) = accept(&listener, &slots, &shutdown).await {
        connections.spawn(connection(
            stream,
            address,
            Arc::clone(&router),
            shutdown.clone(),
            slot,
        ));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    end(connections, &services, &router).await;
    settle(&services).await;
}

/// Waits for calls whose clients are gone, as long as for the others: those in sessions still run.
async fn settle(services: &[Service]) {
    let all = async || {
        for service in services {
            service.settle().await;
        }
    };
    if tokio::time::timeout(FINISHING, all()).await.is_err() {
        services.iter().for_each(Service::cut_calls);
        let _ = tokio::time::timeout(CUTTING, all()).await;
    }
}

/// Lets connections come to their end, and then makes them.
async fn end(mut connections: JoinSet<()>, services: &[Service], router: &Router) {
    // First their calls are cut, which answers them; then whatever still holds a connection, such as a stream.
    let cuts: [(Duration, &dyn Fn()); 2] = [
        (FINISHING, &|| services.iter().for_each(Service::cut_calls)),
        (CUTTING, &|| router.end_sessions()),
    ];
    for (patience, cut) in cuts {
        if tokio::time::timeout(patience, all(&mut connections))
            .await
            .is_ok()
        {
            return;
        }
        cut();
    }
    // Whoever is left after that is dropped with the set.
    let _ = tokio::time::timeout(CUTTING, all(&mut connections)).await;
}

async fn all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// The next connection and its slot; `None` when the process is asked to stop.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let next = async {
        let slot = Arc::clone(slots).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, address)) => return Some((stream, address, slot)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => None,
        accepted = next => accepted,
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    router: Arc<Router>,
    shutdown: CancellationToken,
    _slot: OwnedSemaphorePermit,
) {
    let _here = router.connected();
    // Small replies must not wait for an acknowledgement; without it they are only slower.
    let _ = stream.set_nodelay(true);
    // A slow reader is seen to read: the kernel would take megabytes at once, and then nothing for half a minute.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
    let visitor = Visitor {
        address,
        far_end: Arc::new(FarEnd::of(&stream)),
    };
    let Some(tls) = router.tls() else {
        return converse(stream, visitor, router, shutdown).await;
    };
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, visitor, router, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, %address, "no encryption was agreed on"),
        Err(_) => tracing::debug!(%address, "a client was too slow to agree on encryption"),
    }
}

/// Who is at the other end of a connection.
struct Visitor {
    address: SocketAddr,
    far_end: Arc<FarEnd>,
}

async fn converse<S>(stream: S, visitor: Visitor, router: Arc<Router>, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, head) = Watched::new(stream);
    let Visitor { address, far_end } = visitor;
    let from: Arc<str> = address.to_string().into();
    let service = service_fn(move |request: Request<Incoming>| {
        let router = Arc::clone(&router);
        let visit = Visit {
            address: Arc::clone(&from),
            has_two_lengths: head.has_two_lengths(),
        };
        let far_end = Arc::clone(&far_end);
        async move {
            tokio::select! {
                biased;
                reply = router.handle(request, visit) => Ok(reply),
                () = far_end.gone() => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            }
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
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
