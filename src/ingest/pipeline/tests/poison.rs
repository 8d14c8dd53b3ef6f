//! Records and traces that panic, or that earlier processes died of.

use super::super::super::worker::{InWork, Suspect, Work};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_panics_is_set_aside_and_the_next_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    let bad = running.send(&[made(1, 1, "agent"), made(1, 2, "panic")]).await;
    let unreadable = running.send_body(Lane::Traces, Kind::Otlp, Bytes::from_static(b"\xff\xff\xff")).await;
    running.send(&[made(2, 1, "agent")]).await;
    running.trace(2, 1).await;
    let status = running.pipeline.status();
    assert_eq!((status.poisoned, status.panics), (2, 1));
    let named = |what: &SetAside, of: u64| matches!(what, SetAside::Record { seq, .. } if *seq == of);
    assert!(named(&status.set_aside[0], bad) && named(&status.set_aside[1], unreadable));
    assert!(running.store.trace(&Tenant::local(), trace_id(1)).await.unwrap().is_none());
    running.store.flush().await.unwrap();
    assert!(running.store.status().stored_through.traces > unreadable, "it holds nothing back");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_whose_judging_panics_is_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent").says("PANIC")]).await;
    running.until("set aside", |status| status.poisoned == 1).await;
    let seq = running.send(&[made(2, 1, "agent")]).await;
    running.trace(2, 1).await;
    let status = running.pipeline.status();
    assert_eq!(
        status.set_aside[0],
        SetAside::Trace { trace_id: trace_id(1).to_string(), why: "judging it panicked".to_owned() }
    );
    assert_eq!(status.settled_through.traces, seq);
    assert_eq!(
        running.store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items.len(),
        1,
        "its spans are kept"
    );
    running.stop().await;
}

/// Stops a pipeline with one record journalled and not read, and says that the process died of it so often.
async fn died_of_the_last_record(home: &Path, attempts: u8) -> u64 {
    let (journal, _) = Journal::open(home, &journal::Config::default(), false, Arc::new(RealDisk)).unwrap();
    let record = Record {
        kind: Kind::Otlp,
        tenant: Tenant::local(),
        door: Door::Grpc,
        encoding: Encoding::Protobuf,
        arrived: now(),
        body: request(&[made(1, 1, "agent")]),
    };
    let seq = journal.append(Lane::Traces, record).await.unwrap();
    journal.close().await;
    let (in_work, _) = InWork::open(home).unwrap();
    in_work.keep(&[Suspect { work: Work::Record { lane: Lane::Traces, seq }, attempts }]).unwrap();
    seq
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_the_process_died_of_thrice_is_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let seq = died_of_the_last_record(home.path(), 3).await;
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(2, 1, "agent")]).await;
    running.trace(2, 1).await;
    let status = running.pipeline.status();
    assert_eq!(status.poisoned, 1);
    assert!(matches!(&status.set_aside[0], SetAside::Record { seq: found, .. } if *found == seq));
    assert!(running.store.spans(&Tenant::local(), trace_id(1), Bounds::WHOLE).await.unwrap().items.is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_record_that_survives_being_tried_alone_is_no_suspect() {
    let home = tempfile::tempdir().unwrap();
    died_of_the_last_record(home.path(), 2).await;
    let running = start(home.path(), mind(), &QUICK).await;
    assert!(InWork::open(home.path()).unwrap().1.is_empty());
    running.trace(1, 1).await;
    assert_eq!(running.pipeline.status().poisoned, 0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_the_process_died_of_are_judged_alone_or_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let (in_work, _) = InWork::open(home.path()).unwrap();
    let suspect = |trace, attempts| Suspect { work: Work::Trace { hash: suspects::hash(&key(trace)) }, attempts };
    in_work.keep(&[suspect(1, 3), suspect(2, 1)]).unwrap();
    let running = start(home.path(), mind(), &QUICK).await;
    running.send(&[made(1, 1, "agent"), made(2, 1, "agent"), made(3, 1, "agent")]).await;
    running.trace(2, 1).await;
    running.trace(3, 1).await;
    running.until("set aside", |status| status.poisoned == 1).await;
    assert!(running.store.trace(&Tenant::local(), trace_id(1)).await.unwrap().is_none());
    assert_eq!(InWork::open(home.path()).unwrap().1, [suspect(1, 3)], "one survived, one stays aside");
    running.stop().await;
}
