//! OAuth 2.1, as a resource server only: access tokens of an issuer that the operator trusts let clients in.
//!
//! This server never hands out tokens and never passes one on. It checks each token itself, with the issuer's public
//! keys; no other server is asked about it.

mod fetch;
mod holder;
mod key_set;
mod keys;
mod metadata;
mod ring_provider;
mod token;

use std::sync::Arc;

use anyhow::Result;
use hyper::Method;

use self::fetch::KeyFetcher;
pub(super) use self::holder::{OAuthRefused, Resource};
pub(crate) use self::key_set::KeySet;
use self::keys::{KeySource, KeyStore};
use self::token::{TokenClaims, TokenFault};
use super::answers::HttpReply;
use super::refusal::Refusal;
use crate::in_force::InForce;
use crate::settings::{ClientSettings, KeyLocation, OAuthSelector, OAuthSettings};

/// Checks access tokens and maps them to clients.
pub(crate) struct ResourceServer {
    settings: OAuthSettings,
    clients: InForce<TokenClients>,
    keys: KeyStore,
}

/// The mapping of access tokens to clients.
struct TokenClients {
    /// The selectors of tokens and their clients; the first that matches decides.
    selectors: Vec<(OAuthSelector, Arc<str>)>,
    /// Whether the settings name clients; otherwise all have the same rights.
    are_named: bool,
}

/// The clients whose access tokens may stand for another client now.
#[derive(Debug, Default)]
pub(crate) struct Remapped {
    clients: Vec<Arc<str>>,
    /// Callers that are no named client.
    unnamed: bool,
}

impl Remapped {
    /// Tells whether this client, or callers without a name, are affected.
    pub(crate) fn has(&self, client: Option<&str>) -> bool {
        match client {
            Some(client) => self.clients.iter().any(|own| **own == *client),
            None => self.unnamed,
        }
    }
}

/// Why a request with an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OAuthRefusal {
    /// The token is invalid.
    Bad(TokenFault),
    /// No key of the issuer could be fetched so far, so no token can be checked.
    NoKeys,
}

impl ResourceServer {
    /// Reads what must be read before the process confines itself: a file of keys, or the system's CA certificates.
    pub(crate) fn open(
        settings: &OAuthSettings,
        clients: &[ClientSettings],
    ) -> Result<ResourceServer> {
        ring_provider::install();
        let source = match &settings.keys {
            KeyLocation::File(path) => KeySource::File(path.clone()),
            KeyLocation::Issuer(address) => KeySource::Issuer(Box::new(KeyFetcher::new(address)?)),
        };
        Ok(ResourceServer {
            settings: settings.clone(),
            clients: InForce::new(TokenClients::new(settings, clients)),
            keys: KeyStore::open(source)?,
        })
    }

    /// Fetches the keys again from time to time, as long as the process runs.
    pub(crate) async fn keep_keys_fresh(self: Arc<ResourceServer>) {
        self.keys.keep_fresh().await;
    }

    /// Reads a file of keys again, if the keys are in one; they are not in force yet.
    pub(crate) fn read_keys(&self) -> Result<Option<KeySet>> {
        self.keys.read_again()
    }

    /// Puts keys in force.
    pub(crate) fn put_in_force(&self, keys: KeySet) {
        self.keys.replace(keys);
    }

    /// Puts another mapping of tokens to clients in force. Returns the clients whose tokens it may affect.
    pub(crate) fn set_clients(
        &self,
        settings: &OAuthSettings,
        clients: &[ClientSettings],
    ) -> Remapped {
        let next = TokenClients::new(settings, clients);
        let remapped = self.clients.now().remapped(&next);
        self.clients.replace(next);
        remapped
    }

    /// Checks a token of a request to an endpoint, which may have several paths.
    pub(crate) async fn judge(
        &self,
        token: &str,
        paths: &[String],
    ) -> Result<TokenClaims, OAuthRefusal> {
        let header = token::header_of(token).map_err(OAuthRefusal::Bad)?;
        let keys = self.keys.keys_for(&header).await;
        if keys.is_empty() {
            return Err(OAuthRefusal::NoKeys);
        }
        let key = keys.find(&header);
        let key = key.ok_or(OAuthRefusal::Bad(TokenFault::UnknownKey))?;
        let audiences = self.audiences(paths);
        token::judge(token, &header, key, &self.settings.issuer, &audiences)
            .map_err(OAuthRefusal::Bad)
    }

    /// The names that this server goes by at an endpoint: its address, the endpoint's, and those that the operator gave it.
    /// Security: a token for one endpoint does not let its holder in at another.
    fn audiences(&self, paths: &[String]) -> Vec<String> {
        let whole = std::iter::once(String::new());
        let addresses = whole.chain(paths.iter().cloned());
        let addresses = addresses.map(|path| self.settings.public_url.at(&path));
        addresses
            .chain(self.settings.audience.iter().cloned())
            .collect()
    }

    /// The path of the resource whose metadata a request asks for: empty for the server as a whole.
    pub(crate) fn metadata_path<'path>(&self, path: &'path str) -> Option<&'path str> {
        metadata::resource_of(path, self.settings.public_url.path())
    }

    /// The metadata of the resource at a path.
    pub(crate) fn metadata(&self, method: &Method, path: &str) -> Result<HttpReply, Refusal> {
        metadata::answer(method, &self.settings, &self.scope_names(), path)
    }
}

impl TokenClients {
    fn new(settings: &OAuthSettings, clients: &[ClientSettings]) -> TokenClients {
        TokenClients {
            selectors: selectors(settings, clients),
            are_named: !clients.is_empty(),
        }
    }

    /// The clients that changed selectors may affect. The first that matches decides, so those before the first
    /// difference stay.
    fn remapped(&self, next: &TokenClients) -> Remapped {
        let pairs = self.selectors.iter().zip(&next.selectors);
        let same = match self.are_named == next.are_named {
            true => pairs.take_while(|(own, next)| own == next).count(),
            false => 0,
        };
        let other = self.selectors.iter().skip(same);
        let clients: Vec<Arc<str>> = other.map(|(_, client)| Arc::clone(client)).collect();
        match self.are_named {
            true => Remapped {
                clients,
                unnamed: false,
            },
            false => Remapped {
                unnamed: !clients.is_empty(),
                clients: Vec::new(),
            },
        }
    }
}

/// The selectors of the settings in order: the scopes of the issuer, then each client's own.
fn selectors(
    settings: &OAuthSettings,
    clients: &[ClientSettings],
) -> Vec<(OAuthSelector, Arc<str>)> {
    let scopes = settings.scopes.iter();
    let scopes = scopes.map(|(scope, client)| {
        let selector = OAuthSelector::Scope(scope.clone());
        (selector, client.as_str().into())
    });
    let own = clients.iter().filter_map(|client| {
        let selector = client.oauth.clone()?;
        Some((selector, client.name.as_str().into()))
    });
    scopes.chain(own).collect()
}

#[cfg(test)]
mod tests;
