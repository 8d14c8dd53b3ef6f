//! Records that are taken out of the journal while others read it.

use std::sync::Arc;

use super::forgetful::{Fault, ForgetfulDisk, Random};
use super::*;
use crate::deleted::Left;

const CANARY: &[u8] = b"canary-2f9d7c31";

fn spoken(number: u8, secret: bool) -> Bytes {
    let text = if secret { CANARY.to_vec() } else { b"anything else".to_vec() };
    [vec![number], text, vec![number; 70 * usize::from(number)]].concat().into()
}

/// A whole record of canary goes, one that says more keeps its first byte.
fn left(_: Lane, entry: &Entry) -> Left {
    let body = &entry.record.body;
    if !body.windows(CANARY.len()).any(|part| part == CANARY) {
        return Left::All;
    }
    if body[0].is_multiple_of(2) { Left::Nothing } else { Left::Part(vec![body[0]]) }
}

fn canaries(disk: &ForgetfulDisk) -> usize {
    let holds = |path: &std::path::PathBuf| disk.content(path).windows(CANARY.len()).any(|part| part == CANARY);
    disk.files("journal").iter().filter(|path| holds(path)).count()
}

/// Three segments of six records, every third of them secret.
async fn filled(disk: &Arc<ForgetfulDisk>) -> (Journal, Vec<u64>) {
    let (journal, _) = open(disk, &Config::default(), true);
    let mut seqs = Vec::new();
    for number in 0..18u8 {
        seqs.push(journal.append(Lane::Logs, record(spoken(number, number % 3 == 0))).await.unwrap());
        if number % 6 == 5 {
            journal.rotate(Lane::Logs).await;
        }
    }
    (journal, seqs)
}

fn expected(number: u8) -> (Kind, Bytes) {
    match (number % 3, number % 2) {
        (0, 0) => (Kind::Erased, Bytes::new()),
        (0, _) => (Kind::Otlp, vec![number].into()),
        _ => (Kind::Otlp, spoken(number, false)),
    }
}

/// Scenario: followers stand at every place of every segment, one of them in the middle of a file it has open; records
/// go; then come a crash of the machine and a start.
/// Guarantees: no file has the canary; each follower gets what it had not had, by its numbers, and nothing else; nothing
/// is damaged; what is past both followers goes as before.
#[test]
fn followers_go_on_where_they_were() {
    let disk = ForgetfulDisk::new(HOME);
    runtime().block_on(async {
        let (journal, seqs) = filled(&disk).await;
        assert_eq!(canaries(&disk), 3, "the control finds it");
        let mut readers: Vec<Reader> =
            [Follower::Store, Follower::Forward].map(|who| journal.reader(Lane::Logs, who, 0)).into();
        for (at, reader) in readers.iter_mut().enumerate() {
            for _ in 0..=at {
                assert!(matches!(reader.try_next(), Some(Read::Entry(_))));
            }
        }
        let before = status(&journal, Lane::Logs).bytes;
        let rid = journal.rid(&left).unwrap();
        assert_eq!((rid.segments, rid.records), (3, 6));
        assert_eq!(journal.rid(&left).unwrap(), Rid::default(), "once is enough");
        assert_eq!(canaries(&disk), 0);
        assert!(status(&journal, Lane::Logs).bytes < before);
        for after in 0..=seqs.len() {
            readers.push(journal.reader(Lane::Logs, Follower::Forward, after.checked_sub(1).map_or(0, |at| seqs[at])));
        }
        let starts = [1, 2].into_iter().chain(0..=seqs.len());
        for (mut reader, start) in readers.into_iter().zip(starts) {
            for (number, seq) in (0u8..).zip(&seqs).skip(start) {
                let Read::Entry(entry) = within(reader.next()).await else { panic!("{number}") };
                assert_eq!((entry.seq, (entry.record.kind, entry.record.body)), (*seq, expected(number)));
            }
            assert_eq!(reader.try_next(), None);
        }
        let last = journal.append(Lane::Logs, record("after")).await.unwrap();
        disk.crash(&mut Random(7));
        let (journal, recovered) = open(&disk, &Config::default(), true);
        assert_eq!((recovered.records, recovered.damaged), (19, 0));
        assert_eq!(entries(&journal, Lane::Logs).len(), 19);
        assert_eq!(entries(&journal, Lane::Logs).last().unwrap().seq, last);
        journal.stored(Lane::Logs, last);
        journal.forwarded(Lane::Logs, last);
        journal.close().await;
        assert!(status(&journal, Lane::Logs).segments <= 1);
    });
}

/// Scenario: the disk fails once, in each way, while records are taken out; then the machine crashes.
/// Guarantees: it is said, nothing but what was to go is gone, no half copy stays, and the next try ends it.
#[test]
fn a_disk_that_fails_costs_nothing() {
    runtime().block_on(async {
        for fault in [Fault::Write, Fault::Sync, Fault::Create, Fault::SyncDir, Fault::Truncate] {
            let disk = ForgetfulDisk::new(HOME);
            let (journal, seqs) = filled(&disk).await;
            disk.fail_next(fault, "journal/logs");
            assert!(journal.rid(&left).is_err(), "{fault:?}");
            disk.crash(&mut Random(11));
            let (journal, recovered) = open(&disk, &Config::default(), true);
            assert_eq!((recovered.records, recovered.damaged), (18, 0), "{fault:?}");
            assert!(disk.files("seg.new").is_empty());
            journal.rid(&left).unwrap();
            assert_eq!(canaries(&disk), 0);
            let found = entries(&journal, Lane::Logs);
            for ((number, seq), entry) in (0u8..).zip(&seqs).zip(found) {
                assert_eq!((entry.seq, (entry.record.kind, entry.record.body)), (*seq, expected(number)));
            }
        }
    });
}
