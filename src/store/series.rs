//! Figures over time, by name and by rule, and the sessions of a window: what a page of charts is drawn from.
//!
//! Each question reads the traces that began in one window, with the latest verdict of each among those made since the
//! window began, and answers with a bounded number of rows.

use duckdb::ToSql;
use duckdb::types::Value;
use iris_core::model::{EvalType, Tenant, Timestamp, TraceId, VerdictState};

use super::long;
use super::reader::Reader;
use super::spans::{micros, timestamp, trace_id};
use super::verdicts::{self, Column, Odd};
use super::{Error, Store};

/// Steps of one series.
pub const POINTS_MAX: usize = 400;

/// Names of one table.
pub const NAMES_MAX: usize = 50;

/// Different sets of failed rules that are counted, the most frequent first.
const SETS_MAX: usize = 4096;

/// How long one step of a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An hour.
    Hour,
    /// A day, UTC.
    Day,
    /// A week from Monday, UTC.
    Week,
}

impl Step {
    /// The engine's word for it.
    const fn unit(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// How long it is, in seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Hour => 3600,
            Self::Day => 86_400,
            Self::Week => 604_800,
        }
    }

    /// The step in which a time lies begins there. 1970 began on a Thursday.
    pub const fn begin(self, time: Timestamp) -> Timestamp {
        const NANOS: u64 = 1_000_000_000;
        const MONDAY: u64 = 3 * 86_400;
        let seconds = time.as_unix_nanos() / NANOS;
        let shift = if matches!(self, Self::Week) { MONDAY } else { 0 };
        let begin = (seconds + shift) / self.seconds() * self.seconds();
        Timestamp::from_unix_nanos(begin.saturating_sub(shift) * NANOS)
    }
}

/// What traces are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The agent.
    Agent,
    /// The model that answered.
    Model,
    /// Who served it.
    Provider,
    /// The version of the service.
    Version,
}

impl By {
    const fn column(self) -> &'static str {
        match self {
            Self::Agent => "agent_name",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Version => "service_version",
        }
    }
}

/// Which traces: those that began in a window, whose names are these.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// From then on.
    pub since: Timestamp,
    /// Until then.
    pub until: Timestamp,
    /// Exactly these names.
    pub names: Vec<(By, String)>,
}

/// The figures of some traces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// How many there are.
    pub traces: u64,
    /// Of those, by their latest verdict.
    pub passed: u64,
    /// The same.
    pub failed: u64,
    /// The same.
    pub unknown: u64,
    /// Traces in which something ended in an error.
    pub errors: u64,
    /// In US dollars, as far as known.
    pub cost_usd: Option<f64>,
    /// Tokens that models read.
    pub input_tokens: Option<u64>,
    /// Tokens that models wrote.
    pub output_tokens: Option<u64>,
    /// The median, in milliseconds.
    pub latency_ms_p50: Option<f64>,
    /// What nineteen of twenty stay below, in milliseconds.
    pub latency_ms_p95: Option<f64>,
}

/// What a page of charts is drawn from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// All together.
    pub total: Figures,
    /// By the beginning of each step that has a trace.
    pub points: Vec<(Timestamp, Figures)>,
    /// By name, those with most traces first; at most [`NAMES_MAX`].
    pub names: Vec<(Option<String>, Figures)>,
    /// The rules that the latest evaluations failed, most often first.
    pub rules: Vec<(String, u64)>,
}

/// Traces of one conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// What they share.
    pub session_id: String,
    /// When the first began.
    pub first: Timestamp,
    /// When the last began.
    pub last: Timestamp,
    /// One of the agents.
    pub agent_name: String,
    /// How many agents there are.
    pub agents: u64,
    /// Their figures.
    pub figures: Figures,
}

/// What all evaluations of one trace said: bundle and state, each pair once.
pub type Said = (TraceId, EvalType, VerdictState);

