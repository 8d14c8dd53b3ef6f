//! What real instrumentations sent, understood and compared with what really happened.
//!
//! Cases lie in `tests/cases/dialect/DIALECT/SCENARIO`: the requests in the order they were sent and `expected.json`,
//! the truth of the program that ran. A field is scored only where the bytes carry it.

mod capture;
mod guides;
mod score;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use capture::Capture;
use iris_core::evaluate::{Ruleset, Settings, compose, judge_trace};
use iris_core::model::{Timestamp, Trace};
use proptest::prelude::*;
use score::Board;

/// The least share of right answers: of all, of every field and of every dialect.
const SHARE_MIN: f64 = 0.985;
const FIELD_MIN: f64 = 0.97;
const DIALECT_MIN: f64 = 0.93;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/dialect")
}

#[test]
fn cases_are_understood() {
    let board = board(&cases());
    assert!(board.scored() > 100, "only {} answers were scored", board.scored());
    hold(&board);
}

fn board(folder: &Path) -> Board {
    let captures = capture::all(folder);
    let mut board = Board::of(&captures);
    board.judge(&captures, &capture::live(folder));
    board
}

fn hold(board: &Board) {
    let weak = [board.below(FIELD_MIN), board.dialects_below(DIALECT_MIN)].concat();
    assert!(weak.is_empty(), "fields below {FIELD_MIN} or dialects below {DIALECT_MIN}: {weak:?}\n{board}");
    assert!(board.share() >= SHARE_MIN, "{} of all\n{board}", board.share());
}

/// Runs over a folder of captures: `IRIS_CAPTURES=dir cargo test -p iris-core captures -- --ignored --nocapture`.
#[test]
#[ignore = "needs a folder of captures"]
#[expect(clippy::print_stdout, reason = "the answer of a run by hand")]
fn captures_are_understood() {
    let Some(folder) = std::env::var_os("IRIS_CAPTURES") else { panic!("IRIS_CAPTURES names no folder") };
    let board = board(Path::new(&folder));
    println!("{board}\nof all {:.4}", board.share());
    hold(&board);
}

/// What is kept and judged is decided row by row; it must be what is understood in the end.
#[test]
fn a_trace_is_made_exactly_where_a_row_is_agentic() {
    for capture in capture::all(&cases()) {
        let made: BTreeSet<_> = capture.traces(|rows| rows).iter().map(|trace| trace.trace_id).collect();
        assert_eq!(made, capture.agentic(), "{}", capture.name());
    }
}

proptest! {
    // Every case of the repository, each time shuffled and split anew.
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(24)))]

    #[test]
    fn order_and_batching_do_not_matter(seed in any::<u64>(), requests in 1..40_usize) {
        for (capture, straight) in understood() {
            let shuffled = capture.traces(|rows| capture::shuffled(rows, seed));
            prop_assert_eq!(straight, &shuffled, "{} shuffled", capture.name());
            // Positions say in which request a row came: they move, and with them only what was seen last.
            let split = capture.split(seed, requests).traces(|rows| capture::shuffled(rows, !seed));
            prop_assert_eq!(plain(straight), plain(&split), "{} split", capture.name());
        }
    }
}

/// Every case and what is understood of it as it came.
fn understood() -> &'static [(Capture, Vec<Trace>)] {
    static UNDERSTOOD: LazyLock<Vec<(Capture, Vec<Trace>)>> = LazyLock::new(|| {
        let captures = capture::all(&cases()).into_iter();
        captures.map(|capture| (capture.clone(), capture.traces(|rows| rows))).collect()
    });
    &UNDERSTOOD
}

fn plain(traces: &[Trace]) -> Vec<Trace> {
    traces.iter().map(|trace| Trace { seen_through: 0, ..trace.clone() }).collect()
}

/// Embeddings answer nothing, so there is nothing to judge by: never a pass.
#[test]
fn embeddings_alone_are_judged_as_unknown() {
    let (rules, settings) = (Ruleset::built_in(), Settings::default());
    let is_embedding = |capture: &Capture| capture.scenario.starts_with("embed");
    let captures: Vec<_> = capture::all(&cases()).into_iter().filter(is_embedding).collect();
    assert!(captures.len() >= 2, "{} cases", captures.len());
    for capture in captures {
        let traces = capture.traces(|rows| rows);
        assert_eq!(traces.len(), 1, "{}", capture.name());
        for trace in traces {
            let verdict =
                serde_json::to_value(compose(&judge_trace(&rules, &trace, &settings, Timestamp::default()))).unwrap();
            let told = (verdict["state"].as_str(), verdict["basis"].as_str());
            assert_eq!(told, (Some("unknown"), Some("required_evidence_missing")), "{}: {verdict}", capture.name());
        }
    }
}

/// Every scenario of a folder, shuffled and split ten ways: no number, text or step may depend on the order of arrival.
/// `IRIS_CAPTURES=dir cargo test -p iris-core whatever_the_order -- --ignored --nocapture`.
#[test]
#[ignore = "needs a folder of captures"]
#[expect(clippy::print_stdout, reason = "the answer of a run by hand")]
fn captures_come_out_the_same_whatever_the_order() {
    let Some(folder) = std::env::var_os("IRIS_CAPTURES") else { panic!("IRIS_CAPTURES names no folder") };
    let (mut traces, mut ways) = (0, 0);
    for capture in capture::all(Path::new(&folder)) {
        let straight = plain(&capture.traces(|rows| rows));
        traces += straight.len();
        for seed in 0..10_u64 {
            let requests = usize::try_from(seed).unwrap() * 4 + 1;
            let split = capture.split(seed, requests).traces(|rows| capture::shuffled(rows, !seed));
            assert_eq!(straight, plain(&split), "{} seed {seed}", capture.name());
            ways += 1;
        }
    }
    println!("{traces} traces, {ways} shuffles");
}

/// Every tool call of a trace is in exactly one of its runs, and so are its tokens.
#[test]
fn every_tool_call_and_token_is_in_one_run() {
    for (capture, traces) in understood() {
        for trace in traces.iter().filter(|trace| !trace.conflicting_spans) {
            let mut all: Vec<String> = trace.tool_calls.iter().flatten().map(|call| format!("{call:?}")).collect();
            let mut of_runs: Vec<String> =
                trace.runs.iter().flat_map(|run| &run.tool_calls).map(|call| format!("{call:?}")).collect();
            all.sort();
            of_runs.sort();
            assert_eq!(all, of_runs, "{}", capture.name());
            let sum = trace.runs.iter().filter_map(|run| run.token_usage?.prompt_tokens).reduce(|one, two| one + two);
            assert_eq!(trace.token_usage.and_then(|usage| usage.prompt_tokens), sum, "{}", capture.name());
        }
    }
}
