//! `log_trace`: one execution becomes one stored trace, and on request one evaluation.

use std::sync::Arc;

use iris_core::contract::{Error, LogTraceArgs, LogTraceReply, Span};
use iris_core::model::{
    Attributes, CostSource, Lane, Position, RawEvent, RawSpan, Resource, Run, Scope, SpanId, StatusCode, Timestamp,
    Trace, TraceId, TraceSource,
};
use serde_json::Value;

use super::{App, Caller, exported, mark_evaluations, to_value};
use crate::store::ToolWrite;

/// Steps one call may carry.
const SPANS_MAX: usize = 10_000;

impl App {
    pub(super) async fn log_trace(&self, args: LogTraceArgs, caller: &Caller) -> Result<Value, Error> {
        let (evaluate, eval_type) = (args.evaluate.unwrap_or(false), args.eval_type.unwrap_or_default());
        let catalogue = args.tools.clone();
        let timestamp = match &args.timestamp {
            Some(text) => time("timestamp", text)?,
            None => (self.world.now)(),
        };
        let trace_id = self.new_trace_id();
        let spans = self.spans(args.spans.as_deref().unwrap_or_default(), trace_id, &args.agent_name)?;
        let trace = trace(args, trace_id, timestamp, &spans, caller);
        let export = self
            .facts
            .export
            .as_ref()
            .map(|exporter| (exporter, exported::request(&trace, &spans, exporter.service_name()).to_string()));
        let write = ToolWrite::Trace {
            trace: trace.clone(),
            spans,
            position: Position { lane: Lane::Traces, seq: 0, ordinal: 0 },
        };
        self.keep(write, caller).await?;
        self.backend()?.pipeline.costs().remember(&trace);
        if let Some((exporter, body)) = export {
            exporter.send(body.into());
        }
        let (mut evaluation, mut note) = (None, None);
        if evaluate {
            match self.judge_stored(&trace, catalogue, eval_type, caller).await {
                Ok(judged) => evaluation = Some(judged),
                Err(error) => note = Some(not_judged(&error)),
            }
        }
        let trace_id = trace_id.to_string();
        let mut reply =
            to_value(self, &LogTraceReply { untrusted: None, trace_id, status: "stored", evaluation, note })?;
        mark_evaluations(&mut reply, "evaluation");
        Ok(reply)
    }

    fn spans(&self, spans: &[Span], trace_id: TraceId, agent_name: &str) -> Result<Vec<RawSpan>, Error> {
        if spans.len() > SPANS_MAX {
            return Err(Error::invalid_argument("spans", format!("{} steps; at most {SPANS_MAX}", spans.len())));
        }
        let mut attributes = Attributes::new();
        attributes.insert("service.name".to_owned(), Value::String(agent_name.to_owned()));
        let resource = Arc::new(Resource { attributes });
        let scope = Arc::new(Scope { name: "iris.log_trace".to_owned(), ..Scope::default() });
        spans.iter().enumerate().map(|(index, span)| self.span(index, span, trace_id, &resource, &scope)).collect()
    }

