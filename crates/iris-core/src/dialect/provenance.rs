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
        "langfuse-sdk" => "langfuse",
        "livekit-agents" => "livekit-agents",
        "Experimental.Microsoft.Extensions.AI" => "microsoft.extensions.ai",
        "mcp-python-sdk" | "mcp" => "mcp",
        "openai" | "openai_v2" => "openai",
        "anthropic" | "com.anthropic.sdk.python" => "anthropic",
        "google_genai" | "google-genai" => "google-genai",
        "bedrock" => "bedrock",
        _ if name.starts_with("semantic_kernel.") => "semantic-kernel",
        _ => return None,
    })
}

/// A provider's name as the conventions spell it; none for what is a framework and serves no model. A name that the
/// conventions do not know stays, in lower case.
/// Source: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/#gen-ai-provider-name>.
pub fn provider(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    if is_no_provider(&name) {
        return None;
    }
    // The AI SDK names provider and API: `openai.chat`.
    let known = spelled(&name).or_else(|| spelled(name.split_once('.')?.0));
    Some(known.map_or(name, str::to_owned))
}

/// Placeholders, and frameworks that put their own name where the provider's belongs.
fn is_no_provider(name: &str) -> bool {
    matches!(
        name,
        "" | "unknown"
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
            | "gcp.vertex.agent"
            | "vercel"
    )
}

/// The conventions' spelling of a name that they, or libraries in their own way, give a provider.
fn spelled(name: &str) -> Option<&'static str> {
    Some(match name {
        "openai" => "openai",
        "anthropic" => "anthropic",
        "cohere" => "cohere",
        "deepseek" => "deepseek",
        "groq" => "groq",
        "perplexity" => "perplexity",
        "azure.ai.openai" | "az.ai.openai" | "azure_openai" | "azure-openai" | "azure" => "azure.ai.openai",
        "azure.ai.inference" | "az.ai.inference" | "azure_ai" => "azure.ai.inference",
        "aws.bedrock" | "bedrock" | "aws_bedrock" | "amazon_bedrock" | "amazon-bedrock" | "aws" => "aws.bedrock",
        "gcp.gemini" | "gemini" | "google_genai" | "google-genai" | "google.generative-ai" | "google-gla" => {
            "gcp.gemini"
        }
        "gcp.vertex_ai" | "vertex_ai" | "vertexai" | "vertex" | "google_vertexai" | "google-vertex" => "gcp.vertex_ai",
        _ if name.starts_with("google.vertex.") => "gcp.vertex_ai",
        "gcp.gen_ai" | "google" => "gcp.gen_ai",
        "ibm.watsonx.ai" | "watsonx" | "ibm" => "ibm.watsonx.ai",
        "mistral_ai" | "mistralai" | "mistral" => "mistral_ai",
        "moonshot_ai" | "moonshotai" | "moonshot" => "moonshot_ai",
        "x_ai" | "xai" | "x-ai" => "x_ai",
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::provider;

    #[test]
    fn providers_are_spelled_as_in_the_conventions() {
        let conventional = [
            "openai",
            "azure.ai.openai",
            "azure.ai.inference",
            "anthropic",
            "aws.bedrock",
            "gcp.gemini",
            "gcp.vertex_ai",
            "gcp.gen_ai",
            "cohere",
            "deepseek",
            "groq",
            "ibm.watsonx.ai",
            "mistral_ai",
            "moonshot_ai",
            "perplexity",
            "x_ai",
        ];
        for name in conventional {
            assert_eq!(provider(name).as_deref(), Some(name));
        }
        let others = [
            ("OpenAI", "openai"),
            ("openai.chat", "openai"),
            ("openai.responses", "openai"),
            (" Anthropic ", "anthropic"),
            ("anthropic.messages", "anthropic"),
            ("az.ai.openai", "azure.ai.openai"),
            ("azure.chat", "azure.ai.openai"),
            ("vertex_ai", "gcp.vertex_ai"),
            ("google.vertex.chat", "gcp.vertex_ai"),
            ("google.generative-ai", "gcp.gemini"),
            ("google", "gcp.gen_ai"),
            ("amazon-bedrock", "aws.bedrock"),
            ("MistralAI", "mistral_ai"),
            ("mistral.chat", "mistral_ai"),
            ("xai.chat", "x_ai"),
            ("Ollama", "ollama"),
            ("my.gateway", "my.gateway"),
        ];
        for (name, want) in others {
            assert_eq!(provider(name).as_deref(), Some(want), "{name}");
        }
        for name in ["", " ", "LangChain", "strands-agents", "microsoft.agent_framework", "gcp.vertex.agent", "_OTHER"]
        {
            assert_eq!(provider(name), None, "{name}");
        }
    }
}
