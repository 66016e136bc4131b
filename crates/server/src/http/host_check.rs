//! Checks Host and Origin, before a body is read.
//!
//! A web page can make a browser send requests to servers on the user's machine, even under a host name of the page's
//! own (DNS rebinding). So the Host must be one of ours, and an Origin must be listed.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode, Uri};

use super::refusal::Refusal;

/// The names this server answers to and the web origins it trusts.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostCheck {
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
}

/// A host name, and a port if only that port is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    name: String,
    port: Option<u16>,
}

impl HostCheck {
    /// Allows loopback names, `host` itself and the listed names and origins.
    pub(crate) fn new(
        host: &str,
        allowed_hosts: &[String],
        allowed_origins: &[String],
    ) -> HostCheck {
        let own = std::iter::once(host);
        let hosts = own
            .chain(allowed_hosts.iter().map(String::as_str))
            .filter_map(allowed_host);
        let origins = allowed_origins.iter().map(|origin| normal_origin(origin));
        HostCheck {
            hosts: hosts.collect(),
            origins: origins.collect(),
        }
    }

    /// Checks the address and the headers of a request.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check_address(uri)?;
        self.check_host(headers)?;
        self.check_origin(headers)
    }

    /// Checks a request on a connection. The Host that was accepted on it last is not read again.
    pub(crate) fn check_next(
        self: &Arc<HostCheck>,
        uri: &Uri,
        headers: &HeaderMap,
        last: &AcceptedHost,
    ) -> Result<(), Refusal> {
        self.check_address(uri)?;
        if !last.is_again(self, headers) {
            self.check_host(headers)?;
            last.note(self, headers);
        }
        self.check_origin(headers)
    }

    fn check_address(&self, uri: &Uri) -> Result<(), Refusal> {
        uri.authority()
            .map_or(Ok(()), |authority| self.check_name(authority))
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(value) = only_host(headers) else {
            return Err(Refusal::bad_request("exactly one Host header is needed"));
        };
        let authority = value
            .to_str()
            .ok()
            .and_then(|text| Authority::try_from(text).ok());
        let Some(authority) = authority.filter(is_host_and_port) else {
            return Err(Refusal::bad_request("the Host header is not valid"));
        };
        self.check_name(&authority)
    }

    fn check_name(&self, authority: &Authority) -> Result<(), Refusal> {
        if self.knows(authority) {
            return Ok(());
        }
        Err(forbidden(&format!(
            "the host {} is not allowed; add it to server.allowed_hosts in the configuration",
            authority.host()
        )))
    }

    fn knows(&self, authority: &Authority) -> bool {
        let name = bare(authority.host());
        let loopback = name == "localhost"
            || name
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        let listed = |host: &AllowedHost| {
            host.name == name
                && host
                    .port
                    .is_none_or(|port| authority.port_u16() == Some(port))
        };
        loopback || self.hosts.iter().any(listed)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for value in headers.get_all(ORIGIN) {
            let origin = value.to_str().map(normal_origin).unwrap_or_default();
            if !self.origins.contains(&origin) && !is_own(&origin, headers) {
                return Err(forbidden(&format!(
                    "the origin {origin} is not allowed; add it to server.allowed_origins in the configuration"
                )));
            }
        }
        Ok(())
    }
}

/// The Host that a check accepted last on a connection. Clients send the same one with every request.
#[derive(Debug, Default)]
pub(crate) struct AcceptedHost(Mutex<Option<(Arc<HostCheck>, Vec<u8>)>>);

impl AcceptedHost {
    /// Tells whether the same check accepted the same Host.
    fn is_again(&self, check: &Arc<HostCheck>, headers: &HeaderMap) -> bool {
        // Security: another check has other rules, and with a second Host header a proxy could use either.
        self.lock().as_ref().is_some_and(|(by, host)| {
            Arc::ptr_eq(by, check) && only_host(headers).is_some_and(|own| own == host.as_slice())
        })
    }

