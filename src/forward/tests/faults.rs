//! Outages, restarts, drains, and bounds while they last.

use std::io::Write as _;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_over_outages_of_the_downstream_and_memory_is_bounded() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let mut collector = Collector::stopped().await;
        let forwarder = forward(&journal, &config(&collector, protocol));
        // More than twice what may be under way.
        let large: Vec<Bytes> = (0..40).map(|n| Bytes::from(vec![n; 1024 * 1024])).collect();
        for body in &large {
            put(&journal, Lane::Traces, Kind::Otlp, Encoding::Protobuf, body.clone()).await;
        }
        until(&forwarder, Lane::Traces, |status| status.failed >= 5 && status.state == State::Retrying).await;
        let status = standing(&forwarder, Lane::Traces);
        assert_eq!((status.cursor, status.sent, status.last_error_class.as_deref()), (0, 0, Some("connect")));
        assert_eq!(status.lag_records, 40);
        assert!(status.lag_bytes > 40 * 1024 * 1024, "{status:?}");
        collector.start_again().await;
        collector.until("some", |collector| collector.taken("traces").len() >= 5).await;
        collector.stop().await;
        let last = put_numbered(&journal, Lane::Traces, 0..100).await;
        until(&forwarder, Lane::Traces, |status| status.state == State::Retrying).await;
        collector.start_again().await;
        let status = until(&forwarder, Lane::Traces, |status| {
            assert!(status.in_flight_bytes <= share(Lane::Traces), "{status:?}");
            status.state == State::Idle && status.cursor == last
        });
        assert!(status.await.sent_bytes >= 40 * 1024 * 1024);
        let mut expected = numbered(0..100);
        expected.extend(large);
        expected.sort();
        assert!(collector.bodies("traces") == expected, "{protocol:?}: {} bodies", collector.bodies("traces").len());
        let status = standing(&forwarder, Lane::Traces);
        assert_eq!((status.dropped, status.lag_records, status.lag_bytes), (0, 0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_from_the_cursor_and_doubles_only_what_was_under_way() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        let answered = put_numbered(&journal, Lane::Traces, 0..100).await;
        let last = put_numbered(&journal, Lane::Traces, 100..300).await;
        // The 101st is never answered, so the cursor stays before it whatever is answered beyond.
        collector.set_for(&body(100), Mood::Silence);
        let first = forward(&journal, &config(&collector, protocol));
        until(&first, Lane::Traces, |status| status.cursor == answered).await;
        drop(first);
        collector.set_calm();
        let second = forward(&journal, &config(&collector, protocol));
        until(&second, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!(collector.bodies("traces"), numbered(0..300));
        let doubled = collector.taken("traces").len() - 300;
        assert!(doubled < window::AHEAD_MAX, "{protocol:?}: {doubled} were sent twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_process_goes_on_from_the_cursor_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let collector = Collector::start().await;
    for round in 0..4 {
        let journal = open(home.path());
        let last = put_numbered(&journal, Lane::Logs, round * 50..(round + 1) * 50).await;
        let forwarder = forward(&journal, &config(&collector, Protocol::Http));
        // Broken off in the middle, but for the last.
        let enough = if round == 3 { 200 } else { round * 50 + 20 };
        collector.until("enough", |collector| collector.bodies("logs").len() >= enough).await;
        if round == 3 {
            until(&forwarder, Lane::Logs, |status| status.cursor == last).await;
        }
        drop(forwarder);
        journal.close().await;
    }
    assert_eq!(collector.bodies("logs"), numbered(0..200));
    // What was answered but not yet counted when the task ended comes again. Without the cursor it would be at least
    // 20, 70 and 120: everything, three times.
    let doubled = collector.taken("logs").len() - 200;
    assert!(doubled < 100, "{doubled} were sent twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downstream_too_far_behind_costs_the_oldest_and_they_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let small = journal::Config { bytes_max: 4 * 1024 * 1024, sync: journal::Sync::Off, ..journal::Config::default() };
    let journal = Journal::open(home.path(), &small, true, Arc::new(journal::RealDisk)).unwrap().0;
    let mut collector = Collector::stopped().await;
    let forwarder = forward(&journal, &config(&collector, Protocol::Grpc));
    // The metrics lane has a tenth, and no store holds anything back.
    let bodies: Vec<Bytes> = (0..60).map(|n| Bytes::from(vec![n; 20_000])).collect();
    for body in &bodies {
        put(&journal, Lane::Metrics, Kind::Otlp, Encoding::Protobuf, body.clone()).await;
    }
    let behind = until(&forwarder, Lane::Metrics, |status| status.failed > 2 && status.dropped > 0).await;
    assert_eq!((behind.sent, behind.state), (0, State::Retrying));
    collector.start_again().await;
    let last = put_numbered(&journal, Lane::Metrics, 0..1).await;
    let status = until(&forwarder, Lane::Metrics, |status| status.cursor == last).await;
    let arrived = collector.bodies("metrics");
    assert!(arrived.contains(&bodies[59]) && arrived.contains(&body(0)), "the newest are there");
    // One that was read ahead may be counted as dropped and yet be sent.
    assert!((61..=62).contains(&(status.sent + status.dropped)), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_downstream_is_sent_several_at_once_and_no_more_than_configured() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set(&Mood::AcceptAfter(Duration::from_millis(100)));
        let last = put_numbered(&journal, Lane::Traces, 0..40).await;
        let began = Instant::now();
        let forwarder = forward(&journal, &Config { concurrency: 8, ..config(&collector, protocol) });
        let status = until(&forwarder, Lane::Traces, |status| {
            assert!(status.in_flight <= 8);
            status.cursor == last
        });
        status.await;
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(500) && took < Duration::from_millis(2_500), "{protocol:?}: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_sends_what_there_is_and_ends_at_its_deadline() {
    let (journal, _home) = journal();
    let mut collector = Collector::stopped().await;
    let cancel = CancellationToken::new();
    // Without the hurry the first retry would come after an hour and a half of minutes.
    let waits = Config { retry_initial_ms: 600_000, retry_max_ms: 600_000, ..config(&collector, Protocol::Grpc) };
    let target = Target::new(&waits, Origin::Configured, &[]).unwrap().unwrap();
    let forwarder = start(&journal, &target, None, &Deletions::default(), &cancel).unwrap();
    let last = put_numbered(&journal, Lane::Traces, 0..50).await;
    until(&forwarder, Lane::Traces, |status| status.state == State::Retrying).await;
    collector.start_again().await;
    cancel.cancel();
    let lanes = forwarder.lanes();
    let began = Instant::now();
    forwarder.drain(Duration::from_secs(20)).await;
    assert!(began.elapsed() < Duration::from_secs(10), "it ends when everything is answered");
    assert_eq!((lanes.status()[0].cursor, collector.bodies("traces")), (last, numbered(0..50)));

    collector.stop().await;
    let forwarder = start(&journal, &target, None, &Deletions::default(), &CancellationToken::new()).unwrap();
    put_numbered(&journal, Lane::Traces, 50..60).await;
    let began = Instant::now();
    forwarder.drain(Duration::from_millis(300)).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(journal.forward_cursor(Lane::Traces), last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_larger_than_the_share_is_sent_alone() {
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    collector.set(&Mood::AcceptAfter(Duration::from_millis(50)));
    let large = Bytes::from(vec![7; share(Lane::Metrics) + 1]);
    put_numbered(&journal, Lane::Metrics, 0..3).await;
    put(&journal, Lane::Metrics, Kind::Otlp, Encoding::Protobuf, large.clone()).await;
    let last = put_numbered(&journal, Lane::Metrics, 3..6).await;
    let forwarder = forward(&journal, &config(&collector, Protocol::Grpc));
    until(&forwarder, Lane::Metrics, |status| {
        assert!(status.in_flight_bytes <= share(Lane::Metrics) || status.in_flight == 1, "{status:?}");
        status.cursor == last
    })
    .await;
    assert_eq!(collector.bodies("metrics").len(), 7);
    assert!(collector.bodies("metrics").contains(&large));
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_goes_wrong_at_both_ends() {
    let refusals = [
        Mood::Refuse(Code::Unavailable, 503),
        Mood::Refuse(Code::DeadlineExceeded, 504),
        Mood::Refuse(Code::Unauthenticated, 401),
        Mood::RefuseFor(Code::ResourceExhausted, 429, Duration::ZERO),
        Mood::AcceptAfter(Duration::from_millis(30)),
        Mood::HangUp,
        Mood::Silence,
        Mood::Partial(1),
        Mood::Accept,
        Mood::Accept,
    ];
    for (seed, protocol) in [(1, Protocol::Grpc), (2, Protocol::Http), (3, Protocol::Grpc), (4, Protocol::Http)] {
        let mut dice = Dice(seed);
        let (journal, _home) = journal();
        let mut collector = Collector::start().await;
        let waits = Config { timeout_ms: 80, retry_initial_ms: 5, retry_max_ms: 20, ..config(&collector, protocol) };
        let mut forwarder = forward(&journal, &waits);
        let mut put = 0;
        for _ in 0..40 {
            match dice.roll(12) {
                0 => {
                    collector.stop().await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    collector.start_again().await;
                }
                1 => {
                    drop(forwarder);
                    forwarder = forward(&journal, &waits);
                }
                _ => collector.set_next("traces", (0..4).map(|_| refusals[dice.roll(refusals.len())].clone())),
            }
            let more = dice.roll(30);
            put_numbered(&journal, Lane::Traces, put..put + more).await;
            put += more;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let last = put_numbered(&journal, Lane::Traces, put..put + 1).await;
        collector.set_calm();
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!(status.dropped, 0, "seed {seed}");
        assert_eq!(collector.bodies("traces"), numbered(0..put + 1), "seed {seed}");
    }
}

/// How fast it is against a collector on the same machine: `cargo test --workspace --lib forward -- --ignored
/// --nocapture`, with `--release` for figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn throughput() {
    for protocol in PROTOCOLS {
        for (bytes, records) in [(2_000, 20_000), (200_000, 1_000)] {
            let (journal, _home) = journal();
            let collector = Collector::start().await;
            let mut last = 0;
            for number in 0u64..records {
                let mut body = vec![7; bytes];
                body[..8].copy_from_slice(&number.to_le_bytes());
                last = put(&journal, Lane::Traces, Kind::Otlp, Encoding::Protobuf, body).await;
            }
            let began = Instant::now();
            let forwarder = forward(&journal, &config(&collector, protocol));
            until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
            let took = began.elapsed().as_secs_f64();
            let each_second = f64::from(u32::try_from(records).unwrap()) / took;
            let mut out = std::io::stderr().lock();
            writeln!(out, "{protocol:?}, {bytes} bytes a record: {each_second:.0} records/s").unwrap();
        }
    }
}
