//! `verify_citations` as a caller sees it: sources on loopback behind public names, fake providers, and a canary.

use super::judged::{judging, stand_with};
use super::*;
use crate::fetch::fake::{Answer, Names, PUBLIC, Server, page, redirect, serve};
use crate::fetch::{Config as Citations, Domains, Fetch};
use crate::judge::Config;
use crate::judge::fake::{Act, Fake, JSON, claude, config, fake};
use crate::tools::judging::is_narrowed;

const TOOL: &str = "verify_citations";
const YES: &str = "{\"supported\":true,\"confidence\":0.9,\"rationale\":\"It says so.\"}";

/// Supports what its source says is true.
fn reads_the_source(body: &Value) -> Act {
    let shown = body["messages"][0]["content"].as_str().unwrap();
    let source = shown.split("<untrusted_claim").next().unwrap();
    let supported = source.contains("this is true");
    claude(&format!("{{\"supported\":{supported},\"confidence\":0.8,\"rationale\":\"As read.\"}}"))
}

async fn reading(names: Names, judge: &Config, citations: &Citations) -> Stand {
    stand_with(judging(judge, citations).resolving(names)).await
}

fn arguments(output: &str, more: &Value) -> Value {
    let mut arguments = json!({ "output": output, "model": "claude-haiku-4-5", "allow_fetch": true });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

async fn sources(bodies: &[(&str, &str)]) -> (Names, Vec<Server>) {
    let (mut names, mut servers) = (Names::default(), Vec::new());
    for (name, body) in bodies {
        let server = serve(page("text/html", body)).await;
        names = names.with(name, &[&[(PUBLIC, server.port)]]);
        servers.push(server);
    }
    (names, servers)
}

impl Stand {
    async fn rows(&self) -> u64 {
        self.app.evaluations(&parse(json!({})).unwrap(), &Caller::local()).await.unwrap()["total"].as_u64().unwrap()
    }
}

/// Scenario: an output with citations of every kind, two of which have the same source, and more than the call verifies.
/// Guarantees: each is told with its place and what became of it; a source is read once; the score is supported of judged;
/// the row says the same when it is read again, and its verification gates.
#[tokio::test(flavor = "multi_thread")]
async fn every_citation_is_told_with_what_became_of_it() {
    let judge = fake(vec![Act::Makes(reads_the_source)], Duration::ZERO).await;
    let (names, servers) = sources(&[("a.example.org", "this is true"), ("b.example.org", "nothing of it")]).await;
    let stand = reading(names, &config(judge.port), &Citations::default()).await;
    let trace = stand.log(json!({ "agent_name": "a", "output": "x" })).await;
    let output = "Ünder [1] and (Smith, 2019): http://a.example.org/x, again http://a.example.org/x, http://b.example.org/y and \
                  http://c.example.org/z. Last http://d.example.org/.";
    let reply = stand.call(TOOL, arguments(output, &json!({ "trace_id": trace, "max_citations": 6 }))).await.unwrap();
    let told: Vec<(&str, &str, &str)> = reply["citations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let kind = one["resolve_error"]["kind"].as_str().or(one["judge_error"]["kind"].as_str()).unwrap_or("-");
            (one["citation"]["kind"].as_str().unwrap(), one["resolve_status"].as_str().unwrap(), kind)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("numbered", "skipped", "unresolvable_kind"),
            ("author_year", "skipped", "unresolvable_kind"),
            ("url", "ok", "-"),
            ("url", "ok", "-"),
            ("url", "ok", "-"),
            ("url", "error", "unknown"),
            ("url", "skipped", "max_citations"),
        ]
    );
    let third = &reply["citations"][2];
    assert_eq!((&third["citation"]["offset_start"], &third["citation"]["offset_end"]), (&json!(29), &json!(51)));
    assert_eq!(
        (&third["source"]["url"], &third["source"]["bytes_fetched"]),
        (&json!("http://a.example.org/x"), &json!(12))
    );
    assert_eq!((&third["judge"]["supported"], &third["judge"]["cost_usd"]), (&json!(true), &json!(0.0015)));
    for (field, value) in [
        ("total_citations_found", json!(7)),
        ("total_resolved", json!(3)),
        ("total_judged", json!(3)),
        ("total_supported", json!(2)),
        ("total_unsupported", json!(1)),
        ("overall_score", json!(0.67)),
        ("passed", json!(false)),
        ("total_cost_usd", json!(0.0045)),
        ("trace_id", json!(trace)),
    ] {
        assert_eq!(reply[field], value, "{field}");
    }
    assert_eq!(servers.iter().map(Server::seen).collect::<Vec<_>>(), [1, 1]);
    let marked = names_of(&reply);
    assert!(
        marked.contains(&"citations[].citation.raw".to_owned())
            && marked.contains(&"citations[].judge.rationale".to_owned())
    );
    let again = stand.app.evaluation(reply["id"].as_str().unwrap(), &Caller::local()).await.unwrap().unwrap();
    for (name, value) in reply.as_object().unwrap().iter().filter(|(name, _)| *name != "untrusted") {
        assert_eq!(&again[name], value, "{name}");
    }
    assert_eq!(again["rule_results"][0]["ruleName"], "semantic_citation_verify:anthropic/claude-haiku-4-5");
    assert_eq!(
        (&again["rule_results"][0]["kind"], &again["verdict"]["basis"]),
        (&json!("verification"), &json!("policy_gate"))
    );
}

