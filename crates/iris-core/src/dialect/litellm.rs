//! LiteLLM's `otel` callback, in the SDK and in the proxy: one span a call in the GenAI conventions, the caller's
//! identity in metadata of its own, guardrails as spans.
//! Source: <https://docs.litellm.ai/docs/observability/opentelemetry_integration>.

use serde_json::Value;

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::{Dialect, fill, keys, salvage};
use crate::model::{RawSpan, Reading, Role};

/// See the module.
pub struct LiteLlm;

const GUIDE: Guide = Guide {
    title: "LiteLLM",
    setup: "`litellm.callbacks = [\"otel\"]` (proxy: `litellm_settings: callbacks: [\"otel\"]`) with \
            `OTEL_EXPORTER=otlp_http` and `OTEL_ENDPOINT=http://127.0.0.1:4318/v1/traces`.",
    reads: &[
        (
            "role",
            "`gen_ai.operation.name`, span names `litellm_request` and `guardrail`; `raw_gen_ai_request` repeats a call and counts no second time",
        ),
        (
            "content",
            "`gen_ai.input.messages`, `gen_ai.output.messages`; older `gen_ai.prompt.N.*`, `gen_ai.completion.N.*`",
        ),
        ("cost", "`gen_ai.cost.total_cost`, else `response_cost` in `hidden_params`"),
        ("user", "`metadata.user_api_key_end_user_id`, `metadata.user_api_key_user_id`, `llm.user`"),
        ("session", "`metadata.session_id`, `metadata.litellm_session_id`, `metadata.trace_id`"),
    ],
    notes: "A stream without usage states 0 tokens, which is read as unknown. Every call is a trace of its own unless the \
            application opened a span.",
    cases: &[],
};

impl Dialect for LiteLlm {
    fn name(&self) -> &'static str {
        "litellm"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "litellm"
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let sources = &mut reading.sources;
        if slots.get(F::Guardrail as usize).is_some() {
            fill("role", &mut reading.role, sources, Some(("guardrail_name", Role::Guardrail)));
        } else if span.name == "litellm_request" && slots.get(F::Operation as usize).is_none() {
            fill("role", &mut reading.role, sources, Some((keys::SPAN_NAME, Role::Llm)));
        }
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        let cost = slots.amount(F::Cost as usize).or_else(|| {
            let (key, value) = slots.get(F::Hidden as usize)?;
            let hidden: Value = salvage::unwrapped(value);
            attributes::amount(hidden.get("response_cost")?).map(|cost| (key, cost))
        });
        fill("cost_usd", &mut reading.cost_usd, sources, cost.filter(|(_, cost)| *cost > 0.0));
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Operation,
    Guardrail,
    User,
    Session,
    Cost,
    Hidden,
}

const FIELDS: usize = Field::Hidden as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        keys::gen_ai::OPERATION => (F::Operation, 0),
        "guardrail_name" => (F::Guardrail, 0),
        "metadata.user_api_key_end_user_id" => (F::User, 0),
        "metadata.user_api_key_user_id" => (F::User, 1),
        "llm.user" => (F::User, 2),
        "metadata.session_id" => (F::Session, 0),
        "metadata.litellm_session_id" => (F::Session, 1),
        "metadata.trace_id" => (F::Session, 2),
        keys::gen_ai::TOTAL_COST => (F::Cost, 0),
        "hidden_params" => (F::Hidden, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}
