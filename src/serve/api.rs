//! The HTTP API: the tools by name, and the readings a page or a script wants.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use iris_core::contract::{Error, TOOLS, printable};
use serde_json::{Map, Value, json};

use super::message::too_large;
use super::read_body;
use crate::tools::{App, Caller};

/// The routes under `/api/v1`.
pub(super) fn routes(app: Arc<App>, message_bytes_max: usize) -> Router {
    let call = move |state: State<Arc<App>>, name: Path<String>, headers: HeaderMap, body: Body| {
        tool(message_bytes_max, state, name, headers, body)
    };
    Router::new()
        .route("/health", get(health))
        .route("/tools", get(tools))
        .route("/tools/{name}", post(call))
        .route("/traces", get(traces))
        .route("/traces/{trace_id}", get(trace))
        .with_state(Arc::clone(&app))
        .merge(super::rules::routes(app, message_bytes_max))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
}

/// Answers every path that does not exist.
pub(super) async fn no_route() -> Response {
    let valid = [
        "/mcp",
        "/api/v1/health",
        "/api/v1/tools",
        "/api/v1/tools/{name}",
        "/api/v1/traces",
        "/api/v1/traces/{trace_id}",
        "/api/v1/rules",
        "/api/v1/rules/builtin",
        "/api/v1/rules/custom",
        "/api/v1/rules/custom/{id}",
        "/api/v1/rules/custom/preview",
        "/api/v1/audit",
    ];
    (StatusCode::NOT_FOUND, Json(json!({ "error": "no such path", "valid": valid }))).into_response()
}

async fn wrong_method() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Json(json!({ "error": "this path does not take that method" }))).into_response()
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let health = app.health();
    let status = if health["status"] == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

async fn tools() -> Response {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name, "title": tool.title, "description": (tool.describe)(),
                "arguments": (tool.arguments)(), "reply": (tool.reply)(),
            })
        })
        .collect();
    Json(json!({ "tools": tools })).into_response()
}

async fn tool(
    message_bytes_max: usize,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let reply = match body_json(&headers, body, message_bytes_max).await {
        Ok(arguments) => app.call(&name, arguments, &Caller::local()).await,
        Err(refused) => return *refused,
    };
    answer(reply)
}

/// A body as JSON; an empty one is no arguments.
pub(super) async fn body_json(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Value, Box<Response>> {
    let Some(body) = read_body(body, bytes_max).await else {
        let error = Error::invalid_argument("", too_large(bytes_max));
        return Err(Box::new((StatusCode::PAYLOAD_TOO_LARGE, Json(error.envelope())).into_response()));
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
    serde_json::from_slice(&body).map_err(|error| Box::new(answer(Err(unread(&error)))))
}

async fn traces(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    let reply = match query_json(query.as_deref().unwrap_or_default(), "get_traces") {
        Ok(arguments) => app.call("get_traces", arguments, &Caller::local()).await,
        Err(error) => Err(error),
    };
    answer(reply)
}

async fn trace(State(app): State<Arc<App>>, Path(trace_id): Path<String>, RawQuery(query): RawQuery) -> Response {
    if query.is_some_and(|query| !query.is_empty()) {
        return answer(Err(Error::invalid_argument("", "this path takes no query parameters")));
    }
    answer(app.trace_detail(&trace_id, &Caller::local()).await)
}

pub(super) fn answer(reply: Result<Value, Error>) -> Response {
    match reply {
        Ok(value) => Json(value).into_response(),
        Err(error) => {
            let status = StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = (status, Json(error.envelope())).into_response();
            if let Some(wait) = error.retry_after_ms {
                let seconds = wait.div_ceil(1000).max(1);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn without_text(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}

/// Query parameters as a tool's arguments: numbers and truth values by their looks, where the tool has such a type.
pub(super) fn query_json(query: &str, tool: &str) -> Result<Value, Error> {
    let schema = iris_core::contract::tool(tool).map(|tool| (tool.arguments)()).unwrap_or_default();
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let (name, value) = (name.into_owned(), value.into_owned());
        let value = match type_of(&schema, &name) {
            "number" | "integer" | "boolean" => serde_json::from_str(&value).unwrap_or(Value::String(value)),
            _ => Value::String(value),
        };
        if fields.insert(name.clone(), value).is_some() {
            return Err(Error::invalid_argument(&printable(&name), "given twice"));
        }
    }
    Ok(Value::Object(fields))
}

fn type_of<'a>(schema: &'a Value, name: &str) -> &'a str {
    match &schema["properties"][name]["type"] {
        Value::String(one) => one,
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("string")
        }
        _ => "string",
    }
}
