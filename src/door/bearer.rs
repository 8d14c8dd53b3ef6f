//! The bearer token of a request, one way for every door.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Why a request does not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwelcome {
    /// It shows no key: 401.
    #[error("a key is needed: send `Authorization: Bearer KEY`")]
    Missing,
    /// It shows another key: 403.
    #[error("the key is not valid here")]
    Wrong,
    /// It names a tenant that cannot be one: 403.
    #[error("x-iris-tenant names no tenant: one value of 1 to 64 letters, digits, hyphens, underscores and dots")]
    NoTenant,
}

/// The token a request carries. None when it carries none, more than one (which one counts must not be a question), or
/// one of another scheme.
pub(super) fn shown(headers: &HeaderMap) -> Option<&[u8]> {
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

    fn shows(values: &[&str]) -> Option<Vec<u8>> {
        let headers: HeaderMap = values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect();
        shown(&headers).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_token_is_read_from_one_bearer_header() {
        for value in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "] {
            assert_eq!(shows(&[value]).as_deref(), Some(&b"s3cret"[..]), "{value}");
        }
        assert_eq!(shows(&["Bearer s3cret s3cret"]).as_deref(), Some(&b"s3cret s3cret"[..]));
        for value in ["Basic  s3cret", "s3cret", "Bearer", "Bearer ", ""] {
            assert_eq!(shows(&[value]), None, "{value}");
        }
        assert_eq!(shows(&[]), None);
        assert_eq!(shows(&["Bearer x", "Bearer s3cret"]), None);
    }
}
