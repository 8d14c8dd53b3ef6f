//! Who enters the web door: Host and Origin first, then the key, then how often; nothing of a body is read before.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use iris_core::contract::Scope;
use iris_core::model::Tenant;

use super::dashboard::session::{Digest, Sessions};
use super::{Anonymous, Config, dashboard, in_json, message};
use crate::door::{Guard, Holder, KeyConfig, KeyRing, Rate, Unwelcome};
use crate::tools::Caller;

/// The name under which everybody without a key is counted.
const NOBODY: &str = "";

/// Keys that may be tried in a minute to sign in.
const SIGN_INS: u32 = 120;

/// Who may enter.
#[derive(Clone)]
pub(super) struct Gate {
    guard: Arc<Guard>,
    keys: KeyRing,
    anonymous: Anonymous,
    mcp: Arc<Rate>,
    api: Arc<Rate>,
    sign_ins: Arc<Rate>,
    sessions: Arc<Sessions>,
}

impl Gate {
    /// The gate of the door at `address`.
    ///
    /// # Errors
    /// A key that cannot be read, or that two names share.
    pub(super) fn new(config: &Config, keys: &[KeyConfig], address: std::net::SocketAddr) -> Result<Self, String> {
        let file = config.api_key_file.clone().map(|path| ("web.api_key_file", path));
        let owner = Holder {
            name: "web.api_key".to_owned(),
            tenant: Tenant::local(),
            scopes: Scope::ALL.to_vec(),
            may_set_tenant: false,
        };
        Ok(Self {
            guard: Arc::new(Guard::new(address, &config.allowed_hosts, &config.allowed_origins)),
            keys: KeyRing::read(keys, config.api_key.clone(), file, owner)?,
            anonymous: config.anonymous,
            mcp: Arc::new(Rate::per_minute(config.rate_limit.mcp)),
            api: Arc::new(Rate::per_minute(config.rate_limit.api)),
            sign_ins: Arc::new(Rate::per_minute(SIGN_INS)),
            sessions: Arc::new(Sessions::new(address.port(), config.tls.is_on(), crate::telemetry::random)),
        })
    }

    /// The browsers that are signed in.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// How often signing in may be tried.
    pub(super) fn sign_ins(&self) -> &Rate {
        &self.sign_ins
    }

    /// Whether callers need a key.
    pub(super) fn asks_for_keys(&self) -> bool {
        !self.keys.now().is_empty()
    }

    /// Who holds the key of which this is the digest.
    pub(super) fn holder(&self, key: &Digest) -> Option<Arc<Holder>> {
        self.keys.now().holder(key)
    }

    /// Who looks at a page: whoever shows a key, is signed in, or needs no key.
    fn visit(&self, request: &Request) -> Result<(Caller, String, dashboard::Visitor), Unwelcome> {
        let found = self.sessions.find(request.headers()).filter(|_| self.asks_for_keys());
        let found = found.and_then(|(session, key)| Some((session, self.holder(&key)?)));
        if let Some((session, holder)) = found {
            let visitor = dashboard::Visitor { session: Some(session), key: Some(holder.name.clone()) };
            return Ok((Caller::from(&*holder), holder.name.clone(), visitor));
        }
        let (caller, name) = self.admit(request)?;
        Ok((caller, name, dashboard::Visitor::default()))
    }

    /// Who asks, and the name that is counted.
    fn admit(&self, request: &Request) -> Result<(Caller, String), Unwelcome> {
        let keys = self.keys.now();
        if !keys.is_empty() {
            let holder = keys.admit(request.headers())?;
            return Ok((Caller::from(&*holder), holder.name.clone()));
        }
        let caller = match self.anonymous {
            Anonymous::All => Caller::local(),
            Anonymous::Read => Caller::onlooker(),
        };
        Ok((caller, NOBODY.to_owned()))
    }
}

/// Lets a request in, with the caller it comes from among its extensions.
pub(super) async fn enter(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let is_mcp = matches!(request.uri().path(), "/mcp" | "/mcp/");
    if let Err(refused) = gate.guard.check(request.uri(), request.headers()) {
        return refusal(StatusCode::FORBIDDEN, &refused.to_string(), is_mcp);
    }
    let is_page = dashboard::is_page(request.uri().path());
    if !is_open(request.uri().path()) {
        let admitted = match is_page {
            true => gate.visit(&request),
            false => gate.admit(&request).map(|(caller, name)| (caller, name, dashboard::Visitor::default())),
        };
        let (caller, name, visitor) = match admitted {
            Ok(admitted) => admitted,
            Err(Unwelcome::Missing) if is_page => return dashboard::to_sign_in(&request),
            Err(unwelcome) => return unwelcomed(unwelcome, is_mcp),
        };
        request.extensions_mut().insert(visitor);
        let rate = if is_mcp { &gate.mcp } else { &gate.api };
        if let Err(wait) = rate.take(&name) {
            return too_often(wait, is_mcp);
        }
        request.extensions_mut().insert(caller);
    }
    let response = next.run(request).await;
    let mut response = if is_page { response } else { in_json(response, is_mcp).await };
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// What is answered without a key: the health check, where one signs in and what that page loads, and where clients ask whether there is an authorization server.
/// There is none, and only a plain 404 says so: at a 401 they would try to register.
fn is_open(path: &str) -> bool {
    let is_sought = ["/.well-known/", "/mcp/.well-known/"].iter().any(|folder| path.starts_with(folder));
    is_sought || matches!(path, "/api/v1/health" | "/register") || dashboard::is_open(path)
}

fn unwelcomed(unwelcome: Unwelcome, is_mcp: bool) -> Response {
    let status = match unwelcome {
        Unwelcome::Missing => StatusCode::UNAUTHORIZED,
        Unwelcome::Wrong | Unwelcome::NoTenant => StatusCode::FORBIDDEN,
    };
    let mut response = refusal(status, &unwelcome.to_string(), is_mcp);
    if unwelcome == Unwelcome::Missing {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn too_often(wait: Duration, is_mcp: bool) -> Response {
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let setting = if is_mcp { "web.rate_limit.mcp" } else { "web.rate_limit.api" };
    let why = format!("too many requests ({setting}); come back in {seconds} s");
    let body = match is_mcp {
        true => message::Refusal::too_often(&why).to_value(),
        false => serde_json::json!({ "error": why }),
    };
    let mut response = (StatusCode::TOO_MANY_REQUESTS, axum::Json(body)).into_response();
    if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// A refusal in the words of the path it answers.
pub(super) fn refusal(status: StatusCode, message: &str, is_mcp: bool) -> Response {
    let body = match is_mcp {
        true => message::Refusal::not_served(message).to_value(),
        false => serde_json::json!({ "error": message }),
    };
    (status, axum::Json(body)).into_response()
}
