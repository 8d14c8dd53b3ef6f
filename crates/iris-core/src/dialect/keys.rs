//! Attribute keys, each group under the specification or source that names it.

/// The OpenTelemetry GenAI conventions and the names they had before.
/// Sources: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/> and the migration notes of
/// <https://github.com/open-telemetry/semantic-conventions-genai>.
pub mod gen_ai {
    /// Every key of the conventions starts so.
    pub const PREFIX: &str = "gen_ai.";
    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// The provider's name until 1.36.
    pub const SYSTEM: &str = "gen_ai.system";
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    pub const AGENT_NAME: &str = "gen_ai.agent.name";
    pub const WORKFLOW_NAME: &str = "gen_ai.workflow.name";
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub const RESPONSE_ID: &str = "gen_ai.response.id";
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    /// Singular, as some libraries write it.
    pub const FINISH_REASON: &str = "gen_ai.response.finish_reason";
    pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
    pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
    /// Deprecated in 1.28: the prompt as one JSON text, or as indexed keys below it.
    pub const PROMPT: &str = "gen_ai.prompt";
    /// Deprecated in 1.28: the answer as one JSON text, or as indexed keys below it.
    pub const COMPLETION: &str = "gen_ai.completion";
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
    pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Until 1.26.
    pub const PROMPT_TOKENS: &str = "gen_ai.usage.prompt_tokens";
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Until 1.26.
    pub const COMPLETION_TOKENS: &str = "gen_ai.usage.completion_tokens";
    /// Never in the conventions, but common.
    pub const TOTAL_TOKENS: &str = "gen_ai.usage.total_tokens";
    pub const LLM_TOTAL_TOKENS: &str = "llm.usage.total_tokens";
    pub const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
    pub const CACHE_READ_OLD: &str = "gen_ai.usage.cache_read_input_tokens";
    pub const CACHE_READ_DETAILS: &str = "gen_ai.usage.details.cache_read_tokens";
    pub const CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";
    pub const CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
    pub const CACHE_CREATION_OLD: &str = "gen_ai.usage.cache_creation_input_tokens";
    pub const CACHE_WRITE_OLD: &str = "gen_ai.usage.cache_write_input_tokens";
    pub const REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
    pub const REASONING_OLD: &str = "gen_ai.usage.reasoning_tokens";
    pub const REASONING_EXPERIMENTAL: &str = "gen_ai.usage.experimental.reasoning_tokens";
    pub const REASONING_DETAILS: &str = "gen_ai.usage.details.reasoning_tokens";
    /// Totals of a run on the span of its agent.
    pub const AGGREGATED_INPUT: &str = "gen_ai.aggregated_usage.input_tokens";
    pub const AGGREGATED_OUTPUT: &str = "gen_ai.aggregated_usage.output_tokens";
    /// USD; OpenLIT and others, never in the conventions.
    pub const COST: &str = "gen_ai.usage.cost";
    /// USD; LiteLLM.
    pub const TOTAL_COST: &str = "gen_ai.cost.total_cost";
    /// USD; pydantic-ai.
    pub const OPERATION_COST: &str = "operation.cost";
    /// The agent that hands over; the span is no tool.
    pub const HANDOFF_FROM: &str = "gen_ai.handoff.from_agent";
    /// Spring AI's, on spans whose operation is `framework`: <https://docs.spring.io/spring-ai/reference/observability/index.html>.
    pub const SPRING_KIND: &str = "spring.ai.kind";
    pub const SPRING_TOOL: &str = "spring.ai.tool.definition.name";
    pub const SPRING_ARGUMENTS: &str = "spring.ai.tool.call.arguments";
    pub const SPRING_RESULT: &str = "spring.ai.tool.call.result";
    /// One record with everything about one model call.
    pub const DETAILS_EVENT: &str = "gen_ai.client.inference.operation.details";
}

/// The Model Context Protocol: <https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/>.
pub mod mcp {
    pub const METHOD: &str = "mcp.method.name";
    pub const SESSION: &str = "mcp.session.id";
    /// Logfire's name for the method.
    pub const RPC_METHOD: &str = "rpc.method";
    /// The one method that runs a tool.
    pub const TOOLS_CALL: &str = "tools/call";
}

