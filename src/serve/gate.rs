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

use super::{Anonymous, Config, in_json, message};
use crate::door::{Guard, Holder, KeyConfig, KeyRing, Rate, Unwelcome};
use crate::tools::Caller;

/// The name under which everybody without a key is counted.
const NOBODY: &str = "";

/// Who may enter.
#[derive(Clone)]
pub(super) struct Gate {
    guard: Arc<Guard>,
    keys: KeyRing,
    anonymous: Anonymous,
    mcp: Arc<Rate>,
    api: Arc<Rate>,
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
        })
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
    if !is_open(request.uri().path()) {
        let (caller, name) = match gate.admit(&request) {
            Ok(admitted) => admitted,
            Err(unwelcome) => return unwelcomed(unwelcome, is_mcp),
        };
        let rate = if is_mcp { &gate.mcp } else { &gate.api };
        if let Err(wait) = rate.take(&name) {
            return too_often(wait, is_mcp);
        }
        request.extensions_mut().insert(caller);
    }
    let response = next.run(request).await;
    let mut response = in_json(response, is_mcp).await;
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// What is answered without a key: the health check, and where clients ask whether there is an authorization server.
/// There is none, and only a plain 404 says so: at a 401 they would try to register.
fn is_open(path: &str) -> bool {
    let is_sought = ["/.well-known/", "/mcp/.well-known/"].iter().any(|folder| path.starts_with(folder));
    is_sought || matches!(path, "/api/v1/health" | "/register")
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
