//! The threads that decode and judge: a fixed number, one bounded queue, panics caught.
//!
//! Never waits for anything but work: results go back through one-place channels that cannot be full. What each
//! thread has in hand stands in a small file ([`InWork`]), so that a start after an unclean end knows what the
//! process died of.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use iris_core::model::Lane;
use tokio::sync::{mpsc, oneshot};

/// Jobs that wait for a thread before their senders wait.
const QUEUE_MAX: usize = 64;
/// Bytes of one slot in the file.
const SLOT_BYTES: usize = 24;
/// Slots of the file: the first half for threads, the second for what earlier processes left.
const SLOTS_MAX: usize = 64;
const THREADS_MAX: usize = SLOTS_MAX / 2;
/// A piece of work during which the process ended so often while it was alone is set aside.
pub(super) const ATTEMPTS_MAX: u8 = 3;

/// What a thread works on, as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// Decoding this record.
    Record { lane: Lane, seq: u64 },
    /// Judging the trace with this hash.
    Trace { hash: u64 },
}

/// Work that was in hand when the process ended, and how often it was tried alone since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspect {
    pub work: Work,
    pub attempts: u8,
}

impl Suspect {
    fn bytes(self) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        let (kind, lane, number) = match self.work {
            Work::Record { lane, seq } => (1, lane as u8, seq),
            Work::Trace { hash } => (2, 0, hash),
        };
        slot[0] = kind;
        slot[1] = lane;
        slot[2] = self.attempts;
        slot[8..16].copy_from_slice(&number.to_le_bytes());
        slot[16..24].copy_from_slice(&check(kind, lane, self.attempts, number).to_le_bytes());
        slot
    }

    fn read(slot: &[u8]) -> Option<Self> {
        let number = u64::from_le_bytes(slot.get(8..16)?.try_into().ok()?);
        let sum = u64::from_le_bytes(slot.get(16..24)?.try_into().ok()?);
        let (kind, lane, attempts) = (*slot.first()?, *slot.get(1)?, *slot.get(2)?);
        if sum != check(kind, lane, attempts, number) {
            return None;
        }
        let work = match kind {
            1 => Work::Record { lane: *Lane::ALL.get(usize::from(lane))?, seq: number },
            2 => Work::Trace { hash: number },
            _ => return None,
        };
        Some(Self { work, attempts })
    }
}

/// A slot written in half is no slot.
fn check(kind: u8, lane: u8, attempts: u8, number: u64) -> u64 {
    let mut bytes = [0; 11];
    bytes[..3].copy_from_slice(&[kind, lane, attempts]);
    bytes[3..].copy_from_slice(&number.to_le_bytes());
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

/// `home/in-work`: one slot a thread. Written without a sync: it has to outlive the process, not the machine.
#[derive(Debug)]
pub(super) struct InWork {
    file: File,
}

impl InWork {
    /// Opens or makes the file, and reads what was in hand when the last process ended.
    pub(super) fn open(home: &Path) -> io::Result<(Self, Vec<Suspect>)> {
        let path = home.join("in-work");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = vec![0; SLOT_BYTES * SLOTS_MAX];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        let mut suspects: Vec<Suspect> = Vec::new();
        for suspect in bytes.chunks_exact(SLOT_BYTES).filter_map(Suspect::read) {
            match suspects.iter_mut().find(|known| known.work == suspect.work) {
                Some(known) => known.attempts = known.attempts.max(suspect.attempts),
                None => suspects.push(suspect),
            }
        }
        Ok((Self { file }, suspects))
    }

    /// Replaces what earlier processes left by these suspects.
    pub(super) fn keep(&self, suspects: &[Suspect]) -> io::Result<()> {
        let mut bytes = vec![0; SLOT_BYTES * (SLOTS_MAX - THREADS_MAX)];
        for (slot, suspect) in bytes.chunks_exact_mut(SLOT_BYTES).zip(suspects) {
            slot.copy_from_slice(&suspect.bytes());
        }
        self.file.write_all_at(&bytes, (SLOT_BYTES * THREADS_MAX) as u64)
    }

    /// Clears the slots of threads: nothing is in hand.
    pub(super) fn clear(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; SLOT_BYTES * THREADS_MAX], 0)
    }

    fn set(&self, slot: usize, suspect: Option<Suspect>) {
        let bytes = suspect.map_or([0; SLOT_BYTES], Suspect::bytes);
        // Without the file a repeated crash is not recognised; that is no reason to stop.
        let _ = self.file.write_all_at(&bytes, (slot * SLOT_BYTES) as u64);
    }
}

/// A job ended by a panic, which was caught; what it worked on is to be set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Panicked;

/// The answer of a job that may have panicked. An error of the receiver: the threads have ended.
pub(super) type Answer<T> = oneshot::Receiver<Result<T, Panicked>>;

/// How a job is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    /// What it works on; absent for questions, which are not suspects.
    pub work: Option<Work>,
    /// How often it was tried alone before; such a job runs while no other does.
    pub alone: Option<u8>,
}

impl Task {
    /// A question: not a suspect, beside the others.
    pub(super) const QUESTION: Self = Self { work: None, alone: None };
}

type Job = Box<dyn FnOnce(usize) + Send>;

/// The threads. Clones share them; they end when the last clone goes.
#[derive(Clone)]
pub(super) struct Pool {
    jobs: mpsc::Sender<Job>,
    gate: Arc<RwLock<()>>,
    in_work: Arc<InWork>,
    panics: Arc<AtomicU64>,
}