const FIGURES: &str = "count(*) AS traces, count(*) FILTER (x.state = 'pass'), count(*) FILTER (x.state = 'fail'), \
     count(*) FILTER (x.state = 'unknown'), count(*) FILTER (x.failed), sum(x.cost_usd), \
     CAST(sum(x.prompt_tokens) AS UBIGINT), CAST(sum(x.completion_tokens) AS UBIGINT), \
     quantile_cont(x.latency_ms, [0.5, 0.95])[1], quantile_cont(x.latency_ms, [0.5, 0.95])[2]";

/// What `grouping` says of a row that is about one step, and of one that is about one name.
const STEPS: i64 = 0b01;
const NAMES: i64 = 0b10;

/// The traces of a window with the latest verdict of each, as `x`.
struct Common {
    odd: String,
    from: String,
    bound: Vec<Value>,
}

impl Common {
    /// With this column of the verdict, and others beside those of the figures.
    fn of(tenant: &Tenant, window: &Window, verdict: Column, columns: &str) -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let odd = Odd::verdicts(tenant, &[verdict], Some(window.since));
        let verdict = verdict.since();
        let mut from = format!(
            "(SELECT t.timestamp, t.agent_name, t.latency_ms, t.prompt_tokens, t.completion_tokens, t.cost_usd, t.failed, \
             {verdict}{columns} FROM traces t {} AND t.timestamp >= ? AND t.timestamp <= ?",
            verdicts::JOIN
        );
        let mut bound = odd.bound;
        let (since, until) = (micros(window.since), micros(window.until));
        bound.extend([since.clone(), text(tenant.as_str()), since, until]);
        for (by, name) in &window.names {
            from.push_str(&format!(" AND t.{} = ?", by.column()));
            bound.push(text(long::name(name)));
        }
        from.push_str(") x");
        Self { odd: odd.sql, from, bound }
    }

    fn rows<T>(
        &self,
        reader: &Reader<'_>,
        columns: &str,
        rest: &str,
        read: impl Fn(&duckdb::Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let bound: Vec<&dyn ToSql> = self.bound.iter().map(|value| value as &dyn ToSql).collect();
        let sql = format!("WITH {} SELECT {columns} FROM {} {rest}", self.odd, self.from);
        reader.rows(&sql, &bound, |row| read(row).map_err(Error::engine))
    }
}

/// The figures that begin at a column.
fn figures(row: &duckdb::Row<'_>, at: usize) -> duckdb::Result<Figures> {
    Ok(Figures {
        traces: row.get(at)?,
        passed: row.get(at + 1)?,
        failed: row.get(at + 2)?,
        unknown: row.get(at + 3)?,
        errors: row.get(at + 4)?,
        cost_usd: row.get(at + 5)?,
        input_tokens: row.get(at + 6)?,
        output_tokens: row.get(at + 7)?,
        latency_ms_p50: row.get(at + 8)?,
        latency_ms_p95: row.get(at + 9)?,
    })
}

impl Store {
    /// Figures over time, by name and by rule, of the traces of a window.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn series(&self, tenant: &Tenant, window: &Window, step: Step, by: By) -> Result<Series, Error> {
        let (tenant, window) = (tenant.clone(), window.clone());
        self.read(move |reader| series(reader, &tenant, &window, step, by)).await
    }

    /// A page of the conversations of a window, those that went on last first.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn sessions(
        &self,
        tenant: &Tenant,
        window: &Window,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<SessionRow>, Error> {
        let (tenant, window) = (tenant.clone(), window.clone());
        self.read(move |reader| sessions(reader, &tenant, &window, limit, offset)).await
    }

    /// When the newest trace began.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn newest_trace(&self, tenant: &Tenant) -> Result<Option<Timestamp>, Error> {
        let tenant = tenant.clone();
        self.read(move |reader| newest(reader, &tenant)).await
    }

    /// How many traces began at each of these times or later, and at any time, each version for itself.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn counts_since(&self, tenant: &Tenant, times: &[Timestamp]) -> Result<Vec<u64>, Error> {
        let (tenant, times) = (tenant.clone(), times.to_vec());
        self.read(move |reader| counts_since(reader, &tenant, &times)).await
    }

    /// What all evaluations of these traces said.
    ///
    /// # Errors
    /// As every reading method.
    pub async fn said(&self, tenant: &Tenant, ids: &[TraceId]) -> Result<Vec<Said>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.read(move |reader| said(reader, &tenant, &ids)).await
    }
}

