//! Finds the traces in which words stand.
//!
//! First by what their rows say of their words, which reads one column. That is the answer for a word, and for a part
//! of one. For anything else, such as words in a row, and for rows that say nothing of their words, it leaves candidates, whose
//! texts are read, the newest first, for as long as there is time. What is found is the same as by reading every text, and what
//! was not read is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use duckdb::types::Value;
use iris_core::model::Timestamp;

use super::Error;
use super::query::Filter;
use super::reader::Reader;
use super::spans::timestamp;
use super::words::{self, Sought};

/// Most rows that are named one by one.
const LISTED_MAX: usize = 2048;
/// Most rows that say nothing of their words whose texts are read.
const SILENT_MAX: usize = if cfg!(test) { 48 } else { 16_384 };
/// About so many rows are looked through at first, and at most so many times of them, while it is quick.
const WINDOW_ROWS: u64 = if cfg!(test) { 16 } else { 8192 };
const WIDTH_MAX: usize = 16;
/// Most times that are asked for as bounds of windows, and most windows.
const BOUNDS_MAX: u64 = 1024;
const WINDOWS_MAX: usize = if cfg!(test) { 3 } else { 1024 };
/// A window that takes less is followed by one of double the size, and one that takes longer by one of half.
const WINDOW_TIME: Duration = Duration::from_millis(250);
/// Rows this near each other are unpacked together.
const STRETCH_ROWS: i64 = 2048;
/// Most stretches, and most rows, that are read before a look at the clock.
const STRETCHES_MAX: usize = 4;
const BITE_ROWS: usize = 512;

/// The columns of a trace that are searched, and which of them pieces are.
const SHOWN: &str = "('input', 'output', 'tool_calls', 'metadata')";

/// What a search could not look at in the time of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// Traces that were not looked at: at least so many.
    pub traces: u64,
    /// They began at this time or earlier; whole milliseconds, as times are told.
    pub until: Timestamp,
}

impl Unread {
    /// Up to a time in microseconds.
    fn new(traces: u64, until: i64) -> Self {
        Self { traces, until: timestamp(until.saturating_add(999).div_euclid(1000) * 1000, 0) }
    }
}

/// A trace whose texts tell whether it is meant.
struct Candidate {
    place: i64,
    /// When it began, in microseconds.
    at: i64,
    /// Under which number its long values stand.
    long: Option<u64>,
}

/// Leaves only traces in which each of the words stands, whatever the case and accents of either; what it could not look at.
pub(super) fn narrow(reader: &Reader<'_>, filter: &mut Filter, sought: &[String]) -> Result<Option<Unread>, Error> {
    let before = filter.clone();
    let mut in_rows = true;
    for text in sought {
        let words = words::sought(text);
        in_rows &= words.as_ref().is_some_and(|words| words.is_whole);
        for part in words.iter().flat_map(|Sought { parts, .. }| parts) {
            filter.and("(contains(t.words, ?) OR t.words IS NULL)", Value::Text(part.clone()));
        }
    }
    if in_rows {
        // Looked for as the filter was before, for which the words of the others need not be read.
        let silent =
            candidates(reader, &before, &format!(" AND t.words IS NULL {NEWEST_FIRST} LIMIT {}", SILENT_MAX + 1))?;
        let (found, unread) = reading(reader, &silent, SILENT_MAX, sought)?;
        filter.sql.push_str(&format!(" AND (t.words IS NOT NULL OR {})", listed("t.rowid", &found)));
        return Ok(unread);
    }
    let (found, until) = by_windows(reader, &before, filter, sought)?;
    *filter = these(&found);
    let Some(until) = until else { return Ok(None) };
    let sql = format!("{} SELECT count(*) {} AND t.timestamp <= make_timestamp({until})", before.with, before.sql);
    let left: Option<u64> = reader.first(&sql, &before.params(), |row| row.get(0).map_err(Error::engine))?;
    Ok(left.filter(|left| *left > 0).map(|left| Unread::new(left, until)))
}