impl Pool {
    /// Starts so many threads, at least one.
    pub(super) fn start(threads: usize, in_work: Arc<InWork>) -> io::Result<(Self, Vec<JoinHandle<()>>)> {
        let (jobs, queue) = mpsc::channel::<Job>(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..threads.clamp(1, THREADS_MAX))
            .map(|slot| {
                let queue = Arc::clone(&queue);
                std::thread::Builder::new().name(format!("iris-worker-{slot}")).spawn(move || {
                    loop {
                        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                        let Some(job) = job else { break };
                        job(slot);
                    }
                })
            })
            .collect::<io::Result<_>>()?;
        Ok((Self { jobs, gate: Arc::default(), in_work, panics: Arc::default() }, threads))
    }

    /// Queues a job, waiting for a place. The answer comes when it was done.
    pub(super) async fn submit<T: Send + 'static>(
        &self,
        task: Task,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T> {
        let (answer, receiver) = oneshot::channel();
        let (gate, in_work, panics) = (Arc::clone(&self.gate), Arc::clone(&self.in_work), Arc::clone(&self.panics));
        let job: Job = Box::new(move |slot| {
            let result = match task.alone {
                Some(attempts) => {
                    let _alone = gate.write().unwrap_or_else(PoisonError::into_inner);
                    run(&in_work, slot, task.work, attempts.saturating_add(1), work)
                }
                None => {
                    let _beside = gate.read().unwrap_or_else(PoisonError::into_inner);
                    run(&in_work, slot, task.work, 0, work)
                }
            };
            if result.is_err() {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            // Nobody waits any more: the pipeline is being stopped.
            let _ = answer.send(result);
        });
        // An error drops the job and with it the answer's sender.
        let _ = self.jobs.send(job).await;
        receiver
    }

    /// Panics caught since the start.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}

fn run<T>(
    in_work: &InWork,
    slot: usize,
    on: Option<Work>,
    attempts: u8,
    work: impl FnOnce() -> T,
) -> Result<T, Panicked> {
    if let Some(work) = on {
        in_work.set(slot, Some(Suspect { work, attempts }));
    }
    // What the job owned is gone with it; what it shares is only read.
    let result = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked);
    if on.is_some() {
        in_work.set(slot, None);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_and_the_thread_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let (in_work, suspects) = InWork::open(home.path()).unwrap();
        assert!(suspects.is_empty());
        let (pool, threads) = Pool::start(1, Arc::new(in_work)).unwrap();
        let bad = pool.submit(Task::QUESTION, || panic!("wanted by the test")).await;
        assert_eq!(bad.await.unwrap(), Err::<(), _>(Panicked));
        assert_eq!(pool.submit(Task::QUESTION, || 7).await.await.unwrap(), Ok(7));
        assert_eq!(pool.panics(), 1);
        drop(pool);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[tokio::test]
    async fn what_is_in_hand_stands_in_the_file_and_is_gone_when_done() {
        let home = tempfile::tempdir().unwrap();
        let (in_work, _) = InWork::open(home.path()).unwrap();
        let (pool, _threads) = Pool::start(1, Arc::new(in_work)).unwrap();
        let work = Work::Record { lane: Lane::Logs, seq: 77 };
        let path = home.path().to_owned();
        let look = move || InWork::open(&path).unwrap().1;
        let during = pool.submit(Task { work: Some(work), alone: None }, look.clone()).await.await.unwrap().unwrap();
        assert_eq!(during, [Suspect { work, attempts: 0 }]);
        let alone = pool.submit(Task { work: Some(work), alone: Some(1) }, look.clone()).await.await.unwrap().unwrap();
        assert_eq!(alone, [Suspect { work, attempts: 2 }]);
        assert!(look().is_empty());
    }

    #[test]
    fn kept_suspects_come_back_and_a_half_written_slot_does_not() {
        let home = tempfile::tempdir().unwrap();
        let (in_work, _) = InWork::open(home.path()).unwrap();
        let kept = [
            Suspect { work: Work::Trace { hash: 9 }, attempts: 3 },
            Suspect { work: Work::Record { lane: Lane::Traces, seq: 5 }, attempts: 1 },
        ];
        in_work.keep(&kept).unwrap();
        let (again, found) = InWork::open(home.path()).unwrap();
        assert_eq!(found, kept);
        again.set(0, Some(Suspect { attempts: 2, ..kept[1] }));
        let found = InWork::open(home.path()).unwrap().1;
        assert_eq!(found, [Suspect { attempts: 2, ..kept[1] }, kept[0]], "the same work, tried once more");
        again.clear().unwrap();
        again.file.write_all_at(&[1, 0, 0], (THREADS_MAX * SLOT_BYTES) as u64).unwrap();
        assert_eq!(InWork::open(home.path()).unwrap().1, kept[1..]);
    }

    #[tokio::test]
    async fn a_job_that_must_be_alone_waits_for_the_others() {
        let home = tempfile::tempdir().unwrap();
        let (in_work, _) = InWork::open(home.path()).unwrap();
        let (pool, _threads) = Pool::start(2, Arc::new(in_work)).unwrap();
        let busy = Arc::new(AtomicU64::new(0));
        let count = |alone| {
            let busy = Arc::clone(&busy);
            let work = move || {
                let beside = busy.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
                let after = busy.fetch_sub(1, Ordering::SeqCst);
                (beside, after)
            };
            pool.submit(Task { work: None, alone }, work)
        };
        for _ in 0..200 {
            let (other, alone) = (count(None).await, count(Some(0)).await);
            assert_eq!(alone.await.unwrap().unwrap(), (0, 1));
            other.await.unwrap().unwrap();
        }
    }
}
