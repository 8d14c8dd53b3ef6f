//! What storing costs. Run by hand, in release, on a quiet machine:
//! `cargo test --release --workspace --lib store::tests::cost -- --ignored --nocapture`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iris_core::model::{Observation, RawSpan, Resource, Row, Scope, SpanId, Timestamp, TraceId};
use serde_json::json;

use super::fixtures::*;
use crate::store::{Bounds, Budget, By, Step, Store, TraceQuery, Window, Write};

/// Processor seconds of the writer's thread for a million rows at which something has got worse. The goal is 15;
/// measured are 17 to 18, of which zstd takes 6.4, binding values to the appender 4, and writing JSON 2.5.
const CPU_SECONDS_MAX: f64 = 20.0;
const ROWS: u64 = 409_600;
/// Distinct rows; the stream goes around them.
const DISTINCT: u64 = 40_960;
/// Rows of a message, as a worker sends them.
const MESSAGE: usize = 512;

/// xorshift: the same rows on every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Words of a vocabulary in which a few are common, until there are so many bytes.
    fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 12);
        while text.len() < bytes {
            let rank = (self.next() % 10_000).min(self.next() % 10_000).min(self.next() % 10_000);
            let mut word = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for _ in 0..2 + rank % 7 {
                text.push(char::from(b'a' + (word % 26) as u8));
                word /= 26;
            }
            text.push(' ');
        }
        text
    }
}

/// A model call with about 1 KB of attributes, eight spans a trace, one resource for each message.
fn realistic(noise: &mut Noise, n: u64, resource: &Arc<Resource>, scope: &Arc<Scope>) -> Row {
    let attributes = json!({
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-x-4",
        "gen_ai.response.model": "claude-x-4-20260701", "gen_ai.response.id": format!("msg_{:016x}", noise.next()),
        "gen_ai.usage.input_tokens": noise.next() % 4000, "gen_ai.usage.output_tokens": noise.next() % 900,
        "gen_ai.input.messages": format!("[{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"content\":\"{}\"}}]}}]", noise.prose(420)),
        "gen_ai.output.messages": format!("[{{\"role\":\"assistant\",\"parts\":[{{\"type\":\"text\",\"content\":\"{}\"}}]}}]", noise.prose(220)),
        "gen_ai.response.finish_reasons": ["stop"], "server.address": "api.example.com", "server.port": 443,
    });
    let trace = n / 8;
    let mut id = [0; 16];
    id[..8].copy_from_slice(&trace.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    id[8..].copy_from_slice(&trace.wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_be_bytes());
    let trace_id = TraceId::from_bytes(&id).unwrap();
    let span_id = SpanId::from_bytes(&(noise.next() | 1).to_be_bytes()).unwrap();
    let start = DAY + n * 1_000_000 + noise.next() % 1_000_000;
    let span = RawSpan {
        trace_id,
        span_id,
        parent_span_id: (!n.is_multiple_of(8)).then_some(span_id),
        name: ["chat claude-x-4", "execute_tool search", "invoke_agent planner"][(n % 3) as usize].to_owned(),
        start: Timestamp::from_unix_nanos(start),
        end: Timestamp::from_unix_nanos(start + noise.next() % 3_000_000_000),
        attributes: object(attributes),
        events: Vec::new(),
        links: Vec::new(),
        flags: 0x101,
        trace_state: String::new(),
        status_message: String::new(),
        resource: Arc::clone(resource),
        scope: Arc::clone(scope),
        ..span(1, 1)
    };
    Row {
        trace_id,
        span_id,
        received: Timestamp::from_unix_nanos(start + SECOND),
        content_hash: noise.next(),
        observation: Observation::Span(span),
        ..row(1, 1, position(n / MESSAGE as u64 + 1, (n % MESSAGE as u64) as u32))
    }
}

fn realistic_rows() -> Vec<Arc<Row>> {
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    let mut shared = (Arc::<Resource>::default(), Arc::<Scope>::default());
    (0..DISTINCT)
        .map(|n| {
            if n % MESSAGE as u64 == 0 {
                let attributes = json!({
                    "service.name": "checkout-agent", "service.version": "1.4.2", "deployment.environment.name": "prod",
                    "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.39.0",
                    "host.name": format!("pod-{}", noise.next() % 4), "process.pid": noise.next() % 4,
                });
                let scope = Scope { name: "opentelemetry.instrumentation.anthropic".to_owned(), ..Scope::default() };
                shared = (Arc::new(Resource { attributes: object(attributes) }), Arc::new(scope));
            }
            Arc::new(realistic(&mut noise, n, &shared.0, &shared.1))
        })
        .collect()
}

/// Processor time of the writer's thread so far.
fn writer_cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let nanos = threads
        .filter(|thread| std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == "iris-store"))
        .map(|thread| std::fs::read_to_string(thread.join("schedstat")).unwrap())
        .map(|figures| figures.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    Duration::from_nanos(nanos)
}

fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").unwrap();
}

/// Scenario: realistic rows through the real writer, as fast as it takes them, and through slow small commits.
/// Guarantees: a million rows cost the writer at most [`CPU_SECONDS_MAX`], last checkpoint included.
#[test]
#[ignore = "a measurement"]
fn storing_a_million_rows() {
    let rows = realistic_rows();
    let home = tempfile::tempdir().unwrap();
    // To compare layouts without building anew: a file with another first migration.
    if let Ok(file) = std::env::var("IRIS_COST_SCHEMA") {
        crate::store::schema::migrate_with(home.path(), &std::fs::read_to_string(file).unwrap());
    }
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let started = Instant::now();
        for sent in 0..ROWS / MESSAGE as u64 {
            let first = (sent % (DISTINCT / MESSAGE as u64)) as usize * MESSAGE;
            store.send_async(packed(rows[first..first + MESSAGE].to_vec())).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        let (took, cpu, status) = (started.elapsed(), writer_cpu(), store.status());
        let file_bytes = std::fs::metadata(home.path().join("iris.duckdb")).unwrap().len();
        let cpu_seconds = cpu.as_secs_f64() * 1e6 / ROWS as f64;
        say(&format!(
            "{ROWS} rows: {cpu_seconds:.1} CPU-s per million, {:.0} rows/s, longest commit {:.0} ms, checkpoint {:.0} ms, {} bytes a row",
            ROWS as f64 / took.as_secs_f64(),
            status.commit_ms_max,
            status.checkpoint_ms,
            file_bytes / ROWS,
        ));
        say_sizes(&store).await;
        time_queries(&store, rows[17].trace_id).await;
        assert!(cpu_seconds <= CPU_SECONDS_MAX, "{cpu_seconds} CPU-s per million rows");
    });
}

/// Bytes are not told by the engine for each column; blocks are.
async fn say_sizes(store: &Store) {
    let sql = "SELECT column_name, string_agg(DISTINCT compression, '+' ORDER BY compression), count(DISTINCT block_id) \
               FROM pragma_storage_info('spans') WHERE segment_type <> 'VALIDITY' GROUP BY column_name, column_id ORDER BY column_id";
    let read = |row: &duckdb::Row<'_>| {
        let read = || -> duckdb::Result<(String, String, u64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        read().map_err(crate::store::Error::engine)
    };
    let columns = store.inner.readers.read(move |reader| reader.rows(sql, &[], read)).await.unwrap();
    let told: Vec<_> = columns.iter().map(|(name, how, blocks)| format!("{name} {how} {blocks}")).collect();
    say(&told.join(", "));
}

async fn time_queries(store: &Store, trace_id: TraceId) {
    let tenant = iris_core::model::Tenant::local();
    let started = Instant::now();
    let found = store.spans(&tenant, trace_id, Bounds::WHOLE).await.unwrap().items;
    say(&format!(
        "one trace of {} spans by id among {ROWS}: {:.1} ms",
        found.len(),
        started.elapsed().as_secs_f64() * 1e3
    ));
    let started = Instant::now();
    let query = TraceQuery { limit: 50, ..TraceQuery::default() };
    store.traces(&tenant, &query, Budget::WHOLE).await.unwrap();
    say(&format!("an empty page of traces: {:.1} ms", started.elapsed().as_secs_f64() * 1e3));
}

