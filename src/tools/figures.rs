//! What pages of figures are drawn from: verdicts, cost, tokens and latency over time, and the sessions of a window.

use std::time::Duration;

use iris_core::contract::{Error, Scope};
use iris_core::model::Timestamp;

use super::{App, Caller};
use crate::store::{By, Figures, POINTS_MAX, Series, SessionRow, Step, Window};

/// Traces from which on a window says enough: a shorter one with fewer is passed over where a longer one has more.
const ENOUGH: u64 = 10;

/// Sessions of one page.
pub const SESSIONS_PAGE: u32 = 50;

/// A window that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// 24 hours.
    Day,
    /// Seven days.
    Week,
    /// 30 days.
    Month,
    /// 90 days.
    Quarter,
    /// 365 days.
    Year,
}

impl Period {
    /// Every one, the shortest first.
    pub const ALL: [Self; 5] = [Self::Day, Self::Week, Self::Month, Self::Quarter, Self::Year];

    /// Its name as it stands in addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
            Self::Quarter => "90d",
            Self::Year => "1y",
        }
    }

    const fn hours(self) -> u64 {
        match self {
            Self::Day => 24,
            Self::Week => 7 * 24,
            Self::Month => 30 * 24,
            Self::Quarter => 90 * 24,
            Self::Year => 365 * 24,
        }
    }

    /// How long it is.
    pub const fn length(self) -> Duration {
        Duration::from_secs(self.hours() * 3600)
    }

    /// The steps in which it can be shown, the one that reads best first.
    pub const fn steps(self) -> &'static [Step] {
        match self {
            Self::Day => &[Step::Hour],
            Self::Week => &[Step::Day, Step::Hour],
            Self::Month => &[Step::Day, Step::Week],
            Self::Quarter | Self::Year => &[Step::Week, Step::Day],
        }
    }
}

/// What is asked about figures.
#[derive(Debug, Clone, PartialEq)]
pub struct FiguresArgs {
    /// The window; the shortest one that shows enough when none is named.
    pub period: Option<Period>,
    /// How long one step is; the period's own when it cannot be shown in such steps.
    pub step: Option<Step>,
    /// What the table tells traces apart by.
    pub by: By,
    /// Only traces with these names.
    pub names: Vec<(By, String)>,
}

/// Figures of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct FiguresReply {
    /// The window that was looked at.
    pub period: Period,
    /// How long one step is.
    pub step: Step,
    /// When it was asked.
    pub now: Timestamp,
    /// When the newest trace of all began.
    pub newest: Option<Timestamp>,
    /// The figures; every step of the window is there, in order.
    pub series: Series,
}

impl App {
    /// Figures over time, by name and by rule.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn figures(&self, args: FiguresArgs, caller: &Caller) -> Result<FiguresReply, Error> {
        caller.check("summary", Scope::Read)?;
        let (now, newest) = self.newest(caller).await?;
        let period = self.period(args.period, now, caller).await?;
        let steps = period.steps();
        let step = args.step.filter(|step| steps.contains(step)).or(steps.first().copied()).unwrap_or(Step::Day);
        let window = window(period, now, args.names);
        let since = step.begin(window.since);
        let store = &self.backend()?.store;
        let mut series = store
            .series(&caller.tenant, &Window { since, ..window }, step, args.by)
            .await
            .map_err(|error| self.failed(&error))?;
        series.points = filled(series.points, step, since, now);
        Ok(FiguresReply { period, step, now, newest, series })
    }

    /// The sessions of a window, and whether there are more; `None` for the shortest window that shows enough.
    ///
    /// # Errors
    /// `IRIS_STORAGE_ERROR`.
    pub async fn sessions(
        &self,
        period: Option<Period>,
        offset: u64,
        caller: &Caller,
    ) -> Result<(Period, Vec<SessionRow>, bool), Error> {
        caller.check("traces", Scope::Read)?;
        let now = (self.world.now)();
        let period = self.period(period, now, caller).await?;
        let store = &self.backend()?.store;
        let rows = store.sessions(&caller.tenant, &window(period, now, Vec::new()), SESSIONS_PAGE + 1, offset).await;
        let mut rows = rows.map_err(|error| self.failed(&error))?;
        let is_more = rows.len() > SESSIONS_PAGE as usize;
        rows.truncate(SESSIONS_PAGE as usize);
        Ok((period, rows, is_more))
    }

    /// The period that is asked for, or the shortest that has enough traces, or as many as any longer one.
    pub(super) async fn period(&self, asked: Option<Period>, now: Timestamp, caller: &Caller) -> Result<Period, Error> {
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let since = Period::ALL.map(|period| window(period, now, Vec::new()).since);
        let counts = self.backend()?.store.counts_since(&caller.tenant, &since).await;
        let counts = counts.map_err(|error| self.failed(&error))?;
        Ok(shortest(&counts))
    }

    /// What time it is, and when the newest trace began.
    pub(super) async fn newest(&self, caller: &Caller) -> Result<(Timestamp, Option<Timestamp>), Error> {
        let store = &self.backend()?.store;
        let newest = store.newest_trace(&caller.tenant).await.map_err(|error| self.failed(&error))?;
        Ok(((self.world.now)(), newest))
    }
}

