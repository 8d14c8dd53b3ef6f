//! Signing in with a key, and out again.

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::form::{self, Fields};
use super::session::digest;
use super::{Frame, Shared, Visitor, html};

/// Where one signs in.
pub(in crate::serve) const PATH: &str = "/sign-in";

#[derive(Template)]
#[template(path = "sign-in.html")]
struct Page {
    frame: Frame,
    next: String,
    problem: Option<&'static str>,
}

/// The form; where no key is set there is nothing to sign in with.
pub(super) async fn show(State(room): Shared, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::of(query.as_deref());
    if !room.gate.asks_for_keys() {
        return Redirect::to("/").into_response();
    }
    let frame = room.frame("Sign in", "", &Visitor::default(), None);
    html(&Page { frame, next: local(fields.text("next")), problem: None })
}

/// Takes a key.
pub(super) async fn sign_in(State(room): Shared, headers: HeaderMap, body: Body) -> Response {
    let visitor = Visitor::default();
    let refused = |status: StatusCode, problem: &'static str, next: String| {
        let frame = room.frame("Sign in", "", &visitor, None);
        (status, html(&Page { frame, next, problem: Some(problem) })).into_response()
    };
    let fields = match form::read(&room.gate, &visitor, &headers, body).await {
        Ok(fields) => fields,
        Err(refusal) if refusal.status() == StatusCode::FORBIDDEN => {
            return refused(StatusCode::FORBIDDEN, "The page was too old. Try again.", "/".to_owned());
        }
        Err(refusal) => return *refusal,
    };
    let next = local(fields.text("next"));
    if room.gate.sign_ins().take("").is_err() {
        return refused(StatusCode::TOO_MANY_REQUESTS, "Too many attempts. Wait a minute.", next);
    }
    let key = digest(fields.text("key").trim().as_bytes());
    if room.gate.holder(&key).is_none() {
        return refused(StatusCode::FORBIDDEN, "That key is not valid here.", next);
    }
    let cookie = room.gate.sessions().begin(key, room.app.world.random);
    with_cookie(Redirect::to(&next).into_response(), &cookie)
}

/// Signs out.
pub(super) async fn sign_out(
    State(room): Shared,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(refusal) = form::read(&room.gate, &visitor, &headers, body).await {
        return *refusal;
    }
    with_cookie(Redirect::to(PATH).into_response(), &room.gate.sessions().end(&headers))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Where to send whoever is not signed in.
pub(in crate::serve) fn instead_of(path: &str) -> Response {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", path).finish();
    Redirect::to(&format!("{PATH}?{query}")).into_response()
}

/// A path on this door, whatever was asked for.
fn local(next: &str) -> String {
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_local = next.starts_with('/') && !next.starts_with("//") && !next.starts_with(PATH);
    if is_local && is_plain { next.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_signing_in_one_stays_on_this_door() {
        for next in ["/traces?verdict=fail", "/", "/traces/00ff"] {
            assert_eq!(local(next), next);
        }
        for next in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/sign-in",
            "/a\r\nset-cookie: x",
            "/\u{e9}",
        ] {
            assert_eq!(local(next), "/", "{next:?}");
        }
    }
}
