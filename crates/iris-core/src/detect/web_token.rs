//! JSON web tokens: whether one that has the shape opens anything.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::{Standing, context};

/// What a token counts for; nothing when it is sealed, which is what an encrypted token of five parts is.
/// Source: <https://www.rfc-editor.org/rfc/rfc7516#section-3.1>.
pub(super) fn standing(text: &str, bytes: &Range<usize>) -> Option<Standing> {
    let token = text.get(bytes.clone())?;
    let mut parts = token.split('.');
    let header = decoded(parts.next()?);
    let goes_on = context::next(text, bytes.end) == Some('.')
        && context::after(text, bytes.end, 3).chars().nth(1).is_some_and(|c| c.is_ascii_alphanumeric());
    if goes_on || header.is_some_and(|header| header.get("enc").is_some()) {
        return None;
    }
    // The token that the introduction to the format shows, and everyone copies.
    let sample = decoded(parts.next()?).is_some_and(|claims| {
        claims.get("sub").and_then(Value::as_str) == Some("1234567890")
            && claims.get("name").and_then(Value::as_str).is_none_or(|name| name.starts_with("John"))
    });
    Some(if sample { Standing::TestValue } else { Standing::Live })
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?).ok()
}
