//! Checks an access token: its signature, its issuer, its audience and its times.
//!
//! Only the claims of a token are kept, and no message repeats any of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// The longest token, in bytes; real ones have one or two thousand.
const MAX_LENGTH: usize = 16 * 1024;
/// How far the clocks of issuer and server may differ, in seconds.
const CLOCKS_DIFFER: u64 = 30;
/// The types that an access token can have (RFC 9068, and what issuers wrote before it).
const TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "jwt"];

/// What a token says about its holder, once it was found to be valid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenClaims {
    /// The subject of the token, or the program if there is no person.
    pub(crate) subject: String,
    /// The scopes that the holder was granted.
    pub(crate) scopes: Vec<String>,
    /// All claims.
    pub(crate) claims: Map<String, Value>,
    /// Identifies the subject of this issuer.
    pub(crate) owner: [u8; 32],
}

impl TokenClaims {
    /// When the token expires; `None` if that is too far away to matter.
    pub(super) fn expires(&self) -> Option<Instant> {
        let at = self.claims.get("exp").and_then(Value::as_f64)?;
        let at = Duration::try_from_secs_f64(at).ok()? + Duration::from_secs(CLOCKS_DIFFER);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Instant::now().checked_add(at.saturating_sub(now))
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// It is not a signed JWT.
    NotAToken,
    /// It is longer than any real token.
    TooLong,
    /// It is signed with an algorithm that is not accepted.
    Algorithm,
    /// It is another kind of token.
    Kind,
    /// It requires a check that is not made here.
    Unchecked,
    /// The issuer has no such key.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// Another issuer made it.
    Issuer,
    /// It is for another audience.
    Audience,
    /// A claim is missing or cannot be read.
    Claims,
}

impl TokenFault {
    /// The fault in a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            TokenFault::NotAToken => "the token is neither configured here nor a JWT",
            TokenFault::TooLong => "the token is longer than 16384 bytes",
            TokenFault::Algorithm => {
                "the token's algorithm is not accepted; RS, PS, ES and EdDSA signatures are"
            }
            TokenFault::Kind => "the token is no access token",
            TokenFault::Unchecked => {
                "the token is bound to a key or needs a check that this server does not make"
            }
            TokenFault::UnknownKey => "the issuer has no key with the token's key id",
            TokenFault::Signature => "the token's signature is wrong",
            TokenFault::Expired => "the token has expired",
            TokenFault::NotYet => "the token is not valid yet",
            TokenFault::Issuer => "the token is of another issuer",
            TokenFault::Audience => "the token is for another audience",
            TokenFault::Claims => "a claim of the token is missing or cannot be read",
        }
    }
}

/// Reads what a token claims about itself, before any of it is trusted.
pub(super) fn header_of(token: &str) -> Result<Header, TokenFault> {
    if token.len() > MAX_LENGTH {
        return Err(TokenFault::TooLong);
    }
    if token.bytes().filter(|byte| *byte == b'.').count() != 2 {
        return Err(TokenFault::NotAToken);
    }
    let header = decode_header(token).map_err(|error| match error.kind() {
        // An algorithm without a name here, such as `none`.
        ErrorKind::Json(fault) if fault.is_data() => TokenFault::Algorithm,
        _ => TokenFault::NotAToken,
    })?;
    if matches!(
        header.alg,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    ) {
        return Err(TokenFault::Algorithm);
    }
    let is_access_token = |kind: &String| TYPES.contains(&kind.to_ascii_lowercase().as_str());
    if !header.typ.as_ref().is_none_or(is_access_token) {
        return Err(TokenFault::Kind);
    }
    if header.crit.is_some() {
        return Err(TokenFault::Unchecked);
    }
    Ok(header)
}

/// Checks a token that is signed with this key. `audiences` are the names that this server goes by.
pub(super) fn judge(
    token: &str,
    header: &Header,
    key: &DecodingKey,
    issuer: &str,
    audiences: &[String],
) -> Result<TokenClaims, TokenFault> {
    let mut validation = Validation::new(header.alg);
    validation.leeway = CLOCKS_DIFFER;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[issuer]);
    // Checked below, ignoring letter case and a trailing slash.
    validation.validate_aud = false;
    let decoded = decode::<Map<String, Value>>(token, key, &validation);
    let claims = decoded.map_err(|error| fault_of(error.kind()))?.claims;
    if text(&claims, "iss") != Some(issuer) {
        return Err(TokenFault::Issuer);
    }
    if !is_for_us(claims.get("aud"), audiences) {
        return Err(TokenFault::Audience);
    }
    // Security: the holder of such a token has to prove possession of a key, which is not checked here.
    if claims.contains_key("cnf") {
        return Err(TokenFault::Unchecked);
    }
    let subject = ["sub", "client_id", "azp"];
    let subject = subject
        .iter()
        .find_map(|name| Some((*name, text(&claims, name)?)));
    let (kind, subject) = subject.ok_or(TokenFault::Claims)?;
    Ok(TokenClaims {
        owner: owner(issuer, kind, subject),
        subject: subject.to_owned(),
        scopes: scopes(&claims),
        claims,
    })
}

fn fault_of(kind: &ErrorKind) -> TokenFault {
    match kind {
        ErrorKind::ExpiredSignature => TokenFault::Expired,
        ErrorKind::ImmatureSignature => TokenFault::NotYet,
        ErrorKind::InvalidIssuer => TokenFault::Issuer,
        ErrorKind::InvalidSignature => TokenFault::Signature,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => TokenFault::Algorithm,
        ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_)
        | ErrorKind::Json(_)
        | ErrorKind::Utf8(_) => TokenFault::Claims,
        _ => TokenFault::NotAToken,
    }
}

/// A claim that is text and not empty.
fn text<'claims>(claims: &'claims Map<String, Value>, name: &str) -> Option<&'claims str> {
    let value = claims.get(name).and_then(Value::as_str);
    value.filter(|value| !value.is_empty())
}

fn is_for_us(audience: Option<&Value>, ours: &[String]) -> bool {
    let is_ours = |value: &Value| {
        let named = value.as_str().map(same_address);
        named.is_some_and(|named| ours.iter().any(|own| same_address(own) == named))
    };
    match audience {
        Some(Value::Array(all)) => all.iter().any(is_ours),
        Some(one) => is_ours(one),
        None => false,
    }
}

/// An address in the form in which equal ones are the same text: scheme and host in lower case, no last slash.
fn same_address(text: &str) -> String {
    let bare = text.strip_suffix('/').unwrap_or(text);
    let Some((scheme, rest)) = bare.split_once("://") else {
        return bare.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!(
        "{}://{}{path}",
        scheme.to_ascii_lowercase(),
        host.to_ascii_lowercase()
    )
}

/// The granted scopes: `scope` (RFC 9068), or `scp` as some issuers write it; a text with spaces, or a list.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    let values = ["scope", "scp"].iter().filter_map(|name| claims.get(*name));
    let values = values.flat_map(|value| match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        Value::String(all) => all.split(' ').collect(),
        _ => Vec::new(),
    });
    values
        .filter(|one| !one.is_empty())
        .map(str::to_owned)
        .collect()
}

fn owner(issuer: &str, kind: &str, subject: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in ["oauth", issuer, kind, subject] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
