//! Finds the client behind a proxy that the operator trusts.
//!
//! A proxy adds the address that it was called from at the right end of `X-Forwarded-For` or `Forwarded`. Everything to
//! the left of it came from outside and may be forged, so the rightmost address that is not a trusted proxy's counts.
//!
//! `X-Forwarded-For` decides alone if it is there: nearly every proxy writes it, and passes on a `Forwarded` that the
//! client, or a proxy of the client, made. A proxy that writes only `Forwarded` has to remove the other.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::{FORWARDED, HeaderName};

use crate::settings::Network;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client that a trusted proxy speaks for; `None` if the peer itself is the client, or if the
/// headers do not tell.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Option<IpAddr> {
    if !Network::any_has(proxies, peer) {
        return None;
    }
    if headers.contains_key(&X_FORWARDED_FOR) {
        return rightmost(headers, &X_FORWARDED_FOR, proxies, |hop| Some(hop));
    }
    rightmost(headers, &FORWARDED, proxies, for_of)
}

fn rightmost(
    headers: &HeaderMap,
    name: &HeaderName,
    proxies: &[Network],
    address_of: impl Fn(&str) -> Option<&str>,
) -> Option<IpAddr> {
    let lines = headers.get_all(name).iter();
    let hops = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    let hops: Vec<&str> = hops.collect();
    for hop in hops.into_iter().rev() {
        // An unreadable entry hides the ones before it.
        let address = parse(address_of(hop.trim())?)?;
        if !Network::any_has(proxies, address) {
            return Some(address);
        }
    }
    None
}

/// The `for` of an element of `Forwarded`.
fn for_of(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    Some(node.trim().trim_matches('"'))
}

/// Reads an address as proxies write it: with or without a port, IPv6 in brackets or not.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(peer: &str, lines: &[(&'static str, &str)]) -> Option<String> {
        let proxies = ["10.0.0.0/8", "::1"].map(|text| text.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        client(peer.parse().unwrap(), &headers, &proxies).map(|address| address.to_string())
    }

    #[test]
    fn only_a_trusted_proxy_speaks_for_others() {
        let lines = [("x-forwarded-for", "192.0.2.1")];
        assert_eq!(client_of("10.0.0.1", &lines).as_deref(), Some("192.0.2.1"));
        assert_eq!(client_of("::1", &lines).as_deref(), Some("192.0.2.1"));
        assert_eq!(client_of("192.0.2.9", &lines), None);
        assert_eq!(client_of("10.0.0.1", &[]), None);
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxys_counts() {
        let made_up = [("x-forwarded-for", "198.51.100.1, 192.0.2.1 , 10.0.0.7")];
        assert_eq!(
            client_of("10.0.0.1", &made_up).as_deref(),
            Some("192.0.2.1")
        );
        let two_lines = [
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "192.0.2.1"),
        ];
        assert_eq!(
            client_of("10.0.0.1", &two_lines).as_deref(),
            Some("192.0.2.1")
        );
        let unreadable = [("x-forwarded-for", "192.0.2.1, unknown")];
        assert_eq!(client_of("10.0.0.1", &unreadable), None);
    }

    #[test]
    fn the_standard_header_counts_only_without_the_other() {
        let standard = [(
            "forwarded",
            "for=198.51.100.1, For=\"[2001:db8::5]:99\";proto=https",
        )];
        assert_eq!(
            client_of("10.0.0.1", &standard).as_deref(),
            Some("2001:db8::5")
        );
        let two = [
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.2"),
        ];
        assert_eq!(client_of("10.0.0.1", &two).as_deref(), Some("192.0.2.1"));
        // Whatever the client writes into the other, it does not get the account of the proxy or of another client.
        let unreadable = [
            ("x-forwarded-for", "unknown"),
            ("forwarded", "for=192.0.2.2"),
        ];
        assert_eq!(client_of("10.0.0.1", &unreadable), None);
    }
}
