//! Blocks in the middle of the database that no start reads: a question, a write or a checkpoint meets the damage.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Random, SOON, open, prepared};
use crate::support::collector::Collector;
use crate::support::iris::Iris;
use crate::support::spans::{agent_run, request, text, trace_hex};

const RUNS: u64 = 60;
const SPANS: u64 = 3;
/// The engine's headers, and a block.
const HEADERS: u64 = 3 * 4096;
const BLOCK: u64 = 256 * 1024;

/// A run with text that no compression makes smaller, so that it fills blocks of its own.
async fn put(iris: &Iris, number: u64, random: &mut Random) {
    let mut spans = agent_run(number, SPANS, "It is 18 C.");
    // Some stands in the row, some in pieces.
    for (span, kibibytes) in spans.iter_mut().zip([8, 40, 8]) {
        let letter = |_| char::from(b'A' + u8::try_from(random.below(26)).unwrap());
        let noise: String = (0..kibibytes * 1024).map(letter).collect();
        span.attributes.push(text("harbor.noise", &noise));
    }
    let body = request(spans);
    assert_eq!(iris.post("traces", "application/x-protobuf", body).await.unwrap().0, 200);
}

/// Each is stored whole, with its long text, and judged.
async fn all_whole(iris: &Iris, numbers: impl IntoIterator<Item = u64>, what: &str) {
    for number in numbers {
        let path = format!("/api/v1/traces/{}", trace_hex(number));
        let settled = |detail: &Value| {
            detail["trace"]["in_progress"] == false
                && detail["spans"].as_array().is_some_and(|spans| spans.len() as u64 == SPANS)
                && detail["evals"].as_array().is_some_and(|evals| !evals.is_empty())
        };
        iris.until("web", &path, SOON, settled).await;
        let (_, detail) = iris.get("web", &path).await;
        assert!(detail.contains("harbor.noise"), "{what}: trace {number} lacks its text\n{}", iris.log());
    }
}

