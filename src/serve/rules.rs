//! The HTTP API's rooms for rules: what is deployed, a preview, and the log of changes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, patch, post};
use axum::{Extension, Router};
use iris_core::contract::{
    Arguments, AuditArgs, DeleteRuleArgs, DeployRuleArgs, Error, ListRulesArgs, NoArgs, PreviewRuleArgs, SwitchArgs,
    arguments_schema, parse,
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
    async fn listed(&self, query: Option<String>, caller: &Caller) -> Result<Value, Error> {
        let query = query_json(query.as_deref().unwrap_or_default(), &arguments_schema::<ListRulesArgs>())?;
        self.app.call("list_rules", query, caller).await
    }

    async fn read<A>(&self, headers: &HeaderMap, body: Body) -> Result<A, Box<Response>>
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema + Arguments + 'static,
    {
        let value = body_json(headers, body, self.message_bytes_max).await?;
        parse(value).map_err(|error| Box::new(answer(Err(error))))
    }
}

async fn list(State(room): State<Room>, Extension(caller): Extension<Caller>, RawQuery(query): RawQuery) -> Response {
    answer(room.listed(query, &caller).await)
}

async fn built_in(
    State(room): State<Room>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = query_json(query.as_deref().unwrap_or_default(), &Value::Null).and_then(parse::<NoArgs>);
    if let Err(error) = asked {
        return answer(Err(error));
    }
    answer(room.listed(None, &caller).await.map(|mut rules| json!({ "rules": rules["built_in"].take() })))
}

async fn custom(State(room): State<Room>, Extension(caller): Extension<Caller>, RawQuery(query): RawQuery) -> Response {
    let without_roster = |mut rules: Value| {
        if let Value::Object(fields) = &mut rules {
            fields.remove("built_in");
        }
        rules
    };
    answer(room.listed(query, &caller).await.map(without_roster))
}

async fn deploy(
    State(room): State<Room>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(error) = room.app.admit("deploy_rule", &caller) {
        return answer(Err(error));
    }
    let args: DeployRuleArgs = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    if !args.name.chars().all(plain) {
        let why = "letters, digits, dot, hyphen and underscore; deploy_rule takes other names";
        return answer(Err(Error::invalid_argument("name", why)));
    }
    match room.app.deploy_rule(args, &caller, USER).await {
        Ok(reply) => (StatusCode::CREATED, Json(room.app.shown(json!(reply)))).into_response(),
        Err(error) => answer(Err(error)),
    }
}

async fn preview(
    State(room): State<Room>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(error) = room.app.admit("get_traces", &caller) {
        return answer(Err(error));
    }
    let args: PreviewRuleArgs = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    match room.app.preview_rule(args, &caller).await {
        Err(error) if is_rejected(&error) => {
            let body = json!({ "error": "Rule definition rejected", "message": error.message, "field": error.field });
            (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
        }
        reply => answer(reply),
    }
}

async fn switch(
    State(room): State<Room>,
    Extension(caller): Extension<Caller>,
    Path(rule_id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let SwitchArgs { enabled } = match room.read(&headers, body).await {
        Ok(args) => args,
        Err(refused) => return *refused,
    };
    match room.changed(rule_id, Some(enabled), &caller).await {
        Ok(reply) if reply.toggled == Some(true) => Json(room.app.shown(json!(reply))).into_response(),
        Ok(_) => not_found(),
        Err(error) => answer(Err(error)),
    }
}

async fn delete(
    State(room): State<Room>,
    Extension(caller): Extension<Caller>,
    Path(rule_id): Path<String>,
) -> Response {
    match room.changed(rule_id, None, &caller).await {
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
        caller: &Caller,
    ) -> Result<iris_core::contract::DeleteRuleReply, Error> {
        self.app.admit("delete_rule", caller)?;
        let args = DeleteRuleArgs { rule_id, enabled };
        args.check()?;
        self.app.delete_rule(args, caller, USER).await
    }
}

async fn audit(State(room): State<Room>, Extension(caller): Extension<Caller>, RawQuery(query): RawQuery) -> Response {
    let args = room
        .app
        .admit("list_rules", &caller)
        .and_then(|()| query_json(query.as_deref().unwrap_or_default(), &arguments_schema::<AuditArgs>()))
        .and_then(parse::<AuditArgs>);
    match args {
        Ok(args) => answer(room.app.audit(args, &caller).await),
        Err(error) => answer(Err(error)),
    }
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "error": "no rule has that id" }))).into_response()
}
