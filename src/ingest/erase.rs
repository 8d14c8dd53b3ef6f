//! Takes what was deleted out of the journal, whatever the store and the collector are doing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use iris_core::model::{Lane, Timestamp};
use iris_core::otlp;
use tokio_util::sync::CancellationToken;

use crate::deleted::{Deletions, Left};
use crate::journal::{Encoding, Entry, Journal, Kind, Record};
use crate::store::{Standing, ToolWrite};

/// A message that was walked before a deletion is in the journal by then, or was refused: what was deleted lately is
/// looked for once more after this time.
const UNDER_WAY: Duration = Duration::from_secs(5);
/// After a failure it is tried again after this time.
const AGAIN: Duration = Duration::from_secs(30);

/// Keeps the journal rid of what is deleted, each time half of `within` after it was asked for.
#[derive(Clone)]
pub struct Eraser {
    home: PathBuf,
    journal: Journal,
    deleted: Deletions,
    within: Duration,
    now: fn() -> Timestamp,
}

impl Eraser {
    /// One for this home.
    pub fn new(home: &Path, journal: Journal, deleted: Deletions, within: Duration, now: fn() -> Timestamp) -> Self {
        Self { home: home.to_owned(), journal, deleted, within, now }
    }

    /// By when the journal has nothing of what was asked for then.
    pub fn due(asked: Timestamp, within: Duration) -> Timestamp {
        asked.after(within.max(2 * UNDER_WAY))
    }

    /// Runs until it is told to end.
    pub async fn run(self, ending: CancellationToken) {
        let mut asked = self.deleted.watch();
        let mut next = None;
        loop {
            let due = self.deleted.in_journal().map(|(oldest, _)| oldest.after(self.within / 2));
            let wait = due.map(|due| due.max(next.unwrap_or_default()).since((self.now)()));
            let look = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ending.cancelled() => return,
                () = look => {
                    let wait = if self.once().await { UNDER_WAY } else { AGAIN };
                    next = Some((self.now)().after(wait));
                }
                // This holds the other end.
                _ = asked.changed() => {}
            }
        }
    }

    /// Searches the journal; false when it has to be done again.
    pub async fn once(&self) -> bool {
        for lane in [Lane::Traces, Lane::Logs] {
            self.journal.rotate(lane).await;
        }
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.search()).await.unwrap_or(false)
    }

    fn search(&self) -> bool {
        let started = (self.now)();
        if self.deleted.in_journal().is_none() {
            return true;
        }
        let found = self.journal.rid(&|lane, entry| self.left(lane, entry));
        let done = found.and_then(|rid| remove_set_aside(&self.home).map(|files| (rid, files)));
        let (rid, files) = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::warn!(%error, "what was deleted could not be taken out of the journal; tried again later");
                return false;
            }
        };
        if rid.records > 0 || files > 0 {
            let ms = (self.now)().since(started).as_millis();
            tracing::info!(
                records = rid.records,
                segments = rid.segments,
                set_aside = files,
                ms,
                "what was deleted was taken out of the journal"
            );
        }
        let settled = started.as_unix_nanos().saturating_sub(u64::try_from(UNDER_WAY.as_nanos()).unwrap_or(u64::MAX));
        let settled = Timestamp::from_unix_nanos(settled);
        if let Err(error) = self.deleted.rid_journal(settled) {
            tracing::warn!(%error, "it could not be written down that the journal was searched");
            return false;
        }
        true
    }

    fn left(&self, lane: Lane, entry: &Entry) -> Left {
        let record = &entry.record;
        match record.kind {
            Kind::Otlp => self.left_of_message(lane, record),
            Kind::Verdict => self.left_of_message(Lane::Logs, record),
            Kind::ToolTrace | Kind::ToolEvaluation => self.left_of_tool(&record.body),
            Kind::Tombstone | Kind::Erased => Left::All,
        }
    }

    fn left_of_message(&self, lane: Lane, record: &Record) -> Left {
        let encoding = match record.encoding {
            Encoding::Protobuf => otlp::Encoding::Protobuf,
            Encoding::Json => otlp::Encoding::Json,
        };
        self.deleted.left_of(&record.tenant, lane, encoding, &record.body)
    }

    /// One that cannot be read stays: it is set aside wherever it is read.
    fn left_of_tool(&self, body: &Bytes) -> Left {
        let Ok(write) = serde_json::from_slice::<Box<ToolWrite>>(body) else { return Left::All };
        match write.standing(&self.deleted, (self.now)()) {
            Standing::All(_) => Left::All,
            Standing::Nothing => Left::Nothing,
            Standing::Part(write) => serde_json::to_vec(&write).map_or(Left::Nothing, Left::Part),
        }
    }
}

/// Damaged files of the store that were set aside may hold anything that was ever stored.
fn remove_set_aside(home: &Path) -> std::io::Result<usize> {
    let folder = home.join("duckdb").join("set-aside");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for entry in entries {
        std::fs::remove_file(entry?.path())?;
        removed += 1;
    }
    Ok(removed)
}
