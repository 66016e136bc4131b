//! `auth.oauth`: the issuer whose access tokens let clients in, and the names of this server in them.

use std::net::IpAddr;
use std::path::PathBuf;

use hyper::Uri;

use super::SettingsError;
use super::config_file::Field;
use super::table;
use super::value::{ReadContext, Reading};

/// The operator's settings for access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OAuthSettings {
    /// The issuer, letter for letter as its tokens name it.
    pub(crate) issuer: String,
    /// Where clients see this server, without a last slash.
    pub(crate) public_url: WebAddress,
    /// Further names that tokens for this server may have as their audience.
    pub(crate) audience: Vec<String>,
    /// Where the issuer's keys are.
    pub(crate) keys: KeyLocation,
    /// Scopes and the names of the clients that they make of a token's holder.
    pub(crate) scopes: Vec<(String, String)>,
}

impl OAuthSettings {
    /// Tells whether only the clients that scopes stand for may differ.
    pub(crate) fn has_same_issuer(&self, other: &OAuthSettings) -> bool {
        let other = OAuthSettings {
            scopes: self.scopes.clone(),
            ..other.clone()
        };
        *self == other
    }
}

/// Where the issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyLocation {
    /// At an address of the issuer.
    Issuer(WebAddress),
    /// In a file.
    File(PathBuf),
}

/// An `http` or `https` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebAddress {
    scheme: &'static str,
    authority: String,
    host: String,
    port: u16,
    path: String,
}

/// The expected form of an address.
const ADDRESS: &str =
    "an address such as https://login.example.org/keys; plain http only for this machine";

impl WebAddress {
    /// Reads an address. Plain HTTP is for this machine only: a reply from elsewhere could be forged.
    fn parse(text: &str) -> Option<WebAddress> {
        if !may_be_address(text) {
            return None;
        }
        let uri: Uri = text.parse().ok()?;
        let (scheme, default_port) = known_scheme(uri.scheme_str()?)?;
        let authority = uri.authority()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let address = WebAddress {
            scheme,
            authority: authority.as_str().to_ascii_lowercase(),
            host: without_brackets(authority.host()).to_ascii_lowercase(),
            port: authority.port_u16().unwrap_or(default_port),
            path: path.to_owned(),
        };
        let names_user = address.authority.contains('@');
        (!names_user && (scheme == "https" || address.is_here())).then_some(address)
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// The host's name or address.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The host and its port, as they were written.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The target of a request for it.
    pub(crate) fn path_and_query(&self) -> &str {
        &self.path
    }

    /// The path, without a last slash.
    pub(crate) fn path(&self) -> &str {
        self.path.trim_end_matches('/')
    }

    /// The address of a path below this one.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}://{}{}{path}", self.scheme, self.authority, self.path())
    }

    /// The well-known address that belongs to a path below this one (RFC 8615).
    pub(crate) fn well_known(&self, suffix: &str, path: &str) -> String {
        let own = self.path();
        format!("{}://{}{suffix}{own}{path}", self.scheme, self.authority)
    }

