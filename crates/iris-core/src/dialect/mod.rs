//! From a span as sent to what it means: who ran, which model answered, which tool was called with what.
//!
//! Owns every attribute key of every library. A dialect is one file with one line in [`DIALECTS`]; every dialect that
//! speaks reads, fields merge one by one, the first in the table wins, and the winning key is kept in
//! [`Reading::sources`]. Never changes a span, never looks at a second one: putting spans together is
//! [`crate::assemble`]. Spans and log records enter through [`read_span`] and [`read_log`], readings leave.

mod agent_framework;
mod attributes;
mod autogen;
mod by_hand;
mod calls;
mod coding;
mod crewai;
mod gen_ai;
mod google_adk;
mod guide;
mod haystack;
mod iris;
mod keys;
mod laminar;
mod langfuse;
mod langsmith;
mod litellm;
mod mcp;
mod media;
mod messages;
mod mlflow;
mod openinference;
mod openlit;
mod openllmetry;
mod provenance;
mod pydantic_ai;
mod recorded;
pub(crate) mod salvage;
mod semantic_kernel;
mod strands;
mod unmapped;
mod usage;
mod vercel_ai;
mod words;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{Name, RawLog, RawSpan, Reading, Role, StatusCode, TraceId, Usage};

pub use calls::announced_error;
pub use guide::Guide;
pub use keys::gen_ai::DETAILS_EVENT;
pub use messages::{answer, is_pending, question, text_of};
pub use salvage::is_repr;

/// One library's way of writing spans.
pub trait Dialect: Send + Sync {
    /// Its name, as in [`Reading::dialects`].
    fn name(&self) -> &'static str;
    /// What the documentation says of it.
    fn guide(&self) -> &'static Guide;
    /// Whether it may have something to say about the span; cheap.
    fn speaks(&self, span: &RawSpan) -> bool;
    /// What it reads; absent is what the span does not say in this dialect.
    fn read(&self, span: &RawSpan) -> Reading;
    /// The names of the log records it reads.
    fn log_events(&self) -> &'static [&'static str] {
        &[]
    }
    /// What it reads from a log record about the span in which it was written.
    fn read_log(&self, _log: &RawLog) -> Option<Reading> {
        None
    }
    /// The span that a log record stands for, where a library writes records of its steps and no spans.
    fn step(&self, _log: &RawLog) -> Option<RawSpan> {
        None
    }
}

/// Every dialect, most specific first: on the same field the earlier wins.
pub const DIALECTS: &[&dyn Dialect] = &[
    &iris::Iris,
    &langfuse::Langfuse,
    &openinference::OpenInference,
    &vercel_ai::VercelAi,
    &openllmetry::OpenLlmetry,
    &langsmith::LangSmith,
    &mlflow::Mlflow,
    &laminar::Laminar,
    &google_adk::GoogleAdk,
    &pydantic_ai::PydanticAi,
    &strands::Strands,
    &litellm::LiteLlm,
    &haystack::Haystack,
    &mcp::Mcp,
    &crewai::CrewAi,
    &semantic_kernel::SemanticKernel,
    &agent_framework::AgentFramework,
    &autogen::AutoGen,
    &openlit::OpenLit,
    &coding::ClaudeCode,
    &coding::Codex,
    &coding::GeminiCli,
    &gen_ai::GenAi,
    &by_hand::ByHand,
];

/// What a span means. A span that no dialect speaks has no role.
pub fn read_span(span: &RawSpan) -> Reading {
    let mut reading = Reading::default();
    for dialect in DIALECTS {
        if dialect.speaks(span) {
            let read = dialect.read(span);
            if reading.dialects.is_empty() {
                // Most spans have one speaker: its reading is taken as it is.
                reading = alone(read);
            } else {
                merge(&mut reading, read);
            }
            reading.dialects.push(dialect.name().to_owned());
        }
    }
    if reading.dialects.last().is_some_and(|last| last == by_hand::ByHand.name()) {
        by_hand::content(&mut reading, span);
    }
    complete(&mut reading, span);
    reading.unmapped = unmapped::keys(&reading, span);
    reading
}

/// What a log record says about the span in which it was written; none when no dialect reads it.
pub fn read_log(log: &RawLog) -> Option<Reading> {
    let mut reading: Option<Reading> = None;
    for dialect in DIALECTS {
        if dialect.log_events().contains(&log.event_name.as_str())
            && let Some(read) = dialect.read_log(log)
        {
            let into = reading.get_or_insert_default();
            merge(into, read);
            into.dialects.push(dialect.name().to_owned());
        }
    }
    let mut reading = reading?;
    reading.provider = reading.provider.as_deref().and_then(provenance::provider);
    drop_unknown_zeros(&mut reading.usage);
    usage::include(&mut reading.usage, false, false);
    media::leave_out(&mut reading);
    Some(reading)
}

