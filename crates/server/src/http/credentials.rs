//! The credentials of HTTP: tokens that let clients in and the certificate, read at the start and again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, anyhow};
use tokio_rustls::TlsAcceptor;

use super::tls;
use super::tokens::Tokens;
use crate::operator_files::{self, reason};
use crate::settings::Settings;

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
}

impl CredentialStore {
    /// Reads the files for the first time; a mistake in them is an error of the start.
    pub(crate) fn load(settings: &Settings) -> Result<CredentialStore> {
        Ok(CredentialStore {
            current: RwLock::new(Credentials::load(settings)?),
            settings: settings.clone(),
        })
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
        match Credentials::load(&self.settings) {
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
        Ok(Credentials {
            tokens: tokens_of(BEARER_TOKENS, &settings.bearer_tokens_file)?.map(Arc::new),
            tls: tls.transpose()?,
            admin_tokens: tokens_of(ADMIN_TOKENS, &settings.admin_token_file)?.map(Arc::new),
        })
    }
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
