//! Group commit, independence of the lanes, failing disks, the two followers, a full journal.

use super::forgetful::{Fault, ForgetfulDisk};
use super::*;

fn filled(byte: u8, bytes: usize) -> Bytes {
    Bytes::from(vec![byte; bytes])
}

/// Appends until there are so many segments in the lane; gives the seqs.
async fn fill_segments(journal: &Journal, lane: Lane, segments: usize) -> Vec<u64> {
    let mut seqs = Vec::new();
    while status(journal, lane).segments < segments {
        seqs.push(journal.append(lane, record(filled(7, 3000))).await.unwrap());
    }
    seqs
}

#[test]
fn requests_that_come_during_a_sync_share_the_next_one() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), false);
        disk.hold_syncs(Some("journal/traces"));
        let mut waits = Vec::new();
        for number in 0..101u8 {
            let journal = journal.clone();
            waits.push(tokio::spawn(async move { journal.append(Lane::Traces, record(filled(number, 2000))).await }));
            if number == 0 {
                eventually("the first is at its sync", || disk.held_syncs() == 1).await;
            }
        }
        eventually("all wait", || journal.inner.lanes[0].commands.capacity() == QUEUE_RECORDS_MAX - 100).await;
        assert!(read_all(&journal, Lane::Traces, Follower::Store, 0).is_empty(), "unsynced records are not shown");
        assert!(waits.iter().all(|wait| !wait.is_finished()));
        let before = disk.syncs("journal/traces");
        let writes = disk.writes("journal/traces");
        disk.hold_syncs(None);
        for wait in waits {
            within(wait).await.unwrap().unwrap();
        }
        assert_eq!(disk.syncs("journal/traces") - before, 2, "one for the first, one for the hundred");
        assert_eq!(disk.writes("journal/traces") - writes, 1);
        assert_eq!(status(&journal, Lane::Traces).syncs, 2);
        assert_eq!(entries(&journal, Lane::Traces).len(), 101);
    });
}

#[test]
fn a_slow_sync_in_one_lane_does_not_hold_up_another() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), false);
        disk.hold_syncs(Some("journal/traces"));
        let slow = tokio::spawn({
            let journal = journal.clone();
            async move { journal.append(Lane::Traces, record("slow")).await }
        });
        eventually("the trace is at its sync", || disk.held_syncs() == 1).await;
        within(journal.append(Lane::Logs, record("quick"))).await.unwrap();
        within(journal.append(Lane::Metrics, record("quick"))).await.unwrap();
        assert!(!slow.is_finished());
        disk.hold_syncs(None);
        within(slow).await.unwrap().unwrap();
    });
}

#[test]
fn after_a_failed_write_or_sync_nobody_is_acknowledged_and_a_new_segment_starts() {
    for fault in [Fault::Write, Fault::Sync] {
        runtime().block_on(async {
            let disk = ForgetfulDisk::new(HOME);
            let (journal, _) = open(&disk, &Config::default(), false);
            let first = journal.append(Lane::Traces, record("first")).await.unwrap();
            disk.fail_next(fault, "journal/traces");
            let refused = journal.append(Lane::Traces, record("refused")).await;
            assert!(matches!(refused, Err(AppendError::Disk(_))), "{refused:?}");
            let third = journal.append(Lane::Traces, record("third")).await.unwrap();
            assert!(third > first);
            assert_eq!(status(&journal, Lane::Traces).segments, 2);
            assert_eq!(bodies(&journal, Lane::Traces), ["first", "third"]);
            journal.close().await;
            let (journal, recovered) = open(&disk, &Config::default(), false);
            assert_eq!(bodies(&journal, Lane::Traces), ["first", "third"], "what was refused does not come back");
            assert_eq!(recovered.damaged, 0);
        });
    }
}

#[test]
fn no_space_is_refused_and_recovers_by_itself() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), false);
        disk.leave_room(Some(1000));
        for _ in 0..3 {
            let refused = journal.append(Lane::Traces, record("refused")).await;
            let Err(AppendError::Disk(error)) = refused else { panic!("{refused:?}") };
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(disk.files("journal/traces/"), Vec::<std::path::PathBuf>::new());
        disk.leave_room(None);
        journal.append(Lane::Traces, record("taken")).await.unwrap();
        assert_eq!(bodies(&journal, Lane::Traces), ["taken"]);
    });
}

