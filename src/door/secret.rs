//! How a secret prints: that it is set, and nothing else.

use secrecy::SecretString;
use serde::Serializer;

/// Serializes a secret as `[set]`, an absent one as null.
///
/// # Errors
/// The serializer's.
pub fn hidden<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(_) => serializer.serialize_some("[set]"),
        None => serializer.serialize_none(),
    }
}
