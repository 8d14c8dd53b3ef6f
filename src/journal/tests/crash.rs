//! Random lives of a journal on a disk that forgets: whatever happens, what was acknowledged is there, once, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iris_core::model::Lane;

use super::forgetful::{Fault, ForgetfulDisk, Random};
use super::*;
use crate::deleted::Left;

const SEEDS: u64 = 1000;
const STEPS: u64 = 30;

/// What must be true of the disk.
struct Model {
    /// Body number by lane and seq.
    acknowledged: BTreeMap<(Lane, u64), u64>,
    sent: u64,
    stored: BTreeMap<Lane, u64>,
    forwarded: BTreeMap<Lane, u64>,
    /// Lanes in which the forwarder may have lost something to a full lane.
    dropped: BTreeSet<Lane>,
    highest: u64,
    /// Some bodies before this number were to go, or to be cut.
    rid: u64,
}

/// Numbers that leave this by five go.
const ERASED: u64 = 3;
/// Of these only the number stays.
const CUT: u64 = 4;

impl Model {
    fn new() -> Self {
        Self {
            acknowledged: BTreeMap::new(),
            sent: 0,
            stored: BTreeMap::new(),
            forwarded: BTreeMap::new(),
            dropped: BTreeSet::new(),
            highest: 0,
            rid: 0,
        }
    }

    fn must_be_there(&self, lane: Lane, seq: u64) -> bool {
        let past = |cursors: &BTreeMap<Lane, u64>| cursors.get(&lane).is_some_and(|cursor| *cursor >= seq);
        let store_needs = lane != Lane::Metrics && !past(&self.stored);
        store_needs || (!past(&self.forwarded) && !self.dropped.contains(&lane))
    }

    /// Compares what can be read with what was promised.
    fn check(&self, journal: &Journal) -> Result<(), String> {
        let mut numbers = BTreeSet::new();
        for lane in Lane::ALL {
            let mut found = BTreeMap::new();
            let mut last = 0;
            for entry in entries(journal, lane) {
                if entry.seq <= last {
                    return Err(format!("{lane:?}: {} after {last}", entry.seq));
                }
                last = entry.seq;
                if entry.record.kind == Kind::Erased {
                    let number = self.acknowledged.get(&(lane, entry.seq)).copied();
                    if number.is_some_and(|number| number % 5 != ERASED || number >= self.rid) {
                        return Err(format!("{lane:?}: {} was to stay", entry.seq));
                    }
                    found.extend(number.map(|number| (entry.seq, number)));
                    continue;
                }
                let number = number_of(&entry.record.body);
                if number % 5 == CUT && number < self.rid && entry.record.body.len() == 8 {
                    found.insert(entry.seq, number);
                    continue;
                }
                if entry.record.body != body(number) || entry.record != record(entry.record.body.clone()) {
                    return Err(format!("{lane:?}: {} is not as it was sent", entry.seq));
                }
                if !numbers.insert(number) {
                    return Err(format!("{lane:?}: body {number} is there twice"));
                }
                found.insert(entry.seq, number);
            }
            for ((_, seq), number) in self.acknowledged.iter().filter(|((of, _), _)| *of == lane) {
                match found.get(seq) {
                    Some(there) if there == number => {}
                    None if !self.must_be_there(lane, *seq) => {}
                    other => return Err(format!("{lane:?}: acknowledged {seq} with body {number} is {other:?}")),
                }
            }
        }
        Ok(())
    }
}

/// A body that says which it is, of a size of its own.
fn body(number: u64) -> Bytes {
    let mut random = Random(number);
    let size = match random.below(10) {
        0 => 8,
        1 => 60_000,
        2..6 => 8 + random.below(300),
        _ => 8 + random.below(9000),
    };
    let word = random.next().to_le_bytes();
    let mut body = number.to_le_bytes().to_vec();
    body.extend_from_slice(&word.repeat(usize::try_from(size / 8).unwrap()));
    body.into()
}

fn number_of(body: &[u8]) -> u64 {
    u64::from_le_bytes(body[..8].try_into().unwrap())
}

struct Life {
    disk: Arc<ForgetfulDisk>,
    config: Config,
    random: Random,
    journal: Journal,
    model: Model,
}

impl Life {
    fn new(seed: u64, sync: Sync) -> Self {
        let disk = ForgetfulDisk::new(HOME);
        let config = Config { sync, ..config(1024 * 1024) };
        let journal = open(&disk, &config, true).0;
        Self { disk, config, random: Random(seed), journal, model: Model::new() }
    }

