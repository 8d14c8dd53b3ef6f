//! Values too long for their row stand in `pieces`, a table of their own.
//!
//! The engine handles 2,048 neighbouring rows of a column together: what those hold in one column has to fit its memory,
//! at a read as at a checkpoint. So no row holds more than [`ROW_BYTES`] of text, and no piece more than
//! [`PIECE_BYTES`]; a value of any length is read and written within a few megabytes.

use std::collections::{BTreeMap, HashMap};

use duckdb::{Appender, Connection, Row, params};

use super::Error;
use super::reader::Reader;

/// Most bytes of text in the wide columns of one row.
pub(super) const ROW_BYTES: usize = 12 * 1024;
/// What a row keeps of a text that stands in pieces.
pub(super) const HEAD_BYTES: usize = 4096;
/// A row keeps this much of a name, in a column by which people filter; the whole name is elsewhere in the row.
const NAME_BYTES: usize = 512;
/// Bytes of a piece: 8 MiB of neighbours.
const PIECE_BYTES: usize = 4096;
/// What stands in the column of a JSON value whose text is in pieces.
const NO_DOCUMENT: &str = "null";
/// Owners this near each other are read in one stretch of the table.
const NEAR_OWNERS: u64 = 32;
/// Most stretches, and owners, of one statement.
const STRETCHES_MAX: usize = 64;
const OWNERS_MAX: usize = 512;

/// What a row keeps of a value that moves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its beginning.
    Text,
    /// Nothing: half of a JSON text is none.
    Document,
}

/// A wide column of a row that is being written.
#[derive(Debug)]
pub(super) struct Wide<'a> {
    pub field: &'static str,
    pub kind: Kind,
    pub value: Option<&'a str>,
}

impl<'a> Wide<'a> {
    pub const fn text(field: &'static str, value: Option<&'a str>) -> Self {
        Self { field, kind: Kind::Text, value }
    }

    pub const fn document(field: &'static str, value: Option<&'a str>) -> Self {
        Self { field, kind: Kind::Document, value }
    }
}

/// Which columns of a row stand in pieces: the two columns `long_id` and `long`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Long {
    pub id: u64,
    /// By column: bytes and characters.
    sizes: BTreeMap<String, (u64, u64)>,
}

impl Long {
    /// Of a selected row whose columns from `first` on are `long_id, long`.
    pub fn read(row: &Row<'_>, first: usize) -> duckdb::Result<Option<Self>> {
        let Some(id) = row.get::<_, Option<u64>>(first)? else { return Ok(None) };
        let text: Option<String> = row.get(first + 1)?;
        // What is no list of sizes leaves none: the row's own values then do not add up to what it was.
        let sizes = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Some(Self { id, sizes }))
    }

    pub fn bytes(&self, field: &str) -> Option<u64> {
        self.sizes.get(field).map(|(bytes, _)| *bytes)
    }

    pub fn chars(&self, field: &str) -> Option<u64> {
        self.sizes.get(field).map(|(_, chars)| *chars)
    }

    /// The length of all of it.
    pub fn all_bytes(&self) -> u64 {
        self.sizes.values().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add)
    }

    fn column(&self) -> Result<String, Error> {
        serde_json::to_string(&self.sizes).map_err(|error| Error::Engine(format!("sizes have no JSON form: {error}")))
    }
}

struct Piece {
    owner: u64,
    field: &'static str,
    ordinal: u32,
    text: String,
}

/// Numbers long rows and collects their pieces until they are appended with them.
#[derive(Default)]
pub(super) struct Pieces {
    last: u64,
    waiting: Vec<Piece>,
}

/// What a row holds in its wide columns, and the two columns that say what it does not.
pub(super) struct Kept<'a, const N: usize> {
    pub values: [Option<&'a str>; N],
    pub long_id: Option<u64>,
    pub long: Option<String>,
}

impl Pieces {
    /// Numbers go on after the last that the file has.
    pub fn of(connection: &Connection) -> Result<Self, Error> {
        let last = connection
            .query_row("SELECT coalesce(max(owner), 0) FROM pieces", [], |row| row.get(0))
            .map_err(Error::engine)?;
        Ok(Self { last, waiting: Vec::new() })
    }

