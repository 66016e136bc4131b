//! Fetches the issuer's keys over HTTP. It is the only request that this server ever makes, and no token goes with it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::keys::FetchKeys;
use crate::settings::WebAddress;

/// How long a fetch may take, from the name's look-up to the last byte.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest document of keys.
const MAX_SIZE: usize = 256 * 1024;
const PROGRAM: &str = concat!("mcp-filesystem/", env!("CARGO_PKG_VERSION"));

/// Fetches the document at one address.
pub(super) struct KeyFetcher {
    address: WebAddress,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl KeyFetcher {
    /// Prepares requests to the issuer. Reads the system's trusted certificates, which are out of reach later.
    pub(super) fn new(address: &WebAddress) -> Result<KeyFetcher> {
        let tls = address.is_encrypted().then(|| encryption(address));
        Ok(KeyFetcher {
            address: address.clone(),
            tls: tls.transpose().context("auth.oauth.jwks_uri")?,
        })
    }

    async fn get(&self) -> Result<Vec<u8>, String> {
        let place = (self.address.host(), self.address.port());
        let stream = TcpStream::connect(place).await.map_err(told)?;
        match &self.tls {
            None => self.exchange(stream).await,
            Some((tls, name)) => {
                let stream = tls.connect(name.clone(), stream).await.map_err(told)?;
                self.exchange(stream).await
            }
        }
    }

    async fn exchange<S>(&self, stream: S) -> Result<Vec<u8>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
        let request = Request::get(self.address.path_and_query())
            .header(HOST, self.address.authority())
            .header(ACCEPT, "application/jwk-set+json, application/json")
            .header(USER_AGENT, PROGRAM)
            .body(Empty::<Bytes>::new())
            .map_err(told)?;
        let exchange = async {
            let reply = sender.send_request(request).await.map_err(told)?;
            // Security: a redirect is not followed; the operator named the one address that is trusted.
            if reply.status() != StatusCode::OK {
                return Err(format!("the answer has status {}", reply.status().as_u16()));
            }
            let body = Limited::new(reply.into_body(), MAX_SIZE).collect().await;
            Ok(body.map_err(told)?.to_bytes().to_vec())
        };
        let mut exchange = std::pin::pin!(exchange);
        tokio::select! {
            biased;
            fetched = exchange.as_mut() => fetched,
            ended = connection => {
                ended.map_err(told)?;
                // Bytes that were read before the end still have to be consumed.
                exchange.await
            }
        }
    }
}

impl FetchKeys for KeyFetcher {
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>> {
        Box::pin(async {
            let fetched = tokio::time::timeout(PATIENCE, self.get()).await;
            fetched.unwrap_or_else(|_| Err(format!("it took more than {} s", PATIENCE.as_secs())))
        })
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn encryption(address: &WebAddress) -> Result<(TlsConnector, ServerName<'static>)> {
    let mut trusted = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = trusted.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(anyhow!(
            "no certificate authority is known; install the system's CA certificates, or name a file of them in SSL_CERT_FILE"
        ));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let name = ServerName::try_from(address.host().to_owned())?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}