    fn note(&self, check: &Arc<HostCheck>, headers: &HeaderMap) {
        // A copy: the header itself would keep all bytes that came with it.
        let host = only_host(headers).map(|host| host.as_bytes().to_vec());
        *self.lock() = host.map(|host| (Arc::clone(check), host));
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Arc<HostCheck>, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Host header, if there is exactly one.
fn only_host(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut values = headers.get_all(HOST).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Tells whether an authority is only a host and an optional port, without a user.
fn is_host_and_port(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.parse::<u16>().is_ok()
}

/// Tells whether the page came from this server: apart from the scheme, its origin is the Host.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    authority.is_some() && authority == host.map(str::to_ascii_lowercase).as_deref()
}

/// Refuses a body with two lengths: a proxy and this server could see different requests (request smuggling).
pub(crate) fn two_lengths() -> Refusal {
    Refusal::bad_request("Content-Length and Transfer-Encoding exclude each other")
}

fn allowed_host(text: &str) -> Option<AllowedHost> {
    let text = text.trim();
    let named = |name: &str, port| AllowedHost {
        name: bare(name),
        port,
    };
    // People write IPv6 addresses without brackets, which is not a valid authority.
    if text.parse::<IpAddr>().is_ok() {
        return Some(named(text, None));
    }
    let authority = Authority::try_from(text).ok()?;
    Some(named(authority.host(), authority.port_u16()))
}

fn bare(host: &str) -> String {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase()
}

/// An origin in lower case, without its scheme's default port.
fn normal_origin(origin: &str) -> String {
    let origin = origin.trim().trim_end_matches('/').to_ascii_lowercase();
    let implied = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => return origin,
    };
    origin.strip_suffix(implied).unwrap_or(&origin).to_owned()
}

fn forbidden(reason: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, format!("Forbidden: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Arc<HostCheck> {
        let hosts = [
            "files.example".to_owned(),
            "other.example:8443".to_owned(),
            "::2".to_owned(),
        ];
        let origins = ["https://app.example:443".to_owned()];
        Arc::new(HostCheck::new("0.0.0.0", &hosts, &origins))
    }

    fn status(headers: &[(&'static str, &'static str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        door()
            .check(&Uri::from_static("/mcp"), &map)
            .map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_our_own_names_are_let_in() {
        let ours = [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8091",
            "127.8.8.8",
            "[::1]:8091",
            "0.0.0.0:8091",
        ];
        let listed = [
            "files.example",
            "files.example:1",
            "other.example:8443",
            "[::2]",
        ];
        for host in ours.into_iter().chain(listed) {
            assert_eq!(status(&[("host", host)]), 200, "{host}");
        }
        let foreign = [
            "evil.com",
            "127.0.0.1.evil.com",
            "localhost.",
            "localhost.evil.com",
            "other.example:1",
            "xfiles.example",
            "10.0.0.1",
        ];
        for host in foreign {
            assert_eq!(status(&[("host", host)]), 403, "{host}");
        }
    }

    #[test]
    fn there_is_exactly_one_valid_host() {
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")]), 400);
        assert_eq!(status(&[("host", "user@localhost")]), 400);
        assert_eq!(status(&[("host", "[::1].evil.example")]), 400);
        assert_eq!(status(&[("host", "localhost:99999")]), 400);
        assert_eq!(status(&[("host", "local host")]), 400);
        assert_eq!(status(&[("host", "")]), 400);
    }

    #[test]
    fn an_accepted_host_stands_for_itself_and_for_one_check() {
        let (listing, other) = (door(), Arc::new(HostCheck::default()));
        let last = AcceptedHost::default();
        let hosts = |hosts: &[&'static str]| -> HeaderMap {
            let hosts = hosts.iter().map(|host| HeaderValue::from_static(host));
            let mut map = HeaderMap::new();
            hosts.for_each(|host| {
                map.append(HOST, host);
            });
            map
        };
        let is_let_in = |check: &Arc<HostCheck>, headers: &HeaderMap| {
            let uri = Uri::from_static("/mcp");
            check.check_next(&uri, headers, &last).is_ok()
        };
        let listed = hosts(&["files.example"]);
        assert!(is_let_in(&listing, &listed) && last.is_again(&listing, &listed));
        assert!(is_let_in(&listing, &listed));
        for headers in [
            hosts(&["evil.example"]),
            hosts(&["files.example", "files.example"]),
            hosts(&["files.example", "evil.example"]),
            hosts(&[]),
        ] {
            assert!(!is_let_in(&listing, &headers), "{headers:?}");
        }
        let mut foreign = listed.clone();
        foreign.insert(ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert!(!is_let_in(&listing, &foreign), "an origin is always read");
        assert!(!is_let_in(&other, &listed), "another check has other names");
    }

    #[test]
    fn the_server_itself_is_an_origin_it_trusts() {
        let at = |host, origin| status(&[("host", host), ("origin", origin)]);
        assert_eq!(at("127.0.0.1:8091", "http://127.0.0.1:8091"), 200);
        assert_eq!(at("LOCALHOST:8091", "http://localhost:8091"), 200);
        for other in [
            "http://127.0.0.1:3000",
            "http://localhost:8091",
            "127.0.0.1:8091",
            "null",
        ] {
            assert_eq!(at("127.0.0.1:8091", other), 403, "{other}");
        }
        assert_eq!(at("evil.example", "http://evil.example"), 403);
    }

    #[test]
    fn only_listed_origins_are_let_in() {
        for origin in ["https://app.example", "https://APP.example:443"] {
            assert_eq!(
                status(&[("host", "localhost"), ("origin", origin)]),
                200,
                "{origin}"
            );
        }
        let foreign = [
            "http://app.example",
            "https://app.example:8",
            "null",
            "",
            "http://localhost:8091",
        ];
        for origin in foreign {
            assert_eq!(
                status(&[("host", "localhost"), ("origin", origin)]),
                403,
                "{origin}"
            );
        }
    }

    #[test]
    fn an_address_in_the_request_line_counts_like_a_host() {
        let at = |uri: &'static str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
            door().check(&Uri::from_static(uri), &headers).is_ok()
        };
        assert!(at("/mcp") && at("http://localhost:1/mcp"));
        assert!(!at("http://evil.example/mcp"));
    }
}
