//! What a browser sends: queries and forms, by name, without what was left empty.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Visitor;
use crate::serve::gate::Gate;
use crate::serve::read_body;

/// The largest form.
const BYTES_MAX: usize = 256 * 1024;

/// Fields of one form or query.
const FIELDS_MAX: usize = 64;

/// The field in which a form carries its token.
const TOKEN: &str = "token";

/// Fields by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Of a query.
    pub fn of(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).take(FIELDS_MAX);
        let pairs = pairs.map(|(name, value)| (name.into_owned(), value.into_owned()));
        Self(pairs.filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    /// What stands in a field; nothing when it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The same as a text, empty when nothing is there.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    /// Every field.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What stands in one field stands in another, unless something does already.
    pub fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.0.remove(from) {
            self.0.entry(to.to_owned()).or_insert(value);
        }
    }

    /// The address `path` with these fields, some of them replaced; an empty value leaves its field out.
    pub fn link(&self, path: &str, changes: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name)) {
            query.append_pair(name, value);
        }
        for (name, value) in changes.iter().filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }
}

/// Reads a form of this visitor.
///
/// # Errors
/// The refusal: it is no form, it is too large, or it does not carry the token of the visitor's session.
pub(super) async fn read(
    gate: &Gate,
    visitor: &Visitor,
    headers: &HeaderMap,
    body: Body,
) -> Result<Fields, Box<Response>> {
    let refused = |status: StatusCode, why: &'static str| Box::new((status, why).into_response());
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "this takes a form"));
    }
    let Some(body) = read_body(body, BYTES_MAX).await else {
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the form is larger than 256 KiB"));
    };
    let fields = Fields::of(std::str::from_utf8(&body).ok());
    if !gate.sessions().is_token(visitor.session.as_deref(), fields.text(TOKEN)) {
        return Err(refused(
            StatusCode::FORBIDDEN,
            "the form is not from a page of this session: go back, load the page again and send it once more",
        ));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_are_none_and_links_keep_the_others() {
        let fields = Fields::of(Some("q=a%26b&rule=&limit=+&verdict=fail&offset=50"));
        assert_eq!((fields.get("rule"), fields.get("limit"), fields.number("offset")), (None, None, Some(50)));
        assert_eq!(fields.link("/traces", &[("offset", "100")]), "/traces?q=a%26b&verdict=fail&offset=100");
        assert_eq!(Fields::default().link("/", &[("by", "")]), "/");
        let hostile = Fields::of(Some("q=%22%3E%3Cscript%3E"));
        assert_eq!(hostile.link("/traces", &[]), "/traces?q=%22%3E%3Cscript%3E");
    }
}
