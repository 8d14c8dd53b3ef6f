use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::detect::sample::expand;
use crate::model::{Evidence, ToolCall};

/// One example of a rule's page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    why: Option<String>,
    output: Option<String>,
    input: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
    expected: Option<String>,
    tools: Option<serde_json::Value>,
    expected_trajectory: Option<serde_json::Value>,
    cost_usd: Option<f64>,
    #[serde(default)]
    cost_history: Vec<f64>,
    token_usage: Option<crate::model::TokenUsage>,
    #[serde(default)]
    finish_reasons: Vec<String>,
    /// Numbers and lists that the deployment set.
    #[serde(default)]
    thresholds: BTreeMap<String, f64>,
    #[serde(default)]
    lists: BTreeMap<String, Vec<String>>,
    /// Labels of all evidence, in order.
    #[serde(default)]
    labels: Option<Vec<String>>,
    /// Code points of the span evidence, in order.
    spans: Option<Vec<(usize, usize)>>,
    /// Every class that the evidence names.
    classes: Option<BTreeSet<String>>,
    /// Indices of the tool call evidence, in order.
    calls: Option<Vec<usize>>,
    /// The need that is missing.
    needs: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    fail: Vec<Example>,
    #[serde(default)]
    pass: Vec<Example>,
    #[serde(default)]
    skip: Vec<Example>,
}

impl Example {
    fn outcome(&self, rule: &dyn Rule) -> Outcome {
        let output = self.output.as_deref().map(expand);
        let subject = Subject {
            output: output.as_deref(),
            input: self.input.as_deref(),
            tool_calls: self.tool_calls.as_deref(),
            expected: self.expected.as_deref(),
            tools_catalogue: self.tools.as_ref(),
            expected_trajectory: self.expected_trajectory.as_ref(),
            cost_usd: self.cost_usd,
            cost_parts: None,
            cost_history: &self.cost_history,
            token_usage: self.token_usage,
            finish_reasons: &self.finish_reasons,
        };
        let set = |(name, value): (&String, &f64)| (name.clone(), (*value, ThresholdSource::Config));
        let knobs = Knobs { numbers: self.thresholds.iter().map(set).collect(), lists: self.lists.clone() };
        run(rule, &Case::new(&subject), &knobs)
    }

    fn name(&self) -> String {
        self.why.clone().or_else(|| self.output.clone()).unwrap_or_default()
    }
}

fn page_path(meta: &RuleMeta) -> PathBuf {
    let bundle = meta.bundle.as_str();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules").join(bundle).join(format!("{}.toml", meta.name))
}

fn page(meta: &RuleMeta) -> Page {
    let path = page_path(meta);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} has no page of examples", meta.name));
    toml::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn labels(evidence: &[Evidence]) -> Vec<&str> {
    let label = |evidence: &'_ Evidence| match evidence {
        Evidence::Span { .. } | Evidence::ToolCall { .. } => true,
        Evidence::Pattern { .. } | Evidence::Count { .. } => false,
    };
    evidence
        .iter()
        .filter(|one| label(one))
        .map(|one| match one {
            Evidence::Span { label, .. } | Evidence::ToolCall { label, .. } => label.as_str(),
            Evidence::Pattern { name, .. } => name,
            Evidence::Count { stat, .. } => stat,
        })
        .collect()
}

/// What is wrong with what a rule said of an example.
fn wrong(example: &Example, finding: &Finding) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, want: String, got: String| {
        if want != got {
            wrong.push(format!("{what}: want {want}, got {got}"));
        }
    };
    if let Some(want) = &example.labels {
        compare("labels", format!("{want:?}"), format!("{:?}", labels(&finding.evidence)));
    }
    if let Some(want) = &example.spans {
        let got: Vec<(usize, usize)> = finding
            .evidence
            .iter()
            .filter_map(|one| if let Evidence::Span { start, end, .. } = one { Some((*start, *end)) } else { None })
            .collect();
        compare("spans", format!("{want:?}"), format!("{got:?}"));
    }
    if let Some(want) = &example.classes {
        let got: BTreeSet<&String> = finding
            .evidence
            .iter()
            .filter_map(|one| if let Evidence::Span { class, .. } = one { class.as_ref() } else { None })
            .collect();
        compare("classes", format!("{want:?}"), format!("{got:?}"));
    }
    if let Some(want) = &example.calls {
        let got: Vec<usize> = finding
            .evidence
            .iter()
            .filter_map(|one| if let Evidence::ToolCall { index, .. } = one { Some(*index) } else { None })
            .collect();
        compare("calls", format!("{want:?}"), format!("{got:?}"));
    }
    wrong
}

