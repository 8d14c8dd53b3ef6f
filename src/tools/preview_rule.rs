//! What a definition would have said of stored traces. Nothing is written.

use std::time::Duration;

use iris_core::contract::{Code, Error, PreviewRuleArgs};
use iris_core::evaluate::Subject;
use iris_core::model::{Timestamp, Trace};
use iris_core::rules::custom::{CustomRule, Severity};
use iris_core::rules::{Bundle, Case, Knobs, Outcome, run};
use serde_json::{Value, json};

use super::{App, Caller, untrusted};
use crate::store::{Budget, PageRow, TraceQuery};

/// Traces that are read at a time, and the bytes of text that are whole among them.
const PAGE_TRACES: u32 = 100;
const PAGE_BYTES: u64 = 8 << 20;
/// How long a replay may take; what it has seen by then is told.
const REPLAY_MAX: Duration = Duration::from_secs(20);
/// Examples of traces that would fail, and characters of each one's output.
const EXAMPLES_MAX: usize = 5;
const EXAMPLE_CHARS: usize = 200;

/// What a replay counted.
#[derive(Default)]
struct Replay {
    passed: usize,
    failed: usize,
    skipped: usize,
    examples: Vec<Value>,
}

impl App {
    /// Replays a definition over the newest stored traces of a window.
    ///
    /// # Errors
    /// `IRIS_INVALID_RULE_CONFIG` for a definition that cannot run, `IRIS_STORAGE_ERROR`.
    pub async fn preview_rule(&self, args: PreviewRuleArgs, caller: &Caller) -> Result<Value, Error> {
        let bundle = args.bundle().unwrap_or(Bundle::Custom);
        let compiled = CustomRule::compile("preview", "", bundle, Severity::Medium, &args.definition);
        let rule = std::sync::Arc::new(compiled.map_err(|problem| Error::invalid_rule("definition", &problem))?);
        let (now, begun) = ((self.world.now)(), tokio::time::Instant::now());
        let window = Duration::from_secs(86_400 * u64::from(args.window_days()));
        let since = Timestamp::from_unix_nanos(
            now.as_unix_nanos().saturating_sub(u64::try_from(window.as_nanos()).unwrap_or(u64::MAX)),
        );
        let (wanted, mut offset, mut replay, mut complete) = (args.max_traces(), 0_u32, Replay::default(), true);
        while offset < wanted {
            if begun.elapsed() >= REPLAY_MAX {
                complete = false;
                break;
            }
            let limit = PAGE_TRACES.min(wanted - offset);
            let query = TraceQuery { since: Some(since), limit, offset: u64::from(offset), ..TraceQuery::default() };
            let budget = Budget { bytes: PAGE_BYTES, shrink: |_| false };
            let page = self.backend()?.store.traces(&caller.tenant, &query, budget).await;
            let page = page.map_err(|error| self.failed(&error))?;
            let (read, last) = (page.rows.len() + page.unreadable.len(), page.total);
            let rule = std::sync::Arc::clone(&rule);
            let judging = tokio::task::spawn_blocking(move || {
                page.rows.iter().for_each(|row| replay.judge(&rule, row));
                replay
            });
            replay = judging.await.map_err(|error| self.unforeseen(&error))?;
            offset += limit;
            if read == 0 || u64::from(offset) >= last {
                break;
            }
        }
        let sample = args.sample_output.map(|output| {
            let subject = Subject { output: Some(&output), ..Subject::default() };
            told(&run(rule.as_ref(), &Case::new(&subject), &Knobs::default()))
        });
        let mut reply = json!({
            "untrusted": untrusted(&["examples[].agentName", "examples[].outputPreview"]),
            "tracesEvaluated": replay.passed + replay.failed + replay.skipped,
            "wouldPass": replay.passed,
            "wouldFail": replay.failed,
            "wouldSkip": replay.skipped,
            "examples": replay.examples,
            "windowSinceIso": since.to_string(),
            "complete": complete,
        });
        if let (Some(sample), Value::Object(fields)) = (sample, &mut reply) {
            fields.insert("sample".to_owned(), sample);
        }
        Ok(self.shown(reply))
    }
}

impl Replay {
    fn judge(&mut self, rule: &CustomRule, row: &PageRow) {
        let trace = &row.trace;
        // What was cut on the way is not what the rule would have read.
        if row.lost.output > 0 || row.lost.tool_calls {
            self.skipped += 1;
            return;
        }
        match run(rule, &Case::new(&subject(trace)), &Knobs::default()) {
            Outcome::Pass(_) => self.passed += 1,
            Outcome::Skip { .. } => self.skipped += 1,
            Outcome::Fail(_) => {
                self.failed += 1;
                if self.examples.len() < EXAMPLES_MAX {
                    let output = trace.output.as_deref().unwrap_or_default();
                    self.examples.push(json!({
                        "traceId": trace.trace_id.to_string(),
                        "agentName": trace.agent_name,
                        "timestamp": trace.timestamp.to_string(),
                        "outputPreview": output.chars().take(EXAMPLE_CHARS).collect::<String>(),
                    }));
                }
            }
        }
    }
}

fn subject(trace: &Trace) -> Subject<'_> {
    Subject {
        output: trace.output.as_deref(),
        input: trace.input.as_deref(),
        tool_calls: trace.tool_calls.as_deref(),
        cost_usd: trace.cost_usd,
        cost_parts: trace.cost_parts.as_ref(),
        token_usage: trace.token_usage,
        ..Subject::default()
    }
}

fn told(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Pass(finding) | Outcome::Fail(finding) => json!({
            "passed": matches!(outcome, Outcome::Pass(_)), "score": finding.score, "message": finding.message, "skipped": false,
        }),
        Outcome::Skip { why, .. } => json!({
            "passed": false, "score": 0, "message": format!("not checked: {why}"), "skipped": true, "skipReason": why,
        }),
    }
}

/// Whether a failed preview is the definition's fault and not the request's.
pub(crate) fn is_rejected(error: &Error) -> bool {
    error.code == Code::InvalidRuleConfig
}
