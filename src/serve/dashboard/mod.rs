//! The dashboard: pages on the web door for people, made on the server. They are views of [`crate::tools`] and work
//! without a script, but that they are fetched again by themselves.
//!
//! Nothing here decides what a caller may see: every question goes to the tools with the caller that the gate named.
//! Stored text reaches a page as [`text::Words`] only, which templates escape; the policy of every page allows nothing
//! from elsewhere and nothing inline.

mod assets;
mod chart;
mod failures;
mod form;
mod format;
mod judge;
mod markup;
mod overview;
mod rules;
mod sessions;
mod signing;
mod spans;
mod story;
mod system;
mod text;
mod trace;
mod traces;

pub(super) mod session;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use iris_core::contract::{Code, Error, Scope};
use iris_core::model::Timestamp;
use serde_json::Value;

use super::gate::Gate;
use crate::tools::{App, Caller};
use text::Words;

/// What a page may load: what comes from here, and nothing inline.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The counter of spans that were taken.
const ACCEPTED_SPANS: &str = "otelcol_receiver_accepted_spans";

/// Headers of every page.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Addresses of the doors, as whoever points an SDK here must write them.
#[derive(Debug, Clone, Default)]
pub struct Doors {
    /// OTLP/gRPC.
    pub grpc: Option<String>,
    /// OTLP/HTTP.
    pub http: Option<String>,
    /// Metrics and probes.
    pub ops: Option<String>,
}

/// One counter of the process.
#[derive(Debug, Clone)]
pub struct Counter {
    /// Its name in the metrics.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// How much.
    pub value: u64,
}

/// What pages tell that no tool knows: where the doors are, and how the rooms of the process do.
#[derive(Clone)]
pub struct Around {
    /// Where spans go.
    pub doors: Doors,
    /// The state of every room.
    pub state: Arc<dyn Fn() -> Value + Send + Sync>,
    /// Their counters.
    pub counters: Arc<dyn Fn() -> Vec<Counter> + Send + Sync>,
}

impl Default for Around {
    fn default() -> Self {
        Self { doors: Doors::default(), state: Arc::new(|| Value::Null), counters: Arc::new(Vec::new) }
    }
}

/// Who looks at a page, as the gate found out.
#[derive(Debug, Clone, Default)]
pub(super) struct Visitor {
    /// The name in its cookie, when it is signed in.
    pub session: Option<String>,
    /// The name of its key.
    pub key: Option<String>,
}

/// What every page stands on.
pub(super) struct Room {
    app: Arc<App>,
    gate: Gate,
    around: Around,
}

/// A room that handlers share.
type Shared = axum::extract::State<Arc<Room>>;

/// Where pages are; the gate asks.
pub(super) fn is_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(first, "" | "traces" | "sessions" | "failures" | "rules" | "judge" | "system" | "sign-out")
        || is_open(path)
}

/// What is shown to whoever is not signed in.
pub(super) fn is_open(path: &str) -> bool {
    path == signing::PATH || path.starts_with(assets::FOLDER)
}

/// The way to where one signs in, and back to what was asked for.
pub(super) fn to_sign_in(request: &axum::extract::Request) -> Response {
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    let is_read = matches!(*request.method(), axum::http::Method::GET | axum::http::Method::HEAD);
    signing::instead_of(if is_read { asked } else { "/" })
}

/// The pages.
pub(super) fn routes(app: Arc<App>, gate: Gate, around: Around) -> Router {
    let room = Arc::new(Room { app, gate, around });
    Router::new()
        .route("/", get(overview::show))
        .route("/traces", get(traces::show))
        .route("/traces/{trace_id}", get(trace::show))
        .route("/sessions", get(sessions::show))
        .route("/failures", get(failures::show))
        .route("/rules", get(rules::show))
        .route("/rules/try", post(rules::preview))
        .route("/rules/deploy", post(rules::deploy))
        .route("/rules/{rule_id}/{change}", post(rules::change))
        .route("/judge", get(judge::show))
        .route("/system", get(system::show))
        .route(signing::PATH, get(signing::show).post(signing::sign_in))
        .route("/sign-out", post(signing::sign_out))
        .route("/assets/{name}", get(assets::serve))
        .with_state(room)
}

/// An entry of the navigation.
struct Place {
    path: &'static str,
    name: &'static str,
    is_here: bool,
}