/// Scenario: 100,000 judged traces, a tenth of them in two versions; then the pages people ask for.
/// Guarantees: none; prints the time of each.
#[test]
#[ignore = "a measurement"]
fn paging_a_hundred_thousand_traces() {
    const TRACES: u64 = 100_000;
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let started = Instant::now();
        for n in 1..=TRACES + TRACES / 10 {
            let (n, version) = if n > TRACES { (n - TRACES, 2) } else { (n, 1) };
            let trace = iris_core::model::Trace { agent_name: format!("agent {}", n % 20), ..trace(n, version) };
            let evaluation = evaluation(n, &format!("evaluation-{n}-{version}"), (n % 100) as f64 / 100.0);
            let (trace, evaluation) = (Box::new(trace), Arc::new(evaluation));
            let settled_through = crate::store::Settled::default();
            store.send_async(Write::Judged { ticket: n, trace, evaluation, settled_through }).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        say(&format!(
            "{TRACES} traces judged: {:.1} CPU-s per 100,000, {:.1} s",
            writer_cpu().as_secs_f64(),
            started.elapsed().as_secs_f64()
        ));
        let all = || TraceQuery { limit: 50, ..TraceQuery::default() };
        for (name, query) in [
            ("latest 50", all()),
            ("latest 50 of an agent", TraceQuery { agent_name: Some("agent 7".to_owned()), ..all() }),
            ("latest 50 with a score over 0.9", TraceQuery { min_score: Some(0.9), ..all() }),
            ("the 50 slowest", TraceQuery { sort_by: iris_core::contract::SortBy::LatencyMs, ..all() }),
            ("page 1000", TraceQuery { offset: 50_000, ..all() }),
            ("latest 1000", TraceQuery { limit: 1000, ..all() }),
        ] {
            store.traces(&iris_core::model::Tenant::local(), &query, Budget::WHOLE).await.unwrap();
            let started = Instant::now();
            let page = store.traces(&iris_core::model::Tenant::local(), &query, Budget::WHOLE).await.unwrap();
            say(&format!(
                "{name}: {:.1} ms, {} of {}",
                started.elapsed().as_secs_f64() * 1e3,
                page.rows.len(),
                page.total
            ));
        }
        let started = Instant::now();
        store.summary(&iris_core::model::Tenant::local(), at(0), at(200_000)).await.unwrap();
        say(&format!("summary of all: {:.1} ms", started.elapsed().as_secs_f64() * 1e3));
    });
}

/// Makes of the one judged trace of a closed store as many, a second apart.
fn multiply(home: &std::path::Path, traces: u64) {
    const BATCH: u64 = 100_000;
    let connection = duckdb::Connection::open(home.join("iris.duckdb")).unwrap();
    for from in (2..=traces).step_by(usize::try_from(BATCH).unwrap()) {
        let range = format!("range({from}, {})", (from + BATCH).min(traces + 1));
        for (table, time, id) in [
            ("traces", "timestamp", ", make_timestamp((1796083200 + n) * 1000000) AS verdict_at"),
            ("evaluations", "created_at", ", 'evaluation-' || n AS id"),
        ] {
            let sql = format!(
                "INSERT INTO {table} SELECT one.* REPLACE (from_hex(printf('%032x', n)) AS trace_id, \
                 replace(body, lower(hex(trace_id)), printf('%032x', n)) AS body, \
                 make_timestamp((1796083200 + n) * 1000000) AS {time}{id}) \
                 FROM (SELECT * FROM {table} LIMIT 1) one, {range} numbers(n)"
            );
            connection.execute_batch(&sql).unwrap();
        }
    }
    connection.execute_batch("CHECKPOINT").unwrap();
}

