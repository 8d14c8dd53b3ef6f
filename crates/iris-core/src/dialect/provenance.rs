//! What a scope, a provider's name and a status tell, whatever the dialect.

use super::{attributes, keys};
use crate::model::RawSpan;

/// The longest error text kept, in bytes: some libraries put a whole traceback there.
const ERROR_BYTES_MAX: usize = 2048;

/// The library behind an instrumentation's scope.
pub fn framework(scope: &str) -> Option<&'static str> {
    let scope = scope.strip_suffix(".v1").unwrap_or(scope);
    let name = [
        "openinference.instrumentation.",
        "opentelemetry.instrumentation.genai.",
        "opentelemetry.instrumentation.",
        "openlit.instrumentation.",
        "@arizeai/openinference-instrumentation-",
        "@traceloop/instrumentation-",
    ]
    .iter()
    .find_map(|prefix| scope.strip_prefix(prefix))
    .unwrap_or(scope);
    Some(match name {
        "openai_agents" | "logfire.openai_agents" => "openai-agents",
        "langchain" => "langchain",
        "langgraph" => "langgraph",
        "langsmith" => "langsmith",
        "crewai" => "crewai",
        "llama_index" | "llamaindex" => "llama-index",
        "smolagents" => "smolagents",
        "dspy" => "dspy",
        "agno" => "agno",
        "haystack" => "haystack",
        "google_adk" | "gcp.vertex.agent" => "google-adk",
        "pydantic-ai" | "pydantic_ai" => "pydantic-ai",
        "strands.telemetry.tracer" | "strands-agents" => "strands-agents",
        "agent_framework" => "agent-framework",
        "autogen-core" | "autogen SingleThreadedAgentRuntime" => "autogen",
        "ai" | "gen_ai" => "vercel-ai",
        "litellm" => "litellm",
        "fastmcp" => "fastmcp",
        "mcp-python-sdk" | "mcp" => "mcp",
        "openai" | "openai_v2" => "openai",
        "anthropic" | "com.anthropic.sdk.python" => "anthropic",
        "google_genai" | "google-genai" => "google-genai",
        "bedrock" => "bedrock",
        _ if name.starts_with("semantic_kernel.") => "semantic-kernel",
        _ => return None,
    })
}

/// A provider's name as the conventions spell it; none for what is a framework and serves no model.
/// Source: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/#gen-ai-provider-name>.
pub fn provider(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    let known = match name.as_str() {
        ""
        | "unknown"
        | "_other"
        | "langchain"
        | "langgraph"
        | "strands-agents"
        | "strands_agents"
        | "autogen"
        | "microsoft.agent_framework"
        | "agent_framework"
        | "crewai"
        | "llama_index"
        | "vercel" => return None,
        "az.ai.openai" | "azure_openai" | "azure" => "azure.ai.openai",
        "az.ai.inference" => "azure.ai.inference",
        "vertex_ai" | "vertexai" | "google_vertexai" => "gcp.vertex_ai",
        "bedrock" | "aws_bedrock" | "amazon_bedrock" => "aws.bedrock",
        "mistralai" | "mistral" => "mistral_ai",
        "xai" => "x_ai",
        // The AI SDK names provider and API.
        other => match other.split_once('.') {
            Some((first @ ("openai" | "anthropic" | "cohere" | "groq" | "deepseek"), _)) => first,
            _ => other,
        },
    };
    Some(known.to_owned())
}

/// The text of the error with which a span ended: the exception, else the status, else the kind of error.
pub fn error(span: &RawSpan) -> String {
    let exception = span.events.iter().rev().find(|event| event.name == keys::general::EXCEPTION_EVENT);
    let of = |key: &str| exception.and_then(|event| attributes::text(event.attributes.get(key)?));
    let text = match (of(keys::general::EXCEPTION_TYPE), of(keys::general::EXCEPTION_MESSAGE)) {
        (Some(kind), Some(message)) if !message.starts_with(&kind) => format!("{kind}: {message}"),
        (_, Some(message)) => message,
        (Some(kind), None) if span.status_message.is_empty() => kind,
        _ if !span.status_message.is_empty() => span.status_message.clone(),
        _ => span
            .attributes
            .get(keys::general::ERROR_TYPE)
            .and_then(attributes::text)
            .unwrap_or_else(|| "error".to_owned()),
    };
    cut(text)
}

/// Cuts a text at the longest error kept, on a character boundary.
fn cut(mut text: String) -> String {
    if text.len() > ERROR_BYTES_MAX {
        let end = (0..=ERROR_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
