//! One SELECT that a caller wrote, answered from views of its tenant's rows.
//!
//! The engine's own parser makes a tree of the text without running anything; [`checked`] walks the tree and lets
//! through only what stands in its lists; the engine makes text of the tree again, and that text, never the caller's, is
//! run: inside a READ ONLY transaction, on a connection that nothing else uses, whose own database is empty, behind views
//! that show one tenant. What comes back is bounded in rows, columns, characters and time.

mod checked;
mod views;

use duckdb::types::ValueRef;
use iris_core::model::Tenant;
use serde_json::{Number, Value};

use super::Error;
use super::reader::Reader;

pub use checked::FUNCTIONS;
pub use views::{VIEWS, View};

/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The most columns of a result.
const COLUMNS_MAX: usize = 64;

/// Characters of one value: the result's share of what all may be, between these.
const CELL_CHARS: std::ops::RangeInclusive<usize> = 64..=4000;

/// What a result gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The columns' names and types.
    pub columns: Vec<(String, String)>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows.
    pub more: bool,
    /// Values that were cut.
    pub cut: usize,
}

/// Runs what a caller wrote. `chars_max` bounds the text of all values together.
pub(super) fn run(
    reader: &Reader<'_>,
    tenant: &Tenant,
    text: &str,
    rows_max: usize,
    chars_max: usize,
) -> Result<Found, Error> {
    let query = understood(reader, text)?;
    let views = views::with(tenant);
    let columns = columns(reader, &format!("{views} SELECT * FROM ({query}) AS asked"))?;
    if columns.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(refused(format!("{} columns; at most {COLUMNS_MAX}", columns.len())));
    }
    let cell = (chars_max / (rows_max.max(1) * columns.len())).clamp(*CELL_CHARS.start(), *CELL_CHARS.end());
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let shown: Vec<String> = names.iter().zip(&columns).map(|(name, (_, kind))| shown(name, kind, cell)).collect();
    let sql = format!(
        "{views} SELECT {} FROM ({query}) AS asked({}) LIMIT {}",
        shown.join(", "),
        names.join(", "),
        rows_max + 1
    );
    let mut found = Found { columns, ..Found::default() };
    let width = found.columns.len();
    let mut rows: Vec<Vec<Value>> =
        reader.rows(&sql, &[], |row| (0..width).map(|at| value(row, at)).collect()).map_err(unrun)?;
    found.more = rows.len() > rows_max;
    rows.truncate(rows_max);
    for text in rows.iter_mut().flatten() {
        if let Value::String(text) = text
            && let Some((end, _)) = text.char_indices().nth(cell)
        {
            text.truncate(end);
            found.cut += 1;
        }
    }
    found.rows = rows;
    Ok(found)
}

/// The views with their columns, as the engine has them.
pub(super) fn tables(reader: &Reader<'_>, tenant: &Tenant) -> Result<Vec<Vec<(String, String)>>, Error> {
    let views = views::with(tenant);
    VIEWS.iter().map(|view| columns(reader, &format!("{views} SELECT * FROM {}", view.name))).collect()
}

/// What the engine's parser understood of the text, as text again, once it is found to be harmless.
fn understood(reader: &Reader<'_>, text: &str) -> Result<String, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(refused(format!("{} bytes; at most {TEXT_BYTES_MAX}", text.len())));
    }
    let text = text.trim().trim_end_matches(';');
    if text.contains('\0') {
        return Err(refused("a null character".to_owned()));
    }
    let first = |sql: &str, text: &str| -> Result<String, Error> {
        let found = reader.first(sql, &[&text], |row| row.get::<_, String>(0).map_err(Error::engine));
        found.map_err(unread)?.ok_or_else(|| refused("it cannot be read".to_owned()))
    };
    let tree = first("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", text)?;
    let parsed: Value = serde_json::from_str(&tree).map_err(|_| refused("it is nested too deep".to_owned()))?;
    checked::check(&parsed).map_err(refused)?;
    let query = first("SELECT json_deserialize_sql(CAST(? AS JSON))", &tree)?;
    if query.contains(';') {
        return Err(refused("a semicolon, which is not taken even inside quotes".to_owned()));
    }
    Ok(query)
}

