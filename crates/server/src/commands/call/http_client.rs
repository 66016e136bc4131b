//! A client for one request at a time, on the HTTP implementation that the server uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::commands::server_url::{Encryption, ServerUrl};
use crate::operator_files::{self, reason};

/// How long a connection may take. An answer takes as long as the tool does.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// Where distributions keep the certificates that everybody trusts.
const SYSTEM_CERTIFICATES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// A client of one endpoint.
pub(super) struct EndpointClient {
    url: ServerUrl,
    token: Option<String>,
    certificates: Option<PathBuf>,
}

/// What a server answered.
#[derive(Debug)]
pub(super) struct EndpointReply {
    /// The status code.
    pub(super) status: u16,
    /// Whether the body is a stream of events.
    pub(super) is_stream: bool,
    /// The body.
    pub(super) body: String,
}

impl EndpointClient {
    /// A client that shows this token, and trusts these certificates or else the system's.
    pub(super) fn new(
        url: ServerUrl,
        token: Option<String>,
        certificates: Option<PathBuf>,
    ) -> EndpointClient {
        EndpointClient {
            url,
            token,
            certificates,
        }
    }

    /// Sends a message and reads the whole answer.
    pub(super) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<EndpointReply> {
        let mut request = Request::post(self.url.path.as_str())
            .header(HOST, self.url.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.context("the tool's name or the token cannot be in a header")?;
        let address = (self.url.host.as_str(), self.url.port);
        let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
        let stream = stream.map_err(|_| anyhow!("no connection within {PATIENCE:?}"))??;
        let response = match self.url.encryption {
            Encryption::None => exchange(stream, request).await?,
            Encryption::Tls => exchange(self.encrypted(stream).await?, request).await?,
        };
        Ok(response)
    }

    async fn encrypted(
        &self,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(trusted(self.certificates.as_deref())?)
            .with_no_client_auth();
        let name = ServerName::try_from(self.url.host.clone())?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let connected = tokio::time::timeout(PATIENCE, connecting).await;
        Ok(connected.map_err(|_| anyhow!("no TLS handshake within {PATIENCE:?}"))??)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<EndpointReply> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The request itself reports a broken connection.
    let connection = tokio::spawn(async move { drop(connection.await) });
    let response: Response<_> = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let body = Limited::new(response.into_body(), MAX_ANSWER)
        .collect()
        .await;
    let body = body.map_err(|error| anyhow!("the answer cannot be read: {error}"))?;
    connection.abort();
    Ok(EndpointReply {
        status,
        is_stream,
        body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
    })
}

/// The certificates of a file, or those that the system trusts.
fn trusted(file: Option<&Path>) -> Result<RootCertStore> {
    let variable = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let named = file.map(Path::to_owned).or(variable);
    let candidates = match named {
        Some(file) => vec![file],
        None => SYSTEM_CERTIFICATES.iter().map(PathBuf::from).collect(),
    };
    let mut failure = None;
    for path in candidates {
        match operator_files::read_bytes(&path) {
            Ok((bytes, _)) => return store(&path, &bytes),
            Err(error) => failure = Some(anyhow!("{path:?}: {}", reason(&error))),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow!("no certificates are trusted")))
        .context("the certificates to trust (--ca-file)")
}

fn store(path: &Path, pem: &[u8]) -> Result<RootCertStore> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| anyhow!("{path:?}: {error}"))?;
    let mut store = RootCertStore::empty();
    let (taken, _) = store.add_parsable_certificates(certificates);
    if taken == 0 {
        bail!("{path:?}: there is no certificate in it (PEM is expected)");
    }
    Ok(store)
}