    async fn live(mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            match self.random.below(100) {
                0..55 => self.append(false).await?,
                55..65 => self.append(true).await?,
                65..72 => {
                    let lane = self.lane();
                    self.journal.rotate(lane).await;
                }
                72..85 => self.advance(),
                85..90 => self.break_something(),
                90..92 => self.rid(),
                92..96 => {
                    self.disk.crash(&mut self.random);
                    self.reopen()?;
                }
                _ => {
                    let before = Lane::ALL.map(|lane| self.journal.forward_cursor(lane));
                    self.journal.close().await;
                    self.reopen()?;
                    let after = Lane::ALL.map(|lane| self.journal.forward_cursor(lane));
                    if before != after {
                        return Err(format!("the forwarder was at {before:?} and is at {after:?}"));
                    }
                }
            }
        }
        self.disk.crash(&mut self.random);
        self.reopen()
    }

    fn lane(&mut self) -> Lane {
        Lane::ALL[usize::try_from(self.random.below(3)).unwrap()]
    }

    /// Some requests at once, perhaps with a power cut in the middle of them.
    async fn append(&mut self, crash: bool) -> Result<(), String> {
        let mut waits = Vec::new();
        for _ in 0..=self.random.below(8) {
            let (lane, number) = (self.lane(), self.model.sent);
            self.model.sent += 1;
            let journal = self.journal.clone();
            let wait = tokio::spawn(async move { journal.append(lane, record(body(number))).await });
            waits.push((lane, number, wait));
        }
        if crash {
            for _ in 0..self.random.below(20) {
                tokio::task::yield_now().await;
            }
            self.disk.crash(&mut self.random);
        }
        let before = self.model.highest;
        for (lane, number, wait) in waits {
            match within(wait).await.unwrap() {
                Ok(seq) if seq <= before => return Err(format!("{seq} was given out before")),
                Ok(seq) => {
                    self.model.acknowledged.insert((lane, seq), number);
                    self.model.highest = self.model.highest.max(seq);
                }
                Err(AppendError::Disk(_) | AppendError::Full { .. }) => {}
                Err(other) => return Err(other.to_string()),
            }
        }
        self.note_drops();
        if crash { self.reopen() } else { Ok(()) }
    }

    /// The followers move to some acknowledged record, the store ahead of the forwarder or behind.
    fn advance(&mut self) {
        let lane = self.lane();
        let seqs: Vec<u64> =
            self.model.acknowledged.keys().filter(|(of, _)| *of == lane).map(|(_, seq)| *seq).collect();
        if seqs.is_empty() {
            return;
        }
        let seq = seqs[usize::try_from(self.random.below(seqs.len() as u64)).unwrap()];
        let which = self.random.below(3);
        if which != 0 {
            let stored = self.model.stored.entry(lane).or_default();
            *stored = seq.max(*stored);
            self.journal.stored(lane, seq);
        }
        if which != 1 {
            let forwarded = self.model.forwarded.entry(lane).or_default();
            *forwarded = seq.max(*forwarded);
            self.journal.forwarded(lane, seq);
        }
    }

    /// Some bodies go from what is closed; whether the disk fails meanwhile or not, no other does.
    fn rid(&mut self) {
        self.model.rid = self.model.sent;
        let left = |_, entry: &Entry| match number_of(&entry.record.body) % 5 {
            ERASED => Left::Nothing,
            CUT => Left::Part(entry.record.body[..8].to_vec()),
            _ => Left::All,
        };
        // It fails when the disk does.
        let _ = self.journal.rid(&left);
    }

    fn break_something(&mut self) {
        let faults = [Fault::Write, Fault::Sync, Fault::Create, Fault::SyncDir, Fault::Remove, Fault::Truncate];
        let fault = faults[usize::try_from(self.random.below(6)).unwrap()];
        let lane = self.lane();
        self.disk.fail_next(fault, &format!("journal/{}", lane.as_str()));
    }

    fn note_drops(&mut self) {
        for status in self.journal.status() {
            if status.dropped_segments > 0 {
                self.model.dropped.insert(status.lane);
            }
        }
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.note_drops();
        self.disk.fail_nothing();
        let (journal, recovered) = open(&self.disk, &self.config, true);
        self.journal = journal;
        if recovered.next_seq <= self.model.highest {
            return Err(format!("{} would be given out again", recovered.next_seq));
        }
        self.model.check(&self.journal)?;
        for lane in Lane::ALL {
            let forwarded = self.model.forwarded.get(&lane).copied().unwrap_or(0);
            if self.journal.forward_cursor(lane) > forwarded && !self.model.dropped.contains(&lane) {
                return Err(format!("{lane:?}: the forwarder is ahead of {forwarded}"));
            }
        }
        for (lane, stored) in &self.model.stored {
            self.journal.stored(*lane, *stored);
        }
        Ok(())
    }
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_out_of_order() {
    // Two threads, as each life mostly waits for its own.
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                let runtime = runtime();
                for seed in (half..SEEDS).step_by(2) {
                    if let Err(problem) = runtime.block_on(Life::new(seed, Sync::Always).live()) {
                        panic!("seed {seed}: {problem}");
                    }
                }
            });
        }
    });
}

/// The proof that the test above can fail: without syncs it does.
#[test]
fn without_syncs_the_same_lives_lose_records() {
    let runtime = runtime();
    let lost = (0..50).filter(|seed| runtime.block_on(Life::new(*seed, Sync::Off).live()).is_err()).count();
    assert!(lost >= 40, "only {lost} of 50 lives lost something");
}
