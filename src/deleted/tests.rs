use std::fs;

use iris_core::model::{Lane, RowKey, Tenant, Timestamp, TraceId};
use iris_core::otlp::Encoding;
use serde_json::json;

use super::*;

fn key(n: u8) -> RowKey {
    RowKey { tenant: Tenant::local(), trace_id: TraceId::from_bytes(&[n; 16]).unwrap() }
}

fn numbered(n: usize) -> RowKey {
    let mut bytes = [1; 16];
    bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
    RowKey { tenant: Tenant::local(), trace_id: TraceId::from_bytes(&bytes).unwrap() }
}

/// Scenario: deletions, a line of an earlier version, a line cut by a crash, a line twice, another start.
/// Guarantees: every whole line is remembered, the file is whole again, and goes on being written.
#[test]
fn deletions_outlive_the_process_and_a_cut_line() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deleted.jsonl");
    fs::write(&path, format!("{{\"tenant\":\"local\",\"trace_id\":\"{}\"}}\n", key(9).trace_id)).unwrap();
    let deletions = Deletions::open(home.path()).unwrap();
    assert!(deletions.contains(&key(9)));
    for n in [1, 2, 1] {
        deletions.add(&key(n)).unwrap();
    }
    let mut text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    text.push_str("{\"tenant\":\"lo");
    fs::write(&path, text).unwrap();
    let again = Deletions::open(home.path()).unwrap();
    again.add(&key(3)).unwrap();
    let last = Deletions::open(home.path()).unwrap();
    assert!([1, 2, 3, 9].into_iter().all(|n| last.contains(&key(n))));
    assert!(!last.contains(&key(4)));
    assert!(!last.contains(&RowKey { tenant: Tenant::new("other"), ..key(1) }));
    assert!(!fs::read_to_string(&path).unwrap().contains("\"lo\n"));
}

/// Scenario: one deletion more than is remembered.
/// Guarantees: the oldest is forgotten.
#[test]
fn the_oldest_deletion_is_forgotten() {
    let mut known = Known::default();
    for n in 0..=KEPT_MAX {
        known.insert(numbered(n), Timestamp::default());
    }
    assert_eq!((known.keys.len(), known.order.len()), (KEPT_MAX, KEPT_MAX));
    assert!(!known.keys.contains(&numbered(0)) && known.keys.contains(&numbered(1)));
}

/// Scenario: deletions; the journal is rid of the first; another start; then of all; many such rounds.
/// Guarantees: what the journal may still have is known across starts, and the file does not grow with the rounds.
#[test]
fn what_the_journal_may_have_is_remembered() {
    let home = tempfile::tempdir().unwrap();
    let deletions = Deletions::open(home.path()).unwrap();
    assert_eq!(deletions.in_journal(), None);
    deletions.add(&key(1)).unwrap();
    deletions.add_evaluations(&Tenant::local(), Timestamp::from_unix_nanos(5_000_000)).unwrap();
    let (first, last) = deletions.in_journal().unwrap();
    assert!(first <= last);
    let later = last.after(std::time::Duration::from_millis(1));
    let again = Deletions::open(home.path()).unwrap();
    assert_eq!(again.in_journal(), Some((first, last)));
    assert!(again.covers_evaluation(&Tenant::local(), Timestamp::from_unix_nanos(4_999_999)));
    assert!(!again.covers_evaluation(&Tenant::local(), Timestamp::from_unix_nanos(5_000_000)));
    assert!(!again.covers_evaluation(&Tenant::new("other"), Timestamp::from_unix_nanos(1)));
    again.rid_journal(first).unwrap();
    assert!(again.in_journal().is_some(), "what was asked for at that very time may be there");
    again.rid_journal(later).unwrap();
    assert_eq!(again.in_journal(), None);
    for _ in 0..100 {
        again.rid_journal(later).unwrap();
    }
    let last = Deletions::open(home.path()).unwrap();
    assert_eq!(last.in_journal(), None);
    assert!(last.contains(&key(1)));
    let lines = fs::read_to_string(home.path().join("deleted.jsonl")).unwrap().lines().count();
    assert!(lines < 10, "{lines} lines");
}

/// Scenario: records of two sessions that name no trace, one of them deleted, beside one of a deleted trace and others.
/// Guarantees: exactly what was deleted goes, whichever way it says what it is of.
#[test]
fn records_of_a_deleted_session_are_taken_out() {
    let record = |session: &str| {
        json!({"eventName": "user_prompt", "body": {"stringValue": "claude_code.user_prompt"}, "attributes": [
            {"key": "event.name", "value": {"stringValue": "user_prompt"}},
            {"key": "session.id", "value": {"stringValue": session}},
            {"key": "prompt.id", "value": {"stringValue": "p"}},
            {"key": "prompt", "value": {"stringValue": format!("said in {session}")}}]})
    };
    let body = |records: &[serde_json::Value]| {
        serde_json::to_vec(&json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})).unwrap()
    };
    let (one, two) = (record("s-1"), record("s-2"));
    let other = json!({"traceId": key(7).trace_id.to_string(), "body": {"stringValue": "of a trace"}});
    let logs = otlp_logs(&body(std::slice::from_ref(&one)));
    let trace_id = iris_core::dialect::trace_of(&logs[0]).unwrap();
    let deletions = Deletions::default();
    let left =
        |records: &[serde_json::Value]| deletions.left_of(&Tenant::local(), Lane::Logs, Encoding::Json, &body(records));
    assert_eq!(left(&[one.clone(), two.clone(), other.clone()]), Left::All);
    deletions.add(&RowKey { tenant: Tenant::local(), trace_id }).unwrap();
    assert_eq!(left(&[two.clone(), other.clone()]), Left::All);
    assert_eq!(left(std::slice::from_ref(&one)), Left::Nothing);
    assert_eq!(left(&[one.clone(), two.clone(), other.clone()]), Left::Part(body(&[two.clone(), other.clone()])));
    deletions.add(&key(7)).unwrap();
    assert_eq!(left(&[one, two.clone(), other.clone()]), Left::Part(body(&[two])));
    assert_eq!(left(&[other]), Left::Nothing);
}

fn otlp_logs(body: &[u8]) -> Vec<iris_core::model::RawLog> {
    iris_core::otlp::decode_logs(Encoding::Json, body).unwrap()
}
