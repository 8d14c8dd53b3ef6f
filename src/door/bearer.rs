//! The bearer key of a request, one way for every door.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Why a request does not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwelcome {
    /// It shows no key: 401.
    #[error("a key is needed: send `Authorization: Bearer KEY`")]
    Missing,
    /// It shows another key: 403.
    #[error("the key is not valid here")]
    Wrong,
}

/// Checks that the request carries `key` as its bearer token.
///
/// # Errors
/// [`Unwelcome::Missing`] when it carries none, more than one (which one counts must not be a question), or one of
/// another scheme.
pub fn bearer(headers: &HeaderMap, key: &SecretString) -> Result<(), Unwelcome> {
    let shown = shown(headers).ok_or(Unwelcome::Missing)?;
    // Of digests, so that neither length nor content shows in the time it takes.
    let is_key = Sha256::digest(shown).ct_eq(&Sha256::digest(key.expose_secret().as_bytes()));
    if is_key.into() { Ok(()) } else { Err(Unwelcome::Wrong) }
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, shown) = value.as_bytes().split_at_checked(SCHEME.len())?;
    let shown = shown.trim_ascii();
    (scheme.eq_ignore_ascii_case(SCHEME) && !shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str]) -> Result<(), Unwelcome> {
        let headers = values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect();
        bearer(&headers, &SecretString::from("s3cret"))
    }

    #[test]
    fn a_door_knows_its_key() {
        for value in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "] {
            assert_eq!(check(&[value]), Ok(()), "{value}");
        }
        for value in ["Bearer s3cre", "Bearer s3cretx", "Bearer S3CRET", "Bearer s3cret s3cret"] {
            assert_eq!(check(&[value]), Err(Unwelcome::Wrong), "{value}");
        }
        for value in ["Basic  s3cret", "s3cret", "Bearer", "Bearer ", ""] {
            assert_eq!(check(&[value]), Err(Unwelcome::Missing), "{value}");
        }
        assert_eq!(check(&[]), Err(Unwelcome::Missing));
        assert_eq!(check(&["Bearer x", "Bearer s3cret"]), Err(Unwelcome::Missing));
    }
}
