//! The settings of the store.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Erase, Error, Retention, Through};

/// Settings of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rows of a transaction: a full row group of 4096, or several, is written past the write-ahead log.
    pub group_rows: usize,
    /// Longest wait of a row for its transaction to fill, in milliseconds.
    pub group_ms: u64,
    /// Bytes of waiting rows that make a transaction without being enough rows for one.
    pub group_bytes: usize,
    /// Keep spans of traces in which no agent, model or tool was seen.
    pub keep_other_traces: bool,
    /// Most memory the database engine may use, in bytes.
    pub memory_bytes: u64,
    /// Most disk the engine may use for what does not fit its memory, in bytes.
    pub temp_bytes: u64,
    /// Size of the write-ahead log at which it is merged into the database file, in bytes.
    pub checkpoint_wal_bytes: u64,
    /// Quiet time after which it is merged at any size, in milliseconds.
    pub checkpoint_idle_ms: u64,
    /// Connections that answer questions at the same time.
    pub readers: usize,
    /// Time after which a question is stopped, in milliseconds.
    pub read_deadline_ms: u64,
    /// How long things are kept: the section `retention` of the whole configuration.
    #[serde(skip)]
    pub retention: Retention,
    /// How soon deleted bytes go: the section `erase`.
    #[serde(skip)]
    pub erase: Erase,
    /// This program, to do in another process what may end one.
    #[serde(skip)]
    pub program: Option<PathBuf>,
    /// The journal has everything after these: from there it is read again when the file was damaged.
    #[serde(skip)]
    pub journal_from: Through,
}

const MIB: u64 = 1024 * 1024;

impl Default for Config {
    fn default() -> Self {
        Self {
            group_rows: super::open::ROW_GROUP_ROWS,
            group_ms: 1000,
            group_bytes: 8 * 1024 * 1024,
            keep_other_traces: false,
            memory_bytes: 64 * MIB,
            temp_bytes: 1024 * MIB,
            checkpoint_wal_bytes: 64 * MIB,
            checkpoint_idle_ms: 60_000,
            readers: 2,
            read_deadline_ms: 5000,
            retention: Retention::default(),
            erase: Erase::default(),
            program: None,
            journal_from: Through::default(),
        }
    }
}

impl Config {
    /// What could not work, a line a problem.
    pub fn problems(&self) -> Vec<String> {
        self.check().err().iter().map(ToString::to_string).collect()
    }

    /// Refuses what could not work.
    pub(super) fn check(&self) -> Result<(), Error> {
        const MEMORY_MIN: u64 = 32 * MIB;
        let refuse = |text: String| Err(Error::Setting(text));
        if self.group_rows == 0 || self.group_bytes == 0 {
            return refuse("store.group_rows and store.group_bytes must be at least 1".to_owned());
        }
        if self.memory_bytes < MEMORY_MIN {
            return refuse(format!("store.memory_bytes is {}; at least {MEMORY_MIN} is valid", self.memory_bytes));
        }
        if !(1..=16).contains(&self.readers) {
            return refuse(format!("store.readers is {}; 1 to 16 is valid", self.readers));
        }
        if self.erase.within_minutes > Erase::MINUTES_MAX {
            let (minutes, max) = (self.erase.within_minutes, Erase::MINUTES_MAX);
            return refuse(format!("erase.within_minutes is {minutes}; 0 to {max} is valid"));
        }
        if self.retention.bytes_max < Retention::BYTES_MIN {
            let (bytes, min) = (self.retention.bytes_max, Retention::BYTES_MIN);
            return refuse(format!("retention.bytes_max is {bytes}; at least {min} is valid"));
        }
        Ok(())
    }
}