/// The span that a log record stands for by itself; none when it was written inside a span or no dialect knows it so.
pub fn step_of(log: &RawLog) -> Option<RawSpan> {
    if log.trace_id.is_some() && log.span_id.is_some() {
        return None;
    }
    let speakers = DIALECTS.iter().filter(|dialect| dialect.log_events().contains(&log.event_name.as_str()));
    speakers.into_iter().find_map(|dialect| dialect.step(log))
}

/// The trace that a log record belongs to: the one of the span that it stands for, else the one it names.
pub fn trace_of(log: &RawLog) -> Option<TraceId> {
    step_of(log).map(|step| step.trace_id).or(log.trace_id)
}

/// Whether some dialect reads log records of this name.
pub fn wants_log(event_name: &str) -> bool {
    DIALECTS.iter().any(|dialect| dialect.log_events().contains(&event_name))
}

/// The dialect that came closest to content that nobody could read; none when nothing was left unread.
pub fn closest(reading: &Reading) -> Option<&'static str> {
    let first = reading.dialects.first().filter(|_| !reading.unmapped.is_empty())?;
    DIALECTS.iter().map(|dialect| dialect.name()).find(|name| *name == first)
}

/// Whether no key states the role of a span, which only carries what was asked or answered.
pub fn is_guessed(reading: &Reading) -> bool {
    reading.sources.get("role").is_some_and(|key| key == keys::CONTENT)
}

/// Adds what `from` says and `into` does not, with the keys it came from.
pub fn merge(into: &mut Reading, from: Reading) {
    let Reading { sources: mut keys, finish_reasons, usage, dialects: _, .. } = from;
    let mut merger = Merger { into: &mut into.sources, from: &mut keys };
    merger.pick("role", &mut into.role, from.role);
    let named = |keys: &BTreeMap<Name, Name>| keys.get("agent_name").is_some_and(|key| key != keys::SPAN_NAME);
    if !named(merger.into) && named(merger.from) {
        // A stated name beats one that was guessed from a span's name.
        into.agent_name = None;
    }
    merger.pick("agent_name", &mut into.agent_name, from.agent_name);
    merger.pick("framework", &mut into.framework, from.framework);
    merger.pick("input", &mut into.input, from.input);
    merger.pick("output", &mut into.output, from.output);
    merger.pick("input_messages", &mut into.input_messages, from.input_messages);
    merger.pick("output_messages", &mut into.output_messages, from.output_messages);
    merger.pick("tool_name", &mut into.tool_name, from.tool_name);
    merger.pick("tool_call_id", &mut into.tool_call_id, from.tool_call_id);
    merger.pick("tool_arguments", &mut into.tool_arguments, from.tool_arguments);
    merger.pick("tool_result", &mut into.tool_result, from.tool_result);
    merger.pick("error", &mut into.error, from.error);
    merger.pick("model", &mut into.model, from.model);
    merger.pick("request_model", &mut into.request_model, from.request_model);
    merger.pick("provider", &mut into.provider, from.provider);
    merger.pick("response_id", &mut into.response_id, from.response_id);
    merger.pick("cost_usd", &mut into.cost_usd, from.cost_usd);
    merger.pick("session_id", &mut into.session_id, from.session_id);
    merger.pick("user_id", &mut into.user_id, from.user_id);
    merger.pick("usage.input", &mut into.usage.input, usage.input);
    merger.pick("usage.output", &mut into.usage.output, usage.output);
    merger.pick("usage.total", &mut into.usage.total, usage.total);
    merger.pick("usage.cache_read", &mut into.usage.cache_read, usage.cache_read);
    merger.pick("usage.cache_write", &mut into.usage.cache_write, usage.cache_write);
    merger.pick("usage.reasoning", &mut into.usage.reasoning, usage.reasoning);
    merger.pick("usage.input_audio", &mut into.usage.input_audio, usage.input_audio);
    merger.pick("usage.output_audio", &mut into.usage.output_audio, usage.output_audio);
    if into.finish_reasons.is_empty() {
        into.finish_reasons = finish_reasons;
    }
}

