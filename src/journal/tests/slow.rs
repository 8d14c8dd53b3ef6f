//! On a disk that takes its time.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::*;

const SYNC: Duration = Duration::from_millis(120);

/// The machine's own file system, with slow syncs.
struct SlowDisk(Arc<AtomicU64>);

struct SlowFile(Arc<dyn DiskFile>, Arc<AtomicU64>);

impl Disk for SlowDisk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.make_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile(RealDisk.create(path, bytes)?, Arc::clone(&self.0))))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile(RealDisk.open(path)?, Arc::clone(&self.0))))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::thread::sleep(SYNC);
        RealDisk.sync_dir(dir)
    }
}

impl DiskFile for SlowFile {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.0.write_at(offset, parts)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(SYNC);
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.sync()
    }
}

/// Scenario: every sync takes 120 ms; four hundred senders come at once, in three lanes.
/// Guarantees: nobody is acknowledged sooner than a sync takes; they share syncs, so that nobody waits for as many as there
/// are senders; everything is there, once and in order.
#[test]
fn senders_share_the_syncs_of_a_slow_disk() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let syncs = Arc::new(AtomicU64::new(0));
        let disk = Arc::new(SlowDisk(Arc::clone(&syncs)));
        let (journal, _) = Journal::open(home.path(), &Config::default(), true, disk).unwrap();
        let before = syncs.load(Ordering::SeqCst);
        let begun = Instant::now();
        let senders: Vec<_> = (0..400_u32)
            .map(|number| {
                let journal = journal.clone();
                tokio::spawn(async move {
                    let lane = Lane::ALL[number as usize % 3];
                    journal.append(lane, record(number.to_le_bytes().to_vec())).await.unwrap();
                    begun.elapsed()
                })
            })
            .collect();
        for sender in senders {
            let took = within(sender).await.unwrap();
            assert!(took >= SYNC, "acknowledged after {took:?}");
        }
        let shared = syncs.load(Ordering::SeqCst) - before;
        assert!((3..=40).contains(&shared), "{shared} syncs for 400 senders");
        let mut all: Vec<u32> = Lane::ALL
            .iter()
            .flat_map(|lane| bodies(&journal, *lane))
            .map(|body| u32::from_le_bytes(body.as_ref().try_into().unwrap()))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
        journal.close().await;
    });
}