/// Reads the texts of what the filter leaves, one window of time after the other from the newest on, as long as there is time;
/// up to when it did not look, in microseconds. The filter as it was before the words tells where the windows end.
fn by_windows(
    reader: &Reader<'_>,
    before: &Filter,
    filter: &Filter,
    sought: &[String],
) -> Result<(Vec<i64>, Option<i64>), Error> {
    let bounds = bounds(reader, before)?;
    let (mut found, mut upper, mut at, mut width) = (Vec::new(), None, 0, 1);
    for _ in 0..WINDOWS_MAX {
        let begun = Instant::now();
        let lower = bounds.get(at + width - 1).copied();
        let within = |sign: &str, time: i64| format!(" AND t.timestamp {sign} make_timestamp({time})");
        let window = [upper.map(|time| within("<=", time)), lower.map(|time| within(">", time))];
        let window: String = window.into_iter().flatten().collect();
        let some = candidates(reader, filter, &format!("{window} {NEWEST_FIRST}"))?;
        let (read, unread) = reading(reader, &some, some.len(), sought)?;
        found.extend(read);
        if let Some(next) = unread {
            return Ok((found, Some(i64::try_from(next.until.as_unix_nanos() / 1000).unwrap_or(i64::MAX))));
        }
        (upper, at) = (lower, at + width);
        if upper.is_none() || Instant::now() >= reader.part_by {
            break;
        }
        width = if begun.elapsed() < WINDOW_TIME { (width * 2).min(WIDTH_MAX) } else { (width / 2).max(1) };
    }
    Ok((found, upper))
}

