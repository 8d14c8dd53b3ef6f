//! What the protocol's conformance suite wants to meet and no product has: tools that answer with images and sounds, ask
//! back, or only fail. Served behind the same gate and transport as the product, for the suite alone.
//!
//! `cargo run --example mcp_fixture -- 127.0.0.1:PORT`

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A WAV file without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const SECRET: &str = "only the suite ever sees this";

#[derive(Clone)]
struct Fixture;

fn typed<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    // Every result says of which kind it is; one for an older peer is written without it.
    if let Some(fields) = value.as_object_mut().filter(|fields| {
        fields.contains_key("content") || fields.contains_key("messages") || fields.contains_key("completion")
    }) {
        fields.entry("resultType").or_insert_with(|| Value::String("complete".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn sealed(state: &str) -> String {
    let tag: [u8; 32] = Sha256::digest(format!("{SECRET}{state}")).into();
    let tag: String = tag.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{state}.{tag}")
}

fn opened(shown: Option<&str>) -> Result<String, ErrorData> {
    let state = shown.and_then(|shown| shown.rsplit_once('.')).map(|(state, _)| state.to_owned()).unwrap_or_default();
    if shown == Some(sealed(&state).as_str()) {
        Ok(state)
    } else {
        Err(ErrorData::invalid_params("requestState is not what was sent", None))
    }
}

fn ask_for(message: &str, name: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": { name: { "type": kind } }, "required": [name] } } })
}

fn sample(question: &str) -> Value {
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": question } }], "maxTokens": 100 } })
}

fn needs(requests: &Value, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    Ok(typed::<InputRequiredResult>(input_required(requests, state))?.into())
}

fn input_required(requests: &Value, state: Option<&str>) -> Value {
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = Value::String(sealed(state));
    }
    result
}

/// Tools that answer at once.
fn plain(name: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let embedded = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    Some(match name {
        "test_simple_text" | "test_logging_tool" | "test_streaming_elicitation" | "json_schema_2020_12_tool" => {
            text("This is a simple text response for testing.")
        }
        "test_image_content" => json!({ "content": [image] }),
        "test_audio_content" => json!({ "content": [{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }] }),
        "test_embedded_resource" => {
            json!({ "content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")] })
        }
        "test_multiple_content_types" => json!({ "content": [
            { "type": "text", "text": "Multiple content types test:" }, image,
            embedded("test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}"),
        ] }),
        "test_error_handling" => {
            let mut failed = text("This tool intentionally returns an error for testing");
            failed["isError"] = Value::Bool(true);
            failed
        }
        _ => return None,
    })
}

/// Tools that ask back.
fn asking(request: &CallToolRequestParams, capabilities: &Value) -> Option<Result<CallToolResponse, ErrorData>> {
    let answers = request.input_responses.as_ref();
    let state = request.request_state.as_deref();
    let answer =
        |name: &str| answers.and_then(|answers| answers.get(name)).filter(|answer| answer.is_object()).cloned();
    let done = |what: &Value| typed::<CallToolResult>(text(&what.to_string())).map(Into::into);
    let once = |name: &str, asked: Value| match answer(name) {
        Some(found) => done(&found),
        None => needs(&json!({ name: asked }), None),
    };
    let roots = json!({ "method": "roots/list", "params": {} });
    let name = || ask_for("What is your name?", "name", "string");
    Some(match request.name.strip_prefix("test_input_required_result_")? {
        "elicitation" => once("user_name", name()),
        "sampling" => once("capital_question", sample("What is the capital of France?")),
        "list_roots" => once("client_roots", roots),
        "capabilities" => {
            let mut asked = Map::new();
            for (capability, name, request) in [("elicitation", "who", name()), ("sampling", "what", sample("Well?"))] {
                if capabilities.get(capability).is_some() {
                    asked.insert(name.to_owned(), request);
                }
            }
            needs(&Value::Object(asked), None)
        }
        "request_state" | "tampered_state" => match answer("confirm") {
            Some(_) => opened(state).and_then(|_| done(&json!("state-ok"))),
            None if state.is_some() => opened(state).and_then(|_| done(&json!("state-ok"))),
            None => needs(&json!({ "confirm": ask_for("Please confirm", "ok", "boolean") }), Some("confirming")),
        },
        "multiple_inputs" => {
            let names = ["user_name", "greeting", "client_roots"];
            match names.iter().all(|name| answer(name).is_some()) {
                true => opened(state).and_then(|_| done(&json!("all of it"))),
                false => {
                    let asked = json!({ names[0]: name(), names[1]: sample("Generate a greeting"), names[2]: roots });
                    needs(&asked, Some("three"))
                }
            }
        }
        "multi_round" => match (answer("step1"), answer("step2")) {
            (_, Some(_)) => opened(state).and_then(|_| done(&json!("both steps"))),
            (Some(_), None) => opened(state).and_then(|_| {
                let asked = ask_for("Step 2: What is your favorite color?", "color", "string");
                needs(&json!({ "step2": asked }), Some("second"))
            }),
            _ => needs(&json!({ "step1": ask_for("Step 1: What is your name?", "name", "string") }), Some("first")),
        },
        _ => return None,
    })
}