fn series(reader: &Reader<'_>, tenant: &Tenant, window: &Window, step: Step, by: By) -> Result<Series, Error> {
    let named = format!(", date_trunc('{}', t.timestamp) AS begun, t.{} AS name", step.unit(), by.column());
    let common = Common::of(tenant, window, Column::State, &named);
    // All together, by step and by name in one pass: which of them a row is, `grouping` says.
    let columns = format!("grouping(x.begun, x.name) AS which, epoch_us(x.begun) AS begun, x.name, {FIGURES}");
    let rest = format!(
        "GROUP BY GROUPING SETS ((), (x.begun), (x.name)) \
         QUALIFY row_number() OVER (PARTITION BY which ORDER BY CASE which WHEN {STEPS} THEN epoch_us(x.begun) ELSE count(*) END DESC, \
         x.name) <= CASE which WHEN {NAMES} THEN {NAMES_MAX} ELSE {POINTS_MAX} END"
    );
    type Grouped = (i64, Option<i64>, Option<String>, Figures);
    let rows: Vec<Grouped> =
        common.rows(reader, &columns, &rest, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, figures(row, 3)?)))?;
    let (mut total, mut points, mut names) = (Figures::default(), Vec::new(), Vec::new());
    for (which, begun, name, figures) in rows {
        match (which, begun) {
            (STEPS, Some(begun)) => points.push((timestamp(begun, 0), figures)),
            (NAMES, _) => names.push((name, figures)),
            _ => total = figures,
        }
    }
    points.sort_by_key(|(time, _)| *time);
    names.sort_by(|(one, more), (two, less)| {
        less.traces.cmp(&more.traces).then_with(|| (one.is_none(), one).cmp(&(two.is_none(), two)))
    });
    let rest = format!(
        "WHERE x.failed_rules <> '[]' GROUP BY x.failed_rules ORDER BY times DESC, x.failed_rules LIMIT {SETS_MAX}"
    );
    let sets: Vec<(String, u64)> = Common::of(tenant, window, Column::FailedRules, "").rows(
        reader,
        "x.failed_rules, count(*) AS times",
        &rest,
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(Series { total, points, names, rules: counted(&sets) })
}

/// How often each rule is among the failed ones.
fn counted(sets: &[(String, u64)]) -> Vec<(String, u64)> {
    let mut rules = std::collections::BTreeMap::<String, u64>::new();
    for (set, times) in sets {
        for rule in serde_json::from_str::<Vec<String>>(set).unwrap_or_default() {
            *rules.entry(rule).or_default() += times;
        }
    }
    let mut rules: Vec<(String, u64)> = rules.into_iter().collect();
    rules.sort_by(|(_, one), (_, two)| two.cmp(one));
    rules.truncate(NAMES_MAX);
    rules
}

/// A page of the conversations of a window, those first that went on last; with one more row there is another page.
fn sessions(
    reader: &Reader<'_>,
    tenant: &Tenant,
    window: &Window,
    limit: u32,
    offset: u64,
) -> Result<Vec<SessionRow>, Error> {
    let columns = format!(
        "x.session_id, epoch_us(min(x.timestamp)), epoch_us(max(x.timestamp)) AS last, arg_max(x.agent_name, x.timestamp), \
         count(DISTINCT x.agent_name), {FIGURES}"
    );
    let rest = format!(
        "WHERE x.session_id IS NOT NULL GROUP BY x.session_id ORDER BY last DESC, x.session_id LIMIT {limit} OFFSET {offset}"
    );
    Common::of(tenant, window, Column::State, ", t.session_id").rows(reader, &columns, &rest, |row| {
        Ok(SessionRow {
            session_id: row.get(0)?,
            first: timestamp(row.get(1)?, 0),
            last: timestamp(row.get(2)?, 0),
            agent_name: row.get(3)?,
            agents: row.get(4)?,
            figures: figures(row, 5)?,
        })
    })
}

