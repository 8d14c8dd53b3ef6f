//! MCP over any transport: the contract's table, dispatched by hand.
//!
//! By hand, because a refused argument must come back as `IRIS_INVALID_ARGUMENT` with the valid names, inside the
//! tool result where a model reads it, not as a protocol error that clients hide.

use std::sync::{Arc, LazyLock};

use iris_core::contract::{self, Entry, RESOURCES};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument,
    PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::paid::Made;
use crate::tools::{App, Caller, NotRead, StoredText};

/// The least a message may be allowed, in bytes: a greeting and a small call.
const MESSAGE_BYTES_LEAST: u64 = 64 * 1024;

/// The most: what one record of the journal may hold is below it.
const MESSAGE_BYTES_MOST: u64 = 64 * 1024 * 1024;

/// What a reply may be bounded to, in bytes of text.
const REPLY_BYTES_LEAST: u64 = 16 * 1024;
const REPLY_BYTES_MOST: u64 = 8 * 1024 * 1024;

/// Settings of the tools, whichever door they are called through.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The largest message, in bytes: a line on standard input or the socket, a request body over HTTP. 65536 to
    /// 67108864.
    pub message_bytes_max: u64,
    /// The text of a reply over MCP up to which its values are whole, in bytes: above, long ones are cut and can be read
    /// in pieces. Clients are known to refuse replies of 25,000 tokens. 16384 to 8388608.
    pub reply_bytes_max: u64,
    /// What agents, users and tools wrote, as replies carry it: `marked` names the fields, `fenced` puts marks around each
    /// value, `omitted` leaves it out.
    pub stored_text: StoredText,
    /// Offer only the tools that read.
    pub read_only: bool,
    /// Offer query_sql: one SELECT over views of the caller's traces, to keys with the scope admin.
    pub sql: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            message_bytes_max: 8 * 1024 * 1024,
            reply_bytes_max: 48 * 1024,
            stored_text: StoredText::default(),
            read_only: false,
            sql: false,
        }
    }
}

impl Config {
    /// What is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let bounds = [
            ("message_bytes_max", self.message_bytes_max, MESSAGE_BYTES_LEAST, MESSAGE_BYTES_MOST),
            ("reply_bytes_max", self.reply_bytes_max, REPLY_BYTES_LEAST, REPLY_BYTES_MOST),
        ];
        let wrong = bounds.iter().filter(|(_, bytes, least, most)| !(least..=most).contains(&bytes));
        wrong
            .map(|(key, bytes, least, most)| format!("mcp.{key} is {bytes} bytes: valid is {least} to {most}"))
            .collect()
    }

    /// The bound of a reply as a length.
    pub fn reply_bytes(&self) -> usize {
        usize::try_from(self.reply_bytes_max).unwrap_or(usize::MAX)
    }

    /// The limit as a length.
    pub fn message_bytes(&self) -> usize {
        usize::try_from(self.message_bytes_max).unwrap_or(usize::MAX)
    }
}

/// Serves the tools, the resources and the prompt to MCP peers.
#[derive(Clone)]
pub struct Mcp {
    app: Arc<App>,
    /// Who calls; over HTTP the gate says it of each request.
    caller: Option<Caller>,
    /// The peer is a process of ours: what it says a call became is believed.
    believes: bool,
}