/// Scenario: a million judged traces, and more coming in; the newest fifty, again and again.
/// Guarantees: none; prints how long a page takes.
#[test]
#[ignore = "a measurement"]
fn the_newest_of_a_million_traces_while_more_come() {
    const TRACES: u64 = 1_000_000;
    const ASKED: usize = 400;
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let send = async |store: &Store, n: u64| {
            let trace = iris_core::model::Trace { timestamp: at(n), ..trace(n, 1) };
            let evaluation = evaluation(n, &format!("evaluation-{n}"), 0.5);
            let (trace, evaluation) = (Box::new(trace), Arc::new(evaluation));
            let settled_through = crate::store::Settled::default();
            store.send_async(Write::Judged { ticket: n, trace, evaluation, settled_through }).await.unwrap();
        };
        send(&store, 1).await;
        store.close(Duration::from_secs(10)).await.unwrap();
        multiply(home.path(), TRACES);
        let (store, _) = open(home.path());
        for (name, coming) in [("quiet", false), ("while 1,000 a second come", true)] {
            let mut took = Vec::with_capacity(ASKED);
            let mut next = TRACES + 1;
            for _ in 0..ASKED {
                if coming {
                    for _ in 0..50 {
                        send(&store, next).await;
                        next += 1;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let query = TraceQuery { limit: 50, ..TraceQuery::default() };
                let started = Instant::now();
                let page = store.traces(&iris_core::model::Tenant::local(), &query, Budget::WHOLE).await.unwrap();
                took.push(started.elapsed());
                assert_eq!(page.rows.len(), 50, "{} in all, unreadable: {:?}", page.total, page.unreadable);
            }
            took.sort();
            let at = |share: usize| took[ASKED * share / 100].as_secs_f64() * 1e3;
            say(&format!(
                "the newest 50 of {TRACES}, {name}: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
                at(50),
                at(95),
                at(99),
                took[ASKED - 1].as_secs_f64() * 1e3
            ));
        }
    });
}

/// Scenario: a million judged traces; their figures, pages by verdict, rule, score and agent, and searches, three times each.
/// Guarantees: all of them are counted, each question within the deadline; prints how long it takes.
#[test]
#[ignore = "a measurement"]
fn questions_about_a_million_traces() {
    const TRACES: u64 = 1_000_000;
    let home = tempfile::tempdir().unwrap();
    let tenant = iris_core::model::Tenant::local();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        let first = iris_core::model::Trace { timestamp: at(1), ..trace(1, 1) };
        let (trace, evaluation) = (Box::new(first), Arc::new(evaluation(1, "evaluation-1", 0.5)));
        let settled_through = crate::store::Settled::default();
        store.send_async(Write::Judged { ticket: 1, trace, evaluation, settled_through }).await.unwrap();
        store.close(Duration::from_secs(10)).await.unwrap();
        multiply(home.path(), TRACES);
        let file = duckdb::Connection::open(home.path().join("iris.duckdb")).unwrap();
        let started = Instant::now();
        let judged = crate::store::known::judged(&file, crate::store::known::STRETCH_ROWS).unwrap();
        say(&format!("ids of {TRACES} judged traces: {:.0} ms", started.elapsed().as_secs_f64() * 1e3));
        assert!(judged.may_contain(&key(1)));
        drop(file);
        let (store, _) = open(home.path());
        for _ in 0..3 {
            let window = Window { since: at(0), until: at(2 * TRACES), names: Vec::new() };
            let started = Instant::now();
            let found = store.series(&tenant, &window, Step::Day, By::Agent).await.unwrap();
            say(&format!("figures of {TRACES}: {:.0} ms", started.elapsed().as_secs_f64() * 1e3));
            assert_eq!((found.total.traces, found.total.passed), (TRACES, TRACES));
        }
        let all = || TraceQuery { limit: 50, ..TraceQuery::default() };
        for (name, query, total) in [
            ("passed", TraceQuery { verdict: Some(iris_core::model::VerdictState::Pass), ..all() }, TRACES),
            ("failed", TraceQuery { verdict: Some(iris_core::model::VerdictState::Fail), ..all() }, 0),
            ("of a rule", TraceQuery { rule: Some("no_pii".to_owned()), ..all() }, 0),
            ("of a score", TraceQuery { min_score: Some(0.5), ..all() }, TRACES),
            ("of an agent", TraceQuery { agent_name: Some("planner".to_owned()), ..all() }, TRACES),
            ("of a session", TraceQuery { session_id: Some("s-2".to_owned()), ..all() }, 0),
            ("until a time", TraceQuery { until: Some(at(TRACES / 2)), ..all() }, TRACES / 2),
            ("with a word of all", TraceQuery { words: vec!["what".to_owned()], ..all() }, TRACES),
            ("with a word of none", TraceQuery { words: vec!["nowhere".to_owned()], ..all() }, 0),
        ] {
            for _ in 0..3 {
                let started = Instant::now();
                let page = store.traces(&tenant, &query, Budget { bytes: 0, shrink: |_| false }).await.unwrap();
                say(&format!("{name}: {:.0} ms, {}", started.elapsed().as_secs_f64() * 1e3, page.total));
                assert!(page.total.abs_diff(total) <= 1, "{name}: {}", page.total);
            }
        }
    });
}
