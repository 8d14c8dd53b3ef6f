//! The addresses that no text may make this process connect to.
//!
//! Everything that is not plain public unicast, and what carries such an address inside another. Sources: the IANA
//! registries of special-purpose addresses <https://www.iana.org/assignments/iana-ipv4-special-registry> and
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>, RFC 6052 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo),
//! RFC 5214 (ISATAP), RFC 7915 (SIIT), and what cloud providers document of their metadata services.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of IPv4: first address, bits, what it is.
type Range4 = ([u8; 4], u32, &'static str);

const V4: &[Range4] = &[
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared between a carrier and its customers, and metadata of Alibaba and Tencent clouds"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([168, 63, 129, 16], 32, "metadata of Azure"),
    ([169, 254, 0, 0], 16, "link-local, and metadata of most clouds"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "protocol assignments, and metadata of Oracle's cloud"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 31, 196, 0], 24, "AS112"),
    ([192, 52, 193, 0], 24, "multicast tunnelling"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([192, 175, 48, 0], 24, "AS112"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved, or broadcast"),
];

/// A range of IPv6: first address, bits, what it is.
type Range6 = ([u16; 8], u32, &'static str);

/// Inside the public unicast space; all that lies outside it is forbidden whole.
const V6: &[Range6] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments, Teredo, benchmarking and ORCHID"),
    ([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4"),
    ([0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0], 48, "AS112"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// What an address is that must not be reached; none for a public one.
pub fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => forbidden4(address),
        IpAddr::V6(address) => forbidden6(address),
    }
}

fn forbidden4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    let inside = |(first, length, _): &&Range4| (bits ^ u32::from_be_bytes(*first)).leading_zeros() >= *length;
    V4.iter().find(inside).map(|(_, _, what)| *what)
}

fn forbidden6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    let last4 = || {
        let [_, _, _, _, _, _, high, low] = parts;
        Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
    };
    match parts {
        // A mapped address is an IPv4 connection, and a well-known NAT64 one becomes one.
        [0, 0, 0, 0, 0, 0xffff, _, _] => return forbidden4(last4()),
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => return forbidden4(last4()),
        [0, 0, 0, 0, 0, 0, _, _] => return Some("unspecified, loopback or IPv4-compatible"),
        [0, 0, 0, 0, 0xffff, 0, _, _] => return Some("IPv4-translated"),
        [0x64, 0xff9b, 1, ..] => return Some("local NAT64"),
        [0x0100, ..] => return Some("discard-only"),
        [0x5f00, ..] => return Some("segment routing"),
        [first, ..] if first & 0xfe00 == 0xfc00 => {
            return Some("unique local, and metadata of Amazon's and Google's clouds");
        }
        [first, ..] if first & 0xffc0 == 0xfe80 => return Some("link-local"),
        [first, ..] if first & 0xffc0 == 0xfec0 => return Some("site-local"),
        [first, ..] if first & 0xff00 == 0xff00 => return Some("multicast"),
        [first, ..] if first & 0xe000 != 0x2000 => return Some("not public unicast"),
        // An ISATAP interface carries the IPv4 address that it tunnels to.
        [_, _, _, _, 0 | 0x0200, 0x5efe, _, _] if forbidden4(last4()).is_some() => {
            return Some("ISATAP to a forbidden address");
        }
        _ => {}
    }
    let bits = u128::from(address);
    let inside = |(first, length, _): &&Range6| (bits ^ u128::from(Ipv6Addr::from(*first))).leading_zeros() >= *length;
    V6.iter().find(inside).map(|(_, _, what)| *what)
}