    /// Moves the longest values out until the rest fits the row.
    pub fn shorten<'a, const N: usize>(&mut self, columns: &[Wide<'a>; N]) -> Result<Kept<'a, N>, Error> {
        let mut values = columns.each_ref().map(|column| column.value);
        if bytes(&values) <= ROW_BYTES {
            return Ok(Kept { values, long_id: None, long: None });
        }
        self.last += 1;
        let mut long = Long { id: self.last, sizes: BTreeMap::new() };
        while bytes(&values) > ROW_BYTES {
            let longest = columns
                .iter()
                .zip(&mut values)
                .filter(|(column, _)| !long.sizes.contains_key(column.field))
                .max_by_key(|(_, value)| value.map_or(0, str::len));
            let Some((column, value)) = longest else { break };
            let Some(whole) = *value else { break };
            self.cut(column.field, whole);
            long.sizes.insert(column.field.to_owned(), (whole.len() as u64, whole.chars().count() as u64));
            *value = Some(match column.kind {
                Kind::Text => head(whole, HEAD_BYTES),
                Kind::Document => NO_DOCUMENT,
            });
        }
        Ok(Kept { values, long_id: Some(long.id), long: Some(long.column()?) })
    }

    fn cut(&mut self, field: &'static str, whole: &str) {
        let mut rest = whole;
        let mut ordinal = 0;
        while !rest.is_empty() {
            let text = head(rest, PIECE_BYTES);
            rest = &rest[text.len()..];
            self.waiting.push(Piece { owner: self.last, field, ordinal, text: text.to_owned() });
            ordinal += 1;
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets what a group that failed left behind.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Appends what waits.
    pub fn append(&mut self, appender: &mut Appender<'_>) -> Result<(), Error> {
        self.waiting.drain(..).try_for_each(|Piece { owner, field, ordinal, text }| {
            appender.append_row(params![owner, field, ordinal, text]).map_err(Error::engine)
        })
    }
}

fn bytes<const N: usize>(values: &[Option<&str>; N]) -> usize {
    values.iter().flatten().map(|value| value.len()).sum()
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// A name as its column holds it, and as a filter asks for it.
pub(super) fn name(text: &str) -> &str {
    head(text, NAME_BYTES)
}

/// Values of long columns by owner and column.
#[derive(Debug, Default)]
pub(super) struct Values(HashMap<(u64, String), String>);

impl Values {
    /// Reads columns of these rows; all columns where `fields` is empty. The caller bounds how much that is. What the
    /// engine has no memory for is missing.
    pub fn read<'a>(
        reader: &Reader<'_>,
        rows: impl IntoIterator<Item = &'a Long>,
        fields: &[&str],
    ) -> Result<Self, Error> {
        let mut values = Self::default();
        for owners in owners(rows, fields).chunks(OWNERS_MAX) {
            let read = |owners: &[u64]| reader.rows(&select(owners, fields), &[], piece);
            match read(owners) {
                Ok(pieces) => values.extend(pieces),
                Err(Error::NoMemory(_)) => {
                    reader.begin_again()?;
                    for owner in owners {
                        match read(&[*owner]) {
                            Ok(pieces) => values.extend(pieces),
                            Err(Error::NoMemory(_)) => reader.begin_again()?,
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    /// The same on a connection that writes.
    pub fn read_for_writing<'a>(
        connection: &Connection,
        rows: impl IntoIterator<Item = &'a Long>,
        fields: &[&str],
    ) -> Result<Self, Error> {
        let mut values = Self::default();
        for owners in owners(rows, fields).chunks(OWNERS_MAX) {
            let mut statement = connection.prepare(&select(owners, fields)).map_err(Error::engine)?;
            let mut rows = statement.query([]).map_err(Error::engine)?;
            while let Some(row) = rows.next().map_err(Error::engine)? {
                values.extend([piece(row)?]);
            }
        }
        Ok(values)
    }

    fn extend(&mut self, pieces: impl IntoIterator<Item = (u64, String, String)>) {
        for (owner, field, text) in pieces {
            self.0.entry((owner, field)).or_default().push_str(&text);
        }
    }

    /// Puts the whole value in place of what the row holds, when it stands in pieces.
    pub fn put(&mut self, long: Option<&Long>, field: &str, value: &mut String) -> Result<(), String> {
        let Some((long, bytes)) = long.and_then(|long| Some((long, long.bytes(field)?))) else { return Ok(()) };
        let whole = self.0.remove(&(long.id, field.to_owned())).unwrap_or_default();
        if whole.len() as u64 != bytes {
            return Err(format!("{} of {bytes} bytes of its column {field} can be read", whole.len()));
        }
        *value = whole;
        Ok(())
    }

    /// The same for a column that may be absent.
    pub fn put_optional(&mut self, long: Option<&Long>, field: &str, value: &mut Option<String>) -> Result<(), String> {
        value.as_mut().map_or(Ok(()), |value| self.put(long, field, value))
    }
}

/// Those that have one of the columns, in order, each once.
fn owners<'a>(rows: impl IntoIterator<Item = &'a Long>, fields: &[&str]) -> Vec<u64> {
    let wanted = |long: &&Long| fields.is_empty() || fields.iter().any(|field| long.sizes.contains_key(*field));
    let mut owners: Vec<u64> = rows.into_iter().filter(wanted).map(|long| long.id).collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// Every stretch of the table is named by its ends, as in `fetch`. Rows come in the order in which they were written.
fn select(owners: &[u64], fields: &[&str]) -> String {
    let mut stretches: Vec<Vec<u64>> = Vec::new();
    for owner in owners {
        let full = stretches.len() == STRETCHES_MAX;
        match stretches.last_mut() {
            Some(stretch) if full || stretch.last().is_some_and(|last| owner - last < NEAR_OWNERS) => {
                stretch.push(*owner);
            }
            _ => stretches.push(vec![*owner]),
        }
    }
    let quoted: Vec<String> = fields.iter().map(|field| format!("'{field}'")).collect();
    let of_fields = if fields.is_empty() { String::new() } else { format!(" AND field IN ({})", quoted.join(", ")) };
    let select = |stretch: &Vec<u64>| {
        let list = stretch.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (first, last) = (stretch.first()?, stretch.last()?);
        Some(format!(
            "SELECT owner, field, text FROM pieces WHERE owner BETWEEN {first} AND {last} AND owner IN ({list}){of_fields}"
        ))
    };
    stretches.iter().filter_map(select).collect::<Vec<_>>().join(" UNION ALL ")
}

fn piece(row: &Row<'_>) -> Result<(u64, String, String), Error> {
    let read = || -> duckdb::Result<(u64, String, String)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    read().map_err(Error::engine)
}

/// Runs a `DELETE`, and deletes the pieces of what went. Returns how many rows of the table itself that were.
pub(super) fn delete(connection: &Connection, sql: &str, bound: &[&dyn duckdb::ToSql]) -> Result<usize, Error> {
    let mut statement = connection.prepare(&format!("{sql} RETURNING long_id")).map_err(Error::engine)?;
    let mut rows = statement.query(bound).map_err(Error::engine)?;
    let (mut deleted, mut owners) = (0, Vec::new());
    while let Some(row) = rows.next().map_err(Error::engine)? {
        deleted += 1;
        owners.extend(row.get::<_, Option<u64>>(0).map_err(Error::engine)?);
    }
    owners.sort_unstable();
    for owners in owners.chunks(OWNERS_MAX) {
        let (Some(first), Some(last)) = (owners.first(), owners.last()) else { continue };
        let list = owners.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let sql = format!("DELETE FROM pieces WHERE owner BETWEEN {first} AND {last} AND owner IN ({list})");
        connection.execute(&sql, []).map_err(Error::engine)?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: columns of all lengths, in letters of four bytes.
    /// Guarantees: what fits stays; the longest move first, and only until the rest fits; texts are cut at characters.
    #[test]
    fn the_longest_values_move_out_until_the_rest_fits() {
        let mut pieces = Pieces::default();
        let (short, long, longer) = ("s".repeat(6000), "😀".repeat(2000), "d".repeat(9000));
        let fits = pieces.shorten(&[Wide::text("a", Some(&short)), Wide::document("b", None)]).unwrap();
        assert_eq!((fits.values, fits.long_id, fits.long), ([Some(short.as_str()), None], None, None));
        let columns = [
            Wide::text("input", Some(&long)),
            Wide::text("output", Some(&short)),
            Wide::document("runs", Some(&longer)),
        ];
        let kept = pieces.shorten(&columns).unwrap();
        assert_eq!(kept.values, [Some(&long[..4096]), Some(short.as_str()), Some("null")]);
        assert_eq!(kept.long_id, Some(1));
        assert_eq!(kept.long.as_deref(), Some(r#"{"input":[8000,2000],"runs":[9000,9000]}"#));
        let lengths: Vec<_> =
            pieces.waiting.iter().map(|piece| (piece.field, piece.ordinal, piece.text.len())).collect();
        let expected = [("runs", 0, 4096), ("runs", 1, 4096), ("runs", 2, 808), ("input", 0, 4096), ("input", 1, 3904)];
        assert_eq!(lengths, expected);
    }
}