    fn span(
        &self,
        index: usize,
        span: &Span,
        trace_id: TraceId,
        resource: &Arc<Resource>,
        scope: &Arc<Scope>,
    ) -> Result<RawSpan, Error> {
        let field = |name: &str| format!("spans[{index}].{name}");
        let id = |name: &str, text: &str| {
            text.parse::<SpanId>().map_err(|error| Error::invalid_argument(&field(name), error))
        };
        let span_id = match &span.span_id {
            Some(text) => id("span_id", text)?,
            None => self.new_span_id(),
        };
        let start = time(&field("start_time"), &span.start_time)?;
        let end = span.end_time.as_deref().map(|text| time(&field("end_time"), text)).transpose()?;
        if end.is_some_and(|end| end < start) {
            return Err(Error::invalid_argument(&field("end_time"), "lies before start_time"));
        }
        let mut attributes = span.attributes.clone().unwrap_or_default();
        attributes.entry("iris.span_kind").or_insert_with(|| serde_json::to_value(span.kind).unwrap_or_default());
        let events = span.events.as_deref().unwrap_or_default().iter().enumerate();
        Ok(RawSpan {
            trace_id,
            span_id,
            parent_span_id: span.parent_span_id.as_deref().map(|text| id("parent_span_id", text)).transpose()?,
            flags: 0,
            trace_state: String::new(),
            name: span.name.clone(),
            kind: span.kind.into(),
            start,
            end: end.unwrap_or_default(),
            status: span.status_code.into(),
            status_message: span.status_message.clone().unwrap_or_default(),
            attributes,
            events: events
                .map(|(at, event)| {
                    Ok(RawEvent {
                        time: time(&field(&format!("events[{at}].timestamp")), &event.timestamp)?,
                        name: event.name.clone(),
                        attributes: event.attributes.clone().unwrap_or_default(),
                    })
                })
                .collect::<Result<_, Error>>()?,
            links: Vec::new(),
            dropped: 0,
            resource: Arc::clone(resource),
            scope: Arc::clone(scope),
        })
    }

    fn new_span_id(&self) -> SpanId {
        let mut bytes = [0; 8];
        loop {
            (self.world.random)(&mut bytes);
            if let Some(id) = SpanId::from_bytes(&bytes) {
                return id;
            }
        }
    }
}

/// A failure after the trace was stored must not look like one of storing it: the call would be made again.
fn not_judged(error: &Error) -> String {
    format!(
        "the trace is stored and must not be logged again, but there is no evaluation in this reply ({error}); \
         evaluate_output with the trace_id judges it"
    )
}

fn time(field: &str, text: &str) -> Result<Timestamp, Error> {
    Timestamp::parse(text).ok_or_else(|| {
        Error::invalid_argument(field, "an ISO 8601 timestamp with an offset or Z, such as 2026-12-01T09:30:00Z")
    })
}

fn trace(args: LogTraceArgs, trace_id: TraceId, timestamp: Timestamp, spans: &[RawSpan], caller: &Caller) -> Trace {
    let count =
        |test: fn(&RawSpan) -> bool| u32::try_from(spans.iter().filter(|span| test(span)).count()).unwrap_or(u32::MAX);
    let mut metadata = args.metadata.unwrap_or_default();
    let kept = [
        ("tools", args.tools.map(|tools| tools.into_iter().map(Value::Object).collect())),
        ("run", args.run.map(Value::String)),
        ("case_key", args.case_key.map(Value::String)),
    ];
    metadata.extend(kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let run = Run {
        agent_name: Some(args.agent_name.clone()),
        input: args.input.clone(),
        output: args.output.clone(),
        tool_calls: args.tool_calls.clone().unwrap_or_default(),
        token_usage: args.token_usage,
        cost_usd: args.cost_usd,
        latency_ms: args.latency_ms,
        ..Run::default()
    };
    Trace {
        tenant: caller.tenant.clone(),
        trace_id,
        version: 1,
        source: TraceSource::Tool,
        agent_name: args.agent_name,
        framework: args.framework,
        input: args.input,
        output: args.output,
        tool_calls: args.tool_calls,
        latency_ms: args.latency_ms,
        token_usage: args.token_usage,
        cost_usd: args.cost_usd,
        cost_source: args.cost_usd.map(|_| CostSource::Reported),
        cost_parts: None,
        metadata,
        timestamp,
        session_id: args.session_id,
        user_id: None,
        model: None,
        provider: None,
        environment: None,
        service_version: None,
        runs: vec![run],
        partial: false,
        in_progress: false,
        conflicting_spans: false,
        span_count: count(|_| true),
        error_count: count(|span| span.status == StatusCode::Error),
        notes: iris_core::model::Notes::default(),
        seen_through: 0,
    }
}
