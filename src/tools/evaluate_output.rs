//! `evaluate_output`: judge a text, with what a trace holds where the call leaves it out.

use std::sync::Arc;

use iris_core::contract::{Error, EvaluateOutputArgs, EvaluateOutputReply};
use iris_core::evaluate::{self, Identity, Subject};
use iris_core::model::{EvalType, Evaluation, Lane, Position, RowKey, Trace, TraceId};
use serde_json::{Map, Value, json};

use super::{App, Caller, marks, to_value, trace_id};
use crate::store::ToolWrite;

/// Text up to which judging takes less time than handing it to another thread is worth, in bytes.
const AT_ONCE_BYTES_MAX: usize = 4096;

/// Said when the caller did not choose a bundle.
const NOTE: &str = "eval_type was left out, so every bundle ran; name one to run less";

impl App {
    pub(super) async fn evaluate_output(&self, args: EvaluateOutputArgs, caller: &Caller) -> Result<Value, Error> {
        let id = args.trace_id.as_deref().map(trace_id).transpose()?;
        let trace = match id {
            Some(id) => Some(self.find(id, caller).await?),
            None => None,
        };
        let chosen = args.eval_type;
        let mut reply = self.judge(args, trace.as_ref(), chosen.unwrap_or_default(), caller).await?;
        reply.rules_changed = Some(self.rulebook.changes(&caller.tenant)).filter(|changes| *changes > 0);
        reply.note = chosen.is_none().then(|| NOTE.to_owned());
        to_value(self, &reply)
    }

    /// Judges a trace as it was just stored.
    pub(super) async fn judge_stored(
        &self,
        trace: &Trace,
        tools: Option<Vec<Map<String, Value>>>,
        eval_type: EvalType,
        caller: &Caller,
    ) -> Result<Value, Error> {
        let args = EvaluateOutputArgs { tools, ..EvaluateOutputArgs::default() };
        let reply = self.judge(args, Some(trace), eval_type, caller).await?;
        to_value(self, &reply)
    }

    /// The trace of that id, open or stored.
    pub(super) async fn find(&self, id: TraceId, caller: &Caller) -> Result<Trace, Error> {
        let backend = self.backend()?;
        let key = RowKey { tenant: caller.tenant.clone(), trace_id: id };
        if let Some((trace, _)) = backend.pipeline.open_trace(&key).await.map_err(|error| self.failed(&error))? {
            return Ok(trace);
        }
        let stored = backend.store.trace(&caller.tenant, id).await.map_err(|error| self.failed(&error))?;
        stored.ok_or_else(|| Error::unknown_trace(&id))
    }

    async fn judge(
        &self,
        args: EvaluateOutputArgs,
        trace: Option<&Trace>,
        eval_type: EvalType,
        caller: &Caller,
    ) -> Result<EvaluateOutputReply, Error> {
        let identity = Identity {
            id: self.new_evaluation_id(),
            tenant: caller.tenant.clone(),
            trace_id: trace.map(|trace| trace.trace_id),
            trace_version: trace.map(|trace| trace.version),
            seen_through: trace.map_or(0, |trace| trace.seen_through),
            position: None,
            inline: false,
        };
        let stored = trace.cloned();
        let rulebook = self.rulebook.clone();
        let history = match trace {
            Some(trace) => self.backend()?.pipeline.costs().before(trace),
            None => Vec::new(),
        };
        let settings = Arc::clone(&self.settings);
        let now = (self.world.now)();
        let bytes = weight(&args, trace);
        let work = move || {
            let trace = stored.as_ref();
            let ruleset = rulebook.snapshot(&identity.tenant).with_inline(args.inline_rules());
            let (tools, expected) = expectations(&args);
            // What the model said of its stopping belongs to the output it gave.
            let stopped = trace.and_then(|trace| trace.runs.last()).filter(|_| args.output.is_none());
            let subject = Subject {
                output: args.output.as_deref().or_else(|| trace?.output.as_deref()),
                input: args.input.as_deref().or_else(|| trace?.input.as_deref()),
                expected: args.expected.as_deref(),
                tool_calls: args.tool_calls.as_deref().or_else(|| trace?.tool_calls.as_deref()),
                cost_usd: args.cost_usd.or_else(|| trace?.cost_usd),
                cost_history: &history,
                tools_catalogue: tools.as_ref().or_else(|| trace?.metadata.get("tools")),
                expected_trajectory: expected.as_ref(),
                finish_reasons: stopped.map(|run| run.finish_reasons.as_slice()).unwrap_or_default(),
                cost_parts: trace.and_then(|trace| trace.cost_parts.as_ref()),
                token_usage: args.token_usage.or_else(|| trace?.token_usage),
            };
            evaluate::evaluate(&ruleset, &subject, &settings, eval_type, identity, now)
        };
        let mut evaluation = if bytes <= AT_ONCE_BYTES_MAX {
            work()
        } else {
            tokio::task::spawn_blocking(work).await.map_err(|error| self.unforeseen(&error))?
        };
        let position = Position { lane: Lane::Traces, seq: 0, ordinal: 0 };
        evaluation.position = Some(position);
        let reply = reply(&evaluation);
        self.keep(ToolWrite::Evaluation { evaluation, position }, caller).await?;
        Ok(reply)
    }
}

/// How many bytes of text there are to judge, about.
fn weight(args: &EvaluateOutputArgs, trace: Option<&Trace>) -> usize {
    let own = [&args.output, &args.input, &args.expected].into_iter().flatten().map(String::len).sum::<usize>();
    let has_more = trace.is_some() || args.tool_calls.is_some() || args.tools.is_some() || args.custom_rules.is_some();
    if has_more { usize::MAX } else { own }
}

/// The tools on offer and the expected calls, as rules read them.
pub fn expectations(args: &EvaluateOutputArgs) -> (Option<Value>, Option<Value>) {
    (args.tools.as_ref().map(|tools| json!(tools)), args.expected_trajectory.as_ref().map(|expected| json!(expected)))
}

/// What the caller is told of an evaluation: the same now and on every later read.
pub fn reply(evaluation: &Evaluation) -> EvaluateOutputReply {
    let skipped = evaluation.rule_results.iter().filter(|result| result.skipped).count();
    let judged = evaluation.rule_results.len() - skipped;
    let coverage = evaluate::coverage(evaluation);
    EvaluateOutputReply {
        untrusted: marks::of_evaluation(evaluation, &coverage),
        id: evaluation.id.clone(),
        trace_id: evaluation.trace_id.map(|id| id.to_string()),
        verdict: json!(evaluate::compose(evaluation)),
        coverage: json!(coverage),
        provenance: evaluation.provenance.clone(),
        erased_at: evaluation.erased_at.map(|time| time.to_string()),
        eval_type: evaluation.eval_type,
        score: evaluation.score,
        passed: evaluation.passed,
        rule_results: evaluation.rule_results.clone(),
        suggestions: evaluation.suggestions.clone(),
        rules_evaluated: judged,
        rules_skipped: skipped,
        insufficient_data: judged == 0,
        critical_failures: evaluate::critical_failures(evaluation),
        critical_skipped: evaluate::critical_skipped(evaluation),
        categories: (evaluation.eval_type == EvalType::All).then(|| json!(evaluate::categories(evaluation))),
        note: None,
        rules_changed: None,
    }
}
