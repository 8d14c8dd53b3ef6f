//! Semantic Kernel in Python and .NET: the GenAI conventions in several of their versions, tools named with their plugin
//! in front (`Harbor-get_weather`), content in log records.
//! Source: <https://learn.microsoft.com/semantic-kernel/concepts/enterprise-readiness/observability/>.

use super::attributes::Slots;
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct SemanticKernel;

const GUIDE: Guide = Guide {
    title: "Semantic Kernel",
    setup: "Set `SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true` and send traces and logs: the \
            messages are log records. Python: an OTLP exporter on the tracer provider and on the logger provider. .NET: \
            `AddSource(\"Microsoft.SemanticKernel*\")`.",
    reads: &[
        ("role", "`gen_ai.operation.name`, in .NET also `chat.completions` and `text.completions`"),
        ("tool's name", "`gen_ai.tool.name` without the plugin in front of it"),
        (
            "content",
            "log records `gen_ai.*.message` and `gen_ai.choice` (name in the attribute `event.name`), span events `gen_ai.content.prompt` and `gen_ai.content.completion`",
        ),
        (
            "tokens",
            "`gen_ai.usage.*`; in older .NET versions `gen_ai.response.prompt_tokens` and `gen_ai.response.completion_tokens`",
        ),
    ],
    notes: "Kernel functions that the model does not call are steps, not tools.",
    cases: &[],
};

impl Dialect for SemanticKernel {
    fn name(&self) -> &'static str {
        "semantic_kernel"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.starts_with("semantic_kernel.") || span.scope.name.starts_with("Microsoft.SemanticKernel")
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("semantic-kernel".to_owned()), ..Reading::default() };
        let sources = &mut reading.sources;
        let name = slots.text(F::ToolName as usize);
        let is_tool = slots.text(F::Operation as usize).is_some_and(|(_, operation)| operation == "execute_tool");
        if is_tool {
            fill("role", &mut reading.role, sources, Some((keys::gen_ai::OPERATION, Role::Tool)));
        } else if span.name == "AutoFunctionInvocationLoop" {
            fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, Role::Chain)));
        }
        let bare = name.as_ref().and_then(|(key, name)| {
            let (plugin, tool) = name.split_once(['-', '.'])?;
            (!plugin.is_empty() && !tool.is_empty()).then(|| (*key, tool.to_owned()))
        });
        fill("tool_name", &mut reading.tool_name, sources, bare);
        fill("usage.input", &mut reading.usage.input, sources, slots.count(F::PromptTokens as usize));
        fill("usage.output", &mut reading.usage.output, sources, slots.count(F::CompletionTokens as usize));
        if reading.role == Some(Role::Tool) {
            recorded::tool(&mut reading, slots.get(F::Arguments as usize), slots.get(F::Result as usize));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Operation,
    ToolName,
    PromptTokens,
    CompletionTokens,
    Arguments,
    Result,
}

const FIELDS: usize = Field::Result as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        keys::gen_ai::OPERATION => (F::Operation, 0),
        keys::gen_ai::TOOL_NAME => (F::ToolName, 0),
        "gen_ai.response.prompt_tokens" => (F::PromptTokens, 0),
        "gen_ai.response.completion_tokens" => (F::CompletionTokens, 0),
        keys::gen_ai::TOOL_ARGUMENTS => (F::Arguments, 0),
        "gen_ai.tool.arguments" => (F::Arguments, 1),
        keys::gen_ai::TOOL_RESULT => (F::Result, 0),
        "gen_ai.tool.result" => (F::Result, 1),
        _ => return None,
    };
    Some((field as usize, rank))
}
