//! What is none of our business costs nothing.

use std::time::Duration;

use serde_json::Value;

use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, trace_hex, web_request};

/// Scenario: traces of plain HTTP spans, each complete in one request.
/// Guarantees: they are acknowledged, settle without an agent in them, and DuckDB is not written to; an agent's
/// trace after them is.
#[tokio::test(flavor = "multi_thread")]
async fn traces_of_http_spans_write_nothing_to_the_store() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200"), ("IRIS__ASSEMBLY__SETTLE_MS", "300")]).await;
    iris.until("ops", "/readyz?full", Duration::from_secs(30), |state| state["store"]["state"] == "open").await;
    for number in 1..=20 {
        let (status, _) = iris.post("traces", "application/x-protobuf", request(web_request(number))).await.unwrap();
        assert_eq!(status, 200);
    }
    let read = |state: &Value| state["pipeline"]["lanes"][0]["records"] == 20 && state["pipeline"]["undecided"] == 0;
    let state = iris.until("ops", "/readyz?full", Duration::from_secs(20), read).await;
    assert_eq!(
        (&state["store"]["groups"], &state["store"]["rows"], &state["store"]["wal_bytes"]),
        (&0.into(), &0.into(), &0.into())
    );
    iris.post("traces", "application/x-protobuf", request(agent_run(99, 2, "It is 18 C."))).await.unwrap();
    let path = format!("/api/v1/traces/{}", trace_hex(99));
    iris.until("web", &path, Duration::from_secs(20), |detail| detail["trace"]["in_progress"] == false).await;
    let (_, page) = iris.get("web", "/api/v1/traces").await;
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["total"], 1);
}
