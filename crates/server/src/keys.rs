//! Who may come in and how it is encrypted: tokens and certificates, read at the start and again on SIGHUP.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, anyhow};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::reason;
use crate::operator;
use crate::settings::{Settings, Tls};
use crate::tokens::Tokens;

/// What the files say at one moment.
#[derive(Clone)]
pub(crate) struct Keys {
    /// Every MCP request needs one of these; none means that nobody is asked.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// What makes connections HTTPS.
    pub(crate) tls: Option<TlsAcceptor>,
}

/// The keys that are in force, and where they come from.
pub(crate) struct KeyRing {
    settings: Settings,
    keys: RwLock<Keys>,
}

impl KeyRing {
    /// Reads the files for the first time; a mistake in them ends the start.
    pub(crate) fn load(settings: &Settings) -> Result<KeyRing> {
        Ok(KeyRing {
            keys: RwLock::new(Keys::load(settings)?),
            settings: settings.clone(),
        })
    }

    /// What is in force now.
    pub(crate) fn keys(&self) -> Keys {
        self.keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the files again. With a mistake in them the old keys stay in force.
    pub(crate) fn reload(&self) {
        match Keys::load(&self.settings) {
            Ok(keys) => {
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
                tracing::info!("tokens and certificates were read again");
            }
            Err(error) => tracing::error!(
                error = format!("{error:#}"),
                "tokens and certificates could not be read again; the old ones stay in force"
            ),
        }
    }
}

impl Keys {
    fn load(settings: &Settings) -> Result<Keys> {
        let tokens = settings.bearer_tokens_file.as_deref().map(tokens);
        let tls = settings.tls.as_ref().map(acceptor);
        Ok(Keys {
            tokens: tokens.transpose()?.map(Arc::new),
            tls: tls.transpose()?,
        })
    }
}

fn tokens(path: &Path) -> Result<Tokens> {
    let text = text("server.bearer_tokens_file", path)?;
    let parsed = Tokens::parse(&text).map_err(|fault| anyhow!("{path:?}: {fault}"));
    parsed.context("server.bearer_tokens_file")
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(text("server.tls.cert", &tls.cert)?.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| anyhow!("server.tls.cert: {:?}: {error}", tls.cert))?;
    if chain.is_empty() {
        return Err(anyhow!(
            "server.tls.cert: {:?}: there is no certificate in it (PEM is expected)",
            tls.cert
        ));
    }
    // The parser's words could repeat parts of the key.
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

fn text(key: &str, path: &Path) -> Result<String> {
    let read = operator::read(path).map_err(|error| anyhow!("{key}: {path:?}: {}", reason(&error)));
    Ok(read?.0)
}
