//! Reads what can be read of a damaged file into a new one, a row group at a time.
//!
//! The engine may end the whole process over a damaged page. So this runs in a process of its own where that is
//! possible, and writes down where it is: the next one goes on behind the place at which the last one died.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use duckdb::Connection;
use iris_core::model::Timestamp;
use serde::{Deserialize, Serialize};

use super::group::{Positions, append_positions};
use super::mend::mend;
use super::open::{self, CATALOG, Paths, ROW_GROUP_ROWS};
use super::spans::timestamp;
use super::{Config, Error, rewrite, schema};

/// The damaged file's name while both are open.
const OLD: &str = "old";
/// A table with more rows than this is read no further: its count is damaged.
const ROWS_MAX: u64 = 1 << 32;
/// Each table, and the column that says when its rows came.
const TABLES: [(&str, Option<&str>); 7] = [
    ("shapes", None),
    ("erasures", None),
    ("positions", None),
    ("pieces", None),
    ("evaluations", Some("created_at")),
    ("traces", Some("stored_at")),
    ("spans", Some("received")),
];

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Salvaged {
    /// Rows that are in the new file.
    pub rows: u64,
    /// Rows that could not be read; 0 with `whole` false: not even how many is known.
    pub lost_rows: u64,
    /// Every table could be looked into.
    pub whole: bool,
    /// What was lost came after this time; absent: it may be from the beginning.
    pub lost_from: Option<Timestamp>,
    /// What was lost came before this time; absent: it may be up to the end.
    pub lost_until: Option<Timestamp>,
}

/// What the row of a trace and that of its evaluation say of each other: one may be lost, so it is not copied, and every verdict
/// is asked of the evaluations.
const OF_OTHERS: &str = "regexp_matches(c, '^(verdict_(at|score|state|rules)|with_trace)$')";

impl Salvaged {
    /// Nothing could be read.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    fn lose(&mut self, rows: u64, from: Option<Timestamp>, until: Option<Timestamp>) {
        let is_first = self.lost_rows == 0;
        self.lost_rows += rows;
        self.lost_from = if is_first { from } else { self.lost_from.zip(from).map(|(known, from)| known.min(from)) };
        self.lost_until =
            if is_first { until } else { self.lost_until.zip(until).map(|(known, until)| known.max(until)) };
    }
}

/// One line of the account: a piece that is being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    table: String,
    first: u64,
}

/// Copies what can be read of the database of a home into `iris.duckdb.new`. The log must be out of the way.
///
/// # Errors
/// When the new file cannot be written, or nothing of the old one be opened.
pub fn salvage(home: &Path, config: &Config) -> Result<Salvaged, Error> {
    let paths = Paths::of(home);
    let account = account(&paths);
    let died_at = std::fs::read_to_string(&account).unwrap_or_default();
    let died_at: Vec<Piece> = died_at.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    rewrite::remove_leftover(&paths)?;
    let mut copy = Copy {
        both: open_both(&paths, config)?,
        paths: &paths,
        config,
        died_at,
        account: OpenOptions::new().append(true).create(true).open(&account)?,
        salvaged: Salvaged { whole: true, ..Salvaged::default() },
        lost_in: Vec::new(),
    };
    for (table, came) in TABLES {
        let before = (copy.salvaged.lost_rows, copy.salvaged.whole);
        copy.salvaged.whole = true;
        copy.table(table, came)?;
        if copy.salvaged.lost_rows > before.0 || !copy.salvaged.whole {
            copy.lost_in.push(table);
        }
        copy.salvaged.whole &= before.1;
    }
    if !copy.lost_in.is_empty() {
        mend(&copy.both, config.journal_from, &copy.lost_in)?;
    }
    // The journal is read again from where it begins: what is stored of it is known by its position.
    copy.both.execute_batch(&format!("DELETE FROM {CATALOG}.main.positions")).map_err(Error::engine)?;
    let from = Positions { stored: config.journal_from, settled: config.journal_from };
    append_positions(&copy.both, from)?;
    let finish = format!("CHECKPOINT {CATALOG}; USE memory; DETACH {CATALOG}; DETACH {OLD};");
    copy.both.execute_batch(&finish).map_err(Error::engine)?;
    File::open(&paths.rewritten)?.sync_all()?;
    Ok(copy.salvaged)
}

/// Where it is written down what is being read.
pub(super) fn account(paths: &Paths) -> PathBuf {
    paths.rewritten.with_extension("account")
}

