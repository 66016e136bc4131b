//! Where a request comes from, as its transport knows it: whose turn and whose allowance it takes, and what the log says.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Where a request comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The one client on standard input and output.
    Stdio,
    /// A client on HTTP.
    Http(HttpClient),
}

/// A client on HTTP.
#[derive(Debug, Clone)]
pub struct HttpClient {
    /// The address and port.
    pub address: Arc<str>,
    /// The operator's name for its token.
    pub token: Option<Arc<str>>,
    /// The session it is in.
    pub session: Option<Arc<str>>,
}

impl Origin {
    /// The account that shares turns: the operator's name for the client, else the host it calls from.
    pub(crate) fn account(&self) -> String {
        match self {
            Origin::Stdio => String::new(),
            Origin::Http(client) => match client.known_as() {
                Some(name) => name.to_string(),
                None => host_of(&client.address),
            },
        }
    }

    /// The account whose rate limit applies. Sessions do not count: anyone can begin many.
    pub(crate) fn allowance(&self) -> String {
        match self {
            Origin::Stdio => String::new(),
            Origin::Http(client) => match &client.token {
                Some(name) => name.to_string(),
                None => host_of(&client.address),
            },
        }
    }

    /// The client as the log shows it: the name it gives itself, its address, and the operator's name for it.
    pub(crate) fn shown(&self, named: Option<String>) -> String {
        let Origin::Http(client) = self else {
            return named.unwrap_or_else(|| "unknown".to_owned());
        };
        let mut shown = named.map_or_else(String::new, |named| named + " ");
        shown += &client.address;
        if let Some(name) = client.known_as() {
            shown += " (";
            shown += name;
            shown.push(')');
        }
        shown
    }
}

impl HttpClient {
    fn known_as(&self) -> Option<&Arc<str>> {
        self.token.as_ref().or(self.session.as_ref())
    }
}

/// The host of an address. A host on IPv6 has a whole network of addresses to call from.
fn host_of(address: &str) -> String {
    match address.parse::<SocketAddr>().map(|address| address.ip()) {
        Ok(IpAddr::V4(host)) => host.to_string(),
        Ok(IpAddr::V6(host)) => match (host.to_ipv4_mapped(), host.segments()) {
            (Some(host), _) => host.to_string(),
            (None, [a, b, c, d, ..]) => format!("{a:x}:{b:x}:{c:x}:{d:x}::/64"),
        },
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn a_client_is_a_host_not_a_connection() {
        assert_eq!(host_of("127.0.0.1:4000"), host_of("127.0.0.1:4001"));
        assert_ne!(host_of("127.0.0.1:4000"), host_of("127.0.0.2:4000"));
        assert_eq!(host_of("[2001:db8::1]:1"), host_of("[2001:db8::2]:1"));
        assert_ne!(host_of("[2001:db8::1]:1"), host_of("[2001:db8:0:1::1]:1"));
        assert_eq!(host_of("[::ffff:10.0.0.1]:1"), host_of("10.0.0.1:1"));
    }
}