/// The shortest period that has enough traces, or as many as any other; of those in each period, and of all.
fn shortest(counts: &[u64]) -> Period {
    let most = counts.get(Period::ALL.len() - 1).copied().unwrap_or_default();
    let enough = if most == 0 { counts.last().copied().unwrap_or_default() } else { most };
    let mut of = Period::ALL.into_iter().zip(counts);
    of.find(|(_, count)| **count >= enough.min(ENOUGH)).map_or(Period::Year, |(period, _)| period)
}

pub(super) fn window(period: Period, now: Timestamp, names: Vec<(By, String)>) -> Window {
    let length = u64::try_from(period.length().as_nanos()).unwrap_or(u64::MAX);
    let since = Timestamp::from_unix_nanos(now.as_unix_nanos().saturating_sub(length));
    Window { since, until: now, names }
}

/// Every step from the first to now: what has no trace is nought.
fn filled(
    points: Vec<(Timestamp, Figures)>,
    step: Step,
    since: Timestamp,
    now: Timestamp,
) -> Vec<(Timestamp, Figures)> {
    let mut found: std::collections::BTreeMap<Timestamp, Figures> = points.into_iter().collect();
    let mut at = step.begin(since);
    let mut all = Vec::new();
    while at <= now && all.len() < POINTS_MAX {
        all.push((at, found.remove(&at).unwrap_or_default()));
        at = at.after(Duration::from_secs(step.seconds()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn steps_without_a_trace_are_nought() {
        let one = Figures { traces: 3, ..Figures::default() };
        let points = vec![(at("2026-12-01T11:00:00Z"), one.clone())];
        let all = filled(points, Step::Hour, at("2026-12-01T10:20:00Z"), at("2026-12-01T12:59:00Z"));
        let counts: Vec<u64> = all.iter().map(|(_, figures)| figures.traces).collect();
        assert_eq!(counts, [0, 3, 0]);
        assert_eq!(filled(Vec::new(), Step::Hour, Timestamp::default(), at("2026-12-01T00:00:00Z")).len(), POINTS_MAX);
    }

    #[test]
    fn the_shortest_period_that_shows_enough_is_taken() {
        for (counts, period) in [
            ([0, 0, 0, 0, 0, 0], Period::Day),
            ([12, 500, 500, 500, 500, 500], Period::Day),
            ([3, 3, 3, 3, 3, 3], Period::Day),
            ([1, 13, 13, 13, 13, 13], Period::Week),
            ([1, 4, 4, 9, 9, 9], Period::Quarter),
            ([0, 0, 0, 0, 0, 7], Period::Year),
        ] {
            assert_eq!(shortest(&counts), period, "{counts:?}");
        }
    }
}