#[test]
fn a_segment_goes_only_when_both_followers_are_past_it() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), true);
        let seqs = fill_segments(&journal, Lane::Traces, 3).await;
        let last = *seqs.last().unwrap();
        let three = disk.files("journal/traces/").len();
        journal.stored(Lane::Traces, last);
        journal.forwarded(Lane::Traces, seqs[0]);
        // The lane's own housekeeping, at once and in this thread: nothing is released.
        assert!(!journal.inner.lanes[0].shared.reclaim());
        assert_eq!(disk.files("journal/traces/").len(), three);
        journal.forwarded(Lane::Traces, last);
        eventually("the sealed ones go", || disk.files("journal/traces/").len() == 1).await;
        let bytes = status(&journal, Lane::Traces).bytes;
        assert_eq!(bytes, journal.inner.lanes[0].shared.segment_bytes);
        within(journal.rotate(Lane::Traces)).await;
        eventually("and so does the last, once it is sealed", || disk.files("journal/traces/").is_empty()).await;
        assert!(journal.append(Lane::Traces, record("next")).await.unwrap() > last);
    });
}

#[test]
fn without_a_forwarder_only_the_store_holds_segments() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), false);
        let seqs = fill_segments(&journal, Lane::Logs, 3).await;
        journal.stored(Lane::Logs, *seqs.last().unwrap());
        eventually("the sealed ones go", || disk.files("journal/logs/").len() == 1).await;
        let seqs = fill_segments(&journal, Lane::Metrics, 2).await;
        assert!(!seqs.is_empty(), "metrics are followed by nobody");
    });
}

#[test]
fn full_with_the_store_behind_is_refused_until_it_has_caught_up() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), true);
        let mut last = 0;
        let refused = loop {
            match journal.append(Lane::Traces, record(filled(1, 20_000))).await {
                Ok(seq) => last = seq,
                Err(error) => break error,
            }
        };
        let AppendError::Full { retry_after } = refused else { panic!("{refused:?}") };
        assert!(retry_after > Duration::ZERO);
        let full = status(&journal, Lane::Traces);
        assert!(full.bytes <= full.bytes_max && full.bytes > full.bytes_max / 10 * 9, "{full:?}");
        assert_eq!((full.refused_full, full.dropped_segments), (1, 0));
        assert!(full.refusing_ms.is_some() && status(&journal, Lane::Logs).refusing_ms.is_none(), "{full:?}");
        journal.append(Lane::Logs, record("another lane has room")).await.unwrap();
        journal.stored(Lane::Traces, last);
        journal.append(Lane::Traces, record(filled(1, 20_000))).await.expect("only the forwarder is behind now");
        let taken = status(&journal, Lane::Traces);
        assert!(taken.dropped_segments > 0 && taken.refusing_ms.is_none(), "{taken:?}");
    });
}

#[test]
fn full_with_only_the_forwarder_behind_drops_the_oldest_for_it_and_tells() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), true);
        let mut reader = journal.reader(Lane::Metrics, Follower::Forward, 0);
        let mut seqs = Vec::new();
        for number in 0..200u8 {
            seqs.push(journal.append(Lane::Metrics, record(filled(number, 3000))).await.unwrap());
        }
        let now = status(&journal, Lane::Metrics);
        assert!(now.bytes <= now.bytes_max, "{now:?}");
        let Read::Gap { first, last } = within(reader.next()).await else { panic!("a gap comes first") };
        assert_eq!((first, last), (1, journal.forward_cursor(Lane::Metrics)));
        let left: Vec<u64> = seqs.iter().copied().filter(|seq| *seq > last).collect();
        for seq in &left {
            let Read::Entry(entry) = within(reader.next()).await else { panic!("the rest is there") };
            assert_eq!(entry.seq, *seq);
        }
        assert_eq!(reader.try_next(), None);
        assert_eq!(now.dropped_records as usize + left.len(), 200);
        assert!(now.dropped_segments > 0);
    });
}

#[test]
fn records_already_forwarded_are_not_counted_as_dropped() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), true);
        let seqs = fill_segments(&journal, Lane::Metrics, 2).await;
        journal.forwarded(Lane::Metrics, seqs[1]);
        while status(&journal, Lane::Metrics).dropped_segments == 0 {
            journal.append(Lane::Metrics, record(filled(7, 3000))).await.unwrap();
        }
        assert_eq!(status(&journal, Lane::Metrics).dropped_records, seqs.len() as u64 - 1 - 2);
    });
}

#[test]
fn a_record_longer_than_a_segment_gets_one_of_its_own_and_one_longer_than_the_lane_is_refused() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(1024 * 1024), false);
        for body in [filled(1, 10), filled(2, 400_000), filled(3, 10)] {
            within(journal.append(Lane::Traces, record(body))).await.unwrap();
        }
        let sizes: Vec<usize> = bodies(&journal, Lane::Traces).iter().map(Bytes::len).collect();
        assert_eq!(sizes, [10, 400_000, 10]);
        let refused = journal.append(Lane::Traces, record(filled(1, 1024 * 1024))).await;
        assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    });
}

