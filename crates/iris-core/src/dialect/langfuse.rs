//! The Langfuse SDK (`langfuse.*`).
//! Source: <https://langfuse.com/integrations/native/opentelemetry#property-mapping>.

use serde_json::Value;

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded, salvage};
use crate::model::{RawSpan, Reading, Role};

/// The type of an observation; every span of the SDK has one.
const TYPE: &str = "langfuse.observation.type";

/// See the module.
pub struct Langfuse;

const GUIDE: Guide = Guide {
    title: "Langfuse SDK",
    setup: "The SDK exports to `LANGFUSE_HOST` only; give its client a `TracerProvider` of yours with an OTLP exporter for `http://127.0.0.1:4318/v1/traces` beside it.",
    reads: &[
        ("role", "`langfuse.observation.type`; without it a span with a model or usage is a model call"),
        (
            "input, output",
            "`langfuse.observation.input`, `langfuse.observation.output`, else `langfuse.trace.input`, `langfuse.trace.output`",
        ),
        ("agent's name", "the name of an agent's or root span, `langfuse.observation.metadata.lc_agent_name`"),
        ("model", "`langfuse.observation.model.name`"),
        (
            "tokens, cost",
            "`langfuse.observation.usage_details` in the provider's or Langfuse's own counting, `langfuse.observation.cost_details`",
        ),
        ("failure", "`langfuse.observation.level=ERROR` with `langfuse.observation.status_message`, and the status"),
        ("session, user", "`langfuse.session.id`, `session.id`; `langfuse.user.id`, `user.id`"),
    ],
    notes: "Costs of 0 are read as unknown.",
    cases: &["langfuse-sdk", "langfuse-sdk_v3"],
};

impl Dialect for Langfuse {
    fn name(&self) -> &'static str {
        "langfuse"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name == "langfuse-sdk" || span.attributes.contains_key(TYPE)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading::default();
        let kind = slots.text(F::Type as usize).and_then(|(key, kind)| Some((key, role(&kind)?)));
        let kind = kind.or_else(|| guessed(&slots));
        fill("role", &mut reading.role, &mut reading.sources, kind);
        reading.framework = Some("langfuse".to_owned());
        names(span, &slots, &mut reading);
        let sources = &mut reading.sources;
        fill("model", &mut reading.model, sources, slots.text(F::Model as usize));
        fill("session_id", &mut reading.session_id, sources, slots.text(F::Session as usize));
        fill("user_id", &mut reading.user_id, sources, slots.text(F::User as usize));
        let failed = slots.text(F::Level as usize).is_some_and(|(_, level)| level == "ERROR");
        fill("error", &mut reading.error, sources, slots.text(F::StatusMessage as usize).filter(|_| failed));
        fill("cost_usd", &mut reading.cost_usd, sources, slots.get(F::Cost as usize).and_then(cost));
        recorded::read(&mut reading, slots.get(F::Input as usize), slots.get(F::Output as usize));
        if let Some(found) = slots.get(F::Usage as usize) {
            usage(found, &mut reading);
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Type,
    Input,
    Output,
    Model,
    Usage,
    Cost,
    Level,
    StatusMessage,
    Session,
    User,
    Agent,
}

const FIELDS: usize = Field::Agent as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        TYPE => (F::Type, 0),
        "langfuse.observation.input" => (F::Input, 0),
        "langfuse.trace.input" => (F::Input, 1),
        "langfuse.observation.output" => (F::Output, 0),
        "langfuse.trace.output" => (F::Output, 1),
        "langfuse.observation.model.name" => (F::Model, 0),
        "langfuse.observation.usage_details" => (F::Usage, 0),
        "langfuse.observation.cost_details" => (F::Cost, 0),
        "langfuse.observation.level" => (F::Level, 0),
        "langfuse.observation.status_message" => (F::StatusMessage, 0),
        "langfuse.session.id" => (F::Session, 0),
        keys::general::SESSION => (F::Session, 1),
        "langfuse.user.id" => (F::User, 0),
        keys::general::USER => (F::User, 1),
        "langfuse.observation.metadata.lc_agent_name" => (F::Agent, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "agent" => Role::Agent,
        "span" | "chain" => Role::Chain,
        "generation" => Role::Llm,
        "tool" => Role::Tool,
        "embedding" => Role::Embedding,
        "retriever" => Role::Retriever,
        "guardrail" => Role::Guardrail,
        "evaluator" => Role::Evaluator,
        "event" => Role::Other,
        _ => return None,
    })
}