    fn is_here(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

fn may_be_address(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['#', '"', '\\'])
}

/// A scheme, with the port that it has by default.
fn known_scheme(name: &str) -> Option<(&'static str, u16)> {
    match name {
        "https" => Some(("https", 443)),
        "http" => Some(("http", 80)),
        _ => None,
    }
}

/// The host of an IPv6 address without its brackets.
fn without_brackets(host: &str) -> &str {
    let inside = host.strip_prefix('[');
    inside
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

impl OAuthSettings {
    /// The file of keys, if the issuer is not asked.
    pub(crate) fn key_file(&self) -> Option<&PathBuf> {
        match &self.keys {
            KeyLocation::File(path) => Some(path),
            KeyLocation::Issuer(_) => None,
        }
    }

    /// The scopes that are mapped to clients.
    pub(crate) fn scope_names(&self) -> Vec<String> {
        self.scopes.iter().map(|(scope, _)| scope.clone()).collect()
    }
}

/// Reads the map.
pub(super) fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<OAuthSettings> {
    let mut section = field.section()?;
    let issuer = section.require(&table::OAUTH_ISSUER, issuer)?;
    let public_url = section.require(&table::OAUTH_PUBLIC_URL, public_url)?;
    let audience = section.find_or(&table::OAUTH_AUDIENCE, Vec::new(), texts)?;
    let uri = section.find(&table::OAUTH_JWKS_URI, address)?;
    let file = section.find(&table::OAUTH_JWKS_FILE, |field| context.path(field))?;
    let scopes = section.find_or(&table::OAUTH_SCOPES, Vec::new(), scopes)?;
    section.finish()?;
    let keys = key_location(uri, file).ok_or_else(|| one_of_two(field))?;
    Ok(OAuthSettings {
        issuer,
        public_url,
        audience,
        keys,
        scopes,
    })
}

/// An issuer is compared letter by letter, so it stays as it was written.
fn issuer(field: &Field<'_>) -> Reading<String> {
    address(field)?;
    field.text().map(str::to_owned)
}

fn texts(field: &Field<'_>) -> Reading<Vec<String>> {
    field.list_of(|item| item.text().map(str::to_owned))
}

fn key_location(uri: Option<WebAddress>, file: Option<PathBuf>) -> Option<KeyLocation> {
    match (uri, file) {
        (Some(uri), None) => Some(KeyLocation::Issuer(uri)),
        (None, Some(file)) => Some(KeyLocation::File(file)),
        _ => None,
    }
}

fn one_of_two(field: &Field<'_>) -> SettingsError {
    SettingsError::Missing {
        path: field.path().key("jwks_uri"),
        expected:
            "either jwks_uri, the address of the issuer's keys, or jwks_file, a file with them"
                .to_owned(),
    }
}

fn address(field: &Field<'_>) -> Reading<WebAddress> {
    WebAddress::parse(field.text()?).ok_or_else(|| field.unexpected(ADDRESS))
}

fn public_url(field: &Field<'_>) -> Reading<WebAddress> {
    let address = address(field)?;
    if address.path.contains('?') {
        return Err(field.unexpected("an address without a question mark"));
    }
    Ok(address)
}

/// Reads scopes, each with the name of a client.
fn scopes(field: &Field<'_>) -> Reading<Vec<(String, String)>> {
    let scopes = field.entries()?.into_iter().map(|(scope, client)| {
        if !is_scope(scope) {
            return Err(client.unexpected(
                "a scope (printable ASCII without spaces, quotes and backslashes) as its key",
            ));
        }
        Ok((scope.to_owned(), client.text()?.to_owned()))
    });
    scopes.collect()
}

/// Whether a text can be a scope (RFC 6749, appendix A.4).
pub(crate) fn is_scope(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encrypted_or_of_this_machine() {
        for good in [
            "https://a.example/keys?x=1",
            "http://127.0.0.1:9/x",
            "http://[::1]:9",
            "http://localhost",
        ] {
            assert!(WebAddress::parse(good).is_some(), "{good}");
        }
        for bad in [
            "http://a.example/keys",
            "ftp://a.example",
            "a.example",
            "/keys",
            "https://user@a.example/",
            "https://a.example/#x",
            "https://a.example/\"",
            "",
        ] {
            assert!(WebAddress::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn addresses_below_it_have_no_double_slash() {
        let address = WebAddress::parse("https://A.example/files/").unwrap();
        assert_eq!(address.at("/mcp"), "https://a.example/files/mcp");
        assert_eq!(address.at(""), "https://a.example/files");
        assert_eq!(
            address.well_known("/.well-known/x", "/mcp"),
            "https://a.example/.well-known/x/files/mcp"
        );
        let bare = WebAddress::parse("https://a.example:8443").unwrap();
        assert_eq!(bare.at("/mcp").as_str(), "https://a.example:8443/mcp");
        assert_eq!(bare.port(), 8443);
    }
}
