//! The credentials of HTTP: tokens that let clients in and the certificate, read at the start and again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, anyhow};
use tokio_rustls::TlsAcceptor;

use super::oauth::ResourceServer;
use super::tls;
use super::tokens::Tokens;
use crate::operator_files::{self, reason};
use crate::settings::{ClientSettings, Settings, Transport};

/// The settings that name files of tokens.
const BEARER_TOKENS: &str = "server.bearer_tokens_file";
const ADMIN_TOKENS: &str = "admin.token_file";

/// The content of the files at one moment.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// Every MCP request needs one of these; without them, no token is needed.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// The acceptor that makes connections HTTPS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Every request to the interface of the operator's page needs one of these.
    pub(crate) admin_tokens: Option<Arc<Tokens>>,
}

/// The credentials in force, and the settings that name their files.
pub(crate) struct CredentialStore {
    settings: Settings,
    current: RwLock<Credentials>,
    /// What decides on access tokens, if they are taken.
    oauth: Option<Arc<ResourceServer>>,
}

impl CredentialStore {
    /// Reads the files for the first time; a mistake in them is an error of the start.
    pub(crate) fn load(settings: &Settings) -> Result<CredentialStore> {
        let oauth = settings.oauth.as_ref();
        let oauth = oauth.filter(|_| settings.transport == Transport::Http);
        let oauth = oauth.map(|oauth| ResourceServer::open(oauth, &settings.clients));
        Ok(CredentialStore {
            current: RwLock::new(Credentials::load(settings)?),
            oauth: oauth.transpose()?.map(Arc::new),
            settings: settings.clone(),
        })
    }

    /// What decides on access tokens, if they are taken.
    pub(crate) fn oauth(&self) -> Option<&Arc<ResourceServer>> {
        self.oauth.as_ref()
    }

    /// The credentials in force now.
    pub(crate) fn current(&self) -> Credentials {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the files again. A mistake in them leaves the old credentials in force.
    pub(crate) fn reload(&self) {
        let keys = self.oauth.as_ref().map(|oauth| oauth.reload());
        let loaded = keys
            .transpose()
            .and_then(|_| Credentials::load(&self.settings));
        match loaded {
            Ok(current) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
                tracing::info!("tokens and certificates were read again");
            }
            Err(error) => tracing::error!(
                error = format!("{error:#}"),
                "tokens and certificates could not be read again; the old ones stay in force"
            ),
        }
    }
}

impl Credentials {
    fn load(settings: &Settings) -> Result<Credentials> {
        let tokens_of = |key, path: &Option<PathBuf>| {
            let path = path.as_deref();
            path.map(|path| tokens(key, path)).transpose()
        };
        let tls = settings.tls.as_ref().map(tls::acceptor);
        let tokens = tokens_of(BEARER_TOKENS, &settings.bearer_tokens_file)?;
        let tokens = with_clients(tokens, &settings.clients)?;
        Ok(Credentials {
            tokens: tokens.map(Arc::new),
            tls: tls.transpose()?,
            admin_tokens: tokens_of(ADMIN_TOKENS, &settings.admin_token_file)?.map(Arc::new),
        })
    }
}

/// Adds the tokens of clients. Once there are clients, every request needs a token.
fn with_clients(tokens: Option<Tokens>, clients: &[ClientSettings]) -> Result<Option<Tokens>> {
    if clients.is_empty() {
        return Ok(tokens);
    }
    let all = tokens.unwrap_or_default().with_clients(clients);
    let all = all.map_err(|fault| anyhow!(fault));
    all.context(BEARER_TOKENS).map(Some)
}

fn tokens(key: &'static str, path: &Path) -> Result<Tokens> {
    let text = text(key, path)?;
    let parsed = Tokens::parse(&text).map_err(|fault| anyhow!("{path:?}: {fault}"));
    parsed.context(key)
}

/// Reads the file that a setting names.
pub(super) fn text(key: &str, path: &Path) -> Result<String> {
    let read =
        operator_files::read(path).map_err(|error| anyhow!("{key}: {path:?}: {}", reason(&error)));
    Ok(read?.0)
}
