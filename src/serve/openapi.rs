//! The OpenAPI document, made of the table of routes and the contract.

use serde_json::{Map, Value, json};

use super::routes::{ROUTES, Route};

/// Describes the API.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "iris-sidecar",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Finds and judges the traces of AI agents. A parameter that a path does not have is refused by name.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Error": error() },
        },
    })
}

fn operation(route: &Route) -> Value {
    let (query, body) = route.takes();
    let mut parameters = Vec::new();
    for name in route.path.split(['{', '}']).skip(1).step_by(2) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    for (name, schema) in query.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|fields| fields.shift_remove("description"));
        parameters.push(json!({ "name": name, "in": "query", "description": description, "schema": schema }));
    }
    let refused = json!({
        "description": "Refused or failed; message says why in one sentence",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            route.status.to_string(): {
                "description": "Done",
                "content": { "application/json": { "schema": route.gives() } },
            },
            "default": refused,
        },
    });
    if let Some(schema) = body {
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    // Where no key is set, none is needed.
    operation["security"] = if route.path == "/health" { json!([]) } else { json!([{}, { "key": [] }]) };
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(route.method.to_ascii_lowercase()).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}

fn error() -> Value {
    let codes: Vec<&str> = iris_core::contract::Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "message": { "type": "string" },
            "error": {
                "description": "A sentence where the request did not reach a tool, else the failure itself",
                "oneOf": [
                    { "type": "string" },
                    {
                        "type": "object",
                        "required": ["code", "message", "recovery", "retryable"],
                        "properties": {
                            "code": { "type": "string", "enum": codes },
                            "message": { "type": "string" },
                            "recovery": { "type": "array", "items": { "type": "string" } },
                            "retryable": { "type": "boolean" },
                            "field": { "type": "string" },
                            "valid": { "type": "array", "items": { "type": "string" } },
                            "see": { "type": "string" },
                            "kind": { "type": "string" },
                            "retryAfterMs": { "type": "integer" },
                        },
                    },
                ],
            },
        },
    })
}
