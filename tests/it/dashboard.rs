//! The dashboard over a real sidecar: every page of an empty store, of captured traffic, and of text that means harm.

use std::time::{Duration, Instant};

use iris_sidecar::demo;
use serde_json::{Value, json};

use crate::support::iris::Iris;

const WITHIN: Duration = Duration::from_secs(60);

const PAGES: [&str; 12] = [
    "/",
    "/?period=1y&step=day&by=model",
    "/?agent=nobody",
    "/traces",
    "/traces?verdict=fail&sort_by=latency_ms",
    "/traces?q=capital&sort_order=asc&limit=2",
    "/sessions",
    "/failures?period=1y",
    "/failures?kind=safety-violation&period=1y",
    "/rules",
    "/judge",
    "/system",
];

async fn page(iris: &Iris, path: &str) -> String {
    let (status, page) = iris.get("web", path).await;
    assert_eq!(status, 200, "{path}: {page}");
    assert!(page.contains("</html>") && !page.contains("This cannot be shown"), "{path}: {page}");
    page
}

async fn opened(iris: &Iris) {
    iris.until("web", "/api/v1/health", WITHIN, |health| health["status"] == "ok").await;
}

/// Sends one OTLP/JSON trace of an agent run, and waits until it is judged.
async fn judged(iris: &Iris, id: &str, agent: &str, input: &str, output: &str) {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let span = json!({
        "traceId": id, "spanId": &id[..16], "name": agent, "kind": 1,
        "startTimeUnixNano": (now - 2_000_000_000).to_string(), "endTimeUnixNano": now.to_string(),
        "attributes": [
            text("openinference.span.kind", "AGENT"), text("agent.name", agent), text("session.id", agent),
            text("input.value", input), text("output.value", output),
        ],
    });
    let request = json!({ "resourceSpans": [{ "resource": {}, "scopeSpans": [{ "spans": [span] }] }] });
    let sent = iris.post("traces", "application/json", request.to_string().into()).await.unwrap();
    assert_eq!(sent.0, 200, "{sent:?}");
    let settled = |detail: &Value| detail["trace"]["in_progress"] == false && !detail["evals"][0].is_null();
    iris.until("web", &format!("/api/v1/traces/{id}"), WITHIN, settled).await;
}

/// Scenario: nothing has come yet.
/// Guarantees: every page answers, and says how to send something to this very door.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_store_says_what_to_do() {
    let iris = Iris::start(&[]).await;
    opened(&iris).await;
    for path in PAGES {
        page(&iris, path).await;
    }
    let endpoint = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", iris.door("http"));
    for path in ["/", "/traces"] {
        let page = page(&iris, path).await;
        assert!(page.contains(&endpoint) && page.contains(&format!("http://{}", iris.door("grpc"))), "{path}: {page}");
    }
    let (status, page) = iris.get("web", "/traces/0123456789abcdef0123456789abcdef").await;
    assert!(status == 404 && page.contains("IRIS_UNKNOWN_TRACE"), "{page}");
    let (status, page) = iris.get("web", "/traces?since=%3Cscript%3E").await;
    assert!(status == 400 && page.contains("What helps") && !page.contains("<script>"), "{page}");
}

/// Scenario: the demonstration's captured traffic.
/// Guarantees: every page answers, lists lead to traces, and a failed trace shows its evidence marked in place.
#[tokio::test(flavor = "multi_thread")]
async fn captured_traffic_is_seen_on_every_page() {
    let iris = Iris::start(&[]).await;
    opened(&iris).await;
    demo::play(&iris.door("http").to_string()).await.unwrap();
    let all_judged = |traces: &Value| {
        let traces = traces["traces"].as_array().unwrap();
        traces.len() == demo::CAPTURES.len() && traces.iter().all(|trace| trace["in_progress"] == false)
    };
    let traces = iris.until("web", "/api/v1/traces?limit=100", WITHIN, all_judged).await;
    for path in PAGES {
        page(&iris, path).await;
    }
    let list = page(&iris, "/traces").await;
    for trace in traces["traces"].as_array().unwrap() {
        let path = format!("/traces/{}", trace["trace_id"].as_str().unwrap());
        assert!(list.contains(&format!("href=\"{path}\"")), "{path}");
        let shown = page(&iris, &path).await;
        let agent = trace["agent_name"].as_str().unwrap();
        assert!(shown.contains(agent) && shown.contains("Spans"), "{shown}");
        let span = shown.split("?span=").nth(1).and_then(|rest| rest.split('#').next()).unwrap();
        assert!(page(&iris, &format!("{path}?span={span}")).await.contains("Attributes ("), "{path} {span}");
    }
    let leak = traces["traces"].as_array().unwrap().iter().find(|trace| trace["verdict"]["by"][0] == "no_pii").unwrap();
    let shown = page(&iris, &format!("/traces/{}", leak["trace_id"].as_str().unwrap())).await;
    assert_eq!(marked(&shown, "email"), "mara.quillfeather@quayhaven.io", "{shown}");
    let overview = page(&iris, "/?period=1y").await;
    assert!(overview.contains("<svg class=\"chart\"") && overview.contains("no_pii"), "{overview}");
    assert!(page(&iris, "/failures?period=1y").await.contains("safety violation"));
}

