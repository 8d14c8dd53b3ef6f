//! MCP over any transport: the contract's table, dispatched by hand.
//!
//! By hand, because a refused argument must come back as `IRIS_INVALID_ARGUMENT` with the valid names, inside the
//! tool result where a model reads it, not as a protocol error that clients hide.

use std::sync::Arc;

use iris_core::contract::{self, Entry, TOOLS};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use crate::tools::{App, Caller};

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
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
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
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        Ok(self.call(&request.name, arguments).await.into())
    }
}

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