#[test]
fn a_reader_waits_may_be_given_up_and_ends_with_the_journal() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &config(4 * 1024 * 1024), false);
        let mut reader = journal.reader(Lane::Traces, Follower::Store, 0);
        assert!(tokio::time::timeout(Duration::ZERO, reader.next()).await.is_err());
        let writer = tokio::spawn({
            let journal = journal.clone();
            async move {
                let mut seqs = Vec::new();
                for number in 0..200 {
                    let size = if number % 10 == 0 { 100_000 } else { 500 };
                    seqs.push(journal.append(Lane::Traces, record(filled(number, size))).await);
                }
                journal.close().await;
                seqs.into_iter().flatten().collect::<Vec<u64>>()
            }
        });
        let mut seen = Vec::new();
        loop {
            // Given up again and again, in the middle of a disk read too.
            match tokio::time::timeout(Duration::from_micros(50), reader.next()).await {
                Err(_) => tokio::task::yield_now().await,
                Ok(Read::Entry(entry)) => seen.push(entry.seq),
                Ok(Read::Closed) => break,
                Ok(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, within(writer).await.unwrap());
        assert!(matches!(journal.append(Lane::Traces, record("late")).await, Err(AppendError::Closed)));
        journal.close().await;
    });
}

#[test]
fn what_is_offered_without_waiting_is_journalled_too() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), false);
        assert!(journal.offer(Lane::Logs, record("verdict")));
        journal.close().await;
        assert_eq!(bodies(&journal, Lane::Logs), ["verdict"]);
        assert!(!journal.offer(Lane::Logs, record("late")));
    });
}

#[test]
fn with_sync_interval_syncs_come_by_themselves_and_a_failed_one_ends_the_segment() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let config = Config { sync: Sync::Interval, sync_interval_ms: 1, ..Config::default() };
        let (journal, _) = open(&disk, &config, false);
        journal.append(Lane::Traces, record("one")).await.unwrap();
        eventually("it is synced", || disk.syncs("journal/traces") > 0).await;
        disk.fail_next(Fault::Sync, "journal/traces");
        journal.append(Lane::Traces, record("two")).await.unwrap();
        eventually("a sync fails", || status(&journal, Lane::Traces).failures > 0).await;
        // The next write notices; its sender is told to try again.
        let refused = journal.append(Lane::Traces, record("three")).await;
        assert!(matches!(refused, Err(AppendError::Disk(_))), "{refused:?}");
        journal.append(Lane::Traces, record("four")).await.unwrap();
        assert_eq!(status(&journal, Lane::Traces).segments, 2);
    });
}

#[test]
fn hashes_of_accepted_messages_come_back_and_depend_on_tenant_signal_and_home() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, _) = open(&disk, &Config::default(), false);
        let mut hashes = Vec::new();
        for lane in [Lane::Logs, Lane::Traces, Lane::Logs] {
            let record = record(format!("{} {}", lane.as_str(), hashes.len()));
            hashes.push(journal.hash(&record.tenant, lane, &record.body));
            journal.append(lane, record).await.unwrap();
        }
        let tool = Record { kind: Kind::ToolTrace, ..record("never deduplicated") };
        journal.append(Lane::Traces, tool).await.unwrap();
        journal.close().await;
        let (journal, recovered) = open(&disk, &Config::default(), false);
        assert_eq!(recovered.recent, hashes);
        let (tenant, other) = (Tenant::new("a"), Tenant::new("b"));
        let hash = journal.hash(&tenant, Lane::Traces, b"x");
        assert_eq!(hash, journal.hash(&tenant, Lane::Traces, b"x"));
        assert_ne!(hash, journal.hash(&other, Lane::Traces, b"x"));
        assert_ne!(hash, journal.hash(&tenant, Lane::Logs, b"x"));
        let elsewhere = open(&ForgetfulDisk::new(HOME), &Config::default(), false).0;
        assert_ne!(hash, elsewhere.hash(&tenant, Lane::Traces, b"x"));
    });
}

#[test]
fn a_seq_the_store_knows_is_never_given_out_again() {
    runtime().block_on(async {
        let disk = ForgetfulDisk::new(HOME);
        let (journal, recovered) = open(&disk, &Config::default(), false);
        let first = journal.append(Lane::Traces, record("a")).await.unwrap();
        assert!(first >= recovered.next_seq);
        assert!(journal.append(Lane::Logs, record("b")).await.unwrap() > first, "one counter for all lanes");
        drop(journal);
        // The whole journal is gone; a fresh one still stays above it, as the clock has moved on or not.
        let (_, fresh) = open(&ForgetfulDisk::new(HOME), &Config::default(), false);
        assert!(fresh.next_seq >= recovered.next_seq);
    });
}
