//! Finds the traces in which words stand.
//!
//! First by what their rows say of their words, which reads one column. That is the answer for a word, and for a part
//! of one. For anything else, such as words in a row, and for rows that say nothing of their words, it leaves candidates, whose
//! texts are read. What is found is the same as by reading every text.

use duckdb::types::Value;

use super::Error;
use super::query::Filter;
use super::reader::Reader;
use super::words::{self, Sought};

/// Most candidates whose texts are read row by row; of more, all texts are read.
const CANDIDATES_MAX: usize = 2048;
/// Rows of one statement: of a longer list the engine would read all that lies between.
const ROWS_AT_A_TIME: usize = 50;

/// The columns of a trace that are searched, and which of them pieces are.
const SHOWN: &str = "('input', 'output', 'tool_calls', 'metadata')";

/// Leaves only traces in which each of the words stands, whatever the case and accents of either.
pub(super) fn narrow(reader: &Reader<'_>, filter: &mut Filter, sought: &[String]) -> Result<(), Error> {
    if sought.is_empty() {
        return Ok(());
    }
    let before = filter.clone();
    let mut in_texts = Vec::new();
    for text in sought {
        match words::sought(text) {
            Some(Sought { parts, is_whole }) => {
                for part in &parts {
                    in_row(filter, part);
                }
                if !is_whole {
                    in_texts.push(text.as_str());
                }
            }
            None => in_texts.push(text.as_str()),
        }
    }
    let all: Vec<&str> = sought.iter().map(String::as_str).collect();
    if in_texts.is_empty() {
        return unsaid(reader, &before, filter, &all);
    }
    match candidates(reader, filter, "")? {
        Some(found) => {
            let found = reading(reader, &found, &all)?;
            filter.sql.push_str(&format!(" AND {}", listed("t.rowid", &found)));
        }
        None => {
            let (sql, bound) = texts(&in_texts);
            filter.sql.push_str(&format!(" AND {sql}"));
            filter.bound.extend(bound);
            unsaid(reader, &before, filter, &all)?;
        }
    }
    Ok(())
}

/// Only rows that have the word, or say nothing of their words.
fn in_row(filter: &mut Filter, part: &str) {
    filter.and("(contains(t.words, ?) OR t.words IS NULL)", Value::Text(part.to_owned()));
}

/// Of the rows that say nothing of their words only those in whose texts all stands. They are looked for as the filter was
/// before, for which the words of the others need not be read.
fn unsaid(reader: &Reader<'_>, before: &Filter, filter: &mut Filter, sought: &[&str]) -> Result<(), Error> {
    let found = match candidates(reader, before, " AND t.words IS NULL")? {
        Some(found) => listed("t.rowid", &reading(reader, &found, sought)?),
        None => {
            let (sql, bound) = texts(sought);
            filter.bound.extend(bound);
            // The engine passes over the texts of rows that are not meant.
            format!("t.rowid IN (SELECT t.rowid FROM traces t WHERE t.words IS NULL AND {sql})")
        }
    };
    filter.sql.push_str(&format!(" AND (t.words IS NOT NULL OR {found})"));
    Ok(())
}

/// The same as a list of rows, so that what was read is not read again, unless they are many.
pub(super) fn few(reader: &Reader<'_>, filter: Filter) -> Result<Filter, Error> {
    Ok(match candidates(reader, &filter, "")? {
        Some(found) => Filter {
            with: String::new(),
            sql: format!("FROM traces t WHERE {}", listed("t.rowid", &found)),
            bound: Vec::new(),
        },
        None => filter,
    })
}

/// The rows that the filter leaves, unless they are too many.
fn candidates(reader: &Reader<'_>, filter: &Filter, and: &str) -> Result<Option<Vec<i64>>, Error> {
    let limit = CANDIDATES_MAX + 1;
    let sql = format!("{} SELECT t.rowid {}{and} LIMIT {limit}", filter.with, filter.sql);
    let found: Vec<i64> = reader.rows(&sql, &filter.params(), |row| row.get(0).map_err(Error::engine))?;
    Ok((found.len() < limit).then_some(found))
}

/// Those of the rows in whose texts all stands.
fn reading(reader: &Reader<'_>, rows: &[i64], sought: &[&str]) -> Result<Vec<i64>, Error> {
    let (sql, bound) = texts(sought);
    let mut found = Vec::new();
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    for some in rows.chunks(ROWS_AT_A_TIME) {
        let sql = format!("SELECT t.rowid FROM traces t WHERE {} AND {sql}", listed("t.rowid", some));
        let bound: Vec<&dyn duckdb::ToSql> = bound.iter().map(|value| value as &dyn duckdb::ToSql).collect();
        found.extend(reader.rows(&sql, &bound, |row| row.get::<_, i64>(0).map_err(Error::engine))?);
    }
    Ok(found)
}

fn listed(column: &str, rows: &[i64]) -> String {
    if rows.is_empty() {
        return "false".to_owned();
    }
    let list = rows.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    format!("{column} IN (SELECT unnest([{list}]))")
}

/// That each stands in a text of a trace: in its row or in its long values, within a piece or across two.
fn texts(sought: &[&str]) -> (String, Vec<Value>) {
    let each: Vec<String> = sought.iter().map(|text| in_text(text)).collect();
    let bound = sought.iter().flat_map(|text| std::iter::repeat_n(Value::Text((*text).to_owned()), 3));
    (each.join(" AND "), bound.collect())
}

fn in_text(word: &str) -> String {
    let found = |texts: &str| format!("contains(strip_accents(lower({texts})), strip_accents(lower(?)))");
    // Case and accents may change how many characters a word has, hardly to the double.
    let reach = word.chars().count() * 2 + 8;
    let within = format!("SELECT owner FROM pieces WHERE field IN {SHOWN} AND {}", found("text"));
    let across = format!(
        "SELECT p.owner FROM (SELECT owner, field, ordinal, right(text, {reach}) AS ending FROM pieces WHERE field IN {SHOWN}) p \
         JOIN (SELECT owner, field, ordinal, left(text, {reach}) AS beginning FROM pieces WHERE field IN {SHOWN}) q \
         ON q.owner = p.owner AND q.field = p.field AND q.ordinal = p.ordinal + 1 WHERE {}",
        found("concat(p.ending, q.beginning)")
    );
    format!(
        "({} OR t.long_id IN ({within}) OR t.long_id IN ({across}))",
        found("concat_ws(' ', t.input, t.output, t.tool_calls, t.metadata)")
    )
}
