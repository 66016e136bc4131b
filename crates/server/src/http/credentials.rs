//! The credentials of HTTP: tokens that let clients in and the certificate, read at the start and again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, anyhow};
use mcp::Owner;
use tokio_rustls::TlsAcceptor;

use super::oauth::{KeySet, Remapped, ResourceServer};
use super::tls;
use super::tokens::{TokenHolder, Tokens};
use crate::operator_files::{self, reason};
use crate::settings::{ClientSettings, Settings, Transport};

/// The settings that name files of tokens.
const BEARER_TOKENS: &str = "server.bearer_tokens_file";
const METRICS_TOKENS: &str = "server.metrics_tokens_file";
const ADMIN_TOKENS: &str = "admin.token_file";

/// The content of the files at one moment.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// Every MCP request needs one of these tokens; if there are none, no token is needed.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// The acceptor that makes connections HTTPS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// These tokens let their holders read the metrics and nothing else.
    pub(crate) metrics_tokens: Option<Arc<Tokens>>,
    /// Every request to the interface of the operator's page needs one of these tokens.
    pub(crate) admin_tokens: Option<Arc<Tokens>>,
}

/// The credentials in force.
pub(crate) struct CredentialStore {
    current: RwLock<Credentials>,
    /// Checks access tokens, if they are accepted.
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
        })
    }

    /// Checks access tokens, if they are accepted.
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

    /// Reads the files that the settings name now; nothing is in force yet.
    pub(crate) fn read(&self, settings: &Settings) -> Result<NextCredentials> {
        let keys = self.oauth.as_ref().map(|oauth| oauth.read_keys());
        Ok(NextCredentials {
            keys: keys.transpose()?.flatten(),
            credentials: Credentials::load(settings)?,
        })
    }

    /// Puts credentials in force, and the mapping of access tokens to clients. Returns the callers whose access
    /// changed.
    pub(crate) fn replace(&self, next: NextCredentials, settings: &Settings) -> RevokedTokens {
        let before = self.current();
        let mut revoked = RevokedTokens::between(&before, &next.credentials);
        if let (Some(oauth), Some(own)) = (&self.oauth, &settings.oauth) {
            revoked.remapped = oauth.set_clients(own, &settings.clients);
            if let Some(keys) = next.keys {
                oauth.put_in_force(keys);
            }
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next.credentials;
        revoked
    }
}

/// Credentials that were read and are not in force yet.
pub(crate) struct NextCredentials {
    credentials: Credentials,
    keys: Option<KeySet>,
}

/// The tokens that a reload took away.
#[derive(Debug, Default)]
pub(crate) struct RevokedTokens {
    tokens: Vec<TokenHolder>,
    /// All of the operator's own tokens that were there before. Other owners have access tokens.
    before: Vec<TokenHolder>,
    /// The clients whose access tokens may stand for another client now.
    remapped: Remapped,
    /// Whether callers without a token were let in before and no longer are.
    pub(crate) without_token: bool,
}

impl RevokedTokens {
    fn between(before: &Credentials, now: &Credentials) -> RevokedTokens {
        let holders = |credentials: &Credentials| {
            let tokens = credentials.tokens.as_ref();
            tokens.map(|tokens| tokens.holders()).unwrap_or_default()
        };
        let (kept, own) = (holders(now), holders(before));
        let gone = own.iter().filter(|holder| !kept.contains(holder));
        RevokedTokens {
            tokens: gone.cloned().collect(),
            before: own,
            remapped: Remapped::default(),
            without_token: before.tokens.is_none() && now.tokens.is_some(),
        }
    }

    /// Whether the owner of a session with this client's rights may have lost its token, or be another client now.
    pub(crate) fn owned(&self, owner: Owner, client: Option<&str>) -> bool {
        let is_in =
            |tokens: &[TokenHolder], owner| tokens.iter().any(|holder| holder.digest == owner);
        match owner {
            None => self.without_token,
            Some(owner) if is_in(&self.before, owner) => is_in(&self.tokens, owner),
            Some(_) => self.remapped.has(client),
        }
    }

    /// Whether a named client, or callers without a name, lost a token.
    pub(crate) fn has_of(&self, client: Option<&str>) -> bool {
        let has_lost = self.tokens.iter().any(|holder| match client {
            Some(client) => holder.is_named && *holder.client == *client,
            None => !holder.is_named,
        });
        has_lost || self.remapped.has(client)
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
            metrics_tokens: tokens_of(METRICS_TOKENS, &settings.metrics_tokens_file)?.map(Arc::new),
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
