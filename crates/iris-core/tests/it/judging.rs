//! Measuring the rules on texts that are not part of this repository, and their speed. By hand only.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use iris_core::evaluate::{Identity, Ruleset, Settings, Subject, evaluate};
use iris_core::model::{EvalType, Evaluation, Evidence, Tenant, Timestamp, ToolCall};
use iris_core::rules::custom::{CustomRule, Severity};
use iris_core::rules::{Bundle, Case, Knobs, RULES, run};
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

/// The longest that a text of 1 MiB may take, whatever it holds, in milliseconds of a release build.
const WORST_MILLIS: f64 = 150.0;

/// The least time that something took in some rounds, in milliseconds: what else the machine did is left out.
fn least(rounds: usize, mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..rounds).map(round).fold(f64::MAX, f64::min)
}

/// Scenario: prose of 1, 8, 64 and 1024 KiB and hostile texts of 1024 through every rule; none of these takes longer
/// than it may.
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
        "token=a1b2c3d4e5f6g7h8 ",
        "%40",
        "\\u0041",
        "\u{430}a",
        "4111 1111 1111 1111 ",
        "www.a.md/",
        "v2! ",
    ];
    let texts = [("prose", prose), ("mixed", mixed)].into_iter().chain(hostile.iter().map(|text| ("hostile", *text)));
    let mut out = std::io::stderr().lock();
    let mut over = Vec::new();
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
                    input: Some("When does the last ferry leave?".to_owned()),
                    tool_calls: None,
                };
                let millis = least(if kib == 1024 { 6 } else { 100 }, || drop(judge(&row)));
                writeln!(out, "{kind:8} {seed:.12} {kib:5} KiB {millis:9.3} ms").unwrap();
                if millis > WORST_MILLIS {
                    over.push(format!("{seed:?} {millis:.0} ms"));
                }
            }
        }
    }
    assert!(cfg!(debug_assertions) || over.is_empty(), "more than {WORST_MILLIS} ms: {}", over.join(", "));
}

/// Scenario: patterns that a deployment may write, each over a text of 1 MiB that gives it as much work as there is. Each
/// answers or says that it gave up, in the time that any text may take.
#[test]
#[ignore = "measures time"]
fn patterns_of_others_are_quick() {
    let bits: String = {
        let mut draw = crate::load::Draw::new(7);
        (0..1 << 20).map(|_| if draw.next() & 1 == 1 { '1' } else { '0' }).collect()
    };
    let of = |seed: &str| seed.repeat((1 << 20) / seed.len());
    let cases = [
        ("word", r"\bguarantee[ds]?\b", of("we guarantee nothing ")),
        ("absent word", r"(?i)\b(?:confidential|internal only)\b", of("the last ferry leaves at ten ")),
        ("address", r"[\w.+-]+@[\w-]+\.[\w.-]+", of("mara.lind at quayhaven ")),
        ("address without end", r"[\w.+-]+@[\w-]+\.[\w.-]+", of("a.a@")),
        ("many states", "[01]*1[01]{18}$", bits.clone()),
        ("some states", "1[01]{10}2", bits.clone()),
        ("counted", r"(?:[a-z]{1,30} ){40}!", of("the last ferry leaves at ten ")),
        ("boundary beside foreign letters", r"\b[a-zé]{20}\b", of("é")),
        ("short boundary beside foreign letters", r"\bé\b", of("éé")),
        ("every byte matches", ".", of("a")),
        ("nothing is a match", "x*", of("a")),
        ("lines", r"(?m)^- .+$", of("- a\n")),
    ];
    let mut out = std::io::stderr().lock();
    let mut over = Vec::new();
    for (what, pattern, output) in cases {
        for kind in ["regex_match", "regex_no_match"] {
            let definition = serde_json::json!({"type": kind, "config": {"pattern": pattern}});
            let definition = serde_json::from_value(definition).unwrap();
            let rule = CustomRule::compile("ours", "", Bundle::Custom, Severity::Medium, &definition).unwrap();
            let subject = Subject { output: Some(&output), ..Subject::default() };
            let said = run(&rule, &Case::new(&subject), &Knobs::default());
            let millis = least(5, || drop(run(&rule, &Case::new(&subject), &Knobs::default())));
            writeln!(out, "{what:40} {kind:16} {:.8} {millis:9.3} ms", format!("{said:?}")).unwrap();
            if millis > WORST_MILLIS {
                over.push(format!("{what}, {kind}: {millis:.0} ms"));
            }
        }
    }
    assert!(cfg!(debug_assertions) || over.is_empty(), "more than {WORST_MILLIS} ms: {}", over.join(", "));
}