/// Names and types of a query's columns; nothing is run for it.
fn columns(reader: &Reader<'_>, query: &str) -> Result<Vec<(String, String)>, Error> {
    let sql = format!("SELECT column_name, column_type FROM (DESCRIBE {query})");
    let read = |row: &duckdb::Row<'_>| Ok((row.get(0).map_err(Error::engine)?, row.get(1).map_err(Error::engine)?));
    reader.rows(&sql, &[], read).map_err(|error| match error {
        // What cannot be bound is told in the caller's own words and in the names of the views.
        Error::Engine(why) => refused(why),
        other => unread(other),
    })
}

/// A column as the result carries it: numbers as they are, everything else as text.
fn shown(name: &str, kind: &str, cell: usize) -> String {
    match kind {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "UTINYINT" | "USMALLINT" | "UINTEGER"
        | "UBIGINT" | "DOUBLE" => name.to_owned(),
        "FLOAT" | "HUGEINT" | "UHUGEINT" => format!("CAST({name} AS DOUBLE)"),
        decimal if decimal.starts_with("DECIMAL") => format!("CAST({name} AS DOUBLE)"),
        _ => format!("left(CAST({name} AS VARCHAR), {})", cell + 1),
    }
}

fn value(row: &duckdb::Row<'_>, at: usize) -> Result<Value, Error> {
    Ok(match row.get_ref(at).map_err(Error::engine)? {
        ValueRef::Boolean(is) => Value::Bool(is),
        ValueRef::TinyInt(number) => number.into(),
        ValueRef::SmallInt(number) => number.into(),
        ValueRef::Int(number) => number.into(),
        ValueRef::BigInt(number) => number.into(),
        ValueRef::UTinyInt(number) => number.into(),
        ValueRef::USmallInt(number) => number.into(),
        ValueRef::UInt(number) => number.into(),
        ValueRef::UBigInt(number) => number.into(),
        ValueRef::Float(number) => Number::from_f64(number.into()).map_or(Value::Null, Value::Number),
        ValueRef::Double(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        _ => Value::Null,
    })
}

/// For fuzzers: what passes the guard is one SELECT whose own tree passes it again, and nothing else is run.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(data: &[u8]) {
    thread_local! {
        static ENGINE: duckdb::Connection = duckdb::Connection::open_in_memory().expect("an engine");
    }
    let asked = String::from_utf8_lossy(data);
    ENGINE.with(|engine| {
        let reads = |reader: &Reader<'_>| {
            let Ok(query) = understood(reader, &asked) else { return };
            let again = understood(reader, &query).expect("what is run passes as what was asked did");
            // A list of values becomes a table of its own each time that it is written.
            let plain = |text: &str| text.replace("SELECT * FROM (", "").replace(") AS valueslist", "");
            assert_eq!(plain(&again), plain(&query), "what is run is what was understood");
            let word = query.trim_start_matches(['(', ' ']).split_whitespace().next().unwrap_or_default();
            assert!(["SELECT", "FROM", "WITH", "VALUES"].contains(&word), "{query}");
        };
        super::reader::fuzzed(engine, reads);
    });
}

fn refused(why: String) -> Error {
    Error::Statement(why)
}

/// The parser or the binder gave up.
fn unread(error: Error) -> Error {
    match error {
        Error::Engine(_) => refused("the engine cannot read it".to_owned()),
        Error::Refused(why) => refused(why.to_owned()),
        other => other,
    }
}

/// It was run and failed. What the engine says then may hold a value that somebody stored, so it is not told.
fn unrun(error: Error) -> Error {
    match error {
        Error::Engine(why) => {
            let kind = why.split(':').next().filter(|kind| kind.ends_with("Error") && kind.len() < 40);
            refused(format!("it failed on a row ({}); TRY_CAST gives null instead", kind.unwrap_or("Error")))
        }
        Error::Refused(why) => refused(why.to_owned()),
        other => other,
    }
}
