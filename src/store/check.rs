//! Looks into every row, for whoever wants to know whether the file is whole.

use std::path::Path;

use super::open::{self, CATALOG, Paths};
use super::{Beside, Config, Error, boot, rewrite};

/// Every table.
const TABLES: [&str; 7] = ["spans", "traces", "evaluations", "pieces", "shapes", "positions", "erasures"];

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// Reads every value of every table; changes nothing. A file that is not there is whole.
///
/// # Errors
/// When the file is whole but cannot be had, as when a sidecar has it open.
pub fn check(home: &Path, config: &Config) -> Result<Vec<Checked>, Error> {
    let paths = Paths::of(home);
    if !paths.database.exists() {
        return Ok(Vec::new());
    }
    let connection = open::bare(&paths, &config.within_share())?;
    let attach = format!("ATTACH {} AS {CATALOG} (READ_ONLY); USE {CATALOG};", open::quoted(&paths.database)?);
    let whole_file = |error: &Error| vec![Checked { name: "file", rows: 0, error: Some(error.to_string()) }];
    match connection.execute_batch(&attach).map_err(Error::engine) {
        Err(error) if error.is_damage() => return Ok(whole_file(&error)),
        opened => opened?,
    }
    let mut checked = Vec::new();
    for name in TABLES {
        // A hash of whole rows reads every value of them.
        let sql = format!("SELECT count(*), bit_xor(hash(t)) FROM {CATALOG}.main.{name} t");
        let read = connection.query_row(&sql, [], |row| row.get::<_, u64>(0)).map_err(Error::engine);
        checked.push(match read {
            Ok(rows) => Checked { name, rows, error: None },
            Err(error) if !error.is_damage() => return Err(error),
            Err(error) => Checked { name, rows: 0, error: Some(error.to_string()) },
        });
    }
    Ok(checked)
}

/// Reads every value of every table, as [`check`] does, for a sidecar that met damage.
///
/// # Errors
/// [`Error::Corrupt`] with the first that cannot be read; anything else says nothing about the file.
pub fn look(home: &Path, config: &Config) -> Result<(), Error> {
    let checked = check(home, config)?;
    let damaged = checked.iter().find_map(|table| table.error.as_ref().map(|why| format!("{}: {why}", table.name)));
    match damaged {
        Some(why) => Err(Error::Corrupt(why)),
        None => Ok(()),
    }
}

/// Opens the file as a start does and reads what one reads.
///
/// # Errors
/// Whatever would keep a start from it.
pub fn probe(home: &Path, config: &Config) -> Result<(), Error> {
    let connection = open::engine(home, config)?;
    boot::read(&connection)?;
    Beside::of(&connection)?;
    rewrite::asked(&connection).map(|_| ())
}
