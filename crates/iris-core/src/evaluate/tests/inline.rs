use super::*;
use crate::model::{Evidence, Run, ToolCall, Trace, TraceSource};

fn trace(output: Option<&str>) -> Trace {
    Trace {
        tenant: Tenant::local(),
        trace_id: "0af7651916cd43dd8448eb211c80319c".parse().unwrap(),
        version: 1,
        source: TraceSource::Otlp,
        agent_name: "harbor_agent".to_owned(),
        framework: None,
        input: Some("Who is it?".to_owned()),
        output: output.map(str::to_owned),
        tool_calls: Some(Vec::new()),
        latency_ms: None,
        token_usage: None,
        cost_usd: None,
        cost_source: None,
        cost_parts: None,
        metadata: serde_json::Map::new(),
        timestamp: now(),
        session_id: None,
        user_id: None,
        model: None,
        provider: None,
        environment: None,
        service_version: None,
        runs: Vec::new(),
        partial: false,
        in_progress: false,
        conflicting_spans: false,
        span_count: 1,
        error_count: 0,
        notes: crate::model::Notes::default(),
        seen_through: 7,
    }
}

fn run(output: Option<&str>) -> Run {
    Run { output: output.map(str::to_owned), input: Some("Who is it?".to_owned()), ..Run::default() }
}

fn inline(trace: &Trace) -> Evaluation {
    judge_trace(&Ruleset::built_in(), trace, &Settings::default(), now())
}

#[test]
fn a_good_answer_passes() {
    let evaluation = inline(&trace(Some("The capital of Lindoria is Port Amsel.")));
    assert!(evaluation.passed);
    assert_eq!((evaluation.inline, evaluation.seen_through, evaluation.trace_version), (true, 7, Some(1)));
}

#[test]
fn an_answer_that_was_not_captured_is_unknown_unless_a_rule_failed() {
    let mut silent = trace(None);
    let verdict = compose(&inline(&silent));
    assert_eq!((verdict.state, verdict.basis), (VerdictState::Unknown, Basis::RequiredEvidenceMissing));
    assert_eq!(verdict.by, ["output"]);
    silent.output = Some("  ".to_owned());
    assert_eq!(compose(&inline(&silent)).by, ["non_empty_output"]);
}

#[test]
fn an_open_trace_is_neither_blamed_nor_passed_for_what_has_not_come() {
    let evaluation = provisional(&Ruleset::built_in(), &trace(None), &Settings::default(), now());
    let verdict = compose(&evaluation);
    assert_eq!((verdict.state, verdict.basis), (VerdictState::Unknown, Basis::RequiredEvidenceMissing), "nor passed");
    let leak = provisional(&Ruleset::built_in(), &trace(Some("SSN 536-22-8716")), &Settings::default(), now());
    assert_eq!(compose(&leak).basis, Basis::DetectorVeto);
}

#[test]
fn the_id_follows_from_trace_version_and_ruleset() {
    let first = inline(&trace(Some("x")));
    assert_eq!(first.id, inline(&trace(Some("y"))).id);
    assert_eq!((first.id.len(), first.id.matches('-').count()), (36, 4));
    let mut later = trace(Some("x"));
    later.version = 2;
    assert_ne!(first.id, inline(&later).id);
    let provisional = provisional(&Ruleset::built_in(), &trace(Some("x")), &Settings::default(), now());
    assert_ne!(first.id, provisional.id);
}

#[test]
fn several_runs_give_one_row_with_the_worst_of_each_rule() {
    let mut both = trace(Some("Fine."));
    both.runs = vec![run(Some("→ 536-22-8716")), run(Some("Fine."))];
    let evaluation = inline(&both);
    let pii = result(&evaluation, "no_pii");
    assert_eq!(compose(&evaluation).by, ["no_pii"]);
    let Evidence::Span { source, start, end, .. } = &pii.evidence[0] else { panic!("{pii:?}") };
    assert_eq!((source.as_str(), *start, *end), ("runs[0].output", 2, 13));
    assert!(pii.message.starts_with("run 1 of 2:"));
    assert_eq!(evaluation.rule_results.len(), crate::rules::RULES.len());
}

#[test]
fn the_verdict_of_several_runs_is_the_worst_of_theirs() {
    let gravity = |state: VerdictState| match state {
        VerdictState::Pass => 0,
        VerdictState::Unknown => 1,
        VerdictState::Fail => 2,
    };
    let outputs = [Some("Fine."), Some(" "), Some("x@quayhaven.io"), None];
    for first in outputs {
        for second in outputs {
            let alone = |output| gravity(compose(&inline(&trace(output))).state);
            let mut both = trace(second);
            both.runs = vec![run(first), run(second)];
            // A run before the last may end without an answer of its own: it handed over.
            let want = alone(second).max(if first.is_none() { 0 } else { alone(first) });
            assert_eq!(gravity(compose(&inline(&both)).state), want, "{first:?} {second:?}");
        }
    }
}