/// An ordinary agent's answer with two tool calls, `kib` KiB of each.
fn ordinary(kib: usize) -> (String, Vec<ToolCall>) {
    let answer = "The last ferry from Port Amsel leaves at 22:15 from pier 4; tickets cost 12.50. It's run by the harbour \
                  office, which doesn't take \"old\" passes. See docs/timetable.md for the winter plan.\n";
    let page = "Port Amsel timetable: ferries to Sorrel leave from pier 4 every hour until 22:15, and you can check the \
                prices at the booth (12.50 for one way). Bikes go free on weekdays. File docs/timetable.md has it all.\n";
    let fill = |seed: &str| seed.repeat((kib * 1024).div_ceil(seed.len()));
    let call = |name: &str, input: serde_json::Value| ToolCall {
        tool_name: name.to_owned(),
        input: Some(input),
        output: Some(serde_json::json!({ "content": fill(page), "source": "harbour", "pages": 3 })),
        ..ToolCall::default()
    };
    let calls = vec![
        call("search_docs", serde_json::json!({"query": "last ferry Port Amsel", "limit": 5})),
        call("get_weather", serde_json::json!({"city": "Port Amsel"})),
    ];
    (fill(answer), calls)
}

/// Scenario: which rule takes how long on an ordinary trace, and all together: the least of many rounds, in microseconds,
/// for 1, 8 and 64 KiB of answer with 1 KiB of each of two results, and with results as long as the answer.
#[test]
#[ignore = "measures time"]
fn each_rule_is_quick() {
    let ask = "When does the last ferry from Port Amsel leave on weekdays, and what does a ticket cost?";
    let mut out = std::io::stderr().lock();
    let mut table: BTreeMap<usize, (&str, Vec<f64>)> = BTreeMap::new();
    for (answer, results) in [(1, 1), (8, 1), (64, 1), (8, 8), (64, 64)] {
        let (output, calls) = (ordinary(answer).0, ordinary(results).1);
        let subject =
            Subject { output: Some(&output), input: Some(ask), tool_calls: Some(&calls), ..Subject::default() };
        let mut least = vec![f64::MAX; RULES.len() + 1];
        for _ in 0..if answer == 1 { 1000 } else { 200 } {
            let case = Case::new(&subject);
            let all = Instant::now();
            for (rule, least) in RULES.iter().zip(&mut least) {
                let start = Instant::now();
                std::hint::black_box(run(*rule, &case, &Knobs::default()));
                *least = least.min(start.elapsed().as_secs_f64() * 1e6);
            }
            let all = all.elapsed().as_secs_f64() * 1e6;
            if let Some(least) = least.last_mut() {
                *least = least.min(all);
            }
        }
        let names = RULES.iter().map(|rule| rule.meta().name.as_ref()).chain(["all"]);
        for (at, (name, least)) in names.zip(least).enumerate() {
            table.entry(at).or_insert((name, Vec::new())).1.push(least);
        }
    }
    writeln!(out, "{:28} {:>9} {:>9} {:>9} {:>9} {:>9}", "us", "1+1", "8+1", "64+1", "8+8", "64+64").unwrap();
    for (name, times) in table.into_values() {
        let shown: Vec<String> = times.iter().map(|time| format!("{time:9.1}")).collect();
        writeln!(out, "{name:28} {}", shown.join(" ")).unwrap();
    }
}