const PLACES: [(&str, &str); 7] = [
    ("/", "Overview"),
    ("/traces", "Traces"),
    ("/sessions", "Sessions"),
    ("/failures", "Failures"),
    ("/rules", "Rules"),
    ("/judge", "Judge"),
    ("/system", "System"),
];

/// What stands around every page.
struct Frame {
    title: &'static str,
    places: Vec<Place>,
    /// Names of what the page loads.
    assets: &'static assets::Names,
    /// Fetched again by itself.
    is_live: bool,
    /// The key of whoever is signed in.
    key: Option<Words>,
    /// Whose data it is, where there are several.
    tenant: Option<Words>,
    /// What its forms carry.
    token: String,
    version: &'static str,
}

impl Room {
    fn frame(&self, title: &'static str, here: &'static str, visitor: &Visitor, caller: Option<&Caller>) -> Frame {
        let places = PLACES.iter().filter(|_| caller.is_some());
        let tenant = caller.map(|caller| caller.tenant.as_str()).filter(|tenant| *tenant != "local");
        Frame {
            title,
            places: places.map(|(path, name)| Place { path, name, is_here: *path == here }).collect(),
            assets: assets::names(),
            is_live: false,
            key: visitor.key.as_deref().map(Words::of),
            tenant: tenant.map(Words::of),
            token: self.gate.sessions().token(visitor.session.as_deref()),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// The same, of a page that is fetched again by itself.
    fn live(&self, title: &'static str, here: &'static str, visitor: &Visitor, caller: &Caller) -> Frame {
        Frame { is_live: true, ..self.frame(title, here, visitor, Some(caller)) }
    }

    fn now(&self) -> Timestamp {
        (self.app.world.now)()
    }

    /// A refusal as a page, with what to do about it.
    fn refused(&self, error: &Error, visitor: &Visitor, caller: &Caller) -> Response {
        let status = match error.code {
            Code::UnknownTrace => StatusCode::NOT_FOUND,
            _ => StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        };
        let mut frame = self.frame("Not shown", "", visitor, Some(caller));
        frame.is_live = error.retryable;
        let page = Refusal {
            frame,
            code: error.code.as_str(),
            message: Words::of(&error.message),
            // Some messages begin with it.
            field: error.field.as_deref().filter(|field| !error.message.starts_with(*field)).map(Words::of),
            // What a program that calls a tool should do is nothing a reader of a page can do.
            recovery: match error.retryable {
                true => vec![Words::of("if it stays, the page System says how the store is doing")],
                false => error.recovery.iter().map(|step| Words::of(step)).collect(),
            },
        };
        (status, html(&page)).into_response()
    }
}

#[derive(Template)]
#[template(path = "refusal.html")]
struct Refusal {
    frame: Frame,
    code: &'static str,
    message: Words,
    field: Option<Words>,
    recovery: Vec<Words>,
}

/// The answer to a person who asks for a page that does not exist.
pub(super) fn no_page() -> Response {
    let page = Refusal {
        frame: Frame {
            title: "Not found",
            places: PLACES.iter().map(|(path, name)| Place { path, name, is_here: false }).collect(),
            assets: assets::names(),
            is_live: false,
            key: None,
            tenant: None,
            token: String::new(),
            version: env!("CARGO_PKG_VERSION"),
        },
        code: "404",
        message: Words::of("No page has this address."),
        field: None,
        recovery: vec![
            Words::of("the pages are named above"),
            Words::of("programs find what they may ask at /api/v1/openapi.json"),
        ],
    };
    (StatusCode::NOT_FOUND, html(&page)).into_response()
}

/// A page as an answer.
fn html(page: &impl Template) -> Response {
    let mut response = match page.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page could not be written").into_response()
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The first thing to do where nothing has come yet: what an SDK must be told to send here.
struct Start {
    http: Option<String>,
    grpc: Option<String>,
    needs_key: bool,
    /// How many spans came all the same, where one tenant's pages may say so.
    spans: Option<String>,
}

impl Room {
    fn start(&self) -> Start {
        let doors = self.around.doors.clone();
        let needs_key = self.gate.asks_for_keys();
        let counters = if needs_key { Vec::new() } else { (self.around.counters)() };
        let spans = counters.iter().filter(|counter| counter.name == ACCEPTED_SPANS).map(|counter| counter.value).sum();
        let spans = (spans > 0).then(|| format::count(spans));
        Start { http: doors.http, grpc: doors.grpc, needs_key, spans }
    }
}

fn may_change(caller: &Caller) -> bool {
    caller.may(Scope::Admin)
}

#[cfg(test)]
mod tests;
