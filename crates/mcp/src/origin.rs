//! The origin of a request as its transport knows it: the account for turns and allowance, and the name for the log.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use toolset::AccountKind;

/// How long a call waits for room for its reply if other clients are served too. Not long: it occupies one of the few
/// threads for heavy work meanwhile.
const BRIEFLY: Duration = Duration::from_millis(250);
/// How long a call on stdio waits for room: in practice until its own time limit.
const LONG: Duration = Duration::from_secs(600);

/// Where a request comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The one client on standard input and output.
    Stdio,
    /// A client on HTTP.
    Http(HttpClient),
}

/// A client on HTTP. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct HttpClient {
    /// The address and port, or the address alone if a proxy told it.
    address: Arc<str>,
    /// The host of the address, see [`host_of`].
    host: Arc<str>,
    /// The operator's name for its token.
    pub token: Option<Arc<str>>,
    /// Identifies the subject of its access token, if it has one.
    pub subject: Option<Arc<str>>,
    /// The session it is in.
    pub session: Option<Arc<str>>,
}

impl Origin {
    /// Who the client is: the operator's name for it, else its session, else the host it calls from.
    pub(crate) fn account(&self) -> Arc<str> {
        match self {
            Origin::Stdio => Arc::default(),
            Origin::Http(client) => Arc::clone(client.known_as().unwrap_or(&client.host)),
        }
    }

    /// What kind of account that is.
    pub(crate) fn account_kind(&self) -> AccountKind {
        match self {
            Origin::Stdio => AccountKind::Connection,
            Origin::Http(client) if client.token.is_some() => AccountKind::Token,
            Origin::Http(client) if client.session.is_some() => AccountKind::Session,
            Origin::Http(_) => AccountKind::Host,
        }
    }

    /// The account whose turns, rate and bytes it uses. Sessions do not count: anyone can begin many.
    pub(crate) fn allowance(&self) -> Arc<str> {
        match self {
            Origin::Stdio => Arc::default(),
            Origin::Http(client) => client.allowance(),
        }
    }

    /// The subject of its access token.
    pub(crate) fn subject(&self) -> Option<Arc<str>> {
        match self {
            Origin::Stdio => None,
            Origin::Http(client) => client.subject.clone(),
        }
    }

    /// How long its calls wait for room for their replies.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Origin::Stdio => LONG,
            Origin::Http(_) => BRIEFLY,
        }
    }

    /// The client as the log shows it: the name it gives itself, its address, and the operator's name for it.
    pub(crate) fn shown(&self, named: Option<String>) -> Arc<str> {
        let Origin::Http(client) = self else {
            return named.unwrap_or_else(|| "unknown".to_owned()).into();
        };
        if named.is_none() && client.known_as().is_none() {
            return Arc::clone(&client.address);
        }
        let mut shown = named.map_or_else(String::new, |named| named + " ");
        shown += &client.address;
        if let Some(name) = client.known_as() {
            shown += " (";
            shown += name;
            shown.push(')');
        }
        shown.into()
    }
}

impl HttpClient {
    /// A client that calls directly from this address.
    #[must_use]
    pub fn at(address: SocketAddr) -> HttpClient {
        HttpClient::new(address.to_string(), address.ip())
    }

    /// A client behind a proxy.
    #[must_use]
    pub fn behind_proxy(address: IpAddr) -> HttpClient {
        HttpClient::new(address.to_string(), address)
    }

    fn new(shown: String, address: IpAddr) -> HttpClient {
        HttpClient {
            address: shown.into(),
            host: host_of(address).into(),
            token: None,
            subject: None,
            session: None,
        }
    }

    fn known_as(&self) -> Option<&Arc<str>> {
        self.token.as_ref().or(self.session.as_ref())
    }

    /// The account that its bytes count for: its token, else the host it calls from.
    #[must_use]
    pub fn allowance(&self) -> Arc<str> {
        Arc::clone(self.token.as_ref().unwrap_or(&self.host))
    }
}

/// The host of an address. A host on IPv6 has a whole network of addresses to call from.
#[must_use]
pub fn host_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(host) => host.to_string(),
        IpAddr::V6(host) => {
            let [a, b, c, d, ..] = host.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HttpClient;
    use std::sync::Arc;

    fn host_of(address: &str) -> Arc<str> {
        let client = match address.parse() {
            Ok(address) => HttpClient::at(address),
            Err(_) => HttpClient::behind_proxy(address.parse().expect("an address")),
        };
        client.allowance()
    }

    #[test]
    fn a_client_is_a_host_not_a_connection() {
        assert_eq!(host_of("127.0.0.1:4000"), host_of("127.0.0.1:4001"));
        assert_ne!(host_of("127.0.0.1:4000"), host_of("127.0.0.2:4000"));
        assert_eq!(host_of("[2001:db8::1]:1"), host_of("[2001:db8::2]:1"));
        assert_ne!(host_of("[2001:db8::1]:1"), host_of("[2001:db8:0:1::1]:1"));
        assert_eq!(host_of("[::ffff:10.0.0.1]:1"), host_of("10.0.0.1:1"));
        assert_eq!(host_of("10.0.0.1"), host_of("10.0.0.1:1"));
        assert_eq!(host_of("2001:db8::1"), host_of("[2001:db8::2]:1"));
    }
}
