use super::grpc::export;
use super::*;

#[tokio::test]
async fn success_leaves_only_after_the_journal_has_answered() {
    let stand = Stand::usual().await;
    stand.appending.send_replace(Appending::Waits);
    let body = spans(0, 1).encode_to_vec();
    let http = stand.post("/v1/traces", &[PROTOBUF], &body);
    let grpc = export(&stand, stand.doors.grpc().unwrap(), spans(1, 1));
    tokio::pin!(http, grpc);
    tokio::select! {
        answer = &mut http => panic!("answered before: {answer:?}"),
        answer = &mut grpc => panic!("answered before: {answer:?}"),
        () = sleep(Duration::from_millis(300)) => {}
    }
    assert!(stand.admission.bytes_free() < stand.admission.bytes_max(), "permits are held until the answer");
    stand.appending.send_replace(Appending::Works);
    let (http, grpc) = tokio::join!(http, grpc);
    assert_eq!((http.status, grpc.unwrap().partial_success), (200, None));
    assert_eq!(stand.bodies().len(), 2);
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn a_resend_is_answered_and_not_kept_whichever_door_it_comes_by() {
    let stand = Stand::usual().await;
    let body = spans(0, 5).encode_to_vec();
    assert_eq!(stand.post("/v1/traces", &[PROTOBUF], &body).await.status, 200);
    for _ in 0..3 {
        assert_eq!(stand.post("/v1/traces", &[PROTOBUF, ("content-encoding", "gzip")], &gzip(&body)).await.status, 200);
        export(&stand, stand.doors.grpc().unwrap(), spans(0, 5)).await.unwrap();
    }
    assert_eq!(stand.bodies(), std::slice::from_ref(&body));
    assert_eq!((count(&stand.counters.http.traces.resent), count(&stand.counters.grpc.traces.resent)), (15, 15));
    assert_eq!(stand.post("/v1/logs", &[PROTOBUF], &logs().encode_to_vec()).await.status, 200);
    assert_eq!(stand.bodies().len(), 2, "another message");
}

#[tokio::test]
async fn a_resend_of_what_is_being_written_waits_for_how_that_ends() {
    let stand = Stand::usual().await;
    for (ending, status, kept) in [(Appending::Fails, 503, 0), (Appending::Works, 200, 1)] {
        stand.appending.send_replace(Appending::Waits);
        let body = spans(0, 1).encode_to_vec();
        let first = stand.post("/v1/traces", &[PROTOBUF], &body);
        let second = stand.post("/v1/traces", &[PROTOBUF], &body);
        tokio::pin!(first, second);
        tokio::select! {
            answer = &mut first => panic!("answered before: {answer:?}"),
            answer = &mut second => panic!("answered before: {answer:?}"),
            () = sleep(Duration::from_millis(200)) => {}
        }
        stand.appending.send_replace(ending);
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.status, second.status), (status, status), "{ending:?}");
        assert_eq!(stand.bodies().len(), kept, "{ending:?}");
    }
}

#[tokio::test]
async fn a_sender_that_gives_up_and_sends_again_is_recognised() {
    let stand = Stand::usual().await;
    stand.appending.send_replace(Appending::Waits);
    let body = spans(0, 2).encode_to_vec();
    let mut stream = TcpStream::connect(stand.http()).await.unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
        stand.http(),
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    until("the write is under way", || stand.admission.bytes_free() < stand.admission.bytes_max()).await;
    sleep(Duration::from_millis(50)).await;
    drop(stream);
    sleep(Duration::from_millis(50)).await;
    stand.appending.send_replace(Appending::Works);
    assert_eq!(stand.post("/v1/traces", &[PROTOBUF], &body).await.status, 200);
    assert_eq!(stand.bodies().len(), 1);
    stand.inlet.close().await;
    stand.assert_nothing_held().await;
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room_for_the_next() {
    let mut setup = Setup::default();
    setup.config.http.connections_max = 2;
    let stand = Stand::with(setup).await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(stand.http()).await.unwrap();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
            stand.http()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(read_answer(&mut stream).await.status, 200);
        idle.push(stream);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stand.post("/v1/traces", &[JSON], b"{}").await.status, 200);
    let mut byte = [0];
    let closed = timeout(PATIENCE, idle[0].read(&mut byte)).await.unwrap().unwrap();
    assert_eq!(closed, 0, "the one that had been idle longest");
    assert_eq!(count(&stand.counters.http.evicted), 1);
    assert!(timeout(Duration::from_millis(100), idle[1].read(&mut byte)).await.is_err(), "the other is still open");
}

#[tokio::test]
async fn a_flood_of_silent_connections_makes_room_for_itself() {
    let mut setup = Setup::default();
    setup.config.http.connections_max = 8;
    let stand = Stand::with(setup).await;
    let mut asking = TcpStream::connect(stand.http()).await.unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        stand.http()
    );
    asking.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut asking).await.status, 200);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(stand.http()).await.unwrap());
    }
    until("the first of the flood made room for the last", || count(&stand.counters.http.evicted) == 33).await;
    asking.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut asking).await.status, 200, "who asks is kept");
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_keep_others_out() {
    let mut setup = Setup::default();
    setup.config.grpc.connections_max = 1;
    let stand = Stand::with(setup).await;
    let to = stand.doors.grpc().unwrap();
    let mut silent = TcpStream::connect(to).await.unwrap();
    silent.write_all(b"PRI * HT").await.unwrap();
    until("it was taken", || count(&stand.counters.grpc.connections) == 1).await;
    export(&stand, to, spans(0, 1)).await.unwrap();
}