fn names(span: &RawSpan, slots: &Slots<'_, FIELDS>, reading: &mut Reading) {
    let sources = &mut reading.sources;
    // Values of metadata are JSON.
    let stated = slots
        .get(Field::Agent as usize)
        .and_then(|(key, value)| Some((key, attributes::text(&salvage::unwrapped(value))?)));
    fill("agent_name", &mut reading.agent_name, sources, stated);
    match reading.role {
        // Whoever decorates a function as an agent names it so; a root step names the application.
        Some(Role::Agent) => {
            fill("agent_name", &mut reading.agent_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
        }
        Some(Role::Chain) if span.parent_span_id.is_none() => {
            fill("agent_name", &mut reading.agent_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
        }
        Some(Role::Tool) => {
            fill("tool_name", &mut reading.tool_name, sources, Some((keys::SPAN_NAME, span.name.clone())));
        }
        _ => {}
    }
}

/// The part of an observation that does not say its type: what only a model call has tells it, else it is a step.
fn guessed<'a>(slots: &Slots<'a, FIELDS>) -> Option<(&'a str, Role)> {
    let of_call = [Field::Model, Field::Usage].iter().find_map(|field| slots.get(*field as usize));
    let of_step = || [Field::Input, Field::Output].iter().find_map(|field| slots.get(*field as usize));
    let call = of_call.map(|(key, _)| (key, Role::Llm));
    call.or_else(|| of_step().map(|(key, _)| (key, Role::Chain)))
}

/// The provider's own counts, or Langfuse's, which leave cached and reasoning tokens out of input and output.
fn usage(found: (&str, &Value), reading: &mut Reading) {
    let (key, value) = found;
    let counts = salvage::unwrapped(value);
    let Some(map) = counts.as_object().filter(|map| map.contains_key("input") || map.contains_key("output")) else {
        recorded::usage(reading, Some(found));
        return;
    };
    let sum = |name: &str| {
        let details = map.iter().filter(|(key, _)| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')));
        let details: u64 = details.filter_map(|(_, count)| attributes::count(count)).sum();
        attributes::count(map.get(name)?).map(|count| (count, count.saturating_add(details)))
    };
    let total = map.get("total").and_then(attributes::count);
    let (input, output) = (sum("input"), sum("output"));
    // The total tells whether details stand beside the counts or are part of them.
    let whole = |pair: Option<(u64, u64)>| pair.map_or(0, |(_, whole)| whole);
    let beside = total == Some(whole(input).saturating_add(whole(output)));
    let pick = |pair: Option<(u64, u64)>| pair.map(|(bare, whole)| (key, if beside { whole } else { bare }));
    let of = |word: &str, also: &str| {
        let counts: Vec<u64> = map
            .iter()
            .filter(|(name, _)| name.contains(word) && (also.is_empty() || name.contains(also)))
            .filter_map(|(_, count)| attributes::count(count))
            .collect();
        (!counts.is_empty()).then(|| (key, counts.into_iter().fold(0, u64::saturating_add)))
    };
    let sources = &mut reading.sources;
    let read = of("cache", "read").or_else(|| of("cached", ""));
    fill("usage.cache_read", &mut reading.usage.cache_read, sources, read);
    fill("usage.cache_write", &mut reading.usage.cache_write, sources, of("cache", "creation"));
    fill("usage.reasoning", &mut reading.usage.reasoning, sources, of("reasoning", ""));
    fill("usage.input", &mut reading.usage.input, sources, pick(input));
    fill("usage.output", &mut reading.usage.output, sources, pick(output));
    fill("usage.total", &mut reading.usage.total, sources, total.map(|total| (key, total)));
}

/// The stated total, else the sum of the parts; all zero means that no price is known.
fn cost<'a>((key, value): (&'a str, &Value)) -> Option<(&'a str, f64)> {
    let parts = salvage::unwrapped(value);
    let total = parts.get("total").and_then(attributes::amount);
    let sum = || parts.as_object().map(|map| map.values().filter_map(attributes::amount).sum::<f64>());
    total.or_else(sum).filter(|cost| *cost > 0.0).map(|cost| (key, cost))
}
