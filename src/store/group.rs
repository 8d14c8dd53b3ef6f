//! One transaction: rows, traces, evaluations and the positions they justify, all or nothing.

use std::collections::HashMap;
use std::sync::Arc;

use duckdb::{Appender, Connection, params};
use iris_core::model::{Evaluation, Observation, Position, Reading, Row, Tenant, Timestamp, Trace, TraceId};
use xxhash_rust::xxh3::xxh3_64;

use super::erase::{Erased, erase, purge};
use super::evaluations::Verdict;
use super::open::CATALOG;
use super::packed::{Packed, Scratch};
use super::spans;
use super::track::{Done, Through};
use super::{Error, ToolWrite, evaluations, traces};

/// What a rule's result takes in memory, with its texts.
const RULE_RESULT_BYTES: usize = 896;
/// More bad items than this in one group and the fault is not taken to lie in them.
const BAD_ITEMS_MAX: usize = 64;

/// Something that waits to be written.
#[derive(Debug)]
pub(super) enum Item {
    /// A span or log record.
    Row(Box<Packed>),
    /// What a tool wrote.
    Tool(Box<ToolWrite>),
    /// A settled trace and its evaluation.
    Judged { ticket: u64, trace: Box<Trace>, evaluation: Arc<Evaluation>, settled: Through },
    /// The settled position moved.
    Settled(Through),
    /// A trace that was judged was deleted meanwhile.
    Gone { ticket: u64, settled: Through },
}

impl Item {
    /// How many rows of `spans` it makes.
    pub fn rows(&self) -> usize {
        match self {
            Self::Row(_) => 1,
            Self::Tool(write) => write.spans().len(),
            Self::Judged { .. } | Self::Settled(_) | Self::Gone { .. } => 0,
        }
    }

    /// Whether it deletes anything.
    pub const fn is_deletion(&self) -> bool {
        matches!(self, Self::Tool(write) if write.is_deletion())
    }

    /// Whether it is an evaluation that came by itself.
    pub const fn is_evaluation(&self) -> bool {
        matches!(self, Self::Tool(write) if matches!(**write, ToolWrite::Evaluation { .. }))
    }

    /// About how many bytes it holds in memory.
    pub fn weight(&self) -> usize {
        match self {
            Self::Row(row) => row.bytes(),
            Self::Tool(write) => match write.as_ref() {
                ToolWrite::Trace { trace, spans, .. } => trace_weight(trace) + spans.len() * 1024,
                ToolWrite::Evaluation { evaluation, .. } => evaluation_weight(evaluation),
                ToolWrite::Deletion { .. } => 1024,
                ToolWrite::Purge { trace_ids, .. } => 1024 + trace_ids.len() * 16,
            },
            Self::Judged { trace, evaluation, .. } => trace_weight(trace) + evaluation_weight(evaluation),
            Self::Settled(_) | Self::Gone { .. } => 0,
        }
    }

    /// Counts it towards the record it came from.
    pub fn complete(&self, done: &mut Done) {
        match self {
            Self::Row(row) => done.row(row.position()),
            Self::Tool(write) => done.row(write.position()),
            Self::Judged { .. } | Self::Settled(_) | Self::Gone { .. } => {}
        }
    }
}

fn trace_weight(trace: &Trace) -> usize {
    let texts = |input: &Option<String>, output: &Option<String>| {
        input.as_ref().map_or(0, String::len) + output.as_ref().map_or(0, String::len)
    };
    let runs: usize = trace.runs.iter().map(|run| 256 + texts(&run.input, &run.output)).sum();
    1024 + texts(&trace.input, &trace.output) + runs
}

fn evaluation_weight(evaluation: &Evaluation) -> usize {
    1024 + evaluation.output_text.as_ref().map_or(0, String::len) + evaluation.rule_results.len() * RULE_RESULT_BYTES
}

/// The two positions of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Positions {
    pub stored: Through,
    pub settled: Through,
}

impl Positions {
    /// Whether they are as far as others in every lane.
    pub const fn covers(self, others: Self) -> bool {
        self.stored.covers(others.stored) && self.settled.covers(others.settled)
    }
}

/// Writes all items and the positions in one transaction.
pub(super) fn write(
    connection: &Connection,
    items: &[&Item],
    positions: Option<Positions>,
    now: Timestamp,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    transaction_beside(connection, true, scratch, |connection, scratch| {
        append_all(connection, items, now, scratch)?;
        positions.map_or(Ok(()), |positions| append_positions(connection, positions))
    })
}