/// When the newest trace began.
fn newest(reader: &Reader<'_>, tenant: &Tenant) -> Result<Option<Timestamp>, Error> {
    let sql = "SELECT epoch_us(max(timestamp)) FROM traces WHERE tenant = ?";
    let found: Option<Option<i64>> = reader.first(sql, &[&tenant.as_str()], |row| row.get(0).map_err(Error::engine))?;
    Ok(found.flatten().map(|micros| timestamp(micros, 0)))
}

/// How many traces began at each of these times or later, and at any time, each version for itself.
fn counts_since(reader: &Reader<'_>, tenant: &Tenant, times: &[Timestamp]) -> Result<Vec<u64>, Error> {
    let each: String = times.iter().map(|_| "count(*) FILTER (timestamp >= ?), ").collect();
    let sql = format!("SELECT {each} count(*) FROM traces WHERE tenant = ?");
    let mut bound: Vec<Value> = times.iter().copied().map(micros).collect();
    bound.push(Value::Text(tenant.as_str().to_owned()));
    let bound: Vec<&dyn duckdb::ToSql> = bound.iter().map(|value| value as &dyn duckdb::ToSql).collect();
    let counts = |row: &duckdb::Row<'_>| (0..=times.len()).map(|at| row.get(at).map_err(Error::engine)).collect();
    Ok(reader.first(&sql, &bound, counts)?.unwrap_or_default())
}

/// What all evaluations of these traces said.
fn said(reader: &Reader<'_>, tenant: &Tenant, ids: &[TraceId]) -> Result<Vec<Said>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT DISTINCT trace_id, eval_type, state FROM evaluations WHERE tenant = ? AND score IS NOT NULL AND trace_id IN ({})",
        vec!["?"; ids.len()].join(", ")
    );
    let tenant = tenant.as_str();
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let mut bound: Vec<&dyn ToSql> = vec![&tenant];
    bound.extend(ids.iter().map(|id| id as &dyn ToSql));
    let rows: Vec<(Vec<u8>, String, String)> = reader.rows(&sql, &bound, |row| {
        let read = || -> duckdb::Result<(Vec<u8>, String, String)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        read().map_err(Error::engine)
    })?;
    let word = |text: String| serde_json::Value::String(text);
    let known = rows.into_iter().filter_map(|(id, bundle, state)| {
        let bundle = serde_json::from_value(word(bundle)).ok()?;
        Some((trace_id(&id).ok()?, bundle, serde_json::from_value(word(state)).ok()?))
    });
    Ok(known.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_where_its_unit_does() {
        let time = Timestamp::parse("2026-12-03T14:25:09Z").unwrap();
        for (step, begin) in [
            (Step::Hour, "2026-12-03T14:00:00.000Z"),
            (Step::Day, "2026-12-03T00:00:00.000Z"),
            (Step::Week, "2026-11-30T00:00:00.000Z"),
        ] {
            assert_eq!(step.begin(time).to_string(), begin);
            assert_eq!(step.begin(step.begin(time)), step.begin(time));
        }
        assert_eq!(Step::Week.begin(Timestamp::default()), Timestamp::default());
    }

    #[test]
    fn rules_are_counted_over_sets() {
        let sets = [(r#"["a","b"]"#.to_owned(), 2), (r#"["b"]"#.to_owned(), 3), ("not json".to_owned(), 9)];
        assert_eq!(counted(&sets), [("b".to_owned(), 5), ("a".to_owned(), 2)]);
    }
}
