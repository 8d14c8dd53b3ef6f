//! Reads rows by their numbers, a bounded bite at a time.

use std::collections::HashMap;

use super::Error;
use super::reader::Reader;

/// Rows this near each other lie in one compressed vector: reading both costs as much as reading one.
const NEAR_ROWS: i64 = 2048;
/// Most stretches of a table that one statement reads.
const STRETCHES_MAX: usize = 64;
/// From so many stretches on, few rows are sought as a list that is joined: planning many parts costs more than the rows.
const FAR_STRETCHES: usize = 4;
/// Most rows of such a list: of a longer one the engine keeps the ends alone, and unpacks all between.
const FAR_ROWS: usize = 50;
/// Bytes of text that one statement gives back; one row may be larger.
const BITE_BYTES: u64 = 8 * 1024 * 1024;
/// Rows that one statement gives back.
const BITE_ROWS: usize = 512;

/// Groups rows, told with their sizes and in their order, so that no group is larger than one statement should be.
pub(super) fn bites(sizes: &[(i64, u64)]) -> Vec<Vec<i64>> {
    let mut bites: Vec<Vec<i64>> = Vec::new();
    let mut bytes = 0_u64;
    for (rowid, size) in sizes {
        let sum = bytes.saturating_add(*size);
        match bites.last_mut() {
            Some(bite) if sum <= BITE_BYTES && bite.len() < BITE_ROWS => {
                bite.push(*rowid);
                bytes = sum;
            }
            _ => {
                bites.push(vec![*rowid]);
                bytes = *size;
            }
        }
    }
    bites
}

/// Reads rows by their numbers. What cannot be read is counted and left out. Every stretch of a table is named by
/// its ends, or a short list joined: a list of numbers alone would have all the compressed text between the first and the
/// last unpacked.
pub(super) fn fetch<T>(
    reader: &Reader<'_>,
    table: &str,
    columns: &str,
    rowids: &[i64],
    read: &mut dyn FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
) -> Result<HashMap<i64, T>, Error> {
    let mut found = HashMap::with_capacity(rowids.len());
    for stretches in stretches(rowids).chunks(STRETCHES_MAX) {
        match select(reader, table, columns, stretches, read) {
            Err(Error::NoMemory(_)) => {
                reader.begin_again()?;
                for stretch in stretches {
                    in_halves(reader, table, columns, stretch, read, &mut found)?;
                }
            }
            rows => found.extend(rows?),
        }
    }
    Ok(found)
}

/// Reads a stretch for which the engine has no memory in smaller parts. Once a single row does not fit, its
/// neighbours do not either: they lie in the same vector, which is unpacked for each of them.
fn in_halves<T>(
    reader: &Reader<'_>,
    table: &str,
    columns: &str,
    stretch: &[i64],
    read: &mut dyn FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
    found: &mut HashMap<i64, T>,
) -> Result<(), Error> {
    let mut parts = vec![stretch];
    while let Some(part) = parts.pop() {
        match select(reader, table, columns, &[part.to_vec()], read) {
            Err(error @ Error::NoMemory(_)) => {
                reader.begin_again()?;
                if part.len() == 1 {
                    let rows = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
                    reader.leave_out(&error, rows);
                    return Ok(());
                }
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            rows => found.extend(rows?),
        }
    }
    Ok(())
}

fn select<T>(
    reader: &Reader<'_>,
    table: &str,
    columns: &str,
    stretches: &[Vec<i64>],
    read: &mut dyn FnMut(&duckdb::Row<'_>) -> Result<T, Error>,
) -> Result<Vec<(i64, T)>, Error> {
    let select = |stretch: &Vec<i64>| {
        let list = stretch.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let (first, last) = (stretch.first()?, stretch.last()?);
        Some(format!(
            "SELECT {columns}, rowid AS place FROM {table} WHERE rowid BETWEEN {first} AND {last} AND rowid IN ({list})"
        ))
    };
    let rows: usize = stretches.iter().map(Vec::len).sum();
    let sql = if stretches.len() > FAR_STRETCHES && rows <= FAR_ROWS {
        let list = stretches.iter().flatten().map(i64::to_string).collect::<Vec<_>>().join(", ");
        format!("SELECT {columns}, rowid AS place FROM {table} WHERE rowid IN (SELECT unnest([{list}]))")
    } else {
        stretches.iter().filter_map(select).collect::<Vec<_>>().join(" UNION ALL ")
    };
    reader.readable(&sql, &[], |row| {
        let place = row.get::<_, i64>("place").map_err(Error::engine)?;
        Ok((place, read(row)?))
    })
}

/// Sorts row numbers into groups without a wide gap.
fn stretches(rowids: &[i64]) -> Vec<Vec<i64>> {
    let mut sorted = rowids.to_vec();
    sorted.sort_unstable();
    let mut stretches: Vec<Vec<i64>> = Vec::new();
    for rowid in sorted {
        match stretches.last_mut() {
            Some(stretch) if stretch.last().is_some_and(|last| rowid - last < NEAR_ROWS) => stretch.push(rowid),
            _ => stretches.push(vec![rowid]),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bite_is_bounded_by_bytes_and_rows_and_holds_at_least_one() {
        let large = BITE_BYTES * 2;
        assert_eq!(bites(&[(1, large), (2, 1), (3, BITE_BYTES - 1), (4, 1)]), [vec![1], vec![2, 3], vec![4]]);
        let many: Vec<(i64, u64)> = (0..1000).map(|rowid| (rowid, 1)).collect();
        assert_eq!(bites(&many).iter().map(Vec::len).collect::<Vec<_>>(), [BITE_ROWS, 1000 - BITE_ROWS]);
        assert!(bites(&[]).is_empty());
    }
}