/// Every tool; the names are all that the suite looks at, but for one schema.
fn tools() -> Value {
    let schema_2020_12 = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
        "properties": {
            "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] }, "else": { "required": ["email"] }, "additionalProperties": false,
    });
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_progress",
        "test_missing_capability",
        "test_logging_tool",
        "test_streaming_elicitation",
        "json_schema_2020_12_tool",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_capabilities",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
    ];
    names
        .iter()
        .map(|name| {
            let schema = match *name {
                "json_schema_2020_12_tool" => schema_2020_12.clone(),
                _ => json!({ "type": "object" }),
            };
            json!({ "name": name, "description": "for the suite", "inputSchema": schema })
        })
        .collect()
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(typed(tools())?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = serde_json::to_value(context.meta.client_capabilities()).unwrap_or_default();
        if let Some(answer) = plain(&request.name) {
            return typed::<CallToolResult>(answer).map(Into::into);
        }
        if let Some(asked) = asking(&request, &capabilities) {
            return asked;
        }
        match &*request.name {
            "test_missing_capability" if capabilities.get("sampling").is_none_or(Value::is_null) => {
                let needed = json!({ "requiredCapabilities": { "sampling": {} } });
                Err(ErrorData::new(ErrorCode(-32021), "sampling is needed", Some(needed)))
            }
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for done in [0.0, 50.0, 100.0] {
                        let told = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
                        let _ = context.peer.notify_progress(told).await;
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                typed::<CallToolResult>(text("done")).map(Into::into)
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = ["test://static-text", "test://static-binary"].map(|uri| json!({ "uri": uri, "name": uri }));
        Ok(ListResourcesResult::with_all_items(typed(json!(all))?))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = json!([{ "uriTemplate": "test://template/{id}/data", "name": "template" }]);
        Ok(ListResourceTemplatesResult::with_all_items(typed(all)?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri.as_str(), id) {
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
            (_, Some(id)) => {
                let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": text.to_string() })
            }
            _ => return Err(ErrorData::resource_not_found("nothing is there", None)),
        };
        Ok(ReadResourceResult::new(vec![typed(contents)?]).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({ "name": name, "required": true });
        let all = json!([
            { "name": "test_simple_prompt", "description": "for the suite" },
            { "name": "test_prompt_with_arguments", "description": "for the suite", "arguments": [argument("arg1"), argument("arg2")] },
            { "name": "test_prompt_with_embedded_resource", "description": "for the suite", "arguments": [argument("resourceUri")] },
            { "name": "test_prompt_with_image", "description": "for the suite" },
            { "name": "test_input_required_result_prompt", "description": "for the suite" },
        ]);
        Ok(ListPromptsResult::with_all_items(typed(all)?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
        let says = |content: Value| json!({ "role": "user", "content": content });
        let words = |text: &str| says(json!({ "type": "text", "text": text }));
        let messages = match &*request.name {
            "test_simple_prompt" => vec![words("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                vec![words(&format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
            }
            "test_prompt_with_embedded_resource" => {
                let resource = json!({ "uri": given("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing." });
                vec![
                    says(json!({ "type": "resource", "resource": resource })),
                    words("Please process the embedded resource above."),
                ]
            }
            "test_prompt_with_image" => {
                vec![
                    says(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                    words("Please analyze the image above."),
                ]
            }
            "test_input_required_result_prompt" => {
                let answer = request.input_responses.as_ref().and_then(|answers| answers.get("user_context"));
                match answer {
                    Some(context) => vec![words(&context.to_string())],
                    None => {
                        let asked = ask_for("What context should the prompt use?", "context", "string");
                        let asked = input_required(&json!({ "user_context": asked }), None);
                        return Ok(typed::<InputRequiredResult>(asked)?.into());
                    }
                }
            }
            other => return Err(ErrorData::invalid_params(format!("no prompt {other}"), None)),
        };
        Ok(typed::<GetPromptResult>(json!({ "messages": messages }))?.into())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        typed(json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: mcp_fixture ADDRESS"))?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    let config = iris_sidecar::serve::Config {
        rate_limit: iris_sidecar::serve::RateLimit { mcp: 0, api: 0 },
        ..iris_sidecar::serve::Config::default()
    };
    iris_sidecar::serve::serve_handler(listener, &config, 1024 * 1024, || Ok(Fixture)).await?;
    Ok(())
}
