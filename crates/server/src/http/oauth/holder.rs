//! Finds the sender of a request: the access token it carries, the client that the token stands for, and the answer if
//! it is refused.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode};
use serde_json::Value;

use super::metadata::{self, Challenge};
use super::token::TokenClaims;
use super::{OAuthRefusal, ResourceServer, TokenClients};
use crate::http::endpoint::Holder;
use crate::http::refusal::Refusal;
use crate::http::tokens::{TokenRefusal, bearer_token};
use crate::settings::OAuthSelector;

/// The longest subject that is shown as it is.
const SHOWN: usize = 64;

/// The resource that a request is about.
pub(in crate::http) struct Resource {
    /// The path of the endpoint as the client wrote it; `None` for the server as a whole.
    pub(in crate::http) path: String,
    /// All paths of the endpoint.
    pub(in crate::http) paths: Vec<String>,
}

/// A refused request.
pub(in crate::http) struct OAuthRefused {
    pub(in crate::http) refusal: Refusal,
    /// The value of `WWW-Authenticate`, which says where to get a token.
    pub(in crate::http) challenge: Option<HeaderValue>,
}

impl ResourceServer {
    /// The sender of a request.
    pub(in crate::http) async fn holder(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
    ) -> Result<Holder, OAuthRefused> {
        let token = match bearer_token(headers) {
            Ok(token) => token,
            Err(TokenRefusal::Missing) => return Err(self.no_token(resource)),
            Err(TokenRefusal::Wrong) => {
                let words = "the Authorization header is not one Bearer token";
                return Err(self.bad_token(resource, words));
            }
        };
        let judged = self.judge(token, &resource.paths).await;
        let claims = judged.map_err(|refusal| match refusal {
            OAuthRefusal::Bad(fault) => self.bad_token(resource, fault.words()),
            OAuthRefusal::NoKeys => no_keys(),
        })?;
        let clients = self.clients.now();
        let client = clients.client_of(&claims);
        let client = client.ok_or_else(|| self.no_client(resource))?;
        Ok(Holder {
            name: format!("{client}:{}", shown_subject(&claims)).into(),
            client: clients.are_named.then(|| Arc::clone(client)),
            owner: claims.owner,
            subject: Some(hex(&claims.owner).into()),
            expires: claims.expires(),
        })
    }

    /// The scopes that map a token to a client.
    pub(super) fn scope_names(&self) -> Vec<String> {
        let clients = self.clients.now();
        let names = clients
            .selectors
            .iter()
            .filter_map(|(selector, _)| match selector {
                OAuthSelector::Scope(scope) => Some(scope.clone()),
                OAuthSelector::Subject(_) | OAuthSelector::Claim(..) => None,
            });
        names.collect()
    }

    fn no_token(&self, resource: &Resource) -> OAuthRefused {
        let issuer = &self.settings.issuer;
        self.unauthorized(
            resource,
            format!("an access token of {issuer} is needed"),
            Challenge::Missing,
        )
    }

    fn bad_token(&self, resource: &Resource, words: &'static str) -> OAuthRefused {
        self.unauthorized(resource, words.to_owned(), Challenge::Invalid(words))
    }

    fn unauthorized(&self, resource: &Resource, what: String, why: Challenge<'_>) -> OAuthRefused {
        OAuthRefused {
            refusal: Refusal::new(
                StatusCode::UNAUTHORIZED,
                format!(
                    "Unauthorized: {what}; the header WWW-Authenticate of this answer tells where to get one"
                ),
            ),
            challenge: Some(self.challenge(resource, why)),
        }
    }

    /// A valid token that maps to no client. The operator decides which scope is needed, so the answer names all of
    /// them.
    fn no_client(&self, resource: &Resource) -> OAuthRefused {
        let scopes = match self.scope_names().join(", ") {
            none if none.is_empty() => none,
            names => format!("ask for a token with one of the scopes {names}, or "),
        };
        OAuthRefused {
            refusal: Refusal::new(
                StatusCode::FORBIDDEN,
                format!(
                    "Forbidden: the token is valid, but belongs to no client of this server; {scopes}let the operator add its \
                     subject to clients"
                ),
            ),
            challenge: Some(self.challenge(resource, Challenge::Insufficient)),
        }
    }

    fn challenge(&self, resource: &Resource, why: Challenge<'_>) -> HeaderValue {
        let scopes = self.scope_names();
        metadata::challenge(&self.settings, &scopes, &resource.path, why)
    }
}

impl TokenClients {
    /// The client that a token stands for.
    fn client_of(&self, claims: &TokenClaims) -> Option<&Arc<str>> {
        let mut selectors = self.selectors.iter();
        let found = selectors.find(|(selector, _)| matches(selector, claims));
        found.map(|(_, client)| client)
    }
}

fn matches(selector: &OAuthSelector, claims: &TokenClaims) -> bool {
    match selector {
        OAuthSelector::Scope(scope) => claims.scopes.contains(scope),
        // Security: a program with the same name as a person is a different subject.
        OAuthSelector::Subject(subject) => {
            claims.claims.get("sub").and_then(Value::as_str) == Some(subject)
        }
        OAuthSelector::Claim(name, value) => match claims.claims.get(name) {
            Some(Value::String(own)) => own == value,
            Some(Value::Array(own)) => own.iter().any(|one| one == value),
            _ => false,
        },
    }
}

/// Not 401: the token may be valid, and the client would discard it.
fn no_keys() -> OAuthRefused {
    OAuthRefused {
        refusal: Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable: the issuer's keys could not be fetched so far, so no token can be checked; try again \
                      in a minute"
                .to_owned()),
        challenge: None,
    }
}

/// The subject as logs show it. One that could be mistaken for something else is shown as a hash.
fn shown_subject(claims: &TokenClaims) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"():\"\\".contains(&byte);
    let subject = &claims.subject;
    if subject.len() <= SHOWN && subject.bytes().all(is_plain) {
        return subject.clone();
    }
    let start = claims.owner.get(..8).unwrap_or_default();
    hex(start)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