/// Guarantees: a DOI is resolved at its resolver, over https, which this server does not speak.
#[tokio::test(flavor = "multi_thread")]
async fn a_doi_is_resolved_over_https() {
    let (names, servers) = sources(&[("doi.org", "this is true")]).await;
    let stand = reading(names, &config(9), &Citations::default()).await;
    let doi = stand.call(TOOL, arguments("See 10.1000/182.", &json!({}))).await.unwrap();
    assert_eq!(doi["citations"][0]["resolve_error"]["kind"], "unknown");
    let hello = servers[0].requests.lock().unwrap()[0].as_bytes()[0];
    assert_eq!((servers[0].seen(), hello), (1, 0x16), "a TLS handshake");
}

fn names_of(reply: &Value) -> Vec<String> {
    names(&reply["untrusted"]["fields"]).into_iter().map(str::to_owned).collect()
}

/// Scenario: nothing is fetched, because nobody allowed it; or there is nothing to fetch.
/// Guarantees: no verdict and no score, in the reply and in the row; nothing is spent; the row is no verdict of its trace.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_judged_is_no_verdict() {
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let stand = reading(Names::default(), &config(judge.port), &Citations::default()).await;
    let trace = stand.log(json!({ "agent_name": "a", "output": "It is done.", "evaluate": true })).await;
    for output in ["See http://a.example.org/x and 10.1000/182.", "Nothing is cited here."] {
        let call = json!({ "output": output, "model": "claude-haiku-4-5", "trace_id": trace });
        let reply = stand.call(TOOL, call).await.unwrap();
        assert_eq!(
            (&reply["overall_score"], &reply["passed"], &reply["total_cost_usd"]),
            (&Value::Null, &Value::Null, &json!(0.0))
        );
        for citation in reply["citations"].as_array().unwrap() {
            assert_eq!(
                (&citation["resolve_status"], &citation["resolve_error"]["kind"]),
                (&json!("skipped"), &json!("fetch_disabled"))
            );
        }
        let again = stand.app.evaluation(reply["id"].as_str().unwrap(), &Caller::local()).await.unwrap().unwrap();
        assert_eq!(
            (&again["passed"], &again["score"], &again["verdict"]["state"]),
            (&Value::Null, &Value::Null, &json!("unknown"))
        );
    }
    let page = stand.call("get_traces", json!({ "trace_id": trace, "include_summary": true })).await.unwrap();
    assert_ne!(page["traces"][0]["verdict"]["basis"], "no_rules", "{page}");
    assert_eq!(stand.rows().await, 3);
    let filtered = stand.call("get_traces", json!({ "min_score": 0.0 })).await.unwrap();
    assert_eq!(filtered["total"], 1, "the score is that of the rules");
    assert_eq!(judge.count(), 0);
}