/// Scenario: an agent's name, question and answer are markup, scripts and characters that turn the line around.
/// Guarantees: they stand on every page as text; evidence is marked at its code points, among emoji and right-to-left text too.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_shown_and_evidence_marked_at_the_right_characters() {
    let iris = Iris::start(&[]).await;
    opened(&iris).await;
    let agent = "<script>alert(1)</script>";
    let hostile = "\"><img src=x onerror=alert(2)>\u{202e}x</div>";
    judged(&iris, &"a1".repeat(16), agent, hostile, &format!("{hostile} mara.quillfeather@quayhaven.io {hostile}"))
        .await;
    judged(&iris, &"a2".repeat(16), "emoji", "👩‍👩‍👧?", "👩‍👩‍👧 → mara.quillfeather@quayhaven.io 🎉").await;
    judged(&iris, &"a3".repeat(16), "rtl", "למי?", "כתבו אל mara.quillfeather@quayhaven.io בבקשה").await;
    let path = format!("/traces/{}", "a1".repeat(16));
    for path in PAGES.iter().copied().chain(["/sessions?period=24h", path.as_str()]) {
        let page = page(&iris, path).await;
        for harm in ["<script>alert", "<img", "\u{202e}", "onerror=alert(2)>"] {
            assert!(!page.contains(harm), "{path} holds {harm:?}: {page}");
        }
    }
    assert!(page(&iris, "/traces").await.contains("&#60;script&#62;alert(1)&#60;/script&#62;"));
    assert!(page(&iris, &path).await.contains("[U+202E]"));
    for id in ["a1", "a2", "a3"] {
        let page = page(&iris, &format!("/traces/{}", id.repeat(16))).await;
        assert_eq!(marked(&page, "email"), "mara.quillfeather@quayhaven.io", "{id}: {page}");
    }
}

/// What is marked for the evidence with this label: every stretch that belongs to it, one after the other.
fn marked(page: &str, label: &str) -> String {
    let notes = page.split("<li id=\"note-").skip(1);
    let mut numbers = notes
        .filter(|note| note.split("</li>").next().is_some_and(|note| note.contains(&format!("<bdi>{label}</bdi>"))));
    let number = numbers.next().and_then(|note| note.split('"').next()).unwrap_or_else(|| panic!("no {label}: {page}"));
    let stretches = page.split("<mark data-notes=\"").skip(1).filter_map(|rest| {
        let (numbers, rest) = rest.split_once("\">")?;
        numbers.split(' ').any(|one| one == number).then(|| rest.split("</mark>").next().unwrap_or_default())
    });
    stretches.collect()
}

/// Scenario: a trace of 2,000 spans.
/// Guarantees: its page opens in time, shows a part of them and all when asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_of_two_thousand_spans_opens() {
    let iris = Iris::start(&[]).await;
    opened(&iris).await;
    let id = "b1".repeat(16);
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let spans: Vec<Value> = (1..=2000_u64)
        .map(|at| {
            let (kind, parent) = if at == 1 { ("AGENT", String::new()) } else { ("TOOL", format!("{:016x}", 1)) };
            let start = 1_780_000_000_000_000_000 + at * 1_000_000;
            json!({
                "traceId": id, "spanId": format!("{at:016x}"), "parentSpanId": parent, "name": format!("step {at}"), "kind": 1,
                "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 900_000).to_string(),
                "attributes": [text("openinference.span.kind", kind), text("input.value", "{\"n\": 1}"), text("output.value", "done")],
            })
        })
        .collect();
    let request = json!({ "resourceSpans": [{ "resource": {}, "scopeSpans": [{ "spans": spans }] }] });
    assert_eq!(iris.post("traces", "application/json", request.to_string().into()).await.unwrap().0, 200);
    let path = format!("/api/v1/traces/{id}");
    let settled = |detail: &Value| detail["trace"]["in_progress"] == false && !detail["evals"][0].is_null();
    iris.until("web", &path, WITHIN, settled).await;
    let path = format!("/traces/{id}");
    let part = page(&iris, &path).await;
    assert!(part.contains("Show 1800 more"), "{}", part.len());
    assert_eq!(part.matches("<tr id=\"s-").count(), 200);
    let begun = Instant::now();
    let all = page(&iris, &format!("{path}?spans=all")).await;
    assert_eq!(all.matches("<tr id=\"s-").count(), 2000);
    // In a release build on two idle cores it takes a fraction of a second; this is a build for tests beside others.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
