//! A network of addresses, as the operator writes it: `10.0.0.0/8`, or one address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    /// How many leading bits have to agree.
    bits: u8,
}

/// The expected form of a network.
pub(super) const NETWORK: &str = "an IP address, or a network such as 10.0.0.0/8";

impl Network {
    /// Whether one of the networks has an address.
    pub(crate) fn any_has(networks: &[Network], address: IpAddr) -> bool {
        networks.iter().any(|network| network.has(address))
    }

    fn has(&self, address: IpAddr) -> bool {
        let (own, bits) = number_of(self.address);
        let (other, other_bits) = number_of(address.to_canonical());
        let free = u32::from(bits.saturating_sub(self.bits));
        bits == other_bits && own.checked_shr(free) == other.checked_shr(free)
    }
}

/// An address as a number, and how many bits it has.
fn number_of(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Network, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(drop)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(drop)?;
        let (_, most) = number_of(address);
        let bits = bits.unwrap_or(most);
        (bits <= most)
            .then_some(Network { address, bits })
            .ok_or(())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, most) = number_of(self.address);
        write!(f, "{}", self.address)?;
        if self.bits < most {
            write!(f, "/{}", self.bits)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_with_its_bits() {
        let has = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.has(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.255.0.1"));
        assert!(!has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
        assert!(has("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(has("0.0.0.0/0", "192.0.2.1") && !has("0.0.0.0/0", "::1"));
        assert!(has("2001:db8::/32", "2001:db8:1::1") && !has("2001:db8::/32", "2001:db9::1"));
        assert!(has("::/0", "2001:db8::1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "proxy",
            "10.0.0.0/-1",
            "/8",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        for text in ["10.0.0.0/8", "::1", "192.0.2.1"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
    }
}