/// Field case G7-07.
/// Guarantees: a source that was read and a judge that failed are told apart, per citation; when the judge failed on every
/// one it was asked about, the call fails, and nothing is stored.
#[tokio::test(flavor = "multi_thread")]
async fn g7_07_a_judges_failure_is_no_fetch_failure() {
    let oops = Act::Says(500, JSON, json!({ "error": { "message": "overloaded" } }).to_string());
    let judge = fake(vec![oops.clone()], Duration::ZERO).await;
    let (names, _servers) = sources(&[("a.example.org", "x"), ("b.example.org", "y")]).await;
    let output = "http://a.example.org/ http://b.example.org/";
    let stand = reading(names.clone(), &config(judge.port), &Citations::default()).await;
    let error = stand.call(TOOL, arguments(output, &json!({}))).await.unwrap_err();
    assert_eq!(
        (error.code, error.kind.map(iris_core::judge::Kind::as_str), error.retryable),
        (Code::JudgeFailed, Some("server_error"), true)
    );
    assert!(error.message.starts_with("2 sources were read"), "{error}");
    assert_eq!(stand.rows().await, 0);

    let judge = fake(vec![oops, claude(YES)], Duration::ZERO).await;
    let stand =
        reading(names, &config(judge.port), &Citations { ceiling_usd_call: Some(0.1), ..Citations::default() }).await;
    let reply = stand.call(TOOL, arguments(output, &json!({}))).await.unwrap();
    let failed = reply["citations"].as_array().unwrap().iter().find(|one| one.get("judge_error").is_some()).unwrap();
    assert_eq!((&failed["resolve_status"], &failed["judge_error"]["kind"]), (&json!("ok"), &json!("server_error")));
    assert!(failed.get("resolve_error").is_none() && failed.get("judge").is_none());
    assert_eq!(
        (&reply["total_judged"], &reply["total_unsupported"], &reply["passed"]),
        (&json!(1), &json!(0), &json!(true))
    );
}

