//! The Streamable HTTP transport: accepts connections and ends them. The [`Router`] answers their requests.

mod answers;
mod body;
mod connection;
mod connection_limits;
mod connection_timer;
mod cors;
mod credentials;
mod endpoint;
mod fair_lane;
mod forwarded;
mod guarded_stream;
mod hang_up;
mod host_check;
pub(crate) mod listener;
mod metrics;
mod oauth;
mod readiness;
mod refusal;
mod refusal_log;
mod root_looks;
mod router;
mod server_card;
mod sse;
mod tls;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolset::Service;

pub(crate) use self::connection_limits::ConnectionLimits;
use self::connection_limits::{ConnectionSlot, ConnectionSlots, TooManyOfOne};
pub(crate) use self::credentials::{CredentialStore, RevokedTokens};
pub(crate) use self::endpoint::{Endpoint, EndpointParts, ServedPart};
use self::fair_lane::Lanes;
pub(crate) use self::host_check::HostCheck;
use self::router::Router;
pub(crate) use self::router::{HttpGauges, HttpOptions};
use crate::signals::FINISHING;

/// How long calls are still answered after the process was asked to stop, while a client is connected.
const DRAINING: Duration = Duration::from_secs(2);
/// How often to check meanwhile whether a client still is.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long to wait for further connections before the listener is closed, and then for their requests.
const LAST_ACCEPT: Duration = Duration::from_millis(1);
const LAST_ASKED: Duration = Duration::from_millis(50);
/// How long connections may take to end after their calls were cut.
const CUTTING: Duration = Duration::from_millis(500);
/// How long to wait before accepting again when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves until the process is asked to stop; running calls then finish or are cut.
pub(crate) async fn serve(
    listener: TcpListener,
    options: HttpOptions,
    endpoints: Vec<Arc<Endpoint>>,
    shutdown: CancellationToken,
) {
    let slots = ConnectionSlots::new(options.connection_limits.clone());
    let services = endpoints.iter().map(|one| one.server().service().clone());
    let services: Vec<Service> = services.collect();
    let router = Arc::new(Router::new(options, endpoints));
    let drained = CancellationToken::new();
    let mut connections = JoinSet::new();
    let mut draining = std::pin::pin!(drain(&services, &router, shutdown));
    let ending = &drained;
    let lanes = Lanes::default();
    let converse = |(stream, address, slot): (TcpStream, SocketAddr, ConnectionSlot)| {
        let lane = lanes.lane_of(&mcp::host_of(address.ip()));
        lane.run(connection::serve(
            stream,
            address,
            Arc::clone(&router),
            // Not a clone: all connections would look at one token, and take its lock, whenever they run.
            ending.child_token(),
            slot,
        ))
    };
    loop {
        tokio::select! {
            () = draining.as_mut() => break,
            accepted = accept(&listener, &slots) => {
                connections.spawn(converse(accepted));
                while connections.try_join_next().is_some() {}
            }
        }
    }
    // Connections that the kernel has accepted already would be reset with the listener.
    while let Ok(accepted) = tokio::time::timeout(LAST_ACCEPT, accept(&listener, &slots)).await {
        connections.spawn(converse(accepted));
    }
    drop(listener);
    if !connections.is_empty() {
        // Requests that they were about to send are read before they are told to end.
        tokio::time::sleep(LAST_ASKED).await;
    }
    drained.cancel();
    end(connections, &services, &router).await;
    settle(&services).await;
}

/// After the process was asked to stop, waits briefly until nobody is connected.
///
/// Meanwhile calls are still answered, and every answer ends its connection. So a proxy has no connection left when
/// this process stops listening, and its next connection attempt is refused before it sends a call. A call that is
/// refused after it was sent is lost, because proxies do not repeat requests that may change something.
async fn drain(services: &[Service], router: &Router, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    router.drain();
    let all = async {
        for service in services {
            service.settle().await;
        }
        while router.open_connections() > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let _ = tokio::time::timeout(DRAINING, all).await;
}

/// Waits for calls whose clients are gone: calls in sessions still run. They get as much time as the others.
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

/// Waits for connections to end, and then makes them end.
async fn end(mut connections: JoinSet<()>, services: &[Service], router: &Router) {
    // Clients that listen for changes would hold their connections.
    router.end_subscriptions();
    // First, calls are cut, which answers them; then sessions, whose streams hold connections.
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
    // Remaining connections are dropped with the set.
    let _ = tokio::time::timeout(CUTTING, all(&mut connections)).await;
}

async fn all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// The next admitted connection.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<ConnectionSlots>,
) -> (TcpStream, SocketAddr, ConnectionSlot) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => match slots.enter(address.ip()).await {
                Ok(slot) => return (stream, address, slot),
                Err(TooManyOfOne) => connection::refuse(&stream, address),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}
