//! The HTTP API: the tools by name, and the readings a page or a script wants.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, http};
use iris_core::contract::{Error, NoArgs, parse, printable};
use serde_json::{Map, Value, json};

use super::message::too_large;
use super::routes::{Does, ROUTES, Route};
use super::{openapi, read_body};
use crate::telemetry::Seldom;
use crate::tools::{App, Caller};

/// The routes under `/api/v1`.
pub(super) fn routes(app: Arc<App>, message_bytes_max: usize) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| !matches!(route.does, Does::Rules(_))) {
        router = router.route(route.path, method(route, Arc::clone(&app), message_bytes_max));
    }
    router
        .merge(super::rules::routes(app, message_bytes_max))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
}

fn method(route: &'static Route, app: Arc<App>, message_bytes_max: usize) -> MethodRouter {
    let filter = if route.method == "POST" { MethodFilter::POST } else { MethodFilter::GET };
    let answer = move |caller: Option<Extension<Caller>>,
                       Path(path): Path<HashMap<String, String>>,
                       RawQuery(query): RawQuery,
                       headers: HeaderMap,
                       body: Body| {
        let app = Arc::clone(&app);
        async move {
            let asked = Asked { route, path, query: query.unwrap_or_default(), headers, body };
            let caller = caller.map(|Extension(caller)| caller);
            match asked.answer(&app, caller.as_ref(), message_bytes_max).await {
                Ok(Answer::Value(value)) => {
                    let status = StatusCode::from_u16(route.status).unwrap_or(StatusCode::OK);
                    (status, Json(value)).into_response()
                }
                Ok(Answer::Whole(response)) => response,
                Err(error) => refused(&error),
            }
        }
    };
    on(filter, answer)
}

/// One request.
struct Asked {
    route: &'static Route,
    path: HashMap<String, String>,
    query: String,
    headers: HeaderMap,
    body: Body,
}

enum Answer {
    Value(Value),
    Whole(Response),
}

impl Asked {
    async fn answer(self, app: &App, caller: Option<&Caller>, message_bytes_max: usize) -> Result<Answer, Error> {
        let route = self.route;
        if route.does == Does::Health {
            return Ok(Answer::Whole(health(app)));
        }
        // The gate names a caller on every path but the open ones.
        let Some(caller) = caller else { return Ok(Answer::Whole(http::StatusCode::UNAUTHORIZED.into_response())) };
        let query = query_json(&self.query, &route.takes().0)?;
        let named = self.path.values().next().map(String::as_str).unwrap_or_default().to_owned();
        let value = match route.does {
            // Served by rooms of their own.
            Does::Health | Does::Rules(_) => Value::Null,
            Does::Asked(tool) => app.call(tool, query, caller).await?,
            Does::Evaluations => app.evaluations(&parse(query)?, caller).await?,
            Does::Summary => app.summary(&parse(query)?, caller).await?,
            Does::Capabilities => parse::<NoArgs>(query).map(|_| app.capabilities(caller))?.await?,
            Does::Proof => parse::<NoArgs>(query).and_then(|_| app.proof(caller))?,
            Does::OpenApi => parse::<NoArgs>(query).map(|_| openapi::document())?,
            Does::Tools => parse::<NoArgs>(query).map(|_| tools(app))?,
            Does::Trace => parse::<NoArgs>(query).map(|_| app.trace_detail(&named, caller))?.await?,
            Does::Evaluation => {
                parse::<NoArgs>(query)?;
                match app.evaluation(&named, caller).await? {
                    Some(evaluation) => evaluation,
                    None => {
                        let body = json!({ "error": "no evaluation has that id" });
                        return Ok(Answer::Whole((StatusCode::NOT_FOUND, Json(body)).into_response()));
                    }
                }
            }
            Does::Posted(_) | Does::AnyTool | Does::Purge => {
                parse::<NoArgs>(query)?;
                let tool = if let Does::Posted(tool) = route.does { tool } else { named.as_str() };
                let arguments = match body_json(&self.headers, self.body, message_bytes_max).await {
                    Ok(arguments) => arguments,
                    Err(response) => return Ok(Answer::Whole(*response)),
                };
                match route.does {
                    Does::Purge => app.purge(&parse(arguments)?, caller).await?,
                    _ => app.call(tool, arguments, caller).await?,
                }
            }
        };
        Ok(Answer::Value(value))
    }
}

