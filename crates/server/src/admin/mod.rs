//! The operator's page: a listener of its own, one static page in the program, and a small JSON interface behind it.
//!
//! The page may be fetched by anyone who reaches the listener, because it holds nothing. Every request to the interface needs
//! a token of `admin.token_file` as a bearer header; there are no cookies, so no other site can make a browser send it.

mod api;
mod board;
mod page;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub(crate) use self::api::AdminState;
pub(crate) use self::board::CallBoard;
use crate::http::{CredentialStore, HostCheck};
use crate::in_force::InForce;

/// How many connections the page has at most.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest body of a request.
const BODY_MAX: usize = 64 * 1024;

/// The type of every answer of the interface and every file of the page.
pub(super) type AdminReply = Response<Full<Bytes>>;

/// The parts that the listener needs.
pub(crate) struct AdminOptions {
    pub(crate) host_check: Arc<InForce<HostCheck>>,
    pub(crate) credentials: Arc<CredentialStore>,
    pub(crate) state: AdminState,
}

/// Opens the port of the page.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("admin.listen: cannot listen on {address}"))?;
    let nonblocking = listener.set_nonblocking(true);
    nonblocking.context("admin.listen: cannot use the port")?;
    Ok(listener)
}

/// Serves the page until the process ends.
pub(crate) async fn serve(
    listener: TcpListener,
    options: AdminOptions,
    shutdown: CancellationToken,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the operator's page cannot be served"),
    };
    let options = Arc::new(options);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // The system has run out of descriptors.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (options, shutdown) = (Arc::clone(&options), shutdown.clone());
        tokio::spawn(async move {
            let _place = place;
            converse(stream, options, shutdown).await;
        });
    }
}

async fn converse(
    stream: tokio::net::TcpStream,
    options: Arc<AdminOptions>,
    shutdown: CancellationToken,
) {
    let service = service_fn(move |request| {
        let options = Arc::clone(&options);
        async move { Ok::<_, Infallible>(options.answer(request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BODY_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the operator's page broke");
        },
        () = shutdown.cancelled() => {}
    }
}

impl AdminOptions {
    async fn answer(&self, request: Request<Incoming>) -> AdminReply {
        let host_check = self.host_check.now();
        let checked = host_check.check(request.uri(), request.headers());
        if let Err(refusal) = checked {
            tracing::warn!(
                status = refusal.status.as_u16(),
                reason = refusal.reason,
                "request to the operator's page refused"
            );
            return text(refusal.status, refusal.reason);
        }
        let path = request.uri().path().to_owned();
        match path.strip_prefix("/api/") {
            None => page::file(&path, request.method()),
            Some(name) => self.answer_api(name, request).await,
        }
    }

    async fn answer_api(&self, name: &str, request: Request<Incoming>) -> AdminReply {
        let tokens = self.credentials.current().admin_tokens;
        let is_let_in = tokens.is_some_and(|tokens| tokens.holder(request.headers()).is_ok());
        if !is_let_in {
            tracing::warn!(
                path = name,
                "a request to the operator's page has no valid token"
            );
            let mut reply = text(
                StatusCode::UNAUTHORIZED,
                "Unauthorized: send \"Authorization: Bearer TOKEN\" with a token of admin.token_file",
            );
            let challenge = HeaderValue::from_static(r#"Bearer realm="mcp-filesystem admin""#);
            reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            return reply;
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        let method = request.method().clone();
        let body = if method == Method::POST {
            match whole_body(request).await {
                Ok(body) => body,
                Err(reply) => return reply,
            }
        } else {
            Bytes::new()
        };
        self.state.answer(name, &method, &query, &body).await
    }
}

async fn whole_body(request: Request<Incoming>) -> std::result::Result<Bytes, AdminReply> {
    let body = Limited::new(request.into_body(), BODY_MAX).collect();
    match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        _ => Err(text(
            StatusCode::BAD_REQUEST,
            "Bad Request: the body is too large, or did not come in time",
        )),
    }
}

/// A short answer for people.
pub(super) fn text(status: StatusCode, message: impl Into<Bytes>) -> AdminReply {
    reply(
        status,
        message.into(),
        HeaderValue::from_static("text/plain; charset=utf-8"),
    )
}

/// Any answer. Nothing may be kept by browsers or proxies.
pub(super) fn reply(status: StatusCode, body: Bytes, kind: HeaderValue) -> AdminReply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in page::PROTECTION {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}
