//! Charts as SVG, from numbers alone: no clock, no settings, no style attribute. The table of the same numbers stands
//! behind each for whoever does not see it.

use std::fmt::Write;

use super::format::{NONE, count, millis, share, short, usd};
use super::markup::{Markup, escaped};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

/// Labels below a chart.
const LABELS_MAX: usize = 7;

/// Steps up the side.
const TICKS: f64 = 4.0;

/// Points that get a dot each.
const DOTS_MAX: usize = 62;

/// What the numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A count of the things named.
    Count(&'static str),
    /// US dollars.
    Usd,
    /// Milliseconds.
    Millis,
    /// A share of 1.
    Share,
}

impl Unit {
    /// As it stands beside an axis.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count(things) => things,
            Self::Usd => "US dollars",
            Self::Millis => "time",
            Self::Share => "percent",
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Self::Count(_) => short(value),
            Self::Usd => usd(value),
            Self::Millis => millis(value),
            Self::Share => format!("{:.0}%", value * 100.0),
        }
    }

    fn exact(self, value: f64) -> String {
        match self {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            Self::Count(_) => count(value.max(0.0).round() as u64),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
            Self::Share => share((value * 10_000.0).round() as u64, 10_000),
            other => other.tick(value),
        }
    }
}

/// How the numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line for each row of numbers; it breaks where one is not known.
    Lines,
    /// A bar for each step, the rows of numbers upon each other.
    Stack,
}

/// A row of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// What it is called.
    pub name: &'static str,
    /// The class that colours it.
    pub class: &'static str,
    /// The sign before its name, which the eye finds again without colours.
    pub sign: &'static str,
    /// One number for each step.
    pub values: Vec<Option<f64>>,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    /// Unique on its page.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the numbers are.
    pub unit: Unit,
    /// How they are drawn.
    pub kind: Kind,
    /// The steps: short for the axis, long for the table.
    pub steps: Vec<(String, String)>,
    /// The numbers.
    pub rows: Vec<Row>,
}

impl Chart {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.values).flatten().all(|value| *value == 0.0)
    }

    /// The table behind the drawing: a line for each step that has a number, the newest first.
    pub fn table(&self) -> Vec<(&str, Vec<String>)> {
        let told = |at: usize| {
            let values = self.rows.iter().map(|row| row.values.get(at).copied().flatten());
            let values: Vec<Option<f64>> = values.collect();
            let is_there = values.iter().flatten().any(|value| *value != 0.0);
            let exact = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| self.unit.exact(value));
            is_there.then(|| values.into_iter().map(exact).collect::<Vec<_>>())
        };
        let lines = self.steps.iter().enumerate().rev();
        lines.filter_map(|(at, (_, long))| Some((long.as_str(), told(at)?))).collect()
    }

    /// The drawing.
    pub fn svg(&self) -> Markup {
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}, {}. The table below has the numbers.\">",
            escaped(self.title),
            escaped(self.unit.name())
        );
        let top = self.top();
        let ticks = ticks(if self.unit == Unit::Share { 1.0 } else { top }, matches!(self.unit, Unit::Count(_)));
        let highest = ticks.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
        for tick in &ticks {
            let y = y_of(*tick, highest);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 3.5,
                escaped(&self.unit.tick(*tick))
            );
        }
        self.labels(&mut svg);
        match self.kind {
            Kind::Stack => self.bars(&mut svg, highest),
            Kind::Lines => self.lines(&mut svg, highest),
        }
        svg.push_str("</svg>");
        Markup::drawing(svg)
    }

    /// The highest value, of bars with what stands on them.
    fn top(&self) -> f64 {
        let value = |row: &Row, at: usize| row.values.get(at).copied().flatten().unwrap_or(0.0);
        let heights = (0..self.steps.len()).map(|at| {
            let values = self.rows.iter().map(|row| value(row, at));
            if self.kind == Kind::Stack { values.sum() } else { values.fold(0.0, f64::max) }
        });
        heights.fold(0.0, f64::max)
    }

    /// The width of one step.
    fn band(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.steps.len().max(1) as f64
    }

    fn x_of(&self, at: usize) -> f64 {
        LEFT + self.band() * (at as f64 + 0.5)
    }

    fn labels(&self, svg: &mut String) {
        let every = self.steps.len().div_ceil(LABELS_MAX).max(1);
        // The newest step always has its label.
        let newest = self.steps.len().saturating_sub(1);
        for (at, (short, _)) in self.steps.iter().enumerate() {
            if (newest - at).is_multiple_of(every) {
                let _ = write!(
                    svg,
                    "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    self.x_of(at).min(WIDTH - RIGHT - 14.0),
                    HEIGHT - 8.0,
                    escaped(short)
                );
            }
        }
    }

    fn bars(&self, svg: &mut String, highest: f64) {
        let wide = (self.band() * 0.76).clamp(0.5, 36.0);
        for (at, (_, long)) in self.steps.iter().enumerate() {
            let mut below = 0.0;
            for row in &self.rows {
                let Some(value) = row.values.get(at).copied().flatten().filter(|value| *value > 0.0) else { continue };
                let (from, to) = (y_of(below, highest), y_of(below + value, highest));
                below += value;
                let _ = write!(
                    svg,
                    "<rect class=\"bar {}\" x=\"{:.1}\" y=\"{to:.1}\" width=\"{wide:.1}\" height=\"{:.1}\"><title>{}: {} {}</title></rect>",
                    row.class,
                    self.x_of(at) - wide / 2.0,
                    (from - to).max(0.8),
                    escaped(long),
                    escaped(row.name),
                    escaped(&self.unit.exact(value))
                );
            }
        }
    }

    fn lines(&self, svg: &mut String, highest: f64) {
        for row in &self.rows {
            let points: Vec<Option<(f64, f64)>> = (0..self.steps.len())
                .map(|at| row.values.get(at).copied().flatten().map(|value| (self.x_of(at), y_of(value, highest))))
                .collect();
            let mut path = String::new();
            let mut is_drawing = false;
            for point in &points {
                if let Some((x, y)) = point {
                    let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawing { "L" } else { "M" });
                }
                is_drawing = point.is_some();
            }
            if !path.is_empty() {
                let _ = write!(svg, "<path class=\"line {}\" d=\"{path}\"/>", row.class);
            }
            let known = points.iter().flatten().count();
            for (at, point) in points.iter().enumerate() {
                let is_alone = |at: usize| points.get(at).is_none_or(Option::is_none);
                let alone = is_alone(at.wrapping_sub(1)) && is_alone(at + 1);
                let Some((x, y)) = point.filter(|_| alone || known <= DOTS_MAX) else { continue };
                let (Some((_, long)), Some(Some(value))) = (self.steps.get(at), row.values.get(at)) else { continue };
                let _ = write!(
                    svg,
                    "<circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"><title>{}: {} {}</title></circle>",
                    row.class,
                    escaped(long),
                    escaped(row.name),
                    escaped(&self.unit.exact(*value))
                );
            }
        }
    }
}