/// The blocks of a column, in order.
fn blocks(file: &Path, table: &str, column: &str) -> Vec<u64> {
    let database = duckdb::Connection::open(file).unwrap();
    let sql = format!(
        "SELECT DISTINCT block_id FROM pragma_storage_info('{table}') \
         WHERE column_name = '{column}' AND segment_type = 'VARCHAR' AND block_id >= 0 ORDER BY 1"
    );
    let mut statement = database.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn overwrite(file: &Path, block: u64) {
    let mut opened = OpenOptions::new().write(true).open(file).unwrap();
    opened.seek(SeekFrom::Start(HEADERS + block * BLOCK + 1000)).unwrap();
    opened.write_all(&[0xa5; 3000]).unwrap();
}

/// A home of which the database has everything, ended in order.
async fn filled(iris: &mut Iris) {
    let mut random = Random(7);
    iris.start_again().await;
    open(iris).await;
    for number in 1..=RUNS {
        put(iris, number, &mut random).await;
    }
    all_whole(iris, 1..=RUNS, "before").await;
    assert!(iris.terminate().await.success());
}

/// Waits until damage was met and repaired; what `/readyz?full` says then.
async fn healed(iris: &Iris, what: &str) -> Value {
    let until = Instant::now() + SOON;
    loop {
        let (_, state) = iris.get("ops", "/readyz?full").await;
        let state: Value = serde_json::from_str(&state).unwrap();
        if state["store"]["state"] == "open" && state["store"]["damage"].as_array().is_some_and(|all| !all.is_empty()) {
            return state;
        }
        assert!(Instant::now() < until, "{what}: {state}\n{}", iris.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Scenario: a block of long texts, or of the spans themselves, is overwritten while the sidecar is down; a start does not
/// read it. Then a question meets it, or the copy that is made after deletions.
/// Guarantees: it starts without a word; what meets the damage has the file looked over, replaced by what can be read of it
/// and completed from the journal, once and by itself, while runs are taken; every trace is whole again, the one that was
/// deleted before stays deleted, and so does the one that is deleted now; a restart finds nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_of_the_database_heals_by_itself() {
    let collector = Collector::stopped().await;
    let mut first = prepared(&collector.endpoint());
    filled(&mut first).await;
    first.start_again().await;
    open(&first).await;
    let gone = trace_hex(3);
    assert_eq!(first.tool("delete_trace", &json!({ "trace_id": gone })).await.0, 200);
    assert!(first.terminate().await.success());
    for (table, column, meets) in
        [("pieces", "text", "a question"), ("spans", "attributes", "a question"), ("pieces", "text", "a copy")]
    {
        let what = format!("{table}.{column}, met by {meets}");
        let mut iris = prepared(&collector.endpoint());
        iris.set("IRIS__ERASE__WITHIN_MINUTES", if meets == "a copy" { "0" } else { "60" });
        super::damage::copy_folder(&first.home(), &iris.home());
        let file = iris.home().join("iris.duckdb");
        let all = blocks(&file, table, column);
        overwrite(&file, all[all.len() / 2]);
        iris.start_again().await;
        let state = open(&iris).await;
        assert!(state["store"]["damage"].is_null() && state["store_looks"] == 0, "{what}: a start met it: {state}");
        let mut deleted = vec![3];
        if meets == "a copy" {
            for number in 10..=30 {
                let (status, reply) = iris.tool("delete_trace", &json!({ "trace_id": trace_hex(number) })).await;
                assert!([200, 503].contains(&status), "{what}: {status} {reply}");
                deleted.extend((status == 200).then_some(number));
            }
            assert!(deleted.len() > 1, "{what}: the first deletion was refused");
        } else {
            for number in 4..=RUNS {
                let (status, _) = iris.get("web", &format!("/api/v1/traces/{}", trace_hex(number))).await;
                assert!([200, 500, 503].contains(&status), "{what}: {status}");
            }
        }
        put(&iris, 100, &mut Random(100)).await;
        let state = healed(&iris, &what).await;
        assert_eq!((&state["store_looks"], &state["store_restarts"]), (&json!(1), &json!(1)), "{what}: {state}");
        let damage = &state["store"]["damage"][0];
        assert!(damage["part"] == "main" && damage["salvaged"]["rows"].as_u64() > Some(0), "{what}: {state}");
        assert!(damage["salvaged"]["lost_rows"].as_u64() > Some(0), "{what}: {state}");
        // Of a deletion that was refused with a delay nothing is known: it may have been journalled.
        let stays = (4..=RUNS).filter(|number| meets != "a copy" || !(10..=30).contains(number));
        all_whole(&iris, stays.chain([100]), &what).await;
        for number in deleted {
            let path = format!("/api/v1/traces/{}", trace_hex(number));
            let until = Instant::now() + SOON;
            while iris.get("web", &path).await.0 != 404 {
                assert!(Instant::now() < until, "{what}: trace {number} is there again\n{}", iris.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        iris.kill();
        iris.start_again().await;
        let state = open(&iris).await;
        assert!(state["store"]["damage"].is_null(), "{what}: {state}");
        all_whole(&iris, [4, RUNS, 100], &what).await;
        let (_, state) = iris.get("ops", "/readyz?full").await;
        assert!(state.contains("\"store_looks\":0"), "{what}: {state}");
    }
}

/// Scenario: the same once the journal no longer has the runs, because the collector took them.
/// Guarantees: what can be read is there, what was lost is counted; nothing that comes later is
/// mixed up with what was lost; it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_has_any_more_is_told_and_mixed_up_with_nothing() {
    let collector = Collector::start().await;
    let mut iris = prepared(&collector.endpoint());
    filled(&mut iris).await;
    let file = iris.home().join("iris.duckdb");
    let all = blocks(&file, "spans", "attributes");
    overwrite(&file, all[all.len() / 2]);
    // Stored and sent on: nothing needs the journal.
    std::fs::remove_dir_all(iris.home().join("journal")).unwrap();
    iris.start_again().await;
    open(&iris).await;
    for number in 1..=RUNS {
        iris.get("web", &format!("/api/v1/traces/{}", trace_hex(number))).await;
    }
    let state = healed(&iris, "nothing in the journal").await;
    let salvaged = &state["store"]["damage"][0]["salvaged"];
    assert!(salvaged["lost_rows"].as_u64() > Some(0) && salvaged["whole"] == true, "{state}");
    let (status, page) = iris.get("web", "/api/v1/traces?limit=100").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((status, &page["total"]), (200, &json!(RUNS)), "the traces themselves were not in that block: {page}");
    let mut random = Random(9);
    for number in 200..=210 {
        put(&iris, number, &mut random).await;
    }
    all_whole(&iris, 200..=210, "after it").await;
}
