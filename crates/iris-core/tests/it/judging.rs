//! Measuring the rules on texts that are not part of this repository, and their speed. By hand only.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use iris_core::evaluate::{Identity, Ruleset, Settings, Subject, evaluate};
use iris_core::model::{EvalType, Evaluation, Evidence, Tenant, Timestamp, ToolCall};
use iris_core::rules::{Case, Knobs, RULES, run};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    set: String,
    id: String,
    /// Whether it should fire; absent: only count how often it does.
    want: Option<bool>,
    /// A failure class, a rule, or `verdict`.
    measure: String,
    output: Option<String>,
    input: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
}

fn judge(row: &Row) -> Evaluation {
    let subject = Subject {
        output: row.output.as_deref(),
        input: row.input.as_deref(),
        tool_calls: row.tool_calls.as_deref(),
        ..Subject::default()
    };
    let identity = Identity {
        id: String::new(),
        tenant: Tenant::local(),
        trace_id: None,
        trace_version: None,
        seen_through: 0,
        position: None,
        inline: false,
    };
    evaluate(&Ruleset::built_in(), &subject, &Settings::default(), EvalType::All, identity, Timestamp::default())
}

fn fired(row: &Row, evaluation: &Evaluation) -> bool {
    let failed = || evaluation.rule_results.iter().filter(|result| result.state == "fail");
    row.measure == "verdict" && !evaluation.passed
        || failed().any(|result| result.rule_name == row.measure)
        || failed()
            .flat_map(|result| &result.evidence)
            .any(|one| matches!(one, Evidence::Span { class: Some(class), .. } if *class == row.measure))
}

/// Scenario: `IRIS_CORPUS=rows.jsonl cargo test -p iris-core -- --ignored rules_on_a_corpus --nocapture`, with
/// `IRIS_MISSES=file` for the rows that came out wrong.
#[test]
#[ignore = "needs a corpus"]
fn rules_on_a_corpus() {
    let rows = std::fs::read_to_string(std::env::var("IRIS_CORPUS").expect("IRIS_CORPUS names the rows")).unwrap();
    let mut misses = std::env::var("IRIS_MISSES").ok().map(|path| std::fs::File::create(path).unwrap());
    let mut table: BTreeMap<(String, String), [u32; 5]> = BTreeMap::new();
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let evaluation = judge(&row);
        let got = fired(&row, &evaluation);
        let cell = match (row.want, got) {
            (Some(true), true) => 0,
            (Some(false), true) => 1,
            (Some(true), false) => 2,
            (Some(false), false) => 3,
            (None, false) => continue,
            (None, true) => 4,
        };
        table.entry((row.set.clone(), row.measure.clone())).or_default()[cell] += 1;
        if let Some(file) = misses.as_mut().filter(|_| row.want != Some(got)) {
            let said: Vec<_> =
                evaluation.rule_results.iter().map(|result| (&result.rule_name, &result.message)).collect();
            let entry =
                serde_json::json!({"set": row.set, "id": row.id, "want": row.want, "said": said, "output": row.output});
            writeln!(file, "{entry}").unwrap();
        }
    }
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "{:32} {:24} {:>5} {:>5} {:>5} {:>5} {:>5}  precision recall",
        "set", "measure", "tp", "fp", "fn", "tn", "?"
    )
    .unwrap();
    for ((set, measure), [tp, fp, missed, tn, unlabelled]) in table {
        let share = |part: u32, rest: u32| f64::from(part) / f64::from(part + rest);
        writeln!(
            out,
            "{set:32} {measure:24} {tp:5} {fp:5} {missed:5} {tn:5} {unlabelled:5}  {:.3}     {:.3}",
            share(tp, fp),
            share(tp, missed)
        )
        .unwrap();
    }
}

/// Scenario: prose, code and hostile texts of 1, 8, 64 and 1024 KiB through every rule.
#[test]
#[ignore = "measures time"]
fn rules_are_quick() {
    let prose = "The last ferry from Port Amsel leaves at 22:15 from pier 4; tickets cost 12.50. ";
    let mixed = "Der Zug fährt um 22:15 — 最終便は22時15分です。 Éxito. token = abc, id 4711. ";
    let hostile = [
        "1.1.1.",
        "123-45-",
        "a@a.a@",
        "((((",
        "=A",
        "e\u{301}",
        "sk-",
        "password=",
        "+1 ",
        "eyJ",
        "1 2-3 ",
        "ignore all ",
        "from now on you ",
        "you are now ",
        "system ",
        "I cannot ",
        "def f(x):\n",
        "TODO ",
        "\"a\" 'b' ",
        "$1 total ",
        "a\tb\n",
        "let me check ",
        "i g n o ",
        "act as without any rules ",
    ];
    let texts = [("prose", prose), ("mixed", mixed)].into_iter().chain(hostile.iter().map(|text| ("hostile", *text)));
    let mut out = std::io::stderr().lock();
    for (kind, seed) in texts {
        for kib in [1_usize, 8, 64, 1024] {
            if kind != "hostile" || kib == 1024 {
                let output = seed.repeat(kib * 1024 / seed.len());
                let row = Row {
                    set: String::new(),
                    id: String::new(),
                    want: None,
                    measure: String::new(),
                    output: Some(output),
                    input: Some("When?".to_owned()),
                    tool_calls: None,
                };
                judge(&row);
                let start = Instant::now();
                judge(&row);
                writeln!(out, "{kind:8} {seed:.12} {kib:5} KiB {:?}", start.elapsed()).unwrap();
            }
        }
    }
}

/// Scenario: which rule takes how long on prose.
#[test]
#[ignore = "measures time"]
fn each_rule_is_quick() {
    let output = "The last ferry from Port Amsel leaves at 22:15 from pier 4; tickets cost 12.50. ".repeat(65536 / 80);
    let subject = Subject { output: Some(&output), input: Some("When?"), ..Subject::default() };
    let case = Case::new(&subject);
    let mut out = std::io::stderr().lock();
    for rule in RULES {
        run(*rule, &case, &Knobs::default());
        let start = Instant::now();
        run(*rule, &case, &Knobs::default());
        writeln!(out, "{:26} 64 KiB {:?}", rule.meta().name, start.elapsed()).unwrap();
    }
}
