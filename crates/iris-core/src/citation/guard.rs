//! Who may be connected to: the table of forbidden addresses, this machine's own, and what an operator adds.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::address::forbidden;

/// A range of addresses, such as `10.96.0.0/12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    first: IpAddr,
    length: u32,
}

impl Cidr {
    /// Whether an address lies in it. An IPv4 address that an IPv6 one carries is looked for as itself.
    pub fn holds(self, address: IpAddr) -> bool {
        match (self.first, plain(address)) {
            (IpAddr::V4(first), IpAddr::V4(one)) => (u32::from(first) ^ u32::from(one)).leading_zeros() >= self.length,
            (IpAddr::V6(first), IpAddr::V6(one)) => {
                (u128::from(first) ^ u128::from(one)).leading_zeros() >= self.length
            }
            _ => false,
        }
    }
}

/// The IPv4 address that a mapped or translated one stands for.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    match six.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => address,
    }
}

impl FromStr for Cidr {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| "not an address, such as 10.0.0.0/8")?;
        let most = if first.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        let length = match length {
            Some(length) => {
                length.parse().ok().filter(|length| *length <= most).ok_or("more bits than an address has")?
            }
            None => most,
        };
        Ok(Self { first, length })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.first, self.length)
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Cidr {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cidr".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Who may be connected to.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    own: Vec<IpAddr>,
    denied: Vec<Cidr>,
    allowed: Vec<Cidr>,
}

impl Guard {
    /// This machine's `own` addresses and the `denied` ranges are forbidden beside the table; `allowed` ranges are
    /// permitted although the table has them, such as a company's own library.
    pub fn new(own: Vec<IpAddr>, denied: Vec<Cidr>, allowed: Vec<Cidr>) -> Self {
        Self { own: own.into_iter().map(plain).collect(), denied, allowed }
    }

    /// Why an address must not be connected to.
    pub fn refuses(&self, address: IpAddr) -> Option<&'static str> {
        if self.denied.iter().any(|range| range.holds(address)) {
            return Some("denied by citations.deny_cidrs");
        }
        if self.own.contains(&plain(address)) {
            return Some("this machine's own");
        }
        if self.allowed.iter().any(|range| range.holds(address)) {
            return None;
        }
        forbidden(address)
    }

    /// The same for all that a name stands for: one forbidden address forbids the name, for nobody can say which of
    /// them a connection would have gone to.
    pub fn refuses_any(&self, addresses: &[IpAddr]) -> Option<&'static str> {
        addresses.iter().find_map(|address| self.refuses(*address))
    }
}
