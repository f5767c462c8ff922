//! Networks in which no route service is called.

use std::net::IpAddr;

/// Networks, as the settings list them: `10.0.0.0/8`, `fd00::/8`.
#[derive(Debug, Default)]
pub(crate) struct Networks(Vec<Network>);

#[derive(Debug, Clone, Copy)]
struct Network {
    address: IpAddr,
    /// Bits of the address that are the network's.
    bits: u32,
}

impl Networks {
    /// A list. What is no network ([`is_network`]) holds nothing.
    pub(crate) fn new(list: &[String]) -> Self {
        let networks = list.iter().filter_map(|text| Network::parse(text));
        Self(networks.collect())
    }

    /// Whether one of them holds an address.
    pub(crate) fn hold(&self, address: IpAddr) -> bool {
        // An address of IPv4 stays one, however it is written.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.holds(address))
    }
}

/// Whether a text may stand in a list of networks.
pub(crate) fn is_network(text: &str) -> bool {
    Network::parse(text).is_some()
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        // Digits alone: Rust would also take a sign.
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let bits: u32 = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most {
            return None;
        }
        // Addresses of IPv4 are looked for as such.
        Some(match address.to_canonical() {
            short @ IpAddr::V4(_) if address.is_ipv6() && bits >= 96 => Self {
                address: short,
                bits: bits - 96,
            },
            _ => Self { address, bits },
        })
    }

    fn holds(self, address: IpAddr) -> bool {
        let alike = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u32::from(own) ^ u32::from(other)).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (u128::from(own) ^ u128::from(other)).leading_zeros()
            }
            _ => return false,
        };
        alike >= self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_begin_as_it_does() {
        let list = ["10.1.2.3/8", "192.168.4.0/23", "127.0.0.1/32", "fd00::/8"];
        let networks = Networks::new(&list.map(str::to_owned));
        for (address, held) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("192.168.5.255", true),
            ("192.168.6.0", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("::ffff:10.0.0.1", true),
            ("fd12::1", true),
            ("fe80::1", false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(networks.hold(address), held, "{address}");
        }
        let all = Networks::new(&["0.0.0.0/0".to_owned()]);
        assert!(all.hold("203.0.113.9".parse().unwrap()));
        assert!(!all.hold("::1".parse().unwrap()));
        let mapped = Networks::new(&["::ffff:10.0.0.0/104".to_owned()]);
        assert!(mapped.hold("10.1.2.3".parse().unwrap()));
        assert!(!mapped.hold("11.1.2.3".parse().unwrap()));
        assert!(!Networks::default().hold("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_network_is_an_address_and_as_many_bits_as_it_has_at_most() {
        for network in ["0.0.0.0/0", "10.0.0.0/32", "::/0", "fd00::/128"] {
            assert!(is_network(network), "{network}");
        }
        for wrong in [
            "",
            "/8",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/33",
            "10.0.0/8",
            "fd00::/129",
            "a.example/8",
        ] {
            assert!(!is_network(wrong), "{wrong}");
        }
    }
}