/// Times, the latest first, between which lie about as many rows as a window looks through.
fn bounds(reader: &Reader<'_>, before: &Filter) -> Result<Vec<i64>, Error> {
    let sql = format!("{} SELECT count(*) {}", before.with, before.sql);
    let rows: Option<u64> = reader.first(&sql, &before.params(), |row| row.get(0).map_err(Error::engine))?;
    let parts = (rows.unwrap_or_default() / WINDOW_ROWS).min(BOUNDS_MAX);
    if parts < 2 {
        return Ok(Vec::new());
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 1024")]
    let shares: Vec<String> = (1..parts).map(|part| (part as f64 / parts as f64).to_string()).collect();
    let sql = format!(
        "{} SELECT unnest(approx_quantile(epoch_us(t.timestamp), [{}])) {}",
        before.with,
        shares.join(", "),
        before.sql
    );
    let mut times: Vec<i64> = reader.rows(&sql, &before.params(), |row| row.get(0).map_err(Error::engine))?;
    times.sort_unstable();
    times.dedup();
    times.reverse();
    Ok(times)
}

/// The order in which texts are read.
const NEWEST_FIRST: &str = "ORDER BY t.timestamp DESC, t.rowid DESC";

/// The same as a list of rows, so that what was read is not read again, unless they are many.
pub(super) fn few(reader: &Reader<'_>, filter: Filter) -> Result<Filter, Error> {
    let limit = LISTED_MAX + 1;
    let sql = format!("{} SELECT t.rowid {} LIMIT {limit}", filter.with, filter.sql);
    let found: Vec<i64> = reader.rows(&sql, &filter.params(), |row| row.get(0).map_err(Error::engine))?;
    Ok(if found.len() < limit { these(&found) } else { filter })
}

fn these(rows: &[i64]) -> Filter {
    let sql = format!("FROM traces t WHERE {}", listed("t.rowid", rows));
    Filter { with: String::new(), sql, bound: Vec::new() }
}

fn listed(column: &str, rows: &[i64]) -> String {
    if rows.is_empty() {
        return "false".to_owned();
    }
    let list = rows.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    format!("{column} IN (SELECT unnest([{list}]))")
}

/// What the filter leaves.
fn candidates(reader: &Reader<'_>, filter: &Filter, and: &str) -> Result<Vec<Candidate>, Error> {
    let sql = format!("{} SELECT t.rowid, epoch_us(t.timestamp), t.long_id {}{and}", filter.with, filter.sql);
    reader.rows(&sql, &filter.params(), |row| {
        let read = || -> duckdb::Result<Candidate> {
            Ok(Candidate { place: row.get(0)?, at: row.get(1)?, long: row.get(2)? })
        };
        read().map_err(Error::engine)
    })
}

/// Those of the rows in whose texts all stands, of so many of the first and as far as there is time to read them.
fn reading(
    reader: &Reader<'_>,
    candidates: &[Candidate],
    most: usize,
    sought: &[String],
) -> Result<(Vec<i64>, Option<Unread>), Error> {
    let mut found = Vec::new();
    let mut read = 0;
    let wanted = candidates.len().min(most);
    while read < wanted && (read == 0 || Instant::now() < reader.part_by) {
        let stretches = stretches(&candidates[read..wanted]);
        for stretch in &stretches {
            found.extend(in_stretch(reader, stretch, sought)?);
            read += stretch.len();
        }
    }
    let unread = candidates.get(read).map(|next| Unread::new((candidates.len() - read) as u64, next.at));
    Ok((found, unread))
}

/// The first of these, as far as they lie in few stretches, each stretch for itself.
fn stretches(candidates: &[Candidate]) -> Vec<Vec<&Candidate>> {
    let mut found: BTreeMap<i64, Vec<&Candidate>> = BTreeMap::new();
    for one in candidates.iter().take(BITE_ROWS) {
        let stretch = one.place / STRETCH_ROWS;
        if found.len() == STRETCHES_MAX && !found.contains_key(&stretch) {
            break;
        }
        found.entry(stretch).or_default().push(one);
    }
    found.into_values().collect()
}

/// Those of neighbouring rows in whose texts all stands: in the row or in its long values, within a piece or across two.
fn in_stretch(reader: &Reader<'_>, rows: &[&Candidate], sought: &[String]) -> Result<Vec<i64>, Error> {
    let places: Vec<i64> = rows.iter().map(|row| row.place).collect();
    let long: Vec<u64> = rows.iter().filter_map(|row| row.long).collect();
    let each: Vec<String> = sought.iter().map(|text| in_text(text, &long)).collect();
    let (from, to) =
        (places.iter().min().copied().unwrap_or_default(), places.iter().max().copied().unwrap_or_default());
    let sql = format!(
        "SELECT t.rowid FROM traces t WHERE t.rowid BETWEEN {from} AND {to} AND {} AND {}",
        listed("t.rowid", &places),
        each.join(" AND ")
    );
    let times = if long.is_empty() { 1 } else { 3 };
    let bound = sought.iter().flat_map(|text| std::iter::repeat_n(text as &dyn duckdb::ToSql, times));
    reader.rows(&sql, &bound.collect::<Vec<_>>(), |row| row.get(0).map_err(Error::engine))
}

/// That it stands in a text of a trace whose long values, if it has any, are among these.
fn in_text(word: &str, long: &[u64]) -> String {
    let found = |texts: &str| format!("contains(strip_accents(lower({texts})), strip_accents(lower(?)))");
    // What is sought has no line break: nothing is found that begins in one text and ends in the next.
    let in_row = found("concat_ws(chr(10), t.input, t.output, t.tool_calls, t.metadata)");
    let (Some(from), Some(to)) = (long.iter().min(), long.iter().max()) else { return in_row };
    let of = long.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let pieces = format!("FROM pieces WHERE owner BETWEEN {from} AND {to} AND owner IN ({of}) AND field IN {SHOWN}");
    // Case and accents may change how many characters a word has, hardly to the double.
    let reach = word.chars().count() * 2 + 8;
    let within = format!("SELECT owner {pieces} AND {}", found("text"));
    let across = format!(
        "SELECT p.owner FROM (SELECT owner, field, ordinal, right(text, {reach}) AS ending {pieces}) p \
         JOIN (SELECT owner, field, ordinal, left(text, {reach}) AS beginning {pieces}) q \
         ON q.owner = p.owner AND q.field = p.field AND q.ordinal = p.ordinal + 1 WHERE {}",
        found("concat(p.ending, q.beginning)")
    );
    format!("({in_row} OR t.long_id IN ({within}) OR t.long_id IN ({across}))")
}
