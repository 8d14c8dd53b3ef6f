//! Small habits of frameworks that otherwise keep to the GenAI conventions: Strands, Semantic Kernel, LiteLLM.

use serde_json::Value;

use super::{Dialect, attributes, fill};
use crate::model::{RawSpan, Reading};

/// Strands marks a failed tool by an attribute and leaves the status alone.
/// Source: <https://strandsagents.com/latest/documentation/docs/user-guide/observability-evaluation/traces/>.
pub struct Strands;

impl Dialect for Strands {
    fn name(&self) -> &'static str {
        "strands"
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "strands.telemetry.tracer" || span.scope.name == "strands-agents"
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let mut reading = Reading::default();
        let failed = ["gen_ai.tool.status", "tool.status"].into_iter().find(|key| {
            span.attributes.get(*key).and_then(Value::as_str).is_some_and(|status| status.eq_ignore_ascii_case("error"))
        });
        if let Some(key) = failed {
            let text = super::provenance::error(span);
            fill("error", &mut reading.error, &mut reading.sources, Some((key, text)));
        }
        reading
    }
}

/// Semantic Kernel names a tool with its plugin in front: `Harbor-get_weather`.
/// Source: <https://learn.microsoft.com/semantic-kernel/concepts/enterprise-readiness/observability/>.
pub struct SemanticKernel;

impl Dialect for SemanticKernel {
    fn name(&self) -> &'static str {
        "semantic_kernel"
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.starts_with("semantic_kernel.")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let mut reading = Reading::default();
        let key = "gen_ai.tool.name";
        let name = span.attributes.get(key).and_then(Value::as_str).and_then(|name| name.split_once('-'));
        let name = name.filter(|(plugin, tool)| !plugin.is_empty() && !tool.is_empty());
        fill("tool_name", &mut reading.tool_name, &mut reading.sources, name.map(|(_, tool)| (key, tool.to_owned())));
        reading
    }
}

/// LiteLLM puts the caller's identity into its own metadata.
/// Source: <https://docs.litellm.ai/docs/observability/opentelemetry_integration>.
pub struct LiteLlm;

impl Dialect for LiteLlm {
    fn name(&self) -> &'static str {
        "litellm"
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "litellm"
    }

    fn read(&self, span: &RawSpan) -> Reading {
        let mut reading = Reading::default();
        let of = |names: &[&'static str]| {
            names.iter().find_map(|key| Some((*key, attributes::text(span.attributes.get(*key)?)?)))
        };
        let user = of(&["metadata.user_api_key_end_user_id", "metadata.user_api_key_user_id", "llm.user"]);
        fill("user_id", &mut reading.user_id, &mut reading.sources, user);
        let session = of(&["metadata.session_id", "metadata.litellm_session_id", "metadata.trace_id"]);
        fill("session_id", &mut reading.session_id, &mut reading.sources, session);
        reading
    }
}
