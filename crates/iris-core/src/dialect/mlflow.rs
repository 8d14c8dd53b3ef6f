//! MLflow's tracing, exported as OTLP: every attribute is JSON. Source: <https://mlflow.org/docs/latest/genai/tracing/>.

use serde_json::Value;

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded, salvage};
use crate::model::{RawSpan, Reading, Role};

const TYPE: &str = "mlflow.spanType";

/// See the module.
pub struct Mlflow;

const GUIDE: Guide = Guide {
    title: "MLflow",
    setup: "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces` with `mlflow` 3 and an autolog or `@mlflow.trace`.",
    reads: &[
        ("role", "`mlflow.spanType`"),
        ("input, output", "`mlflow.spanInputs`, `mlflow.spanOutputs`"),
        ("model", "`mlflow.llm.model`, `mlflow.llm.provider`, `model`"),
        ("tokens, cost", "`mlflow.chat.tokenUsage`, `mlflow.llm.cost`"),
        ("tools", "the span's name, `tool_call_id`"),
        ("session, user", "`mlflow.trace.session`, `mlflow.trace.user`, `thread_id` in `metadata`"),
    ],
    notes: "Every attribute is JSON. With `MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true` the spans follow the GenAI conventions and lose the agent's input and output.",
    cases: &["mlflow", "mlflow_genai"],
};

impl Dialect for Mlflow {
    fn name(&self) -> &'static str {
        "mlflow"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "mlflow.tracing.provider" || span.attributes.contains_key(TYPE)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let text = |field: F| {
            let (key, value) = slots.get(field as usize)?;
            Some((key, attributes::text(&plain(value))?))
        };
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        fill("role", &mut reading.role, sources, text(F::Type).and_then(|(key, kind)| Some((key, role(&kind)?))));
        let metadata = slots.get(F::Metadata as usize).map(|(key, value)| (key, salvage::unwrapped(value)));
        let of = |name: &str| metadata.as_ref().and_then(|(key, map)| Some((*key, attributes::text(map.get(name)?)?)));
        fill("agent_name", &mut reading.agent_name, sources, of("lc_agent_name"));
        fill("session_id", &mut reading.session_id, sources, of("thread_id").or_else(|| text(F::Session)));
        fill("user_id", &mut reading.user_id, sources, text(F::User));
        fill("model", &mut reading.model, sources, text(F::Model));
        fill("provider", &mut reading.provider, sources, text(F::Provider));
        match reading.role {
            Some(Role::Agent) => {
                fill("agent_name", &mut reading.agent_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
            }
            Some(Role::Tool) => {
                fill("tool_name", &mut reading.tool_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
                fill("tool_call_id", &mut reading.tool_call_id, sources, text(F::ToolCallId));
            }
            Some(Role::Llm) => fill("request_model", &mut reading.request_model, sources, text(F::RequestModel)),
            _ => {}
        }
        recorded::read(&mut reading, slots.get(F::Inputs as usize), slots.get(F::Outputs as usize));
        if reading.role == Some(Role::Llm) {
            recorded::usage(&mut reading, slots.get(F::Usage as usize));
            let cost = slots.get(F::Cost as usize).and_then(|(key, value)| {
                let parts = salvage::unwrapped(value);
                attributes::amount(parts.get("total_cost").unwrap_or(&parts)).map(|cost| (key, cost))
            });
            fill("cost_usd", &mut reading.cost_usd, &mut reading.sources, cost.filter(|(_, cost)| *cost > 0.0));
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Type,
    Inputs,
    Outputs,
    Usage,
    Model,
    RequestModel,
    Provider,
    Metadata,
    ToolCallId,
    Session,
    User,
    Cost,
}

const FIELDS: usize = Field::Cost as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        TYPE => (F::Type, 0),
        "mlflow.spanInputs" => (F::Inputs, 0),
        "mlflow.spanOutputs" => (F::Outputs, 0),
        "mlflow.chat.tokenUsage" => (F::Usage, 0),
        "mlflow.llm.cost" => (F::Cost, 0),
        "mlflow.llm.model" => (F::Model, 0),
        "mlflow.llm.provider" => (F::Provider, 0),
        "model" => (F::RequestModel, 0),
        "metadata" => (F::Metadata, 0),
        "tool_call_id" => (F::ToolCallId, 0),
        "mlflow.trace.session" => (F::Session, 0),
        "mlflow.trace.user" => (F::User, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// A quoted text without its quotes; anything else as it stands.
fn plain(value: &Value) -> Value {
    match value.as_str().and_then(salvage::json) {
        Some(text @ Value::String(_)) => text,
        _ => value.clone(),
    }
}

fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "AGENT" => Role::Agent,
        "CHAIN" | "WORKFLOW" | "TASK" | "PARSER" => Role::Chain,
        "CHAT_MODEL" | "LLM" => Role::Llm,
        "TOOL" => Role::Tool,
        "EMBEDDING" => Role::Embedding,
        "RETRIEVER" => Role::Retriever,
        "RERANKER" => Role::Reranker,
        "GUARDRAIL" => Role::Guardrail,
        "EVALUATOR" => Role::Evaluator,
        "MEMORY" => Role::Other,
        _ => return None,
    })
}
