//! What each answer of the downstream leads to.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_blip_now_and_then_does_not_stop_the_lane() {
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    let blips = (0..1_000).map(|n| if n % 50 == 7 { Mood::Refuse(Code::Unavailable, 503) } else { Mood::Accept });
    collector.set_next("traces", blips);
    let last = put_numbered(&journal, Lane::Traces, 0..950).await;
    let began = Instant::now();
    // With waits of 5 s a lane that stopped for each of the 19 blips would take minutes.
    let waits = Config { retry_initial_ms: 5_000, retry_max_ms: 30_000, ..config(&collector, Protocol::Grpc) };
    let forwarder = forward(&journal, &waits);
    let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((status.sent, status.dropped, collector.bodies("traces").len()), (950, 0, 950));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downstream_without_tls_is_never_spoken_to_in_the_clear() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        let endpoint = Some(collector.endpoint().replace("http://", "https://"));
        put_numbered(&journal, Lane::Traces, 0..1).await;
        let forwarder = forward(&journal, &Config { endpoint, ..config(&collector, protocol) });
        let status = until(&forwarder, Lane::Traces, |status| status.failed > 2).await;
        assert_eq!(status.last_error_class.as_deref(), Some("connect"), "{protocol:?}");
        assert_eq!((status.dropped, collector.attempts("traces").len()), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_a_reason_to_send_again() {
    for (protocol, mood) in [
        (Protocol::Grpc, Mood::HangUp),
        (Protocol::Http, Mood::HangUp),
        (Protocol::Grpc, Mood::Silence),
        (Protocol::Http, Mood::Silence),
        (Protocol::Grpc, Mood::NoTrailers),
    ] {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set_next("traces", [mood.clone(), mood.clone()]);
        let last = put_numbered(&journal, Lane::Traces, 0..20).await;
        let forwarder = forward(&journal, &Config { timeout_ms: 300, ..config(&collector, protocol) });
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!((status.dropped, status.failed >= 2), (0, true), "{protocol:?} {mood:?}");
        let class = status.last_error_class.unwrap();
        let silent = matches!(mood, Mood::Silence);
        assert!(class == if silent { "timeout" } else { "disconnected" }, "{protocol:?} {mood:?}: {class}");
        assert_eq!(collector.bodies("traces"), numbered(0..20), "{protocol:?} {mood:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_success_is_counted_and_never_sent_again() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set_next("traces", [Mood::Partial(3), Mood::Partial(0)]);
        let last = put_numbered(&journal, Lane::Traces, 0..5).await;
        let forwarder = forward(&journal, &config(&collector, protocol));
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!((status.rejected_items, status.sent, status.failed, status.dropped), (3, 5, 0, 0));
        assert_eq!(collector.attempts("traces").len(), 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_the_limit_is_not_read_and_not_sent_again() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set_next("traces", [Mood::AcceptWithAnswer(reply::ANSWER_BYTES_MAX + 1)]);
        let last = put_numbered(&journal, Lane::Traces, 0..3).await;
        let forwarder = forward(&journal, &config(&collector, protocol));
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!((status.sent, status.failed, status.dropped), (3, 0, 0), "{protocol:?}");
        assert_eq!(collector.attempts("traces").len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_taken_is_dropped_and_counted() {
    for protocol in PROTOCOLS {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set_for(&body(2), Mood::Refuse(Code::InvalidArgument, 400));
        let last = put_numbered(&journal, Lane::Traces, 0..5).await;
        let forwarder = forward(&journal, &config(&collector, protocol));
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!((status.sent, status.dropped, status.failed), (4, 1, 0), "{protocol:?}");
        assert_eq!(collector.attempts("traces").len(), 5, "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_set_up_pauses_its_lane_alone_and_the_lane_resumes_by_itself() {
    for protocol in PROTOCOLS {
        for (code, status, class) in [
            (Code::Unauthenticated, 401, ["grpc_Unauthenticated", "http_401"]),
            (Code::PermissionDenied, 403, ["grpc_PermissionDenied", "http_403"]),
            (Code::Unimplemented, 404, ["grpc_Unimplemented", "http_404"]),
        ] {
            let (journal, _home) = journal();
            let collector = Collector::start().await;
            collector.set_lane("logs", Mood::Refuse(code, status));
            let logs = put_numbered(&journal, Lane::Logs, 0..40).await;
            let traces = put_numbered(&journal, Lane::Traces, 0..40).await;
            let forwarder = forward(&journal, &config(&collector, protocol));
            until(&forwarder, Lane::Traces, |status| status.cursor == traces && status.state == State::Idle).await;
            let paused = until(&forwarder, Lane::Logs, |status| status.failed >= 12).await;
            assert_eq!((paused.state, paused.sent, paused.dropped, paused.cursor), (State::Paused, 0, 0, 0));
            assert_eq!(paused.last_error_class.as_deref(), Some(class[usize::from(protocol == Protocol::Http)]));
            collector.set_lane("logs", Mood::Accept);
            let resumed = until(&forwarder, Lane::Logs, |status| status.state == State::Idle).await;
            assert_eq!((resumed.sent, resumed.dropped, resumed.cursor), (40, 0, logs));
            assert_eq!(collector.bodies("logs"), numbered(0..40));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_that_the_downstream_asks_for_is_kept() {
    for (protocol, code) in [
        (Protocol::Grpc, Code::Unavailable),
        (Protocol::Grpc, Code::ResourceExhausted),
        (Protocol::Http, Code::Unavailable),
    ] {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        let wait = Duration::from_secs(1);
        collector.set_next("traces", [Mood::RefuseFor(code, 429, wait)]);
        let last = put_numbered(&journal, Lane::Traces, 0..10).await;
        let forwarder = forward(&journal, &Config { concurrency: 1, ..config(&collector, protocol) });
        until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        let attempts = collector.attempts("traces");
        let waited = attempts[1] - attempts[0];
        assert!(waited >= wait && waited < wait * 3, "{protocol:?} {code:?}: {waited:?}");
        assert_eq!((attempts.len(), collector.bodies("traces")), (11, numbered(0..10)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exhaustion_without_a_delay_is_final() {
    let (journal, _home) = journal();
    let collector = Collector::start().await;
    collector.set_next("traces", [Mood::Refuse(Code::ResourceExhausted, 413)]);
    let last = put_numbered(&journal, Lane::Traces, 0..2).await;
    let forwarder = forward(&journal, &config(&collector, Protocol::Grpc));
    let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
    assert_eq!((status.sent, status.dropped), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_that_is_refused_for_ever_lets_the_others_pass() {
    for (code, status) in [(Code::PermissionDenied, 403), (Code::Unavailable, 503)] {
        let (journal, _home) = journal();
        let collector = Collector::start().await;
        collector.set_for(&body(3), Mood::Refuse(code, status));
        let last = put_numbered(&journal, Lane::Traces, 0..100).await;
        let forwarder = forward(&journal, &config(&collector, Protocol::Http));
        let status = until(&forwarder, Lane::Traces, |status| status.cursor == last).await;
        assert_eq!((status.sent, status.dropped), (99, 1), "{code:?}");
        let mut expected = numbered(0..100);
        expected.remove(3);
        assert_eq!(collector.bodies("traces"), expected);
    }
}
