//! The tables and how they came to be. A migration is never edited once released; a new one is added.

use duckdb::{Connection, params};

use super::Error;

/// Each brings the schema from its index to the next version.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_verdicts.sql"),
    include_str!("migrations/0003_words.sql"),
];

/// The schema version this binary writes.
#[expect(clippy::cast_possible_truncation, reason = "a handful of migrations")]
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings the file to [`VERSION`]; each migration is one transaction with its line in `schema_version`.
///
/// # Errors
/// [`Error::Newer`] when a newer binary has written the file; engine errors otherwise.
pub(super) fn migrate(connection: &Connection, migrations: &[&str]) -> Result<(), Error> {
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS schema_version (version UINTEGER NOT NULL, writer VARCHAR NOT NULL, \
             applied_at TIMESTAMP NOT NULL)",
        )
        .map_err(Error::engine)?;
    let (found, writer): (u32, Option<String>) = connection
        .query_row("SELECT coalesce(max(version), 0), arg_max(writer, version) FROM schema_version", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(Error::engine)?;
    if found > VERSION {
        return Err(Error::Newer { found, known: VERSION, writer: writer.unwrap_or_default() });
    }
    for (version, migration) in (1u32..).zip(migrations).skip(found as usize) {
        apply(connection, version, migration).map_err(|error| {
            // The transaction is over either way: a failed one is rolled back when the connection closes.
            let _ = connection.execute_batch("ROLLBACK");
            Error::engine(error)
        })?;
    }
    Ok(())
}

fn apply(connection: &Connection, version: u32, migration: &str) -> duckdb::Result<()> {
    connection.execute_batch("BEGIN TRANSACTION")?;
    connection.execute_batch(migration)?;
    connection.execute(
        "INSERT INTO schema_version VALUES (?, ?, now()::TIMESTAMP)",
        params![version, env!("CARGO_PKG_VERSION")],
    )?;
    connection.execute_batch("COMMIT")
}

/// Makes a file whose first migration is another text, to give its tables constraints that rows can break.
#[cfg(test)]
pub(super) fn migrate_with(home: &std::path::Path, migration: &str) {
    let connection =
        super::open::engine_with(home, &super::Config::default(), &[migration]).expect("a sound migration");
    drop(connection);
}
