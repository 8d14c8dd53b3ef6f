//! The same on the machine's own file system.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn records_survive_a_restart_in_files_of_the_owner_only() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().join("home");
    runtime().block_on(async {
        let (journal, _) = Journal::open(&home, &Config::default(), true, Arc::new(RealDisk)).unwrap();
        let sizes = [0, 1, 4096, 4097, 300_000, 9_000_000, 5];
        for size in sizes {
            journal.append(Lane::Traces, record(vec![b'a'; size])).await.unwrap();
        }
        let lane = home.join("journal/traces");
        let mut files: Vec<_> = std::fs::read_dir(&lane).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), 3);
        assert_eq!(std::fs::metadata(&files[2]).unwrap().len(), SEGMENT_BYTES, "the open one is reserved");
        for path in files.iter().chain([&home.join("journal/seed")]) {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        for path in [&home, &home.join("journal"), &lane] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        journal.forwarded(Lane::Traces, 1);
        journal.close().await;
        assert!(std::fs::metadata(&files[2]).unwrap().len() < 1000, "the reservation is given back");
        let (journal, recovered) = Journal::open(&home, &Config::default(), true, Arc::new(RealDisk)).unwrap();
        assert_eq!((recovered.records, recovered.damaged), (7, 0));
        assert_eq!(bodies(&journal, Lane::Traces).iter().map(Bytes::len).collect::<Vec<_>>(), sizes);
        assert_eq!(journal.forward_cursor(Lane::Traces), 1);
    });
}

/// Scenario: somebody removes the folder of a lane while it is written.
/// Guarantees: nothing is acknowledged that goes into a file which nobody can find again; the next is taken and found.
#[test]
fn what_goes_into_a_removed_file_is_not_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (journal, _) = Journal::open(home.path(), &Config::default(), false, Arc::new(RealDisk)).unwrap();
        journal.append(Lane::Traces, record("before")).await.unwrap();
        std::fs::remove_dir_all(home.path().join("journal/traces")).unwrap();
        let error = journal.append(Lane::Traces, record("into nothing")).await.unwrap_err();
        assert!(matches!(error, AppendError::Disk(_)), "{error}");
        let seq = journal.append(Lane::Traces, record("after")).await.unwrap();
        let there = std::fs::read_dir(home.path().join("journal/traces")).unwrap().count();
        assert_eq!(there, 1);
        journal.close().await;
        let (journal, _) = Journal::open(home.path(), &Config::default(), false, Arc::new(RealDisk)).unwrap();
        let found = entries(&journal, Lane::Traces);
        assert_eq!(
            found.iter().map(|entry| (entry.seq, &entry.record.body[..])).collect::<Vec<_>>(),
            [(seq, &b"after"[..])]
        );
    });
}

#[test]
fn many_small_records_in_one_group_are_one_write_each_in_place() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (journal, _) = Journal::open(home.path(), &Config::default(), false, Arc::new(RealDisk)).unwrap();
        let waits: Vec<_> = (0..600usize)
            .map(|number| {
                let journal = journal.clone();
                let body = vec![(number % 251) as u8; if number % 3 == 0 { 5000 + number } else { number }];
                tokio::spawn(async move { (journal.append(Lane::Logs, record(body.clone())).await.unwrap(), body) })
            })
            .collect();
        let mut sent = Vec::new();
        for wait in waits {
            sent.push(within(wait).await.unwrap());
        }
        sent.sort();
        let found: Vec<_> =
            entries(&journal, Lane::Logs).into_iter().map(|entry| (entry.seq, entry.record.body.to_vec())).collect();
        assert_eq!(found, sent);
    });
}

#[test]
fn a_segment_that_is_a_symlink_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let lane = home.path().join("journal/traces");
    std::fs::create_dir_all(&lane).unwrap();
    std::fs::write(home.path().join("elsewhere"), "x").unwrap();
    symlink(home.path().join("elsewhere"), lane.join("0000000000000001.seg")).unwrap();
    let opened = Journal::open(home.path(), &Config::default(), false, Arc::new(RealDisk));
    assert!(matches!(opened, Err(Error::Disk(_))));
}

#[test]
fn a_journal_too_small_to_work_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let opened = Journal::open(home.path(), &config(1000), false, Arc::new(RealDisk));
    let Err(error) = opened else { panic!("it is refused") };
    assert_eq!(error.to_string(), "journal.bytes_max is 1000 bytes, at least 1048576 are needed");
}