/// Finds the items that cannot be written, by halves, in transactions that are rolled back. `None`: so many
/// fail, or none does, that the fault lies elsewhere.
pub(super) fn find_bad(
    connection: &Connection,
    items: &[&Item],
    now: Timestamp,
    scratch: &mut Scratch,
) -> Option<Vec<usize>> {
    let mut bad = Vec::new();
    let mut halves = vec![(0, items.len())];
    while let Some((start, end)) = halves.pop() {
        let part = items.get(start..end)?;
        let tried = transaction_beside(connection, false, scratch, |connection, scratch| {
            append_all(connection, part, now, scratch)
        });
        match tried {
            Ok(()) => {}
            Err(error) if !error.may_be_a_row() => return None,
            Err(_) if end - start == 1 => bad.push(start),
            Err(_) => {
                let middle = start + (end - start) / 2;
                halves.push((start, middle));
                halves.push((middle, end));
            }
        }
        if bad.len() > BAD_ITEMS_MAX {
            return None;
        }
    }
    bad.sort_unstable();
    (!bad.is_empty()).then_some(bad)
}

/// Runs `work` in a transaction, kept or given up at its end.
pub(super) fn transaction(
    connection: &Connection,
    keep: bool,
    work: impl FnOnce(&Connection) -> Result<(), Error>,
) -> Result<(), Error> {
    connection.execute_batch("BEGIN TRANSACTION").map_err(Error::engine)?;
    let done = work(connection)
        .and_then(|()| connection.execute_batch(if keep { "COMMIT" } else { "ROLLBACK" }).map_err(Error::engine));
    if done.is_err() {
        // After a failed COMMIT nothing is open and this says so; nothing else can be done either way.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

/// As [`transaction`], for rows that leave something for other tables: it is appended last.
pub(super) fn transaction_beside(
    connection: &Connection,
    keep: bool,
    scratch: &mut Scratch,
    work: impl FnOnce(&Connection, &mut Scratch) -> Result<(), Error>,
) -> Result<(), Error> {
    scratch.beside.begin();
    transaction(connection, keep, |connection| {
        work(connection, scratch)?;
        scratch.beside.append(connection)
    })?;
    if keep {
        scratch.beside.committed();
    }
    Ok(())
}

fn append_all(connection: &Connection, items: &[&Item], now: Timestamp, scratch: &mut Scratch) -> Result<(), Error> {
    table(connection, "spans", items.iter().any(|item| item.rows() > 0), |appender| {
        items.iter().try_for_each(|item| match item {
            Item::Row(row) => row.append(appender, scratch),
            Item::Tool(write) => append_tool_spans(appender, write, now, scratch),
            Item::Judged { .. } | Item::Settled(_) | Item::Gone { .. } => Ok(()),
        })
    })?;
    let has_traces = items.iter().any(|item| !matches!(item, Item::Row(_) | Item::Settled(_) | Item::Gone { .. }));
    let together = together(items);
    table(connection, "traces", has_traces, |appender| {
        items.iter().try_for_each(|item| match item {
            Item::Judged { trace, evaluation, .. } => {
                let verdict = Verdict::of(trace, evaluation);
                traces::append(appender, trace, verdict.as_ref(), None, now, &mut scratch.beside)
            }
            Item::Tool(write) => match write.as_ref() {
                ToolWrite::Trace { trace, position, .. } => {
                    let evaluation = together.get(&(&trace.tenant, trace.trace_id)).copied().flatten();
                    let verdict = evaluation.and_then(|evaluation| Verdict::of(trace, evaluation));
                    traces::append(appender, trace, verdict.as_ref(), Some(*position), now, &mut scratch.beside)
                }
                ToolWrite::Evaluation { .. } | ToolWrite::Deletion { .. } | ToolWrite::Purge { .. } => Ok(()),
            },
            Item::Row(_) | Item::Settled(_) | Item::Gone { .. } => Ok(()),
        })
    })?;
    table(connection, "evaluations", has_traces, |appender| {
        items.iter().try_for_each(|item| match item {
            Item::Judged { trace, evaluation, .. } => {
                let is_there = Verdict::of(trace, evaluation).is_some();
                evaluations::append(appender, evaluation, evaluation.position, is_there, &mut scratch.beside)
            }
            Item::Tool(write) => match write.as_ref() {
                ToolWrite::Evaluation { evaluation, position } => {
                    let first = evaluation.trace_id.and_then(|id| together.get(&(&evaluation.tenant, id)).copied());
                    let is_there = first.flatten().is_some_and(|first| std::ptr::eq(first, evaluation));
                    evaluations::append(appender, evaluation, Some(*position), is_there, &mut scratch.beside)
                }
                ToolWrite::Trace { .. } | ToolWrite::Deletion { .. } | ToolWrite::Purge { .. } => Ok(()),
            },
            Item::Row(_) | Item::Settled(_) | Item::Gone { .. } => Ok(()),
        })
    })?;
    delete(connection, items, now, scratch)
}

/// The traces that tools wrote, each with the first evaluation of it in the same group that ruled on something.
fn together<'a>(items: &[&'a Item]) -> HashMap<(&'a Tenant, TraceId), Option<&'a Evaluation>> {
    let mut found: HashMap<(&Tenant, TraceId), Option<&Evaluation>> = HashMap::new();
    let writes = || {
        items.iter().filter_map(|item| match item {
            Item::Tool(write) => Some(write.as_ref()),
            Item::Judged { .. } | Item::Row(_) | Item::Settled(_) | Item::Gone { .. } => None,
        })
    };
    for write in writes() {
        if let ToolWrite::Trace { trace, .. } = write {
            found.entry((&trace.tenant, trace.trace_id)).or_default();
        }
    }
    for write in writes() {
        if let ToolWrite::Evaluation { evaluation, .. } = write
            && let Some(id) = evaluation.trace_id
            && !evaluation.judged_nothing()
            && let Some(pair) = found.get_mut(&(&evaluation.tenant, id))
        {
            pair.get_or_insert(evaluation);
        }
    }
    found
}

/// Deletes what the items say, among it what stands before them in the same group.
fn delete(connection: &Connection, items: &[&Item], now: Timestamp, scratch: &mut Scratch) -> Result<(), Error> {
    let deletions = items.iter().filter_map(|item| match item {
        Item::Tool(write) if write.is_deletion() => Some(write.as_ref()),
        _ => None,
    });
    let mut deletions = deletions.peekable();
    if deletions.peek().is_none() {
        return Ok(());
    }
    scratch.beside.append(connection)?;
    let (mut alone, mut erased) = (Vec::new(), Erased::default());
    for write in deletions {
        match write {
            ToolWrite::Purge { tenant, evaluations_before, .. } => {
                erased += purge(connection, &write.deletes(), tenant, *evaluations_before)?;
            }
            other => alone.extend(other.deletes()),
        }
    }
    erased += erase(connection, &alone, now, &mut scratch.beside)?;
    if erased == Erased::default() {
        return Ok(());
    }
    let asked = spans::micros(now);
    connection.execute("INSERT INTO erasures VALUES (?)", params![asked]).map(|_| ()).map_err(Error::engine)
}

/// Appends to one table. Dropping an appender hides its errors, so it is flushed and asked first.
pub(super) fn table(
    connection: &Connection,
    name: &str,
    wanted: bool,
    fill: impl FnOnce(&mut Appender<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if !wanted {
        return Ok(());
    }
    let mut appender = connection.appender_to_catalog_and_db(name, CATALOG, "main").map_err(Error::engine)?;
    fill(&mut appender)?;
    appender.flush().map_err(Error::engine)
}

fn append_tool_spans(
    appender: &mut Appender<'_>,
    write: &ToolWrite,
    now: Timestamp,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let ToolWrite::Trace { trace, spans, position } = write else { return Ok(()) };
    for (ordinal, span) in (0u32..).zip(spans) {
        let content =
            serde_json::to_vec(span).map_err(|error| Error::Engine(format!("a span has no JSON form: {error}")))?;
        let row = Row {
            tenant: trace.tenant.clone(),
            position: Position { ordinal, ..*position },
            received: now,
            trace_id: trace.trace_id,
            span_id: span.span_id,
            content_hash: xxh3_64(&content),
            reading: Reading::default(),
            observation: Observation::Span(span.clone()),
        };
        Packed::of(&row, &mut scratch.buffer)?.by_tool().append(appender, scratch)?;
    }
    Ok(())
}

pub(super) fn append_positions(connection: &Connection, Positions { stored, settled }: Positions) -> Result<(), Error> {
    connection
        .execute(
            "INSERT INTO positions VALUES (?, ?, ?, ?, ?, ?)",
            params![stored.traces, stored.logs, stored.metrics, settled.traces, settled.logs, settled.metrics],
        )
        .map(|_| ())
        .map_err(Error::engine)
}