#[test]
fn what_was_seen_stands_and_what_was_missing_may_come() {
    let leak = inline(&trace(Some("SSN 536-22-8716")));
    let mut later = trace(Some("Fine."));
    later.version = 2;
    let stands = stand(&leak, inline(&later));
    assert_eq!(compose(&stands).by, ["no_pii"]);
    assert_eq!(stands.state, VerdictState::Fail);
    assert_eq!(result(&stands, "no_pii").seen_in_version, Some(1));
    assert!(!stands.suggestions.is_empty() && stands.score < 1.0);

    later.version = 3;
    let still = stand(&stands, inline(&later));
    assert_eq!(result(&still, "no_pii").seen_in_version, Some(1));

    let blank = inline(&trace(Some("")));
    assert_eq!(blank.state, VerdictState::Fail);
    assert!(stand(&blank, inline(&later)).passed);

    let mut other = trace(Some("Fine."));
    other.trace_id = "1af7651916cd43dd8448eb211c80319c".parse().unwrap();
    assert!(stand(&leak, inline(&other)).passed);
}

#[test]
fn a_tool_failure_that_was_hidden_stands() {
    let mut hidden = trace(Some("Your order ships on Monday."));
    hidden.tool_calls =
        Some(vec![ToolCall { tool_name: "lookup".to_owned(), error: Some("503".to_owned()), ..Default::default() }]);
    let first = inline(&hidden);
    assert_eq!(result(&first, "no_silent_tool_failure").state, "fail");
    let mut later = trace(Some("Your order ships on Monday."));
    later.version = 2;
    assert_eq!(result(&stand(&first, inline(&later)), "no_silent_tool_failure").state, "fail");
}

#[test]
fn time_that_runs_out_within_a_trace_is_said_and_never_passed() {
    let mut many = trace(Some("The capital of Lindoria is Port Amsel."));
    many.runs = vec![run(Some("Port Amsel.")), run(Some("Port Amsel."))];
    let rules = Ruleset::built_in();
    let within = |asked_max: usize| {
        let asked = std::cell::Cell::new(0);
        let is_spent = || asked.replace(asked.get() + 1) >= asked_max;
        compose(&judge_trace_within(
            &rules,
            &many,
            &Settings::default(),
            &Given { is_spent: &is_spent, ..Given::at(now()) },
        ))
    };
    assert_eq!(within(usize::MAX).state, VerdictState::Pass);
    // The first run was judged whole, the second not at all.
    let verdict = within(rules.pick(EvalType::All).count());
    assert_eq!((verdict.state, verdict.basis), (VerdictState::Unknown, Basis::CriticalUnknown));
    let trace = Trace { in_progress: true, ..many.clone() };
    let shown =
        provisional_within(&rules, &trace, &Settings::default(), &Given { is_spent: &|| true, ..Given::at(now()) });
    assert_eq!(compose(&shown).state, VerdictState::Unknown);
}

#[test]
fn an_answer_whose_model_ran_out_of_room_is_cut_in_every_run() {
    let whole = "The capital of Lindoria is Port Amsel.";
    let cut = Run { finish_reasons: vec!["length".to_owned()], ..run(Some(whole)) };
    let of = |runs: Vec<Run>| inline(&Trace { runs, ..trace(Some(whole)) });
    let state = |evaluation: &Evaluation| result(evaluation, "not_truncated").state.clone();
    assert_eq!(state(&of(vec![cut.clone()])), "fail");
    assert_eq!(state(&of(vec![run(Some(whole)), cut])), "fail");
    assert_eq!(state(&of(vec![run(Some(whole))])), "pass");
}

/// Scenario: a trace has more spans than are looked at.
/// Guarantees: nothing wrong in those that were seen is no pass; something wrong in them is a failure as ever.
#[test]
fn what_was_not_looked_at_is_no_pass() {
    let judged = |output, cut: bool| {
        let mut trace = trace(Some(output));
        if cut {
            trace.note_cut();
        }
        judge_trace(&unmeasured(), &trace, &Settings::default(), now())
    };
    assert_eq!(judged("It is Ada Lovelace, a mathematician.", false).state, VerdictState::Pass);
    let evaluation = judged("It is Ada Lovelace, a mathematician.", true);
    let verdict = compose(&evaluation);
    assert_eq!((verdict.state, verdict.basis), (VerdictState::Unknown, Basis::RequiredEvidenceMissing));
    assert_eq!(verdict.by, ["every_span"]);
    assert!(!evaluation.passed);
    assert_eq!(evaluation.inputs["every_span"], false);
    let evaluation = judged("Her number is 536-22-8726.", true);
    assert_eq!(evaluation.state, VerdictState::Fail, "{:?}", compose(&evaluation));
}