/// A reading without the keys of fields that it does not have, as [`merge`] would leave it.
fn alone(mut reading: Reading) -> Reading {
    let mut sources = std::mem::take(&mut reading.sources);
    let usage = reading.usage;
    sources.retain(|field, _| match field.as_ref() {
        "role" => reading.role.is_some(),
        "agent_name" => reading.agent_name.is_some(),
        "framework" => reading.framework.is_some(),
        "input" => reading.input.is_some(),
        "output" => reading.output.is_some(),
        "input_messages" => reading.input_messages.is_some(),
        "output_messages" => reading.output_messages.is_some(),
        "tool_name" => reading.tool_name.is_some(),
        "tool_call_id" => reading.tool_call_id.is_some(),
        "tool_arguments" => reading.tool_arguments.is_some(),
        "tool_result" => reading.tool_result.is_some(),
        "error" => reading.error.is_some(),
        "model" => reading.model.is_some(),
        "request_model" => reading.request_model.is_some(),
        "provider" => reading.provider.is_some(),
        "response_id" => reading.response_id.is_some(),
        "cost_usd" => reading.cost_usd.is_some(),
        "session_id" => reading.session_id.is_some(),
        "user_id" => reading.user_id.is_some(),
        "usage.input" => usage.input.is_some(),
        "usage.output" => usage.output.is_some(),
        "usage.total" => usage.total.is_some(),
        "usage.cache_read" => usage.cache_read.is_some(),
        "usage.cache_write" => usage.cache_write.is_some(),
        "usage.reasoning" => usage.reasoning.is_some(),
        "usage.input_audio" => usage.input_audio.is_some(),
        "usage.output_audio" => usage.output_audio.is_some(),
        _ => false,
    });
    reading.sources = sources;
    reading
}

struct Merger<'a> {
    into: &'a mut BTreeMap<Name, Name>,
    from: &'a mut BTreeMap<Name, Name>,
}

impl Merger<'_> {
    fn pick<T>(&mut self, field: &str, into: &mut Option<T>, from: Option<T>) {
        if into.is_some() || from.is_none() {
            return;
        }
        *into = from;
        if let Some((field, key)) = self.from.remove_entry(field) {
            self.into.insert(field, key);
        }
    }
}

/// Fills a field of a reading under construction and notes the key.
fn fill<T>(field: &'static str, into: &mut Option<T>, sources: &mut BTreeMap<Name, Name>, found: Option<(&str, T)>) {
    if into.is_none()
        && let Some((key, value)) = found
    {
        *into = Some(value);
        sources.insert(field.into(), key.to_owned().into());
    }
}

/// What does not depend on the dialect: errors, provider names, the ids any span may carry.
fn complete(reading: &mut Reading, span: &RawSpan) {
    if reading.role.is_some() {
        if reading.error.is_none() && span.status == StatusCode::Error {
            reading.error = Some(provenance::error(span));
            reading.sources.insert("error".into(), keys::STATUS.into());
        }
        let framework = provenance::framework(&span.scope.name).map(|framework| (keys::SCOPE, framework.to_owned()));
        fill("framework", &mut reading.framework, &mut reading.sources, framework);
        if reading.role == Some(Role::Agent) {
            let named = span.resource.attributes.get(keys::iris::AGENT_NAME).and_then(attributes::text);
            fill(
                "agent_name",
                &mut reading.agent_name,
                &mut reading.sources,
                named.map(|name| (keys::iris::AGENT_NAME, name)),
            );
        }
        reading.provider = reading.provider.as_deref().and_then(provenance::provider);
        drop_unknown_zeros(&mut reading.usage);
        usage::settle(reading, span);
        media::leave_out(reading);
        unseen_output(reading, span);
    }
    let found = |names: &[&'static str]| {
        names.iter().find_map(|key| Some((*key, attributes::text(span.attributes.get(*key)?)?)))
    };
    if reading.session_id.is_none() {
        fill("session_id", &mut reading.session_id, &mut reading.sources, found(&[keys::general::SESSION]));
    }
    if reading.user_id.is_none() {
        let found = found(&[keys::general::USER, keys::general::END_USER, keys::general::PSEUDONYM]);
        fill("user_id", &mut reading.user_id, &mut reading.sources, found);
    }
}

/// An output that was sent and shows nothing, where no other was: white space, or that as a JSON text.
fn unseen_output(reading: &mut Reading, span: &RawSpan) {
    let answers = matches!(reading.role, Some(Role::Llm | Role::Agent | Role::Chain));
    if !answers || reading.output.is_some() || reading.output_messages.is_some() || reading.error.is_some() {
        return;
    }
    let Some(Value::String(sent)) = span.attributes.get(keys::openinference::OUTPUT) else { return };
    let text = match salvage::json(sent) {
        Some(Value::String(inner)) => inner,
        _ => sent.clone(),
    };
    let found = text.trim().is_empty().then_some((keys::openinference::OUTPUT, text));
    fill("output", &mut reading.output, &mut reading.sources, found);
}

/// A model call that neither read nor wrote a token does not exist: some libraries write 0 for unknown.
fn drop_unknown_zeros(usage: &mut Usage) {
    if usage.input.unwrap_or(0) == 0 && usage.output.unwrap_or(0) == 0 {
        (usage.input, usage.output) = (None, None);
        usage.total = usage.total.filter(|total| *total > 0);
    }
}

#[cfg(test)]
mod tests;
