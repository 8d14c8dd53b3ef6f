//! CrewAI: what OpenInference's and OpenLLMetry's instrumentations keep of crews, agents and tasks under keys of
//! CrewAI's own. Source: <https://docs.crewai.com/en/concepts/crews#crew-output>.

use serde_json::{Map, Value};

use super::attributes::{self, Slots};
use super::guide::Guide;
use super::{Dialect, fill, keys, recorded, salvage, words};
use crate::model::{RawSpan, Reading};

/// See the module.
pub struct CrewAi;

const GUIDE: Guide = Guide {
    title: "CrewAI",
    setup: "`CrewAIInstrumentor().instrument(tracer_provider=…)` of `openinference-instrumentation-crewai`, or \
            `Traceloop.init(api_endpoint=\"http://127.0.0.1:4318\")`; add the instrumentation of the model's client for model calls.",
    reads: &[
        ("input", "the span's own input, else the descriptions in `crew_tasks`, `crewai.task.description`"),
        ("output", "`output.value` (`raw` of the crew's output), `crewai.crew.result`, `crewai.task.output`"),
        ("agent's name", "the role in the span's name, `crewai.agent.role`"),
        ("tokens", "of the model calls; else `token_usage` in the crew's output"),
    ],
    notes: "CrewAI's built-in telemetry goes to its makers and is not an OTLP exporter of yours.",
    cases: &["openinference-crewai", "openinference-crewai_llm"],
};

/// The tasks of a crew as JSON.
const TASKS: &str = "crew_tasks";
/// Where the result of a crew states what its model calls used.
const USAGE: &str = "token_usage";

impl Dialect for CrewAi {
    fn name(&self) -> &'static str {
        "crewai"
    }

    fn guide(&self) -> &'static Guide {
        &GUIDE
    }

    fn speaks(&self, span: &RawSpan) -> bool {
        span.scope.name.ends_with("crewai") || span.name.ends_with(".kickoff") || span.attributes.contains_key(TASKS)
    }

    fn read(&self, span: &RawSpan) -> Reading {
        use Field as F;
        let slots: Slots<'_, FIELDS> = Slots::collect(&span.attributes, place);
        let mut reading = Reading { framework: Some("crewai".to_owned()), ..Reading::default() };
        let asked = slots.get(F::Tasks as usize).and_then(|(key, value)| Some((key, tasks(value)?)));
        let sources = &mut reading.sources;
        fill("input", &mut reading.input, sources, asked.or_else(|| slots.text(F::Task as usize)));
        let answered = slots.get(F::Result as usize).and_then(|(key, value)| Some((key, words::answer(value)?)));
        fill("output", &mut reading.output, sources, answered);
        fill("agent_name", &mut reading.agent_name, sources, slots.text(F::Agent as usize));
        if slots.text(F::Kind as usize).is_some_and(|(_, kind)| kind.eq_ignore_ascii_case("chain")) {
            usage(slots.get(F::Output as usize), &mut reading);
        }
        reading
    }
}

/// The fields that one pass over the attributes fills.
#[derive(Clone, Copy)]
enum Field {
    Tasks,
    Task,
    Result,
    Agent,
    Output,
    Kind,
}

const FIELDS: usize = Field::Kind as usize + 1;

fn place(name: &str) -> Option<(usize, u8)> {
    use Field as F;
    let (field, rank) = match name {
        TASKS => (F::Tasks, 0),
        "crewai.task.description" => (F::Task, 0),
        "crewai.crew.result" => (F::Result, 0),
        "crewai.task.output" => (F::Result, 1),
        "crewai.agent.role" => (F::Agent, 0),
        keys::openinference::OUTPUT => (F::Output, 0),
        keys::openinference::KIND => (F::Kind, 0),
        _ => return None,
    };
    Some((field as usize, rank))
}

/// What all model calls of a crew used, which its result states; nothing in the result of any other step counts.
fn usage(output: recorded::Found<'_>, reading: &mut Reading) {
    let Some((key, value)) = output.filter(|(_, value)| value.as_str().is_none_or(|text| text.contains(USAGE))) else {
        return;
    };
    let result = salvage::unwrapped(value);
    let is_crews = ["raw", "tasks_output"].iter().all(|name| result.get(*name).is_some());
    let Some(counts) = result.get(USAGE).filter(|counts| is_crews && counts.is_object()) else { return };
    let of = |name: &str| attributes::count(counts.get(name)?).map(|count| (key, count));
    let (usage, sources) = (&mut reading.usage, &mut reading.sources);
    fill("usage.input", &mut usage.input, sources, of("prompt_tokens"));
    fill("usage.output", &mut usage.output, sources, of("completion_tokens"));
    fill("usage.total", &mut usage.total, sources, of("total_tokens"));
    fill("usage.cache_read", &mut usage.cache_read, sources, of("cached_prompt_tokens"));
    fill("usage.cache_write", &mut usage.cache_write, sources, of("cache_creation_tokens"));
    fill("usage.reasoning", &mut usage.reasoning, sources, of("reasoning_tokens"));
}

/// What the tasks of a crew ask for.
fn tasks(value: &Value) -> Option<String> {
    let tasks = salvage::unwrapped(value);
    let asked: Vec<&str> = tasks.as_array()?.iter().filter_map(|task| description(task.as_object()?)).collect();
    (!asked.is_empty()).then(|| asked.join("\n"))
}

fn description(task: &Map<String, Value>) -> Option<&str> {
    task.get("description").and_then(Value::as_str).filter(|text| !salvage::is_missing(text))
}