fn open_both(paths: &Paths, config: &Config) -> Result<Connection, Error> {
    let connection = open::bare(paths, config)?;
    let (old, new) = (open::quoted(&paths.database)?, open::attach(&paths.rewritten)?);
    connection.execute_batch(&format!("ATTACH {old} AS {OLD} (READ_ONLY); {new}")).map_err(Error::engine)?;
    schema::migrate(&connection, schema::MIGRATIONS)?;
    Ok(connection)
}

struct Copy<'a> {
    both: Connection,
    paths: &'a Paths,
    config: &'a Config,
    /// Pieces over which a process died before.
    died_at: Vec<Piece>,
    account: File,
    salvaged: Salvaged,
    /// Tables of which something could not be read.
    lost_in: Vec<&'static str>,
}

impl Copy<'_> {
    fn table(&mut self, table: &str, came: Option<&str>) -> Result<(), Error> {
        let count = self.both.query_row(&format!("SELECT count(*) FROM {OLD}.main.{table}"), [], |row| row.get(0));
        let rows: u64 = match count {
            Ok(rows) if rows <= ROWS_MAX => rows,
            Ok(_) | Err(_) => {
                self.salvaged.whole = false;
                return self.open_again_if_needed();
            }
        };
        // Deleted rows keep their numbers: there may be more numbers than rows.
        let sql = format!("SELECT coalesce(max(rowid), 0)::UBIGINT + 1 FROM {OLD}.main.{table}");
        let end: u64 = self.both.query_row(&sql, [], |row| row.get(0)).unwrap_or(rows).min(ROWS_MAX).max(rows);
        let (mut lost, mut before) = (0, None);
        let mut first = 0;
        while first < end {
            let next = (first + ROW_GROUP_ROWS as u64).min(end);
            match self.piece(table, came, first, next)? {
                Some(came) => {
                    if lost > 0 {
                        self.salvaged.lose(lost, before, came.map(|(earliest, _)| earliest));
                        lost = 0;
                    }
                    before = came.map(|(_, latest)| latest).or(before);
                }
                None => lost += next - first,
            }
            first = next;
        }
        if lost > 0 {
            self.salvaged.lose(lost, before, None);
        }
        Ok(())
    }

    /// Copies a piece; says when its rows came. `None`: it cannot be read.
    fn piece(
        &mut self,
        table: &str,
        came: Option<&str>,
        first: u64,
        next: u64,
    ) -> Result<Option<Option<(Timestamp, Timestamp)>>, Error> {
        let piece = Piece { table: table.to_owned(), first };
        if self.died_at.iter().filter(|died| **died == piece).count() > 0 {
            return Ok(None);
        }
        self.note(&piece)?;
        let rows = format!("FROM {OLD}.main.{table} WHERE rowid >= {first} AND rowid < {next}");
        // By name: a file that was never brought up to date has fewer columns.
        let insert = format!("INSERT INTO {CATALOG}.main.{table} BY NAME SELECT COLUMNS(c -> NOT {OF_OTHERS}) {rows}");
        let copied = self.both.execute(&insert, []);
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                let error = Error::engine(error);
                if matches!(error, Error::NoSpace(_) | Error::NoPermission(_)) {
                    return Err(error);
                }
                tracing::warn!(table, first, %error, "rows of the damaged database cannot be read");
                self.open_again_if_needed()?;
                self.forget()?;
                return Ok(None);
            }
        };
        self.forget()?;
        self.salvaged.rows += copied as u64;
        let Some(column) = came else { return Ok(Some(None)) };
        let sql = format!("SELECT epoch_us(min({column})), epoch_us(max({column})) {rows}");
        let times =
            self.both.query_row(&sql, [], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)));
        let times = times.ok().and_then(|(earliest, latest)| earliest.zip(latest));
        Ok(Some(times.map(|(earliest, latest)| (timestamp(earliest, 0), timestamp(latest, 0)))))
    }

    fn note(&mut self, piece: &Piece) -> Result<(), Error> {
        let mut line = serde_json::to_vec(piece).map_err(|error| Error::Io(error.to_string()))?;
        line.push(b'\n');
        Ok(self.account.write_all(&line)?)
    }

    /// The piece was survived: only those over which a process died stay in the account.
    fn forget(&mut self) -> Result<(), Error> {
        self.account.set_len(0)?;
        for piece in self.died_at.clone() {
            self.note(&piece)?;
        }
        Ok(())
    }

    /// Some errors end the engine: then both files are opened again.
    fn open_again_if_needed(&mut self) -> Result<(), Error> {
        if self.both.execute_batch(&format!("SELECT 1; SELECT count(*) FROM {CATALOG}.main.positions")).is_ok() {
            return Ok(());
        }
        self.both = Connection::open_in_memory().map_err(Error::engine)?;
        self.both = open_both(self.paths, self.config)?;
        Ok(())
    }
}
