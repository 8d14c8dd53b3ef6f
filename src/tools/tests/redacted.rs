//! Redaction where a model judges: of what it is asked, of what it answers, and of what another process was answered.

use iris_core::contract::every_tool;
use iris_core::evaluate::Judged;
use iris_core::redact::{self, Redactor};

use super::judged::{judging, stand_with};
use super::*;
use crate::judge::fake::{claude, config, fake};

const MAIL: &str = "jane.harlow@quayhaven.io";
const TOOL: &str = "evaluate_with_llm_judge";

/// Scenario: an answer with an address in it is judged by a model that repeats it; the same judgement comes from another
/// process of the home, which redacts nothing.
/// Guarantees: the model is not told the address, and neither the reply nor the stored row holds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_judgement_holds_nothing_that_is_redacted() {
    let said = json!({"score": 0.9, "passed": true, "rationale": format!("It names {MAIL}."), "dimensions": {"factual_claims": 0.8}});
    let server = fake(vec![claude(&said.to_string()), claude(&said.to_string())], Duration::ZERO).await;
    let settings = config(server.port);
    let asked = json!({"output": format!("Write to {MAIL}."), "template": "accuracy", "model": "claude-haiku-4-5"});
    let plain = judging(&settings, &crate::fetch::Config::default());
    let model = plain.model("claude-haiku-4-5", None).unwrap();
    let place = crate::tools::Place::new(Tenant::local(), World::REAL);
    let made: Judged = plain.score(parse(asked.clone()).unwrap(), &model, &place).await.unwrap();
    assert!(json!(made).to_string().contains(MAIL), "the other process redacts nothing, or this shows nothing");

    let mut stand = stand_with(judging(&settings, &crate::fetch::Config::default())).await;
    let enabled = redact::Config { enabled: true, ..redact::Config::default() };
    stand.app.facts.redactor = Some(Arc::new(Redactor::new(&enabled, [7; 32])));
    let own = stand.call(TOOL, asked.clone()).await.unwrap();
    let handed = stand.app.keep_made(TOOL, asked, Some(made), &Caller::local()).await.unwrap();
    for reply in [own, handed] {
        assert!(!reply.to_string().contains(MAIL) && reply.to_string().contains("[REDACTED:email#"), "{reply}");
    }
    let rows = stand.app.evaluations(&parse(json!({})).unwrap(), &Caller::local()).await.unwrap();
    assert_eq!(rows["total"], 2);
    assert!(!rows.to_string().contains(MAIL), "{rows}");
    let told: Vec<bool> = (0..server.count()).map(|at| server.request(at).1.to_string().contains(MAIL)).collect();
    assert_eq!(told, [true, false], "the first was the other process");
}

/// The tools whose arguments are an operator's own words: rules, filters, ids and statements.
const OWN_WORDS: [&str; 6] = ["get_traces", "list_rules", "deploy_rule", "delete_rule", "delete_trace", "query_sql"];

/// Guarantees: of every tool it was decided whether what is sent to it is redacted.
#[test]
fn of_every_tool_it_is_said_whether_its_arguments_hold_what_agents_said() {
    for tool in every_tool() {
        let is_text = crate::tools::redacted::TEXTS.contains(&tool.name);
        let is_own = OWN_WORDS.contains(&tool.name);
        assert!(is_text != is_own, "{}: in TEXTS of src/tools/redacted.rs, or in OWN_WORDS here", tool.name);
    }
}