fn y_of(value: f64, highest: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / highest)
}

/// From nought to the first round number at or above `top`, in steps of 1, 2, 2.5 or 5 times a power of ten.
fn ticks(top: f64, is_whole: bool) -> Vec<f64> {
    let top = if top.is_finite() && top > 0.0 { top } else { 1.0 };
    let rough = top / TICKS;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|round| round * power).find(|step| *step >= rough * 0.999);
    let mut step = step.unwrap_or(power * 10.0);
    if is_whole {
        step = step.ceil().max(1.0);
    }
    let mut all = vec![0.0];
    while all.last().is_some_and(|last| *last < top * 0.999_999) && all.len() < 16 {
        all.push(step * all.len() as f64);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: Kind, values: &[Option<f64>]) -> Chart {
        let steps = (0..values.len()).map(|at| (format!("s{at}"), format!("step {at}"))).collect();
        let rows = vec![Row { name: "n <b>", class: "pass", sign: "■", values: values.to_vec() }];
        Chart { id: "c", title: "T & U", unit: Unit::Count("traces"), kind, steps, rows }
    }

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(0.0, true), [0.0, 1.0]);
        assert_eq!(ticks(3.0, true), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(97.0, true), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(ticks(1.0, false), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks(f64::NAN, false).len(), 5);
        for top in [0.000_013, 0.7, 1.0, 9.99, 4321.0, 8.5e11] {
            let ticks = ticks(top, false);
            assert!((3..=6).contains(&ticks.len()), "{top}: {ticks:?}");
            assert!(ticks.last().is_some_and(|last| *last >= top * 0.999 && *last <= top * 2.6), "{top}: {ticks:?}");
        }
    }

    #[test]
    fn nothing_draws_axes_and_no_more() {
        for kind in [Kind::Lines, Kind::Stack] {
            for values in [&[][..], &[None, None], &[Some(0.0)]] {
                let empty = chart(kind, values);
                let svg = empty.svg().to_string();
                assert!(empty.is_empty() && empty.table().is_empty());
                assert!(
                    svg.contains("class=\"grid\"") && !svg.contains("<path class=\"line\"") && !svg.contains("NaN"),
                    "{svg}"
                );
            }
        }
    }

    #[test]
    fn a_single_point_is_seen() {
        let lines = chart(Kind::Lines, &[None, Some(5.0), None]).svg().to_string();
        assert_eq!(lines.matches("<circle").count(), 1, "{lines}");
        let bars = chart(Kind::Stack, &[Some(5.0)]).svg().to_string();
        assert_eq!(bars.matches("<rect").count(), 1, "{bars}");
        assert!(!lines.contains("NaN") && !bars.contains("NaN"));
    }

    #[test]
    fn a_line_breaks_where_a_number_is_missing() {
        let svg = chart(Kind::Lines, &[Some(1.0), Some(2.0), None, Some(3.0), Some(1.0)]).svg().to_string();
        let path = svg.split(" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 2), "{path}");
    }

    #[test]
    fn bars_stand_on_each_other_and_names_are_escaped() {
        let mut two = chart(Kind::Stack, &[Some(3.0)]);
        two.rows.push(Row { name: "fail", class: "fail", sign: "▨", values: vec![Some(1.0)] });
        let svg = two.svg().to_string();
        assert_eq!(two.top(), 4.0);
        assert!(svg.contains("T &amp; U") && svg.contains("n &lt;b&gt;") && !svg.contains("<b>"), "{svg}");
        assert!(!svg.contains("style="), "the policy of the pages refuses style attributes");
        assert_eq!(two.table(), [("step 0", vec!["3".to_owned(), "1".to_owned()])]);
    }

    #[test]
    fn a_year_of_days_has_few_labels() {
        let svg = chart(Kind::Lines, &vec![Some(1.0); 365]).svg().to_string();
        let labels = svg.matches("text-anchor=\"middle\"").count();
        assert!((4..=LABELS_MAX).contains(&labels), "{labels}");
        assert_eq!(svg.matches("<circle").count(), 0, "a line of many points has no dots");
    }
}
