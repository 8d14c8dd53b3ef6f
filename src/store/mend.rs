//! What of a salvaged file leans on rows that were lost.
//!
//! A row without the pieces of its long values, an evaluation without the shapes it names, a logged trace without its spans:
//! where the journal has the whole of it, the rest goes and is stored again. And numbers that were given out stay given out,
//! or a later row would get what belongs to an earlier one.

use duckdb::Connection;

use super::open::CATALOG;
use super::{Error, Through};

/// Numbers of shapes go on from here once some were lost; far above those that a file can have had.
const SHAPES_AFTER_LOSS: u32 = 1 << 20;

/// Tables whose rows may have long values.
const WITH_PIECES: [&str; 3] = ["spans", "traces", "evaluations"];

/// Mends the copy, in which something of these tables is missing. The journal has every record after `from`.
pub(super) fn mend(copy: &Connection, from: Through, lost_in: &[&str]) -> Result<(), Error> {
    let run = |sql: &str| copy.execute_batch(sql).map_err(Error::engine);
    // Rows of no record of their own are made anew once a span of theirs is read again, of whichever lane: the lanes count
    // together.
    let again = |made: &str| {
        let (traces, logs, either) = (from.traces, from.logs, from.traces.min(from.logs));
        format!("CASE lane WHEN 0 THEN seq > {traces} WHEN 1 THEN seq > {logs} ELSE {made} > {either} END")
    };
    if lost_in.contains(&"pieces") {
        broken(copy)?;
        for table in WITH_PIECES {
            let again = again(if table == "spans" { "seq" } else { "seen_through" });
            run(&format!("DELETE FROM {CATALOG}.main.{table} WHERE long_id IN (FROM temp.broken) AND {again}"))?;
        }
        run(&format!(
            "DELETE FROM {CATALOG}.main.pieces WHERE owner IN (FROM temp.broken) AND owner NOT IN (
                 SELECT long_id FROM {CATALOG}.main.spans WHERE long_id IS NOT NULL
                 UNION ALL SELECT long_id FROM {CATALOG}.main.traces WHERE long_id IS NOT NULL
                 UNION ALL SELECT long_id FROM {CATALOG}.main.evaluations WHERE long_id IS NOT NULL);
             INSERT INTO {CATALOG}.main.pieces SELECT coalesce(max(owner), 0) + 1, '', 0, '' FROM temp.owners;
             DROP TABLE temp.broken; DROP TABLE temp.owners;"
        ))?;
    }
    if lost_in.contains(&"shapes") {
        let again = again("seen_through");
        run(&format!(
            "DELETE FROM {CATALOG}.main.evaluations WHERE {again};
             INSERT INTO {CATALOG}.main.shapes
             SELECT greatest(coalesce(max(id), 0) + 1, {SHAPES_AFTER_LOSS}), 'null' FROM {CATALOG}.main.shapes;"
        ))?;
    }
    // A record of a tool is stored whole or not at all, and its trace says whether it is.
    let of_record = |table: &str| format!("t.lane = {table}.lane AND t.seq = {table}.seq");
    let (spans, of_traces, of_spans) = (again("seq"), of_record("traces"), of_record("spans"));
    run(&format!(
        "DELETE FROM {CATALOG}.main.traces WHERE lane IS NOT NULL AND {spans} AND span_count >
             (SELECT count(*) FROM {CATALOG}.main.spans t WHERE t.source = 'tool' AND {of_traces});
         DELETE FROM {CATALOG}.main.spans WHERE source = 'tool' AND {spans} AND NOT EXISTS
             (SELECT 1 FROM {CATALOG}.main.traces t WHERE {of_spans});"
    ))
}

/// Makes `temp.owners`, every number that was given to a long row, and `temp.broken`, those of which pieces are missing.
fn broken(copy: &Connection) -> Result<(), Error> {
    // What is no list of sizes has none: such a row is as broken as it was.
    let of = |table: &str| {
        format!(
            "SELECT long_id, coalesce(list_sum(TRY_CAST(json_extract(TRY_CAST(long AS JSON), '$.*[0]') AS BIGINT[])), 0) \
             FROM {CATALOG}.main.{table} WHERE long_id IS NOT NULL"
        )
    };
    let rows = WITH_PIECES.map(of).join(" UNION ALL ");
    copy.execute_batch(&format!(
        "CREATE TEMP TABLE owners AS SELECT * FROM ({rows}) AS rows(owner, bytes);
         INSERT INTO temp.owners SELECT coalesce(max(owner), 0), 0 FROM {CATALOG}.main.pieces;
         CREATE TEMP TABLE broken AS SELECT o.owner FROM temp.owners o LEFT JOIN
             (SELECT owner, sum(strlen(text)) AS bytes FROM {CATALOG}.main.pieces GROUP BY owner) p ON p.owner = o.owner
             WHERE o.bytes > coalesce(p.bytes, 0);"
    ))
    .map_err(Error::engine)
}