impl Mcp {
    /// A handler that calls tools as `caller`.
    pub fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller: Some(caller), believes: false }
    }

    /// The same for a process of ours, which may have asked a model itself.
    pub(super) fn believing(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller: Some(caller), believes: true }
    }

    /// A handler that calls tools as whoever the gate let in.
    pub(super) fn of_request(app: Arc<App>) -> Self {
        Self { app, caller: None, believes: false }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let of_request = || context.extensions.get::<axum::http::request::Parts>()?.extensions.get::<Caller>().cloned();
        let caller = self.caller.clone().or_else(of_request);
        let caller = caller.map(|caller| caller.with_model(self.app.facts.reply_bytes_max));
        caller.ok_or_else(|| ErrorData::internal_error("nobody is known to call", None))
    }

    async fn call(&self, name: &str, arguments: Value, caller: &Caller) -> CallToolResult {
        Self::told(name, self.app.call(name, arguments, caller).await)
    }

    /// A call of which a process of ours says what it became.
    async fn made(&self, name: &str, arguments: Value, made: Made, caller: &Caller) -> CallToolResult {
        let judged = match made {
            Made::Failed(envelope) => return CallToolResult::structured_error(envelope),
            Made::Asks => None,
            Made::Judged(judged) => Some(*judged),
        };
        Self::told(name, self.app.keep_made(name, arguments, judged, caller).await)
    }

    fn told(name: &str, reply: Result<Value, contract::Error>) -> CallToolResult {
        let (mut result, links) = match reply {
            Ok(reply) => {
                let links = contract::links(name, &reply);
                (CallToolResult::structured(reply), links)
            }
            Err(error) => {
                (CallToolResult::structured_error(error.envelope()), vec![contract::CAPABILITIES.uri.to_owned()])
            }
        };
        result.content.extend(links.iter().filter_map(|uri| link(uri)));
        result
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("iris-sidecar", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.app.instructions())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(self.app.offered().map(describe).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        contract::tool(name).map(describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A tool that does not exist is a mistake of the program, not of the model: the protocol answers it.
        if !contract::tool(&request.name).is_some_and(|tool| self.app.offers(tool)) {
            let valid: Vec<&str> = self.app.offered().map(|tool| tool.name).collect();
            let message = format!("no tool has that name; valid: {}", valid.join(", "));
            return Err(ErrorData::invalid_params(message, Some(json!({ "valid": valid }))));
        }
        let caller = self.caller(&context)?;
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        if let Some(made) = Made::of(&request.name, &context.meta).filter(|_| self.believes) {
            return Ok(self.made(&request.name, arguments, made, &caller).await.into());
        }
        Ok(self.call(&request.name, arguments, &caller).await.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        let fixed = RESOURCES.iter().filter(|one| !one.is_template());
        Ok(ListResourcesResult::with_all_items(fixed.map(|one| resource(one, one.uri)).collect()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let families = RESOURCES.iter().filter(|one| one.is_template());
        let described = families.map(|one| {
            ResourceTemplate::new(one.uri, one.name)
                .with_title(one.title)
                .with_description(one.description)
                .with_mime_type(JSON)
        });
        Ok(ListResourceTemplatesResult::with_all_items(described.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        match self.app.read_resource(&request.uri, &caller).await {
            Ok(value) => {
                let contents = ResourceContents::text(value.to_string(), request.uri).with_mime_type(JSON);
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Err(NotRead::Unknown) => {
                let valid: Vec<&str> = RESOURCES.iter().map(|one| one.uri).collect();
                let message = format!("nothing is at that address; valid: {}", valid.join(", "));
                Err(ErrorData::resource_not_found(message, Some(json!({ "valid": valid }))))
            }
            Err(NotRead::Failed(error)) => {
                Err(ErrorData::new(ErrorCode(UNAVAILABLE), error.message.clone(), Some(error.envelope())))
            }
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        let what = PromptArgument::new(contract::PROMPT_ARGUMENT)
            .with_description(contract::PROMPT_ARGUMENT_DESCRIPTION)
            .with_required(false);
        let prompt = Prompt::new(contract::PROMPT_NAME, Some(contract::PROMPT_DESCRIPTION), Some(vec![what]))
            .with_title(contract::PROMPT_TITLE);
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != contract::PROMPT_NAME {
            let message = format!("no prompt has that name; valid: {}", contract::PROMPT_NAME);
            return Err(ErrorData::invalid_params(message, None));
        }
        let given = request.arguments.unwrap_or_default();
        let is_known = |name: &String| name == contract::PROMPT_ARGUMENT;
        let what = given.get(contract::PROMPT_ARGUMENT).map_or(Some(contract::PROMPT_CHOICES[0]), Value::as_str);
        let what = what.filter(|what| contract::PROMPT_CHOICES.contains(what));
        let (Some(what), true) = (what, given.keys().all(is_known)) else {
            let choices = contract::PROMPT_CHOICES.join(" or ");
            let message = format!("the prompt takes {}: {choices}", contract::PROMPT_ARGUMENT);
            return Err(ErrorData::invalid_params(message, None));
        };
        let text = contract::prompt(what, env!("CARGO_PKG_VERSION"));
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description(contract::PROMPT_DESCRIPTION).into())
    }

    /// Whatever fits no request of the protocol: another method, or one of ours with parameters it does not have.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = contract::printable(&request.method);
        let version = context.meta.protocol_version();
        let is_gone = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
            && OF_THE_OLDER_ERA.contains(&request.method.as_str());
        match METHODS.iter().filter(|_| !is_gone).find(|(method, _)| *method == request.method) {
            Some((method, params)) => Err(ErrorData::invalid_params(format!("{method} takes {params}"), None)),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("{name} is not served"), None)),
        }
    }
}

/// The media type of every resource.
const JSON: &str = "application/json";

/// From here down to -32019 the codes are the implementation's own.
const UNAVAILABLE: i32 = -32000;

/// What protocol versions without sessions do not have any more.
const OF_THE_OLDER_ERA: &[&str] = &["initialize", "ping"];

/// What is served, and the parameters it takes.
const METHODS: &[(&str, &str)] = &[
    ("initialize", "protocolVersion, capabilities and clientInfo"),
    ("ping", NOTHING),
    ("server/discover", NOTHING),
    ("tools/list", NOTHING),
    ("tools/call", "name, a string, and optional arguments, an object"),
    ("resources/list", NOTHING),
    ("resources/templates/list", NOTHING),
    ("resources/read", "uri, a string"),
    ("prompts/list", NOTHING),
    ("prompts/get", "name, a string, and optional arguments, an object"),
];

const NOTHING: &str = "no parameters but _meta";

/// Every list is one page.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|page| page.cursor) {
        Some(_) => Err(ErrorData::invalid_params("the list has one page; leave cursor out", None)),
        None => Ok(()),
    }
}

/// A resource as it stands at `uri`.
fn resource(one: &contract::Resource, uri: &str) -> Resource {
    Resource::new(uri, one.name).with_title(one.title).with_description(one.description).with_mime_type(JSON)
}

fn link(uri: &str) -> Option<ContentBlock> {
    let one = RESOURCES.iter().find(|one| one.matches(uri).is_some())?;
    Some(ContentBlock::resource_link(resource(one, uri)))
}

/// Every tool as clients are told of it, made once: a description and its schemas take longer than a call.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| contract::every_tool().map(description).collect());

/// What a client is told of a tool.
fn describe(entry: &Entry) -> Tool {
    let made = TOOLS.iter().find(|tool| tool.name == entry.name);
    made.cloned().unwrap_or_else(|| description(entry))
}

fn description(entry: &Entry) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(entry.hints.read_only)
        .destructive(entry.hints.destructive)
        .idempotent(entry.hints.idempotent)
        .open_world(entry.hints.open_world);
    Tool::new(entry.name, (entry.describe)(), object((entry.arguments)()))
        .with_title(entry.title)
        .with_raw_output_schema(object((entry.outline)()))
        .with_annotations(hints)
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
