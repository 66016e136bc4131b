//! The credentials of HTTP: tokens that let clients in and the certificate, read at the start and again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, anyhow};
use mcp::Owner;
use tokio_rustls::TlsAcceptor;

use super::oauth::ResourceServer;
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
    /// Every MCP request needs one of these; without them, no token is needed.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// The acceptor that makes connections HTTPS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// These let their holders read the metrics and nothing else.
    pub(crate) metrics_tokens: Option<Arc<Tokens>>,
    /// Every request to the interface of the operator's page needs one of these.
    pub(crate) admin_tokens: Option<Arc<Tokens>>,
}

/// The credentials in force.
pub(crate) struct CredentialStore {
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

    /// Reads the files that the settings name now; nothing is in force yet.
    pub(crate) fn read(&self, settings: &Settings) -> Result<Credentials> {
        if let Some(oauth) = &self.oauth {
            oauth.reload()?;
        }
        Credentials::load(settings)
    }

    /// Puts credentials in force, and whom access tokens stand for. Returns the tokens that let nobody in any more.
    pub(crate) fn replace(&self, next: Credentials, settings: &Settings) -> RevokedTokens {
        if let (Some(oauth), Some(own)) = (&self.oauth, &settings.oauth) {
            oauth.set_clients(own, &settings.clients);
        }
        let revoked = RevokedTokens::between(&self.current(), &next);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        revoked
    }
}

/// The tokens that a reload took away.
#[derive(Debug, Default)]
pub(crate) struct RevokedTokens {
    tokens: Vec<TokenHolder>,
    /// Callers without a token were let in before, and are not any more.
    pub(crate) without_token: bool,
}

impl RevokedTokens {
    fn between(before: &Credentials, now: &Credentials) -> RevokedTokens {
        let holders = |credentials: &Credentials| {
            let tokens = credentials.tokens.as_ref();
            tokens.map(|tokens| tokens.holders()).unwrap_or_default()
        };
        let kept = holders(now);
        let gone = holders(before).into_iter();
        RevokedTokens {
            tokens: gone.filter(|holder| !kept.contains(holder)).collect(),
            without_token: before.tokens.is_none() && now.tokens.is_some(),
        }
    }

    /// Whether the owner of a session has lost its token.
    pub(crate) fn owned(&self, owner: Owner) -> bool {
        match owner {
            None => self.without_token,
            Some(owner) => self.tokens.iter().any(|holder| holder.digest == owner),
        }
    }

    /// Whether a named client, or one that is not named, lost a token.
    pub(crate) fn has_of(&self, client: Option<&str>) -> bool {
        self.tokens.iter().any(|holder| match client {
            Some(client) => holder.is_named && *holder.client == *client,
            None => !holder.is_named,
        })
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