#[tokio::test]
async fn draining_stays_open_until_it_is_quiet_and_finishes_what_runs() {
    let stand = Stand::usual().await;
    stand.appending.send_replace(Appending::Waits);
    let body = spans(0, 1).encode_to_vec();
    let running = stand.post("/v1/traces", &[PROTOBUF], &body);
    let begun = Instant::now();
    let draining = stand.doors.drain(PATIENCE);
    let releasing = async {
        sleep(Duration::from_millis(200)).await;
        let late = stand.post("/v1/traces", &[JSON], b"{}").await;
        assert_eq!(late.status, 200, "open while somebody may still come");
        stand.appending.send_replace(Appending::Works);
    };
    let (running, is_done, ()) = tokio::join!(running, draining, releasing);
    assert_eq!((running.status, is_done), (200, true));
    assert!(begun.elapsed() >= DRAIN_QUIET);
    assert!(TcpStream::connect(stand.http()).await.is_err(), "closed");
}

#[tokio::test]
async fn closing_does_not_wait_for_ever() {
    let stand = Stand::usual().await;
    stand.appending.send_replace(Appending::Waits);
    let body = spans(0, 1).encode_to_vec();
    let mut stream = TcpStream::connect(stand.http()).await.unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
        stand.http(),
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    until("it runs", || stand.admission.bytes_free() < stand.admission.bytes_max()).await;
    assert!(!stand.doors.close(Duration::from_millis(100)).await, "one request was still running");
}

#[tokio::test]
async fn doors_open_where_the_settings_say_or_not_at_all() {
    let mut setup = Setup::default();
    setup.config.grpc.listen = Listen::Off;
    let stand = Stand::with(setup).await;
    assert_eq!(stand.doors.grpc(), None);
    let mut config = Config::default();
    config.http.listen = Listen::At(stand.http());
    config.grpc.listen = Listen::Off;
    let error = Doors::open(&config, &[], stand.inlet.clone(), stand.admission.clone(), ROOMY).await.err().unwrap();
    assert!(error.to_string().contains("receive.http.listen"), "{error}");
    config.http.listen = "0.0.0.0:0".parse().unwrap();
    let error = Doors::open(&config, &[], stand.inlet.clone(), stand.admission.clone(), ROOMY).await.err().unwrap();
    assert!(error.to_string().contains("allow_unauthenticated"), "{error}");
    config.http.listen = Listen::loopback(0);
    let file = tempfile::NamedTempFile::new().unwrap();
    config.token_file = Some(file.path().to_owned());
    let open = || Doors::open(&config, &[], stand.inlet.clone(), stand.admission.clone(), ROOMY);
    assert!(open().await.err().unwrap().to_string().contains("empty"));
    std::fs::write(file.path(), "s3cret\n").unwrap();
    let doors = open().await.unwrap();
    let to = doors.http().unwrap();
    assert_eq!(exchange(to, "POST", "/v1/traces", &[JSON], b"{}").await.status, 401);
    assert_eq!(
        exchange(to, "POST", "/v1/traces", &[JSON, ("authorization", "Bearer s3cret")], b"{}").await.status,
        200
    );
}

#[tokio::test]
async fn what_was_acknowledged_is_in_the_journal_and_known_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let config = journal::Config { bytes_max: 8 * MIB as u64, ..journal::Config::default() };
    let body = spans(0, 3).encode_to_vec();
    for round in 0..2 {
        let (journal, recovered) = Journal::open(home.path(), &config, true, Arc::new(RealDisk)).unwrap();
        let counters = Arc::new(ReceiveCounters::default());
        let inlet = Inlet::new(journal.clone(), recovered.recent, true, Arc::clone(&counters));
        let shared = Shared::new(inlet.clone(), Admission::with_bytes(MIB as u64, ROOMY), MIB, KeyRing::none());
        let doors = Doors::open_with(&Setup::default().config, shared, None).await.unwrap();
        let to = doors.http().unwrap();
        assert_eq!(exchange(to, "POST", "/v1/traces", &[PROTOBUF], &body).await.status, 200);
        assert_eq!(count(&counters.http.traces.resent), round * 3, "known from before the restart");
        let mut reader = journal.reader(Lane::Traces, journal::Follower::Store, 0);
        match timeout(PATIENCE, reader.next()).await.unwrap() {
            journal::Read::Entry(entry) => assert_eq!(entry.record.body, body),
            other => panic!("{other:?}"),
        }
        assert!(reader.try_next().is_none(), "once");
        assert!(doors.close(PATIENCE).await);
        inlet.close().await;
        journal.close().await;
    }
}
