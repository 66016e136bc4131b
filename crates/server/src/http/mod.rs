//! The Streamable HTTP transport: accepts connections and ends them. The [`Router`] answers their requests.

mod answers;
mod body;
mod connection;
mod cors;
mod credentials;
mod door;
mod endpoint;
mod forwarded;
mod guarded_stream;
mod hang_up;
mod host_check;
pub(crate) mod listener;
mod metrics;
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

pub(crate) use self::credentials::CredentialStore;
pub(crate) use self::door::DoorLimits;
use self::door::{Door, TooManyOfOne, Visitor};
pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::host_check::HostCheck;
use self::router::Router;
pub(crate) use self::router::{HttpGauges, HttpOptions};
use crate::signals::FINISHING;

/// How long connections may take to end once their calls were cut.
const CUTTING: Duration = Duration::from_millis(500);
/// How long to wait before accepting again when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves until the process is asked to stop; running calls then finish or are cut.
pub(crate) async fn serve(
    listener: TcpListener,
    options: HttpOptions,
    endpoints: Vec<Endpoint>,
    shutdown: CancellationToken,
) {
    let door = Door::new(options.door_limits.clone());
    let services = endpoints.iter().map(|one| one.server().service().clone());
    let services: Vec<Service> = services.collect();
    let router = Arc::new(Router::new(options, endpoints));
    let mut connections = JoinSet::new();
    while let Some(accepted) = accept(&listener, &door, &shutdown).await {
        let (stream, address, visitor) = accepted;
        connections.spawn(connection::serve(
            stream,
            address,
            Arc::clone(&router),
            shutdown.clone(),
            visitor,
        ));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    end(connections, &services, &router).await;
    settle(&services).await;
}

/// Waits for calls whose clients are gone: calls in sessions still run. They get as long as the others.
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
    // First calls are cut, which answers them; then sessions, whose streams hold connections.
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
    // Connections that are left are dropped with the set.
    let _ = tokio::time::timeout(CUTTING, all(&mut connections)).await;
}

async fn all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// The next connection that is let in; `None` when the process is asked to stop.
async fn accept(
    listener: &TcpListener,
    door: &Arc<Door>,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, Visitor)> {
    let next = async {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => match door.enter(address.ip()).await {
                    Ok(visitor) => return (stream, address, visitor),
                    Err(TooManyOfOne) => connection::refuse(&stream, address),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => None,
        accepted = next => Some(accepted),
    }
}