/// Scenario: money for one question and a half, then for none.
/// Guarantees: the first is asked, the rest is told `cost_cap_reached` and counts as nothing; with none asked there is no
/// verdict and no failure.
#[tokio::test(flavor = "multi_thread")]
async fn the_money_of_a_call_is_never_passed() {
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let (names, _servers) = sources(&[("a.example.org", "x"), ("b.example.org", "y"), ("c.example.org", "z")]).await;
    let output = "http://a.example.org/ http://b.example.org/ http://c.example.org/";
    let stand = reading(names, &config(judge.port), &Citations::default()).await;
    let worst = worst_of(&stand, output).await + 0.0008;
    let reply = stand.call(TOOL, arguments(output, &json!({ "max_cost_usd_total": worst }))).await.unwrap();
    let told: Vec<&str> = reply["citations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["judge_error"]["kind"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(told, ["-", "cost_cap_reached", "cost_cap_reached"], "{reply}");
    assert_eq!(
        (&reply["total_judged"], &reply["total_resolved"], &reply["passed"]),
        (&json!(1), &json!(3), &json!(true))
    );
    assert!(reply["total_cost_usd"].as_f64().unwrap() <= worst);
    let none = stand.call(TOOL, arguments(output, &json!({ "max_cost_usd_total": 1e-6 }))).await.unwrap();
    assert_eq!((&none["passed"], &none["total_judged"], &none["total_resolved"]), (&Value::Null, &json!(0), &json!(3)));
    assert_eq!(judge.count(), 1);
    let (names, _servers) = sources(&[("a.example.org", "x")]).await;
    let stand =
        reading(names, &Config { ceiling_usd_day: Some(1e-6), ..config(judge.port) }, &Citations::default()).await;
    let reply = stand.call(TOOL, arguments("http://a.example.org/", &json!({}))).await.unwrap();
    let error = &reply["citations"][0]["judge_error"];
    assert_eq!(error["kind"], "cost_cap_reached");
    assert!(error["message"].as_str().unwrap().contains("judge.ceiling_usd_day"), "{error}");
}

/// Field cases G7-01 to G7-03, through the tool: every forbidden spelling in one text after another, redirects to this
/// machine, and a name that changes its answer.
/// Guarantees: the canary on loopback sees no connection, no refusal counts as unsupported, and nothing is spent.
#[tokio::test(flavor = "multi_thread")]
async fn g7_03_a_text_reaches_nothing_it_must_not() {
    let judge: Fake = fake(vec![claude(YES)], Duration::ZERO).await;
    let canary = serve(page("text/plain", "secret")).await;
    let port = canary.port;
    let hop = serve(redirect(&format!("http://127.0.0.1:{port}/secret"))).await;
    let (local, public) = (std::net::IpAddr::from([127, 0, 0, 1]), serve(page("text/plain", "x")).await);
    let names = Names::default()
        .with("hop.example.org", &[&[(PUBLIC, hop.port)]])
        .with("flip.example.org", &[&[(PUBLIC, public.port)], &[(local, port)]])
        .with("inner.example.org", &[&[(local, port)]])
        .with("both.example.org", &[&[(PUBLIC, public.port), (local, port)]]);
    let stand =
        reading(names, &config(judge.port), &Citations { fetch: Some(Fetch::On), ..Citations::default() }).await;
    let forbidden = include_str!("../../../tests/cases/citation/forbidden.txt");
    let mut spellings: Vec<String> =
        forbidden.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect();
    assert!(spellings.len() >= 120, "{}", spellings.len());
    spellings.extend(["hop", "inner", "both"].map(|name| format!("http://{name}.example.org/")));
    spellings.push(format!("http://127.0.0.1:{port}/"));
    let mut refused = 0;
    for some in spellings.chunks(40) {
        let output = some.join("\n");
        let reply = stand.call(TOOL, arguments(&output, &json!({ "max_citations": 50 }))).await.unwrap();
        assert_eq!(
            (&reply["total_resolved"], &reply["passed"], &reply["total_unsupported"]),
            (&json!(0), &Value::Null, &json!(0))
        );
        for citation in reply["citations"].as_array().unwrap().iter().filter(|one| one["citation"]["kind"] == "url") {
            let kind = citation["resolve_error"]["kind"].as_str().unwrap();
            assert!(matches!(kind, "ssrf" | "bad_scheme" | "unknown"), "{citation}");
            refused += 1;
        }
    }
    assert!(refused >= 60, "{refused}: a spelling without http:// is no citation of a text");
    let first = stand.call(TOOL, arguments("http://flip.example.org/", &json!({}))).await.unwrap();
    assert_eq!(first["citations"][0]["resolve_status"], "ok");
    let second = stand.call(TOOL, arguments("http://flip.example.org/", &json!({}))).await.unwrap();
    assert_eq!(second["citations"][0]["resolve_error"]["kind"], "ssrf");
    assert_eq!((canary.seen(), judge.count()), (0, 1));
}

/// One test for each argument that asks for more than the operator allows.
#[tokio::test(flavor = "multi_thread")]
async fn allow_fetch_does_not_widen_what_the_operator_forbids() {
    let (names, servers) = sources(&[("a.example.org", "x")]).await;
    let stand = reading(names, &config(9), &Citations { fetch: Some(Fetch::Never), ..Citations::default() }).await;
    let reply = stand.call(TOOL, arguments("http://a.example.org/ 10.1000/182", &json!({}))).await.unwrap();
    for citation in reply["citations"].as_array().unwrap() {
        assert_eq!(citation["resolve_error"]["kind"], "fetch_disabled");
    }
    assert!(is_narrowed(&reply["warnings"][0], "allow_fetch", "citations.fetch"), "{reply}");
    assert_eq!((&reply["provenance"]["judge"]["narrowed"], servers[0].seen()), (&reply["warnings"], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn domain_allowlist_does_not_widen_the_operators_hosts() {
    let (names, servers) = sources(&[("a.example.org", "x"), ("b.example.net", "y")]).await;
    let only = Citations {
        allow_domains: vec!["example.org".to_owned()],
        domains: Some(Domains::Intersect),
        ..Citations::default()
    };
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let stand = reading(names.clone(), &config(judge.port), &only).await;
    let output = "http://a.example.org/ http://b.example.net/";
    let both = json!({ "domain_allowlist": ["a.example.org", "example.net"] });
    let reply = stand.call(TOOL, arguments(output, &both)).await.unwrap();
    assert_eq!(
        (&reply["citations"][0]["resolve_status"], &reply["citations"][1]["resolve_error"]["kind"]),
        (&json!("ok"), &json!("not_allowed_domain"))
    );
    assert!(is_narrowed(&reply["warnings"][0], "domain_allowlist", "citations.allow_domains"), "{reply}");
    let none = stand.call(TOOL, arguments(output, &json!({ "domain_allowlist": ["example.net"] }))).await.unwrap();
    assert_eq!(none["total_resolved"], 0);
    assert_eq!((servers[0].seen(), servers[1].seen()), (1, 0));
    // As the contract has it, unless an operator says otherwise.
    let merged = reading(names, &config(judge.port), &Citations { domains: None, ..only }).await;
    let reply = merged.call(TOOL, arguments(output, &both)).await.unwrap();
    assert_eq!((&reply["total_resolved"], reply.get("warnings")), (&json!(2), None));
}

/// What one question could cost, as a call without money tells.
async fn worst_of(stand: &Stand, output: &str) -> f64 {
    let reply = stand.call(TOOL, arguments(output, &json!({ "max_cost_usd_total": 1e-6 }))).await.unwrap();
    let words = reply["citations"][0]["judge_error"]["message"].as_str().unwrap().to_owned();
    words.split_whitespace().find_map(|word| word.parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn max_cost_usd_total_does_not_widen_the_operators_ceiling() {
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let (names, _servers) = sources(&[("a.example.org", "x"), ("b.example.org", "y")]).await;
    let output = "http://a.example.org/ http://b.example.org/";
    let free = reading(names.clone(), &config(judge.port), &Citations::default()).await;
    let ceiling = Some(worst_of(&free, output).await + 0.0008);
    let stand =
        reading(names, &config(judge.port), &Citations { ceiling_usd_call: ceiling, ..Citations::default() }).await;
    let reply = stand.call(TOOL, arguments(output, &json!({ "max_cost_usd_total": 50 }))).await.unwrap();
    assert!(is_narrowed(&reply["warnings"][0], "max_cost_usd_total", "citations.ceiling_usd_call"), "{reply}");
    assert_eq!((&reply["total_judged"], judge.count()), (&json!(1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn per_source_timeout_ms_does_not_widen_the_operators_limit() {
    let server = serve(Answer::Drip(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
        Duration::from_millis(500),
    ))
    .await;
    let names = Names::default().with("slow.example.org", &[&[(PUBLIC, server.port)]]);
    let stand = reading(names, &config(9), &Citations { source_ms_max: 300, ..Citations::default() }).await;
    let began = Instant::now();
    let more = json!({ "per_source_timeout_ms": 600_000 });
    let reply = stand.call(TOOL, arguments("http://slow.example.org/", &more)).await.unwrap();
    assert_eq!(reply["citations"][0]["resolve_error"]["kind"], "timeout");
    assert!(is_narrowed(&reply["warnings"][0], "per_source_timeout_ms", "citations.source_ms_max"), "{reply}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn per_source_max_bytes_does_not_widen_the_operators_limit() {
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_vec();
    let server = serve(Answer::Endless(head, vec![b'x'; 700])).await;
    let names = Names::default().with("large.example.org", &[&[(PUBLIC, server.port)]]);
    let stand =
        reading(names, &config(judge.port), &Citations { source_bytes_max: 1000, ..Citations::default() }).await;
    let more = json!({ "per_source_max_bytes": i64::MAX });
    let reply = stand.call(TOOL, arguments("http://large.example.org/", &more)).await.unwrap();
    let source = &reply["citations"][0]["source"];
    assert_eq!((&source["bytes_fetched"], &source["truncated"]), (&json!(1000), &json!(true)));
    assert!(is_narrowed(&reply["warnings"][0], "per_source_max_bytes", "citations.source_bytes_max"), "{reply}");
}

/// Scenario: sixty citations of long addresses, for a reader that is a model.
/// Guarantees: fifty are told and the rest is counted; the reply stays within the bound and names what was cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_with_many_citations_is_bounded() {
    let stand = reading(Names::default(), &config(9), &Citations::default()).await;
    let output: String = (0..60).map(|n| format!("http://a.example.org/{n}/{} ", "x".repeat(1500))).collect();
    let call = json!({ "output": output, "model": "claude-haiku-4-5" });
    let model = Caller::local().with_model(48 * 1024);
    let reply = stand.app.call(TOOL, call, &model).await.unwrap();
    assert!(reply.to_string().len() < 60_000, "{}", reply.to_string().len());
    assert_eq!((&reply["total_citations_found"], reply["citations"].as_array().map(Vec::len)), (&json!(60), Some(50)));
    let truncated = names(&reply["truncated"]);
    assert!(truncated.contains(&"citations[50..60]") && truncated.contains(&"citations[0].citation"), "{truncated:?}");
    let again = stand.app.evaluation(reply["id"].as_str().unwrap(), &model).await.unwrap().unwrap();
    assert!(again.to_string().len() < 70_000);
}

/// Scenario: `judge.redact` on, with personal data around a citation and in its source.
/// Guarantees: none of it reaches the provider; the address that is fetched stays what the text says.
#[tokio::test(flavor = "multi_thread")]
async fn personal_data_around_a_citation_does_not_leave() {
    let judge = fake(vec![claude(YES)], Duration::ZERO).await;
    let (names, servers) = sources(&[("a.example.org", "Contact jane.doe@acme-corp.io for more.")]).await;
    let stand = reading(names, &Config { redact: true, ..config(judge.port) }, &Citations::default()).await;
    let pad = "word ".repeat(36);
    let output = format!("jane.doe@acme-corp.io {pad}said http://a.example.org/x and bob.ray@acme-corp.io {pad}");
    let reply = stand.call(TOOL, arguments(&output, &json!({}))).await.unwrap();
    assert_eq!((&reply["passed"], servers[0].seen()), (&json!(true), 1));
    let shown = judge.request(0).1.to_string();
    assert!(!shown.contains("acme-corp") && shown.contains("[REDACTED:email#"), "{shown}");
    assert!(shown.contains("http://a.example.org/x"));
    assert_eq!(reply["provenance"]["judge"]["redacted"], true);
}
