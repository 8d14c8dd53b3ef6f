//! The HTTP API's rooms for rules: what is deployed, a preview, and the log of changes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, patch, post};
use iris_core::contract::{
    Arguments, AuditArgs, DeleteRuleArgs, DeployRuleArgs, Error, PreviewRuleArgs, SwitchArgs, parse,
};
use serde_json::{Value, json};

use super::api::{answer, body_json, query_json};
use crate::tools::{App, Caller, is_rejected};

/// The way by which changes come here, as the log names it.
const USER: &str = "dashboard";

/// What the handlers share.
#[derive(Clone)]
struct Room {
    app: Arc<App>,
    message_bytes_max: usize,
}

/// The routes under `/api/v1`.
pub(super) fn routes(app: Arc<App>, message_bytes_max: usize) -> Router {
    Router::new()
        .route("/rules", get(list))
        .route("/rules/builtin", get(built_in))
        .route("/rules/custom", get(custom).post(deploy))
        .route("/rules/custom/preview", post(preview))
        .route("/rules/custom/{id}", patch(switch).delete(delete))
        .route("/audit", get(audit))
        .with_state(Room { app, message_bytes_max })
}

impl Room {
    /// What `list_rules` says, with the parameters that it has.
    async fn listed(&self, query: Option<String>) -> Result<Value, Error> {
        let query = query_json(query.as_deref().unwrap_or_default(), "list_rules")?;
        self.app.call("list_rules", query, &Caller::local()).await
    }

    async fn read<A>(&self, headers: &HeaderMap, body: Body) -> Result<A, Box<Response>>
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema + Arguments,
    {
        let value = body_json(headers, body, self.message_bytes_max).await?;
        parse(value).map_err(|error| Box::new(answer(Err(error))))
    }
}

async fn list(State(room): State<Room>, RawQuery(query): RawQuery) -> Response {
    answer(room.listed(query).await)
}

async fn built_in(State(room): State<Room>) -> Response {
    answer(room.listed(None).await.map(|mut rules| json!({ "rules": rules["built_in"].take() })))
}

async fn custom(State(room): State<Room>, RawQuery(query): RawQuery) -> Response {
    let without_roster = |mut rules: Value| {
        if let Value::Object(fields) = &mut rules {
            fields.remove("built_in");
        }
        rules
    };
    answer(room.listed(query).await.map(without_roster))
}

async fn deploy(State(room): State<Room>, headers: HeaderMap, body: Body) -> Response {
    let args: DeployRuleArgs = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    if !args.name.chars().all(plain) {
        let why = "letters, digits, dot, hyphen and underscore; deploy_rule takes other names";
        return answer(Err(Error::invalid_argument("name", why)));
    }
    match room.app.deploy_rule(args, &Caller::local(), USER).await {
        Ok(reply) => (StatusCode::CREATED, Json(json!(reply))).into_response(),
        Err(error) => answer(Err(error)),
    }
}

async fn preview(State(room): State<Room>, headers: HeaderMap, body: Body) -> Response {
    let args: PreviewRuleArgs = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    match room.app.preview_rule(args, &Caller::local()).await {
        Err(error) if is_rejected(&error) => {
            let body = json!({ "error": "Rule definition rejected", "message": error.message, "field": error.field });
            (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
        }
        reply => answer(reply),
    }
}

async fn switch(State(room): State<Room>, Path(rule_id): Path<String>, headers: HeaderMap, body: Body) -> Response {
    let SwitchArgs { enabled } = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    match room.changed(rule_id, Some(enabled)).await {
        Ok(reply) if reply.toggled == Some(true) => Json(json!(reply)).into_response(),
        Ok(_) => not_found(),
        Err(error) => answer(Err(error)),
    }
}

async fn delete(State(room): State<Room>, Path(rule_id): Path<String>) -> Response {
    match room.changed(rule_id, None).await {
        Ok(reply) if reply.deleted => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => not_found(),
        Err(error) => answer(Err(error)),
    }
}

impl Room {
    async fn changed(
        &self,
        rule_id: String,
        enabled: Option<bool>,
    ) -> Result<iris_core::contract::DeleteRuleReply, Error> {
        let args = DeleteRuleArgs { rule_id, enabled };
        args.check()?;
        self.app.delete_rule(args, &Caller::local(), USER).await
    }
}

async fn audit(State(room): State<Room>, RawQuery(query): RawQuery) -> Response {
    let args = query_json(query.as_deref().unwrap_or_default(), "").and_then(|mut query| {
        // Numbers among the parameters.
        for name in ["limit", "offset"] {
            if let Some(text) = query[name].as_str().map(str::to_owned) {
                query[name] = serde_json::from_str(&text).unwrap_or(Value::String(text));
            }
        }
        parse::<AuditArgs>(query)
    });
    match args {
        Ok(args) => answer(room.app.audit(args, &Caller::local()).await),
        Err(error) => answer(Err(error)),
    }
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "error": "no rule has that id" }))).into_response()
}