/// A body as JSON; an empty one is no arguments.
pub(super) async fn body_json(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Value, Box<Response>> {
    let Some(body) = read_body(body, bytes_max).await else {
        let error = Error::invalid_argument("", too_large(bytes_max));
        return Err(Box::new((StatusCode::PAYLOAD_TOO_LARGE, Json(told(&error))).into_response()));
    };
    if !is_json(headers) {
        let body = json!({ "error": "the body must be application/json" });
        return Err(Box::new((StatusCode::UNSUPPORTED_MEDIA_TYPE, Json(body)).into_response()));
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let unread = |error: &serde_json::Error| {
        Error::invalid_argument("", format!("the body is not JSON: {}", without_text(error)))
    };
    serde_json::from_slice(&body).map_err(|error| Box::new(refused(&unread(&error))))
}

/// OTLP that came to a path of this door which is none.
static OTLP_ELSEWHERE: Seldom<()> = Seldom::new();

/// Whether it looks like OTLP, over HTTP or gRPC.
fn is_otlp(path: &str, headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    ["/v1/traces", "/v1/logs", "/v1/metrics"].iter().any(|end| path.trim_end_matches('/').ends_with(end))
        || path.starts_with("/opentelemetry.proto.collector.")
        || kind.starts_with(b"application/x-protobuf")
        || kind.starts_with(b"application/grpc")
}

/// Answers every path that does not exist.
pub(super) async fn no_route(uri: http::Uri, headers: HeaderMap) -> Response {
    if is_otlp(uri.path(), &headers)
        && let Some(times) = OTLP_ELSEWHERE.happened(())
    {
        let hint =
            "OTLP belongs to receive.http.listen or receive.grpc.listen; this door takes only spans, at /v1/traces";
        tracing::warn!(door = "web", times, hint, "a request came that this door does not serve");
    }
    let accepts = headers.get(http::header::ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") && !uri.path().starts_with("/api/") {
        return super::dashboard::no_page();
    }
    let mut valid = vec!["/mcp".to_owned()];
    for route in ROUTES {
        let path = format!("/api/v1{}", route.path);
        if !valid.contains(&path) {
            valid.push(path);
        }
    }
    (StatusCode::NOT_FOUND, Json(json!({ "error": "no such path", "valid": valid }))).into_response()
}

async fn wrong_method() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Json(json!({ "error": "this path does not take that method" }))).into_response()
}

fn health(app: &App) -> Response {
    let health = app.health();
    let status = if health["status"] == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

fn tools(app: &App) -> Value {
    let tools: Vec<Value> = app
        .offered()
        .map(|tool| {
            json!({
                "name": tool.name, "title": tool.title, "description": (tool.describe)(),
                "arguments": (tool.arguments)(), "reply": (tool.reply)(),
            })
        })
        .collect();
    json!({ "tools": tools })
}

/// A failure as this API tells it: the contract's envelope, and its sentence beside it for clients that look for one.
fn told(error: &Error) -> Value {
    let mut body = error.envelope();
    body["message"] = Value::String(error.message.clone());
    body
}

/// A reply, or a refusal.
pub(super) fn answer(reply: Result<Value, Error>) -> Response {
    match reply {
        Ok(value) => Json(value).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(told(error))).into_response();
    if let Some(wait) = error.retry_after_ms {
        let seconds = wait.div_ceil(1000).max(1);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn without_text(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}

/// Query parameters as arguments: numbers and truth values by their looks, where the schema has such a type.
pub(super) fn query_json(query: &str, schema: &Value) -> Result<Value, Error> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let (name, value) = (name.into_owned(), value.into_owned());
        // The name that the published client has for it.
        let takes_session = name == "session" && schema["properties"].get("session_id").is_some();
        let name = if takes_session { "session_id".to_owned() } else { name };
        let value = match schema["properties"][&name]["type"].as_str().unwrap_or_default() {
            "number" | "integer" | "boolean" => serde_json::from_str(&value).unwrap_or(Value::String(value)),
            _ => Value::String(value),
        };
        if fields.insert(name.clone(), value).is_some() {
            return Err(Error::invalid_argument(&printable(&name), "given twice"));
        }
    }
    Ok(Value::Object(fields))
}