/// OpenInference: <https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md>.
pub mod openinference {
    pub const KIND: &str = "openinference.span.kind";
    pub const INPUT: &str = "input.value";
    pub const OUTPUT: &str = "output.value";
    pub const MODEL: &str = "llm.model_name";
    pub const REQUEST_MODEL: &str = "llm.request.model_name";
    pub const RESPONSE_MODEL: &str = "llm.response.model_name";
    pub const PROVIDER: &str = "llm.provider";
    pub const SYSTEM: &str = "llm.system";
    pub const INPUT_MESSAGES: &str = "llm.input_messages";
    pub const OUTPUT_MESSAGES: &str = "llm.output_messages";
    pub const FINISH_REASON: &str = "llm.finish_reason";
    pub const PROMPT_TOKENS: &str = "llm.token_count.prompt";
    pub const COMPLETION_TOKENS: &str = "llm.token_count.completion";
    pub const TOTAL_TOKENS: &str = "llm.token_count.total";
    pub const CACHE_READ: &str = "llm.token_count.prompt_details.cache_read";
    pub const CACHE_WRITE: &str = "llm.token_count.prompt_details.cache_write";
    pub const REASONING: &str = "llm.token_count.completion_details.reasoning";
    pub const COST: &str = "llm.cost.total";
    pub const COST_OLD: &str = "llm.usage.total_cost";
    pub const TOOL_NAME: &str = "tool.name";
    pub const TOOL_ID: &str = "tool.id";
    pub const TOOL_CALL_ID: &str = "tool_call.id";
    pub const TOOL_CALL_NAME: &str = "tool_call.function.name";
    pub const TOOL_CALL_ARGUMENTS: &str = "tool_call.function.arguments";
    pub const EMBEDDING_MODEL: &str = "embedding.model_name";
    /// Indexed: the texts and their vectors.
    pub const EMBEDDINGS: &str = "embedding.embeddings.";
    pub const EMBEDDING_TEXT: &str = ".embedding.text";
    pub const AGENT_NAME: &str = "agent.name";
    pub const NODE_ID: &str = "graph.node.id";
    pub const METADATA: &str = "metadata";
}

/// Keys that any span may carry: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.
pub mod general {
    pub const SESSION: &str = "session.id";
    pub const USER: &str = "user.id";
    pub const END_USER: &str = "enduser.id";
    pub const PSEUDONYM: &str = "enduser.pseudo.id";
    pub const ERROR_TYPE: &str = "error.type";
    pub const EXCEPTION_EVENT: &str = "exception";
    pub const EXCEPTION_TYPE: &str = "exception.type";
    pub const EXCEPTION_MESSAGE: &str = "exception.message";
}

/// The source noted for a field that was taken from the name of the span.
pub const SPAN_NAME: &str = "name";
/// The source noted for a field that was taken from the instrumentation's scope.
pub const SCOPE: &str = "scope";
/// The source noted for a field that was taken from the status or an exception event.
pub const STATUS: &str = "status";

/// The source noted for a role that no key states: the span only carries what was asked or answered.
pub const CONTENT: &str = "content";

/// The keys of a trace that was sent as spans by this product or its clients.
pub mod iris {
    /// Every key of ours starts so.
    pub const PREFIX: &str = "iris.";
    pub const KIND: &str = "iris.span_kind";
    pub const INPUT: &str = "iris.input";
    pub const OUTPUT: &str = "iris.output";
    pub const AGENT_NAME: &str = "iris.agent_name";
    pub const FRAMEWORK: &str = "iris.framework";
    /// USD.
    pub const COST: &str = "iris.cost_usd";
    pub const PROMPT_TOKENS: &str = "iris.prompt_tokens";
    pub const COMPLETION_TOKENS: &str = "iris.completion_tokens";
    pub const TOTAL_TOKENS: &str = "iris.total_tokens";
}

/// The AI SDK: <https://ai-sdk.dev/docs/ai-sdk-core/telemetry>. Keys used once stand where they are read.
pub mod vercel_ai {
    pub const OPERATION: &str = "ai.operationId";
    pub const FUNCTION: &str = "ai.telemetry.functionId";
}

/// OpenLLMetry: <https://github.com/traceloop/openllmetry/blob/main/packages/opentelemetry-semantic-conventions-ai>.
pub mod openllmetry {
    pub const KIND: &str = "traceloop.span.kind";
    pub const ENTITY_NAME: &str = "traceloop.entity.name";
    pub const ENTITY_INPUT: &str = "traceloop.entity.input";
    pub const ENTITY_OUTPUT: &str = "traceloop.entity.output";
    pub const REQUEST_TYPE: &str = "llm.request.type";
    /// Indexed, in the first versions.
    pub const FIRST_COMPLETIONS: &str = "llm.completions";
    /// Free-form, set by the application, on every span below.
    pub const PROPERTIES: &str = "traceloop.association.properties.";
}
