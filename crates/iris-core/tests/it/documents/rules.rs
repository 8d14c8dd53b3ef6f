//! `docs/rules.md` is what the rules say of themselves, what was measured of them, and examples of their own pages.

use std::fmt::Write as _;
use std::fs;

use iris_core::evaluate::{Accuracy, Matrix, Record, Source, is_conformance};
use iris_core::rules::{Bundle, Kind, Need, RULES, RuleMeta};
use serde_json::Value;

use super::{hold, root};

/// Characters of a value in an example.
const SHOWN_CHARS_MAX: usize = 110;

const INTRODUCTION: &str = "# The built-in rules

<!-- Written by `IRIS_BLESS=1 cargo test -p iris-core rules_are_documented` from the rules and their examples. -->

A rule reads one trace, or one output that a call gives it, and says pass or fail with evidence, or that it could not look
(`not_checked`). Without one of its *needs* it is not asked; what it *reads* besides makes it more exact. What a failure does follows from the kind:

| kind | what a failure does |
|---|---|
| measurement | moves the score, never decides |
| detection, inference | enters the risk with its measured accuracy; decides at once (`detector_veto`) when the rule vetoes |
| policy | decides (`policy_gate`); a policy that only holds a number against the shipped one advises, until you set the number or make the rule critical |

`eval.critical_rules` makes a rule veto, `eval.non_critical_rules` takes it back, `eval.rule_thresholds` sets a number. `iris-sidecar proof` measures the accuracy anew, and
[proof.md](proof.md) says what the two sources are worth. [verdicts.md](verdicts.md) says how results become a verdict,
[custom-rules.md](custom-rules.md) how to write rules of your own. Text in braces such as `{alnum:36}` stands for drawn characters.
";

fn words<T>(all: &[T], name: impl Fn(&T) -> &str) -> String {
    all.iter().map(|one| format!("`{}`", name(one))).collect::<Vec<_>>().join(", ")
}

fn hundredths(value: Option<f64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| format!("{value:.2}"))
}

fn statistics(counts: Matrix) -> String {
    let ends =
        |ends: Option<(f64, f64)>| ends.map_or_else(String::new, |(low, high)| format!(" ({low:.2} to {high:.2})"));
    format!(
        "precision {}{}, recall {}{} in {}",
        hundredths(counts.precision()),
        ends(counts.precision_interval()),
        hundredths(counts.recall()),
        ends(counts.recall_interval()),
        counts.n(),
    )
}

fn measured(meta: &RuleMeta, accuracy: &Accuracy) -> String {
    if is_conformance(meta, accuracy) {
        let own = accuracy.own(&meta.name, meta.version);
        return own.map_or_else(
            || "Not measured.".to_owned(),
            |own| format!("Does what it is defined to do in {} of {} own cases.", own.tp + own.tn, own.n()),
        );
    }
    let own = accuracy.own(&meta.name, meta.version).map(|own| format!("{} own cases", statistics(own)));
    let others = accuracy
        .of(&meta.name, meta.version)
        .filter(|(source, _)| *source == Source::Independent)
        .map(|(_, counts)| format!("{} texts that others labelled", statistics(counts)));
    let all: Vec<String> = others.into_iter().chain(own).collect();
    if all.is_empty() { "Not measured.".to_owned() } else { format!("Accuracy: {}.", all.join("; ")) }
}

fn facts(meta: &RuleMeta) -> String {
    let mut facts = format!("{}, {}; version {}", meta.kind.as_str(), meta.mechanism.as_str(), meta.version);
    let _ = write!(facts, "; needs {}", words(meta.needs, |need: &Need| need.as_str()));
    if !meta.reads.is_empty() {
        let _ = write!(facts, "; reads {}", words(meta.reads, |need: &Need| need.as_str()));
    }
    let _ = write!(facts, "; {}", if meta.critical { "**vetoes**" } else { "does not veto" });
    if !meta.classes.is_empty() {
        let _ = write!(facts, "; looks for {}", words(meta.classes, |class| class.as_str()));
    }
    for knob in meta.knobs {
        let _ = write!(facts, "; `{}` is {} ({} to {})", knob.name, knob.default, knob.lowest, knob.highest);
    }
    facts
}

/// A value of an example in one line of code, cut when it is long.
fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut line = String::new();
    for letter in text.chars().take(SHOWN_CHARS_MAX) {
        match letter {
            '`' => line.push('\''),
            '\n' | '\r' | '\t' => line.extend(letter.escape_default()),
            // What cannot be seen, or would turn a page around, is written out.
            '\u{ad}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                line.extend(letter.escape_unicode());
            }
            '\u{e0000}'..='\u{e0fff}' => line.extend(letter.escape_unicode()),
            letter if letter.is_control() => line.extend(letter.escape_unicode()),
            letter => line.push(letter),
        }
    }
    if text.chars().count() > SHOWN_CHARS_MAX {
        line.push('…');
    }
    if line.is_empty() { "empty".to_owned() } else { format!("`{line}`") }
}

/// What an example supplies, without what its test looks for.
fn example(example: &Value) -> String {
    const SUPPLIED: [&str; 10] = [
        "input",
        "output",
        "expected",
        "tools",
        "expected_trajectory",
        "tool_calls",
        "cost_usd",
        "cost_history",
        "token_usage",
        "finish_reasons",
    ];
    let field = |name: &&str| Some(format!("{name} {}", shown(example.get(*name)?)));
    let mut supplied: Vec<String> = SUPPLIED.iter().filter_map(field).collect();
    let set = ["thresholds", "lists"].iter().filter_map(field);
    supplied.extend(set);
    let why = example.get("why").and_then(Value::as_str);
    why.into_iter().map(|why| format!("{why}:")).chain([supplied.join(", ")]).collect::<Vec<_>>().join(" ")
}

fn rule(meta: &RuleMeta, accuracy: &Accuracy) -> String {
    let (bundle, name) = (meta.bundle.as_str(), &meta.name);
    let path = root().join(format!("crates/iris-core/src/rules/{bundle}/{name}.toml"));
    let page: Value = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut text = format!(
        "### {name}\n{} *{}.* {} When it fails: {}\n",
        meta.description,
        facts(meta),
        measured(meta, accuracy),
        meta.suggestion
    );
    for (outcome, does, most) in [("fail", "fails", 2), ("pass", "passes", 1)] {
        let examples = page.get(outcome).and_then(Value::as_array).unwrap();
        for one in examples.iter().take(most) {
            let _ = writeln!(text, "- {does}: {}", example(one));
        }
    }
    text
}

fn page() -> String {
    let accuracy = Record::published().accuracy();
    let mut page = INTRODUCTION.to_owned();
    for bundle in Bundle::ALL {
        let rules: Vec<&RuleMeta> =
            RULES.iter().map(|rule| rule.meta()).filter(|meta| meta.bundle == *bundle).collect();
        if rules.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## {}\n", bundle.as_str());
        for meta in rules {
            let _ = write!(page, "\n{}", rule(meta, &accuracy));
        }
    }
    page
}

/// Guarantees: the page lists every rule with its examples, and says of each kind what the composer does with it.
#[test]
fn rules_are_documented() {
    hold("rules.md", &page(), "rules_are_documented");
    for rule in RULES {
        let kind = rule.meta().kind;
        let is_told = matches!(kind, Kind::Measurement | Kind::Detection | Kind::Inference | Kind::Policy);
        assert!(is_told, "the introduction does not say what a {} does", kind.as_str());
    }
}
