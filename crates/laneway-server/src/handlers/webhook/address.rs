//! Addresses that nobody may make this server call, and ranges that an operator allows after all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// IPv4 that is not of the public network, each with what it is.
const REFUSED_V4: &[(&str, &str)] = &[
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier's customers"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a relay to IPv6"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
];

/// The public part of IPv6. Whatever is outside of it is refused: loopback, private, link-local, multicast, and IPv4 in
/// disguise (mapped, compatible, NAT64).
const PUBLIC_V6: &str = "2000::/3";
/// What is refused inside of it.
const REFUSED_V6: &[(&str, &str)] = &[
    ("2001::/23", "for protocols, such as a tunnel to IPv4"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "a tunnel to IPv4"),
    ("3fff::/20", "for documentation"),
];

/// Why an address is refused; nothing if it is a public one.
pub(super) fn refused(address: IpAddr) -> Option<&'static str> {
    let found = |table: &'static [(&'static str, &'static str)]| {
        table.iter().find(|(range, _)| known(range).contains(address)).map(|(_, what)| *what)
    };
    match address {
        IpAddr::V4(_) => found(REFUSED_V4),
        IpAddr::V6(_) if !known(PUBLIC_V6).contains(address) => Some("not public"),
        IpAddr::V6(_) => found(REFUSED_V6),
    }
}

fn known(range: &str) -> Range {
    range.parse().expect("the tables have ranges")
}

/// A range of addresses, such as `10.1.0.0/16`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    first: IpAddr,
    bits: u32,
}

impl Range {
    /// Whether an address is in it. IPv4 in the disguise of IPv6 is in no range of IPv4.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                (first.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                (first.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no range of addresses, such as 10.1.0.0/16");
        let (first, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let most = match first {
            IpAddr::V4(_) => Ipv4Addr::BITS,
            IpAddr::V6(_) => Ipv6Addr::BITS,
        };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
        Ok(Self { first, bits: bits.ok_or_else(wrong)? })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_called() {
        for good in
            ["8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "2606:4700::1111"]
        {
            assert_eq!(refused(good.parse().unwrap()), None, "{good}");
        }
        for bad in [
            "0.0.0.0",
            "127.0.0.1",
            "10.0.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001:0:1::1",
            "2001:db8::1",
        ] {
            assert!(refused(bad.parse().unwrap()).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_range_has_what_begins_as_it_does() {
        let has =
            |range: &str, address: &str| range.parse::<Range>().unwrap().contains(address.parse().unwrap());
        assert!(has("10.1.0.0/16", "10.1.255.255") && !has("10.1.0.0/16", "10.2.0.0"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
        assert!(has("0.0.0.0/0", "8.8.8.8") && !has("0.0.0.0/0", "::ffff:8.8.8.8"));
        assert!(has("fd00::/8", "fd00:ec2::254"));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "010.0.0.0/8", "fd00::/129", "x/8", "10.0.0.0/-1"] {
            assert!(bad.parse::<Range>().is_err(), "{bad}");
        }
    }
}
