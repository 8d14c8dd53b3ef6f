//! MCP over any transport: the contract's table, dispatched by hand.
//!
//! By hand, because a refused argument must come back as `IRIS_INVALID_ARGUMENT` with the valid names, inside the
//! tool result where a model reads it, not as a protocol error that clients hide.

use std::sync::Arc;

use iris_core::contract::{self, Entry, TOOLS};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tools::{App, Caller};

/// The least a message may be allowed, in bytes: a greeting and a small call.
const MESSAGE_BYTES_LEAST: u64 = 64 * 1024;

/// The most: what one record of the journal may hold is below it.
const MESSAGE_BYTES_MOST: u64 = 64 * 1024 * 1024;

/// Settings of the tools, whichever door they are called through.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The largest message, in bytes: a line on standard input or the socket, a request body over HTTP. 65536 to
    /// 67108864.
    pub message_bytes_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { message_bytes_max: 8 * 1024 * 1024 }
    }
}

impl Config {
    /// What is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let range = MESSAGE_BYTES_LEAST..=MESSAGE_BYTES_MOST;
        if range.contains(&self.message_bytes_max) {
            return Vec::new();
        }
        vec![format!(
            "mcp.message_bytes_max is {} bytes: valid is {MESSAGE_BYTES_LEAST} to {MESSAGE_BYTES_MOST}",
            self.message_bytes_max
        )]
    }

    /// The limit as a length.
    pub fn message_bytes(&self) -> usize {
        usize::try_from(self.message_bytes_max).unwrap_or(usize::MAX)
    }
}

/// Serves the tools to one MCP peer.
#[derive(Clone)]
pub struct Mcp {
    app: Arc<App>,
    caller: Caller,
}

impl Mcp {
    /// A handler that calls tools as `caller`.
    pub fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller }
    }

    async fn call(&self, name: &str, arguments: Value) -> CallToolResult {
        match self.app.call(name, arguments, &self.caller).await {
            Ok(reply) => CallToolResult::structured(reply),
            Err(error) => CallToolResult::structured_error(error.envelope()),
        }
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("iris-sidecar", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.app.instructions())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list has one page; leave cursor out", None));
        }
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(describe).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        contract::tool(name).map(describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A tool that does not exist is a mistake of the program, not of the model: the protocol answers it.
        if contract::tool(&request.name).is_none() {
            let valid: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("no tool has that name; valid: {}", valid.join(", "));
            return Err(ErrorData::invalid_params(message, Some(json!({ "valid": valid }))));
        }
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        Ok(self.call(&request.name, arguments).await.into())
    }

    /// Whatever fits no request of the protocol: another method, or one of ours with parameters it does not have.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = contract::printable(&request.method);
        match METHODS.iter().find(|(method, _)| *method == request.method) {
            Some((method, params)) => Err(ErrorData::invalid_params(format!("{method} takes {params}"), None)),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("{name} is not served"), None)),
        }
    }
}

/// What is served, and the parameters it takes.
const METHODS: &[(&str, &str)] = &[
    ("initialize", "protocolVersion, capabilities and clientInfo"),
    ("ping", "no parameters but _meta"),
    ("server/discover", "no parameters but _meta"),
    ("tools/list", "no parameters but _meta"),
    ("tools/call", "name, a string, and optional arguments, an object"),
];

/// What a client is told of a tool.
fn describe(entry: &Entry) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(entry.hints.read_only)
        .destructive(entry.hints.destructive)
        .idempotent(entry.hints.idempotent)
        .open_world(entry.hints.open_world);
    Tool::new(entry.name, (entry.describe)(), object((entry.arguments)()))
        .with_title(entry.title)
        .with_raw_output_schema(object((entry.reply)()))
        .with_annotations(hints)
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
