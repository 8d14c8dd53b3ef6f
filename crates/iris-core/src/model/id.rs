//! Identifiers: parsed once, printed one way, never mixed up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text or byte string is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}")]
pub struct InvalidId {
    /// What would have been one, such as `32 lowercase hex digits`.
    pub expected: &'static str,
}

/// An OTLP trace id: 16 bytes, not all zero, printed as 32 lowercase hex digits.
/// Source: <https://opentelemetry.io/docs/specs/otel/trace/api/#spancontext>.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

/// An OTLP span id: 8 bytes, not all zero, printed as 16 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

macro_rules! id {
    ($name:ident, $bytes:literal, $expected:literal) => {
        impl $name {
            /// Takes exactly the right number of bytes, not all zero.
            pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let bytes: [u8; $bytes] = bytes.try_into().ok()?;
                bytes.iter().any(|byte| *byte != 0).then_some(Self(bytes))
            }

            /// The raw bytes, most significant first.
            pub fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let error = InvalidId { expected: $expected };
                if text.len() != $bytes * 2 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
                    return Err(error);
                }
                let mut bytes = [0u8; $bytes];
                for (slot, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
                    let pair = std::str::from_utf8(pair).map_err(|_| error.clone())?;
                    *slot = u8::from_str_radix(pair, 16).map_err(|_| error.clone())?;
                }
                Self::from_bytes(&bytes).ok_or(error)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(TraceId, 16, "32 lowercase hex digits, not all zero");
id!(SpanId, 8, "16 lowercase hex digits, not all zero");

/// Whose data a row is. Part of every key; `local` unless tenants are configured.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The longest name, in bytes.
    pub const NAME_BYTES_MAX: usize = 64;

    /// Whether a tenant may be called so: letters, digits, `-`, `_` and `.`, for the names of files are made of it.
    pub fn is_name(name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=Self::NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
    }

    /// A tenant by name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The tenant of an installation that has not configured any.
    pub fn local() -> Self {
        Self::new("local")
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self::local()
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        let text = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(text.parse::<TraceId>().unwrap().to_string(), text);
    }

    #[test]
    fn refuses_wrong_length_case_and_zero() {
        for text in [
            "",
            "0AF7651916CD43DD8448EB211C80319C",
            "00000000000000000000000000000000",
            "0af7",
            "éaf7651916cd43dd8448eb211c80319",
        ] {
            assert!(text.parse::<TraceId>().is_err(), "{text}");
        }
    }
}
