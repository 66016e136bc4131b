//! The address of a running server, for `health` and `call`.

use anyhow::{Context, Result, bail};
use hyper::Uri;

use crate::http::listener;

/// The address of a server and the kind of connection to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerUrl {
    /// Its host, without the brackets of an IPv6 address.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
    /// The path of the request.
    pub(super) path: String,
    /// Whether the connection is encrypted.
    pub(super) encryption: Encryption,
}

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Plain HTTP.
    None,
    /// HTTPS.
    Tls,
}

impl ServerUrl {
    /// Reads a URL; `path` is the one of a URL that has none.
    pub(super) fn parse(url: &str, path: &str) -> Result<ServerUrl> {
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is no URL"))?;
        let encryption = match uri.scheme_str() {
            Some("http") => Encryption::None,
            Some("https") => Encryption::Tls,
            _ => bail!("{url:?}: expected http://HOST:PORT or https://HOST:PORT"),
        };
        let default = match encryption {
            Encryption::None => 80,
            Encryption::Tls => 443,
        };
        let given = uri.path();
        Ok(ServerUrl {
            host: bare(uri.host().unwrap_or_default()).to_owned(),
            port: uri.port_u16().unwrap_or(default),
            path: if given == "/" { path } else { given }.to_owned(),
            encryption,
        })
    }

    /// The host and port as a URL writes them.
    pub(super) fn authority(&self) -> String {
        listener::address(&self.host, self.port)
    }

    /// The URL, for messages.
    pub(super) fn shown(&self) -> String {
        let scheme = match self.encryption {
            Encryption::None => "http",
            Encryption::Tls => "https",
        };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }
}

/// An address without the brackets a URL puts around it.
fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_to_ask() {
        let shown = |url| ServerUrl::parse(url, "/health").unwrap().shown();
        assert_eq!(shown("http://a:1"), "http://a:1/health");
        assert_eq!(shown("https://[::1]"), "https://[::1]:443/health");
        assert_eq!(shown("http://a/b/health"), "http://a:80/b/health");
        for url in ["a:1", "ftp://a", "/health", "http://a b"] {
            assert!(ServerUrl::parse(url, "/health").is_err(), "{url}");
        }
    }
}
