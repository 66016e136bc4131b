//! HTTPS: builds the acceptor of encrypted connections from the operator's certificate and key.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::credentials::text;
use crate::settings::Tls;

/// Reads the certificate and its key.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(text("server.tls.cert", &tls.cert)?.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| anyhow!("server.tls.cert: {:?}: {error}", tls.cert))?;
    if chain.is_empty() {
        return Err(anyhow!(
            "server.tls.cert: {:?}: there is no certificate in it (PEM is expected)",
            tls.cert
        ));
    }
    // Security: the parser's message could repeat parts of the key.
    let key = PrivateKeyDer::from_pem_slice(text("server.tls.key", &tls.key)?.as_bytes());
    let key = key.map_err(|_| {
        anyhow!(
            "server.tls.key: {:?}: there is no private key in it (PEM is expected)",
            tls.key
        )
    })?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("server.tls: the certificate and the key cannot be used together")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
