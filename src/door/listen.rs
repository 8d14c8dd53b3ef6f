//! The address of a door.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a door listens: an address with a port (0 picks a free one), or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub enum Listen {
    /// Closed.
    Off,
    /// Open here.
    At(SocketAddr),
}

impl Listen {
    /// A door on loopback.
    pub const fn loopback(port: u16) -> Self {
        Self::At(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port))
    }

    /// Whether others than this machine can reach it.
    pub fn beyond_loopback(self) -> bool {
        matches!(self, Self::At(address) if !address.ip().is_loopback())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        let text = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse()
            .map(Self::At)
            .map_err(|_| "not an address; valid: `127.0.0.1:4317`, `[::1]:4317`, `0.0.0.0:4317`, `off`".to_owned())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // YAML reads a bare `off` as false.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Bool(false) => Ok(Self::Off),
            serde_json::Value::String(text) => text.parse().map_err(serde::de::Error::custom),
            _ => Err(serde::de::Error::custom("not an address; valid: `127.0.0.1:4317`, `off`")),
        }
    }
}

/// Opens the socket of a door.
///
/// # Errors
/// Names the door, the address and the setting that moves it.
pub async fn bind(door: &str, setting: &str, address: SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::bind(address).await.map_err(|error| {
        std::io::Error::new(
            error.kind(),
            format!("the {door} door cannot listen on {address}: {error}; set {setting} to another address, to port 0, or to `off`"),
        )
    })
}
