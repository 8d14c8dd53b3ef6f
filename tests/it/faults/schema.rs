//! A database that a newer program has written, and one that another process holds.

use std::time::Duration;

use duckdb::Connection;

use super::{all_there, open, prepared, put};
use crate::support::collector::Collector;

/// Scenario: a newer program brought the schema of the database one version further; then this one is started, takes
/// runs, and is killed; the file gets its version back, as when the newer program is installed again.
/// Guarantees: the file is left as it is, the refusal names both versions and the program; runs are acknowledged and
/// forwarded meanwhile; afterwards everything is there once.
#[tokio::test(flavor = "multi_thread")]
async fn a_downgrade_by_one_version_waits_and_loses_nothing() {
    let collector = Collector::start().await;
    let mut iris = prepared(&collector.endpoint());
    iris.start_again().await;
    open(&iris).await;
    for number in 1..=5 {
        assert_eq!(put(&iris, number).await, 200);
    }
    all_there(&iris, 1..=5, "before").await;
    assert!(iris.terminate().await.success());
    let file = iris.home().join("iris.duckdb");
    let alter = |sql: &str| Connection::open(&file).unwrap().execute_batch(&format!("{sql}; CHECKPOINT;")).unwrap();
    alter(
        "CREATE TABLE of_the_future (a INTEGER); ALTER TABLE traces ADD COLUMN mood VARCHAR; \
         INSERT INTO schema_version SELECT max(version) + 1, '9.9.9', now()::TIMESTAMP FROM schema_version",
    );
    let before = std::fs::read(&file).unwrap();
    iris.start_again().await;
    for number in 6..=10 {
        assert_eq!(put(&iris, number).await, 200);
    }
    collector.until("what is not stored yet", |collector| collector.bodies("traces").len() == 10).await;
    let refused = |log: &str| log.contains("written by iris-sidecar 9.9.9") && log.contains("use 9.9.9 or newer");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !refused(&iris.log()) {
        assert!(std::time::Instant::now() < deadline, "{}", iris.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, answer) = iris.get("web", "/api/v1/traces").await;
    assert_eq!(status, 503, "{answer}");
    assert_eq!(iris.get("ops", "/readyz").await.0, 200, "it acknowledges");
    iris.kill();
    assert!(std::fs::read(&file).unwrap() == before, "the file is as the newer program left it");
    alter(
        "DROP TABLE of_the_future; ALTER TABLE traces DROP COLUMN mood; \
         DELETE FROM schema_version WHERE writer = '9.9.9'",
    );
    iris.start_again().await;
    open(&iris).await;
    all_there(&iris, 1..=10, "after").await;
}