#[test]
fn every_rule_keeps_the_promises_on_its_page() {
    let mut broken = String::new();
    for rule in RULES {
        let meta = rule.meta();
        let page = page(meta);
        let skips: BTreeSet<&str> = page.skip.iter().filter_map(|example| example.needs.as_deref()).collect();
        assert!(page.fail.len() >= 3 && page.pass.len() >= 3, "{}: fewer than 3 fail or 3 pass examples", meta.name);
        for need in meta.needs {
            assert!(skips.contains(need.as_str()), "{}.toml: no [[skip]] with needs = {:?}", meta.name, need.as_str());
        }
        for (want, examples) in [("fail", &page.fail), ("pass", &page.pass), ("skip", &page.skip)] {
            for example in examples {
                let outcome = example.outcome(*rule);
                let problems = match (want, &outcome) {
                    ("fail", Outcome::Fail(finding)) | ("pass", Outcome::Pass(finding)) => wrong(example, finding),
                    ("skip", Outcome::Skip { class: SkipClass::NotApplicable, .. }) => Vec::new(),
                    _ => vec![format!("does not {want}: {outcome:?}")],
                };
                for problem in problems {
                    let _ = writeln!(broken, "{} / {want} / {}: {problem}", meta.name, example.name());
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn answers_do_not_change_without_a_new_version() {
    for rule in RULES {
        let meta = rule.meta();
        let page = page(meta);
        let mut said = String::new();
        for example in page.fail.iter().chain(&page.pass).chain(&page.skip) {
            let line = match example.outcome(*rule) {
                Outcome::Fail(finding) => format!("fail {} {:?}", finding.score, labels(&finding.evidence)),
                Outcome::Pass(finding) => format!("pass {} {:?}", finding.score, labels(&finding.evidence)),
                Outcome::Skip { class, why } => format!("skip {} {why}", class.as_str()),
            };
            let _ = writeln!(said, "{line}  <- {}", example.name().escape_debug());
        }
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "snapshots"}, {
            insta::assert_snapshot!(format!("{}_v{}", meta.name, meta.version), said);
        });
    }
}

#[test]
fn messages_and_labels_never_repeat_what_was_found() {
    for rule in RULES {
        let page = page(rule.meta());
        for example in page.fail.iter().chain(&page.pass) {
            let (Outcome::Fail(finding) | Outcome::Pass(finding)) = example.outcome(*rule) else { continue };
            let told = serde_json::to_string(&finding.evidence).unwrap() + &finding.message;
            let output: Vec<char> = example.output.as_deref().map(expand).unwrap_or_default().chars().collect();
            let input: Vec<char> = example.input.as_deref().unwrap_or_default().chars().collect();
            for evidence in &finding.evidence {
                if let Evidence::Span { source, start, end, .. } = evidence {
                    let text = if source == "input" { &input } else { &output };
                    let found: String = text[*start..*end].iter().collect();
                    assert!(!told.contains(&found), "{}: {}", rule.meta().name, finding.message);
                }
            }
        }
    }
}

#[test]
fn a_missing_need_is_a_skip_and_never_a_pass() {
    let calls = [ToolCall { tool_name: "search".to_owned(), error: Some("timeout".to_owned()), ..ToolCall::default() }];
    let catalogue = serde_json::json!([{"name": "search"}]);
    let whole = Subject {
        output: Some("Write to mara.lind@quayhaven.io."),
        input: Some("Who is it?"),
        expected: Some("Mara"),
        tool_calls: Some(&calls),
        tools_catalogue: Some(&catalogue),
        expected_trajectory: Some(&catalogue),
        cost_usd: Some(0.1),
        cost_parts: None,
        token_usage: Some(crate::model::TokenUsage { prompt_tokens: Some(3), ..Default::default() }),
        cost_history: &[0.1; 30],
        finish_reasons: &[],
    };
    for rule in RULES {
        for need in rule.meta().needs {
            let mut subject = whole;
            match need {
                Need::Output => subject.output = None,
                Need::Input => subject.input = Some("  "),
                Need::Expected => subject.expected = None,
                Need::ToolCalls | Need::ToolOutputs => subject.tool_calls = Some(&[]),
                Need::ToolsCatalogue => subject.tools_catalogue = None,
                Need::ExpectedTrajectory => subject.expected_trajectory = None,
                Need::Cost => subject.cost_usd = Some(-1.0),
                Need::Tokens => subject.token_usage = None,
                Need::Citations => {}
            }
            let outcome = run(*rule, &Case::new(&subject), &Knobs::default());
            let skipped = matches!(outcome, Outcome::Skip { class: SkipClass::NotApplicable, .. });
            assert!(skipped, "{} without {}: {outcome:?}", rule.meta().name, need.as_str());
        }
    }
}

struct Broken;

impl Rule for Broken {
    fn meta(&self) -> &RuleMeta {
        completeness::non_empty_output::NonEmptyOutput.meta()
    }

    fn judge(&self, _: &Case<'_>, _: &Knobs) -> Outcome {
        panic!("a rule that fails");
    }
}

#[test]
fn a_rule_that_panics_is_a_skip() {
    let subject = Subject { output: Some("x"), ..Subject::default() };
    let outcome = run(&Broken, &Case::new(&subject), &Knobs::default());
    assert!(matches!(outcome, Outcome::Skip { class: SkipClass::Defeated, .. }));
}

#[test]
fn a_text_too_long_to_read_does_not_pass_but_may_fail() {
    let quiet = "nothing to see. ".repeat(crate::text::TEXT_BYTES_MAX / 16 + 1);
    let leaky = format!("mara.lind@quayhaven.io {quiet}");
    let judge = |output: &str| {
        let subject = Subject { output: Some(output), ..Subject::default() };
        run(&safety::no_pii::NoPii, &Case::new(&subject), &Knobs::default())
    };
    assert!(matches!(judge(&quiet), Outcome::Skip { class: SkipClass::Defeated, .. }));
    assert!(matches!(judge(&leaky), Outcome::Fail(_)));
}

#[test]
fn more_steps_than_are_read_concern_only_the_rules_that_read_steps() {
    let calls = vec![ToolCall { tool_name: "t".to_owned(), output: Some("fine".into()), ..ToolCall::default() }; 501];
    let judge = |rule: &dyn Rule, output: &str| {
        let subject = Subject { output: Some(output), tool_calls: Some(&calls), ..Subject::default() };
        run(rule, &Case::new(&subject), &Knobs::default())
    };
    for rule in RULES {
        let reads = |need: Need| rule.meta().needs.contains(&need) || rule.meta().reads.contains(&need);
        let outcome = judge(*rule, "It is done.");
        let defeated = matches!(outcome, Outcome::Skip { class: SkipClass::Defeated, .. });
        let reads_steps = reads(Need::ToolCalls) || reads(Need::ToolOutputs);
        let judged_all_the_same =
            matches!(outcome, Outcome::Fail(_) | Outcome::Skip { class: SkipClass::NotApplicable, .. });
        assert_eq!(defeated, reads_steps && !judged_all_the_same, "{}: {outcome:?}", rule.meta().name);
    }
    assert!(matches!(judge(&safety::no_pii::NoPii, "mara.lind@quayhaven.io"), Outcome::Fail(_)));
}

#[test]
fn harmless_values_neither_hide_a_live_one_nor_pass_unread() {
    let judge = |output: &str| {
        let subject = Subject { output: Some(output), ..Subject::default() };
        run(&safety::no_pii::NoPii, &Case::new(&subject), &Knobs::default())
    };
    let many = "a@example.com ".repeat(200);
    assert!(matches!(judge(&many), Outcome::Pass(_)));
    assert!(matches!(judge(&format!("{many}mara.lind@quayhaven.io")), Outcome::Fail(_)));
    let encoded = "MDEyMzQ1Njc4OTAxMjM0NQ== ".repeat(20_000);
    assert!(matches!(judge(&encoded), Outcome::Skip { class: SkipClass::Defeated, .. }));
    assert!(matches!(judge(&format!("mara.lind@quayhaven.io {encoded}")), Outcome::Fail(_)));
}

#[test]
fn names_are_unique_and_metadata_is_whole() {
    let names: BTreeSet<_> = RULES.iter().map(|rule| rule.meta().name.clone()).collect();
    assert_eq!(names.len(), RULES.len());
    for rule in RULES {
        let meta = rule.meta();
        assert!(meta.weight > 0.0 && meta.version > 0 && !meta.needs.is_empty(), "{}", meta.name);
        assert!(meta.description.ends_with('.') && meta.suggestion.ends_with('.'), "{}", meta.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::thorough::cases(400)))]
    #[test]
    fn no_text_makes_a_rule_fail_or_waver(
        output in prop_oneof![any::<String>(), "[0-9a-zA-Z@.:+%&#;\\\\ux/= \n-]{0,200}", "(sk-|AKIA|eyJ|password=|\\+|@|://|[0-9]{3}-){0,30}"],
        error in any::<Option<String>>(),
    ) {
        let calls = [ToolCall { tool_name: "t".to_owned(), error, output: Some(output.clone().into()), ..ToolCall::default() }];
        let subject = Subject { output: Some(&output), input: Some(&output), tool_calls: Some(&calls), ..Subject::default() };
        for rule in RULES {
            let first = run(*rule, &Case::new(&subject), &Knobs::default());
            let failed = matches!(&first, Outcome::Skip { class: SkipClass::Defeated, .. });
            prop_assert!(!failed);
            prop_assert_eq!(first, run(*rule, &Case::new(&subject), &Knobs::default()));
        }
    }
}
